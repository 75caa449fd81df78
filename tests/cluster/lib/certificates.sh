# shellcheck shell=bash
# shellcheck disable=SC2154 # WORLD and NODE_ADDRESS are those of the script that sources this
# Throw-away keys: one CA, which signs servers and clients, and the tokens of the test users.

make_certificates() {
  PKI=$WORLD/pki
  mkdir -p "$PKI"
  printf '[req]\ndistinguished_name = dn\n[dn]\n' >"$PKI/openssl.cnf"
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -config "$PKI/openssl.cnf" \
    -subj "/CN=modeldeck-cluster-ca" -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature \
    -addext subjectKeyIdentifier=hash -keyout "$PKI/ca.key" -out "$PKI/ca.crt" 2>"$PKI/openssl.log"
  make_certificate apiserver /CN=kube-apiserver serverAuth "IP:127.0.0.1,IP:$NODE_ADDRESS,IP:10.96.0.1,DNS:localhost,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
  make_certificate kubelet /CN=kwok serverAuth "IP:$NODE_ADDRESS,DNS:localhost"
  make_certificate admin /O=system:masters/CN=kubernetes-admin clientAuth
  make_certificate controller-manager /CN=system:kube-controller-manager clientAuth
  make_certificate scheduler /CN=system:kube-scheduler clientAuth
  make_certificate kwok /O=system:masters/CN=kwok clientAuth
  make_certificate kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
  make_certificate front-proxy /CN=front-proxy-client clientAuth
  openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$PKI/service-accounts.key" 2>>"$PKI/openssl.log"
  openssl pkey -in "$PKI/service-accounts.key" -pubout -out "$PKI/service-accounts.pub"
  # TOKEN,NAME,UID,"GROUPS": https://kubernetes.io/docs/reference/access-authn-authz/authentication/
  cat >"$PKI/tokens.csv" <<'T'
admin-token,admin,admin-uid,"system:masters"
alice-token,alice,alice-uid,"developers,team-a"
bob-token,bob,bob-uid,"developers"
T
  local user
  for user in admin controller-manager scheduler kwok; do make_kubeconfig "$user"; done
}

# make_certificate NAME SUBJECT USAGE [SUBJECT-ALTERNATIVE-NAMES]
make_certificate() {
  openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -config "$PKI/openssl.cnf" \
    -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -subj "$2" -addext basicConstraints=critical,CA:FALSE \
    -addext keyUsage=critical,digitalSignature -addext "extendedKeyUsage=$3" ${4:+-addext "subjectAltName=$4"} \
    -keyout "$PKI/$1.key" -out "$PKI/$1.crt" 2>>"$PKI/openssl.log"
}

base64_of() { base64 -w0 <"$1"; }

# A kubeconfig whose user has a client certificate; the administrator's has the token users too,
# as contexts of their names.
make_kubeconfig() {
  {
    cat <<K
apiVersion: v1
kind: Config
current-context: $1
clusters:
- name: modeldeck
  cluster:
    server: $SERVER
    certificate-authority-data: $(base64_of "$PKI/ca.crt")
users:
- name: $1
  user:
    client-certificate-data: $(base64_of "$PKI/$1.crt")
    client-key-data: $(base64_of "$PKI/$1.key")
K
    [[ $1 != admin ]] || printf -- '- name: %s\n  user:\n    token: %s\n' alice alice-token bob bob-token admin-by-token admin-token
    echo "contexts:"
    printf -- '- name: %s\n  context:\n    cluster: modeldeck\n    user: %s\n' "$1" "$1"
    [[ $1 != admin ]] || printf -- '- name: %s\n  context:\n    cluster: modeldeck\n    user: %s\n' alice alice bob bob admin-by-token admin-by-token
  } >"$WORLD/$1.kubeconfig"
}
