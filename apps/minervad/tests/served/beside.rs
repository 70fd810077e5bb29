//! Contracts of a guest's disk beside processes of the host that read all they can from the same disk, under the kernel's BFQ: without
//! the daemon, with it, and with one that only watches.

use super::{Running, SOCKET, in_group};
use crate::bed::{Bed, drawn_seed, until};
use minerva_lab::disk::{Disk, DiskInfo, DiskSpec};
use minerva_linux_actuate::ask_server;
use minerva_model::{ContractFigures, ControlRequest, DiskChange, Protection, ServerAnswer, ServerReport};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How often both arms are measured.
const ROUNDS: &str = "MINERVA_BESIDE_ROUNDS";
/// What the guest's disk is promised, in bytes a second.
const RATE: u64 = 8_000_000;
const BLOCK: u32 = 64 << 10;
/// Groups of the host, each with two programs that read in sequence.
const HOSTS: u64 = 8;
/// How long each arm is watched, after a while for weights to take effect.
const TIME: Duration = Duration::from_secs(12);
const SETTLE: Duration = Duration::from_secs(4);

/// The guest: reads in sequence and waits for each answer, as a program that copies a file.
#[test]
#[ignore = "is run by the other test, as a guest"]
fn sequential_front_end() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let options = ClientOptions { data_bytes: BLOCK, ..ClientOptions::default() };
    let mut client = Client::connect(Path::new(&socket), options);
    let ring = &mut client.rings[0];
    for number in 0.. {
        ring.submit(&Request::new(kind::IN, number * u64::from(BLOCK) / 512, BLOCK));
        ring.kick();
        // The server has ended, and the test with it.
        let Some(_) = ring.wait(Duration::from_secs(60)) else { return };
    }
}

struct Scene<'a> {
    bed: &'a Bed,
    /// The kernel's name of the disk.
    device: String,
    _running: Vec<Running>,
}

/// What the guest had in an arm.
#[derive(Default)]
struct Had {
    bytes_per_second: f64,
    requests: u64,
    late: u64,
    /// Seconds in which it asked all the time and had less than the contract gives.
    short_seconds: u64,
}

impl Had {
    /// The figure's lines of all rounds with the daemon. What was not asked for cannot be kept either.
    fn lines(&self, seconds: u64) -> [serde_json::Value; 2] {
        let line = |value: u64, unit: &str, detail: String| {
            let met = value == 0 && self.requests > 0;
            serde_json::json!({
                "id": "vm-beside-host", "value": value, "unit": unit, "goal": "0", "met": met, "detail": detail,
            })
        };
        let of = format!("of {seconds} with minervad, {RATE} bytes a second promised");
        let late = format!("of {} with minervad, within 500 ms", self.requests);
        [line(self.short_seconds, "seconds short", of), line(self.late, "requests late", late)]
    }
}

#[test]
fn one_short_second_or_late_request_misses_the_figure() {
    let met = |short_seconds, late, requests| {
        let had = Had { short_seconds, late, requests, ..Had::default() };
        had.lines(60).map(|line| line["met"].as_bool().expect("a judgement"))
    };
    assert_eq!(met(0, 0, 9), [true, true]);
    assert_eq!(met(1, 0, 9), [false, true]);
    assert_eq!(met(0, 1, 9), [true, false]);
    assert_eq!(met(0, 0, 0), [false, false]);
}

impl<'a> Scene<'a> {
    /// A server of one disk, its guest, and the host's programs; none where there is no server, with a word.
    fn start(bed: &'a Bed, disk: &DiskInfo) -> Option<Self> {
        let program = Path::new(env!("CARGO_BIN_EXE_minervad")).with_file_name("minerva-blk");
        if !program.exists() {
            eprintln!("skipped: needs minerva-blk beside minervad (cargo build -p minerva-blk-cli)");
            return None;
        }
        let (at, image) = (bed.directory.path(), &disk.device);
        let (control, socket) = (at.join("run/servers/blk"), at.join("guest.sock"));
        let text = format!(
            "[server]\ncontrol = {control:?}\n[devices.{}]\nscheduler = \"htbs\"\nmodel = \"sata7200-80g\"\n\
             [disks.vm1]\nimage = {image:?}\nsocket = {socket:?}\nread_only = true\nrate = {RATE}\nburst = \"512KiB\"\n\
             delay = \"500ms\"\n",
            disk.kernel_name
        );
        let config = at.join("blk.toml");
        fs::write(&config, text).expect("the server's file");
        let hosts: Vec<String> = (0..HOSTS).map(|number| format!("host-{number}")).collect();
        for group in hosts.iter().map(String::as_str).chain(["server", "guest"]) {
            fs::create_dir_all(bed.cgroup(group)).expect("a cgroup");
        }
        let (program, config) = (program.display().to_string(), config.display().to_string());
        let mut running = vec![in_group(bed, "server", &[&program, "--config", &config], None)];
        let device = disk.kernel_name.clone();
        let scene = Self { bed, device: device.clone(), _running: Vec::new() };
        until("the server listens", || scene.ask().is_some());
        let own = std::env::current_exe().expect("this program").display().to_string();
        let words = [own.as_str(), "--exact", "served::beside::sequential_front_end", "--ignored"];
        running.push(in_group(bed, "guest", &words, Some(socket)));
        until("the guest is served", || scene.reads() > 0);
        let mebibytes = disk.size_bytes >> 20;
        for (number, group) in hosts.iter().enumerate() {
            for program in 0..2 {
                let place = mebibytes * (2 * number as u64 + program + 1) / (2 * HOSTS + 1);
                let (from, skip) = (format!("if={}", disk.device.display()), format!("skip={place}"));
                let words = ["dd", &from, "of=/dev/null", "bs=1M", "iflag=direct", &skip];
                running.push(in_group(bed, group, &words, None));
            }
        }
        Some(Self { bed, device, _running: running })
    }

    fn say(&self, request: &ControlRequest) -> Option<ServerAnswer> {
        let socket = self.bed.directory.path().join("run/servers/blk");
        ask_server(&socket, request, &[], Duration::from_secs(10)).ok()
    }

    fn ask(&self) -> Option<ServerReport> {
        match self.say(&ControlRequest::List)? {
            ServerAnswer::Holds(text) => serde_json::from_str(&text).ok(),
            _ => None,
        }
    }

    fn reads(&self) -> u64 {
        self.ask().map_or(0, |report| report.disks[0].io.read_bytes)
    }

    fn protection(&self) -> Option<Protection> {
        self.ask()?.devices.into_iter().next()?.protection
    }

    /// Watches for a while.
    fn watch(&self) -> Had {
        std::thread::sleep(SETTLE);
        let now = || {
            let report = self.ask().expect("a server");
            let contract = report.disks[0].figures.contract.clone().expect("a contract");
            (Instant::now(), report.disks[0].io.read_bytes, contract)
        };
        let (began, bytes_before, before) = now();
        std::thread::sleep(TIME);
        let (ended, bytes_after, after) = now();
        let ContractFigures { requests, late, seconds_short: short_seconds, .. } = after;
        Had {
            bytes_per_second: (bytes_after - bytes_before) as f64 / (ended - began).as_secs_f64(),
            requests: requests - before.requests,
            late: late - before.late,
            short_seconds: short_seconds - before.seconds_short,
        }
    }

    /// What a group weighs on the disk.
    fn weight(&self, group: &str) -> u32 {
        let knob = self.bed.cgroup(group).join(self.bed.hierarchy.weights);
        let text = fs::read_to_string(knob).unwrap_or_default();
        let number = fs::read_to_string(format!("/sys/block/{}/dev", self.device)).unwrap_or_default();
        let own = text.lines().find_map(|line| line.strip_prefix(number.trim())?.trim().parse().ok());
        own.or_else(|| text.lines().find_map(|line| line.strip_prefix("default ")?.trim().parse().ok())).unwrap_or(0)
    }
}

fn write_config(bed: &Bed, disk: &DiskInfo, mode: &str) {
    bed.write_config(&format!("mode = \"{mode}\"\n"));
    let text = fs::read_to_string(bed.config()).expect("the operator's file");
    let only = format!("devices_only = [\"{}\"", bed.device);
    let text = text.replace(&only, &format!("{only}, \"{}\"", disk.kernel_name)).replace("\"100ms\"", "\"500ms\"");
    fs::write(bed.config(), text).expect("the operator's file");
}

#[test]
fn contracts_hold_beside_host_processes_where_the_daemon_holds_them_back() {
    let Some(bed) = Bed::new() else { return };
    let spec = DiskSpec { elevator: "bfq".to_owned(), ..DiskSpec::new("minerva-test-beside", "sata7200-80g") };
    let disk = match Disk::create(&spec) {
        Ok(disk) => disk,
        Err(error) => return eprintln!("skipped: {error}"),
    };
    // As weights are judged elsewhere: BFQ's guesses of who is interactive would be a third thing to compare.
    disk.queue().write("iosched/low_latency", "0").expect("bfq has low_latency");
    let Some(scene) = Scene::start(&bed, disk.info()) else { return };
    let rounds = std::env::var(ROUNDS).ok().and_then(|text| text.parse().ok()).unwrap_or(1_u32);
    let reserved = scene.ask().expect("a server").devices[0].reserved_permille;
    println!("{RATE} bytes a second within 500 ms are promised, {reserved} permille of the disk");
    assert!((50..900).contains(&reserved), "{reserved}");
    // Beside a daemon that only watches nothing more is promised, and the reason is given.
    write_config(&bed, disk.info(), "shadow");
    let daemon = bed.start();
    daemon.until("it is told that others use the disk", || {
        scene.protection().is_some_and(|told| !told.held && told.others_permille >= 20)
    });
    let change = DiskChange { rate_bytes_per_second: Some(RATE + 1), ..DiskChange::default() };
    let refused = scene.say(&ControlRequest::Set { name: "vm1".to_owned(), change });
    let Some(ServerAnswer::Refused(why)) = refused else { panic!("{refused:?}") };
    assert!(why.contains("minervad only watches") && why.contains("`force`"), "{why}");
    drop(daemon);
    write_config(&bed, disk.info(), "enforce");
    let seed = drawn_seed();
    println!("order with seed {seed}");
    let (mut random, mut all) = (fastrand::Rng::with_seed(seed), Had::default());
    for round in 0..rounds {
        // Drawn, so that neither arm always has the warmer disk.
        let arms = if random.bool() { [false, true] } else { [true, false] };
        let mut had = arms.map(|is_steered| {
            let daemon = is_steered.then(|| bed.start());
            if let Some(daemon) = &daemon {
                daemon.until("others are held back", || scene.protection().is_some_and(|told| told.held));
                daemon.until("the server's weight is raised", || scene.weight("server") > 100);
            }
            let had = scene.watch();
            let weights = ["server", "host-0"].map(|group| scene.weight(group));
            println!(
                "round {round}, {}: {:.2} MB/s, {} s short, {} of {} requests late; weights of server and host {weights:?}, {:?}",
                if is_steered { "with minervad" } else { "without" },
                had.bytes_per_second / 1e6,
                had.short_seconds,
                had.late,
                had.requests,
                scene.protection().filter(|_| is_steered)
            );
            if let Some(mut daemon) = daemon {
                daemon.signal("-TERM");
                daemon.child.wait().expect("an end");
            }
            had
        });
        if arms[0] {
            had.reverse();
        }
        let [without, with] = had;
        let times = with.bytes_per_second / without.bytes_per_second;
        // How many seconds are short is the figure's to judge: beside a compiler single rounds say little of it.
        assert!(times > 1.5, "{times} times as much with minervad");
        all.requests += with.requests;
        all.late += with.late;
        all.short_seconds += with.short_seconds;
    }
    for line in all.lines(u64::from(rounds) * TIME.as_secs()) {
        println!("{line}");
    }
    until("the weight is undone", || scene.weight("server") == 100);
}
