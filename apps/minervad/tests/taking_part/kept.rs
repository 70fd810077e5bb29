//! What was answered is kept, whenever the daemon is killed: levels, schedules, and operations that wait. And what the store
//! cannot say is unknown, and not nothing.

use super::{account, answered, endowed, finish, kill, level_of, set_level, shown, store};
use crate::ENFORCE;
use crate::bed::{Bed, Daemon, until};
use crate::listeners::{Client, Relay, at, describe};
use minerva_api::v1;
use minerva_api::v1::coordinate_request::Deadline;
use minerva_api::v1::coordinate_response::Answer;
use minerva_api::v1::set_level_request::Lifetime;
use std::fs;
use std::os::unix::fs::MetadataExt;
use tonic::{Code, Streaming};

fn set_slice(bed: &Bed, slice: &str) {
    let text = fs::read_to_string(bed.config()).expect("the file");
    fs::write(bed.config(), text.replace("slice = \"100ms\"", &format!("slice = \"{slice}\""))).expect("the file");
}

fn whole_day(level: v1::Level) -> v1::ScheduleEntry {
    v1::ScheduleEntry { level: level.into(), ..v1::ScheduleEntry::default() }
}

#[test]
fn a_level_and_a_schedule_are_kept_once_they_are_answered() {
    let Some((bed, socket)) = endowed(0) else { return };
    // So long that no slice ends while the test runs: what is there after a kill was there before the answer.
    set_slice(&bed, "60s");
    let mut daemon = bed.start();
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    at(&relay.socket, async |mut client| {
        set_level(&mut client, v1::Level::Idle, None).await;
        daemon.child.kill().expect("killed");
    });
    daemon.child.wait().expect("an end");
    let mut daemon = bed.start();
    assert_eq!(shown(&daemon), "idle", "the first slice recalls it");
    at(&relay.socket, async |mut client| {
        let request = v1::SetScheduleRequest { entries: vec![whole_day(v1::Level::Low)], time_zone: "UTC".to_owned() };
        let level = answered(async || client.set_schedule(request.clone()).await).await.expect("a schedule").level();
        assert_eq!(level, v1::Level::Idle, "the furthest step back");
        daemon.child.kill().expect("killed");
    });
    daemon.child.wait().expect("an end");
    let daemon = bed.start();
    at(&relay.socket, async |mut client| {
        assert_eq!(set_level(&mut client, v1::Level::Normal, None).await, v1::Level::Low, "the schedule's");
        let request = v1::SetScheduleRequest::default();
        let level = answered(async || client.set_schedule(request.clone()).await).await.expect("no schedule").level();
        assert_eq!(level, v1::Level::Normal);
        let kept = store(&bed).claimed(&account(&bed)).expect("read");
        assert_eq!(kept, None, "coming back is kept as well");
        let entries = vec![whole_day(v1::Level::Low)];
        let wrong = v1::SetScheduleRequest { entries, time_zone: "Moon/Base".to_owned() };
        let refused = client.set_schedule(wrong).await.expect_err("no such zone");
        assert!(refused.message().contains("There is no time zone Moon/Base"), "{refused:?}");
    });
    assert_eq!(shown(&daemon), "");
}

#[test]
fn a_level_that_was_recalled_names_its_request() {
    let Some((bed, socket)) = endowed(0) else { return };
    let mut daemon = bed.start();
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    at(&relay.socket, async |mut client| {
        set_level(&mut client, v1::Level::Idle, None).await;
    });
    let explain = |daemon: &Daemon| {
        let request = || v1::ExplainRequest { tenant: "heavy".to_owned(), at_unix_ns: None };
        let answer = daemon.ask(async |mut client| client.explain(request()).await.ok()).flatten();
        answer.and_then(|answer| answer.into_inner().explanations.pop())
    };
    let names = |told: &v1::Explanation| told.text.contains("request minerva:set-1");
    until("the request is told", || explain(&daemon).is_some_and(|told| names(&told)));
    let before = explain(&daemon).expect("an explanation");
    until("it is declared", || store(&bed).declared(&account(&bed)).expect("read").is_some());
    kill(&mut daemon);
    let daemon = bed.start();
    until("the level is explained again", || explain(&daemon).is_some_and(|told| told.unix_ns > before.unix_ns));
    let after = explain(&daemon).expect("an explanation");
    assert!(names(&after), "{}", after.text);
}

#[test]
fn a_level_until_a_process_ends_survives_a_kill_as_long_as_the_process_does() {
    let Some((bed, socket)) = endowed(0) else { return };
    let mut daemon = bed.start();
    let mut relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    at(&relay.socket, async |mut client| {
        set_level(&mut client, v1::Level::Lowest, Some(Lifetime::Process(0))).await;
    });
    for _ in 0..2 {
        kill(&mut daemon);
        daemon = bed.start();
        until("the level is back", || shown(&daemon) == "lowest");
        daemon.pass_slices(3);
        assert_eq!(shown(&daemon), "lowest", "its process lives");
    }
    relay.end();
    until("the process has ended, and the level with it", || shown(&daemon).is_empty());
    // And of one that ends while no daemon looks, the next one does not know.
    let mut other = Relay::start(&bed, &socket, &bed.cgroup("sparing"));
    at(&other.socket, async |mut client| {
        set_level(&mut client, v1::Level::Lowest, Some(Lifetime::Process(0))).await;
    });
    kill(&mut daemon);
    other.end();
    let inode = fs::metadata(bed.cgroup("sparing")).expect("a cgroup").ino();
    let is_kept = || {
        let claimed = store(&bed).claimed(&format!("cgroup:{}/sparing#{inode}", bed.name));
        claimed.expect("read").is_some()
    };
    assert!(is_kept());
    let daemon = bed.start();
    daemon.pass_slices(2);
    assert_eq!(level_of(&daemon, "sparing"), "");
    until("nothing is kept of it", || !is_kept());
}

/// A store that cannot be read says nothing of a balance, least of all that it is nought.
#[test]
fn what_an_account_holds_is_unknown_while_the_store_cannot_be_read() {
    let Some((bed, socket)) = endowed(1_000) else { return };
    let (file, away) = (bed.directory.path().join("state/minerva.db"), bed.directory.path().join("away.db"));
    fs::rename(&file, &away).expect("moved away");
    fs::create_dir(&file).expect("something that is no database");
    let daemon = bed.start();
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    at(&relay.socket, async |mut client| {
        let refused = client.credits(v1::CreditsRequest { entries_max: 0 }).await.expect_err("unknown");
        assert_eq!(refused.code(), Code::Unavailable);
        assert!(refused.message().contains("is not known"), "{refused:?}");
        let refused = super::boost(&mut client, "b1", 1).await.expect_err("unknown");
        assert!(refused.message().contains("is not known"), "{refused:?}");
    });
    assert!(!daemon.status().expect("an answer").store_error.is_empty());
    fs::remove_dir(&file).and_then(|()| fs::rename(&away, &file)).expect("moved back");
    until("the balance is known", || describe(&relay.socket).expect("the tenant").held_micro_credits == 1_000_000_000);
    at(&relay.socket, async |mut client| {
        let bought = super::boost(&mut client, "b1", 1).await.expect("a boost");
        assert_eq!(bought.held_micro_credits, 975_000_000);
    });
}

async fn coordinate(client: &mut Client, key: &str, deadline: Deadline) -> Streaming<v1::CoordinateResponse> {
    let request = v1::CoordinateRequest {
        request_id: key.to_owned(),
        size_bytes: 8 << 20,
        deadline: Some(deadline),
        ..v1::CoordinateRequest::default()
    };
    answered(async || client.coordinate(request.clone()).await).await.expect("a stream")
}

async fn next(answers: &mut Streaming<v1::CoordinateResponse>) -> Answer {
    answers.message().await.expect("an answer").and_then(|response| response.answer).expect("one of them")
}

/// The longest that an operation waits, as it was told.
fn at_most(answer: &Answer) -> u64 {
    match answer {
        Answer::Wait(wait) => wait.at_most_ns.expect("a deadline"),
        other => panic!("it does not wait: {other:?}"),
    }
}

/// An operation that has to wait: its key, its answers, and how long at most. One that comes at a moment at which the readers
/// happen to rest may begin, and ends.
async fn waiting(
    client: &mut Client,
    name: &str,
    deadline: Deadline,
) -> (String, Streaming<v1::CoordinateResponse>, u64) {
    for number in 0.. {
        let request_id = format!("{name}-{number}");
        let mut answers = coordinate(client, &request_id, deadline).await;
        match next(&mut answers).await {
            Answer::BeginNow(_) => finish(client, &request_id).await,
            answer => return (request_id, answers, at_most(&answer)),
        }
    }
    unreachable!("the numbers do not end")
}

/// A daemon and two tenants that use the disk all the time, so that a third that coordinates has to wait.
fn crowded() -> Option<(Bed, Daemon, Relay)> {
    let mut bed = Bed::new()?;
    bed.write_config(&format!("{ENFORCE}\n[coordination]\ncontention_accepted = 0"));
    let group = bed.cgroup("young");
    fs::create_dir(&group).expect("a cgroup");
    bed.start_readers();
    let daemon = bed.start();
    let relay = Relay::start(&bed, &bed.directory.path().join("run/tenant.sock"), &group);
    until("both are seen to use the disk", || {
        let tenants = daemon.status().and_then(|status| status.slice).map(|slice| slice.tenants).unwrap_or_default();
        tenants.iter().filter(|tenant| !tenant.uses.is_empty()).count() == 2
    });
    Some((bed, daemon, relay))
}

#[test]
fn an_operation_that_waits_is_resumed_by_its_key_after_a_kill_and_has_its_first_deadline() {
    let Some((mut bed, mut daemon, relay)) = crowded() else { return };
    let within = Deadline::BeginWithinNs(50_000_000_000);
    let is_kept = |key: &str| {
        let inode = fs::metadata(bed.cgroup("young")).expect("a cgroup").ino();
        let declared = store(&bed).declared(&format!("cgroup:{}/young#{inode}", bed.name)).expect("read");
        declared.is_some_and(|declared| declared.operations.iter().any(|one| one.request.0 == key && !one.released))
    };
    let (key, first) = at(&relay.socket, async |mut client| {
        for round in 0.. {
            let (key, _answers, first) = waiting(&mut client, &format!("round-{round}"), within).await;
            // What was declared is kept with the slice, and the operation may begin before.
            for _ in 0..50 {
                if is_kept(&key) {
                    return (key, first);
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            let _ = client.finish(v1::FinishRequest { request_id: key }).await;
        }
        unreachable!("the rounds do not end")
    });
    kill(&mut daemon);
    // An operation that moves nothing for ten slices counts as over, and this one moves nothing.
    set_slice(&bed, "2s");
    let daemon = bed.start();
    until("the operation is recalled", || {
        describe(&relay.socket).is_ok_and(|found| found.operations.iter().map(|one| &one.request_id).eq([&key]))
    });
    at(&relay.socket, async |mut client| {
        let mut answers = coordinate(&mut client, &key, Deadline::BeginWithinNs(3_000_000_000_000)).await;
        match next(&mut answers).await {
            // The daemon has not seen the readers yet.
            Answer::BeginNow(_) => {}
            answer => {
                let again = at_most(&answer);
                assert!(again < first, "the deadline is that of the first time: {again} after {first}");
                std::thread::scope(|scope| scope.spawn(|| bed.stop_readers()).join()).expect("readers");
                assert!(matches!(next(&mut answers).await, Answer::BeginNow(_)), "the disk has room now");
            }
        }
        assert!(answers.message().await.expect("an end").is_none());
        // It is the one that was asked for first.
        finish(&mut client, &key).await;
    });
    assert!(describe(&relay.socket).expect("the tenant").operations.is_empty());
    drop(daemon);
}

#[test]
fn an_operation_waits_no_longer_than_its_deadline_though_the_disk_stays_busy() {
    let Some((_bed, _daemon, relay)) = crowded() else { return };
    at(&relay.socket, async |mut client| {
        let (begin, done) = (Deadline::BeginWithinNs(1_500_000_000), Deadline::DoneWithinNs(4_000_000_000));
        for (name, deadline, within) in [("begin", begin, 1_500_000_000), ("done", done, 4_000_000_000)] {
            let (request_id, mut answers, at_most) = waiting(&mut client, name, deadline).await;
            assert!(at_most <= within, "{at_most}");
            assert!(matches!(next(&mut answers).await, Answer::BeginNow(_)), "{request_id}");
            finish(&mut client, &request_id).await;
        }
    });
}
