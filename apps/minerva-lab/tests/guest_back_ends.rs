//! The back ends of cgroup v2 on a real kernel: in a guest the daemon steers a virtio disk through `io.bfq.weight`, through
//! `io.weight` with iocost and through `io.max`, and at its end everything is as it was.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says why by panicking")]

mod guest_program;

use guest_program::program;
use minerva_lab::guest::Guest;
use std::time::Duration;

/// Generous: processors are emulated and the machine may be busy.
const TIMEOUT: Duration = Duration::from_secs(400);

/// First the doctor proves that caps and iocost bite on an idle disk. Then there are readers in two cgroups; `steer` runs the daemon with a
/// back end until the files of both show the disk, prints what both read and how all files read while it runs and after it ended.
///
/// The disk is as fast as the emulated processors: BFQ gives twice as much by a weight of 800 there (docs/operator.md), and iocost
/// needs a model of a slower disk, as else nobody waits.
const SCRIPT: &str = r#"
cd /sys/fs/cgroup
mkdir -p t/a t/b
echo +io > t/cgroup.subtree_control
echo '254:0 ctrl=user model=linear rbps=16000000 rseqiops=250 rrandiops=250 wbps=16000000 wseqiops=250 wrandiops=250' > io.cost.model
echo '254:0 enable=0 ctrl=user rpct=0 rlat=250000 wpct=0 wlat=250000 min=100 max=100' > io.cost.qos
# At most five times, as a busy machine may hold up one of the readers.
probe() {
    printf '[daemon]\ndevices_only = ["vda"]\n[devices.vda]\n%s\n' "$2" > /etc/minerva-test.toml
    for _ in 1 2 3 4 5; do
        minerva-ctl --config /etc/minerva-test.toml --json doctor --device vda --probe --seconds 1s > /tmp/probe
        ! tail -n 1 /tmp/probe | grep -q '"bites":true' || break
    done
    echo "$1 probed: $(tail -n 1 /tmp/probe)"
}
probe max 'back_end = "max"'
echo '254:0 enable=1' > io.cost.qos
probe iocost 'enable_iocost = true'
echo '254:0 enable=0' > io.cost.qos
echo "probes left: $(ls -d minerva-probe-* /run/minerva/minerva-probe-* 2>/dev/null)"
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
bytes() { sed -n 's/^254:0 rbytes=\([0-9]*\).*/\1/p' t/$1/io.stat; }
# What both read in two seconds; at most five times, until it is as expected, as a busy machine may hold up one of them for a while.
window() {
    for _ in 1 2 3 4 5; do
        a=$(bytes a); b=$(bytes b)
        sleep 2
        a=$(( $(bytes a) - a )); b=$(( $(bytes b) - b ))
        [ $(( $2 )) -eq 0 ] || break
    done
    echo "$1: $a $b"
}
steer() {
    cat > /etc/minerva-test.toml <<END
mode = "enforce"
[daemon]
include = ["t/*"]
devices_only = ["vda"]
[fennel]
share_heavy = 50
[devices.vda]
$2
[[rules]]
pattern = "t/a"
name = "a"
weight_percent = 800
END
    minervad --config /etc/minerva-test.toml 2> /tmp/log &
    daemon=$!
    tries=0
    until steered "$3" || [ $tries -ge 120 ]; do sleep 1; tries=$((tries + 1)); done
    show "$1 held" "$4"
    window "$1 steered" '2 * a > 3 * b'
    kill $daemon
    wait $daemon
    echo "$1 ended: $?"
    show "$1 after" "$4"
    window "$1 undone" '10 * a < 13 * b && 10 * b < 13 * a'
    [ $tries -lt 120 ] || tail -n 20 /tmp/log >&2
}
# The elevator that is there already: with one that goes, every weight would go. One reader a group, as with two that read the same places
# BFQ gave the lighter group more in two runs of four.
echo bfq > /sys/block/vda/queue/scheduler
echo 0 > /sys/block/vda/queue/iosched/low_latency
steer bfq '' "t/a/io.bfq.weight t/b/io.bfq.weight" "t/a/io.bfq.weight t/b/io.bfq.weight"
echo none > /sys/block/vda/queue/scheduler
# iocost passes on to the other what a single reader leaves unused of its part.
reader a
reader b
steer iocost 'enable_iocost = true' "t/a/io.weight t/b/io.weight" "t/a/io.weight t/b/io.weight io.cost.qos"
steer max 'back_end = "max"
elevator = "mq-deadline"
bandwidth_bytes_per_second = "16MB"' "t/a/io.max t/b/io.max" "t/a/io.max t/b/io.max /sys/block/vda/queue/scheduler"
# As systemd leaves it: io reaches the slice and not what is in it.
mkdir -p system.slice/web.service system.slice/database.service
printf '[daemon]\ndevices_only = ["vda"]\n' > /etc/minerva-test.toml
timeout 60 minervad --config /etc/minerva-test.toml --slices 2 2>&1 | grep -o 'system.slice holds .* that io does not reach' | head -1
"#;

/// What both read in the window of this name, in bytes.
fn bytes(line: &str) -> [u64; 2] {
    let numbers = line.rsplit_once(": ").map(|(_, numbers)| numbers).unwrap_or_default();
    let numbers: Vec<u64> = numbers.split(' ').map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

#[test]
fn the_daemon_steers_through_every_back_end_of_v2_and_puts_everything_back() {
    let folder = tempfile::tempdir().unwrap();
    let programs = ["minervad", "minerva-ctl"].map(|name| program(name, folder.path()));
    let [Some(minervad), Some(tool)] = programs else {
        println!("skipped: needs minervad and minerva-ctl built beside minerva-lab, and `strip`");
        return;
    };
    let guest = Guest::builder().memory_mib(1024).cpus(2).disk_mib(64).with_binary(&minervad).with_binary(&tool);
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
    for (name, knob) in [("max", "cap"), ("iocost", "weight")] {
        let probed = line(&format!("{name} probed: "));
        let probed: serde_json::Value = serde_json::from_str(probed.split_once(": ").unwrap().1).unwrap();
        let told = (probed["back_end"].as_str(), probed["knob"].as_str(), probed["bites"].as_bool());
        assert_eq!(told, (Some(name), Some(knob), Some(true)), "{probed}\n{}", output.stderr);
    }
    assert_eq!(line("probes left"), "probes left: ");
    for (name, file) in [("bfq", "io.bfq.weight"), ("iocost", "io.weight"), ("max", "io.max")] {
        assert!(line(&format!("{name} ended")).ends_with(": 0"), "{output:?}");
        for tenant in ["a", "b"] {
            let during = line(&format!("{name} held t/{tenant}/{file}"));
            let after = line(&format!("{name} after t/{tenant}/{file}"));
            assert!(during.contains("254:0 "), "{during}\n{}", output.stderr);
            assert!(!after.contains("254:0 "), "{after}\n{}", output.stderr);
        }
        // By effect too: a weight that is gone from the file may be in force.
        let [steered, undone] = ["steered", "undone"].map(|phase| bytes(&line(&format!("{name} {phase}"))));
        assert!(2 * steered[0] > 3 * steered[1], "{name}: {steered:?}");
        assert!(10 * undone[0] < 13 * undone[1] && 10 * undone[1] < 13 * undone[0], "{name}: {undone:?}");
        // A cap that is left would hold both alike.
        assert!(name == "bfq" || undone[1] > 10 * steered[1], "{name}: {steered:?}, {undone:?}");
    }
    assert!(line("max held /sys/block/vda/queue/scheduler").contains("[mq-deadline]"), "{output:?}");
    assert!(line("max after /sys/block/vda/queue/scheduler").contains("[none]"), "{output:?}");
    assert!(line("iocost held io.cost.qos").contains("enable=1"), "{output:?}");
    assert!(!line("iocost after io.cost.qos").contains("enable=1"), "{output:?}");
}
