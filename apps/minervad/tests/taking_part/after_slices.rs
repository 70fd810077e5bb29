//! An operation that is told to begin after so many slices: it is called by then, though the one before it is not done, or begins
//! of its own accord.

use super::{answered, finish, store};
use crate::ENFORCE;
use crate::bed::{Bed, Daemon, until};
use crate::listeners::{Client, Relay, at, describe};
use minerva_api::v1;
use minerva_api::v1::coordinate_request::Deadline;
use minerva_api::v1::coordinate_response::Answer;
use minerva_model::{AccessKind, LearntBandwidth, Nanos};
use std::fs;
use tonic::Streaming;

const BYTES_PER_SECOND: u64 = 100_000_000;
/// As the bed's file says.
const SLICE_NS: u64 = 100_000_000;
/// What the first operation announces is two seconds' work; it reads far less, so that it is under way for longer.
const SLICES_OF_THE_FIRST: u32 = 20;

/// A daemon that knows what its disk delivers, and a tenant that reads a little all the time.
fn measured() -> Option<(Bed, Daemon)> {
    let mut bed = Bed::new()?;
    bed.write_config(ENFORCE);
    fs::create_dir_all(bed.directory.path().join("state")).expect("a directory");
    let number = fs::read_to_string(format!("/sys/block/{}/dev", bed.device)).expect("the disk");
    let row = LearntBandwidth {
        device: number.trim().parse().expect("a number"),
        access: AccessKind::SequentialRead,
        bytes_per_second: BYTES_PER_SECOND as f64,
        measured_seconds: 300.0,
        age: Nanos::ZERO,
    };
    store(&bed).learn(&[row]).expect("written");
    bed.start_reader("heavy", 2);
    let daemon = bed.start();
    until("the reader is seen", || {
        let tenants = daemon.status().and_then(|status| status.slice).map(|slice| slice.tenants).unwrap_or_default();
        tenants.iter().any(|tenant| tenant.name == "heavy" && !tenant.uses.is_empty())
    });
    Some((bed, daemon))
}

async fn coordinate(
    client: &mut Client,
    request_id: &str,
    deadline: Option<Deadline>,
) -> Streaming<v1::CoordinateResponse> {
    let request = v1::CoordinateRequest {
        request_id: request_id.to_owned(),
        size_bytes: BYTES_PER_SECOND * SLICE_NS / 1_000_000_000 * u64::from(SLICES_OF_THE_FIRST),
        access: v1::Access::SequentialRead.into(),
        deadline,
        ..v1::CoordinateRequest::default()
    };
    answered(async || client.coordinate(request.clone()).await).await.expect("a stream")
}

async fn next(answers: &mut Streaming<v1::CoordinateResponse>) -> Answer {
    answers.message().await.expect("an answer").and_then(|response| response.answer).expect("one of them")
}

/// Whether an operation of a tenant has begun; nothing when it is over.
fn has_begun(relay: &Relay, request_id: &str) -> Option<bool> {
    let found = std::thread::scope(|scope| scope.spawn(|| describe(&relay.socket)).join().expect("a thread"));
    let operations = found.expect("the tenant").operations;
    operations.iter().find(|one| one.request_id == request_id).map(|one| one.begun)
}

/// The reader's operation is under way, and another tenant is told to begin after it.
async fn told_to_begin_later(client: &mut Client, key: &str) -> (u32, Streaming<v1::CoordinateResponse>) {
    let mut answers = coordinate(client, key, Some(Deadline::BeginWithinNs(60_000_000_000))).await;
    match next(&mut answers).await {
        Answer::BeginAfter(v1::BeginAfter { slices, slice_ns: SLICE_NS }) => (slices, answers),
        other => panic!("it is known when it may begin: {other:?}"),
    }
}

#[test]
fn an_operation_begins_after_the_slices_it_was_told_or_of_its_own_accord() {
    let Some((bed, daemon)) = measured() else { return };
    let listener = bed.directory.path().join("run/tenant.sock");
    let [reader, other] = ["heavy", "sparing"].map(|tenant| Relay::start(&bed, &listener, &bed.cgroup(tenant)));
    let read = |key: &str| {
        at(&reader.socket, async |mut client| {
            let answer = next(&mut coordinate(&mut client, key, None).await).await;
            assert!(matches!(answer, Answer::BeginNow(_)), "nobody is before it: {answer:?}");
        });
    };
    // A reader that the machine holds up for ten slices counts as done, and proves nothing.
    let told = (0..).find_map(|round| {
        let (first, second) = (format!("first-{round}"), format!("second-{round}"));
        read(&first);
        let (slices, is_called_while_the_first_goes_on) = at(&other.socket, async |mut client| {
            let (slices, mut answers) = told_to_begin_later(&mut client, &second).await;
            assert!(matches!(next(&mut answers).await, Answer::BeginNow(_)));
            let goes_on = has_begun(&reader, &first) == Some(true);
            assert!(answers.message().await.expect("an end").is_none());
            assert_eq!(has_begun(&other, &second), Some(true));
            finish(&mut client, &second).await;
            (slices, goes_on)
        });
        assert!((1..=SLICES_OF_THE_FIRST).contains(&slices), "{slices}");
        at(&reader.socket, async |mut client| drop(client.finish(v1::FinishRequest { request_id: first }).await));
        is_called_while_the_first_goes_on.then_some((second, slices))
    });
    let (key, slices) = told.expect("the rounds do not end");
    daemon.until("the audit has what was told", || {
        let request = v1::AuditRequest { tenant: "sparing".to_owned(), ..v1::AuditRequest::default() };
        let texts = daemon.ask(async |mut client| {
            let mut answers = client.audit(request).await.expect("an audit").into_inner();
            let mut texts = Vec::new();
            while let Some(answer) = answers.message().await.expect("an entry") {
                let entry = answer.entry.expect("an entry");
                texts.extend((entry.request_id == key).then_some(entry.text));
            }
            texts
        });
        texts.is_some_and(|texts| texts.iter().any(|text| text.contains(&format!(": after {slices} slices"))))
    });
    read("third");
    at(&other.socket, async |mut client| {
        let (_, _answers) = told_to_begin_later(&mut client, "fourth").await;
        client.begin(v1::BeginRequest { request_id: "fourth".to_owned() }).await.expect("it may");
        assert_eq!(has_begun(&other, "fourth"), Some(true), "the server knows at once");
        finish(&mut client, "fourth").await;
    });
}
