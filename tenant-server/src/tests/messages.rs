//! Messages that cannot be meant, and answers that are refusals: each with its code, its word and its sentence.

use super::stage::{Client, TestBed, play, until, word};
use crate::test_server::tenant;
use minerva_api::v1;
use minerva_api::v1::boost_request::Amount;
use minerva_api::v1::coordinate_request::Deadline;
use minerva_api::v1::set_level_request::Lifetime;
use minerva_config::TenantLimits;
use minerva_model::Role;
use tonic::{Code, Status};

const NEGATIVE: u64 = -1_i64 as u64;

fn operation(size_bytes: u64, deadline: Option<Deadline>) -> v1::CoordinateRequest {
    let request_id = "key".to_owned();
    v1::CoordinateRequest { request_id, size_bytes, deadline, ..v1::CoordinateRequest::default() }
}

fn entry(begin_minute: u32, days: u32) -> v1::ScheduleEntry {
    v1::ScheduleEntry { begin_minute, end_minute: 60, days, level: v1::Level::Low as i32 }
}

fn assert_refused<T>(answer: Result<T, Status>, code: Code, its_word: &str, sentence: &str) {
    let Err(status) = answer else { panic!("granted, not refused as {its_word}: {sentence}") };
    assert_eq!((status.code(), word(&status)), (code, its_word), "{status:?}");
    assert!(status.message().contains(sentence), "{}", status.message());
}

async fn refused_levels(client: &mut Client) {
    let level = |level, lifetime| v1::SetLevelRequest { level, lifetime };
    let table = [
        (level(0, None), "No level was given"),
        (level(9, None), "There is no level 9"),
        (level(-3, None), "There is no level -3"),
        (level(2, Some(Lifetime::ForNs(NEGATIVE))), "a negative number looks like this too"),
        (level(2, Some(Lifetime::Process(1))), "over a Unix socket only"),
        (level(2, Some(Lifetime::Process(u32::MAX))), "is no process's number"),
    ];
    for (request, sentence) in table {
        assert_refused(client.set_level(request).await, Code::InvalidArgument, "out-of-range", sentence);
    }
    let past = level(2, Some(Lifetime::ForNs(0)));
    assert_refused(client.set_level(past).await, Code::FailedPrecondition, "too-late", "has passed already");
    let held = client.hold_level(v1::HoldLevelRequest { level: 0 }).await;
    assert_refused(held, Code::InvalidArgument, "out-of-range", "No level was given");
}

async fn refused_schedules(client: &mut Client) {
    let schedule = |entries, time_zone: &str| v1::SetScheduleRequest { entries, time_zone: time_zone.to_owned() };
    let table = [
        (schedule(vec![entry(1440, 0)], ""), "Minutes of a day are 0 to 1439"),
        (schedule(vec![entry(0, 128)], ""), "a set of seven bits"),
        (schedule(vec![v1::ScheduleEntry::default()], ""), "No level was given"),
        (schedule(vec![entry(0, 0); 65], ""), "64 entries at most"),
        (schedule(Vec::new(), "/etc/passwd"), "no name of a time zone"),
        (schedule(Vec::new(), &"a".repeat(65)), "no name of a time zone"),
    ];
    for (request, sentence) in table {
        assert_refused(client.set_schedule(request).await, Code::InvalidArgument, "out-of-range", sentence);
    }
}

async fn refused_operations(client: &mut Client) {
    let with = |change: fn(&mut v1::CoordinateRequest)| {
        let mut request = operation(1, None);
        change(&mut request);
        request
    };
    let table = [
        (operation(0, None), "1 to 1152921504606846976 bytes, not 0"),
        (operation(NEGATIVE, None), "bytes, not 18446744073709551615"),
        (operation(1, Some(Deadline::DoneWithinNs(NEGATIVE))), "more than ten years"),
        (with(|one| one.access = 7), "There is no kind of access 7"),
        (with(|one| one.device = "sda".to_owned()), "`sda` is no disk's number"),
        (with(|one| one.request_id = String::new()), "No request_id was given"),
        (with(|one| one.request_id = "k".repeat(65)), "1 to 64 printable ASCII characters"),
        (with(|one| one.request_id = "käse".to_owned()), "1 to 64 printable ASCII characters"),
        (with(|one| one.request_id = "minerva:level-1".to_owned()), "are the server's own"),
    ];
    for (request, sentence) in table {
        assert_refused(client.coordinate(request).await, Code::InvalidArgument, "out-of-range", sentence);
    }
    let past = operation(1, Some(Deadline::BeginWithinNs(0)));
    assert_refused(client.coordinate(past).await, Code::FailedPrecondition, "too-late", "has passed already");
    let boost = |amount| v1::BoostRequest { request_id: "key".to_owned(), amount, device: String::new() };
    for (amount, sentence) in [
        (None, "how much to buy"),
        (Some(Amount::Slices(0)), "one slice at least"),
        (Some(Amount::ForNs(NEGATIVE)), "more than ten years"),
    ] {
        assert_refused(client.boost(boost(amount)).await, Code::InvalidArgument, "out-of-range", sentence);
    }
    let dear = client.boost(boost(Some(Amount::Slices(1)))).await;
    assert_refused(dear, Code::FailedPrecondition, "not-enough-credits", "The account holds nothing.");
    let twice = client.finish(v1::FinishRequest { request_id: "key".to_owned() }).await;
    assert_refused(twice, Code::NotFound, "unknown-operation", "No such operation.");
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_sentence_and_harms_nobody() {
    let stage = TestBed::new(TenantLimits::default());
    play(async {
        let mut client = stage.client("a").await;
        refused_levels(&mut client).await;
        refused_schedules(&mut client).await;
        refused_operations(&mut client).await;
        let level = v1::SetLevelRequest { level: v1::Level::Idle as i32, lifetime: None };
        assert_eq!(client.set_level(level).await.expect("good").into_inner().level, v1::Level::Idle as i32);
        let entries = client.credits(v1::CreditsRequest { entries_max: u32::MAX }).await.expect("good").into_inner();
        assert_eq!(entries.entries.len(), 1000);
        stage.assert_b_is_served().await;
    });
    let audited = stage.refusals.take();
    let has = |text: &str| audited.iter().any(|row| row.text.contains(text));
    assert!(has("No level was given") && has("The account holds nothing"), "{audited:?}");
    assert!(audited.iter().all(|row| row.tenant_name == "a"), "{audited:?}");
    assert!(audited.iter().any(|row| row.request == "key"), "the key of the request is there: {audited:?}");
}

#[test]
fn a_report_beyond_the_contract_ends_the_reports() {
    let stage = TestBed::new(TenantLimits::default());
    play(async {
        let mut client = stage.client("a").await;
        let process = v1::ProcessReport { pid: 1, ..v1::ProcessReport::default() };
        let report =
            |count| v1::ReportRequest { processes: vec![process.clone(); count], ..v1::ReportRequest::default() };
        let good = tokio_stream::iter([report(256), report(0)]);
        assert_eq!(client.report(good).await.expect("good").into_inner().reports, 2);
        let bad = client.report(tokio_stream::iter([report(1), report(257)])).await;
        assert_refused(bad, Code::InvalidArgument, "out-of-range", "the busiest 256 processes, not 257");
        let mut large = process.clone();
        large.files = vec![v1::OpenFile { path: "f".repeat(4097), ..v1::OpenFile::default() }];
        let large = v1::ReportRequest { processes: vec![large], ..v1::ReportRequest::default() };
        let bad = client.report(tokio_stream::iter([large])).await;
        assert_refused(bad, Code::InvalidArgument, "out-of-range", "longer than any can be");
    });
}

#[test]
fn an_answer_that_does_not_come_is_not_waited_for_forever() {
    let stage = TestBed::new(TenantLimits::default());
    play(async {
        let mut client = stage.client("a").await;
        let silence = client.cancel(v1::CancelRequest { request_id: "key".to_owned() }).await;
        assert_refused(silence, Code::DeadlineExceeded, "no-answer", "ask again under the same request_id");
    });
}

#[test]
fn a_tenant_that_is_not_there_is_refused_until_it_comes() {
    let stage = TestBed::new(TenantLimits::default());
    play(async {
        let mut client = stage.client("nobody").await;
        let unknown = client.describe(v1::DescribeRequest {}).await;
        assert_refused(unknown, Code::NotFound, "unknown-tenant", "says that this is the tenant nobody");
        stage.directory.enter(&tenant(3, "nobody", Role::Participant));
        let known = client.describe(v1::DescribeRequest {}).await.expect("a tenant");
        assert_eq!(known.get_ref().tenant, "t3");
    });
}

#[test]
fn a_role_has_what_it_has() {
    let stage = TestBed::new(TenantLimits::default());
    stage.directory.enter(&tenant(1, "a", Role::Silent));
    play(async {
        let mut client = stage.client("a").await;
        assert!(client.describe(v1::DescribeRequest {}).await.is_ok());
        let level = v1::SetLevelRequest { level: v1::Level::Idle as i32, lifetime: None };
        let refused = client.set_level(level).await;
        assert_refused(
            refused,
            Code::PermissionDenied,
            "not-allowed",
            "the role `silent`, which does not have SetLevel",
        );
        stage.directory.enter(&tenant(1, "a", Role::Guest));
        assert!(client.set_level(level).await.is_ok());
        let refused = client.boost(v1::BoostRequest::default()).await;
        assert_refused(refused, Code::PermissionDenied, "not-allowed", "the role `guest`, which does not have Boost");
    });
    let audited = stage.refusals.take();
    assert_eq!(audited.len(), 2, "{audited:?}");
    assert!(audited.iter().all(|row| row.tenant_name == "a" && row.account == "cgroup:a#1"), "{audited:?}");
}

#[test]
fn a_hold_ends_with_its_client() {
    let stage = TestBed::new(TenantLimits::default());
    play(async {
        let mut client = stage.client("a").await;
        let request = v1::HoldLevelRequest { level: v1::Level::Low as i32 };
        let mut levels = client.hold_level(request).await.expect("held").into_inner();
        assert_eq!(levels.message().await.expect("a level").map(|one| one.level), Some(v1::Level::Low as i32));
        let holder = stage.scripted.lock().expect("a loop").held[0].1.clone();
        assert!(!holder.is_closed());
        drop((levels, client));
        until("the loop sees that it ended", || holder.is_closed()).await;
    });
}
