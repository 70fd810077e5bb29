//! Work that can wait, of programs behind an agent: they are told when they may do it, say how far they are, and it ends with them.

use crate::bed::{Bed, PATIENCE, until_async};
use minerva_api::v1;
use minerva_client::{Debt, DiskLooks, Owing};
use std::path::Path;
use std::time::Duration;
use tonic::Code;

const SECOND: Duration = Duration::from_secs(1);

fn owing(done_seconds: u32) -> Owing {
    Owing { service: 50 * SECOND, done: done_seconds * SECOND, tied_bytes: 4096 }
}

fn debt() -> Debt {
    Debt::new("rebuild", 50 * SECOND).ties(4096).done_within(600 * SECOND)
}

#[tokio::test]
async fn a_program_behind_an_agent_is_told_when_it_may_work_and_says_how_far_it_is_and_its_debt_ends_with_it() {
    let bed = Bed::new();
    let _server = bed.serve();
    let _agent = bed.agent(&[]);
    let client = bed.client().await;
    let mut held = client.debt(debt()).await.expect("held");
    assert!(!held.may_work());
    let asked = bed.script.asked(|asked| asked.debts[0].clone());
    let terms = (asked.name.as_str(), asked.service_ns, asked.done_ns, asked.tied_bytes, asked.done_within_ns);
    assert_eq!(terms, ("rebuild", 50_000_000_000, 0, 4096, Some(600_000_000_000)));
    bed.script.begins.send_replace(true);
    held.wait().await;
    held.report(owing(10));
    until_async("it is reported", || bed.script.asked(|asked| asked.debt_reports.len() == 1)).await;
    assert_eq!(bed.script.asked(|asked| asked.debt_reports[0].done_ns), 10_000_000_000);
    bed.script.begins.send_replace(false);
    until_async("it pauses", || !held.may_work()).await;
    drop(held);
    until_async("it is withdrawn", || bed.script.asked(|asked| asked.holds_open == 0)).await;

    let refusal = client.debt(Debt::new("nothing", Duration::ZERO)).await.expect_err("a refusal");
    assert_eq!(refusal.to_string(), "A debt takes more than 0.");
}

#[tokio::test]
async fn a_debt_goes_with_the_agent_and_is_registered_again_through_the_next_as_far_as_it_is_then() {
    let bed = Bed::new();
    let server = bed.serve();
    let agent = bed.agent(&[]);
    let client = bed.client().await;
    let held = client.debt(debt()).await.expect("held");
    held.report(owing(20));
    until_async("it is reported", || bed.script.asked(|asked| !asked.debt_reports.is_empty())).await;

    agent.kill();
    until_async("it is gone", || bed.script.asked(|asked| asked.holds_open == 0)).await;
    until_async("who is told nothing may work", || held.may_work()).await;
    let _agent = bed.agent(&[]);
    until_async("it is back", || bed.script.asked(|asked| asked.holds_open == 1)).await;
    let again = bed.script.asked(|asked| asked.debts[1].clone());
    assert_eq!((again.name.as_str(), again.done_ns), ("rebuild", 20_000_000_000));
    assert!(again.done_within_ns.is_some_and(|within| within < 600_000_000_000), "its deadline is as before");

    // The same where the server goes, and the agent stays.
    held.report(owing(30));
    drop(server);
    until_async("who is told nothing may work", || held.may_work()).await;
    let _server = bed.serve();
    until_async("it is back", || bed.script.asked(|asked| asked.debts.len() == 3)).await;
    assert_eq!(bed.script.asked(|asked| asked.debts[2].done_ns), 30_000_000_000);
    drop(held);
    until_async("it is withdrawn", || bed.script.asked(|asked| asked.holds_open == 0)).await;
}

#[tokio::test]
async fn a_debt_of_which_nothing_is_done_yet_has_the_deadline_of_before_when_it_is_registered_again() {
    let bed = Bed::new();
    let server = bed.serve();
    let _agent = bed.agent(&[]);
    let held = bed.client().await.debt(debt()).await.expect("held");
    drop(server);
    until_async("who is told nothing may work", || held.may_work()).await;
    let _server = bed.serve();
    until_async("it is back", || bed.script.asked(|asked| asked.debts.len() == 2)).await;
    let again = bed.script.asked(|asked| asked.debts[1].clone());
    assert!(again.done_within_ns.is_some_and(|within| within < 600_000_000_000), "{again:?}");
}

/// The disk below the programs of this machine, if there is one.
fn own_disk(path: &Path) -> Option<(String, DiskLooks)> {
    let device = std::os::linux::fs::MetadataExt::st_dev(&std::fs::metadata(path).ok()?);
    let number = format!("{}:{}", rustix::fs::major(device), rustix::fs::minor(device));
    let looks = DiskLooks::of(&number)?;
    Some((number, looks))
}

#[tokio::test]
async fn an_agent_says_what_the_disk_of_a_debt_is_like() {
    // Of a device of this kernel, whichever there is; its number says nothing outside.
    let named = std::fs::read_dir("/sys/dev/block").expect("a list").flatten().find_map(|entry| {
        let number = entry.file_name().to_string_lossy().into_owned();
        DiskLooks::of(&number).filter(|looks| looks.size_bytes > 0).map(|looks| (number, looks))
    });
    let Some((number, looks)) = own_disk(Path::new("/")).or(named) else {
        println!("skipped: needs a block device");
        return;
    };
    let bed = Bed::new();
    let _server = bed.serve();
    let _agent = bed.agent(&[]);
    let mut raw = bed.raw().await;
    // As a program does whose library does not know how to say it.
    let request = v1::HoldDebtRequest {
        name: "rebuild".to_owned(),
        service_ns: 1,
        working_device: number,
        ..v1::HoldDebtRequest::default()
    };
    let _held = raw.hold_debt(request).await.expect("held");
    let asked = bed.script.asked(|asked| asked.debts[0].clone());
    assert_eq!((asked.working_disk_size_bytes, asked.working_disk_serial), (looks.size_bytes, looks.serial));
}

#[tokio::test]
async fn programs_that_hold_as_much_as_an_agent_carries_leave_room_for_single_requests() {
    let bed = Bed::new();
    let _server = bed.serve();
    let _agent = bed.agent(&[]);
    let mut raw = bed.raw().await;
    let mut held = Vec::new();
    let refusal = loop {
        let request = v1::HoldDebtRequest {
            name: format!("debt-{}", held.len()),
            service_ns: 1,
            ..v1::HoldDebtRequest::default()
        };
        let answer = tokio::time::timeout(PATIENCE, raw.hold_debt(request)).await;
        match answer.expect("an answer, whichever") {
            Ok(answers) => held.push(answers),
            Err(refusal) => break refusal,
        }
    };
    assert_eq!(refusal.code(), Code::ResourceExhausted, "{refusal}");
    assert_eq!(refusal.metadata().get("minerva-refusal").expect("a word"), "too-many-streams");
    raw.describe(v1::DescribeRequest {}).await.expect("answered all the same");
    held.pop();
    until_async("one is gone", || bed.script.asked(|asked| asked.holds_open == held.len())).await;
}
