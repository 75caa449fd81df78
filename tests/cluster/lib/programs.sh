# shellcheck shell=bash
# shellcheck disable=SC2034 # read by the scripts that source this
# The programs that the tier builds: one Go module folder each, what comes out, and with which
# flags. Needs common.sh, and HERE, the folder of this tier.

# What every run needs, in the order in which it is worth having them.
readonly BASE_PROGRAMS=(kubernetes etcd kwok)
# What `--with` may name, and the module folder behind each name.
readonly -A OPTIONAL_PROGRAMS=([lws]=lws [keda]=keda [epp]=epp [sim]=inference-sim [metrics-server]=metrics-server)

# The module path whose version is the program's version.
program_module() {
  case $1 in
    kubernetes) echo k8s.io/kubernetes ;;
    etcd) echo go.etcd.io/etcd/server/v3 ;;
    kwok) echo sigs.k8s.io/kwok ;;
    lws) echo sigs.k8s.io/lws ;;
    keda) echo github.com/kedacore/keda/v2 ;;
    epp) echo sigs.k8s.io/gateway-api-inference-extension ;;
    inference-sim) echo github.com/llm-d/llm-d-inference-sim ;;
    metrics-server) echo sigs.k8s.io/metrics-server ;;
    *) fail 2 "no program is named $1" ;;
  esac
}

# Lines "BINARY PACKAGE".
program_binaries() {
  case $1 in
    kubernetes)
      local name
      for name in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
        echo "$name k8s.io/kubernetes/cmd/$name"
      done
      ;;
    etcd) echo "etcd go.etcd.io/etcd/server/v3" ;;
    kwok) echo "kwok sigs.k8s.io/kwok/cmd/kwok" ;;
    lws) echo "lws-manager sigs.k8s.io/lws/cmd" ;;
    keda)
      echo "keda-operator github.com/kedacore/keda/v2/cmd/operator"
      echo "keda-adapter github.com/kedacore/keda/v2/cmd/adapter"
      ;;
    epp) echo "epp sigs.k8s.io/gateway-api-inference-extension/cmd/epp" ;;
    inference-sim) echo "llm-d-inference-sim github.com/llm-d/llm-d-inference-sim/cmd/llm-d-inference-sim" ;;
    metrics-server) echo "metrics-server sigs.k8s.io/metrics-server/cmd/metrics-server" ;;
  esac
}

# Folders of the module's source that are needed at run time too (CRDs, webhooks).
program_data() {
  case $1 in
    lws) echo config ;;
    keda) echo config/crd/bases ;;
    epp) echo config/crd ;;
    metrics-server) echo manifests ;;
  esac
}

program_version() {
  local module
  module=$(program_module "$1")
  awk -v m="$module" '$1 == "require" && $2 == m { print $3; exit } $1 == m && $2 ~ /^v/ { print $2; exit }' "$HERE/$1/go.mod"
}

# The servers say their version from linker flags; without them they call themselves v0.0.0-master
# and clients mistrust it (the names are those of Kubernetes' hack/lib/version.sh).
program_ldflags() {
  local flags="-s -w" version package
  version=$(program_version "$1")
  case $1 in
    kubernetes)
      local major=${version#v} minor
      minor=${major#*.}
      for package in k8s.io/client-go/pkg/version k8s.io/component-base/version; do
        flags+=" -X $package.gitVersion=$version -X $package.gitMajor=${major%%.*} -X $package.gitMinor=${minor%%.*}"
      done
      ;;
    kwok) flags+=" -X sigs.k8s.io/kwok/pkg/consts.Version=$version" ;;
  esac
  echo "$flags"
}

# Everything that decides what a build gives, Go's own version apart: a machine without Go can
# use what another one built.
program_key() {
  {
    cat "$HERE/$1/go.mod" "$HERE/$1/go.sum"
    program_ldflags "$1"
    program_binaries "$1"
    program_data "$1"
    uname -sm
  } | sha256sum | cut -c1-12
}

program_folder() { echo "$CACHE/$1-$(program_version "$1")-$(program_key "$1")"; }

# A folder is complete once it has its name: it is built elsewhere and moved there.
program_is_built() { [[ -e "$(program_folder "$1")/built" ]]; }
