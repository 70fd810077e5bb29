//! Databases on both trees, killed while they commit: by a `kill -9` of the database, and of the service below it.

use crate::pool_folder::{PoolFolder, Service};
use crate::posix::{operations_asked_for, place_for_others};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(120);
/// Kills of each kind in each tree in the short run, and of how many operations that are asked for one is a kill.
const KILLS_DEFAULT: u64 = 1;
const OPERATIONS_PER_KILL: u64 = 200_000;
/// A database as large as this is begun anew: each check reads all of it, and memory is full at some time.
const DATABASE_BYTES: u64 = 32 << 20;
/// PostgreSQL refuses to be root.
const NOBODY: u32 = 65534;

fn kills() -> u64 {
    operations_asked_for().map_or(KILLS_DEFAULT, |operations| (operations / OPERATIONS_PER_KILL).max(1))
}

/// Whom a `kill -9` meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Database,
    Service,
}

const VICTIMS: [Victim; 2] = [Victim::Database, Victim::Service];

fn has(program: &str, arguments: &[&str]) -> bool {
    let found = Command::new(program).args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = found.is_ok_and(|status| status.success());
    if !is_there {
        println!("skipped: `{program} {}` does not work here", arguments.join(" "));
    }
    is_there
}

/// Commits the next number to two tables, and says which once that is acknowledged.
const COMMIT: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
db.execute('pragma journal_mode = ' + sys.argv[2])
db.execute('pragma synchronous = full')
for table in ('one', 'two'):
    db.execute('create table if not exists ' + table + '(n integer primary key, text)')
n = db.execute('select coalesce(max(n), 0) from one').fetchone()[0]
while True:
    n += 1
    db.execute('begin immediate')
    for table in ('one', 'two'):
        db.execute('insert into ' + table + ' values(?, ?)', (n, 'x' * (n * 37 % 5000)))
    db.execute('commit')
    print(n, flush=True)
";

/// What is found after it: the check, and last number and count of both tables.
const CHECK: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], timeout=30)
print(db.execute('pragma integrity_check').fetchone()[0])
for table in ('one', 'two'):
    print(*db.execute('select max(n), count(*), min(length(text) = n * 37 % 5000) from ' + table).fetchone())
";

/// Lets it commit, and kills; the last number that was acknowledged.
fn commit_until_killed(database: &Path, mode: &str, victim: Victim, service: &mut Service, after: Duration) -> u64 {
    let mut command = Command::new("python3");
    command.args(["-c", COMMIT]).arg(database).arg(mode).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut first = String::new();
    lines.read_line(&mut first).unwrap();
    std::thread::sleep(after);
    match victim {
        Victim::Database => child.kill().unwrap(),
        Victim::Service => service.kill(),
    }
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    child.wait().unwrap();
    // A line that the kill cut off acknowledged nothing.
    let whole = rest.rfind('\n').map_or("", |end| &rest[..end]);
    let last = whole.lines().last().unwrap_or(first.trim());
    last.parse().unwrap_or_else(|_| panic!("it committed nothing: {first:?} {rest:?}"))
}

/// What was found whole goes, with its journals, once it has become large.
fn begin_anew_if_large(database: &Path) {
    if fs::metadata(database).unwrap().len() < DATABASE_BYTES {
        return;
    }
    for ending in ["", "-wal", "-shm", "-journal"] {
        let mut path = database.as_os_str().to_owned();
        path.push(ending);
        let removed = fs::remove_file(&path);
        assert!(removed.is_ok() || !ending.is_empty(), "{}: {removed:?}", database.display());
    }
}

#[test]
fn sqlite_loses_no_commit_whoever_is_killed() {
    if !has("python3", &["-c", "import sqlite3"]) {
        return;
    }
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u64);
    let random = &mut fastrand::Rng::with_seed(seed);
    let place = PoolFolder::new("");
    let mut service = place.serve();
    let (mut committed, mut killed) = (0, 0);
    for _ in 0..kills() {
        for (tree, victim) in
            [place.temporary(), place.stable()].into_iter().flat_map(|tree| VICTIMS.map(|one| (tree.clone(), one)))
        {
            for mode in ["wal", "delete"] {
                let database = tree.join(format!("{mode}.db"));
                let after = Duration::from_millis(random.u64(1..200));
                let acknowledged = commit_until_killed(&database, mode, victim, &mut service, after);
                if victim == Victim::Service {
                    service = place.serve();
                }
                let found = Command::new("python3").args(["-c", CHECK]).arg(&database).output().unwrap();
                let said = String::from_utf8_lossy(&found.stdout).into_owned();
                let lines: Vec<&str> = said.lines().collect();
                let last: u64 = lines.get(1).and_then(|line| line.split(' ').next()?.parse().ok()).unwrap_or(0);
                let expected = format!("{last} {last} 1");
                assert!(
                    lines == ["ok", expected.as_str(), expected.as_str()] && last >= acknowledged,
                    "{} after {victim:?} was killed, seed {seed}, {acknowledged} acknowledged: {said}{}",
                    database.display(),
                    String::from_utf8_lossy(&found.stderr)
                );
                (committed, killed) = (committed + last, killed + 1);
                begin_anew_if_large(&database);
            }
        }
    }
    println!("SQLite: {killed} kills, seed {seed}, up to {committed} commits in all, none lost");
}

/// Whether a process is more than what its parent has not asked for yet.
fn is_running(process: Pid) -> bool {
    let shown = fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero())).unwrap_or_default();
    shown.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// A server of PostgreSQL in a tree.
struct Postgres {
    programs: PathBuf,
    data: PathBuf,
    sockets: tempfile::TempDir,
    server: Option<Child>,
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Postgres {
    /// Where Debian has its programs, the newest first.
    fn programs() -> Option<PathBuf> {
        let versions = fs::read_dir("/usr/lib/postgresql").ok()?;
        let mut found: Vec<PathBuf> = versions.flatten().map(|entry| entry.path().join("bin")).collect();
        found.retain(|folder| folder.join("initdb").exists() && folder.join("pgbench").exists());
        found.sort();
        found.pop()
    }

    fn new(programs: PathBuf, tree: &Path) -> Self {
        let sockets = tempfile::Builder::new().prefix("minerva-test-pg-").tempdir().unwrap();
        std::os::unix::fs::chown(sockets.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let new = Self { programs, data: tree.join("pg"), sockets, server: None };
        new.run("initdb", &["-k", "-N", "-A", "trust", "-U", "tester", "-D", new.data.to_str().unwrap()]);
        new
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.uid(NOBODY).gid(NOBODY).current_dir("/").env("PGHOST", self.sockets.path());
        command.env("PGUSER", "tester").env("PGDATABASE", "postgres").env("LC_ALL", "C");
        command
    }

    /// What it says.
    fn run(&self, program: &str, arguments: &[&str]) -> String {
        let output = self.command(program).args(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{program}: {said}{}", String::from_utf8_lossy(&output.stderr));
        said
    }

    /// Starts it, and waits until it has recovered.
    fn start(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(&self.data).arg("-k").arg(self.sockets.path());
        command.args(["-c", "listen_addresses=", "-c", "checkpoint_timeout=30s", "-c", "max_wal_size=32MB"]);
        self.server = Some(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let begun = Instant::now();
        while !self.command("pg_isready").stdout(Stdio::null()).status().unwrap().success() {
            let ended = self.server.as_mut().unwrap().try_wait().unwrap();
            assert!(ended.is_none() && begun.elapsed() < PATIENCE, "PostgreSQL does not come back: {ended:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// All of its processes, at once.
    fn kill(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let pid = server.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let _ = server.kill();
        let _ = server.wait();
        for child in children.split(' ').filter_map(|child| child.parse().ok()).filter_map(Pid::from_raw) {
            let _ = kill_process(child, Signal::KILL);
            // It holds memory that the next start asks for.
            while is_running(child) {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }

    /// What pgbench keeps in four tables agrees, every index finds every row, and no page is torn.
    fn check(&mut self) -> u64 {
        let sums = "select (select sum(abalance) from pgbench_accounts) = (select sum(bbalance) from pgbench_branches) \
                    and (select sum(bbalance) from pgbench_branches) = (select sum(tbalance) from pgbench_tellers) \
                    and (select sum(bbalance) from pgbench_branches) = (select coalesce(sum(delta), 0) from pgbench_history), \
                    (select count(*) from pgbench_history)";
        let said = self.run("psql", &["-At", "-F", " ", "-c", sums]);
        let transactions = said.trim().strip_prefix("t ").and_then(|count| count.parse().ok());
        self.run("pg_amcheck", &["--install-missing", "--heapallindexed", "postgres"]);
        self.run("pg_ctl", &["-D", self.data.to_str().unwrap(), "-m", "fast", "-w", "stop"]);
        drop(self.server.take().map(|mut server| server.wait()));
        self.run("pg_checksums", &["--check", "-D", self.data.to_str().unwrap()]);
        transactions.unwrap_or_else(|| panic!("the sums differ: {said}"))
    }
}

#[test]
fn postgresql_recovers_whoever_is_killed() {
    let Some(asked) = operations_asked_for() else {
        println!("skipped: takes a minute; `cargo xtask figures cache-posix` runs it");
        return;
    };
    let Some(programs) = Postgres::programs() else {
        println!("skipped: PostgreSQL is not installed (apt-get install postgresql)");
        return;
    };
    let seed = std::env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u64);
    let random = &mut fastrand::Rng::with_seed(seed);
    let (place, mut service) = place_for_others();
    let rounds = (asked / OPERATIONS_PER_KILL / 5).max(1);
    for tree in [place.temporary(), place.stable()] {
        let mut server = Postgres::new(programs.clone(), &tree);
        server.start();
        server.run("pgbench", &["-i", "-q", "-s", "1"]);
        let mut transactions = 0;
        for victim in (0..rounds).flat_map(|_| VICTIMS) {
            let mut command = server.command("pgbench");
            command.args(["-n", "-c", "4", "-j", "2", "-T", "600"]).stdout(Stdio::null()).stderr(Stdio::null());
            let mut load = command.spawn().unwrap();
            std::thread::sleep(Duration::from_millis(random.u64(500..3000)));
            if victim == Victim::Service {
                service.kill();
            }
            server.kill();
            load.kill().unwrap();
            load.wait().unwrap();
            if victim == Victim::Service {
                service = place.serve();
            }
            server.start();
            let now = server.check();
            assert!(now > transactions, "nothing was committed before {victim:?} was killed");
            transactions = now;
            server.start();
        }
        println!("PostgreSQL in {}: {} kills, seed {seed}, {transactions} transactions", tree.display(), rounds * 2);
    }
}
