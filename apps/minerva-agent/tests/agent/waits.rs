//! Operations that wait, and what the agent makes of their deadlines and answers.

use crate::bed::Bed;
use minerva_api::v1;
use minerva_api::v1::coordinate_request::Deadline;
use minerva_api::v1::coordinate_response::Answer;
use std::time::Duration;
use tonic::{Code, Streaming};

const MINUTE_NS: u64 = 60_000_000_000;

async fn answer(waiting: &mut Streaming<v1::CoordinateResponse>) -> Option<Answer> {
    waiting.message().await.expect("no error").expect("an answer").answer
}

#[tokio::test]
async fn a_wait_is_over_when_the_operation_is_to_go_to_the_pool() {
    let bed = Bed::new();
    let _server = bed.serve();
    let _agent = bed.agent(&[]);
    let pool = Some(v1::PoolOffer { left_bytes: 7, device: String::new() });
    let request = v1::CoordinateRequest { request_id: "load".to_owned(), pool, ..v1::CoordinateRequest::default() };
    let mut waiting = bed.raw().await.coordinate(request).await.expect("a stream").into_inner();
    assert!(matches!(answer(&mut waiting).await, Some(Answer::WriteToPool(_))));
    assert!(waiting.message().await.expect("a good end").is_none());
    assert_eq!(bed.script.asked(|asked| asked.keys.clone()), ["load"], "it is not asked again");
}

#[tokio::test]
async fn a_server_that_was_away_is_asked_with_what_is_left_of_the_deadline() {
    let bed = Bed::new();
    let server = bed.serve();
    let _agent = bed.agent(&[]);
    let mut client = bed.raw().await;
    client.describe(v1::DescribeRequest {}).await.expect("an answer");
    drop(server);
    let request = |size_bytes| v1::CoordinateRequest {
        request_id: format!("of {size_bytes}"),
        size_bytes,
        deadline: Some(Deadline::DoneWithinNs(MINUTE_NS)),
        ..v1::CoordinateRequest::default()
    };
    let mut good = client.coordinate(request(7)).await.expect("a stream").into_inner();
    let mut late = client.coordinate(request(u64::MAX)).await.expect("a stream").into_inner();
    let away = Duration::from_millis(1200);
    tokio::time::sleep(away).await;
    let _server = bed.serve();
    assert!(matches!(answer(&mut good).await, Some(Answer::Wait(_))));
    assert!(matches!(answer(&mut late).await, Some(Answer::BeginNow(_))), "it could not be asked about sooner");
    assert!(late.message().await.expect("a good end").is_none());
    let within_ns = bed.script.asked(|asked| asked.within_ns.clone());
    let most_ns = MINUTE_NS - u64::try_from(away.as_nanos()).expect("short");
    assert!(within_ns.len() == 2 && within_ns.iter().all(|within_ns| *within_ns <= most_ns), "{within_ns:?}");
    // What is refused at once cannot be meant.
    let mut refused = client.coordinate(request(u64::MAX)).await.expect("a stream").into_inner();
    assert_eq!(refused.message().await.expect_err("a refusal").code(), Code::InvalidArgument);
}
