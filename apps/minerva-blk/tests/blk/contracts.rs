//! Contracts of four guests on one emulated disk with real seek times (Rocha and Bona, HTBS): four readers, each of whom waits for
//! his answer before he asks again, far apart on the disk. By turns each request costs a seek, and there is not enough for the greatest
//! contract; HTBS keeps all four.

use crate::server_folder::{ServerFolder, emulated};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::time::{Duration, Instant};

/// Bytes a second that are promised.
const RATES: [u64; 4] = [8_800_000, 4_000_000, 2_000_000, 800_000];
const BLOCK: u32 = 65_536;
const TIME: Duration = Duration::from_secs(6);
/// The first second is for learning how the disk is.
const WARM_UP: Duration = Duration::from_secs(1);

/// What a guest's disk is promised; the rest of its table.
fn promise(rate: u64) -> String {
    format!("rate = {rate}\nburst = \"256KiB\"\ndelay = \"200ms\"\n")
}

/// Bytes a second that each had.
fn read_all(place: &ServerFolder, disk_bytes: u64) -> Vec<u64> {
    let sectors = disk_bytes / 512 / RATES.len() as u64;
    let threads: Vec<_> = (0..RATES.len())
        .map(|number| {
            let socket = place.socket_of(number);
            std::thread::spawn(move || {
                let mut client =
                    Client::connect(&socket, ClientOptions { data_bytes: BLOCK, ..ClientOptions::default() });
                let (begun, mut sector, mut bytes) = (Instant::now(), number as u64 * sectors, 0);
                while begun.elapsed() < TIME {
                    assert_eq!(client.rings[0].ask(&Request::new(kind::IN, sector, BLOCK)).status, 0);
                    sector += u64::from(BLOCK) / 512;
                    bytes += if begun.elapsed() > WARM_UP { u64::from(BLOCK) } else { 0 };
                }
                bytes / (TIME - WARM_UP).as_secs()
            })
        })
        .collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

#[test]
fn contracts_hold_across_guests_on_one_disk() {
    let Some(disk) = emulated("minerva-test-contracts") else { return };
    let (place, info) = (ServerFolder::new(), disk.info().clone());
    let had = ["noop", "htbs"].map(|scheduler| {
        let disk_of = |rate: &u64| if scheduler == "noop" { String::new() } else { promise(*rate) };
        let _serving = place.serve_device(&info, scheduler, &RATES.iter().map(disk_of).collect::<Vec<_>>());
        let had = read_all(&place, info.size_bytes);
        println!("{scheduler}: {had:?} bytes a second, of which {RATES:?} are promised");
        had
    });
    let missed = |had: &[u64]| had.iter().zip(RATES).filter(|(had, rate)| **had < rate * 95 / 100).count();
    assert!(missed(&had[0]) > 0, "by turns the disk has enough for everybody, so nothing is shown: {had:?}");
    assert_eq!(missed(&had[1]), 0, "{had:?}");
}
