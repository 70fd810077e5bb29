# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_minerva_fs_global_optspecs
    string join \n config= check h/help V/version
end

function __fish_minerva_fs_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_minerva_fs_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_minerva_fs_using_subcommand
    set -l cmd (__fish_minerva_fs_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c minerva-fs -n "__fish_minerva_fs_needs_command" -l config -d 'File with the pools and tenants' -r -F
complete -c minerva-fs -n "__fish_minerva_fs_needs_command" -l check -d 'Check the file and everything that it names, and exit'
complete -c minerva-fs -n "__fish_minerva_fs_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-fs -n "__fish_minerva_fs_needs_command" -s V -l version -d 'Print version'
complete -c minerva-fs -n "__fish_minerva_fs_needs_command" -f -a "doctor" -d 'Check whether and how well it can serve here: passthrough, pools, mounts, and files left by an earlier run'
complete -c minerva-fs -n "__fish_minerva_fs_needs_command" -f -a "reload" -d 'Make the running service read the file again, as SIGHUP does: tenants, quotas, watermarks. A file with a mistake changes nothing'
complete -c minerva-fs -n "__fish_minerva_fs_needs_command" -f -a "status" -d 'Show how much of each pool every tenant uses'
complete -c minerva-fs -n "__fish_minerva_fs_needs_command" -f -a "virtiofs" -d 'Serve the trees of a virtual machine to it, in place of the program that this becomes: virtiofsd, in a user namespace in which root is the machine\'s own'
complete -c minerva-fs -n "__fish_minerva_fs_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand doctor" -l config -d 'File with the pools and tenants' -r -F
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand doctor" -l json -d 'Print JSON'
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand reload" -l config -d 'File with the pools and tenants' -r -F
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand reload" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand status" -l config -d 'File with the pools and tenants' -r -F
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand status" -l json -d 'Print JSON'
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand status" -s h -l help -d 'Print help'
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand virtiofs" -l program -d 'Another virtiofsd than the one that is installed' -r -F
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand virtiofs" -l config -d 'File with the pools and tenants' -r -F
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand virtiofs" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand help; and not __fish_seen_subcommand_from doctor reload status virtiofs help" -f -a "doctor" -d 'Check whether and how well it can serve here: passthrough, pools, mounts, and files left by an earlier run'
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand help; and not __fish_seen_subcommand_from doctor reload status virtiofs help" -f -a "reload" -d 'Make the running service read the file again, as SIGHUP does: tenants, quotas, watermarks. A file with a mistake changes nothing'
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand help; and not __fish_seen_subcommand_from doctor reload status virtiofs help" -f -a "status" -d 'Show how much of each pool every tenant uses'
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand help; and not __fish_seen_subcommand_from doctor reload status virtiofs help" -f -a "virtiofs" -d 'Serve the trees of a virtual machine to it, in place of the program that this becomes: virtiofsd, in a user namespace in which root is the machine\'s own'
complete -c minerva-fs -n "__fish_minerva_fs_using_subcommand help; and not __fish_seen_subcommand_from doctor reload status virtiofs help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
