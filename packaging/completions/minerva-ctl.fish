# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_minerva_ctl_global_optspecs
    string join \n json socket= config= h/help V/version
end

function __fish_minerva_ctl_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_minerva_ctl_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_minerva_ctl_using_subcommand
    set -l cmd (__fish_minerva_ctl_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -s V -l version -d 'Print version'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "status" -d 'Show the daemon, its disks, and the latest findings'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "top" -d 'Watch tenants and disks live; d shows the disks of guests, q quits'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "explain" -d 'Explain a tenant\'s share of each disk'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "forecast" -d 'Show what a tenant is expected to do on each disk, and compare earlier forecasts with what it did'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "doctor" -d 'Check for each disk and mount whether weights take effect, and if not, why and what to do; works without the daemon'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "restore" -d 'Put every knob back as it was before Minerva; works without the daemon'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "record" -d 'Record the engine\'s input and output, to replay it later'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "replay" -d 'Replay a recording and compare every effect byte for byte; works without the daemon'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "config" -d 'Check or print the operator\'s file'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "reload" -d 'Make the daemon read the operator\'s file again'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "cache" -d 'Show and manage the pool of memory and fast disk that minerva-fs serves, and the files in it that are still to be moved'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "disk" -d 'Show and change the disks of guests that minerva-blk serves, while guests run'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "run" -d 'Start a command as a tenant of its own, or make requests for it'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "rm" -d 'Delete files, or with -r whole directories, without noticeably slowing others on the disk'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "jobs" -d 'Show batch jobs: which are running, their progress and remaining time, which goes first and why, and what earlier runs did'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "background" -d 'Register work that can wait, and show its progress and the plan for it'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "attach" -d 'Make a running process and its future children a tenant of their own'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "priority" -d 'Step back so that others are served first, which earns credits, or return to normal'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "credits" -d 'Show the credits of the caller\'s account and where they came from; as the operator, give or take credits'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "boost" -d 'Buy high priority with credits, starting now'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "when" -d 'Ask when an operation may begin, and wait until then'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "whoami" -d 'Show which tenant the server identifies the caller as, and what is in force for it'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "audit" -d 'Show tenants\' requests and the answers, and all credits earned and spent'
complete -c minerva-ctl -n "__fish_minerva_ctl_needs_command" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand status" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand status" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand status" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand status" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand top" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand top" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand top" -l once -d 'Print one slice, and the disks of guests, as text and exit'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand top" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand top" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand explain" -l at -d 'When: 2026-03-01T14:30:00Z, "2026-03-01 14:30", 14:30, "10 minutes ago" [default: now]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand explain" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand explain" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand explain" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand explain" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and not __fish_seen_subcommand_from evaluate help" -l horizon -d 'Show the next day or week of a disk or a group instead of the next seconds of a tenant' -r -f -a "day\t''
week\t''"
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and not __fish_seen_subcommand_from evaluate help" -l html -d 'Write a page to this file' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and not __fish_seen_subcommand_from evaluate help" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and not __fish_seen_subcommand_from evaluate help" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and not __fish_seen_subcommand_from evaluate help" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and not __fish_seen_subcommand_from evaluate help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and not __fish_seen_subcommand_from evaluate help" -a "evaluate" -d 'Backtest every model on a recording, or on your own CSV or Parquet file; works without the daemon'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and not __fish_seen_subcommand_from evaluate help" -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from evaluate" -l time -d 'The column with the time [default: one called time, timestamp or date, or the first with dates; without it each row is a step]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from evaluate" -l time-unit -d 'The unit of times that are numbers [default: by their size]' -r -f -a "s\t'Seconds'
ms\t'Milliseconds'
us\t'Microseconds'
ns\t'Nanoseconds'"
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from evaluate" -l column -d 'Only this column; can be given several times [default: every column of numbers]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from evaluate" -l by -d 'Rows with the same value in this column form a separate series' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from evaluate" -l step -d 'The length of a step [default: the median time from row to row, or 1s]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from evaluate" -l report -d 'Write a report with plots: forecasts, autocorrelations, decomposition' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from evaluate" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from evaluate" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from evaluate" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from evaluate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from help" -f -a "evaluate" -d 'Backtest every model on a recording, or on your own CSV or Parquet file; works without the daemon'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand forecast; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -l rounds -d 'Rounds of the comparison [default: 3; with --write as many as it takes that what is written is hardly chance]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -l device -d 'Only this disk, such as sda' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -l mount -d 'Only the disk that holds this path' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -l seconds -d 'How long the probe reads, or each part of the comparison in each round: at least 100ms [default: 4s; less in a comparison that would take longer than a minute]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -l probe -d 'Test it: two tenants read from the disk at 8:1 for some seconds. Nothing is written to the disk'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -l compare -d 'Compare elevators, weights and caps here: two heavy readers beside a light one under each. Nothing is written to the disk'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -l change-elevator -d 'Let the comparison try the other elevators as well, and BFQ with other settings, and then put all back, with its weights'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -l write -d 'Write the lines for what was best into a drop-in of the operator\'s file, disk-NAME.toml, unless somebody else wrote one'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand doctor" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand restore" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand restore" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand restore" -l if-daemon-gone -d 'Do nothing while a daemon runs; for the unit\'s ExecStopPost='
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand restore" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand restore" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand record" -l for -d 'How long [default: until interrupted]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand record" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand record" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand record" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand record" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand replay" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand replay" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand replay" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand replay" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and not __fish_seen_subcommand_from check default help" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and not __fish_seen_subcommand_from check default help" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and not __fish_seen_subcommand_from check default help" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and not __fish_seen_subcommand_from check default help" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and not __fish_seen_subcommand_from check default help" -f -a "check" -d 'Check a file; errors point at the line and column'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and not __fish_seen_subcommand_from check default help" -f -a "default" -d 'Print a file with every setting, its default and its meaning'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and not __fish_seen_subcommand_from check default help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and __fish_seen_subcommand_from check" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and __fish_seen_subcommand_from check" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and __fish_seen_subcommand_from check" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and __fish_seen_subcommand_from check" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and __fish_seen_subcommand_from default" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and __fish_seen_subcommand_from default" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and __fish_seen_subcommand_from default" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and __fish_seen_subcommand_from default" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "check" -d 'Check a file; errors point at the line and column'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "default" -d 'Print a file with every setting, its default and its meaning'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand config; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand reload" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand reload" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand reload" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand reload" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -l server -d 'The service\'s socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -f -a "put" -d 'Write a file by way of the pool: it is at its place at once, as a link, and is moved there when the disk there is quiet'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -f -a "deferred" -d 'Show the files that wait for migration, and why'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -f -a "flush" -d 'Move files now, slowly where others use the disk, and wait until they are at their place'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -f -a "status" -d 'Show who uses how much of which pool, and what waits'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -f -a "top" -d 'The same, live, with the files that wait; Ctrl-C ends it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -f -a "explain" -d 'Say where a file lies, why, and what happens next'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -f -a "run" -d 'Run a command whose files below a directory go to the pool, and to their place when it has ended'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -f -a "units" -d 'Print, or write, the drop-ins by which systemd services write to the pool, as `units` in fs.toml says'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -f -a "attach-line" -d 'Print how a virtual machine gets its trees: the unit on the host, QEMU\'s arguments, libvirt\'s XML and the guest\'s line of fstab'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -f -a "drop" -d 'Remove a deferred file to which no link leads any more'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and not __fish_seen_subcommand_from put deferred flush status top explain run units attach-line drop help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from put" -l from -d 'What to write [default: standard input]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from put" -l pool -d 'In which pool: stable or temporary; what is in temporary is lost by a restart of the machine' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from put" -l tenant -d 'As which tenant, for root and for users who are several' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from put" -l server -d 'The service\'s socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from put" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from put" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from put" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from put" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from deferred" -l server -d 'The service\'s socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from deferred" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from deferred" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from deferred" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from deferred" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from flush" -l server -d 'The service\'s socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from flush" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from flush" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from flush" -l no-wait -d 'Do not wait'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from flush" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from flush" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from status" -l server -d 'The service\'s socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from status" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from status" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from status" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from status" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from top" -l server -d 'The service\'s socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from top" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from top" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from top" -l once -d 'Print it once and end'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from top" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from top" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from explain" -l server -d 'The service\'s socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from explain" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from explain" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from explain" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from explain" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from run" -l pool -d 'In which pool: stable or temporary; what is in temporary is lost by a restart of the machine' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from run" -l tenant -d 'As which tenant, for root and for users who are several' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from run" -l server -d 'The service\'s socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from run" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from run" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from run" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from units" -l file -d 'The cache\'s file' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from units" -l systemd -d 'Where the drop-ins are' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from units" -l server -d 'The service\'s socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from units" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from units" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from units" -l write -d 'Write them, and let systemd read them'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from units" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from units" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from attach-line" -l file -d 'The cache\'s file' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from attach-line" -l server -d 'The service\'s socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from attach-line" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from attach-line" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from attach-line" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from attach-line" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from drop" -l server -d 'The service\'s socket [default: MINERVA_CACHE_SOCKET, else /run/minerva-fs/control.sock]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from drop" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from drop" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from drop" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from drop" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "put" -d 'Write a file by way of the pool: it is at its place at once, as a link, and is moved there when the disk there is quiet'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "deferred" -d 'Show the files that wait for migration, and why'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "flush" -d 'Move files now, slowly where others use the disk, and wait until they are at their place'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "status" -d 'Show who uses how much of which pool, and what waits'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "top" -d 'The same, live, with the files that wait; Ctrl-C ends it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "explain" -d 'Say where a file lies, why, and what happens next'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "run" -d 'Run a command whose files below a directory go to the pool, and to their place when it has ended'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "units" -d 'Print, or write, the drop-ins by which systemd services write to the pool, as `units` in fs.toml says'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "attach-line" -d 'Print how a virtual machine gets its trees: the unit on the host, QEMU\'s arguments, libvirt\'s XML and the guest\'s line of fstab'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "drop" -d 'Remove a deferred file to which no link leads any more'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand cache; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -l server -d 'Which server: the name of its socket below servers/ in the daemon\'s runtime directory' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -f -a "list" -d 'Show every disk: what it is promised, who uses it, and what it was asked for'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -f -a "top" -d 'Watch every disk and every priority on it: rates, queue, times, who has the host\'s disk, and whether contracts are kept; q quits'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -f -a "add" -d 'Serve another disk of a guest, while others run'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -f -a "set" -d 'Promise a disk something else, while its guest runs: it holds from the next request on'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -f -a "remove" -d 'Serve a disk no more; refused while a guest uses it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -f -a "resize" -d 'Make a disk longer, and tell its guest, which sees the new length at once'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -f -a "attach-line" -d 'Print QEMU\'s arguments and libvirt\'s XML for a disk'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and not __fish_seen_subcommand_from list top add set remove resize attach-line help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from list" -l server -d 'Which server: the name of its socket below servers/ in the daemon\'s runtime directory' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from list" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from list" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from list" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from top" -l server -d 'Which server: the name of its socket below servers/ in the daemon\'s runtime directory' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from top" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from top" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from top" -l once -d 'Print one page and end'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from top" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from top" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l image -d 'A raw image or a block device' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l disk-socket -d 'Where QEMU connects [default: NAME.sock in /run/minerva-blk]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l queues -d 'Rings that the guest may have' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l weight -d 'Its part beside others, where the scheduler shares by weight; 100 is neutral' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l rate -d 'Its contract: so many bytes a second' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l burst -d 'Its contract: and so many at once' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l delay -d 'Its contract: each within this time' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l limit -d 'Never more bytes a second than this' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l tag-default -d 'The priority of requests to which the guest\'s application gave none' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l tag-max -d 'The greatest priority that an application of the guest can give a request' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l access -d 'What its contract is judged for' -r -f -a "sequential\t'In rows'
random\t'Here and there'"
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l request -d 'What its contract is judged for: requests of this length' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l server -d 'Which server: the name of its socket below servers/ in the daemon\'s runtime directory' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l read-only -d 'Nothing is written, and several may read it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l no-direct -d 'Through the host\'s page cache'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l force -d 'Take its contract also where the disk cannot keep all contracts on it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l runtime -d 'Only until the server ends; nothing is written beside its file'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l weight -d 'Its part beside others, where the scheduler shares by weight; 100 is neutral' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l rate -d 'Its contract: so many bytes a second' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l burst -d 'Its contract: and so many at once' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l delay -d 'Its contract: each within this time' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l limit -d 'Never more bytes a second than this' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l tag-default -d 'The priority of requests to which the guest\'s application gave none' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l tag-max -d 'The greatest priority that an application of the guest can give a request' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l access -d 'What its contract is judged for' -r -f -a "sequential\t'In rows'
random\t'Here and there'"
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l request -d 'What its contract is judged for: requests of this length' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l server -d 'Which server: the name of its socket below servers/ in the daemon\'s runtime directory' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l force -d 'Take its contract also where the disk cannot keep all contracts on it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l no-contract -d 'No contract any more'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l no-limit -d 'No limit any more'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l runtime -d 'Only until the server ends'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from set" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from remove" -l server -d 'Which server: the name of its socket below servers/ in the daemon\'s runtime directory' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from remove" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from remove" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from remove" -l force -d 'Also under a guest, for which the disk stops answering'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from remove" -l runtime -d 'Only until the server ends'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from remove" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from resize" -l server -d 'Which server: the name of its socket below servers/ in the daemon\'s runtime directory' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from resize" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from resize" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from resize" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from resize" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from attach-line" -l server -d 'Which server: the name of its socket below servers/ in the daemon\'s runtime directory' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from attach-line" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from attach-line" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from attach-line" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from attach-line" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "list" -d 'Show every disk: what it is promised, who uses it, and what it was asked for'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "top" -d 'Watch every disk and every priority on it: rates, queue, times, who has the host\'s disk, and whether contracts are kept; q quits'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "add" -d 'Serve another disk of a guest, while others run'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "set" -d 'Promise a disk something else, while its guest runs: it holds from the next request on'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "remove" -d 'Serve a disk no more; refused while a guest uses it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "resize" -d 'Make a disk longer, and tell its guest, which sees the new length at once'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "attach-line" -d 'Print QEMU\'s arguments and libvirt\'s XML for a disk'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand disk; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l name -d 'The tenant\'s name [default: the command\'s name and process id]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l weight -d 'The factor on its share, in percent; 200 is twice a neutral tenant\'s' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l priority -d 'The level while it runs: low, lowest or idle' -r -f -a "normal\t''
low\t''
lowest\t''
idle\t''"
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l job -d 'Run it as a batch job with this name: the shortest job on a disk goes first, and runs with the same name are assumed to be alike' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l bytes -d 'How much the job will read and write in total [default: as much as earlier runs with its name]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l when -d 'How much it will transfer; it starts when the disk has room for it' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l deadline -d 'When it should be finished, from now' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l begin-by -d 'When it must have started, from now' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l access -d 'What it mostly does: sequential-read, sequential-write, random-read or random-write [default: sequential-read]' -r -f -a "sequential-read\t''
sequential-write\t''
random-read\t''
random-write\t''"
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l device -d 'On which disk, as MAJ:MIN of the host [default: the disk that holds --path, or if there is none, the one that the tenant uses most]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l path -d 'What it will read or write, or something beside it; this shows on which disk [default: the working directory]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l tag -d 'In a guest whose disk minerva-blk serves: the priority of its requests, 1 to 254, higher is more urgent; no server is needed' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l stream -d 'The number of this application in the guest, 1 to 31 [default: derived from its process and tag]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand rm" -l pace -d 'The percentage of time in which it works, without the daemon\'s plan [default without a daemon: 20]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand rm" -l sla -d 'By the daemon\'s plan it is done within this time, whatever others do' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand rm" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand rm" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand rm" -s r -l recursive -d 'Delete directories too'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand rm" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand rm" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and not __fish_seen_subcommand_from profile help" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and not __fish_seen_subcommand_from profile help" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and not __fish_seen_subcommand_from profile help" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and not __fish_seen_subcommand_from profile help" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and not __fish_seen_subcommand_from profile help" -f -a "profile" -d 'Show the last runs of a job: phases and their bandwidths, how disk use correlates with processor and memory use, and whether the disk limits the job'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and not __fish_seen_subcommand_from profile help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and __fish_seen_subcommand_from profile" -l html -d 'Also write a page to this file' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and __fish_seen_subcommand_from profile" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and __fish_seen_subcommand_from profile" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and __fish_seen_subcommand_from profile" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and __fish_seen_subcommand_from profile" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and __fish_seen_subcommand_from help" -f -a "profile" -d 'Show the last runs of a job: phases and their bandwidths, how disk use correlates with processor and memory use, and whether the disk limits the job'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand jobs; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -f -a "add" -d 'Register work: it runs while nobody else uses the disk, and is done by its deadline'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -f -a "list" -d 'Show all background work: how far it is, by when it is due, and when it may run'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -f -a "plan" -d 'Show the plan: what is expected of each disk, when work runs and is done, the space that it ties, and what would not hold'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -f -a "explain" -d 'Say of one all that is known: what it costs, when it may run and why, and when it will be done'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -f -a "pause" -d 'Let it rest until it is resumed'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -f -a "resume" -d 'Let it go on; begins anew what failed'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -f -a "calibrate" -d 'Measure what a disk serves to others: lets its background work rest for a while, and shows before and after'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -f -a "remove" -d 'End it and forget it; what it did stays done'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and not __fish_seen_subcommand_from add list plan explain pause resume calibrate remove help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from add" -l name -d 'What it is called' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from add" -l kind -d 'delete, command, btrfs-scrub, btrfs-balance, btrfs-defragment, btrfs-snapshot-delete, md-check, md-resync or fstrim [default: command]' -r -f -a "delete\t''
command\t''
btrfs-scrub\t''
btrfs-balance\t''
btrfs-defragment\t''
btrfs-snapshot-delete\t''
md-check\t''
md-resync\t''
fstrim\t''"
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from add" -l path -d 'Where' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from add" -l sla -d 'It is to be done within this time, such as 7d [default: 30 days]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from add" -l priority -d 'The greater goes first on its disk, unless a deadline is near' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from add" -l used-percent-max -d 'Of btrfs-balance: leave chunks alone that are used more than this [default: 50]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from add" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from add" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from add" -l never-stop -d 'Others may wait for what the command holds: slow it by weight and a cap while they use the disk, and never stop it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from add" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from add" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from list" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from list" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from list" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from plan" -l span -d 'How far to look: hour, day, week or month' -r -f -a "hour\t''
day\t''
week\t''
month\t''"
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from plan" -l html -d 'Write it with plots as a page to this file' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from plan" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from plan" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from plan" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from plan" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from explain" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from explain" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from explain" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from explain" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from pause" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from pause" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from pause" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from pause" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from resume" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from resume" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from resume" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from resume" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from calibrate" -l duration -d 'For how long its work rests' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from calibrate" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from calibrate" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from calibrate" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from calibrate" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from remove" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from remove" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from remove" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from remove" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from help" -f -a "add" -d 'Register work: it runs while nobody else uses the disk, and is done by its deadline'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from help" -f -a "list" -d 'Show all background work: how far it is, by when it is due, and when it may run'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from help" -f -a "plan" -d 'Show the plan: what is expected of each disk, when work runs and is done, the space that it ties, and what would not hold'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from help" -f -a "explain" -d 'Say of one all that is known: what it costs, when it may run and why, and when it will be done'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from help" -f -a "pause" -d 'Let it rest until it is resumed'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from help" -f -a "resume" -d 'Let it go on; begins anew what failed'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from help" -f -a "calibrate" -d 'Measure what a disk serves to others: lets its background work rest for a while, and shows before and after'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from help" -f -a "remove" -d 'End it and forget it; what it did stays done'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand background; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand attach" -l name -d 'The tenant\'s name [default: pid-PID]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand attach" -l weight -d 'The factor on its share, in percent' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand attach" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand attach" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand attach" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand attach" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand priority" -l for -d 'For how long [default: until another level is set]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand priority" -l until-pid -d 'Until this process, which must be one of the tenant\'s, ends' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand priority" -l schedule -d 'Step back at these times, such as "22:00-06:00 idle" or "mon-fri 08:00-18:00 low"; can be given several times' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand priority" -l time-zone -d 'The time zone of the schedule, such as Europe/Berlin [default: this machine\'s]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand priority" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand priority" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand priority" -l no-schedule -d 'Delete the schedule'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand priority" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand priority" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and not __fish_seen_subcommand_from give take help" -l entries -d 'How many of the last entries to show' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and not __fish_seen_subcommand_from give take help" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and not __fish_seen_subcommand_from give take help" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and not __fish_seen_subcommand_from give take help" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and not __fish_seen_subcommand_from give take help" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and not __fish_seen_subcommand_from give take help" -f -a "give" -d 'Give an account credits, as the operator'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and not __fish_seen_subcommand_from give take help" -f -a "take" -d 'Take credits from an account, as the operator: no more than it holds'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and not __fish_seen_subcommand_from give take help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from give" -l reason -d 'Why, for the audit' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from give" -l key -d 'Do it only once for this key, however often the command is repeated [default: a new key]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from give" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from give" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from give" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from give" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from take" -l reason -d 'Why, for the audit' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from take" -l key -d 'Do it only once for this key, however often the command is repeated [default: a new key]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from take" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from take" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from take" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from take" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from help" -f -a "give" -d 'Give an account credits, as the operator'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from help" -f -a "take" -d 'Take credits from an account, as the operator: no more than it holds'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand credits; and __fish_seen_subcommand_from help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand boost" -l device -d 'On this disk only, as MAJ:MIN of the host; the price is the same' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand boost" -l key -d 'Buy it only once for this key, however often the command is repeated [default: a new key]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand boost" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand boost" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand boost" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand boost" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -l bytes -d 'How much it will transfer: 500M (powers of 1000), 500MiB (of 1024), or bytes' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -l deadline -d 'When it should be finished, from now' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -l begin-by -d 'When it must have started, from now' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -l access -d 'What it mostly does: sequential-read, sequential-write, random-read or random-write [default: sequential-read]' -r -f -a "sequential-read\t''
sequential-write\t''
random-read\t''
random-write\t''"
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -l device -d 'On which disk, as MAJ:MIN of the host [default: the disk that holds --path, or if there is none, the one that the tenant uses most]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -l path -d 'What it will read or write, or something beside it; this shows on which disk [default: the working directory]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -l pool -d 'Of an operation that writes: it may be told to write to this pool of the cache, temporary or stable' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -l no-wait -d 'Only print the answer; the operation is cancelled unless the answer gives a time'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand when" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand whoami" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand whoami" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand whoami" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand whoami" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand audit" -l since -d 'Since when: 2026-03-01T14:30:00Z, 14:30, "10 minutes ago" [default: everything that is kept]' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand audit" -l entries -d 'Show at most this many, the newest' -r
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand audit" -l socket -d 'The daemon\'s socket [default: from the operator\'s file]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand audit" -l config -d 'The operator\'s file, which says where the daemon keeps its files [default: /etc/minerva/minerva.toml, if it exists]' -r -F
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand audit" -l json -d 'Print JSON, one object per line'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand audit" -s h -l help -d 'Print help'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "status" -d 'Show the daemon, its disks, and the latest findings'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "top" -d 'Watch tenants and disks live; d shows the disks of guests, q quits'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "explain" -d 'Explain a tenant\'s share of each disk'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "forecast" -d 'Show what a tenant is expected to do on each disk, and compare earlier forecasts with what it did'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "doctor" -d 'Check for each disk and mount whether weights take effect, and if not, why and what to do; works without the daemon'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "restore" -d 'Put every knob back as it was before Minerva; works without the daemon'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "record" -d 'Record the engine\'s input and output, to replay it later'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "replay" -d 'Replay a recording and compare every effect byte for byte; works without the daemon'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "config" -d 'Check or print the operator\'s file'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "reload" -d 'Make the daemon read the operator\'s file again'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "cache" -d 'Show and manage the pool of memory and fast disk that minerva-fs serves, and the files in it that are still to be moved'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "disk" -d 'Show and change the disks of guests that minerva-blk serves, while guests run'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "run" -d 'Start a command as a tenant of its own, or make requests for it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "rm" -d 'Delete files, or with -r whole directories, without noticeably slowing others on the disk'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "jobs" -d 'Show batch jobs: which are running, their progress and remaining time, which goes first and why, and what earlier runs did'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "background" -d 'Register work that can wait, and show its progress and the plan for it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "attach" -d 'Make a running process and its future children a tenant of their own'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "priority" -d 'Step back so that others are served first, which earns credits, or return to normal'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "credits" -d 'Show the credits of the caller\'s account and where they came from; as the operator, give or take credits'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "boost" -d 'Buy high priority with credits, starting now'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "when" -d 'Ask when an operation may begin, and wait until then'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "whoami" -d 'Show which tenant the server identifies the caller as, and what is in force for it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "audit" -d 'Show tenants\' requests and the answers, and all credits earned and spent'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and not __fish_seen_subcommand_from status top explain forecast doctor restore record replay config reload cache disk run rm jobs background attach priority credits boost when whoami audit help" -f -a "help" -d 'Print this message or the help of the given subcommand(s)'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from forecast" -f -a "evaluate" -d 'Backtest every model on a recording, or on your own CSV or Parquet file; works without the daemon'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "check" -d 'Check a file; errors point at the line and column'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from config" -f -a "default" -d 'Print a file with every setting, its default and its meaning'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "put" -d 'Write a file by way of the pool: it is at its place at once, as a link, and is moved there when the disk there is quiet'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "deferred" -d 'Show the files that wait for migration, and why'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "flush" -d 'Move files now, slowly where others use the disk, and wait until they are at their place'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "status" -d 'Show who uses how much of which pool, and what waits'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "top" -d 'The same, live, with the files that wait; Ctrl-C ends it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "explain" -d 'Say where a file lies, why, and what happens next'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "run" -d 'Run a command whose files below a directory go to the pool, and to their place when it has ended'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "units" -d 'Print, or write, the drop-ins by which systemd services write to the pool, as `units` in fs.toml says'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "attach-line" -d 'Print how a virtual machine gets its trees: the unit on the host, QEMU\'s arguments, libvirt\'s XML and the guest\'s line of fstab'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from cache" -f -a "drop" -d 'Remove a deferred file to which no link leads any more'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from disk" -f -a "list" -d 'Show every disk: what it is promised, who uses it, and what it was asked for'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from disk" -f -a "top" -d 'Watch every disk and every priority on it: rates, queue, times, who has the host\'s disk, and whether contracts are kept; q quits'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from disk" -f -a "add" -d 'Serve another disk of a guest, while others run'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from disk" -f -a "set" -d 'Promise a disk something else, while its guest runs: it holds from the next request on'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from disk" -f -a "remove" -d 'Serve a disk no more; refused while a guest uses it'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from disk" -f -a "resize" -d 'Make a disk longer, and tell its guest, which sees the new length at once'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from disk" -f -a "attach-line" -d 'Print QEMU\'s arguments and libvirt\'s XML for a disk'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from jobs" -f -a "profile" -d 'Show the last runs of a job: phases and their bandwidths, how disk use correlates with processor and memory use, and whether the disk limits the job'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from background" -f -a "add" -d 'Register work: it runs while nobody else uses the disk, and is done by its deadline'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from background" -f -a "list" -d 'Show all background work: how far it is, by when it is due, and when it may run'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from background" -f -a "plan" -d 'Show the plan: what is expected of each disk, when work runs and is done, the space that it ties, and what would not hold'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from background" -f -a "explain" -d 'Say of one all that is known: what it costs, when it may run and why, and when it will be done'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from background" -f -a "pause" -d 'Let it rest until it is resumed'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from background" -f -a "resume" -d 'Let it go on; begins anew what failed'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from background" -f -a "calibrate" -d 'Measure what a disk serves to others: lets its background work rest for a while, and shows before and after'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from background" -f -a "remove" -d 'End it and forget it; what it did stays done'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from credits" -f -a "give" -d 'Give an account credits, as the operator'
complete -c minerva-ctl -n "__fish_minerva_ctl_using_subcommand help; and __fish_seen_subcommand_from credits" -f -a "take" -d 'Take credits from an account, as the operator: no more than it holds'
