//! One scheduler for all VM disks of a physical one: what guests get of an emulated disk with real seek times.

use crate::server_folder::{ServerFolder, emulated};
use minerva_blk::tag::Priority;
use minerva_linux_actuate::ask_server;
use minerva_model::{ControlRequest, DiskChange, ServerAnswer};
use minerva_vhost_client::{Client, ClientOptions, ClientRing, Request, kind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Each application keeps so many requests under way, so that the scheduler always has a choice.
const BACKLOG: usize = 32;
/// Requests that are counted, of all together.
const COUNTED: u64 = 400;
const BLOCK: u32 = 4096;

/// Keeps a ring full with reads of this priority at random places, until all together have had enough; how many this one had.
fn load(ring: &mut ClientRing, seed: u64, ioprio: u16, blocks: u64, all: &AtomicU64) -> u64 {
    let (mut had, mut random) = (0, fastrand::Rng::with_seed(seed));
    while all.load(Ordering::Relaxed) < COUNTED {
        while ring.under_way() < BACKLOG {
            let sector = random.u64(..blocks) * u64::from(BLOCK) / 512;
            ring.submit(&Request { ioprio: u32::from(ioprio), ..Request::new(kind::IN, sector, BLOCK) });
        }
        ring.kick();
        let answer = ring.wait(Duration::from_secs(60)).expect("an answer");
        assert_eq!(answer.status, 0);
        had += 1;
        all.fetch_add(1, Ordering::Relaxed);
    }
    had
}

/// Runs one load for each ring of each guest.
fn run(place: &ServerFolder, guests: usize, queues: u16, ioprio: &[u16], disk_bytes: u64) -> Vec<u64> {
    let options = ClientOptions { queues, data_bytes: BLOCK, ..ClientOptions::default() };
    let mut clients: Vec<Client> = (0..guests).map(|guest| Client::connect(&place.socket_of(guest), options)).collect();
    let (all, blocks) = (AtomicU64::new(0), disk_bytes / u64::from(BLOCK));
    std::thread::scope(|scope| {
        let rings = clients.iter_mut().flat_map(|client| client.rings.iter_mut());
        let load = |(number, (ring, ioprio))| {
            let (all, ioprio): (&AtomicU64, u16) = (&all, ioprio);
            scope.spawn(move || load(ring, number as u64, ioprio, blocks, all))
        };
        let threads: Vec<_> = rings.zip(ioprio.iter().copied()).enumerate().map(load).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

fn assert_shares(had: &[u64], fair: &[f64]) {
    let (all, whole): (u64, f64) = (had.iter().sum(), fair.iter().sum());
    for (had_one, fair_one) in had.iter().zip(fair) {
        let off = *had_one as f64 / all as f64 / (fair_one / whole) - 1.0;
        assert!(off.abs() < 0.15, "{had:?} where {fair:?} are fair");
    }
}

#[test]
fn guests_share_a_disk_by_weight() {
    let Some(disk) = emulated("minerva-test-weights") else { return };
    let (place, info) = (ServerFolder::new(), disk.info().clone());
    let _serving = place.serve_device(&info, "sfq", &["weight = 300".to_owned(), "weight = 100".to_owned()]);
    let had = run(&place, 2, 1, &[0, 0], info.size_bytes);
    println!("weights 300 and 100: {had:?} requests");
    assert_shares(&had, &[300.0, 100.0]);
}

/// By the field that stock Linux guests fill; a guest can claim no more than its disk may have.
#[test]
fn tags_of_applications_are_obeyed_across_guests_within_the_bounds_of_each() {
    let Some(disk) = emulated("minerva-test-tags") else { return };
    let (place, info) = (ServerFolder::new(), disk.info().clone());
    let bounds = ["tag_max = 254", "tag_default = 40\ntag_max = 40"].map(str::to_owned);
    let serving = place.serve_device(&info, "tag", &bounds);
    // Two applications in each guest. The last claims 254 and may have 40; the one before gives none and has the default.
    let given = [Priority::encode(1, 160), Priority::encode(2, 80), Some(0), Priority::encode(1, 254)];
    let had = run(&place, 2, 2, &given.map(Option::unwrap), info.size_bytes);
    println!("tags 160 and 80 in one guest, none and 254 in another that may have 40: {had:?} requests");
    assert_shares(&had, &[160.0, 80.0, 40.0, 40.0]);
    let (_, said) = serving.terminate();
    let tagged = |disk: &str| -> u64 {
        let line = said.lines().find(|line| line.contains(&format!("{disk}: "))).expect("each disk's counters");
        line.split(", ").find_map(|part| part.strip_suffix(" tagged")).unwrap().parse().unwrap()
    };
    assert!(tagged("vm0") >= had[0] + had[1] && tagged("vm1") >= had[3], "{said}");
}

/// Counts the answers of each guest while all keep their rings full.
struct Counted {
    had: [AtomicU64; 2],
    is_over: AtomicBool,
}

impl Counted {
    /// What each had while both together had so many.
    fn next(&self, count: u64) -> Vec<u64> {
        let now = || self.had.each_ref().map(|had| had.load(Ordering::Relaxed));
        let before = now();
        while now().iter().sum::<u64>() < before.iter().sum::<u64>() + count {
            std::thread::sleep(Duration::from_millis(5));
        }
        now().iter().zip(before).map(|(now, before)| now - before).collect()
    }

    fn load(&self, guest: usize, socket: &Path, blocks: u64) {
        let options = ClientOptions { data_bytes: BLOCK, ..ClientOptions::default() };
        let mut client = Client::connect(socket, options);
        let (ring, mut random) = (&mut client.rings[0], fastrand::Rng::with_seed(guest as u64));
        while !self.is_over.load(Ordering::Relaxed) {
            while ring.under_way() < BACKLOG {
                let sector = random.u64(..blocks) * u64::from(BLOCK) / 512;
                ring.submit(&Request::new(kind::IN, sector, BLOCK));
            }
            ring.kick();
            assert_eq!(ring.wait(Duration::from_secs(60)).expect("an answer").status, 0);
            self.had[guest].fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[test]
fn a_weight_is_set_while_requests_are_queued() {
    let Some(disk) = emulated("minerva-test-set") else { return };
    let (folder, info) = (ServerFolder::new(), disk.info().clone());
    let _serving = folder.serve_device(&info, "sfq", &[String::new(), String::new()]);
    let counted = Counted { had: [0, 0].map(AtomicU64::new), is_over: AtomicBool::new(false) };
    let (counted, folder, blocks) = (&counted, &folder, info.size_bytes / u64::from(BLOCK));
    let said = std::thread::scope(|scope| {
        for guest in 0..2 {
            scope.spawn(move || counted.load(guest, &folder.socket_of(guest), blocks));
        }
        counted.next(50);
        let equal = counted.next(COUNTED);
        let change = DiskChange { weight: Some(300), ..DiskChange::default() };
        let request = ControlRequest::Set { name: "vm0".to_owned(), change };
        let socket = folder.runtime_dir().join("servers/blk");
        let answer = ask_server(&socket, &request, &[], Duration::from_secs(10)).expect("an answer");
        // SFQ gave what was queued its place when it came.
        counted.next(2 * BACKLOG as u64);
        let set = counted.next(COUNTED);
        counted.is_over.store(true, Ordering::Relaxed);
        (equal, answer, set)
    });
    println!("equal weights: {:?}; 300 and 100: {:?} requests", said.0, said.2);
    assert!(matches!(said.1, ServerAnswer::Holds(_)), "{:?}", said.1);
    assert_shares(&said.0, &[1.0, 1.0]);
    assert_shares(&said.2, &[300.0, 100.0]);
}
