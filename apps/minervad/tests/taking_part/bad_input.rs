//! What no tenant should ask, at the real daemon: each is refused with a code, a word and a sentence, is in the log and in the
//! audit, and leaves the ledger and everybody else as they were.

use super::{account, boost, endowed, set_level, store};
use crate::bed::Daemon;
use crate::listeners::{Client, Relay, at, describe};
use minerva_api::v1;
use minerva_api::v1::coordinate_request::Deadline;
use tonic::{Code, Status};

const NEGATIVE: u64 = -1_i64 as u64;

/// What was asked, its key, how it was answered; and the code, the word and the sentence that it should be answered with.
type Row = (&'static str, &'static str, Result<(), Status>, Code, &'static str, &'static str);

fn operation(key: &str, size_bytes: u64, deadline: Option<Deadline>) -> v1::CoordinateRequest {
    v1::CoordinateRequest { request_id: key.to_owned(), size_bytes, deadline, ..v1::CoordinateRequest::default() }
}

async fn asks(client: &mut Client, request: v1::CoordinateRequest) -> Result<(), Status> {
    client.coordinate(request).await.map(drop)
}

async fn begin(client: &mut Client, key: &str) -> Result<(), Status> {
    client.begin(v1::BeginRequest { request_id: key.to_owned() }).await.map(drop)
}

async fn finish(client: &mut Client, key: &str) -> Result<(), Status> {
    client.finish(v1::FinishRequest { request_id: key.to_owned() }).await.map(drop)
}

async fn cancel(client: &mut Client, key: &str) -> Result<(), Status> {
    client.cancel(v1::CancelRequest { request_id: key.to_owned() }).await.map(drop)
}

/// Operations: in the wrong order, twice, under a key that is taken, and too many.
async fn operations(client: &mut Client, rows: &mut Vec<Row>) {
    const OVER: (Code, &str) = (Code::NotFound, "unknown-operation");
    const SENTENCE: &str = "it was never asked for, or it is over";
    let (code, word) = OVER;
    rows.push(("begin before the question", "", begin(client, "o1").await, code, word, SENTENCE));
    rows.push(("finish before the question", "", finish(client, "o1").await, code, word, SENTENCE));
    rows.push(("cancel before the question", "", cancel(client, "o1").await, code, word, SENTENCE));
    asks(client, operation("o1", 1 << 20, None)).await.expect("good");
    finish(client, "o1").await.expect("good");
    rows.push(("finish twice", "", finish(client, "o1").await, code, word, SENTENCE));
    rows.push(("begin after the end", "", begin(client, "o1").await, code, word, SENTENCE));
    rows.push(("cancel after the end", "", cancel(client, "o1").await, code, word, SENTENCE));
    asks(client, operation("o2", 1 << 20, None)).await.expect("good");
    let other = asks(client, operation("o2", 2 << 20, None)).await;
    let reused = (Code::AlreadyExists, "key-reused", "The key o2 stands for another request");
    rows.push(("another size", "o2", other, reused.0, reused.1, reused.2));
    let bought = boost(client, "o2", 1).await.map(drop);
    rows.push(("a boost under an operation's key", "o2", bought, reused.0, reused.1, reused.2));
    let mut answer = Ok(());
    for number in 0..50 {
        if answer.is_ok() {
            answer = asks(client, operation(&format!("t{number}"), 1 << 20, None)).await;
        }
    }
    let sentence = "2 operations of this tenant wait or are under way, which is the limit";
    rows.push(("too many", "", answer, Code::ResourceExhausted, "too-many", sentence));
}

/// Numbers that cannot be meant, and things that are not there.
async fn numbers(client: &mut Client, rows: &mut Vec<Row>) {
    const OUT: (Code, &str) = (Code::InvalidArgument, "out-of-range");
    let (code, word) = OUT;
    let size = "An operation moves 1 to 1152921504606846976 bytes";
    let long = "more than ten years; a negative number looks like this too";
    rows.push(("no size", "n1", asks(client, operation("n1", 0, None)).await, code, word, size));
    rows.push(("a negative size", "n2", asks(client, operation("n2", NEGATIVE, None)).await, code, word, size));
    let negative = operation("n3", 1, Some(Deadline::DoneWithinNs(NEGATIVE)));
    rows.push(("a negative deadline", "n3", asks(client, negative).await, code, word, long));
    let past = operation("n4", 1, Some(Deadline::BeginWithinNs(0)));
    let late = (Code::FailedPrecondition, "too-late", "that moment has passed already");
    rows.push(("a deadline in the past", "n4", asks(client, past).await, late.0, late.1, late.2));
    let bought = |answer: Result<v1::BoostResponse, Status>| answer.map(drop);
    let none = bought(boost(client, "n5", 0).await);
    rows.push(("no boost", "n5", none, code, word, "A boost is of one slice at least, not 0."));
    let absurd = bought(boost(client, "n6", u32::MAX).await);
    rows.push(("an absurd boost", "n6", absurd, code, word, "A boost is of 1 to 3600 slices, not 4294967295."));
    let dear = bought(boost(client, "n7", 1).await);
    let poor =
        (Code::FailedPrecondition, "not-enough-credits", "1 boosted slices cost 25 credits and the account holds 0");
    rows.push(("a boost without credits", "n7", dear, poor.0, poor.1, poor.2));
    let unknown = (Code::NotFound, "unknown-device", "There is no disk 250:250 that Minerva watches; there are ");
    let device = || "250:250".to_owned();
    let elsewhere = v1::CoordinateRequest { device: device(), ..operation("n8", 1, None) };
    rows.push(("an unknown disk", "n8", asks(client, elsewhere).await, unknown.0, unknown.1, unknown.2));
    let amount = Some(v1::boost_request::Amount::Slices(1));
    let request = v1::BoostRequest { request_id: "n9".to_owned(), amount, device: device() };
    let elsewhere = bought(client.boost(request).await.map(tonic::Response::into_inner));
    rows.push(("a boost of an unknown disk", "n9", elsewhere, unknown.0, unknown.1, unknown.2));
    let entries = vec![v1::ScheduleEntry { level: v1::Level::Low.into(), ..v1::ScheduleEntry::default() }];
    let moon = v1::SetScheduleRequest { entries, time_zone: "Moon/Base".to_owned() };
    let moon = client.set_schedule(moon).await.map(drop);
    rows.push(("an unknown time zone", "", moon, code, word, "There is no time zone Moon/Base"));
    let level = v1::SetLevelRequest { level: 9, lifetime: None };
    let level = client.set_level(level).await.map(drop);
    rows.push(("an unknown level", "", level, code, word, "There is no level 9"));
    let mut held = Vec::new();
    for _ in 0..64 {
        let request = v1::HoldLevelRequest { level: v1::Level::Low.into() };
        held.push(client.hold_level(request).await.expect("room"));
    }
    let one_more = client.hold_level(v1::HoldLevelRequest { level: v1::Level::Low.into() }).await.map(drop);
    let sentence = "This tenant holds 64 levels already, which is the limit.";
    rows.push(("a level too many", "", one_more, Code::ResourceExhausted, "too-many", sentence));
}

/// What the audit has of a tenant's refusals: the keys and the sentences.
fn audited(daemon: &Daemon) -> Vec<(String, String)> {
    let request = v1::AuditRequest { tenant: "heavy".to_owned(), ..v1::AuditRequest::default() };
    let entries = daemon.ask(async |mut client| {
        let mut answers = client.audit(request).await.expect("an audit").into_inner();
        let mut refused = Vec::new();
        while let Some(answer) = answers.message().await.expect("an entry") {
            let entry = answer.entry.expect("an entry");
            if entry.kind == "refused" {
                refused.push((entry.request_id, entry.text));
            }
        }
        refused
    });
    entries.expect("a daemon")
}

#[test]
fn what_no_tenant_should_ask_is_refused_and_changes_nothing() {
    let Some((bed, socket)) = endowed(0) else { return };
    bed.write_config("mode = \"enforce\"\n[coordination]\noperations_max = 2\n");
    let daemon = bed.start();
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    let bystander = Relay::start(&bed, &socket, &bed.cgroup("sparing"));
    at(&bystander.socket, async |mut client| {
        set_level(&mut client, v1::Level::Lowest, None).await;
        let entries = vec![v1::ScheduleEntry { level: v1::Level::Low.into(), ..v1::ScheduleEntry::default() }];
        client.set_schedule(v1::SetScheduleRequest { entries, ..Default::default() }).await.expect("a schedule");
    });
    let others = describe(&bystander.socket).expect("a tenant");
    let ledger = || -> Vec<_> {
        let rows = store(&bed).ledger(Some(&account(&bed)), 0, 1_000).expect("read");
        rows.into_iter().map(|row| (row.kind, row.amount, row.request)).collect()
    };
    let entered = ledger();
    let mut rows = Vec::new();
    at(&relay.socket, async |mut client| {
        operations(&mut client, &mut rows).await;
        numbers(&mut client, &mut rows).await;
        // A level is set, not counted: released twice is released.
        for _ in 0..2 {
            set_level(&mut client, v1::Level::Normal, None).await;
        }
    });
    for (what, _, answer, code, word, sentence) in &rows {
        let Err(status) = answer else { panic!("granted: {what}") };
        let told = status.metadata().get("minerva-refusal").and_then(|word| word.to_str().ok());
        assert_eq!((status.code(), told), (*code, Some(*word)), "{what}: {status:?}");
        assert!(status.message().contains(sentence), "{what}: {}", status.message());
    }
    assert_eq!(describe(&bystander.socket).expect("a tenant"), others, "everyone else is as before");
    assert_eq!(ledger(), entered, "nothing was earned or spent");
    daemon.until("each is in the audit, under the tenant and with the key", || {
        let audited = audited(&daemon);
        rows.iter().all(|(_, key, _, _, word, sentence)| {
            let is_it = |(request, text): &(String, String)| {
                text.contains(sentence) && text.ends_with(&format!("({word})")) && request.contains(key)
            };
            audited.iter().any(is_it)
        })
    });
    let log = daemon.log();
    for (what, _, _, _, _, sentence) in &rows {
        assert!(log.contains(sentence), "{what} is not in the log");
    }
}
