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
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "admit" -d 'Check whether a disk can keep the contracts of a job file, and what is missing if it cannot'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "reproduce" -d 'Repeat the experiments of a paper, and print its numbers beside ours'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "figure" -d 'Measure one of the figures in docs/figures.md'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "trace" -d 'Read and convert block traces'
complete -c minerva-sim -n "__fish_minerva_sim_needs_command" -f -a "fit" -d 'Fit an SSD profile to a fio run'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l profile -d 'Profile of the disk: a built-in one or a file that ends in `.toml`' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l seed -d 'Seed of the simulation. Equal seeds give equal reports, byte for byte' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l until -d 'End the run after this many virtual seconds. By default a trace is replayed to its end, and jobs that do not end by themselves are stopped after 3600' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l depth -d 'Requests at the disk at once, at most as many as it accepts. By default as many as it accepts, or fewer if the scheduler has to decide the order itself; 0 for as many as it accepts under any scheduler' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l htbs-turn -d 'HTBS: serve one flow at most this many cost units in a row (B_max in the paper). A unit is 4 KiB, for htbs-original a request. The default is 512, for htbs-original 20' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l htbs-wait -d 'HTBS: keep the disk idle this long for the flow in service (T_wait in the paper). The default is 10ms; 0 for never' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l fault -d 'Make the disk slow or stop it for a while: FROM-UNTIL in seconds, then `x` and how many times slower, or `x0` to stop it, such as `10-20x4`. May be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l format -d 'Format of the trace: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general or native. By default it is recognised by the content' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l malformed-max -d 'Stop if more than this percentage of the entries is malformed' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l sort-window -d 'Sort requests that are at most this much out of order; a trace that was written at completion is out of order by some milliseconds. A request that is later than that gets the time of the request before it, and the run stops if there are more of them than --malformed-max allows. 0 sorts nothing' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l object-bytes -d 'oracle-general: bytes from one object number to the next' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l speed -d 'Replay the trace this many times faster' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l trace-tenants -d 'Tenants of the trace. By default each volume is one; the whole trace is one if it comes through a pipe or has more than 64 volumes' -r -f -a "volume\t'Each volume is a tenant and has its own part of the disk'
one\t'The whole trace is one process; volumes overlap on the disk'"
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l trace-weight -d 'Weight of a volume\'s tenant, 1 to 10000. VOLUME is a name or a number. May be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l trace-tag -d 'Priority of a volume\'s requests under tag, 1 to 254. May be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l trace-depth -d 'Replay as fast as the disk allows, with this many requests of each tenant in flight, instead of at the times of the trace' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l report -d 'Write a report with plots to this file' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l scheduler -d 'Scheduler of the host' -r -f -a "noop\t'First come, first served'
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
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l engine -d 'Let Minerva\'s engine set the tenants\' weights, as minervad does'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l in-order -d 'Stop at a request that is earlier than the one before, instead of sorting'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l fold -d 'Wrap a trace\'s addresses beyond the disk\'s end around, instead of stopping at the first'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -l json -d 'Print JSON'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand run" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l profile -d 'Profile of the disk: a built-in one or a file that ends in `.toml`' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l seed -d 'Seed of the simulation. Equal seeds give equal reports, byte for byte' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l until -d 'End the run after this many virtual seconds. By default a trace is replayed to its end, and jobs that do not end by themselves are stopped after 3600' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l depth -d 'Requests at the disk at once, at most as many as it accepts. By default as many as it accepts, or fewer if the scheduler has to decide the order itself; 0 for as many as it accepts under any scheduler' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l htbs-turn -d 'HTBS: serve one flow at most this many cost units in a row (B_max in the paper). A unit is 4 KiB, for htbs-original a request. The default is 512, for htbs-original 20' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l htbs-wait -d 'HTBS: keep the disk idle this long for the flow in service (T_wait in the paper). The default is 10ms; 0 for never' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l fault -d 'Make the disk slow or stop it for a while: FROM-UNTIL in seconds, then `x` and how many times slower, or `x0` to stop it, such as `10-20x4`. May be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l format -d 'Format of the trace: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general or native. By default it is recognised by the content' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l malformed-max -d 'Stop if more than this percentage of the entries is malformed' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l sort-window -d 'Sort requests that are at most this much out of order; a trace that was written at completion is out of order by some milliseconds. A request that is later than that gets the time of the request before it, and the run stops if there are more of them than --malformed-max allows. 0 sorts nothing' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l object-bytes -d 'oracle-general: bytes from one object number to the next' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l speed -d 'Replay the trace this many times faster' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l trace-tenants -d 'Tenants of the trace. By default each volume is one; the whole trace is one if it comes through a pipe or has more than 64 volumes' -r -f -a "volume\t'Each volume is a tenant and has its own part of the disk'
one\t'The whole trace is one process; volumes overlap on the disk'"
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l trace-weight -d 'Weight of a volume\'s tenant, 1 to 10000. VOLUME is a name or a number. May be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l trace-tag -d 'Priority of a volume\'s requests under tag, 1 to 254. May be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l trace-depth -d 'Replay as fast as the disk allows, with this many requests of each tenant in flight, instead of at the times of the trace' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l report -d 'Write a report with plots to this file' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l schedulers -d 'Schedulers of the host' -r -f -a "noop\t'First come, first served'
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
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l threads -d 'Number of threads; the results do not depend on it. 0 for one per processor' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l engine -d 'Let Minerva\'s engine set the tenants\' weights, as minervad does'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l in-order -d 'Stop at a request that is earlier than the one before, instead of sorting'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l fold -d 'Wrap a trace\'s addresses beyond the disk\'s end around, instead of stopping at the first'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -l json -d 'Print JSON'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand compare" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l profile -d 'Profile of the disk: a built-in one or a file that ends in `.toml`' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l scheduler -d 'Scheduler that is to keep the contracts: pclock or htbs' -r -f -a "noop\t'First come, first served'
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
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l every -d 'Take each contract\'s rate as what a job that always has a request waiting should get in every interval of this length, such as 1s. Print the contract that it needs for that, and check those contracts' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l htbs-turn -d 'HTBS: serve one flow at most this many cost units in a row (B_max in the paper). A unit is 4 KiB, for htbs-original a request. The default is 512, for htbs-original 20' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l htbs-wait -d 'HTBS: keep the disk idle this long for the flow in service (T_wait in the paper). The default is 10ms; 0 for never' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l seed -d 'Seed of the disk and of the positions at which it is measured' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -l json -d 'Print JSON'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand admit" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l seed -d 'Seed of the disk and the processes [default: 1, for mapreduce a random one]' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l traces -d '`background`: replay the last six days of these block traces, such as SYSTOR \'17\'s, instead of a synthetic week. Their times are read as Unix seconds and converted to Japanese time' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l plot -d '`background`: write plots of the days to this file' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l runs -d '`proactive`, `interleave`, `mapreduce`, `makespan`: runs of each arm; each run has other sessions, and other jobs in mixes that are drawn' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l slice -d '`proactive`: length of the engine\'s slices' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l scale -d '`proactive`: scale of the paper\'s bytes and of the time between sessions' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l scene -d '`proactive`: play this scene alone' -r -f -a "drawn\t'Jobs are dealt to four VMs anew in each round: only what a process shows when it begins says what comes'
fixed\t'Each of four VMs always has the same job: its name, and its last session, say what comes'
newcomers\t'Each session is a new container, named after its job'
one-name\t'Each session is a new container, and all have one name. Their sizes go with the files that they open'"
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l report -d '`proactive`, `interleave`, `mapreduce`: write a report with plots to this file' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -l json -d '`proactive`: print JSON, a line for each arm of each scene'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand reproduce" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand figure" -l disks -d '`disk-model`: folder of the measured drives' -r -F
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand figure" -l json -d 'Print JSON lines'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand figure" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and not __fish_seen_subcommand_from info convert slice" -s h -l help -d 'Print help'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and not __fish_seen_subcommand_from info convert slice" -f -a "info" -d 'Describe a trace'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and not __fish_seen_subcommand_from info convert slice" -f -a "convert" -d 'Convert a trace to the native format, Parquet'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and not __fish_seen_subcommand_from info convert slice" -f -a "slice" -d 'Write a part of a trace in the native format, with times relative to the start of the part'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l format -d 'Format of the trace: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general or native. By default it is recognised by the content' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l malformed-max -d 'Stop if more than this percentage of the entries is malformed' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l sort-window -d 'Sort requests that are at most this much out of order; a trace that was written at completion is out of order by some milliseconds. A request that is later than that gets the time of the request before it, and the run stops if there are more of them than --malformed-max allows. 0 sorts nothing' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l object-bytes -d 'oracle-general: bytes from one object number to the next' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l in-order -d 'Stop at a request that is earlier than the one before, instead of sorting'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -l json -d 'Print one JSON object'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from info" -s h -l help -d 'Print help'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -l format -d 'Format of the trace: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general or native. By default it is recognised by the content' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -l malformed-max -d 'Stop if more than this percentage of the entries is malformed' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -l sort-window -d 'Sort requests that are at most this much out of order; a trace that was written at completion is out of order by some milliseconds. A request that is later than that gets the time of the request before it, and the run stops if there are more of them than --malformed-max allows. 0 sorts nothing' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -l object-bytes -d 'oracle-general: bytes from one object number to the next' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -l in-order -d 'Stop at a request that is earlier than the one before, instead of sorting'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from convert" -s h -l help -d 'Print help'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l from -d 'Start at this time of the trace, in seconds' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l until -d 'End before this time of the trace, in seconds' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l volume -d 'Only the volume with this number. May be given several times' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l skip -d 'Skip this many of the requests that the other options select' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l count -d 'Write at most this many requests' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l format -d 'Format of the trace: systor, msr, alibaba, tencent, spc, blktrace, fio-iolog, vscsi, cloudphysics, oracle-general or native. By default it is recognised by the content' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l malformed-max -d 'Stop if more than this percentage of the entries is malformed' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l sort-window -d 'Sort requests that are at most this much out of order; a trace that was written at completion is out of order by some milliseconds. A request that is later than that gets the time of the request before it, and the run stops if there are more of them than --malformed-max allows. 0 sorts nothing' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l object-bytes -d 'oracle-general: bytes from one object number to the next' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -l in-order -d 'Stop at a request that is earlier than the one before, instead of sorting'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand trace; and __fish_seen_subcommand_from slice" -s h -l help -d 'Print help'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand fit" -l base -d 'Profile to start from: a built-in one or a file that ends in `.toml`' -r
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand fit" -l json -d 'Print JSON lines instead of the profile: one per job, then one with the profile'
complete -c minerva-sim -n "__fish_minerva_sim_using_subcommand fit" -s h -l help -d 'Print help'
