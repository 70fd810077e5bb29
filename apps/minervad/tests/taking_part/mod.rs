//! What tenants ask for and what becomes of it, at the real daemon: in force at once, ended with what it hangs on, and neither
//! lost nor doubled by `kill -9`.

mod adjusted;
mod after_slices;
mod bad_input;
mod guest_pool;
mod idle;
mod kept;
mod migrated;
mod to_pool;
mod together;

use crate::ENFORCE;
use crate::bed::replay::replayed;
use crate::bed::{Bed, Daemon, drawn_seed, until};
use crate::listeners::{Client, Relay, at, describe};
use minerva_api::v1;
use minerva_model::{EntryKind, EntryNumber, LedgerEntry, MicroCredits, Nanos, RequestId};
use minerva_store::{Posting, Store, system_clock};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Response, Status};

const PRICE: u64 = 25_000_000;

/// A bed whose tenant `heavy` was given credits, and the socket for tenants.
fn endowed(credits: u64) -> Option<(Bed, PathBuf)> {
    let bed = Bed::new()?;
    bed.write_config(ENFORCE);
    let entry = LedgerEntry {
        number: EntryNumber(0),
        account: account(&bed),
        kind: EntryKind::Given,
        amount: MicroCredits::credits(credits),
        expires_in: Some(Nanos::from_secs(3600)),
        request: None,
    };
    fs::create_dir_all(bed.directory.path().join("state")).expect("a directory");
    store(&bed).post(&[Posting::from(entry)]).expect("written");
    let socket = bed.directory.path().join("run/tenant.sock");
    Some((bed, socket))
}

fn account(bed: &Bed) -> String {
    let inode = fs::metadata(bed.cgroup("heavy")).expect("a cgroup").ino();
    format!("cgroup:{}/heavy#{inode}", bed.name)
}

/// A second connection to the daemon's store.
fn store(bed: &Bed) -> Store {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").expect("a boot");
    let path = bed.directory.path().join("state/minerva.db");
    Store::open(&path, boot.trim(), system_clock()).expect("opens").0
}

/// What the account of `heavy` spent, by key.
fn spent(bed: &Bed) -> Vec<(String, u64)> {
    let rows = store(bed).ledger(Some(&account(bed)), 0, 10_000).expect("read");
    let spent = rows.into_iter().filter(|row| row.kind == EntryKind::Spent);
    spent.map(|row| (row.request.expect("a key").0, row.amount.0)).collect()
}

async fn boost(client: &mut Client, key: &str, slices: u32) -> Result<v1::BoostResponse, Status> {
    let amount = Some(v1::boost_request::Amount::Slices(slices));
    let request = v1::BoostRequest { request_id: key.to_owned(), amount, device: String::new() };
    answered(async || client.boost(request.clone()).await).await
}

/// The answer, however slow the machine is: one that did not come in time is asked for again, as the refusal says.
async fn answered<T>(mut ask: impl AsyncFnMut() -> Result<Response<T>, Status>) -> Result<T, Status> {
    loop {
        let answer = ask().await;
        let is_late =
            |status: &Status| status.metadata().get("minerva-refusal").is_some_and(|word| word == "no-answer");
        if !answer.as_ref().is_err_and(is_late) {
            return answer.map(Response::into_inner);
        }
    }
}

async fn finish(client: &mut Client, key: &str) {
    let request = v1::FinishRequest { request_id: key.to_owned() };
    answered(async || client.finish(request.clone()).await).await.expect("finished");
}

async fn set_level(
    client: &mut Client,
    level: v1::Level,
    lifetime: Option<v1::set_level_request::Lifetime>,
) -> v1::Level {
    let request = v1::SetLevelRequest { level: level.into(), lifetime };
    answered(async || client.set_level(request).await).await.expect("a level").level()
}

/// The level of `heavy` that the operator sees. On a thread of its own, because a client may be speaking on this one.
fn shown(daemon: &Daemon) -> String {
    level_of(daemon, "heavy")
}

fn level_of(daemon: &Daemon, name: &str) -> String {
    let status = std::thread::scope(|scope| scope.spawn(|| daemon.status()).join().expect("a thread"));
    let slice = status.and_then(|status| status.slice).expect("a slice");
    let tenant = slice.tenants.into_iter().find(|tenant| tenant.name == name).expect("the tenant");
    tenant.part.map(|part| part.level).unwrap_or_default()
}

fn kill(daemon: &mut Daemon) {
    daemon.signal("-KILL");
    daemon.child.wait().expect("an end");
}

#[test]
fn a_boost_and_its_price_survive_a_kill_and_its_key_buys_nothing_more() {
    let Some((mut bed, socket)) = endowed(10_000) else { return };
    bed.start_readers();
    let mut daemon = bed.start();
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    let bought = at(&relay.socket, async |mut client| boost(&mut client, "b1", 300).await.expect("a boost"));
    let held = 2_500_000_000;
    assert_eq!(bought, v1::BoostResponse { slices: 300, price_micro_credits: 300 * PRICE, held_micro_credits: held });
    // Answered means durable, the boost with the price.
    assert_eq!(spent(&bed), [("b1".to_owned(), 300 * PRICE)]);
    let declared = store(&bed).declared(&account(&bed)).expect("read").expect("declared");
    assert_eq!(declared.boosts.len(), 1);
    let why = || {
        let tenants = daemon.status().and_then(|status| status.slice).map(|slice| slice.tenants).unwrap_or_default();
        tenants.into_iter().flat_map(|tenant| tenant.uses).map(|used| used.why).collect::<String>()
    };
    until("the decision names the request", || why().contains("slices left, request b1"));
    kill(&mut daemon);
    let daemon = bed.start();
    until("the tenant is seen", || describe(&relay.socket).is_ok_and(|found| found.boosts.len() == 1));
    at(&relay.socket, async |mut client| {
        let again = boost(&mut client, "b1", 300).await.expect("it is known");
        assert_eq!(again.held_micro_credits, held);
        let refused = boost(&mut client, "b2", 101).await.expect_err("too dear");
        assert!(refused.message().contains("101 boosted slices cost 2525 credits"), "{refused:?}");
        let request = v1::CreditsRequest { entries_max: 10 };
        let credits = client.credits(request).await.expect("credits").into_inner();
        assert_eq!(credits.entries.iter().map(|entry| entry.kind.as_str()).collect::<Vec<_>>(), ["given", "spent"]);
    });
    assert_eq!(describe(&relay.socket).expect("the tenant").boosts.len(), 1);
    assert_eq!(spent(&bed).len(), 1);
    // What was asked and answered is kept, whoever was killed.
    let audit = || {
        let request = v1::AuditRequest { tenant: "heavy".to_owned(), ..v1::AuditRequest::default() };
        let answers = daemon.ask(async |mut client| {
            let mut answers = client.audit(request).await.expect("an audit").into_inner();
            let mut kinds = Vec::new();
            while let Some(answer) = answers.message().await.expect("an entry") {
                let entry = answer.entry.expect("an entry");
                kinds.push(format!("{} {}", entry.kind, entry.request_id));
            }
            kinds
        });
        answers.expect("a daemon")
    };
    until("the audit has it", || {
        let kinds = audit();
        ["given ", "spent b1", "granted b1", "refused b2"].iter().all(|kind| kinds.iter().any(|one| one == kind))
    });
}

#[test]
fn no_purchase_is_lost_or_doubled_by_kills_at_any_moment() {
    // The figure `kill-ledger` asks for more.
    let kills = std::env::var("MINERVA_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let Some((bed, socket)) = endowed(100_000) else { return };
    // Every purchase is asked for once more at the end, as fast as it goes.
    bed.write_config(&format!("{ENFORCE}\n[participation]\nrequests_per_second = 1000000\nburst = 1000000"));
    let mut daemon = bed.start();
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    let seed = drawn_seed();
    println!("kills with seed {seed}");
    let (mut drawn, mut number, mut answered) = (fastrand::Rng::with_seed(seed), 0, Vec::new());
    let mut interrupted_starts = 0;
    for _ in 0..kills {
        let random = drawn.u64(..);
        let (purchases, moment) = (random >> 61, (random >> 40) % 2_000_000);
        let pid = daemon.child.id();
        at(&relay.socket, async |mut client| {
            for _ in 0..purchases {
                let key = format!("k{number}");
                boost(&mut client, &key, 1).await.expect("a boost");
                answered.push(key);
                number += 1;
            }
            let killer = std::thread::spawn(move || {
                (0..moment).for_each(|turn| assert!(std::hint::black_box(turn) < 2_000_000));
                std::process::Command::new("kill").args(["-KILL", &pid.to_string()]).status().expect("kill")
            });
            // The kill comes while another one is under way, which is sent again to the next daemon, under its key; or when
            // nothing is, and the loop, its slice and the store's thread are wherever they are.
            if random >> 56 & 1 == 0 && boost(&mut client, &format!("k{number}"), 1).await.is_ok() {
                answered.push(format!("k{number}"));
                number += 1;
            }
            killer.join().expect("a thread");
        });
        daemon.child.wait().expect("an end");
        if random >> 55 & 1 == 0 {
            // The next one does not get far: it is killed while it starts, recalls, or has just begun.
            daemon = bed.launch(&[]);
            std::thread::sleep(std::time::Duration::from_micros((random >> 30) % 300_000));
            kill(&mut daemon);
            interrupted_starts += 1;
        }
        daemon = bed.start();
        until("the tenant is seen", || describe(&relay.socket).is_ok());
    }
    at(&relay.socket, async |mut client| {
        for key in answered.iter().cloned().chain([format!("k{number}")]) {
            boost(&mut client, &key, 1).await.expect("known or bought");
        }
    });
    let rows = spent(&bed);
    let mut keys: Vec<&str> = rows.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!((keys.len(), rows.len()), (number + 1, number + 1), "each once: {rows:?}");
    let held = describe(&relay.socket).expect("the tenant").held_micro_credits;
    assert_eq!(held, 100_000_000_000 - rows.iter().map(|(_, amount)| amount).sum::<u64>());
    assert_eq!(i64::try_from(held).expect("small"), store(&bed).balance_micro_credits(&account(&bed)).expect("read"));
    println!("{kills} kills and {interrupted_starts} at a start, {} purchases, each in the ledger once", rows.len());
}

#[test]
fn a_level_ends_with_its_time_its_process_or_its_connection() {
    let Some((bed, socket)) = endowed(0) else { return };
    let daemon = bed.start();
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    at(&relay.socket, async |mut client| {
        let lasting = |ns| Some(v1::set_level_request::Lifetime::ForNs(ns));
        assert_eq!(set_level(&mut client, v1::Level::Low, lasting(3_600_000_000_000)).await, v1::Level::Low);
        assert_eq!(shown(&daemon), "low", "in force with the answer");
        // It may be over before the answer is there.
        set_level(&mut client, v1::Level::Low, lasting(400_000_000)).await;
        let request = v1::HoldLevelRequest { level: v1::Level::Idle.into() };
        let mut levels = answered(async || client.hold_level(request).await).await.expect("a stream");
        let heard = levels.message().await.expect("an answer").expect("a level");
        assert_eq!((heard.level(), shown(&daemon).as_str()), (v1::Level::Idle, "idle"));
        std::thread::scope(|scope| scope.spawn(|| daemon.pass_slices(6)).join())
            .expect("slices of a tenth of a second");
        assert_eq!(shown(&daemon), "idle", "it is held beyond the time of the other");
    });
    until("the connection is gone, and the level with it", || shown(&daemon).is_empty());
    let mut short = Relay::start(&bed, &socket, &bed.cgroup("sparing"));
    let level = || level_of(&daemon, "sparing");
    at(&short.socket, async |mut client| {
        let lifetime = v1::set_level_request::Lifetime::Process(0);
        set_level(&mut client, v1::Level::Lowest, Some(lifetime)).await;
    });
    daemon.pass_slices(3);
    assert_eq!(level(), "lowest", "its process lives, though the connection does not");
    short.end();
    until("the process has ended, and the level with it", || level().is_empty());
}

#[test]
fn a_full_disk_under_the_ledger_refuses_a_purchase_and_spends_nothing() {
    let Some(mut bed) = Bed::new() else { return };
    bed.write_config(ENFORCE);
    let Some(state) = bed.small_state_disk() else { return };
    let entry = LedgerEntry {
        number: EntryNumber(0),
        account: account(&bed),
        kind: EntryKind::Given,
        amount: MicroCredits::credits(1_000),
        expires_in: Some(Nanos::from_secs(3600)),
        request: None,
    };
    store(&bed).post(&[Posting::from(entry)]).expect("written");
    bed.start_readers();
    let daemon = bed.start();
    let socket = bed.directory.path().join("run/tenant.sock");
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    let mut filler = fs::File::create(state.join("filler")).expect("a file");
    while std::io::Write::write_all(&mut filler, &[0; 4096]).is_ok() {}
    until("the store says so", || !daemon.status().expect("an answer").store_error.is_empty());
    at(&relay.socket, async |mut client| {
        let refused = boost(&mut client, "b1", 1).await.expect_err("not committed");
        assert!(refused.message().contains("Nothing was spent"), "{refused:?}");
        // A level that cannot be kept is not promised either.
        let idle = v1::SetLevelRequest { level: v1::Level::Idle.into(), lifetime: None };
        let refused = client.set_level(idle).await.expect_err("not kept");
        assert!(refused.message().contains("All is as before"), "{refused:?}");
        assert_eq!(shown(&daemon), "");
    });
    assert_eq!(describe(&relay.socket).expect("the tenant").held_micro_credits, 1_000_000_000);
    drop(filler);
    fs::remove_file(state.join("filler")).expect("room again");
    until("the same key buys it", || at(&relay.socket, async |mut client| boost(&mut client, "b1", 1).await.is_ok()));
    assert_eq!(spent(&bed).len(), 1);
    at(&relay.socket, async |mut client| {
        assert_eq!(set_level(&mut client, v1::Level::Idle, None).await, v1::Level::Idle);
    });
}

#[test]
fn a_recording_with_requests_replays_byte_for_byte() {
    let Some((bed, socket)) = endowed(1_000) else { return };
    let daemon = bed.start();
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    let recorded = daemon.ask(async |mut client| {
        let (asking, asked) = tokio::sync::mpsc::channel::<v1::RecordRequest>(1);
        let mut pieces = client.record(ReceiverStream::new(asked)).await.expect("a recording").into_inner();
        let socket = relay.socket.clone();
        let tenant = std::thread::spawn(move || {
            at(&socket, async |mut client| {
                boost(&mut client, "b1", 3).await.expect("a boost");
                set_level(&mut client, v1::Level::Low, None).await;
                let request = v1::CoordinateRequest {
                    request_id: "o1".to_owned(),
                    size_bytes: 1 << 20,
                    deadline: Some(v1::coordinate_request::Deadline::BeginWithinNs(500_000_000)),
                    ..v1::CoordinateRequest::default()
                };
                let mut answers = answered(async || client.coordinate(request.clone()).await).await.expect("a stream");
                let first = answers.message().await.expect("an answer").expect("an answer").answer;
                assert!(matches!(first, Some(v1::coordinate_response::Answer::Wait(_))), "{first:?}");
                // Asked again under its key, as after a lost connection: one operation, and both are called back.
                let mut again = answered(async || client.coordinate(request.clone()).await).await.expect("a stream");
                for answers in [&mut answers, &mut again] {
                    let mut last = None;
                    while let Some(answer) = answers.message().await.expect("an answer") {
                        last = answer.answer;
                    }
                    assert!(matches!(last, Some(v1::coordinate_response::Answer::BeginNow(_))), "{last:?}");
                }
                let finish = v1::FinishRequest { request_id: "o1".to_owned() };
                client.finish(finish.clone()).await.expect("it is over");
                let twice = client.finish(finish).await.expect_err("it is over already");
                assert_eq!(twice.code(), tonic::Code::NotFound, "{twice:?}");
            });
        });
        let (mut asking, mut bytes) = (Some(asking), Vec::new());
        while let Some(v1::RecordResponse { piece }) = pieces.message().await.expect("a piece") {
            bytes.extend(piece);
            if tenant.is_finished() {
                asking = None;
            }
        }
        drop(asking);
        tenant.join().expect("the tenant's part");
        bytes
    });
    let effects = replayed(&recorded.expect("a daemon")).concat();
    for effect in ["ledger", "granted", "ready", "declare", "refused"] {
        assert!(effects.contains(&format!("{{\"{effect}\":")), "no {effect} in {effects}");
    }
    let key = RequestId("b1".to_owned());
    let bought = store(&bed).purchases(&account(&bed), &account(&bed), 10).expect("read");
    assert!(bought.iter().any(|purchase| purchase.request == key));
}
