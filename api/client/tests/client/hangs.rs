//! A server that refuses for now, and then hangs or answers late.

use crate::server::{Hang, Listening, refusal};
use crate::{LONG, connected, options, place};
use minerva_client::v1::coordinate_response::Answer as WireAnswer;
use minerva_client::{Answer, Begun, Level, Operation, Options, v1};
use std::time::Duration;
use tonic::{Code, Status};

/// One that may pass after so many milliseconds.
fn full(milliseconds: u32) -> Status {
    let mut status = refusal(Code::ResourceExhausted, "too-many", "16 operations wait or are under way.");
    status.metadata_mut().insert("minerva-retry-after-ms", milliseconds.into());
    status
}

fn refuse(server: &Listening, refusals: impl IntoIterator<Item = Status>) {
    server.script.refusals.lock().expect("no panic").extend(refusals);
}

#[tokio::test]
async fn a_server_that_hangs_after_it_has_refused_is_away() {
    for hang in [Hang::Untaken, Hang::Taken] {
        let place = place();
        let server = Listening::at(&place.path().join("tenant.sock"));
        *server.script.hangs.lock().expect("no panic") = Some(hang);
        refuse(&server, vec![full(1); 2]);
        // Long enough for the refusals to arrive on a busy machine, and then for the silence.
        let patient = Options { patience: Duration::from_secs(4), ..options(place.path()) };
        let client = patient.connect().await.expect("a client");
        let (coordinated, held) =
            tokio::join!(client.coordinate(Operation::of_bytes(500)), client.hold_level(Level::Low));
        let mut coordinated = coordinated.expect("it may begin");
        assert_eq!((coordinated.answer(), coordinated.wait().await), (Answer::Now, Begun::Unserved), "{hang:?}");
        assert_eq!(held.expect("kept trying").level(), None);
        for method in ["coordinate", "hold_level"] {
            assert_eq!(server.script.calls_of(method).len(), 2, "one was refused, and one hangs");
        }
    }
}

#[tokio::test]
async fn who_asks_again_asks_with_what_is_left_of_its_deadline() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    *server.script.first.lock().expect("no panic") = Some(WireAnswer::BeginNow(v1::BeginNow {}));
    let operation = Operation::of_bytes(500);
    for operation in [operation.clone().done_within(LONG), operation.begin_within(LONG)] {
        refuse(&server, [full(100)]);
        let mut coordinated = client.coordinate(operation).await.expect("an answer");
        assert_eq!(coordinated.wait().await, Begun::Told);
        coordinated.finish().await.expect("finished");
        let spans = std::mem::take(&mut *server.script.spans.lock().expect("no panic"));
        assert!(spans.len() == 2 && spans[1] + 100_000_000 <= spans[0], "{spans:?}");
    }
}

#[tokio::test]
async fn what_can_no_longer_be_done_in_time_for_want_of_an_answer_begins_at_once() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    let late = || refusal(Code::InvalidArgument, "out-of-range", "0.5 MB cannot be done within 1 ns.");
    let operation = Operation::of_bytes(500);
    refuse(&server, [full(1000), late()]);
    let mut coordinated = client.coordinate(operation.clone().done_within(LONG)).await.expect("it may begin");
    assert_eq!(coordinated.wait().await, Begun::InTime);
    server.script.called("begin", 1).await;
    coordinated.finish().await.expect("finished");
    // What is refused at once, or for other reasons, cannot be meant.
    refuse(&server, [late()]);
    let error = client.coordinate(operation.clone().done_within(LONG)).await.expect_err("refused");
    assert_eq!(error.refusal(), Some("out-of-range"));
    refuse(&server, [full(1000), late()]);
    let error = client.coordinate(operation.begin_within(LONG)).await.expect_err("refused");
    assert_eq!(error.refusal(), Some("out-of-range"));
}
