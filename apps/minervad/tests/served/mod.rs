//! Disks of guests at a real `minerva-blk`, steered by the real daemon: two front ends, each in a tenant of its own, keep their rings
//! full, and what each gets follows its share.

mod beside;

use crate::bed::{Bed, Daemon, until};
use minerva_lab::disk::{Disk, DiskInfo, DiskSpec};
use minerva_linux_actuate::ask_server;
use minerva_model::{ControlRequest, ServerAnswer, ServerReport};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Where the front end of a guest connects: says to [`front_end`] that it is one.
const SOCKET: &str = "MINERVA_TEST_FRONT_END";
const TENANTS: [&str; 2] = ["heavy", "sparing"];
/// Requests of both, over which their parts are compared.
const COUNTED: u64 = 400;
const BLOCK: u32 = 4096;

/// What each guest runs, in a process of its own.
#[test]
#[ignore = "is run by the other test, as a guest"]
fn front_end() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let mut client =
        Client::connect(Path::new(&socket), ClientOptions { data_bytes: BLOCK, ..ClientOptions::default() });
    let (ring, mut random) = (&mut client.rings[0], fastrand::Rng::with_seed(u64::from(std::process::id())));
    loop {
        while ring.under_way() < 32 {
            let sector = random.u64(..1 << 20) * u64::from(BLOCK) / 512;
            ring.submit(&Request::new(kind::IN, sector, BLOCK));
        }
        ring.kick();
        // The server has ended, and the test with it.
        let Some(_) = ring.wait(Duration::from_secs(20)) else { return };
    }
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

struct Guests<'a> {
    bed: &'a Bed,
    _running: Vec<Running>,
}

impl<'a> Guests<'a> {
    /// A server of one disk and its two guests; none where there is no server, with a word.
    fn start(bed: &'a Bed, disk: &DiskInfo) -> Option<Self> {
        let program = Path::new(env!("CARGO_BIN_EXE_minervad")).with_file_name("minerva-blk");
        if !program.exists() {
            eprintln!("skipped: needs minerva-blk beside minervad (cargo build -p minerva-blk-cli)");
            return None;
        }
        let at = bed.directory.path();
        let mut text = format!("[server]\ncontrol = {:?}\n", at.join("run/servers/blk"));
        text += &format!("[devices.{}]\nscheduler = \"sfq\"\n", disk.kernel_name);
        for tenant in TENANTS {
            let (image, socket) = (&disk.device, at.join(format!("{tenant}.sock")));
            text += &format!("[disks.{tenant}]\nimage = {image:?}\nsocket = {socket:?}\nread_only = true\n");
        }
        let config = at.join("blk.toml");
        fs::write(&config, text).expect("the server's file");
        fs::create_dir_all(bed.cgroup("server")).expect("a cgroup");
        let config = config.display().to_string();
        let mut running = vec![in_group(bed, "server", &[&program.display().to_string(), "--config", &config], None)];
        let guests = Self { bed, _running: Vec::new() };
        until("the server listens", || guests.ask().is_some());
        let own = std::env::current_exe().expect("this program").display().to_string();
        for tenant in TENANTS {
            let words = [own.as_str(), "--exact", "served::front_end", "--ignored"];
            running.push(in_group(bed, tenant, &words, Some(at.join(format!("{tenant}.sock")))));
        }
        until("both are served", || TENANTS.iter().all(|tenant| guests.reads(tenant) > 0));
        Some(Self { bed, _running: running })
    }

    fn ask(&self) -> Option<ServerReport> {
        let socket = self.bed.directory.path().join("run/servers/blk");
        match ask_server(&socket, &ControlRequest::List, &[], Duration::from_secs(10)) {
            Ok(ServerAnswer::Holds(text)) => serde_json::from_str(&text).ok(),
            _ => None,
        }
    }

    fn of(&self, tenant: &str) -> Option<(u32, u64)> {
        let report = self.ask()?;
        let disk = report.disks.iter().find(|disk| disk.settings.name == tenant)?;
        Some((disk.share, disk.io.read_ops))
    }

    fn share(&self, tenant: &str) -> u32 {
        self.of(tenant).map_or(0, |(share, _)| share)
    }

    fn reads(&self, tenant: &str) -> u64 {
        self.of(tenant).map_or(0, |(_, reads)| reads)
    }

    /// How many times as much the heavy one gets from now on.
    fn ratio(&self) -> f64 {
        let now = || TENANTS.map(|tenant| self.reads(tenant));
        let before = now();
        let had = || now().into_iter().zip(before).map(|(now, before)| now - before).collect::<Vec<u64>>();
        until("both were answered", || had().iter().sum::<u64>() > COUNTED);
        let had = had();
        println!("{TENANTS:?}: {had:?} reads");
        had[0] as f64 / had[1].max(1) as f64
    }

    fn until_shares(&self, daemon: &Daemon, heavy: u32, sparing: u32) {
        daemon.until("the shares are there", || (self.share("heavy"), self.share("sparing")) == (heavy, sparing));
    }
}

/// Runs a command in a group of the bed.
fn in_group(bed: &Bed, group: &str, words: &[&str], socket: Option<PathBuf>) -> Running {
    let script = format!("echo $$ > {} && exec \"$@\"", bed.cgroup(group).join("cgroup.procs").display());
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).args(words).stdout(Stdio::null()).stderr(Stdio::null());
    if let Some(socket) = socket {
        command.env(SOCKET, socket);
    }
    Running(command.spawn().expect("a shell"))
}

#[test]
fn shares_become_weights_of_guests_disks_and_are_undone_however_the_daemon_ends() {
    let Some(bed) = Bed::new() else { return };
    // With real seek times, so that it is the disk that both wait for.
    let spec = DiskSpec { elevator: "none".to_owned(), ..DiskSpec::new("minerva-test-served", "sata7200-80g") };
    let disk = match Disk::create(&spec) {
        Ok(disk) => disk,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    let Some(guests) = Guests::start(&bed, disk.info()) else { return };
    bed.write_config(&format!(
        "mode = \"enforce\"\n[[rules]]\npattern = \"{}/heavy\"\nweight_percent = 400\n",
        bed.name
    ));
    // Shares by the rule alone, and the disk that is served.
    let text = fs::read_to_string(bed.config()).expect("the operator's file");
    let text = text.replace("[fennel]\n", "[fennel]\nshare_sparing = 100\nshare_heavy = 100\n");
    let only = format!("devices_only = [\"{}\"", bed.device);
    fs::write(bed.config(), text.replace(&only, &format!("{only}, \"{}\"", disk.info().kernel_name)))
        .expect("the operator's file");
    let before = guests.ratio();
    assert!((0.8..1.25).contains(&before), "equal at first: {before}");
    let mut daemon = bed.start();
    guests.until_shares(&daemon, 400, 100);
    let steered = guests.ratio();
    assert!(steered > 2.5, "{steered} for shares of 400 and 100\n{}", daemon.log());
    // What guests read is theirs, and not the server's.
    let used = |tenant: &str| {
        let slice = daemon.status()?.slice?;
        let tenant = slice.tenants.into_iter().find(|row| row.cgroup.ends_with(tenant))?;
        Some(tenant.uses.iter().map(|used| used.read_operations_per_second).max().unwrap_or(0))
    };
    daemon.until("the heavy guest's reads are told", || used("/heavy") > Some(0));
    assert!(used("/server").unwrap_or(0) < used("/heavy").unwrap_or(0), "counted once");
    daemon.signal("-TERM");
    assert!(daemon.child.wait().expect("an end").success(), "{}", daemon.log());
    assert_eq!((guests.share("heavy"), guests.share("sparing")), (100, 100), "{}", daemon.log());
    let after = guests.ratio();
    assert!((0.8..1.25).contains(&after), "equal again: {after}");
    assert!(!bed.directory.path().join("run/undo.journal").exists());
    // A daemon that is killed is undone by its guard; one that hangs when its lease ends.
    let mut daemon = bed.start();
    guests.until_shares(&daemon, 400, 100);
    daemon.child.kill().expect("killed");
    daemon.child.wait().expect("an end");
    until("the guard has undone it", || guests.share("heavy") == 100);
    let daemon = bed.start();
    guests.until_shares(&daemon, 400, 100);
    daemon.signal("-STOP");
    until("the lease has ended", || guests.share("heavy") == 100);
    daemon.signal("-CONT");
}
