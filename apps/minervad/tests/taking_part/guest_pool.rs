//! A file that a virtual machine defers waits for the word of the host's daemon, which comes through the agent, and moves then: with the real
//! daemon, the real agent and the real cache in both of its roles, on one host. A real guest is in `apps/minerva-fs/tests/machine/`.

use super::to_pool::Mounted;
use crate::ENFORCE;
use crate::bed::{Bed, until};
use minerva_api::cache::{Answer, DeferredFile, Request, ask};
use rustix::mount::{UnmountFlags, unmount};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};

/// The first of the machine's users on the host.
const IDS: u32 = 1_900_000;
/// So long it is seen not to move: some slices of the bed's daemon, and of the mover's.
const WATCHED: Duration = Duration::from_secs(3);

/// Ended when dropped, and what it mounted is unmounted.
struct Program(Child, Vec<PathBuf>);

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        for at in &self.1 {
            let _ = unmount(at, UnmountFlags::DETACH);
        }
    }
}

fn beside(name: &str) -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_minervad")).with_file_name(name);
    if !program.exists() {
        eprintln!("skipped: needs {name} beside minervad: cargo build -p {name}");
        return None;
    }
    Some(program)
}

/// A service that answers at its socket, by a file with these lines.
fn serve(program: &Path, at: &Path, text: &str, mounts: Vec<PathBuf>) -> Program {
    fs::create_dir_all(at).expect("a directory");
    fs::write(at.join("fs.toml"), text).expect("the operator's file");
    let child = Command::new(program).arg("--config").arg(at.join("fs.toml")).spawn().expect("the cache");
    let mut service = Program(child, mounts);
    until("the cache answers", || {
        assert!(service.0.try_wait().expect("a child").is_none(), "the cache ended");
        ask(&at.join("run/control.sock"), &Request::Status).is_ok()
    });
    service
}

/// The agent, as a tenant of the bed.
fn start_agent(program: &Path, bed: &Bed, socket: &Path) -> Program {
    let script = format!("echo $$ > {} && exec \"$0\" \"$@\"", bed.cgroup("sparing").join("cgroup.procs").display());
    let mut command = Command::new("sh");
    command.args(["-c", &script]).arg(program).arg("--socket").arg(socket).arg("--shared");
    command.arg("--upstream").arg(format!("unix:{}", bed.directory.path().join("run/tenant.sock").display()));
    let agent = Program(command.spawn().expect("a shell"), Vec::new());
    until("the agent listens", || socket.exists());
    agent
}

fn defer(socket: &Path, path: &Path) -> PathBuf {
    let parent = fs::metadata(path.parent().expect("a directory")).expect("there");
    let request = Request::Defer {
        path: path.to_owned(),
        directory: (parent.dev(), parent.ino()),
        mode: 0o644,
        pool: minerva_api::cache::Pool::Stable,
        tenant: None,
        bytes: 0,
    };
    match ask(socket, &request).expect("an answer") {
        Answer::Deferring { data, .. } => data,
        other => panic!("{other:?}"),
    }
}

fn waiting(socket: &Path) -> Option<DeferredFile> {
    match ask(socket, &Request::Deferred { directory: None }).expect("an answer") {
        Answer::Deferred { mut files } => files.pop(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_machines_file_waits_for_the_daemons_word_through_the_agent_and_moves_when_it_comes() {
    let (Some(program), Some(agent)) = (beside("minerva-fs"), beside("minerva-agent")) else { return };
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    let Some(data) = Mounted::on(&bed) else { return };
    let (host, guest) = (bed.directory.path().join("host"), bed.directory.path().join("guest"));
    let trees = host.join("mount/vm");
    let mounts = ["mount/vm/temporary", "mount/vm/stable", "run/temporary/vm"].map(|at| host.join(at)).to_vec();
    let text = |at: &Path, server: &str, rest: &str| {
        let at = at.display();
        format!("[server]\nruntime = \"{at}/run\"\n{server}\n[pools.stable]\npath = \"{at}/pool\"\n{rest}\n")
    };
    let server = format!("mount = \"{}/mount\"", host.display());
    let _host =
        serve(&program, &host, &text(&host, &server, &format!("[tenants.vm]\nmachine = \"vm\"\nids = {IDS}")), mounts);
    let socket = bed.directory.path().join("agent.sock");
    let server = format!("role = \"guest\"\nmount = \"{}\"", trees.display());
    let migration = format!("[migration]\ndaemon = \"{}\"", socket.display());
    let _guest = serve(&program, &guest, &text(&guest, &server, &migration), Vec::new());
    let control = guest.join("run/control.sock");

    // Nobody answers yet.
    bed.start_reader("heavy", 64);
    let path = data.0.join("out.bin");
    fs::write(defer(&control, &path), vec![7; 4 << 20]).expect("written");
    until("it says that nobody answers", || waiting(&control).is_some_and(|file| file.why.contains("not known")));
    // The host answers, and says that another uses the disk.
    let daemon = bed.start();
    let agent = start_agent(&agent, &bed, &socket);
    until("it is told of others", || waiting(&control).is_some_and(|file| file.why.contains("others use")));
    let begun = Instant::now();
    while begun.elapsed() < WATCHED {
        assert!(
            fs::symlink_metadata(&path).expect("there").is_symlink(),
            "it moved beside a reader: {:?}",
            daemon.log()
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    // Quiet: nobody asks for it, and it moves.
    bed.stop_readers();
    until("the file is at its place", || waiting(&control).is_none());
    assert!(fs::symlink_metadata(&path).expect("there").is_file());
    assert_eq!(fs::read(&path).expect("read"), vec![7; 4 << 20]);
    // Without the agent nobody says anything, whatever was said before.
    drop(agent);
    fs::write(defer(&control, &path), vec![8; 1 << 20]).expect("written");
    until("it says that nobody answers", || waiting(&control).is_some_and(|file| file.why.contains("not known")));
    std::thread::sleep(WATCHED);
    assert_eq!(fs::read(&path).expect("read"), vec![8; 1 << 20]);
    assert!(fs::symlink_metadata(&path).expect("there").is_symlink(), "it moved though nobody answers");
}
