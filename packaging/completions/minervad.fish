# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_minervad_global_optspecs
    string join \n config= mode= check slices= h/help V/version
end

function __fish_minervad_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_minervad_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_minervad_using_subcommand
    set -l cmd (__fish_minervad_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c minervad -n "__fish_minervad_needs_command" -l config -d 'The operator\'s file [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minervad -n "__fish_minervad_needs_command" -l mode -d 'What to do, whatever the file says' -r -f -a "observe\t'Watch only'
shadow\t'Decide and explain, write nothing'
enforce\t'Decide and write'"
complete -c minervad -n "__fish_minervad_needs_command" -l slices -d 'Put everything back and exit after this many slices' -r
complete -c minervad -n "__fish_minervad_needs_command" -l check -d 'Check the file, list what is missing on this host, and exit'
complete -c minervad -n "__fish_minervad_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minervad -n "__fish_minervad_needs_command" -s V -l version -d 'Print version'
complete -c minervad -n "__fish_minervad_needs_command" -f -a "guard" -d 'Waits for the daemon to die and then puts everything back'
complete -c minervad -n "__fish_minervad_needs_command" -f -a "background" -d 'Does the background work that a directory holds, in a process of its own'
complete -c minervad -n "__fish_minervad_needs_command" -f -a "end-background" -d 'Ends all background work, for a package that is removed'
complete -c minervad -n "__fish_minervad_needs_command" -f -a "generate" -d 'Writes the manual page and the completions'
complete -c minervad -n "__fish_minervad_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minervad -n "__fish_minervad_using_subcommand guard" -s h -l help -d 'Print help'
complete -c minervad -n "__fish_minervad_using_subcommand background" -s h -l help -d 'Print help'
complete -c minervad -n "__fish_minervad_using_subcommand end-background" -s h -l help -d 'Print help'
complete -c minervad -n "__fish_minervad_using_subcommand generate" -s h -l help -d 'Print help'
complete -c minervad -n "__fish_minervad_using_subcommand help; and not __fish_seen_subcommand_from guard background end-background generate help" -f -a "guard" -d 'Waits for the daemon to die and then puts everything back'
complete -c minervad -n "__fish_minervad_using_subcommand help; and not __fish_seen_subcommand_from guard background end-background generate help" -f -a "background" -d 'Does the background work that a directory holds, in a process of its own'
complete -c minervad -n "__fish_minervad_using_subcommand help; and not __fish_seen_subcommand_from guard background end-background generate help" -f -a "end-background" -d 'Ends all background work, for a package that is removed'
complete -c minervad -n "__fish_minervad_using_subcommand help; and not __fish_seen_subcommand_from guard background end-background generate help" -f -a "generate" -d 'Writes the manual page and the completions'
complete -c minervad -n "__fish_minervad_using_subcommand help; and not __fish_seen_subcommand_from guard background end-background generate help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
