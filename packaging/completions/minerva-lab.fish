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
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "demo" -d 'Run the demonstration: two scenes, each with equal weights, with the kernel\'s default settings and with minervad, in random order. The second also runs with a scheduler that only reacts'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "figure" -d 'Measure one of the figures in docs/figures.md'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "reproduce" -d 'Repeat a paper\'s experiment on the real kernel, and print the paper\'s numbers beside ours'
complete -c minerva-lab -n "__fish_minerva_lab_needs_command" -f -a "sweep" -d 'Remove the disks, mounts, loop devices and cgroups that killed runs left behind'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -f -a "create" -d 'Create an emulated disk and print its device. It runs in the background until it is destroyed'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -f -a "list" -d 'List the emulated disks'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -f -a "stats" -d 'Show the statistics of a disk'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -f -a "destroy" -d 'Remove a disk. Requests in flight fail'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and not __fish_seen_subcommand_from create list stats destroy profiles" -f -a "profiles" -d 'List the disk profiles'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l profile -d 'Profile of the disk to emulate; `minerva-lab disk profiles` lists them' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l name -d 'Name for the other commands' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l size -d 'Size, such as 8G (powers of 1000), 8GiB (powers of 1024), or a number of bytes; by default the profile\'s' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l elevator -d 'Elevator of the disk' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l backing -d 'Keep the contents in this file. Without it, writes are discarded and reads return zeros' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l queue-depth -d 'Requests that the disk accepts at once; by default the profile\'s' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l seed -d 'Seed of the disk model' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l foreground -d 'Stay in the foreground until Ctrl-C'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -l json -d 'Print JSON'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from create" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from list" -l json -d 'Print JSON lines'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from list" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from stats" -l json -d 'Print JSON'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from stats" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from destroy" -l all -d 'Every disk that `list` shows, and what killed ones left behind'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from destroy" -l json -d 'Print JSON lines'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from destroy" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from profiles" -l json -d 'Print JSON lines'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand disk; and __fish_seen_subcommand_from profiles" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l scale -d 'Scale of the workloads. At 1 they transfer 200 MB, 500 MB, 3 GB and 12 GB; in `cache` the burst is 256 MB' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l scene -d 'Run these scenes only' -r -f -a "noisy-neighbour\t''
together\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l seed -d 'Seed of the order of the runs, and of what the sessions of the second scene are called and look like; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l report -d 'File for the HTML report with plots' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l weights -d 'Give the four tenants these BFQ weights instead of running minervad: a bound on what a controller can reach' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -l equal-only -d 'Run with equal weights only'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand demo" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "endogenic" -d 'What endogenic scheduling gains over equal weights on the real kernel, in the paper\'s scene and in others'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "weights-bite" -d 'How close two equal readers at shares 800:100 get to 8:1'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "against-kernel" -d 'Minerva against the kernel alone: each elevator with its default settings, in scenes of short, committing and long-running tenants beside heavy ones'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "rise" -d 'How long BFQ takes to follow when the weight of a busy reader rises to that of the others'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "noisy-neighbour" -d 'What minervad gains over equal weights in scene one of the demonstration'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "slice-cost" -d 'Processor time that the daemon needs for a slice with many tenants'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "memory" -d 'Memory that the daemon needs for many tenants'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "idle-writes" -d 'What the daemon writes in slices in which nothing changes'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "clients" -d 'Response times, memory and cost of a slice with many clients connected'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "idle" -d 'What other tenants lose beside one at level `idle`, and what that one gets of a disk that nobody else uses'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "gaps" -d 'How much of a reader\'s pauses background work uses, and what the reader loses'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "makespan" -d 'What batch jobs that share a disk gain when the shortest goes first, compared with running them one after the other'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "characterise" -d 'How much of what eight kinds of batch programs do is told as it was by the profiles of their runs'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "cache-migration" -d 'What a burst costs busy neighbours: written directly to their disk, copied there from a fast disk, or through the pool'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "cache-throughput" -d 'How fast files in the pools are read and written, compared with the file systems below and with other FUSE file systems'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "cache-tenants" -d 'What many tenants with many files cost the cache, and what a hostile one costs its neighbour'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "kill-restore" -d 'Kill the daemon at random moments under load, and check that everything is restored'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "undo-bites" -d 'Whether two equal readers get the same after the daemon ended as before it started, for each back end'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "vm-contracts" -d 'Whether `minerva-blk` and others keep the contracts of four guests that read from one disk'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "vm-endogenic" -d 'What endogenic scheduling gains over equal weights where the tenants of the paper\'s scene are real guests'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "vm-mix" -d 'Whether `minerva-blk` keeps the contracts of a database and a file server beside a greedy guest without one'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "vm-tags" -d 'Whether `minerva-blk` obeys the priorities of six programs in three guests'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "vm-urgent" -d 'How long a rare urgent request waits beside programs that read all the time, by how many requests `tag` has at the disk'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and not __fish_seen_subcommand_from endogenic weights-bite against-kernel rise noisy-neighbour slice-cost memory idle-writes clients idle gaps makespan characterise cache-migration cache-throughput cache-tenants kill-restore undo-bites vm-contracts vm-endogenic vm-mix vm-tags vm-urgent worth" -f -a "worth" -d 'What forecasts are worth on the real kernel: for tenants that start together after earlier sessions like theirs, and for bursts that are interleaved'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l scale -d 'Scales of the paper\'s bytes and times; each is measured. At 1 a run takes seven minutes, and all runs 2.8 of the 3.9 hours that the figure takes; at the other two an hour is enough' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l level -d 'Level to which one tenant steps back; each is measured' -r -f -a "low\t''
lowest\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l deadline -d 'What the deadline of the coordinating tenant means: begin by then, or be done by then; each is measured' -r -f -a "begin\t''
done\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l seed -d 'Seed of the order and of the other scenes; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l pairs -d 'Pairs of runs of the paper\'s scene, with equal weights and with the daemon, each in random order; the median counts' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l others -d 'How many other scenes of each kind: 4, 8 and 16 tenants of random sizes and orders, sequential and random reads' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l others-scale -d 'Scale of the other scenes' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from endogenic" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l block -d 'Request sizes; each is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l seconds -d 'Seconds to measure for each' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l windows -d 'Windows to measure; the median counts' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l set -d 'Other settings of the disk\'s queue, such as `iosched/slice_idle=8` or `nr_requests=64`' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l queue-depth -d 'Requests that the disk accepts at once' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l raw -d 'Write the weights directly, without minervad'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l random -d 'Read at random instead of sequentially'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l no-guest -d 'Do not start the guest in which cgroup v2 is measured if this machine has v1'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from weights-bite" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l scene -d 'Run these scenes only' -r -f -a "demo\t''
short-2\t''
short-3\t''
commit-1\t''
commit-2\t''
lasting\t''
mixed-16\t''
deep\t''
buffered\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l arm -d 'Run these arms only' -r -f -a "mq-deadline\t''
kyber\t''
none\t''
bfq\t''
bfq-low-0\t''
minerva\t''
minerva-strict\t''
minerva-not-strict\t''
minerva-low-by-use\t''
minerva-low-0\t''
iocost\t''
minerva-iocost\t''
minerva-max\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l profile -d 'Disks to emulate; by default sata7200-80g and sata-ssd, on cgroup v2 slow-ssd in place of the latter' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l rounds -d 'Rounds. In each round every arm runs once, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l scale -d 'Scale of the work of short tenants and of the time of long-running ones' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l seed -d 'Seed of the order; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l runs -d 'Write every single run to this file, as JSON' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l plots -d 'Write a plot of each scene into this folder' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l guest -d 'Measure in the guest only, with cgroup v2: under each elevator, and without one through iocost and through caps'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l no-guest -d 'Do not start the guest, which by default follows if all arms run'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from against-kernel" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l weight -d 'What the reader weighs before; each is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l others -d 'Readers of weight 100 beside it' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l seconds -d 'Seconds for which it is watched after its weight has become 100 as well' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from rise" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l scale -d 'Scales of the workloads; each is measured. At 1 a run takes seven minutes, and all runs 43 of the 58 minutes that the figure takes' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l pairs -d 'Pairs of runs, with equal weights and with the daemon, each in random order; the median counts' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l seed -d 'Seed of the order; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l weights -d 'Give the four tenants these BFQ weights instead of running minervad' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l share-heavy -d 'Share of the heaviest group, instead of the daemon\'s default' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from noisy-neighbour" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l tenants -d 'Numbers of tenants; each is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l active -d 'How many of them use the disk in the first half of the slices, with `--tenants`' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l processes -d 'Processes of each active tenant, with `--tenants`; all but one of them sleep' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l slices -d 'Slices to measure with active tenants; as many again are measured with idle ones' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from slice-cost" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l tenants -d 'Numbers of tenants; each is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l active -d 'How many of them use the disk in the first half of the slices, with `--tenants`' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l processes -d 'Processes of each active tenant, with `--tenants`; all but one of them sleep' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l slices -d 'Slices to measure with active tenants; as many again are measured with idle ones' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from memory" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l tenants -d 'Numbers of tenants; each is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l active -d 'How many of them use the disk in the first half of the slices, with `--tenants`' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l processes -d 'Processes of each active tenant, with `--tenants`; all but one of them sleep' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l slices -d 'Slices to measure with active tenants; as many again are measured with idle ones' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle-writes" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l clients -d 'Number of clients; each has its own connection' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l requests-per-second -d 'Requests a second of all clients together' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l seconds -d 'Seconds to measure' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l tenants -d 'Number of tenants that the clients belong to' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from clients" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l profile -d 'Disks to emulate; by default sata7200-80g and sata-ssd, in the guest sata7200-80g' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l elevator -d 'Elevators to measure' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l rounds -d 'Pairs of windows, with and without the tenant at idle, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l seconds -d 'Seconds of each window' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l seed -d 'Seed of the order; by default a random one' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l guest -d 'Measure in the guest only, with cgroup v2'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l no-guest -d 'Do not start the guest in which cgroup v2 is measured if this machine has v1'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from idle" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l profile -l disk -d 'Which disks to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l elevator -d 'Elevators to measure' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l work -l kind -d 'Background work to measure' -r -f -a "backup\t''
delete\t''
scrub\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l reader -d 'Readers to measure it beside: one that pauses after each burst, and one that never does' -r -f -a "pauses\t''
steady\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l rounds -l pairs -d 'Pairs of windows, with and without background work, in random order; the results are pooled' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l bursts -d 'Bursts of the reader in each window. Bursts and pauses are 2 to 6 s long; one that never pauses reads until the work is done, and without it for two minutes' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l seed -d 'Seed of bursts, pauses and order; by default a random one' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from gaps" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l elevator -d 'Elevators to measure' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l jobs -d 'Jobs to run: mixed (TeraSort, Sort, WordCount, K-means, PageRank) or alike (four sorts)' -r -f -a "mixed\t''
alike\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l scale -d 'Scale of what the jobs read and write. At 1 that is about 2.3 GB for mixed and 1.8 GB for alike' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l rounds -d 'Rounds. In each round every arm runs once, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l seed -d 'Seed of the order; by default a random one' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from makespan" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from characterise" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from characterise" -l elevator -d 'Under which elevator' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from characterise" -l program -d 'Only these programs: sort, terasort, wordcount, nutch, pagerank, k-means, bayes, hive' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from characterise" -l scale -d 'Multiplies what they read and write and how long they compute; at 1 all take some five minutes' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from characterise" -l report -d 'Where to write the page with plots' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from characterise" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from characterise" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from characterise" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from characterise" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l profile -d 'Disk to emulate for the neighbours; the burst ends up there' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l elevator -d 'Elevators; each is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l pool-profile -d 'Disk to emulate for the pool' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l megabytes -d 'Size of the burst in megabytes; it is written as eight files' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l seconds -d 'Seconds for which the neighbours work without pauses' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l bursts -d 'Bursts of the neighbours after that. Each is 3 to 6 s long and follows a pause of 4 to 8 s' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l rounds -d 'Rounds. In each round every arm runs once, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l seed -d 'Seed of order, bursts and pauses; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l runs -d 'Write every run to this file, as JSON' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l report -d 'Write an HTML report with plots of the last elevator to this file' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l daemon -d 'Run minervad in all arms. It steers the disk and tells the service when others use it; without it the service reads the disk\'s counters'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-migration" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l pool -d 'Directory for `stable`; without it a disk is emulated' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l pool-profile -d 'Disk to emulate for `stable`' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l megabytes -d 'Size in megabytes of the file that is read and of the one that is written' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l span-ms -d 'Milliseconds of each measurement of random requests' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l rounds -d 'Rounds. In each round everything is measured once, in random order; the medians count. The paper has 100' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l passthrough-hp -d 'Path of libfuse\'s example `passthrough_hp`, 3.17 or later, which lets the kernel read by itself; by default it is searched for in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l seed -d 'Seed of the order; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-throughput" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l tenants -d 'Number of tenants' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l files -d 'Files of all tenants together; the figure has a million' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l idle-seconds -d 'Seconds in which all tenants are idle' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l seconds -d 'Seconds for which the neighbour is measured each time' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l rounds -d 'How often the neighbour is measured beside each kind of hostile tenant, in random order; 0 for not at all' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l pool -d 'Directory for `stable`' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l seed -d 'Seed of the order; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l hostile-only -d 'Do not measure the many tenants'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from cache-tenants" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l kills -d 'Number of kills' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l effect-checks -d 'Number of kills after which it is also measured what tenants of equal weight get' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l effect-seconds -d 'Seconds of each of these measurements' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l effect-error-percent -d 'How far, in percent, a tenant\'s part of the disk may then be from its part before the first kill' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l seed -d 'Seed of the moments at which the daemon is killed; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from kill-restore" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l back-end -d 'Measure these back ends only: bfq, bfq-v1, iocost, max, throttle-v1. Those of the other cgroup version are measured in a guest' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l by -d 'What makes the daemon put everything back: it ends, its mode becomes `shadow`, or a rule excludes the tenants' -r -f -a "end\t''
mode\t''
exclusion\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l rounds -d 'Rounds; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l seconds -d 'Seconds of each of the windows before, during and after' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l no-guest -d 'Do not start the guest in which cgroup v2 is measured if this machine has v1'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from undo-bites" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l arm -d 'Schedulers of the guests\' requests. Each is measured once in each run, in random order' -r -f -a "htbs\t''
noop\t''
pclock\t''
mclock\t''
kernel-bfq\t''
qemu-throttle\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l block -d 'Request size' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l seconds -d 'Seconds to measure in each run, after the first second' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l runs -d 'Runs of each arm' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l readers -d 'Judge what so many sequential readers with equal contracts have together, in place of the four readers: under htbs at least twice what they have under pclock, and 95 % of what the kernel\'s BFQ gives. In each run each of the three is measured once' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l seed -d 'Seed of the order; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l logs -d 'Write the server\'s log of each run to ARM-RUN.csv in this folder' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-contracts" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-endogenic" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-endogenic" -l scale -d 'Scale of the paper\'s bytes and times' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-endogenic" -l level -d 'Level to which one tenant steps back; each is measured' -r -f -a "low\t''
lowest\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-endogenic" -l deadline -d 'What the deadline of the coordinating tenant means: begin by then, or be done by then; each is measured' -r -f -a "begin\t''
done\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-endogenic" -l rounds -d 'Rounds. In each round every arm runs once, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-endogenic" -l seed -d 'Seed of the order; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-endogenic" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-endogenic" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-endogenic" -l no-kernel -d 'Do not measure the kernel\'s BFQ as it is shipped, beside equal weights under the same without `low_latency`'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-endogenic" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-endogenic" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-mix" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-mix" -l arm -d 'Schedulers of the guests\' requests. Each is measured once in each run, in random order' -r -f -a "htbs\t''
noop\t''
pclock\t''
mclock\t''
kernel-bfq\t''
qemu-throttle\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-mix" -l seconds -d 'Seconds to measure in each run, after the first second' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-mix" -l runs -d 'Runs of each arm in guests. 0 for the simulator only' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-mix" -l seed -d 'Seed of the order and of the simulator; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-mix" -l logs -d 'Write the server\'s log of each run to mix-ARM-RUN.csv in this folder' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-mix" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-mix" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-mix" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-mix" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l block -d 'Request size' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l depth -d 'Requests that each program has in flight' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l access -d 'What the programs do, at random places and past their guests\' page caches' -r -f -a "read\t''
write\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l tag-depth -d 'Requests that `tag` has at the disk at once; by default it chooses' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l seconds -d 'Seconds to measure in each run, after the first second' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l runs -d 'Runs of each arm' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l logs -d 'Write the server\'s log of each run to ARM-RUN.csv in this folder' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l seed -d 'Seed of the order; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l no-kernel -d 'Do not measure plain `ionice` levels under the kernel\'s BFQ'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l arm64 -d 'The third guest has arm64 processors, Debian\'s kernel for them, and its busybox\'s `ionice` and `dd` for programs. Without the arm of plain `ionice`'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-tags" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l tag-depth -d 'How many requests `tag` has at the disk at once; each number is measured' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l block -d 'Request size of the programs that read all the time' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l depth -d 'Requests that each of those programs has in flight' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l seconds -d 'Seconds to measure in each run, after the first second' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l runs -d 'Runs in guests. In each run every depth is measured once, in random order. 0 for the simulator only' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l seed -d 'Seed of the order and of the simulator; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from vm-urgent" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l scene -d 'Run this scene only' -r -f -a "proactive\t''
interleave\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l profile -d 'Disks to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l arm -d 'Run these arms only' -r -f -a "equal\t''
fennel\t''
minerva-off\t''
minerva-last\t''
kernel\t''
minerva\t''
oracle\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l like -d 'What is known about the sessions that start together: earlier sessions had the same names, or looked the same but had no names, or there were none like them' -r -f -a "named\t''
unnamed\t''
unseen\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l pairs -d 'Pairs. In each pair every arm runs the same random sessions once, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l scale -d 'Scale of the paper\'s bytes on a rotational disk; on an SSD they are three times as many' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l seed -d 'Seed of everything random; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l folder -d 'Keep every run in this folder, with what the daemon learnt before it. Runs that are there already are not repeated, so an interrupted measurement can be continued with the same seed' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l runs-max -d 'Make at most this many runs now' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l seconds -d 'Seconds for which phases are learnt in the scene of bursts; as many again are compared' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand figure; and __fish_seen_subcommand_from worth" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "endogenic" -d 'Malensek et al. 2016, Fig. 2: four tenants start together, one steps back, one coordinates'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "makespan" -d 'Matteussi and Geyer 2018: batch jobs that share a disk, all at once or the shortest first'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "characterise" -d 'Matteussi and Geyer 2018: what eight kinds of batch programs do to a disk, beside what the daemon says of their runs'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "proactive" -d 'Malensek et al. 2016, Fig. 3-a against 3-b: four tenants start together, after earlier sessions like theirs'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "interleave" -d 'Malensek et al. 2016, Fig. 3-d against 3-e: two tenants alternate between the disk and other work'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "htbs" -d 'Rocha and Bona 2012: contracts of synchronous readers, one per guest, and what the contracts cost in throughput; in guests and in the simulator'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "tag" -d 'Bai and Huang: priorities of programs in different guests; in guests and in the simulator'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and not __fish_seen_subcommand_from endogenic makespan characterise proactive interleave htbs tag table" -f -a "table" -d 'Run scene one and Fig. 2 at every scale, level and meaning of the deadline, and write a table of all tenants as JSON and text'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l scale -d 'Scale of the paper\'s bytes and times. At 1, two runs take a quarter of an hour' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l report -d 'File for the HTML report with plots' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from endogenic" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l elevator -d 'Elevators to measure' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l jobs -d 'Jobs to run: mixed (TeraSort, Sort, WordCount, K-means, PageRank) or alike (four sorts)' -r -f -a "mixed\t''
alike\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l scale -d 'Scale of what the jobs read and write. At 1 that is about 2.3 GB for mixed and 1.8 GB for alike' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l rounds -d 'Rounds. In each round every arm runs once, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l seed -d 'Seed of the order; by default a random one' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from makespan" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l profile -d 'Which disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l elevator -d 'Under which elevator' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l program -d 'Only these programs: sort, terasort, wordcount, nutch, pagerank, k-means, bayes, hive' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l scale -d 'Multiplies what they read and write and how long they compute; at 1 all take some five minutes' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l report -d 'Where to write the page with plots' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from characterise" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l profile -d 'Disks to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l arm -d 'Run these arms only' -r -f -a "equal\t''
fennel\t''
minerva-off\t''
minerva-last\t''
kernel\t''
minerva\t''
oracle\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l like -d 'What is known about the sessions that start together: earlier sessions had the same names, or looked the same but had no names, or there were none like them' -r -f -a "named\t''
unnamed\t''
unseen\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l pairs -d 'Pairs. In each pair every arm runs the same random sessions once, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l scale -d 'Scale of the paper\'s bytes on a rotational disk; on an SSD they are three times as many' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l seed -d 'Seed of everything random; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l folder -d 'Keep every run in this folder, with what the daemon learnt before it. Runs that are there already are not repeated, so an interrupted measurement can be continued with the same seed' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l runs-max -d 'Make at most this many runs now' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l seconds -d 'Seconds for which phases are learnt in the scene of bursts; as many again are compared' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l plot -d 'Where to write the plot, as SVG. There is one file per disk; its name goes before the file name\'s ending' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from proactive" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l profile -d 'Disks to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l arm -d 'Run these arms only' -r -f -a "equal\t''
fennel\t''
minerva-off\t''
minerva-last\t''
kernel\t''
minerva\t''
oracle\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l like -d 'What is known about the sessions that start together: earlier sessions had the same names, or looked the same but had no names, or there were none like them' -r -f -a "named\t''
unnamed\t''
unseen\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l pairs -d 'Pairs. In each pair every arm runs the same random sessions once, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l scale -d 'Scale of the paper\'s bytes on a rotational disk; on an SSD they are three times as many' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l seed -d 'Seed of everything random; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l folder -d 'Keep every run in this folder, with what the daemon learnt before it. Runs that are there already are not repeated, so an interrupted measurement can be continued with the same seed' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l runs-max -d 'Make at most this many runs now' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l seconds -d 'Seconds for which phases are learnt in the scene of bursts; as many again are compared' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l plot -d 'Where to write the plot, as SVG. There is one file per disk; its name goes before the file name\'s ending' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from interleave" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l arm -d 'Schedulers of the four jobs\' requests' -r -f -a "pclock\t''
htbs\t''
mclock\t''
kernel-bfq\t''
noop\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l readers -d 'Numbers of sequential readers; each is measured under pclock, htbs and the kernel\'s BFQ. 0 skips that' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l report -d 'File for the HTML report with plots' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l rounds -d 'Rounds. In each round every arm runs once, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l seconds -d 'Seconds of each run, after the first second' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l block -d 'Request size' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l seed -d 'Seed of the order and of the simulator; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from htbs" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l profile -d 'Profile of the disk to emulate. The paper\'s flash disk is faster than processors that are emulated in software' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l arm -d 'Schedulers of the requests' -r -f -a "noop\t''
kernel-bfq\t''
tag\t''"
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l depth -d 'Requests that each program has in flight. The paper\'s programs read ahead through their guest\'s page cache' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l tag-depth -d 'Requests that `tag` has at the disk at once; by default it chooses' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l report -d 'File for the HTML report with plots' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l rounds -d 'Rounds. In each round every arm runs once, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l seconds -d 'Seconds of each run, after the first second' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l block -d 'Request size' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l seed -d 'Seed of the order and of the simulator; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from tag" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l profile -d 'Profile of the disk to emulate' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l scale -d 'Scales of bytes and times; each is measured. At 1 a run takes seven minutes, and a round has seven runs' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l rounds -d 'Rounds. In each round every arm runs once, in random order; the medians count' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l seed -d 'Seed of the order; by default a random one, which is printed' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l folder -d 'Folder for `table.json` and `table.txt`, which are rewritten after each scene' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l binaries -d 'Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l minervad -d 'Path of the daemon, if it is not beside the other programs' -r -F
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -l json -d 'Print JSON, one object per line'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand reproduce; and __fish_seen_subcommand_from table" -s h -l help -d 'Print help'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand sweep" -l prefix -d 'Only those whose name starts with this' -r
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand sweep" -l json -d 'Print JSON'
complete -c minerva-lab -n "__fish_minerva_lab_using_subcommand sweep" -s h -l help -d 'Print help'
