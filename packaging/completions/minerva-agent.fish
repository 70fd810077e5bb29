# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_minerva_agent_global_optspecs
    string join \n upstream= socket= shared report-period= idle-exit= print-report json h/help V/version
end

function __fish_minerva_agent_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_minerva_agent_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_minerva_agent_using_subcommand
    set -l cmd (__fish_minerva_agent_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c minerva-agent -n "__fish_minerva_agent_needs_command" -l upstream -d 'The server: unix:/PATH, vsock:CID:PORT or https://HOST:PORT [default: $MINERVA_UPSTREAM, else the host\'s socket if it is mounted here, else the host by vsock]' -r
complete -c minerva-agent -n "__fish_minerva_agent_needs_command" -l socket -d 'Where to listen [default: /run/minerva/agent.sock for root, else minerva/agent.sock in $XDG_RUNTIME_DIR, else in /tmp/minerva-UID]' -r -F
complete -c minerva-agent -n "__fish_minerva_agent_needs_command" -l report-period -d 'How often to report; 0 for never' -r
complete -c minerva-agent -n "__fish_minerva_agent_needs_command" -l idle-exit -d 'Exit when nobody has been connected for this long' -r
complete -c minerva-agent -n "__fish_minerva_agent_needs_command" -l shared -d 'Let every user of this machine connect; always the case below /run/minerva'
complete -c minerva-agent -n "__fish_minerva_agent_needs_command" -l print-report -d 'Watch for a second, print the report, and exit'
complete -c minerva-agent -n "__fish_minerva_agent_needs_command" -l json -d 'Print that report as JSON'
complete -c minerva-agent -n "__fish_minerva_agent_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-agent -n "__fish_minerva_agent_needs_command" -s V -l version -d 'Print version'
complete -c minerva-agent -n "__fish_minerva_agent_needs_command" -f -a "generate" -d 'Writes the manual page and the completions'
complete -c minerva-agent -n "__fish_minerva_agent_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-agent -n "__fish_minerva_agent_using_subcommand generate" -s h -l help -d 'Print help'
complete -c minerva-agent -n "__fish_minerva_agent_using_subcommand help; and not __fish_seen_subcommand_from generate help" -f -a "generate" -d 'Writes the manual page and the completions'
complete -c minerva-agent -n "__fish_minerva_agent_using_subcommand help; and not __fish_seen_subcommand_from generate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
