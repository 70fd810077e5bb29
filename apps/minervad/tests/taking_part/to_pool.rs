//! An operation that writes beside others is told to write to the pool, does so, and its file goes to its place when they are gone:
//! with the real daemon, the real cache and the programs' own client.

use super::{kill, store};
use crate::ENFORCE;
use crate::background::queues;
use crate::bed::{Bed, Daemon, until};
use crate::listeners::{Relay, describe};
use minerva_api::cache::{Answer as CacheAnswer, Request, ask};
use minerva_client::blocking::Client;
use minerva_client::cache::Pool;
use minerva_client::{Access, Answer, Begun, Operation, Options};
use minerva_model::{EntryKind, RequestId};
use rustix::mount::{UnmountFlags, unmount};
use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
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
        if !program().exists() {
            eprintln!("skipped: needs minerva-fs beside minervad: cargo build -p minerva-fs");
            return None;
        }
        let at = bed.directory.path().join("cache");
        fs::create_dir(&at).expect("a directory");
        let (path, daemon) = (at.display(), bed.socket());
        let text = format!(
            "[server]\nmount = \"{path}/mount\"\nruntime = \"{path}/run\"\n[pools.stable]\npath = \"{path}/pool\"\n\
             [migration]\ndaemon = \"{}\"\n[tenants.web]\ntemporary = \"128MiB\"\nstable = \"16MiB\"\n",
            daemon.display()
        );
        fs::write(at.join("fs.toml"), text).expect("the operator's file");
        let child = launch(&at);
        let mut cache = Self { child, at };
        cache.until_it_answers();
        Some(cache)
    }

    fn until_it_answers(&mut self) {
        until("the cache answers", || {
            assert!(self.child.try_wait().expect("a child").is_none(), "the cache ended");
            ask(&self.socket(), &Request::Status).is_ok()
        });
    }

    /// Ends it in the middle of whatever it does.
    fn kill(&mut self) {
        self.child.kill().and_then(|()| self.child.wait()).expect("an end");
    }

    fn start_again(&mut self) {
        self.child = launch(&self.at);
        self.until_it_answers();
    }

    /// The files that wait.
    fn waiting(&self) -> usize {
        match ask(&self.socket(), &Request::Deferred { directory: None }).expect("an answer") {
            CacheAnswer::Deferred { files } => files.len(),
            other => panic!("{other:?}"),
        }
    }

    /// What moving earned since the start, and what was said of it.
    fn earned(&self) -> (u64, String) {
        match ask(&self.socket(), &Request::Status).expect("an answer") {
            CacheAnswer::Status { mut tenants, .. } => {
                let tenant = tenants.pop().expect("a tenant");
                (tenant.earned_micro_credits, tenant.earned_why)
            }
            other => panic!("{other:?}"),
        }
    }

    fn socket(&self) -> PathBuf {
        self.at.join("run/control.sock")
    }

    /// What waits to be moved is asked for, also beside others; whether all is at its place.
    fn has_moved_all(&self) -> bool {
        ask(&self.socket(), &Request::Flush { directory: None }).expect("asked");
        self.waiting() == 0
    }
}

fn program() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_minervad")).with_file_name("minerva-fs")
}

fn launch(at: &Path) -> Child {
    Command::new(program()).arg("--config").arg(at.join("fs.toml")).spawn().expect("the cache")
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
pub(super) struct Mounted(pub(super) PathBuf);

impl Mounted {
    pub(super) fn on(bed: &Bed) -> Option<Self> {
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

/// A program of `sparing` defers a file and writes it.
fn defer(relay: &Relay, directory: &Path, data: &[u8]) {
    let found = fs::metadata(directory).expect("a directory");
    let request = Request::Defer {
        path: directory.join("out.bin"),
        directory: (found.dev(), found.ino()),
        mode: 0o644,
        pool: Pool::Temporary,
        tenant: None,
        bytes: 0,
    };
    match ask(&relay.socket, &request).expect("an answer") {
        CacheAnswer::Deferring { data: at, .. } => fs::write(at, data).expect("written"),
        other => panic!("{other:?}"),
    }
}

/// What the account of `sparing` earned by reports, by key.
fn earned_by_reports(bed: &Bed) -> Vec<(String, u64)> {
    let inode = fs::metadata(bed.cgroup("sparing")).expect("a cgroup").ino();
    let rows = store(bed).ledger(Some(&format!("cgroup:{}/sparing#{inode}", bed.name)), 0, 10_000).expect("read");
    let earned = rows.into_iter().filter(|row| row.kind == EntryKind::Earned);
    let keyed = earned.filter_map(|row| Some((row.request?.0, row.amount.0)));
    keyed.filter(|(key, _)| key.starts_with(RequestId::MOVED_PREFIX)).collect()
}

fn held(daemon: &Daemon) -> u64 {
    let slice = daemon.status().and_then(|status| status.slice).expect("a slice");
    let tenant = slice.tenants.into_iter().find(|tenant| tenant.name == "sparing").expect("the tenant");
    tenant.part.map_or(0, |part| part.held_micro_credits)
}

/// Moving so much takes longer than the reader's pause, so that the reader comes back while a file moves: both are then in one slice.
const MOVED_BYTES: usize = 96 << 20;

/// Files are deferred one after the other until reports have earned more often than before.
fn until_more_is_earned(bed: &Bed, cache: &Cache, relay: &Relay, directory: &Path) {
    let before = earned_by_reports(bed).len();
    let data = vec![7; MOVED_BYTES];
    until("files that moved beside a reader earned something", || {
        if cache.waiting() == 0 {
            defer(relay, directory, &data);
        }
        earned_by_reports(bed).len() > before
    });
}

fn sum(earned: &[(String, u64)]) -> u64 {
    earned.iter().map(|(_, amount)| amount).sum()
}

#[test]
fn what_moves_in_gaps_beside_others_earns_its_asker_credits_and_a_kill_doubles_none() {
    let Some(mut bed) = Bed::with_disk(256 << 20) else { return };
    bed.write_config(ENFORCE);
    let Some(data) = Mounted::on(&bed) else { return };
    let mut daemon = bed.start();
    let Some(mut cache) = Cache::start(&bed) else { return };
    let relay = Relay::start(&bed, &cache.socket(), &bed.cgroup("sparing"));
    // On a quiet disk nothing is given up for anybody.
    defer(&relay, &data.0, &[1; 4 << 20]);
    until("a file moved and was counted", || cache.waiting() == 0 && !cache.earned().1.is_empty());
    assert_eq!((cache.earned(), earned_by_reports(&bed)), ((0, "nobody else used the disk".to_owned()), Vec::new()));
    // A reader with pauses: in some slices files move and it reads. Pauses that are shorter than one has to last to be believed (half a
    // second at most) would not be used at all.
    bed.start_reader_with_pauses("heavy", 1, 0.6);
    until_more_is_earned(&bed, &cache, &relay, &data.0);
    until("the cache has heard of it", || cache.earned().0 == sum(&earned_by_reports(&bed)));
    for _ in 0..3 {
        // Wherever they are: with a report on its way, in the ledger or answered.
        kill(&mut daemon);
        cache.kill();
        let before = earned_by_reports(&bed);
        daemon = bed.start();
        cache.start_again();
        until("the tenant is seen", || held(&daemon) >= sum(&before));
        until_more_is_earned(&bed, &cache, &relay, &data.0);
    }
    bed.stop_readers();
    until("the last file is at its place", || cache.waiting() == 0);
    assert_eq!(fs::read(data.0.join("out.bin")).expect("read"), vec![7; MOVED_BYTES]);
    let earned = earned_by_reports(&bed);
    until("what is held is what was entered, each once", || held(&daemon) == sum(&earned_by_reports(&bed)));
    let mut keys: Vec<&String> = earned.iter().map(|(key, _)| key).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), earned.len());
}

#[test]
fn what_waits_for_a_disk_is_listed_with_all_other_work_until_it_has_moved() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    let Some(data) = Mounted::on(&bed) else { return };
    bed.start_reader("heavy", 64);
    let daemon = bed.start();
    let Some(cache) = Cache::start(&bed) else { return };
    // As its unit is: a tenant, which may owe something.
    fs::write(bed.cgroup("sparing").join("cgroup.procs"), cache.child.id().to_string()).expect("a group");
    let relay = Relay::start(&bed, &cache.socket(), &bed.cgroup("sparing"));
    defer(&relay, &data.0, &[1; 4 << 20]);
    let name = format!("minerva-fs-{}", number(&bed).replace(':', "-"));
    let listed = || queues(&daemon).into_iter().find(|queue| queue.name == name);
    daemon.until("it is listed", || listed().is_some_and(|queue| queue.tied_bytes == 4 << 20));
    let queue = listed().expect("listed");
    assert_eq!((queue.kind.as_str(), queue.device.as_str()), ("owed", bed.device.as_str()), "{queue:?}");
    bed.stop_readers();
    until("the file is at its place", || cache.waiting() == 0);
    daemon.until("nothing is owed any more", || listed().is_none_or(|queue| queue.tied_bytes == 0));
}

/// The bed's disk, as `MAJ:MIN`.
fn number(bed: &Bed) -> String {
    fs::read_to_string(format!("/sys/block/{}/dev", bed.device)).expect("a disk").trim().to_owned()
}
