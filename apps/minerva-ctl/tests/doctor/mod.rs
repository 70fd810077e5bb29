//! What the doctor says of disks and slices, and what it proves and compares on a real one.

use crate::{Loop, place, text, tool, until};
use std::fs;
use std::path::Path;
use std::process::Command;

#[test]
fn the_doctor_names_slices_that_hide_their_services() {
    let directory = tempfile::tempdir().expect("a directory");
    let cgroups = directory.path().join("cgroup");
    let groups =
        [("", "io memory\n"), ("system.slice", ""), ("system.slice/a.service", ""), ("system.slice/b.service", "")];
    for (group, enabled) in groups {
        fs::create_dir_all(cgroups.join(group)).expect("a group");
        fs::write(cgroups.join(group).join("cgroup.subtree_control"), enabled).expect("written");
    }
    fs::write(cgroups.join("cgroup.controllers"), "io memory\n").expect("written");
    let file = directory.path().join("minerva.toml");
    fs::write(&file, format!("[daemon]\ncgroup_root = {cgroups:?}\n")).expect("written");
    let output = tool(directory.path(), &["doctor"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    let at = told.find("slice system.slice: its services are not told apart").expect(&told);
    assert!(told[at..].contains("system.slice holds 2 groups that io does not reach"), "{told}");
    assert!(
        told[at..].contains("to do: set DefaultIOAccounting=yes in /etc/systemd/system.conf.d/minerva.conf"),
        "{told}"
    );
}

#[test]
fn a_disk_that_is_only_to_be_watched_or_that_the_daemon_does_not_look_at_is_no_finding() {
    let directory = tempfile::tempdir().expect("a directory");
    let cgroups = directory.path().join("cgroup");
    fs::create_dir(&cgroups).expect("a directory");
    for file in ["cgroup.subtree_control", "cgroup.controllers"] {
        fs::write(cgroups.join(file), "io memory\n").expect("written");
    }
    let doctor = |arguments: &[&str], of_daemon: &str, tables: &str| {
        let settings = format!("[daemon]\ncgroup_root = {cgroups:?}\n{of_daemon}{tables}");
        fs::write(directory.path().join("minerva.toml"), settings).expect("written");
        let output = tool(directory.path(), &[&["--json", "doctor"], arguments].concat());
        let told = text(&output.stdout);
        let lines = told.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an object"));
        let disks: Vec<String> = lines
            .filter(|line| line["kind"] == "disk" && line["bites"] == false)
            .map(|line| line["disk"].as_str().expect("a name").to_owned())
            .collect();
        (output.status.code(), disks)
    };
    let (code, disks) = doctor(&[], "", "");
    // Loop devices are other tests', which come and go, and change what they are.
    let Some(disk) = disks.into_iter().find(|disk| !disk.starts_with("loop")) else {
        return eprintln!("skipped: needs a disk on which no weight bites");
    };
    assert_eq!(code, Some(1));
    let is_said = |arguments: &[&str], of_daemon: &str, tables: &str| {
        let (code, disks) = doctor(arguments, of_daemon, tables);
        assert!(disks.contains(&disk), "{disks:?}");
        code
    };
    let (only, elsewhere) = (format!("devices_only = [{disk:?}]\n"), "devices_only = [\"none\"]\n");
    let watched = format!("[devices.{disk}]\nback_end = \"observe\"\n");
    assert_eq!(is_said(&[], &only, ""), Some(1));
    assert_eq!(is_said(&[], &only, &watched), Some(0));
    assert_eq!(is_said(&[], elsewhere, ""), Some(0));
    assert_eq!(is_said(&["--device", &disk], elsewhere, ""), Some(1), "unless it is asked for");
}

#[test]
fn the_probe_leaves_nothing_behind() {
    let directory = place("minerva");
    let Some(disk) = Loop::new(directory.path(), "probe") else { return };
    let (directory, name) = (directory.path(), disk.0.as_str());
    if !disk.set_elevator("none") {
        return;
    }
    let before = tool(directory, &["--json", "doctor", "--device", name]);
    assert_eq!(before.status.code(), Some(1), "{}", text(&before.stderr));
    let line: serde_json::Value = serde_json::from_slice(&before.stdout).expect("one object");
    assert_eq!(line["bites"], false);
    assert!(line["remedy"].is_string(), "{line}");
    if !disk.set_elevator("bfq") {
        return;
    }
    // What a killed probe left is gone with the next one. No process has a number above the kernel's greatest.
    let left = Path::new("/sys/fs/cgroup/blkio/minerva-probe-4194305");
    if left.parent().is_some_and(|root| root.join("cgroup.procs").exists()) {
        fs::create_dir_all(left.join("reader-800")).expect("a group");
    }
    fs::create_dir_all(directory.join("run/minerva-probe-4194305")).expect("a directory");
    kill_a_probe(directory, name);
    // The disk lies in memory: on a busy machine the readers wait for processors for a whole second, and weights have nothing to divide.
    let by_weight = || {
        let probe = tool(directory, &["--json", "doctor", "--device", name, "--probe", "--seconds", "1s"]);
        let lines: Vec<serde_json::Value> =
            text(&probe.stdout).lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
        assert_eq!(lines[0]["bites"], true, "{}", text(&probe.stderr));
        let [heavy, light] = [0, 1].map(|index| lines[1]["bytes"][index].as_u64().expect("a number"));
        assert!(light > 0, "{}", lines[1]);
        heavy > light
    };
    assert!((0..4).any(|_| by_weight()), "weights divide nothing");
    // Caps are proved as well, where the file asks for them.
    let config = directory.join("minerva.toml");
    let before = fs::read_to_string(&config).unwrap_or_default();
    fs::write(&config, format!("{before}\n[devices.{name}]\nback_end = \"throttle-v1\"\n")).expect("a file");
    if left.with_file_name("cgroup.procs").exists() {
        let probe = tool(directory, &["--json", "doctor", "--device", name, "--probe", "--seconds", "1s"]);
        let last = text(&probe.stdout).lines().last().map(str::to_owned).unwrap_or_default();
        let line: serde_json::Value = serde_json::from_str(&last).unwrap_or_else(|_| panic!("{}", text(&probe.stderr)));
        assert_eq!((&line["knob"], &line["bites"]), (&"cap".into(), &true.into()), "{line}");
        assert!(line["got_ratio"].as_f64() > Some(2.4), "{line}");
    }
    for at in ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup", directory.join("run").to_str().expect("a path")] {
        let left = fs::read_dir(at).into_iter().flatten().flatten().map(|entry| entry.file_name());
        let is_ended = |name: &str| !Path::new("/proc").join(name).exists();
        // Other tests probe at the same time.
        let left: Vec<_> =
            left.filter(|name| name.to_string_lossy().strip_prefix("minerva-probe-").is_some_and(is_ended)).collect();
        assert!(left.is_empty(), "{left:?} in {at}");
    }
}

#[test]
fn a_reader_whose_probe_is_gone_before_it_began_does_not_read() {
    let job = |probe: u32| {
        format!(
            r#"[{probe}, {{"start": 0, "length": 4096, "read_bytes": 4096, "depth": 1, "random_seed": null, "duration_milliseconds": 1}}]"#
        )
    };
    let read = |probe: u32| {
        let mut reader = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
        reader.args(["probe-reader", "/nonexistent", &job(probe)]).output().expect("the tool")
    };
    // Not even the disk is opened for a probe that is not the parent; for one that is, this one cannot be.
    let gone = read(std::process::id() + 1);
    assert!(gone.status.success() && gone.stdout.is_empty(), "{}", text(&gone.stderr));
    let there = text(&read(std::process::id()).stderr);
    assert!(there.contains("failed to open /nonexistent"), "{there}");
}

/// Its readers end with it; what else it leaves is for the next one.
fn kill_a_probe(directory: &Path, name: &str) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
    command.arg("--config").arg(directory.join("minerva.toml"));
    command.args(["doctor", "--device", name, "--probe", "--seconds", "600"]).stdout(std::process::Stdio::null());
    let mut probe = command.spawn().expect("the tool");
    let group = Path::new("/sys/fs/cgroup/blkio").join(format!("minerva-probe-{}", probe.id()));
    if !group.with_file_name("cgroup.procs").exists() {
        probe.kill().and_then(|()| probe.wait()).expect("an end");
        return;
    }
    let readers = || fs::read_to_string(group.join("reader-100/cgroup.procs")).unwrap_or_default();
    until("the probe reads", || !readers().is_empty());
    probe.kill().and_then(|()| probe.wait()).expect("an end");
    until("its readers have ended", || readers().is_empty());
}

/// The disk's elevator, settings that go with it, and the weight that a group has for it alone.
fn state(disk: &str, group: &Path) -> [String; 4] {
    let queue = Path::new("/sys/block").join(disk).join("queue");
    let files = [queue.join("scheduler"), queue.join("nr_requests"), queue.join("iosched/slice_idle")];
    let [elevator, requests, idle] = files.map(|file| fs::read_to_string(file).unwrap_or_default());
    [elevator, requests, idle, fs::read_to_string(group.join("blkio.bfq.weight_device")).unwrap_or_default()]
}

struct Group(std::path::PathBuf);

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_comparison_tries_every_elevator_and_puts_all_back() {
    let directory = place("minerva");
    let directory = directory.path();
    if !Path::new("/sys/fs/cgroup/blkio/cgroup.procs").exists() {
        return eprintln!("skipped: needs the blkio controller of cgroup v1");
    }
    let Some(disk) = Loop::new(directory, "compare") else { return };
    if !disk.set_elevator("bfq") {
        return;
    }
    let name = disk.0.as_str();
    let group =
        Group(Path::new("/sys/fs/cgroup/blkio").join(format!("minerva-test-ctl-compare-{}", std::process::id())));
    fs::create_dir(&group.0).expect("a group");
    let number = fs::read_to_string(format!("/sys/block/{name}/dev")).expect("its number");
    fs::write(group.0.join("blkio.bfq.weight_device"), format!("{} 700", number.trim())).expect("a weight");
    fs::write(format!("/sys/block/{name}/queue/nr_requests"), "77").expect("a setting");
    fs::write(format!("/sys/block/{name}/queue/iosched/slice_idle"), "3").expect("a setting");
    let before = state(name, &group.0);
    let run = |more: &[&str]| {
        let compare = ["--json", "doctor", "--device", name, "--compare", "--seconds", "300ms", "--rounds", "1"];
        tool(directory, &[&compare[..], more].concat())
    };

    let only_this = run(&[]);
    let told = arms(&only_this.stdout);
    assert_eq!(told, ["bfq low_latency 0", "bfq weighed low_latency 0"], "{}", text(&only_this.stderr));
    let all = run(&["--change-elevator"]);
    let told = arms(&all.stdout);
    let settings = ["", " low_latency 0", " strict", " low_latency 0 strict"].map(|more| format!("bfq weighed{more}"));
    let elevators =
        ["none", "none capped", "mq-deadline", "mq-deadline capped", "bfq low_latency 0"].map(str::to_owned);
    for arm in elevators.into_iter().chain(settings) {
        assert!(told.contains(&arm), "{arm} is not among {told:?}: {}", text(&all.stderr));
    }
    assert_eq!(state(name, &group.0), before);

    // One that is interrupted puts all back by itself; of one that is killed, a restore does.
    for (signal, restores) in [("-INT", false), ("-KILL", true)] {
        let mut compare = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
        compare.arg("--config").arg(directory.join("minerva.toml"));
        compare.args([
            "doctor",
            "--device",
            name,
            "--compare",
            "--change-elevator",
            "--seconds",
            "1s",
            "--rounds",
            "100",
        ]);
        let mut compare = compare.stderr(std::process::Stdio::null()).spawn().expect("the tool");
        until("the elevator is another", || state(name, &group.0)[0] != before[0]);
        let sent = Command::new("kill").args([signal, &compare.id().to_string()]).status().expect("kill");
        assert!(sent.success());
        compare.wait().expect("an end");
        if restores {
            assert_ne!(state(name, &group.0), before);
            let restored = tool(directory, &["restore"]);
            assert!(restored.status.success(), "{}", text(&restored.stderr));
        }
        assert_eq!(state(name, &group.0), before, "after {signal}");
    }
}

/// The arms that a comparison told, in order of the kernel's list; each must have read.
fn arms(stdout: &[u8]) -> Vec<String> {
    let lines = text(stdout);
    let lines = lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an object"));
    let arms = lines.filter(|line| line["kind"] == "compare").map(|line| {
        for rate in ["heavy_bytes_per_second", "light_reads_per_second", "light_p99_ns"] {
            assert!(line[rate][0].as_f64() > Some(0.0), "{line}");
        }
        let words = [
            (line["weighed"] == true, " weighed"),
            (line["knob"] == "caps", " capped"),
            (line["low_latency"] == false, " low_latency 0"),
            (line["strict_guarantees"] == true, " strict"),
        ];
        let words = words.into_iter().filter_map(|(is_so, word)| is_so.then_some(word));
        std::iter::once(line["elevator"].as_str().expect("a name")).chain(words).collect()
    });
    arms.collect()
}
