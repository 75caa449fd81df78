# shellcheck shell=bash
# shellcheck disable=SC2154 # WORLD, LOGS and KUBECTL are those of the script that sources this
# The network of the namespace, and the control plane in it.

readonly POD_RANGE=10.200.0.0/16
# In the range, but far from the addresses that kwok hands out first.
readonly NODE_ADDRESS=10.200.255.1
readonly SERVICE_RANGE=10.96.0.0/12
readonly SERVER=https://127.0.0.1:6443

# Every address of the pod range is this machine: a server bound to 0.0.0.0 answers for all pods.
make_network() {
  ip link set lo up
  ip route add local "$POD_RANGE" dev lo
  ip addr add "$NODE_ADDRESS/32" dev lo
  # The API server looks for a default route when it chooses its own address.
  ip route add default dev lo
  # No name server answers in here: a question is to fail at once.
  echo "nameserver 127.0.0.1" >"$WORLD/resolv.conf"
  cat /etc/hosts >"$WORLD/hosts" 2>/dev/null || echo "127.0.0.1 localhost" >"$WORLD/hosts"
  mount --bind "$WORLD/hosts" /etc/hosts
  mount --bind "$WORLD/resolv.conf" "$(realpath /etc/resolv.conf)"
}

admin_kubectl() { "$KUBECTL" --kubeconfig "$WORLD/admin.kubeconfig" --cache-dir "$WORLD/kubectl-cache" "$@"; }

start_control_plane() {
  start_etcd
  start_apiserver
  wait_for 120 "the API server" admin_kubectl get --raw /readyz
  start_controller_manager
  if [[ -n ${MACHINERY-} ]]; then
    wait_for 60 "the controller manager" admin_kubectl -n default get serviceaccount default
    return
  fi
  start_scheduler
  start_kwok
  wait_for 60 "kwok" admin_kubectl --server "https://$NODE_ADDRESS:10250" get --raw /healthz
  wait_for 60 "the controller manager" admin_kubectl -n default get serviceaccount default
  wait_for 60 "the scheduler" admin_kubectl --server "https://127.0.0.1:10259" --insecure-skip-tls-verify get --raw /healthz
}

start_etcd() {
  start_server etcd "$WORLD/bin/etcd" --name default --data-dir "$WORLD/etcd" --unsafe-no-fsync \
    --quota-backend-bytes 4294967296 --auto-compaction-mode periodic --auto-compaction-retention 5m \
    --listen-client-urls http://127.0.0.1:2379 --advertise-client-urls http://127.0.0.1:2379 \
    --listen-peer-urls http://127.0.0.1:2380 --initial-advertise-peer-urls http://127.0.0.1:2380 \
    --initial-cluster default=http://127.0.0.1:2380 --log-level warn
}

start_apiserver() {
  printf 'apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n- level: Metadata\n' >"$WORLD/audit-policy.yaml"
  : >"$LOGS/audit.log"
  start_server kube-apiserver "$WORLD/bin/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
    --bind-address=0.0.0.0 --secure-port=6443 --advertise-address="$NODE_ADDRESS" \
    --service-cluster-ip-range="$SERVICE_RANGE" --allow-privileged=true \
    --authorization-mode=Node,RBAC --client-ca-file="$PKI/ca.crt" --token-auth-file="$PKI/tokens.csv" \
    --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" \
    --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$PKI/service-accounts.pub" \
    --service-account-signing-key-file="$PKI/service-accounts.key" \
    --kubelet-client-certificate="$PKI/kubelet-client.crt" --kubelet-client-key="$PKI/kubelet-client.key" \
    --kubelet-certificate-authority="$PKI/ca.crt" --kubelet-preferred-address-types=InternalIP \
    --enable-aggregator-routing=true --requestheader-client-ca-file="$PKI/ca.crt" \
    --requestheader-allowed-names=front-proxy-client --requestheader-username-headers=X-Remote-User \
    --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
    --proxy-client-cert-file="$PKI/front-proxy.crt" --proxy-client-key-file="$PKI/front-proxy.key" \
    --max-requests-inflight=3000 --max-mutating-requests-inflight=1500 \
    --audit-policy-file="$WORLD/audit-policy.yaml" --audit-log-path="$LOGS/audit.log"
}

# The controllers without which the API is not the API: what follows a delete, and what every namespace has.
readonly MACHINERY_CONTROLLERS=namespace-controller,garbage-collector-controller,serviceaccount-controller,serviceaccount-token-controller,root-ca-certificate-publisher-controller,clusterrole-aggregation-controller,persistentvolumeclaim-protection-controller,persistentvolume-protection-controller

start_controller_manager() {
  # Three controllers hand out pod ranges and routes to nodes: kwok's pods have one range for all.
  local controllers=*,-node-ipam-controller,-node-route-controller,-cloud-node-lifecycle-controller
  [[ -z ${MACHINERY-} ]] || controllers=$MACHINERY_CONTROLLERS
  start_server kube-controller-manager "$WORLD/bin/kube-controller-manager" \
    --kubeconfig="$WORLD/controller-manager.kubeconfig" --leader-elect=false --use-service-account-credentials=true \
    --controllers="$controllers" \
    --service-account-private-key-file="$PKI/service-accounts.key" --root-ca-file="$PKI/ca.crt" \
    --cluster-signing-cert-file="$PKI/ca.crt" --cluster-signing-key-file="$PKI/ca.key" \
    --horizontal-pod-autoscaler-sync-period=5s --kube-api-qps=500 --kube-api-burst=1000 \
    --bind-address=127.0.0.1
}

start_scheduler() {
  start_server kube-scheduler "$WORLD/bin/kube-scheduler" --kubeconfig="$WORLD/scheduler.kubeconfig" --leader-elect=false \
    --authentication-kubeconfig="$WORLD/scheduler.kubeconfig" --authorization-kubeconfig="$WORLD/scheduler.kubeconfig" \
    --kube-api-qps=500 --kube-api-burst=1000 --bind-address=127.0.0.1
}

start_kwok() {
  local file
  mkdir -p "$WORLD/kwok"
  printf '%s stdout F this is the log of a simulated container\n' "$(date -u +%Y-%m-%dT%H:%M:%S.%NZ)" >"$LOGS/pods.log"
  for file in "$HERE"/kwok/{nodes,stages,kubelet}.yaml ${KWOK_CONFIG:+"$KWOK_CONFIG"}; do
    echo "---"
    sed "s|@POD_LOG@|$LOGS/pods.log|g; s|@NODE_ADDRESS@|$NODE_ADDRESS|g" "$file"
  done >"$WORLD/kwok/config.yaml"
  # One heartbeat: the Lease here, and no node-heartbeat stage beside it.
  start_server kwok "$WORLD/bin/kwok" --kubeconfig="$WORLD/kwok.kubeconfig" --config="$WORLD/kwok/config.yaml" \
    --manage-all-nodes=true --cidr="$POD_RANGE" --node-ip="$NODE_ADDRESS" --node-port=10250 \
    --server-address="$NODE_ADDRESS:10250" --tls-cert-file="$PKI/kubelet.crt" --tls-private-key-file="$PKI/kubelet.key" \
    --node-lease-duration-seconds=40
}

# What the command finds in its environment; docs/real-control-plane.md describes each.
export_environment() {
  export PATH="$WORLD/bin:$PATH"
  export KUBECONFIG=$WORLD/admin.kubeconfig KUBECACHEDIR=$WORLD/kubectl-cache CARGO_NET_OFFLINE=true
  export MODELDECK_CLUSTER_SERVER=$SERVER MODELDECK_CLUSTER_WITH=$WITH MODELDECK_CLUSTER_NODE_ADDRESS=$NODE_ADDRESS
  export MODELDECK_CLUSTER_CA_CRT=$PKI/ca.crt MODELDECK_CLUSTER_CA_KEY=$PKI/ca.key MODELDECK_CLUSTER_TOKENS=$PKI/tokens.csv
  export MODELDECK_CLUSTER_LOGS=$LOGS MODELDECK_CLUSTER_POD_LOG=$LOGS/pods.log MODELDECK_AUDIT_LOG=$LOGS/audit.log
  export MODELDECK_KUBECTL=$KUBECTL
}
