# shellcheck shell=bash
# shellcheck disable=SC2154 # LOGS and STARTED are those of the script that sources this
# Starting servers, noticing their death, waiting for things, running the command.

declare -A SERVER_NAMES=()
COMMAND_PID=""

# A server, in a session of its own: Ctrl-C at the terminal is not for it.
start_server() {
  local name=$1
  shift
  setsid "$@" >"$LOGS/$name.log" 2>&1 </dev/null &
  SERVER_NAMES[$!]=$name
}

# Says which server has died, if one has, and ends everything.
check_servers() {
  local pid
  for pid in "${!SERVER_NAMES[@]}"; do
    kill -0 "$pid" 2>/dev/null || server_died "$pid"
  done
}

server_died() {
  local name=${SERVER_NAMES[$1]} code=0
  wait "$1" || code=$?
  say "$name DIED (exit code $code). The end of its log:"
  tail -n 30 "$LOGS/$name.log" | sed 's/^/    /' >&2
  stop_command
  exit "$EXIT_SERVER"
}

# wait_for SECONDS WHAT COMMAND…: until the command succeeds.
wait_for() {
  local seconds=$1 what=$2 deadline
  shift 2
  deadline=$((SECONDS + seconds))
  until "$@" >"$LOGS/wait.log" 2>&1; do
    check_servers
    if ((SECONDS > deadline)); then
      say "$what: not there after $seconds s. The last try said:"
      tail -n 5 "$LOGS/wait.log" | sed 's/^/    /' >&2
      exit "$EXIT_SERVER"
    fi
    sleep 0.2
  done
}

# The command, in the caller's terminal and process group. Ends with its exit code.
run_command() {
  local code=0 gone=""
  env --default-signal=INT,QUIT -- "$@" <&0 &
  COMMAND_PID=$!
  while true; do
    code=0
    wait -n -p gone || code=$?
    if [[ $gone == "$COMMAND_PID" ]]; then exit "$code"; fi
    if [[ -n $gone && -n ${SERVER_NAMES[$gone]-} ]]; then
      say "${SERVER_NAMES[$gone]} DIED while the command ran (exit code $code). The end of its log:"
      tail -n 30 "$LOGS/${SERVER_NAMES[$gone]}.log" | sed 's/^/    /' >&2
      stop_command
      exit "$EXIT_SERVER"
    fi
  done
}

# Gives the command five seconds to end by itself; the end of this process ends the rest.
stop_command() {
  [[ -n $COMMAND_PID ]] || return 0
  kill -TERM "$COMMAND_PID" 2>/dev/null || return 0
  for _ in {1..50}; do
    kill -0 "$COMMAND_PID" 2>/dev/null || return 0
    sleep 0.1
  done
}

end_interrupted() {
  trap '' INT TERM HUP
  say "interrupted: taking everything down"
  stop_command
  exit "$1"
}
