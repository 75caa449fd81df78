# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_modeldeck_global_optspecs
    string join \n h/help V/version
end

function __fish_modeldeck_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_modeldeck_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_modeldeck_using_subcommand
    set -l cmd (__fish_modeldeck_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c modeldeck -n "__fish_modeldeck_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c modeldeck -n "__fish_modeldeck_needs_command" -s V -l version -d 'Print version'
complete -c modeldeck -n "__fish_modeldeck_needs_command" -f -a "status" -d 'Show every model and role in one line: state, counts, what it lacks, load'
complete -c modeldeck -n "__fish_modeldeck_needs_command" -f -a "explain" -d 'Say what is wrong in one sentence, then prove it: findings, counts, and every replica'
complete -c modeldeck -n "__fish_modeldeck_needs_command" -f -a "findings" -d 'List what is wrong or risky, worst first'
complete -c modeldeck -n "__fish_modeldeck_needs_command" -f -a "open" -d 'Open the screen on a bundle'
complete -c modeldeck -n "__fish_modeldeck_needs_command" -f -a "cluster" -d 'Serve a Kubernetes API of modeldeck\'s own on this machine, until Ctrl-C'
complete -c modeldeck -n "__fish_modeldeck_needs_command" -f -a "completions" -d 'Print a completion script for a shell'
complete -c modeldeck -n "__fish_modeldeck_needs_command" -f -a "man" -d 'Print the manual page, as roff'
complete -c modeldeck -n "__fish_modeldeck_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand status" -l from -d 'Read the bundle in this directory' -r -f -a "(__fish_complete_directories)"
complete -c modeldeck -n "__fish_modeldeck_using_subcommand status" -l now -d 'Take this as the present, as 2026-11-12T10:00:00Z; without it the newest time in the input counts' -r
complete -c modeldeck -n "__fish_modeldeck_using_subcommand status" -s n -l namespace -d 'Show only this namespace' -r
complete -c modeldeck -n "__fish_modeldeck_using_subcommand status" -s o -l output -d 'Format of the answer' -r -f -a "table\t'Text for people'
wide\t'The same with more columns and every piece of evidence'
json\t'JSON for programs'
yaml\t'The same as YAML'"
complete -c modeldeck -n "__fish_modeldeck_using_subcommand status" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand explain" -l from -d 'Read the bundle in this directory' -r -f -a "(__fish_complete_directories)"
complete -c modeldeck -n "__fish_modeldeck_using_subcommand explain" -l now -d 'Take this as the present, as 2026-11-12T10:00:00Z; without it the newest time in the input counts' -r
complete -c modeldeck -n "__fish_modeldeck_using_subcommand explain" -s n -l namespace -d 'Show only this namespace' -r
complete -c modeldeck -n "__fish_modeldeck_using_subcommand explain" -s o -l output -d 'Format of the answer' -r -f -a "table\t'Text for people'
wide\t'The same with more columns and every piece of evidence'
json\t'JSON for programs'
yaml\t'The same as YAML'"
complete -c modeldeck -n "__fish_modeldeck_using_subcommand explain" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand findings" -l from -d 'Read the bundle in this directory' -r -f -a "(__fish_complete_directories)"
complete -c modeldeck -n "__fish_modeldeck_using_subcommand findings" -l now -d 'Take this as the present, as 2026-11-12T10:00:00Z; without it the newest time in the input counts' -r
complete -c modeldeck -n "__fish_modeldeck_using_subcommand findings" -s n -l namespace -d 'Show only this namespace' -r
complete -c modeldeck -n "__fish_modeldeck_using_subcommand findings" -s o -l output -d 'Format of the answer' -r -f -a "table\t'Text for people'
wide\t'The same with more columns and every piece of evidence'
json\t'JSON for programs'
yaml\t'The same as YAML'"
complete -c modeldeck -n "__fish_modeldeck_using_subcommand findings" -l fail-on -d 'End with exit code 1 if there is a finding of this severity or a worse one, or if nothing of a role serves' -r -f -a "critical\t'Requests are lost or soon will be, or nothing can go on'
warning\t'Capacity or safety is lost'
info\t'Anything worth knowing'"
complete -c modeldeck -n "__fish_modeldeck_using_subcommand findings" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand open" -l now -d 'Take this as the present, as 2026-11-12T10:00:00Z; without it the newest time in the input counts' -r
complete -c modeldeck -n "__fish_modeldeck_using_subcommand open" -s h -l help -d 'Print help'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand cluster" -l kubeconfig -d 'File to write the kubeconfig to' -r -F
complete -c modeldeck -n "__fish_modeldeck_using_subcommand cluster" -l port -d 'Port of 127.0.0.1; a free one without it' -r
complete -c modeldeck -n "__fish_modeldeck_using_subcommand cluster" -l seed -d 'Seed of all uids and generated names' -r
complete -c modeldeck -n "__fish_modeldeck_using_subcommand cluster" -l insecure -d 'HTTP instead of HTTPS'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand cluster" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand completions" -s h -l help -d 'Print help'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand man" -s h -l help -d 'Print help'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand help; and not __fish_seen_subcommand_from status explain findings open cluster completions man help" -f -a "status" -d 'Show every model and role in one line: state, counts, what it lacks, load'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand help; and not __fish_seen_subcommand_from status explain findings open cluster completions man help" -f -a "explain" -d 'Say what is wrong in one sentence, then prove it: findings, counts, and every replica'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand help; and not __fish_seen_subcommand_from status explain findings open cluster completions man help" -f -a "findings" -d 'List what is wrong or risky, worst first'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand help; and not __fish_seen_subcommand_from status explain findings open cluster completions man help" -f -a "open" -d 'Open the screen on a bundle'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand help; and not __fish_seen_subcommand_from status explain findings open cluster completions man help" -f -a "cluster" -d 'Serve a Kubernetes API of modeldeck\'s own on this machine, until Ctrl-C'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand help; and not __fish_seen_subcommand_from status explain findings open cluster completions man help" -f -a "completions" -d 'Print a completion script for a shell'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand help; and not __fish_seen_subcommand_from status explain findings open cluster completions man help" -f -a "man" -d 'Print the manual page, as roff'
complete -c modeldeck -n "__fish_modeldeck_using_subcommand help; and not __fish_seen_subcommand_from status explain findings open cluster completions man help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
