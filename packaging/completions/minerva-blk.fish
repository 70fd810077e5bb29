# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_minerva_blk_global_optspecs
    string join \n config= check log-requests= take-over detach h/help V/version
end

function __fish_minerva_blk_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_minerva_blk_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_minerva_blk_using_subcommand
    set -l cmd (__fish_minerva_blk_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c minerva-blk -n "__fish_minerva_blk_needs_command" -l config -d 'File with the disks and their contracts' -r -F
complete -c minerva-blk -n "__fish_minerva_blk_needs_command" -l log-requests -d 'Log each finished request to DIRECTORY/DEVICE.csv: what was requested, and when' -r -F
complete -c minerva-blk -n "__fish_minerva_blk_needs_command" -l check -d 'Check the file and everything that it names, and exit'
complete -c minerva-blk -n "__fish_minerva_blk_needs_command" -l take-over -d 'Take over all disks from a running server with the same file, which then exits; guests wait some milliseconds and see no error'
complete -c minerva-blk -n "__fish_minerva_blk_needs_command" -l detach -d 'With `--take-over`: run in the background; the command returns once the disks are served'
complete -c minerva-blk -n "__fish_minerva_blk_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-blk -n "__fish_minerva_blk_needs_command" -s V -l version -d 'Print version'
complete -c minerva-blk -n "__fish_minerva_blk_needs_command" -f -a "attach-line" -d 'Print QEMU\'s arguments and libvirt\'s XML for a disk'
complete -c minerva-blk -n "__fish_minerva_blk_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-blk -n "__fish_minerva_blk_using_subcommand attach-line" -l config -d 'File with the disks and their contracts' -r -F
complete -c minerva-blk -n "__fish_minerva_blk_using_subcommand attach-line" -s h -l help -d 'Print help'
complete -c minerva-blk -n "__fish_minerva_blk_using_subcommand help; and not __fish_seen_subcommand_from attach-line help" -f -a "attach-line" -d 'Print QEMU\'s arguments and libvirt\'s XML for a disk'
complete -c minerva-blk -n "__fish_minerva_blk_using_subcommand help; and not __fish_seen_subcommand_from attach-line help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
