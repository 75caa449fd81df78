# shellcheck shell=bash
# shellcheck disable=SC2154 # WORLD, PKI and the functions are those of lib/inside
# The controllers of LeaderWorkerSet and DisaggregatedSet with their webhooks, from the module's own
# config/default. Its certificates are ours: the API server trusts our CA, and no Secret is needed.

start_lws() {
  local work=$WORLD/lws ca certs
  mkdir -p "$work"
  cp -R "$(component_data lws)/config" "$work/config"
  make_certificate lws-webhook /CN=lws-webhook serverAuth DNS:lws-webhook-service.lws-system.svc
  certs=$work/certs
  mkdir "$certs"
  cp "$PKI/lws-webhook.crt" "$certs/tls.crt"
  cp "$PKI/lws-webhook.key" "$certs/tls.key"
  ca=$(base64_of "$PKI/ca.crt")
  cat >"$work/kustomization.yaml" <<K
resources: [config/default]
patches:
- target: {kind: Deployment}
  patch: '{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "any"}, "\$patch": "delete"}'
- target: {kind: Secret}
  patch: '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "any"}, "\$patch": "delete"}'
- target: {kind: Service}
  patch: '[{"op": "remove", "path": "/spec/selector"}]'
- target: {kind: MutatingWebhookConfiguration}
  patch: '[$(ca_patch 0), $(ca_patch 1)]'
- target: {kind: ValidatingWebhookConfiguration}
  patch: '[$(ca_patch 0), $(ca_patch 1), $(ca_patch 2)]'
K
  cat >"$work/manager.yaml" <<K
apiVersion: config.lws.x-k8s.io/v1alpha1
kind: Configuration
internalCertManagement: {enable: false}
leaderElection: {leaderElect: false}
webhook: {host: "$NODE_ADDRESS", port: 9443, certDir: $certs}
metrics: {bindAddress: "127.0.0.1:18443"}
health: {healthProbeBindAddress: "127.0.0.1:18081"}
K
  "$KUBECTL" kustomize "$work" >"$work/objects.yaml" 2>"$LOGS/lws-kustomize.log" || fail "$EXIT_SERVER" "lws: kustomize failed, see its log: $(<"$LOGS/lws-kustomize.log")"
  apply "$work/objects.yaml"
  service_backend lws-system lws-webhook-service 9443
  wait_for_crds crd/leaderworkersets.leaderworkerset.x-k8s.io crd/disaggregatedsets.disaggregatedset.x-k8s.io
  service_account_kubeconfig lws-system lws-controller-manager
  start_server lws-manager env KUBECONFIG="$WORLD/lws-controller-manager.kubeconfig" "$WORLD/bin/lws-manager" --config "$work/manager.yaml"
  wait_for 60 "the LWS manager's webhooks" lws_answers
}

ca_patch() { printf '{"op": "add", "path": "/webhooks/%s/clientConfig/caBundle", "value": "%s"}' "$1" "$ca"; }

# The whole way: API server, webhooks, answer. Its defaults come from the mutating webhook.
lws_answers() {
  admin_kubectl create --dry-run=server -o name -f - <<K
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: probe, namespace: default}
spec:
  replicas: 1
  leaderWorkerTemplate:
    size: 1
    workerTemplate: {spec: {containers: [{name: c, image: i}]}}
K
}
