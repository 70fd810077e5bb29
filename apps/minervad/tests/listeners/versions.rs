//! Programs of other ages at today's listener: of the first contract that was committed, and of one to come.

use super::{Relay, open, over};
use crate::bed::Bed;
use minerva_contract::first::coordinate_response::Answer;
use minerva_contract::{first, newer};
use tonic::{Code, Status};

fn word(status: &Status) -> &str {
    status.metadata().get("minerva-refusal").and_then(|word| word.to_str().ok()).unwrap_or_default()
}

/// The disk's kernel number, `MAJ:MIN`.
fn number(bed: &Bed) -> String {
    std::fs::read_to_string(format!("/sys/block/{}/dev", bed.device)).expect("the disk").trim().to_owned()
}

type First = first::participation_client::ParticipationClient<tonic::transport::Channel>;

async fn steps_back(client: &mut First) {
    let (normal, low, idle) = (first::Level::Normal as i32, first::Level::Low as i32, first::Level::Idle as i32);
    let lifetime = Some(first::set_level_request::Lifetime::ForNs(60_000_000_000));
    let set = client.set_level(first::SetLevelRequest { level: low, lifetime }).await.expect("set");
    assert_eq!(set.into_inner().level, low);
    let held = client.hold_level(first::HoldLevelRequest { level: idle }).await.expect("a stream");
    let mut held = held.into_inner();
    assert_eq!(held.message().await.expect("held").expect("an answer").level, idle);
    let told = client.describe(first::DescribeRequest {}).await.expect("an answer").into_inner();
    assert_eq!(told.level, idle);
    drop(held);
    let entries = vec![first::ScheduleEntry { begin_minute: 1, end_minute: 2, days: 1, level: low }];
    let schedule = first::SetScheduleRequest { entries, time_zone: "UTC".to_owned() };
    client.set_schedule(schedule).await.expect("set");
    let told = client.describe(first::DescribeRequest {}).await.expect("an answer").into_inner();
    assert_eq!((told.schedule[0].begin_minute, told.schedule[0].days), (1, 1));
    client.set_schedule(first::SetScheduleRequest::default()).await.expect("set");
    client.set_level(first::SetLevelRequest { level: normal, lifetime: None }).await.expect("set");
}

async fn coordinates(client: &mut First, device: String) {
    let request = first::CoordinateRequest {
        request_id: "load".to_owned(),
        size_bytes: 1 << 20,
        access: first::Access::RandomWrite as i32,
        deadline: Some(first::coordinate_request::Deadline::BeginWithinNs(20_000_000_000)),
        device,
    };
    let mut answers = client.coordinate(request.clone()).await.expect("a stream").into_inner();
    while let Some(answer) = answers.message().await.expect("no error") {
        if let Some(Answer::BeginNow(_)) = answer.answer {
            break;
        }
    }
    let told = client.describe(first::DescribeRequest {}).await.expect("an answer").into_inner();
    assert!(told.operations.iter().any(|one| one.request_id == "load" && one.begun), "{told:?}");
    let request_id = || "load".to_owned();
    client.begin(first::BeginRequest { request_id: request_id() }).await.expect("told twice");
    client.finish(first::FinishRequest { request_id: request_id() }).await.expect("finished");
    let refusal = client.cancel(first::CancelRequest { request_id: request_id() }).await.expect_err("over");
    assert_eq!((refusal.code(), word(&refusal)), (Code::NotFound, "unknown-operation"));
}

#[test]
fn a_program_of_the_first_contract_is_served() {
    let Some((bed, daemon, socket)) = open("") else { return };
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    over(&relay.socket, async |channel| {
        let mut client = First::new(channel);
        let told = client.describe(first::DescribeRequest {}).await.expect("an answer").into_inner();
        assert_eq!((told.tenant.as_str(), told.identified_by.as_str()), ("heavy", "cgroup"), "{}", daemon.log());
        assert_eq!((told.role.as_str(), told.mode.as_str()), ("participant", "enforce"));
        assert_eq!(told.level, first::Level::Normal as i32);
        steps_back(&mut client).await;
        let account = client.credits(first::CreditsRequest { entries_max: 5 }).await.expect("an answer").into_inner();
        assert!(account.slice_price_micro_credits > 0 && account.slice_ns > 0, "{account:?}");
        let amount = Some(first::boost_request::Amount::Slices(3600));
        let boost = first::BoostRequest { request_id: "boost".to_owned(), amount, device: String::new() };
        let refusal = client.boost(boost).await.expect_err("no credit");
        assert_eq!((refusal.code(), word(&refusal)), (Code::FailedPrecondition, "not-enough-credits"));
        coordinates(&mut client, number(&bed)).await;
        let report = first::ReportRequest { agent: "0.1.0".to_owned(), ..first::ReportRequest::default() };
        let reported = client.report(tokio_stream::iter([report])).await.expect("taken").into_inner();
        assert_eq!(reported.reports, 1);
    });
}

#[test]
fn what_a_newer_program_adds_is_passed_over_or_refused_with_a_sentence() {
    let Some((bed, _daemon, socket)) = open("") else { return };
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    over(&relay.socket, async |channel| {
        let mut client = newer::participation_client::ParticipationClient::new(channel);
        let refusal = client.hurry(newer::HurryRequest {}).await.expect_err("nobody knows it");
        assert_eq!(refusal.code(), Code::Unimplemented);
        let frozen = newer::Level::Frozen as i32;
        let set = newer::SetLevelRequest { level: frozen, lifetime: None };
        let refusal = client.set_level(set).await.expect_err("nobody knows it");
        assert_eq!((refusal.code(), word(&refusal)), (Code::InvalidArgument, "out-of-range"));
        assert!(refusal.message().contains("There is no level 5"), "{refusal}");
        let boost = newer::BoostRequest {
            request_id: "boost".to_owned(),
            amount: Some(newer::boost_request::Amount::Slices(3600)),
            reason: "it is late".to_owned(),
            ..newer::BoostRequest::default()
        };
        // The field that nobody knows is passed over, and the rest judged as ever.
        assert_eq!(word(&client.boost(boost).await.expect_err("no credit")), "not-enough-credits");
        let told = client.describe(newer::DescribeRequest {}).await.expect("an answer").into_inner();
        assert_eq!((told.tenant.as_str(), told.motto.as_str()), ("heavy", ""));
    });
}
