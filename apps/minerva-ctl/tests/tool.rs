//! What the tool does without a daemon.

#![expect(clippy::expect_used, reason = "a test bed that cannot be made is a failed test")]

mod doctor;
mod live;
mod rm;
mod trouble;
mod unanswered;

use minerva_engine::Engine;
use minerva_model::{Effect, EngineConfig, Event, Finding, FindingKind, Nanos};
use minerva_store::Recorder;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

fn tool(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
    command.arg("--config").arg(directory.join("minerva.toml")).args(arguments);
    command.current_dir(directory).output().expect("the tool")
}

/// Polls until it holds.
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A directory with an operator's file that keeps everything inside it.
fn place(parent: &str) -> tempfile::TempDir {
    let directory = tempfile::Builder::new().prefix("minerva-test-ctl-").tempdir().expect("a directory");
    let at = directory.path().display();
    let settings = format!(
        "[daemon]\nruntime_dir = \"{at}/run\"\nstate_dir = \"{at}/state\"\nsocket = \"{at}/socket\"\n\
         [named]\nparent = \"{parent}\"\n"
    );
    fs::write(directory.path().join("minerva.toml"), settings).expect("the operator's file");
    directory
}

#[test]
fn a_file_is_judged_with_the_place_of_each_error() {
    let directory = place("minerva");
    let default = tool(directory.path(), &["config", "default"]);
    fs::write(directory.path().join("default.toml"), &default.stdout).expect("a file");
    assert_eq!(tool(directory.path(), &["config", "check", "default.toml"]).status.code(), Some(0));
    fs::write(directory.path().join("bad.toml"), "mode = \"shadow\"\n[fennel]\nshare_sparing = 0\n").expect("a file");
    let bad = tool(directory.path(), &["config", "check", "bad.toml"]);
    assert_eq!(bad.status.code(), Some(1));
    assert!(text(&bad.stdout).contains("bad.toml:3:17"), "{}", text(&bad.stdout));
    let json = tool(directory.path(), &["--json", "config", "check", "bad.toml"]);
    let lines: Vec<serde_json::Value> =
        text(&json.stdout).lines().map(|line| serde_json::from_str(line).expect("an object")).collect();
    assert_eq!((lines[0]["line"].as_u64(), lines[0]["column"].as_u64()), (Some(3), Some(17)));
    assert_eq!((lines[1]["kind"].as_str(), lines[1]["good"].as_bool()), (Some("result"), Some(false)));
}

#[test]
fn without_a_daemon_it_says_so() {
    let directory = place("minerva");
    let status = tool(directory.path(), &["status"]);
    assert_eq!(status.status.code(), Some(2));
    assert!(text(&status.stderr).contains("is minervad running?"), "{}", text(&status.stderr));
    let restore = tool(directory.path(), &["restore", "--if-daemon-gone"]);
    assert_eq!(restore.status.code(), Some(0), "{}", text(&restore.stderr));
}

#[test]
fn a_socket_is_refused_by_each_command_that_does_not_ask_the_daemon() {
    let directory = place("minerva");
    let refuses = |line: &str, word: &str| {
        let words: Vec<&str> = ["--socket", "elsewhere"].into_iter().chain(line.split(' ')).collect();
        let refused = tool(directory.path(), &words);
        let said = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(2), "{line}: {said}");
        assert!(said.starts_with("minerva-ctl: `--socket` names") && said.contains(word), "{line}: {said}");
    };
    for of_tenants in [
        "priority idle",
        "credits",
        "boost 30s",
        "when --bytes 1 --no-wait",
        "whoami",
        "run --priority low -- true",
        "run --name test --priority low -- true",
        "run --when 1 -- true",
        "run --job test -- true",
        "rm --pace 20 gone",
    ] {
        refuses(of_tenants, "MINERVA_ADDRESS");
    }
    let of_nobody =
        ["doctor", "restore", "replay tape", "config default", "forecast evaluate tape", "run --tag 7 -- true"];
    of_nobody.iter().for_each(|line| refuses(line, "does not ask the daemon"));
    for of_others in ["cache status", "disk list"] {
        refuses(of_others, "--server");
    }
    for of_daemon in ["status", "explain a", "credits give a 1", "audit", "background list", "reload"] {
        let words: Vec<&str> = ["--socket", "elsewhere"].into_iter().chain(of_daemon.split(' ')).collect();
        let said = text(&tool(directory.path(), &words).stderr);
        assert!(said.contains("is minervad running?"), "{of_daemon}: {said}");
    }
    // Without a daemon a command runs where it is.
    for line in ["run --name test -- true", "rm gone"] {
        let words: Vec<&str> = ["--socket", "elsewhere"].into_iter().chain(line.split(' ')).collect();
        let said = text(&tool(directory.path(), &words).stderr);
        assert!(!said.contains("`--socket` names"), "{line}: {said}");
    }
}

#[test]
fn a_replay_finds_the_first_difference() {
    let directory = place("minerva");
    let record = |name: &str, events: u64, extra: bool| {
        let mut recorder = Recorder::create(&directory.path().join(name)).expect("a file");
        let mut engine = Engine::new();
        for now in (1..=events).map(Nanos) {
            let event = Event::Configured(Box::<EngineConfig>::default());
            recorder.event(now, &event).expect("an entry");
            engine.handle(now, event);
            while let Some(effect) = engine.poll_effect() {
                recorder.effect(now, &effect).expect("an entry");
            }
        }
        if extra {
            let (kind, message) = (FindingKind::Steerable, "never said".to_owned());
            let finding = Finding { kind, device: None, tenant: None, message };
            recorder.effect(Nanos(1), &Effect::Found(finding)).expect("an entry");
        }
        recorder.finish().expect("an end");
    };
    record("same", 1, false);
    record("other", 1, true);
    let same = tool(directory.path(), &["replay", "same"]);
    assert_eq!(same.status.code(), Some(0), "{}", text(&same.stderr));
    let other = tool(directory.path(), &["replay", "other"]);
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stdout).contains("line 3 of the recording"), "{}", text(&other.stdout));
    assert!(text(&other.stdout).contains("replayed: nothing"), "{}", text(&other.stdout));
    assert!(text(&other.stdout).contains("with the same behaviour revision"), "{}", text(&other.stdout));
    record("damaged", 1000, false);
    let mut bytes = fs::read(directory.path().join("damaged")).expect("a recording");
    // Behind the first block, which holds the header.
    let late = bytes.len() * 9 / 10;
    bytes[late] ^= 0x55;
    fs::write(directory.path().join("damaged"), bytes).expect("a file");
    let damaged = tool(directory.path(), &["replay", "damaged"]);
    assert_eq!(damaged.status.code(), Some(2));
    // What the damage hits decides which of the two sees it first: the checksum, or whoever reads the text.
    let said = text(&damaged.stderr);
    let is_seen = ["the compressed data are damaged", "is not an entry that this program knows"];
    assert!(said.contains("failed to read damaged") && is_seen.iter().any(|part| said.contains(part)), "{said}");
}

/// Seventy slices of seven tenants on two disks, recorded before factors were one list: weights, levels, a boost, operations,
/// an excluded tenant, changed settings and both modes.
#[test]
fn an_old_recording_replays_byte_for_byte() {
    let directory = place("minerva");
    let recording = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/recording-format-1.zst");
    let replayed = tool(directory.path(), &["replay", recording.to_str().expect("a path")]);
    assert_eq!(replayed.status.code(), Some(0), "{}{}", text(&replayed.stdout), text(&replayed.stderr));
    assert!(text(&replayed.stdout).contains("each as recorded, byte for byte"), "{}", text(&replayed.stdout));
    // It was made before revisions had numbers.
    let replayed = tool(directory.path(), &["--json", "replay", recording.to_str().expect("a path")]);
    let line: serde_json::Value = serde_json::from_slice(&replayed.stdout).expect("one object");
    assert_eq!((&line["recorded_revision"], &line["difference"]), (&0.into(), &serde_json::Value::Null), "{line}");
}

#[test]
fn pages_and_completions_are_written() {
    let directory = place("minerva");
    assert_eq!(tool(directory.path(), &["generate", "out"]).status.code(), Some(0));
    for file in ["minerva-ctl.1", "minerva-ctl-doctor.1", "minerva-ctl.bash", "_minerva-ctl", "minerva-ctl.fish"] {
        assert!(directory.path().join("out").join(file).exists(), "{file}");
    }
}

#[test]
fn a_command_runs_as_a_tenant_of_its_own() {
    let blkio = Path::new("/sys/fs/cgroup/blkio");
    if !blkio.join("cgroup.procs").exists() || fs::write(blkio.join("cgroup.clone_children"), "0").is_err() {
        eprintln!("skipped: needs root and the blkio controller of cgroup v1 at {}", blkio.display());
        return;
    }
    let parent = format!("minerva-test-ctl-{}", std::process::id());
    let directory = place(&parent);
    let run = tool(directory.path(), &["run", "--name", "copy", "--weight", "50", "--", "cat", "/proc/self/cgroup"]);
    assert_eq!(run.status.code(), Some(0), "{}", text(&run.stderr));
    assert!(text(&run.stdout).contains(&format!("/{parent}/copy\n")), "{}", text(&run.stdout));
    let weights = fs::read_to_string(directory.path().join("run/named.json")).expect("the weights");
    assert_eq!(weights, "{\"copy\":50}");
    // A failed one leaves neither a group nor a weight, whether the group above was there or not.
    let missing = || tool(directory.path(), &["attach", "4294967", "--name", "nobody", "--weight", "70"]);
    let first = missing();
    assert_eq!(first.status.code(), Some(2));
    assert_eq!(text(&first.stderr), "minerva-ctl: there is no process 4294967\n");
    assert!(!blkio.join(&parent).join("nobody").exists());
    assert_eq!(fs::read_to_string(directory.path().join("run/named.json")).expect("the weights"), "{\"copy\":50}");
    fs::remove_dir(blkio.join(&parent).join("copy")).and_then(|()| fs::remove_dir(blkio.join(&parent))).expect("empty");
    assert_eq!(missing().status.code(), Some(2));
    assert!(!blkio.join(&parent).exists());
}

/// A daemon that looks at nothing; dropping it ends it.
struct Daemon(std::process::Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn with_a_daemon_it_shows_and_records() {
    let minervad = Path::new(env!("CARGO_BIN_EXE_minerva-ctl")).with_file_name("minervad");
    if !minervad.exists() {
        eprintln!("skipped: needs minervad beside minerva-ctl (cargo build -p minervad)");
        return;
    }
    let directory = place("minerva-test-ctl-none");
    let file = directory.path().join("minerva.toml");
    let settings = fs::read_to_string(&file).expect("the file").replace(
        "[daemon]\n",
        "[observe]\nslice = \"100ms\"\n[daemon]\ninclude = [\"minerva-test-ctl-none\"]\ndevices_only = [\"none\"]\n",
    );
    fs::write(&file, &settings).expect("the file");
    let log = fs::File::create(directory.path().join("log")).expect("a log");
    let daemon = Command::new(minervad).arg("--config").arg(&file).stderr(log).spawn();
    let mut daemon = Daemon(daemon.expect("the daemon"));
    until("the daemon answers", || {
        assert!(daemon.0.try_wait().expect("a child").is_none(), "the daemon ended");
        tool(directory.path(), &["status"]).status.code() != Some(2)
    });
    let status = tool(directory.path(), &["--json", "status"]);
    let line: serde_json::Value = serde_json::from_slice(&status.stdout).expect("one object");
    assert_eq!((line["mode"].as_str(), line["config_error"].as_str()), (Some("shadow"), Some("")));
    let top = tool(directory.path(), &["top", "--once"]);
    assert!(text(&top.stdout).contains("0 tenants"), "{}", text(&top.stdout));
    let explain = tool(directory.path(), &["explain", "nobody", "--at", "10 minutes ago"]);
    assert_eq!(explain.status.code(), Some(2));
    assert!(text(&explain.stderr).contains("no tenant has the name"), "{}", text(&explain.stderr));
    trouble::recordings_end_in_order(directory.path(), &daemon);
    assert_eq!(tool(directory.path(), &["record", "tape", "--for", "1s"]).status.code(), Some(0));
    let replay = tool(directory.path(), &["--json", "replay", "tape"]);
    let line: serde_json::Value = serde_json::from_slice(&replay.stdout).expect("one object");
    assert_eq!((replay.status.code(), line["truncated"].as_bool()), (Some(0), Some(false)), "{line}");
    assert!(line["events"].as_u64() > Some(2), "{line}");
    fs::write(&file, settings.replace("slice", "slize")).expect("the file");
    // The broken file does not tell any more where the daemon listens.
    let socket = directory.path().join("socket");
    let socket = socket.to_str().expect("a path");
    assert!(text(&tool(directory.path(), &["status"]).stderr).contains("--socket"));
    let reload = tool(directory.path(), &["--socket", socket, "reload"]);
    assert_eq!(reload.status.code(), Some(1));
    assert!(text(&reload.stderr).contains("slize"), "{}", text(&reload.stderr));
    assert_eq!(tool(directory.path(), &["--socket", socket, "status"]).status.code(), Some(1));
}

/// A loop device of 64 MiB, detached by dropping it.
struct Loop(String);

impl Loop {
    fn new(directory: &Path, tag: &str) -> Option<Self> {
        let image = directory.join(format!("minerva-test-ctl-{tag}-{}.img", std::process::id()));
        fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a backing file");
        let attached = Command::new("losetup").args(["--find", "--show"]).arg(&image).output();
        let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
            eprintln!("skipped: needs root and a loop device");
            return None;
        };
        Some(Self(text(&attached.stdout).trim().trim_start_matches("/dev/").to_owned()))
    }

    fn set_elevator(&self, elevator: &str) -> bool {
        let queue = Path::new("/sys/block").join(&self.0).join("queue");
        let is_set = fs::write(queue.join("scheduler"), elevator).is_ok()
            && (elevator != "bfq" || fs::write(queue.join("iosched/low_latency"), "0").is_ok());
        if !is_set {
            eprintln!("skipped: needs the elevator {elevator}");
        }
        is_set
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").args(["--detach", &format!("/dev/{}", self.0)]).output();
    }
}

/// Does `work` with a disk under BFQ on a host with v1, where there is one.
fn with_loop_under_bfq(directory: &Path, tag: &str, work: impl FnOnce(&str)) {
    if !Path::new("/sys/fs/cgroup/blkio/cgroup.procs").exists() {
        eprintln!("skipped: needs the blkio controller of cgroup v1");
        return;
    }
    let Some(disk) = Loop::new(directory, tag) else { return };
    if disk.set_elevator("bfq") {
        work(&disk.0);
    }
}

/// In a guest; it needs no daemon, and no tenant of its own is made.
#[test]
fn a_command_runs_with_a_tag() {
    let directory = place("minerva");
    let run = |tag: &[&str]| tool(directory.path(), &[&["run"], tag, &["--", "ionice"]].concat());
    let tagged = run(&["--tag", "200", "--stream", "3"]);
    if tagged.status.code() == Some(127) {
        return println!("skipped: needs ionice");
    }
    // Stream 3, the low five bits of the tag, and 7 less its high three; on old kernels the latter alone.
    let said = text(&tagged.stdout);
    assert!(["best-effort: prio 833", "best-effort: prio 1"].contains(&said.trim()), "{said} {}", text(&tagged.stderr));
    assert_eq!(run(&["--tag", "255"]).status.code(), Some(2));
    assert_eq!(run(&["--stream", "3"]).status.code(), Some(2));
}
