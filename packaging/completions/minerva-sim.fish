# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_minerva_sim_global_optspecs
    string join \n h/help V/version
end

function __fish_minerva_sim_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_minerva_sim_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_minerva_sim_using_subcommand
    set -l cmd (__fish_minerva_sim_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -s h -l help -d 'Print help'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -s V -l version -d 'Print version'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "run" -d 'Simulate a job file or a block trace under one scheduler'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "compare" -d 'Simulate the same jobs under several schedulers, side by side'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "admit" -d 'Say whether a disk can keep the contracts of a job file, and by how much not'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "reproduce" -d 'Rerun the experiments of a paper and print its figures beside ours'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "figure" -d 'Measure one of the figures in docs/figures.md'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "trace" -d 'Read and convert block traces'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "fit" -d 'Fit an SSD\'s parameters to a fio run'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "generate" -d 'Write man pages and shell completions'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l profile -d 'The disk: a built-in profile or a file that ends in `.toml`' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l seed -d 'Equal seeds give equal reports, byte for byte' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l until -d 'Virtual seconds after which the run ends. Without it a trace is replayed to its end, and jobs that do not end by themselves are stopped after 3600' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l depth -d 'Requests at the disk at once, at most as many as it takes. Without it as many as it takes, or fewer where the scheduler keeps the order to itself; 0 for as many as it takes under any scheduler' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l htbs-turn -d 'HTBS: serve one flow at most this many cost units in a row, B_max of the paper. A unit is 4 KiB, under htbs-original a request. Without it 512, and 20 under htbs-original' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l htbs-wait -d 'HTBS: keep the disk idle this long for the flow in service, T_wait of the paper, such as 10ms. Without it 10ms; 0 for never' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l fault -d 'The disk is slow or stands still for a while: FROM-UNTIL in seconds, then `x` and how many times slower, or `x0` for standing still, such as `10-20x4`. May be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l format -d 'The trace\'s format instead of the one that is found by its content: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general or native' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l malformed-max -d 'Stop when more than this part of the entries is malformed, in percent' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l sort-window -d 'Put requests that stand behind later ones back where they belong, up to this much earlier; rows by completion are some milliseconds out of order. What is earlier still is moved to the time of the latest before it, and stops the run when it is more than --malformed-max of all. 0 sorts nothing' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l object-bytes -d 'Bytes from one object number to the next (oracle-general)' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l speed -d 'Replay so many times as fast as the trace was taken' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l trace-tenants -d 'Who the tenants of a trace are. Without it each volume, or `one` where the trace comes through a pipe or has more than 64 volumes' -r -f -a "volume\t'Each volume is a tenant with a part of the disk of its own'
one\t'All of it is one process; volumes lie upon each other'"
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l trace-weight -d 'Weight of a volume\'s tenant, by the volume\'s name or number, 1 to 10000; may be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l trace-tag -d 'Priority of a volume\'s requests under tag, 1 to 254; may be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l trace-depth -d 'Replay as fast as the disk allows, with so many requests of each tenant under way, instead of at the trace\'s instants' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l report -d 'Write a report with plots' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l scheduler -d 'The host\'s scheduler' -r -f -a "noop\t'First come, first served'
mq-deadline\t'The kernel\'s mq-deadline: expiry times and sorted batches'
anticipatory\t'The anticipatory scheduler that left the kernel with 2.6.33'
cfq\t'Completely fair queueing, by time; left the kernel with 5.0'
bfq\t'Budget fair queueing'
sfq\t'Start-time fair queueing with a bounded depth'
pclock\t'pClock: burst, rate and delay, work-conserving'
htbs\t'HTBS as Minerva mended it'
htbs-original\t'HTBS as it was published; its contracts count requests'
mclock\t'mClock: reservation, limit and weight'
mclock-allow\t'mClock whose limits may be passed while the disk would idle'
tag\t'The Tag Scheduler with plug and bounded depth'
tag-original\t'The Tag Scheduler as in Bai and Huang: neither plug nor bounded depth'"
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l engine -d 'Minerva\'s engine steers the tenants\' weights, as minervad does'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l in-order -d 'Stop when a request is earlier than the one before, instead of sorting'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l fold -d 'Fold a trace\'s addresses past the disk\'s end onto it, instead of stopping at the first'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l json -d 'Print JSON'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l profile -d 'The disk: a built-in profile or a file that ends in `.toml`' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l seed -d 'Equal seeds give equal reports, byte for byte' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l until -d 'Virtual seconds after which the run ends. Without it a trace is replayed to its end, and jobs that do not end by themselves are stopped after 3600' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l depth -d 'Requests at the disk at once, at most as many as it takes. Without it as many as it takes, or fewer where the scheduler keeps the order to itself; 0 for as many as it takes under any scheduler' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l htbs-turn -d 'HTBS: serve one flow at most this many cost units in a row, B_max of the paper. A unit is 4 KiB, under htbs-original a request. Without it 512, and 20 under htbs-original' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l htbs-wait -d 'HTBS: keep the disk idle this long for the flow in service, T_wait of the paper, such as 10ms. Without it 10ms; 0 for never' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l fault -d 'The disk is slow or stands still for a while: FROM-UNTIL in seconds, then `x` and how many times slower, or `x0` for standing still, such as `10-20x4`. May be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l format -d 'The trace\'s format instead of the one that is found by its content: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general or native' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l malformed-max -d 'Stop when more than this part of the entries is malformed, in percent' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l sort-window -d 'Put requests that stand behind later ones back where they belong, up to this much earlier; rows by completion are some milliseconds out of order. What is earlier still is moved to the time of the latest before it, and stops the run when it is more than --malformed-max of all. 0 sorts nothing' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l object-bytes -d 'Bytes from one object number to the next (oracle-general)' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l speed -d 'Replay so many times as fast as the trace was taken' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l trace-tenants -d 'Who the tenants of a trace are. Without it each volume, or `one` where the trace comes through a pipe or has more than 64 volumes' -r -f -a "volume\t'Each volume is a tenant with a part of the disk of its own'
one\t'All of it is one process; volumes lie upon each other'"
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l trace-weight -d 'Weight of a volume\'s tenant, by the volume\'s name or number, 1 to 10000; may be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l trace-tag -d 'Priority of a volume\'s requests under tag, 1 to 254; may be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l trace-depth -d 'Replay as fast as the disk allows, with so many requests of each tenant under way, instead of at the trace\'s instants' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l report -d 'Write a report with plots' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l schedulers -d 'The host\'s schedulers' -r -f -a "noop\t'First come, first served'
mq-deadline\t'The kernel\'s mq-deadline: expiry times and sorted batches'
anticipatory\t'The anticipatory scheduler that left the kernel with 2.6.33'
cfq\t'Completely fair queueing, by time; left the kernel with 5.0'
bfq\t'Budget fair queueing'
sfq\t'Start-time fair queueing with a bounded depth'
pclock\t'pClock: burst, rate and delay, work-conserving'
htbs\t'HTBS as Minerva mended it'
htbs-original\t'HTBS as it was published; its contracts count requests'
mclock\t'mClock: reservation, limit and weight'
mclock-allow\t'mClock whose limits may be passed while the disk would idle'
tag\t'The Tag Scheduler with plug and bounded depth'
tag-original\t'The Tag Scheduler as in Bai and Huang: neither plug nor bounded depth'"
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l threads -d 'Threads to simulate on; the answers do not depend on it. 0 for one a processor' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l engine -d 'Minerva\'s engine steers the tenants\' weights, as minervad does'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l in-order -d 'Stop when a request is earlier than the one before, instead of sorting'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l fold -d 'Fold a trace\'s addresses past the disk\'s end onto it, instead of stopping at the first'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l json -d 'Print JSON'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l profile -d 'The disk: a built-in profile or a file that ends in `.toml`' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l scheduler -d 'The scheduler that is to keep them: pclock or htbs' -r -f -a "noop\t'First come, first served'
mq-deadline\t'The kernel\'s mq-deadline: expiry times and sorted batches'
anticipatory\t'The anticipatory scheduler that left the kernel with 2.6.33'
cfq\t'Completely fair queueing, by time; left the kernel with 5.0'
bfq\t'Budget fair queueing'
sfq\t'Start-time fair queueing with a bounded depth'
pclock\t'pClock: burst, rate and delay, work-conserving'
htbs\t'HTBS as Minerva mended it'
htbs-original\t'HTBS as it was published; its contracts count requests'
mclock\t'mClock: reservation, limit and weight'
mclock-allow\t'mClock whose limits may be passed while the disk would idle'
tag\t'The Tag Scheduler with plug and bounded depth'
tag-original\t'The Tag Scheduler as in Bai and Huang: neither plug nor bounded depth'"
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l every -d 'Take each contract\'s rate as what a job that asks all the time is to have in every interval this long, such as 1s; print the contract that it has to buy for that, and judge those' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l htbs-turn -d 'HTBS: serve one flow at most this many cost units in a row, B_max of the paper. A unit is 4 KiB, under htbs-original a request. Without it 512, and 20 under htbs-original' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l htbs-wait -d 'HTBS: keep the disk idle this long for the flow in service, T_wait of the paper, such as 10ms. Without it 10ms; 0 for never' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l seed -d 'Seed of the disk and of the places that are measured' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l json -d 'Print JSON'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l seed -d 'Seed of the disk and the processes [default: 1; mapreduce draws one]' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l traces -d '`background`: play the last six days of these block traces, such as SYSTOR \'17\'s, instead of a synthetic week. Times are taken as Unix seconds and moved to Japan\'s' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l plot -d '`background`: write plots of the days' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l runs -d 'Runs of each arm of proactive, interleave and mapreduce, each with other sessions' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l slice -d 'How long the engine\'s slices are, of proactive' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l scale -d 'Multiplies the paper\'s bytes, and the time between sessions, of proactive' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l report -d 'Write a report with plots, of proactive, interleave and mapreduce' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand figure" -l disks -d 'Folder of measured drives, for disk-model' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand figure" -l json -d 'Print JSON lines'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand figure" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and not __fish_seen_subcommand_from info convert slice" -s h -l help -d 'Print help'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and not __fish_seen_subcommand_from info convert slice" -f -a "info" -d 'Says what a trace holds'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and not __fish_seen_subcommand_from info convert slice" -f -a "convert" -d 'Converts a trace to the native form, Parquet'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and not __fish_seen_subcommand_from info convert slice" -f -a "slice" -d 'Writes a part of a trace in the native form. Its times count from the part\'s start'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l format -d 'The trace\'s format instead of the one that is found by its content: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general or native' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l malformed-max -d 'Stop when more than this part of the entries is malformed, in percent' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l sort-window -d 'Put requests that stand behind later ones back where they belong, up to this much earlier; rows by completion are some milliseconds out of order. What is earlier still is moved to the time of the latest before it, and stops the run when it is more than --malformed-max of all. 0 sorts nothing' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l object-bytes -d 'Bytes from one object number to the next (oracle-general)' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l in-order -d 'Stop when a request is earlier than the one before, instead of sorting'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l json -d 'One JSON object'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -s h -l help -d 'Print help'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -l format -d 'The trace\'s format instead of the one that is found by its content: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general or native' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -l malformed-max -d 'Stop when more than this part of the entries is malformed, in percent' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -l sort-window -d 'Put requests that stand behind later ones back where they belong, up to this much earlier; rows by completion are some milliseconds out of order. What is earlier still is moved to the time of the latest before it, and stops the run when it is more than --malformed-max of all. 0 sorts nothing' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -l object-bytes -d 'Bytes from one object number to the next (oracle-general)' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -l in-order -d 'Stop when a request is earlier than the one before, instead of sorting'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -s h -l help -d 'Print help'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l from -d 'From this time of the trace on, in seconds' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l until -d 'Before this time of the trace, in seconds' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l volume -d 'Only this volume, by its number; may be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l skip -d 'Leave out so many requests of what the other choices let through' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l count -d 'At most so many requests' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l format -d 'The trace\'s format instead of the one that is found by its content: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general or native' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l malformed-max -d 'Stop when more than this part of the entries is malformed, in percent' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l sort-window -d 'Put requests that stand behind later ones back where they belong, up to this much earlier; rows by completion are some milliseconds out of order. What is earlier still is moved to the time of the latest before it, and stops the run when it is more than --malformed-max of all. 0 sorts nothing' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l object-bytes -d 'Bytes from one object number to the next (oracle-general)' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l in-order -d 'Stop when a request is earlier than the one before, instead of sorting'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -s h -l help -d 'Print help'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand fit" -l base -d 'The profile to start from: a built-in one or a file that ends in `.toml`' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand fit" -l json -d 'Instead of the profile\'s text print JSON lines: one a job, then one with the profile'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand fit" -s h -l help -d 'Print help'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand generate" -s h -l help -d 'Print help'
