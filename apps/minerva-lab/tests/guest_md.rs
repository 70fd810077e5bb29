//! Real md arrays, which are in the guest's kernel: a resync that the kernel began and a check run while nobody else uses the array, and
//! its speeds are put back.

mod guest_program;

use guest_program::program;
use minerva_lab::guest::Guest;
use std::time::Duration;

/// Generous: processors are emulated and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(400);

/// A mirror of two disks whose kernel resyncs it at 2,000 KiB a second.
const SCRIPT: &str = r#"
# Of the whole host, as the array takes none of its own before it runs.
echo 2000 > /proc/sys/dev/raid/speed_limit_max
echo md0 > /sys/module/md_mod/parameters/new_array
cd /sys/block/md0/md
echo none > metadata_version
echo raid1 > level
echo 2 > raid_disks
echo 49152 > component_size
for disk in a b; do
    cat /sys/block/vd$disk/dev > new_dev
    echo 49152 > dev-vd$disk/size
done
echo 0 > dev-vda/slot
echo 1 > dev-vdb/slot
echo 0 > resync_start
echo active > array_state
echo "array: $(cat array_state) $(cat level)"
tries=0
until [ $(cat sync_action) = resync ] || [ $tries -ge 60 ]; do sleep 0.5; tries=$((tries + 1)); done
echo "action: $(cat sync_action)"
mkdir -p /sys/fs/cgroup/t/a
echo +io > /sys/fs/cgroup/t/cgroup.subtree_control
cat > /etc/minerva-test.toml <<END
mode = "shadow"
[daemon]
include = ["t/*"]
devices_only = ["md0"]
guard = false
END
start() {
    minervad --config /etc/minerva-test.toml 2>> /tmp/log &
    daemon=$!
    tries=0
    # 2: there is no daemon yet; 1: it found something.
    until minerva-ctl status > /dev/null 2>&1 || [ $? -eq 1 ] || [ $tries -ge 60 ]; do sleep 1; tries=$((tries + 1)); done
}
read_all() {
    sh -c 'echo $$ > /sys/fs/cgroup/t/a/cgroup.procs
        while :; do dd if=/dev/md0 of=/dev/null bs=256k count=64 iflag=direct 2> /dev/null; done' &
    reader=$!
}
until_max() {
    tries=0
    until [ "$(cat sync_speed_max)" = "$1" ] || [ $tries -ge 240 ]; do sleep 0.5; tries=$((tries + 1)); done
}
start
read_all
minerva-ctl background add --name sync --kind md-resync --path /dev/md0 --sla 1d
until_max "1 (local)"
echo "beside others: $(cat sync_speed_max), $(cat sync_speed_min)"
kill $reader
until_max "2000 (system)"
echo "in a gap: $(cat sync_speed_max), $(cat sync_speed_min)"
read_all
until_max "1 (local)"
kill $daemon
wait $daemon
echo "without a daemon: $(cat sync_speed_max), $(cat sync_speed_min)"
start
until_max "1 (local)"
kill -9 $daemon
wait $daemon
echo "after a kill: $(cat sync_speed_max), $(cat sync_speed_min)"
echo "restored: $(minerva-ctl --config /etc/minerva-test.toml restore 2>&1 | grep speeds)"
echo "put back: $(cat sync_action) $(cat sync_speed_max), $(cat sync_speed_min)"
kill $reader
start
until_done() {
    tries=0
    until minerva-ctl --json background list | grep "\"name\":\"$1\"" | grep -q '"state":"\(done\|failed\)"' || [ $tries -ge 120 ]; do
        sleep 1; tries=$((tries + 1))
    done
    minerva-ctl background explain $1 | sed "s/^/$1 /"
}
until_done sync
echo "at the end: $(cat sync_action) $(cat sync_speed_max), $(cat sync_speed_min)"
echo "nothing: $(minerva-ctl background add --name no --kind md-resync --path /dev/md0 2>&1)"
minerva-ctl background add --name compare --kind md-check --path /dev/md0 --sla 1d
until_done compare
kill $daemon
wait $daemon
tail -n 30 /tmp/log >&2
"#;

#[test]
fn a_resync_and_a_check_of_a_real_array_run_in_gaps_and_its_speeds_are_put_back() {
    let folder = tempfile::tempdir().unwrap();
    let (Some(minervad), Some(tool)) = (program("minervad", folder.path()), program("minerva-ctl", folder.path()))
    else {
        println!("skipped: needs minervad and minerva-ctl built beside minerva-lab, and `strip`");
        return;
    };
    let guest = Guest::builder().memory_mib(1024).cpus(2).disk_mib(64).disk_mib(64);
    let guest = guest.with_module("md_mod", "").with_module("raid1", "").with_binary(&minervad).with_binary(&tool);
    let output = match guest.run(SCRIPT, TIMEOUT) {
        Ok(output) => output,
        Err(error) if error.is_missing() => {
            println!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let context = format!("{}\n{}\n{}", output.stdout, output.stderr, output.console);
    let line = |start: &str| {
        let found = output.stdout.lines().find_map(|line| line.strip_prefix(start));
        found.unwrap_or_else(|| panic!("no line `{start}` in\n{context}")).trim().to_owned()
    };
    assert_eq!(line("action:"), "resync", "{context}");
    assert_eq!(line("beside others:"), "1 (local), 1 (local)", "{context}");
    assert_eq!(line("in a gap:"), "2000 (system), 1000 (system)", "{context}");
    assert_eq!(line("without a daemon:"), "2000 (system), 1000 (system)", "{context}");
    assert_eq!(line("after a kill:"), "1 (local), 1 (local)", "{context}");
    assert!(line("restored:").starts_with("put the speeds of /dev/md0 back"), "{context}");
    assert_eq!(line("put back:"), "resync 2000 (system), 1000 (system)", "{context}");
    assert_eq!(line("at the end:"), "idle 2000 (system), 1000 (system)", "{context}");
    assert!(line("nothing:").contains("there is nothing to resync: the array is idle"), "{context}");
    assert!(line("sync   state").starts_with("done"), "{context}");
    assert_eq!(line("sync   message"), "all copies are there", "{context}");
    assert!(line("compare   state").starts_with("done"), "{context}");
    assert_eq!(line("compare   message"), "0 sectors differ between copies", "{context}");
}
