# shellcheck shell=bash
# shellcheck disable=SC2154,SC2119,SC2120 # WORLD, SERVER and others are those of the script that sources this
# What the parts that `--with` starts have in common.

# The folder of a component's build: its data beside its binaries.
component_data() { program_folder "${OPTIONAL_PROGRAMS[$1]}"; }

# Applies what stands on standard input, or the files named. Server-side, for CRDs are too big for
# the annotation of the other kind.
apply() {
  local -a files=()
  local file
  for file in "${@:--}"; do files+=(-f "$file"); done
  admin_kubectl apply --server-side --force-conflicts --field-manager=modeldeck-cluster "${files[@]}" >>"$LOGS/apply.log" 2>&1 || {
    say "the objects of $component were not taken:"
    tail -n 10 "$LOGS/apply.log" | sed 's/^/    /' >&2
    exit "$EXIT_SERVER"
  }
}

wait_for_crds() { admin_kubectl wait --for=condition=Established --timeout=60s "$@" >>"$LOGS/apply.log"; }

# service_backend NAMESPACE SERVICE PORT [PORT-NAME]: the endpoints that no controller writes, for the
# Service has no selector: the API server goes to the node address, where the program listens.
service_backend() {
  apply <<S
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: $2-modeldeck
  namespace: $1
  labels: {kubernetes.io/service-name: $2}
addressType: IPv4
ports: [{name: "${4-}", port: $3, protocol: TCP}]
endpoints: [{addresses: ["$NODE_ADDRESS"], conditions: {ready: true}}]
S
}

# A kubeconfig of a service account, so that a program has the rights that its RBAC gives it, and
# is known by its name in the audit log.
service_account_kubeconfig() {
  local token
  token=$(admin_kubectl -n "$1" create token "$2" --duration=48h)
  cat >"$WORLD/$2.kubeconfig" <<K
apiVersion: v1
kind: Config
current-context: $2
clusters: [{name: modeldeck, cluster: {server: "$SERVER", certificate-authority-data: $(base64_of "$PKI/ca.crt")}}]
users: [{name: $2, user: {token: $token}}]
contexts: [{name: $2, context: {cluster: modeldeck, user: $2, namespace: $1}}]
K
}
