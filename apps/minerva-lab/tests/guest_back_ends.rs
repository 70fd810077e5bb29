//! The back ends of cgroup v2 on a real kernel: in a guest the daemon steers a virtio disk through `io.bfq.weight`, through
//! `io.weight` with iocost and through `io.max`, and at its end everything is as it was.

mod guest_program;

use guest_program::program;
use minerva_lab::guest::Guest;
use std::time::Duration;

/// Generous: processors are emulated and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(400);

/// Two readers in cgroups of their own; `steer` runs the daemon with a back end until the files of both show the disk, and prints how
/// all files read while it runs and after it ended.
const SCRIPT: &str = r#"
cd /sys/fs/cgroup
mkdir -p t/a t/b
echo +io > t/cgroup.subtree_control
reader() {
    sh -c 'echo $$ > t/'$1'/cgroup.procs; while :; do dd if=/dev/vda of=/dev/null bs=256k iflag=direct 2>/dev/null; done' &
}
reader a
reader b
show() {
    for file in $2; do
        echo "$1 $file: $(tr '\n' ';' < $file)"
    done
}
steered() {
    for file in $1; do
        grep -q '254:0 .*[0-9]' $file || return 1
    done
}
steer() {
    cat > /etc/minerva-test.toml <<END
mode = "enforce"
[daemon]
include = ["t/*"]
devices_only = ["vda"]
[devices.vda]
$2
END
    minervad --config /etc/minerva-test.toml 2> /tmp/log &
    daemon=$!
    tries=0
    until steered "$3" || [ $tries -ge 120 ]; do sleep 1; tries=$((tries + 1)); done
    show "$1 held" "$4"
    kill $daemon
    wait $daemon
    echo "$1 ended: $?"
    show "$1 after" "$4"
    [ $tries -lt 120 ] || tail -n 20 /tmp/log >&2
}
steer bfq 'elevator = "bfq"' "t/a/io.bfq.weight t/b/io.bfq.weight" "t/a/io.bfq.weight t/b/io.bfq.weight /sys/block/vda/queue/scheduler"
steer iocost 'enable_iocost = true' "t/a/io.weight t/b/io.weight" "t/a/io.weight t/b/io.weight io.cost.qos"
# Nobody is capped where all get what their shares say, so that one takes more.
for _ in 1 2 3; do reader a; done
steer max 'back_end = "max"' "t/a/io.max t/b/io.max" "t/a/io.max t/b/io.max"
# As systemd leaves it: io reaches the slice and not what is in it.
mkdir -p system.slice/web.service system.slice/database.service
printf '[daemon]\ndevices_only = ["vda"]\n' > /etc/minerva-test.toml
timeout 60 minervad --config /etc/minerva-test.toml --slices 2 2>&1 | grep -o 'system.slice holds .* that io does not reach' | head -1
"#;

#[test]
fn the_daemon_steers_through_every_back_end_of_v2_and_puts_everything_back() {
    let folder = tempfile::tempdir().unwrap();
    let Some(minervad) = program("minervad", folder.path()) else {
        println!("skipped: needs minervad built beside minerva-lab, and `strip`");
        return;
    };
    let guest = Guest::builder().memory_mib(1024).cpus(2).disk_mib(64).with_binary(&minervad);
    let output = match guest.run(SCRIPT, TIMEOUT) {
        Ok(output) => output,
        Err(error) if error.is_missing() => {
            println!("skipped: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let line = |start: &str| {
        let found = output.stdout.lines().find(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no line `{start}` in\n{}\n{}", output.stdout, output.stderr)).to_owned()
    };
    line("system.slice holds 2 groups that io does not reach");
    for name in ["bfq", "iocost", "max"] {
        assert!(line(&format!("{name} ended")).ends_with(": 0"), "{output:?}");
    }
    for (held, file) in [("bfq", "io.bfq.weight"), ("iocost", "io.weight"), ("max", "io.max")] {
        for tenant in ["a", "b"] {
            let during = line(&format!("{held} held t/{tenant}/{file}"));
            let after = line(&format!("{held} after t/{tenant}/{file}"));
            assert!(during.contains("254:0 "), "{during}\n{}", output.stderr);
            assert!(!after.contains("254:0 "), "{after}\n{}", output.stderr);
        }
    }
    assert!(line("bfq held /sys/block/vda/queue/scheduler").contains("[bfq]"), "{output:?}");
    assert!(!line("bfq after /sys/block/vda/queue/scheduler").contains("[bfq]"), "{output:?}");
    assert!(line("iocost held io.cost.qos").contains("enable=1"), "{output:?}");
    assert!(!line("iocost after io.cost.qos").contains("enable=1"), "{output:?}");
}
