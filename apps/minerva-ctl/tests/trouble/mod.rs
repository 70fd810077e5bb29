//! Bad input and bad moments: what the tool says, and that nothing is left behind.

use crate::{Daemon, place, text, tool, until, with_loop_under_bfq};
use minerva_linux_actuate::{InstanceLock, Writer, WriterSettings};
use minerva_model::{CgroupRef, DeviceId, KnobFile, KnobTarget, KnobWrite, Outcome, WriteId};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

const BLKIO: &str = "/sys/fs/cgroup/blkio";

fn assert_says(output: &Output, code: i32, sentence: &str) {
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert!(said.contains(sentence), "{said}");
}

/// Every line of the answer as JSON.
fn json_lines(output: &Output) -> Vec<serde_json::Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text(&output.stdout).lines().map(line).collect()
}

/// A group with a weight that Minerva wrote, as a daemon holds it; dropping it removes the group.
struct Held(std::path::PathBuf);

impl Held {
    fn new(runtime_dir: &Path) -> Option<(Self, InstanceLock)> {
        let group = Path::new(BLKIO).join(format!("minerva-test-ctl-held-{}", std::process::id()));
        if fs::create_dir(&group).is_err() || !group.join("blkio.bfq.weight").exists() {
            eprintln!("skipped: needs root, bfq and the blkio controller of cgroup v1 at {BLKIO}");
            let _ = fs::remove_dir(&group);
            return None;
        }
        let held = Self(group);
        let lock = InstanceLock::acquire(runtime_dir).expect("a lock");
        let (mut writer, _) = Writer::open(&WriterSettings::new(runtime_dir, BLKIO), &lock).expect("a writer");
        let path = held.0.file_name().expect("a name").to_string_lossy().into_owned();
        let write = KnobWrite {
            id: WriteId(0),
            target: KnobTarget::Cgroup { tenant: None, cgroup: CgroupRef { path, inode: 0 } },
            file: KnobFile::BfqV1Weight,
            device: DeviceId { major: 0, minor: 0 },
            text: "300".to_owned(),
            undo: "100".to_owned(),
        };
        assert!(matches!(writer.write(&write), Outcome::Text(_)));
        Some((held, lock))
    }

    fn weight(&self) -> String {
        fs::read_to_string(self.0.join("blkio.bfq.weight")).expect("a weight").trim().to_owned()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn a_named_file_must_be_there_and_good() {
    let directory = place("minerva");
    let absent = |arguments: &[&str]| tool(&directory.path().join("nowhere"), arguments);
    fs::create_dir(directory.path().join("nowhere")).expect("a directory");
    for command in [&["restore"][..], &["restore", "--if-daemon-gone"], &["doctor"], &["status"], &["whoami"]] {
        let output = absent(command);
        assert_says(&output, 2, "nowhere/minerva.toml: No such file or directory");
        assert!(!text(&output.stderr).contains("nothing to restore"));
    }
    fs::write(directory.path().join("nowhere/minerva.toml"), "[daemon]\nruntime_dri = \"/run/other\"\n")
        .expect("a file");
    assert_says(&absent(&["restore"]), 2, "runtime_dri");
}

#[test]
fn after_a_broken_file_nothing_found_is_a_finding() {
    let directory = place("minerva");
    fs::create_dir(directory.path().join("minerva")).expect("a directory");
    fs::write(directory.path().join("minerva/minerva.toml"), "[daemon]\nruntime_dri = \"x\"\n").expect("a file");
    let Some(output) = alone(directory.path(), &["restore"]) else { return };
    assert_says(&output, 1, "the broken file may name another runtime_dir: mend it and try again");
    let output = alone(directory.path(), &["restore", "--json"]).expect("the tool");
    assert_eq!(output.status.code(), Some(1));
    assert!(json_lines(&output)[0]["config_error"].as_str().is_some_and(|why| why.contains("runtime_dri")));
}

/// The tool with this folder as `/etc`, where no daemon ever was; none, having said why, where nothing can be mounted.
fn alone(etc: &Path, arguments: &[&str]) -> Option<Output> {
    alone_after(etc, ":", arguments)
}

/// The same after a shell in that folder prepared what was there before.
fn alone_after(etc: &Path, prepare: &str, arguments: &[&str]) -> Option<Output> {
    let run = |prepare: &str, arguments: &[&str]| {
        let script =
            format!("mount --bind . /etc && mount -t tmpfs minerva-test /run && {prepare} && exec \"$0\" \"$@\"");
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", &script, env!("CARGO_BIN_EXE_minerva-ctl")]).args(arguments);
        command.current_dir(etc).output().ok()
    };
    if run(":", &["generate", "/run/out"]).is_none_or(|output| output.status.code() != Some(0)) {
        eprintln!("skipped: needs root, and to mount");
        return None;
    }
    run(prepare, arguments)
}

#[test]
fn drop_ins_hold_where_the_default_file_is_absent() {
    let directory = place("minerva");
    fs::create_dir_all(directory.path().join("minerva/minerva.toml.d")).expect("a directory");
    let own = directory.path().join("minerva/minerva.toml.d/own.toml");
    fs::write(&own, "[daemon]\nruntime_dir = \"/run/minerva-test-other\"\n").expect("a file");
    let Some(output) = alone(directory.path(), &["restore"]) else { return };
    assert_says(&output, 0, "nothing to restore: Minerva holds no knob (no journal in /run/minerva-test-other)");
    let output = alone(directory.path(), &["config", "check"]).expect("the tool");
    assert_says(&output, 0, "good (absent: the defaults hold, and its drop-ins)");
    fs::write(&own, "[daemon]\nruntime_dri = \"/run/minerva-test-other\"\n").expect("a file");
    let output = alone(directory.path(), &["config", "check"]).expect("the tool");
    assert!(output.status.code() == Some(1) && text(&output.stdout).contains("own.toml:2"), "{}", text(&output.stdout));
}

#[test]
fn what_a_daemon_holds_that_began_before_the_file_said_other_places_is_found() {
    let directory = place("minerva");
    fs::create_dir(directory.path().join("minerva")).expect("a directory");
    let settings = "[daemon]\nruntime_dir = \"/run/other\"\nsocket = \"/run/other/socket\"\n";
    fs::write(directory.path().join("minerva/minerva.toml"), settings).expect("a file");
    let Some(output) = alone(directory.path(), &["status"]) else { return };
    assert_says(&output, 2, "no daemon at /run/other/socket: is minervad running?");
    assert_says(&output, 2, "listens at the former place, /run/minerva/minervad.sock by default");
    // It hangs up on everybody: whom it asks the tool says itself.
    let listens = UnixListener::bind(directory.path().join("listens")).expect("a socket");
    std::thread::spawn(move || listens.incoming().for_each(drop));
    let script =
        "mkdir /run/minerva && touch /run/minerva/minervad.sock && mount --bind listens /run/minerva/minervad.sock";
    let output = alone_after(directory.path(), script, &["status"]).expect("the tool");
    assert_says(&output, 2, "nobody listens at /run/other/socket: asking the daemon at /run/minerva/minervad.sock");
    let Some((held, _lock)) = Held::new(&directory.path().join("run")) else { return };
    assert_eq!(held.weight(), "300");
    let script = "mkdir -m 755 /run/minerva && cp -a run/undo.journal /run/minerva";
    let output = alone_after(directory.path(), script, &["restore"]).expect("the tool");
    assert_says(&output, 0, "no journal in /run/other, but one in /run/minerva");
    assert_eq!(held.weight(), "100");
}

#[test]
fn a_restore_beside_a_daemon_says_that_it_will_be_undone() {
    let directory = place("minerva");
    let runtime_dir = directory.path().join("run");
    let Some((held, lock)) = Held::new(&runtime_dir) else { return };
    assert_eq!(held.weight(), "300");
    let output = tool(directory.path(), &["restore"]);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let pid = std::process::id();
    let sentence = format!("minervad (pid {pid}) runs and will write again; stop it or set mode = \"shadow\"");
    assert!(text(&output.stdout).contains(&sentence), "{}", text(&output.stdout));
    assert_eq!(held.weight(), "100");
    drop((lock, held));
    let Some((held, _lock)) = Held::new(&runtime_dir) else { return };
    let output = tool(directory.path(), &["--json", "restore"]);
    assert_eq!((output.status.code(), json_lines(&output)[0]["beside_daemon"].as_u64()), (Some(1), Some(pid.into())));
    assert_eq!(held.weight(), "100");
}

#[test]
fn what_is_not_there_is_named() {
    let directory = place("minerva");
    assert_says(
        &tool(directory.path(), &["config", "check", "absent.toml"]),
        2,
        "absent.toml: No such file or directory",
    );
    assert_says(&tool(directory.path(), &["replay", "absent"]), 2, "it cannot be read: No such file or directory");
    let doctor = tool(directory.path(), &["doctor", "--device", "nosuch"]);
    assert_says(&doctor, 2, "there is no whole disk nosuch; there are:");
    let attached = tool(directory.path(), &["--socket=/nonexistent/socket", "attach", "0"]);
    assert_says(
        &attached,
        2,
        "0 is no process that can be made a tenant: 0 stands for whoever asks, and that is Minerva",
    );
    fs::write(directory.path().join("garbage"), "no recording").expect("a file");
    let sentence = "failed to open garbage: recording, line 1 (byte 0 of the text): this is not a recording of Minerva";
    assert_says(&tool(directory.path(), &["replay", "garbage"]), 2, sentence);
}

#[test]
fn each_answer_is_json_where_that_is_asked_for() {
    let directory = place("minerva");
    fs::write(directory.path().join("good.toml"), "mode = \"shadow\"\n").expect("a file");
    let units = "[server]\nmount = \"/minerva\"\n[tenants.web]\nunits = [\"dump.service:/srv/dump\"]\n";
    fs::write(directory.path().join("fs.toml"), units).expect("a file");
    let none = "--socket=/nonexistent/socket";
    // The arguments, the exit status, and a field of the last line.
    let table: &[(&[&str], i32, &str)] = &[
        (&[none, "status"], 2, "error"),
        (&[none, "top", "--once"], 2, "error"),
        (&[none, "explain", "somebody"], 2, "error"),
        (&[none, "record", "tape"], 2, "error"),
        (&[none, "audit"], 2, "error"),
        (&[none, "reload"], 2, "error"),
        (&[none, "attach", "4294967"], 2, "error"),
        (&[none, "run", "--name", "..", "--", "true"], 2, "error"),
        (&[none, "run", "--job", "", "--", "touch", "ran"], 2, "error"),
        (&[none, "run", "--job", "a\nb", "--", "touch", "ran"], 2, "error"),
        (&["doctor", "--device", "nosuch"], 2, "error"),
        (&["restore"], 0, "knobs"),
        (&["replay", "absent"], 2, "error"),
        (&["config", "check", "good.toml"], 0, "good"),
        (&["config", "check", "absent.toml"], 2, "error"),
        (&["config", "default"], 0, "default"),
        (&["cache", "--server", "nowhere", "drop", "7"], 2, "error"),
        (&["cache", "--server", "nowhere", "prepare", "--name", "x", "."], 2, "error"),
        (&["cache", "units", "--file", "fs.toml", "--systemd", "systemd"], 0, "text"),
        (&["cache", "units", "--file", "fs.toml", "--systemd", "systemd", "--write"], 0, "changed"),
        (&["priority", "low"], 2, "error"),
        (&["credits"], 2, "error"),
        (&["boost", "30s"], 2, "error"),
        (&["when", "--bytes", "1M"], 0, "answer"),
        (&["whoami"], 2, "error"),
        (&["priority", "--for", "nonsense"], 2, "error"),
        (&["no-such-command"], 2, "error"),
    ];
    for (arguments, code, field) in table {
        let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
        command.args(["--json", "--config", "minerva.toml"]).args(*arguments).current_dir(directory.path());
        let output = command.env("MINERVA_ADDRESS", "unix:/nonexistent/socket").output().expect("the tool");
        let lines = json_lines(&output);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {lines:?} {}", text(&output.stderr));
        assert!(lines.last().is_some_and(|line| line.get(field).is_some()), "{arguments:?}: {lines:?}");
    }
    let doctor = tool(directory.path(), &["--json", "doctor"]);
    let kinds = json_lines(&doctor).into_iter().map(|line| line["kind"].as_str().expect("a kind").to_owned());
    assert!(
        kinds.into_iter().all(|kind| ["disk", "mount", "slice", "tag-levels", "tags-seen"].contains(&kind.as_str()))
    );
    assert!(["tape", "ran"].iter().all(|name| !directory.path().join(name).exists()));
}

#[test]
fn without_root_the_message_says_so() {
    let directory = place("minerva-test-ctl-nobody");
    let copy = directory.path().join("minerva-ctl");
    fs::copy(env!("CARGO_BIN_EXE_minerva-ctl"), &copy).expect("a copy");
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).expect("a mode");
    let run = directory.path().join("run");
    fs::create_dir(&run)
        .and_then(|()| fs::set_permissions(&run, PermissionsExt::from_mode(0o700)))
        .expect("a directory");
    let nobody = |arguments: &[&str]| {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]).arg(&copy);
        command.arg("--config").arg(directory.path().join("minerva.toml")).args(arguments).output().ok()
    };
    if nobody(&["--version"]).is_none_or(|output| !output.status.success()) {
        eprintln!("skipped: needs root and setpriv");
        return;
    }
    assert_says(&nobody(&["restore"]).expect("the tool"), 2, "failed to restore; be root: open ");
    for (command, code) in [(&["attach", "4"][..], 2), (&["run", "--", "sh", "-c", "exit 7"], 7)] {
        assert_says(&nobody(command).expect("the tool"), code, "no daemon runs, and without it this needs root: ");
    }
    with_loop_under_bfq(directory.path(), "nobody", |name| {
        let probe = nobody(&["doctor", "--device", name, "--probe", "--seconds", "1s"]).expect("the tool");
        assert_says(&probe, 2, "failed to prepare; be root: make the directory ");
    });
}

#[test]
fn a_probe_that_is_interrupted_leaves_nothing() {
    let directory = place("minerva");
    with_loop_under_bfq(directory.path(), "interrupted", |name| {
        for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
            let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
            command.arg("--config").arg(directory.path().join("minerva.toml"));
            command.args(["doctor", "--device", name, "--probe", "--seconds", "600"]).stdout(Stdio::null());
            let mut probe = command.spawn().expect("the tool");
            let name = format!("minerva-probe-{}", probe.id());
            let (group, runtime_dir) = (Path::new(BLKIO).join(&name), directory.path().join("run").join(&name));
            let readers = || fs::read_to_string(group.join("reader-100/cgroup.procs")).unwrap_or_default();
            until("both read", || !readers().is_empty());
            send(&probe, signal);
            assert_eq!(probe.wait().expect("an end").code(), Some(code));
            assert!(!group.exists() && !runtime_dir.exists());
        }
    });
}

#[test]
fn a_probe_or_comparison_that_is_interrupted_and_cannot_put_all_back_says_so() {
    let directory = place("minerva");
    with_loop_under_bfq(directory.path(), "kept", |name| {
        for (proof, reader) in [("--probe", "reader-100"), ("--compare", "light")] {
            let said = fs::File::create(directory.path().join("said")).expect("a file");
            let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
            command.arg("--config").arg(directory.path().join("minerva.toml")).stdout(Stdio::null()).stderr(said);
            let mut proving =
                command.args(["doctor", "--device", name, proof, "--seconds", "600"]).spawn().expect("the tool");
            let own = format!("minerva-probe-{}", proving.id());
            let (group, runtime_dir) = (Path::new(BLKIO).join(&own), directory.path().join("run").join(&own));
            let readers = || fs::read_to_string(group.join(reader).join("cgroup.procs")).unwrap_or_default();
            until("the last one reads", || !readers().is_empty());
            let held = runtime_dir.join("held");
            fs::create_dir(&held).expect("a directory");
            rustix::mount::mount("none", &held, "tmpfs", rustix::mount::MountFlags::empty(), None).expect("a mount");
            send(&proving, "-INT");
            let code = proving.wait().expect("an end").code();
            rustix::mount::unmount(&held, rustix::mount::UnmountFlags::empty()).expect("unmounted");
            let said = fs::read_to_string(directory.path().join("said")).expect("what was said");
            assert_eq!(code, Some(2), "{said}");
            assert!(said.contains("interrupted: failed to remove the probe's runtime directory"), "{said}");
            assert!(!said.contains("are removed") && !said.contains("all is as it was"), "{said}");
            fs::remove_dir_all(&runtime_dir).expect("removed");
        }
    });
}

#[test]
fn what_a_killed_probe_left_is_removed_by_a_restore() {
    let directory = place("minerva");
    // No process has a number above the kernel's greatest.
    let left = directory.path().join("run/minerva-probe-4194306");
    fs::create_dir_all(&left).expect("a directory");
    let group = Path::new(BLKIO).join("minerva-probe-4194306");
    let has_group =
        Path::new(BLKIO).join("cgroup.procs").exists() && fs::create_dir_all(group.join("reader-800")).is_ok();
    let restore = tool(directory.path(), &["restore"]);
    assert_says(&restore, 0, "minerva-probe-4194306 of a killed probe");
    assert!(!left.exists() && (!has_group || !group.exists()));
    // What cannot be put back is said, and no word that nothing is held.
    fs::create_dir_all(&left).and_then(|()| fs::write(left.join("undo.journal"), "broken\n")).expect("a journal");
    let restore = tool(directory.path(), &["restore"]);
    assert_says(&restore, 1, "not all could be put back of the killed probe of");
    assert!(!text(&restore.stderr).contains("nothing to restore"), "{}", text(&restore.stderr));
}

fn send(child: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().expect("kill").success());
}

/// A recording ends in order however it is ended, and one that was refused is not in the way of the next.
pub(crate) fn recordings_end_in_order(directory: &Path, _daemon: &Daemon) {
    let begin = |file: &str, more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
        command.arg("--config").arg(directory.join("minerva.toml")).args(["record", file]).args(more);
        command.current_dir(directory).stderr(Stdio::null()).spawn().expect("the tool")
    };
    let has_begun = |file: &str| fs::metadata(directory.join(file)).is_ok_and(|data| data.len() > 0);
    for (file, signal, more) in
        [("tape-a", "-INT", &["--for", "10m"][..]), ("tape-b", "-TERM", &["--for", "10m"]), ("tape-c", "-TERM", &[])]
    {
        let mut recorder = begin(file, more);
        until("the recording runs", || has_begun(file));
        assert_says(&tool(directory, &["record", "refused"]), 2, "a recording runs already");
        assert!(!directory.join("refused").exists());
        send(&recorder, signal);
        assert_eq!(recorder.wait().expect("an end").code(), Some(0), "{file}");
        let replay = tool(directory, &["--json", "replay", file]);
        assert_eq!(json_lines(&replay)[0]["truncated"].as_bool(), Some(false), "{file}");
    }
    let log = fs::read_to_string(directory.join("log")).expect("a log");
    assert!(log.contains("a recording begins"), "{log}");
    assert!(log.contains("the recording has ended"), "{log}");
}

#[test]
fn a_closed_pipe_ends_it_quietly() {
    let directory = place("minerva");
    let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
    command.args(["config", "default"]).current_dir(directory.path()).stderr(Stdio::piped());
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let output = command.stdout(writer).spawn().and_then(Child::wait_with_output).expect("the tool");
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(141), String::new()));
}
