# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_minerva_lab_global_optspecs
    string join \n h/help V/version
end

function __fish_minerva_lab_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_minerva_lab_global_optspecs) -- $cmd 2>/dev/null
    or return
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_minerva_lab_using_subcommand
    set -l cmd (__fish_minerva_lab_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -s V -l version -d 'Print version'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "disk" -d 'Make, list and remove emulated disks'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "demo" -d 'Run the demonstration: two scenes, each with equal weights and under minervad; the first with the kernel\'s own default too, the second, in which forecasts decide, with reaction alone'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "figure" -d 'Measure one of the figures in docs/figures.md'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "reproduce" -d 'Repeat an experiment of the papers on the real kernel, and print their figures beside ours'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "sweep" -d 'Remove what killed runs left behind: disks, mounts, loop devices, cgroups'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "worker" -d 'Do one workload in this process, as told by the parent'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "callers" -d 'Be many clients of the daemon, as told by the parent'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "hostile" -d 'Be one process of a hostile tenant of the cache, as told by the parent'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "generate" -d 'Write the man page and shell completions'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -f -a "create" -d 'Make an emulated disk and print its device. It runs in the background until it is destroyed'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -f -a "list" -d 'List the emulated disks'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -f -a "stats" -d 'Show what a disk has done'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -f -a "destroy" -d 'Remove a disk. Requests still under way fail'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -f -a "profiles" -d 'List the disk profiles'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l profile -d 'Which disk to emulate; `minerva-lab disk profiles` lists them' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l name -d 'The name by which the other commands know it' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l size -d 'Size, such as 8G (powers of 1000), 8GiB (of 1024), or bytes. The profile\'s own by default' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l elevator -d 'Elevator on top of it' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l backing -d 'Keep the contents in this file. Without it writes are forgotten and reads are zeros' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l queue-depth -d 'Requests the disk takes at once. The profile\'s own by default' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l seed -d 'Seed of what is random in the model' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l foreground -d 'Stay in the foreground until Ctrl-C'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l json -d 'Print JSON'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from list" -l json -d 'Print JSON lines'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from stats" -l json -d 'Print JSON'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from stats" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from destroy" -l all -d 'Every disk that `list` shows, and leftovers of dead ones'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from destroy" -l json -d 'Print JSON lines'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from destroy" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from profiles" -l json -d 'Print JSON lines'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from profiles" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l scale -d 'Multiplies the bytes of the workloads: 200 MB, 500 MB, 3 GB and 12 GB at 1; of `cache`: a burst of 256 MB' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l scene -d 'Run only these scenes' -r -f -a "noisy-neighbour\t''
together\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l report -d 'Where to write the HTML report with plots' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l weights -d 'In place of minervad let the four tenants hold these BFQ weights: a bound for what a controller can reach' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l equal-only -d 'Run with equal weights only'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "endogenic" -d 'What endogenic scheduling gains on the real kernel against equal weights, in the paper\'s scene and in others'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "weights-bite" -d 'How close two equal readers at shares 800:100 get to 8:1'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "against-kernel" -d 'Minerva against what the kernel does by itself: each elevator as shipped, in scenes of short, committing and lasting tenants beside heavy ones'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "rise" -d 'How long BFQ takes to obey when the weight of a busy reader rises to that of the others'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "noisy-neighbour" -d 'What scene one of the demonstration gains under minervad against equal weights'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "slice-cost" -d 'Processor time of the daemon in each slice, with many tenants'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "memory" -d 'Memory of the daemon with many tenants'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "idle-writes" -d 'What the daemon writes in slices in which nothing changes'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "clients" -d 'Answers, memory and slices with many clients connected'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "idle" -d 'What others lose beside a tenant at level `idle`, and what that gets of a disk that nobody else uses'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "gaps" -d 'What background work takes of the pauses of a reader, and what that loses by it'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "makespan" -d 'What batch jobs that share a disk gain when the shortest goes first, of what running one after the other gains'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "cache-migration" -d 'What a burst beside busy neighbours costs: straight to their disk, copied back from a fast one, and through the pool'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "cache-throughput" -d 'How fast files of the pools are read and written, beside what lies below them and other FUSE file systems'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "cache-tenants" -d 'What many tenants with many files cost the cache, and what a hostile one costs its neighbour'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "kill-restore" -d 'Kills the daemon at random moments under load and restores'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "undo-bites" -d 'Whether two equal readers get after the daemon\'s end what they got before its start, for each back end'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "vm-contracts" -d 'Whether `minerva-blk` keeps the contracts of four guests that read from one disk, and who else does'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "vm-tags" -d 'Whether `minerva-blk` obeys the priorities of six programs in three guests'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "vm-urgent" -d 'How long a seldom and urgent request waits beside programs that ask all the time, by how many requests `tag` has at the disk'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-tags vm-urgent worth" -f -a "worth" -d 'What forecasts are worth on the real kernel: tenants that start together after sessions like theirs, and bursts that are interleaved'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l scale -d 'Multiply the paper\'s bytes and times; each is measured. At 1 a run takes seven minutes' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l level -d 'How far the tenant steps back that does; each is measured' -r -f -a "low\t''
lowest\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l deadline -d 'What the deadline of who coordinates means: to have begun by it, or to be done; each is measured' -r -f -a "begin\t''
done\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l seed -d 'Seed of the order; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l pairs -d 'Pairs of runs of the paper\'s scene, equal weights and the daemon, in an order that is drawn for each; the median counts' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l others -d 'Other scenes: 4, 8 and 16 tenants of other sizes and orders, sequential and random, this many of each' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l others-scale -d 'The scale of the other scenes' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l block -d 'Bytes a request, with K or M; each is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l seconds -d 'Seconds measured for each' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l windows -d 'Windows measured; the median counts' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l set -d 'Further settings of the queue, such as `iosched/slice_idle=8` or `nr_requests=64`' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l queue-depth -d 'Requests the disk takes at once' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l raw -d 'Write the weights directly, without minervad: what the kernel makes of them'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l random -d 'Random instead of sequential reads'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l no-guest -d 'Leave out the guest, in which cgroup v2 is measured where this machine has v1'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l scene -d 'Only these scenes' -r -f -a "demo\t''
short-2\t''
short-3\t''
commit-1\t''
commit-2\t''
lasting\t''
mixed-16\t''
deep\t''
buffered\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l arm -d 'Only these arms' -r -f -a "mq-deadline\t''
kyber\t''
none\t''
bfq\t''
bfq-low-0\t''
minerva\t''
minerva-strict\t''
minerva-by-use\t''
minerva-low-by-use\t''
minerva-low-0\t''
iocost\t''
minerva-iocost\t''
minerva-max\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l profile -d 'Which disks to emulate; by default sata7200-80g and sata-ssd, on cgroup v2 slow-ssd' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l rounds -d 'Rounds; in each every arm plays once, in an order that is drawn. The medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l scale -d 'Multiplies the work of tenants that end and the time of those that last' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l seed -d 'Seed of the order; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l runs -d 'Write every single run to this file, as JSON' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l plots -d 'Write a plot of each scene into this folder' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l guest -d 'Only the guest: without an elevator, through iocost and through caps, as on a host with NVMe and cgroup v2'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l no-guest -d 'Leave out the guest, which by default follows when all arms play'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l weight -d 'What the reader weighs before; each is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l others -d 'Readers of weight 100 beside it' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l seconds -d 'Seconds for which it is watched after its weight has become 100 as well' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l scale -d 'Multiply the bytes of the workloads; each is measured. At 1 a run takes seven minutes' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l pairs -d 'Pairs of runs, equal weights and the daemon, in an order that is drawn for each pair; the median counts' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l seed -d 'Seed of the order; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l weights -d 'In place of minervad let the four tenants hold these BFQ weights' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l share-heavy -d 'The share of the heaviest group, in place of the daemon\'s own default' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l tenants -d 'How many tenants; each number is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l active -d 'How many of them use the disk in the first half of the slices, with `--tenants`' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l processes -d 'Processes of each of those, with `--tenants`; all but one sleep' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l slices -d 'Slices to measure with active tenants, and as many with idle ones' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l tenants -d 'How many tenants; each number is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l active -d 'How many of them use the disk in the first half of the slices, with `--tenants`' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l processes -d 'Processes of each of those, with `--tenants`; all but one sleep' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l slices -d 'Slices to measure with active tenants, and as many with idle ones' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l tenants -d 'How many tenants; each number is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l active -d 'How many of them use the disk in the first half of the slices, with `--tenants`' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l processes -d 'Processes of each of those, with `--tenants`; all but one sleep' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l slices -d 'Slices to measure with active tenants, and as many with idle ones' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l clients -d 'Clients in all, each with a connection of its own' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l requests-per-second -d 'Requests in all' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l seconds -d 'For how long' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l tenants -d 'Tenants that they belong to' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l profile -d 'Which disks to emulate; by default sata7200-80g and sata-ssd, in the guest sata7200-80g' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l elevator -d 'Under which elevators' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l rounds -d 'Pairs of windows, with and without the tenant at idle, in an order that is drawn. The medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l seconds -d 'Seconds of each window' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l seed -d 'Seed of the orders; without one it is drawn' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l guest -d 'Only the guest, on cgroup v2'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l no-guest -d 'Leave out the guest, in which cgroup v2 is measured where this machine has v1'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l profile -d 'Which disks to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l elevator -d 'Under which elevators' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l work -d 'Which background work' -r -f -a "backup\t''
delete\t''
scrub\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l rounds -d 'Pairs of windows, with background work and without, in an order that is drawn. They are pooled' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l bursts -d 'Bursts of the reader in each window, 2 to 6 s long as are the pauses after each' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l seed -d 'Seed of bursts, pauses and orders; without one it is drawn' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l elevator -d 'Under which elevators' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l jobs -d 'Which jobs: mixed (TeraSort, Sort, WordCount, K-means, PageRank) or alike (four sorts)' -r -f -a "mixed\t''
alike\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l scale -d 'Multiplies what they read and write; 1 is some 2.3 GB for mixed and 1.8 GB for alike' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l rounds -d 'How often all arms run, in an order that is drawn. The medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l seed -d 'Seed of the orders; without one it is drawn' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l profile -d 'Which disk to emulate for the neighbours, where the burst belongs' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l elevator -d 'Under which elevators; each is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l pool-profile -d 'Which disk to emulate for the pool' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l megabytes -d 'Megabytes of the burst, in eight files' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l seconds -d 'Seconds for which the neighbours work without a pause' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l bursts -d 'Bursts of the neighbours after that, 3 to 6 s long, with a pause of 4 to 8 s before each' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l rounds -d 'How often all arms play, in an order that is drawn. The medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l seed -d 'Seed of orders, bursts and pauses; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l runs -d 'Write every single run to this file, as JSON' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l report -d 'Write an HTML report with plots to this file, of the elevator measured last' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l daemon -d 'Let minervad steer the disk in all arms, and tell the service who uses it; without it the disk\'s counters do'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l pool -d 'A directory on the disk that `stable` is to lie on; without it a disk is emulated' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l pool-profile -d 'Which disk to emulate for `stable`' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l megabytes -d 'Megabytes of the file that is read, and of the one that is written' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l span-ms -d 'Milliseconds of random requests each time' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l rounds -d 'How often everything is measured, in an order that is drawn. The medians count; the paper has 100' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l passthrough-hp -d 'libfuse\'s example `passthrough_hp`, of 3.17 or later so that the kernel reads by itself; by default it is looked for in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l seed -d 'Seed of the orders; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l tenants -d 'How many tenants' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l files -d 'Files of all together; the figure in full has 1,000,000' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l idle-seconds -d 'Seconds in which nobody does anything' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l seconds -d 'Seconds of each window of the neighbour' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l rounds -d 'How often the neighbour is measured beside each kind of hostility, in an order that is drawn; 0 leaves that out' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l pool -d 'A directory on the disk for `stable`' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l seed -d 'Seed of the orders; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l hostile-only -d 'Leave out the many tenants'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l kills -d 'How many kills' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l effect-checks -d 'After so many kills it is measured what tenants of equal weight get' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l effect-seconds -d 'Seconds of each such measurement' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l effect-error-percent -d 'How far a tenant\'s part of the disk may then be from what it was before the first kill' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l seed -d 'Seed of the moments' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l back-end -d 'Only these back ends: bfq, bfq-v1, iocost, max, throttle-v1. Those of the other cgroup version are measured in a guest' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l seconds -d 'Seconds of each window: before, during and after' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l no-guest -d 'Leave out the guest, in which cgroup v2 is measured where this machine has v1'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l arm -d 'What orders the guests\' requests; each is measured in each run, in an order that is drawn' -r -f -a "htbs\t''
noop\t''
pclock\t''
mclock\t''
kernel-bfq\t''
qemu-throttle\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l block -d 'Bytes a request' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l seconds -d 'Seconds measured in each run, after the first' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l runs -d 'Runs of each' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l seed -d 'Seed of the order; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l logs -d 'Keep the server\'s log of each run in this folder, as ARM-RUN.csv' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l block -d 'Bytes a request' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l depth -d 'Requests that each program has under way' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l tag-depth -d 'Requests that `tag` has at the disk at once; its own choice unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l seconds -d 'Seconds measured in each run, after the first' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l runs -d 'Runs of each arm' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l logs -d 'Keep the server\'s log of each run in this folder, as ARM-RUN.csv' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l seed -d 'Seed of the order; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l no-kernel -d 'Leave out plain `ionice` levels under the kernel\'s BFQ'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l tag-depth -d 'Requests that `tag` has at the disk at once; each number is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l block -d 'Bytes a request of those that ask all the time' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l depth -d 'Requests that each of those has under way' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l seconds -d 'Seconds measured in each run, after the first' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l runs -d 'Runs of each in guests; in each every depth is measured once, in an order that is drawn. 0 for the simulator alone' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l seed -d 'Seed of the order and of the simulator; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l scene -d 'Only this scene' -r -f -a "proactive\t''
interleave\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l profile -d 'Which disks to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l arm -d 'Only these arms' -r -f -a "equal\t''
fennel\t''
minerva-off\t''
minerva-last\t''
kernel\t''
minerva\t''
oracle\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l like -d 'What is known of sessions that start together: sessions of the same names came before, or of the same looks and no names, or none like them' -r -f -a "named\t''
unnamed\t''
unseen\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l pairs -d 'Pairs: in each, every arm plays once what was drawn for it, in an order that is drawn. The medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l scale -d 'Multiplies the bytes of the paper, on a disk that turns; on an SSD they are three times as many' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l seed -d 'Seed of all that is drawn; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l folder -d 'Keep every run, and what the daemon learnt before it, in this folder. With the seed given too, runs that are there are not played again, so that an interrupted measurement goes on' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l runs-max -d 'Play at most so many runs this time' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l seconds -d 'Seconds in which phases are learnt, in the scene of bursts, before as many are compared' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "endogenic" -d 'Minerva\'s Fig. 2: four tenants start together, one steps back, one coordinates'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "makespan" -d 'Matteussi and Geyer 2018: batch jobs that share a disk, all at once, and the shortest first'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "characterise" -d 'Matteussi and Geyer 2018: what eight kinds of batch programs do to a disk, beside what the daemon says of their runs'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "proactive" -d 'Minerva\'s Fig. 3-a against 3-b: four tenants start together, after sessions like theirs'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "interleave" -d 'Minerva\'s Fig. 3-d against 3-e: two tenants alternate between the disk and other work'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "htbs" -d 'Rocha and Bona 2012: contracts of synchronous readers, each in a guest of its own, and what they cost in throughput; in guests and in the simulator'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "tag" -d 'Bai and Huang: priorities of programs in different guests; in guests and in the simulator'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "table" -d 'Scene one and Fig. 2 at every scale, level and meaning of the deadline, each tenant by name: a table as JSON and text'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l scale -d 'Multiplies the paper\'s bytes and times; at 1 two runs take a quarter of an hour' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l report -d 'Where to write the HTML report with plots' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l elevator -d 'Under which elevators' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l jobs -d 'Which jobs: mixed (TeraSort, Sort, WordCount, K-means, PageRank) or alike (four sorts)' -r -f -a "mixed\t''
alike\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l scale -d 'Multiplies what they read and write; 1 is some 2.3 GB for mixed and 1.8 GB for alike' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l rounds -d 'How often all arms run, in an order that is drawn. The medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l seed -d 'Seed of the orders; without one it is drawn' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l elevator -d 'Under which elevator' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l program -d 'Only these programs: sort, terasort, wordcount, nutch, pagerank, k-means, bayes, hive' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l scale -d 'Multiplies what they read and write and how long they compute; at 1 all take some five minutes' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l report -d 'Where to write the page with plots' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l profile -d 'Which disks to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l arm -d 'Only these arms' -r -f -a "equal\t''
fennel\t''
minerva-off\t''
minerva-last\t''
kernel\t''
minerva\t''
oracle\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l like -d 'What is known of sessions that start together: sessions of the same names came before, or of the same looks and no names, or none like them' -r -f -a "named\t''
unnamed\t''
unseen\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l pairs -d 'Pairs: in each, every arm plays once what was drawn for it, in an order that is drawn. The medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l scale -d 'Multiplies the bytes of the paper, on a disk that turns; on an SSD they are three times as many' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l seed -d 'Seed of all that is drawn; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l folder -d 'Keep every run, and what the daemon learnt before it, in this folder. With the seed given too, runs that are there are not played again, so that an interrupted measurement goes on' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l runs-max -d 'Play at most so many runs this time' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l seconds -d 'Seconds in which phases are learnt, in the scene of bursts, before as many are compared' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l plot -d 'Where to write the plot, as SVG; one for each disk, with its name in front of the ending' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l profile -d 'Which disks to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l arm -d 'Only these arms' -r -f -a "equal\t''
fennel\t''
minerva-off\t''
minerva-last\t''
kernel\t''
minerva\t''
oracle\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l like -d 'What is known of sessions that start together: sessions of the same names came before, or of the same looks and no names, or none like them' -r -f -a "named\t''
unnamed\t''
unseen\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l pairs -d 'Pairs: in each, every arm plays once what was drawn for it, in an order that is drawn. The medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l scale -d 'Multiplies the bytes of the paper, on a disk that turns; on an SSD they are three times as many' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l seed -d 'Seed of all that is drawn; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l folder -d 'Keep every run, and what the daemon learnt before it, in this folder. With the seed given too, runs that are there are not played again, so that an interrupted measurement goes on' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l runs-max -d 'Play at most so many runs this time' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l seconds -d 'Seconds in which phases are learnt, in the scene of bursts, before as many are compared' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l plot -d 'Where to write the plot, as SVG; one for each disk, with its name in front of the ending' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l arm -d 'What orders the requests of the four jobs' -r -f -a "pclock\t''
htbs\t''
mclock\t''
kernel-bfq\t''
noop\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l readers -d 'How many sequential readers share the disk; each number is measured under pclock, htbs and the kernel\'s BFQ. 0 for none' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l report -d 'Where to write the HTML report with plots' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l rounds -d 'Rounds: in each, every arm plays once, in an order that is drawn. The medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l seconds -d 'Seconds of each run, after the first' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l block -d 'Bytes a request' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l seed -d 'Seed of orders and of the simulator; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l profile -d 'Which disk to emulate. The paper\'s flash disk is faster than processors that are emulated in software' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l arm -d 'What orders the requests' -r -f -a "noop\t''
kernel-bfq\t''
tag\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l depth -d 'Requests that each program has under way: the paper\'s read ahead by the page cache of their guest' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l tag-depth -d 'Requests that `tag` has at the disk at once; its own choice unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l report -d 'Where to write the HTML report with plots' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l rounds -d 'Rounds: in each, every arm plays once, in an order that is drawn. The medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l seconds -d 'Seconds of each run, after the first' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l block -d 'Bytes a request' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l seed -d 'Seed of orders and of the simulator; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l scale -d 'Multiply the bytes and times; each is measured. At 1 a run takes seven minutes, and there are seven a round' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l rounds -d 'Rounds; in each equal weights and every way play once, in an order that is drawn. The medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l seed -d 'Seed of the order; drawn and printed unless given' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l folder -d 'Where to write `table.json` and `table.txt`, anew after each scene' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l binaries -d 'The folder of minervad and minerva-ctl; by default they are looked for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l minervad -d 'The daemon to steer with, wherever the others are' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l json -d 'Print JSON, one object a line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand sweep" -l prefix -d 'Only leftovers whose name starts with this' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand sweep" -l json -d 'Print JSON'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand sweep" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand worker" -l spec -d 'The job, as JSON' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand worker" -l cgroup-processes -d 'The `cgroup.procs` to move into first' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand worker" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand callers" -l spec -d 'The clients, as JSON' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand callers" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand hostile" -l act -d 'What it does: fills, opens, renames, makes' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand hostile" -l directory -d 'A directory of its own' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand hostile" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand generate" -s h -l help -d 'Print help'
