//! A daemon that is there and does not answer: one that starts, ends or hangs.

use crate::{place, text, tool, until};
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

fn listen(directory: &Path) -> UnixListener {
    UnixListener::bind(directory.join("socket")).expect("a socket")
}

/// The tool, with what it says to people in a file.
fn begin(directory: &Path, arguments: &[&str]) -> Child {
    let said = fs::File::create(directory.join("said")).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
    command.arg("--config").arg(directory.join("minerva.toml")).args(arguments).current_dir(directory);
    command.stdout(Stdio::null()).stderr(said).spawn().expect("the tool")
}

fn said(directory: &Path) -> String {
    fs::read_to_string(directory.join("said")).expect("what was said")
}

/// Groups that commands were put into without a daemon.
fn remove_groups(parent: &str) {
    for root in ["/sys/fs/cgroup/blkio", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
        let above = Path::new(root).join(parent);
        for group in fs::read_dir(&above).into_iter().flatten().flatten() {
            let _ = fs::remove_dir(group.path());
        }
        let _ = fs::remove_dir(above);
    }
}

#[test]
fn a_command_runs_while_the_daemon_starts_ends_or_hangs() {
    let parent = format!("minerva-test-ctl-unanswered-{}", std::process::id());
    let directory = place(&parent);
    let forms = [&[][..], &["--name", "x"], &["--weight", "50"], &["--name", "y", "--tag", "7"]];
    let run = |form: &[&str]| {
        let output = tool(directory.path(), &[&["run"], form, &["--", "echo", "ran"]].concat());
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(0), "ran\n"), "{form:?}: {said}");
        said
    };
    let closing = listen(directory.path());
    std::thread::spawn(move || closing.incoming().for_each(drop));
    for form in forms {
        let said = run(form);
        assert!(said.contains("the daemon does not answer"), "{form:?}: {said}");
    }
    fs::remove_file(directory.path().join("socket")).expect("the socket");
    let _silent = listen(directory.path());
    assert!(run(&["--name", "z"]).contains("the daemon does not answer"));
    // What can be no name never is one.
    let refused = tool(directory.path(), &["run", "--name", "..", "--", "echo", "ran"]);
    assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(2), ""), "{}", text(&refused.stderr));
    // It runs without a daemon too, and with a file that is broken or not there.
    fs::remove_file(directory.path().join("socket")).expect("the socket");
    run(&["--weight", "70"]);
    let stays = |said: String| {
        assert!(said.contains("the command stays in the tenant that it is called in: failed to learn where"), "{said}");
    };
    fs::write(directory.path().join("minerva.toml"), "[daemon\n").expect("the file");
    forms.iter().for_each(|form| stays(run(form)));
    stays(run(&["--name", "a", "--job", "nightly"]));
    fs::remove_file(directory.path().join("minerva.toml")).expect("the file");
    forms.iter().for_each(|form| stays(run(form)));
    let refused = tool(directory.path(), &["run", "--name", "..", "--", "echo", "ran"]);
    assert_eq!((refused.status.code(), text(&refused.stdout).as_str()), (Some(2), ""), "{}", text(&refused.stderr));
    remove_groups(&parent);
}

#[test]
fn whoever_waits_for_a_daemon_that_hangs_is_told() {
    let directory = place("minerva");
    let _silent = listen(directory.path());
    for arguments in [&["status"][..], &["background", "list"], &["top", "--once"], &["record", "tape"]] {
        let mut waits = begin(directory.path(), arguments);
        until("it says so", || said(directory.path()).contains("the daemon does not answer yet; its loop may hang"));
        assert!(waits.try_wait().expect("a child").is_none(), "{arguments:?}: {}", said(directory.path()));
        waits.kill().and_then(|()| waits.wait()).expect("an end");
        let _ = fs::remove_file(directory.path().join("tape"));
    }
}

#[test]
fn rm_that_waits_for_a_daemon_that_hangs_is_interrupted() {
    let directory = place("minerva");
    let _silent = listen(directory.path());
    fs::create_dir_all(directory.path().join("big/deep")).expect("directories");
    let mut waits = begin(directory.path(), &["rm", "-r", "big"]);
    until("it says so", || said(directory.path()).contains("the daemon does not answer yet"));
    let pid = waits.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().expect("kill").success());
    until("it ends", || waits.try_wait().expect("a child").is_some());
    assert_eq!(waits.wait().expect("an end").code(), Some(130));
    let said = said(directory.path());
    assert!(
        said.contains("may stay in the list (the daemon does not answer); minerva-ctl background remove"),
        "{said}"
    );
    assert!(directory.path().join("big/deep").exists());
}
