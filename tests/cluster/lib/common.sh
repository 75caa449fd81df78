# shellcheck shell=bash
# shellcheck disable=SC2034 # read by the scripts that source this
# Shared by `build` and `run`: how they speak, where binaries are kept, and exit codes.

# Something that the tier needs is not on this machine: the caller is to skip, loudly.
readonly EXIT_MISSING=77
# A server of the control plane did not start, or died.
readonly EXIT_SERVER=70

readonly CACHE="${MODELDECK_CLUSTER_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/modeldeck/cluster}"

say() { printf 'cluster: %s\n' "$*" >&2; }

fail() {
  local code=$1
  shift
  say "$*"
  exit "$code"
}

# What is missing, in a form that cannot be overlooked.
missing() {
  printf '\ncluster: ==================================================================\n' >&2
  printf 'cluster: THE REAL CONTROL PLANE CANNOT RUN HERE. Missing: %s\n' "$*" >&2
  printf 'cluster: ==================================================================\n\n' >&2
  exit "$EXIT_MISSING"
}

# Splits "a,b c" into lines.
words() { tr -s ', ' '\n' <<<"$*" | sed '/^$/d'; }
