//! An operation that writes beside others is told to write to the pool, does so, and its file goes to its place when they are gone:
//! with the real daemon, the real cache and the programs' own client.

use crate::ENFORCE;
use crate::bed::{Bed, until};
use crate::listeners::{Relay, describe};
use minerva_api::cache::{Answer as CacheAnswer, Request, ask};
use minerva_client::blocking::Client;
use minerva_client::cache::Pool;
use minerva_client::{Access, Answer, Begun, Operation, Options};
use rustix::mount::{UnmountFlags, unmount};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The cache over directories of the bed's.
struct Cache {
    child: Child,
    at: PathBuf,
}

impl Cache {
    /// Nothing, with the reason printed, where it was not built.
    fn start(bed: &Bed) -> Option<Self> {
        let program = Path::new(env!("CARGO_BIN_EXE_minervad")).with_file_name("minerva-fs");
        if !program.exists() {
            eprintln!("skipped: needs minerva-fs beside minervad: cargo build -p minerva-fs");
            return None;
        }
        let at = bed.directory.path().join("cache");
        fs::create_dir(&at).expect("a directory");
        let (path, daemon) = (at.display(), bed.socket());
        let text = format!(
            "[server]\nmount = \"{path}/mount\"\nruntime = \"{path}/run\"\n[pools.stable]\npath = \"{path}/pool\"\n\
             [migration]\ndaemon = \"{}\"\n[tenants.web]\ntemporary = \"16MiB\"\nstable = \"16MiB\"\n",
            daemon.display()
        );
        fs::write(at.join("fs.toml"), text).expect("the operator's file");
        let child = Command::new(program).arg("--config").arg(at.join("fs.toml")).spawn().expect("the cache");
        let mut cache = Self { child, at };
        until("the cache answers", || {
            assert!(cache.child.try_wait().expect("a child").is_none(), "the cache ended");
            ask(&cache.socket(), &Request::Status).is_ok()
        });
        Some(cache)
    }

    fn socket(&self) -> PathBuf {
        self.at.join("run/control.sock")
    }

    /// What waits to be moved is asked for, also beside others; whether all is at its place.
    fn has_moved_all(&self) -> bool {
        ask(&self.socket(), &Request::Flush { directory: None }).expect("asked");
        match ask(&self.socket(), &Request::Deferred { directory: None }).expect("an answer") {
            CacheAnswer::Deferred { files } => files.is_empty(),
            other => panic!("{other:?}"),
        }
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for mounted in ["mount/web/temporary", "mount/web/stable", "run/temporary/web"] {
            let _ = unmount(self.at.join(mounted), UnmountFlags::DETACH);
        }
    }
}

/// The bed's disk with a file system, mounted.
struct Mounted(PathBuf);

impl Mounted {
    fn on(bed: &Bed) -> Option<Self> {
        let (disk, at) = (format!("/dev/{}", bed.device), bed.directory.path().join("data"));
        fs::create_dir(&at).expect("a directory");
        let ran = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
        if !ran(Command::new("mkfs.ext4").args(["-q", &disk])) || !ran(Command::new("mount").arg(&disk).arg(&at)) {
            eprintln!("skipped: needs mkfs.ext4, and to mount");
            return None;
        }
        Some(Self(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

#[test]
fn an_operation_beside_others_is_written_to_the_pool_and_its_file_goes_to_its_place() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(&format!("{ENFORCE}\n[coordination]\ncontention_accepted = 0\n"));
    let Some(data) = Mounted::on(&bed) else { return };
    bed.start_reader("heavy", 64);
    let _daemon = bed.start();
    let Some(cache) = Cache::start(&bed) else { return };
    let relay = Relay::start(&bed, &bed.directory.path().join("run/tenant.sock"), &bed.cgroup("sparing"));
    let address = format!("unix:{}", relay.socket.display()).parse().expect("an address");
    let options = Options::from_environment().expect("a good one");
    let client = Client::with_options(Options { address: Some(address), ..options }).expect("a client");
    let place = data.0.join("out.bin");
    let wanted = |bytes| {
        let operation = Operation::of_bytes(bytes).access(Access::SequentialWrite).path(&place);
        operation.or_pool(Pool::Temporary).cache_socket(cache.socket())
    };
    let mut told = None;
    until("it is told to write to the pool", || {
        let operation = client.coordinate(wanted(1 << 20)).expect("an answer");
        // Before the reader is seen it may begin.
        told = (operation.answer() == Answer::Pool).then_some(operation);
        told.is_some()
    });
    let mut operation = told.expect("told");
    assert_eq!(operation.wait(), Begun::InPool);
    let mut file = operation.create(&place).expect("a file");
    file.write_all(&[7; 1 << 20]).expect("written");
    drop(file);
    operation.finish().expect("nothing to tell");
    assert!(fs::symlink_metadata(&place).expect("there").is_symlink(), "it is in the pool");
    assert_eq!(fs::read(&place).expect("read"), [7; 1 << 20], "and at its place at once");
    assert!(describe(&relay.socket).expect("an answer").operations.is_empty(), "nothing is under way by it");
    // What does not fit waits for the disk as without a pool.
    until("it waits", || {
        matches!(client.coordinate(wanted(1 << 30)).expect("an answer").answer(), Answer::Wait { .. })
    });
    bed.stop_readers();
    until("the file is at its place", || cache.has_moved_all());
    assert!(fs::symlink_metadata(&place).expect("there").is_file());
    assert_eq!(fs::read(&place).expect("read"), [7; 1 << 20]);
}
