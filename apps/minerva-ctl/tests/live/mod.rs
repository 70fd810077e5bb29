//! Live views in a terminal of their own.

use crate::{Daemon, place, tool, until};
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A daemon that looks at nothing, that often; none, having said why, where it cannot be.
fn daemon(directory: &Path, slice: &str) -> Option<Daemon> {
    let minervad = Path::new(env!("CARGO_BIN_EXE_minerva-ctl")).with_file_name("minervad");
    let has_terminals = Command::new("script").arg("--version").output().is_ok();
    if !minervad.exists() || !has_terminals {
        eprintln!("skipped: needs minervad beside minerva-ctl (cargo build -p minervad), and script(1)");
        return None;
    }
    let file = directory.join("minerva.toml");
    let settings = fs::read_to_string(&file).expect("the file").replace(
        "[daemon]\n",
        &format!(
            "[observe]\nslice = \"{slice}\"\n[daemon]\ninclude = [\"minerva-test-ctl-none\"]\ndevices_only = [\"none\"]\n"
        ),
    );
    fs::write(&file, settings).expect("the file");
    let log = fs::File::create(directory.join("log")).expect("a log");
    let daemon = Command::new(minervad).arg("--config").arg(&file).stderr(log).spawn().expect("the daemon");
    let daemon = Daemon(daemon);
    until("the daemon answers", || tool(directory, &["status"]).status.code() != Some(2));
    Some(daemon)
}

/// `top` in a terminal: its number and its end are in files, and so is how the terminal was before and after.
fn top(directory: &Path) -> Child {
    let script = format!(
        "stty rows 40 cols 120; stty -a > before; \
         sh -c 'echo $$ > pid; exec {} --config minerva.toml top'; echo $? > code; stty -a > after; echo > ended",
        env!("CARGO_BIN_EXE_minerva-ctl")
    );
    for file in ["before", "after", "pid", "code", "ended"] {
        let _ = fs::remove_file(directory.join(file));
    }
    let screen = fs::File::create(directory.join("screen")).expect("a file");
    let mut command = Command::new("script");
    command.args(["-qfec", &script, "/dev/null"]).env("SHELL", "/bin/sh").env("TERM", "xterm");
    command.current_dir(directory).stdin(Stdio::piped()).stdout(screen).spawn().expect("script(1)")
}

fn read(directory: &Path, file: &str) -> String {
    fs::read_to_string(directory.join(file)).unwrap_or_default()
}

fn is_shown(directory: &Path) -> bool {
    String::from_utf8_lossy(&fs::read(directory.join("screen")).unwrap_or_default()).contains("minerva")
}

#[test]
fn a_view_that_is_ended_by_a_signal_gives_the_terminal_back() {
    let directory = place("minerva-test-ctl-none");
    let directory = directory.path();
    let Some(_daemon) = daemon(directory, "100ms") else { return };
    for (signal, code) in [("-TERM", "143"), ("-HUP", "129")] {
        let mut terminal = top(directory);
        until("it is shown", || is_shown(directory));
        assert!(Command::new("kill").args([signal, read(directory, "pid").trim()]).status().expect("kill").success());
        until("it ends", || directory.join("ended").exists());
        assert_eq!(read(directory, "code").trim(), code);
        assert_eq!(read(directory, "after"), read(directory, "before"), "{signal}");
        assert!(read(directory, "before").contains(" icanon"));
        drop(terminal.stdin.take());
        terminal.wait().expect("an end");
    }
}

#[test]
fn servers_of_guests_disks_that_hang_hold_up_no_key() {
    let directory = place("minerva-test-ctl-none");
    let directory = directory.path();
    let Some(_daemon) = daemon(directory, "100ms") else { return };
    let servers = directory.join("run/servers");
    fs::create_dir_all(&servers).expect("a directory");
    // As many as would hold it up for longer than anything here waits.
    let hung: Vec<UnixListener> = ["a", "b", "c", "d", "e"]
        .iter()
        .map(|name| UnixListener::bind(servers.join(name)).expect("a socket"))
        .collect();
    hung.iter().for_each(|server| server.set_nonblocking(true).expect("a socket"));
    let mut terminal = top(directory);
    until("it is shown", || is_shown(directory));
    let mut keys = terminal.stdin.take().expect("a pipe");
    let mut press = |key: &[u8]| keys.write_all(key).and_then(|()| keys.flush()).expect("a key");
    press(b"d");
    let tool = read(directory, "pid").trim().to_owned();
    // The daemon asks them too.
    let is_asked_by_tool = |server: &UnixListener| match server.accept() {
        Ok((stream, _)) => {
            let peer = rustix::net::sockopt::socket_peercred(&stream).expect("a peer").pid;
            // It stays open, and nothing is answered.
            std::mem::forget(stream);
            peer.as_raw_nonzero().to_string() == tool
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => false,
        Err(error) => panic!("{error}"),
    };
    until("the tool asks one", || hung.iter().any(is_asked_by_tool));
    press(b"q");
    until("it ends", || directory.join("ended").exists());
    assert_eq!(read(directory, "code").trim(), "0");
    terminal.wait().expect("an end");
}

/// Into a file, and into one that takes nothing.
#[test]
fn a_view_without_a_terminal_to_show_it_on_leaves_the_terminal_as_it_was() {
    let directory = place("minerva-test-ctl-none");
    let directory = directory.path();
    let Some(_daemon) = daemon(directory, "100ms") else { return };
    for out in ["out", "/dev/full"] {
        let script = format!(
            "stty -a > before; {} --config minerva.toml top > {out} 2> said; echo $? > code; stty -a > after",
            env!("CARGO_BIN_EXE_minerva-ctl")
        );
        let mut command = Command::new("script");
        command.args(["-qfec", &script, "/dev/null"]).env("SHELL", "/bin/sh").env("TERM", "xterm");
        command.current_dir(directory).stdin(Stdio::null()).stdout(Stdio::null());
        assert!(command.status().expect("script(1)").success());
        assert_eq!(read(directory, "code").trim(), "2", "{out}");
        assert_eq!(read(directory, "said"), "minerva-ctl: standard output is no terminal: use --once or --json\n");
        assert_eq!(read(directory, "after"), read(directory, "before"), "{out}");
        assert!(read(directory, "before").contains(" icanon"));
    }
}

#[test]
fn the_end_of_the_daemon_is_told_as_that() {
    for signal in ["-TERM", "-KILL"] {
        let directory = place("minerva-test-ctl-none");
        let directory = directory.path();
        let Some(mut daemon) = daemon(directory, "100ms") else { return };
        let said = fs::File::create(directory.join("said")).expect("a file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
        command.args(["--config", "minerva.toml", "--json", "top"]).current_dir(directory);
        let mut top = command.stdout(Stdio::piped()).stderr(said).spawn().expect("the tool");
        let mut lines = BufReader::new(top.stdout.take().expect("a pipe")).lines();
        assert!(lines.next().is_some_and(|line| line.is_ok()), "{}", read(directory, "said"));
        let mut terminal = self::top(directory);
        until("it is shown", || is_shown(directory));
        assert!(Command::new("kill").args([signal, &daemon.0.id().to_string()]).status().expect("kill").success());
        daemon.0.wait().expect("an end");
        let last = lines.map_while(Result::ok).last().unwrap_or_default();
        assert_eq!(last, r#"{"error":"the daemon stopped"}"#);
        assert_eq!(top.wait().expect("an end").code(), Some(2));
        assert_eq!(read(directory, "said"), "minerva-ctl: the daemon stopped\n");
        until("the view ends", || directory.join("ended").exists());
        assert_eq!(read(directory, "code").trim(), "2");
        assert_eq!(read(directory, "after"), read(directory, "before"), "{signal}");
        drop(terminal.stdin.take());
        terminal.wait().expect("an end");
        let screen = String::from_utf8_lossy(&fs::read(directory.join("screen")).expect("a file")).into_owned();
        assert!(screen.contains("minerva-ctl: the daemon stopped"), "{screen}");
    }
}

/// Longer than a daemon is waited for that does not answer.
#[test]
fn a_daemon_whose_slices_are_long_is_not_taken_for_one_that_hangs() {
    let directory = place("minerva-test-ctl-none");
    let directory = directory.path();
    let Some(_daemon) = daemon(directory, "3s") else { return };
    let said = fs::File::create(directory.join("said")).expect("a file");
    let mut command = Command::new(env!("CARGO_BIN_EXE_minerva-ctl"));
    command.args(["--config", "minerva.toml", "--json", "top"]).current_dir(directory);
    let mut top = command.stdout(Stdio::piped()).stderr(said).spawn().expect("the tool");
    let lines = BufReader::new(top.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.take(2).filter(Result::is_ok).count(), 2, "{}", read(directory, "said"));
    top.kill().and_then(|()| top.wait()).expect("an end");
    assert_eq!(read(directory, "said"), "");
}
