//! What lasts while a program holds it: levels and jobs.

use crate::server::Listening;
use crate::{LONG, SHORT, connected, options, place, refuse_for_long, wait_answer};
use minerva_client::{Answer, Begun, Debt, Level, Operation, Options, Owing};
use std::time::Duration;
use tonic::Status;

#[tokio::test]
async fn a_hold_ends_with_its_guard() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    let held = client.hold_level(Level::Idle).await.expect("held");
    assert_eq!(held.level(), Some(Level::Idle));
    let mut holds = server.script.holds.subscribe();
    assert_eq!(*holds.borrow(), 1);
    drop(held);
    holds.wait_for(|holds| *holds == 0).await.expect("released");
}

#[tokio::test]
async fn a_program_is_a_job_while_it_says_so_and_hears_its_place() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    let job = client.job("sort", Some(500)).await.expect("held");
    assert_eq!(job.place(), Some((2, 3)));
    let mut holds = server.script.holds.subscribe();
    assert_eq!((*holds.borrow(), server.script.calls_of("hold_job")), (1, vec!["sort Some(500)".to_owned()]));
    drop(job);
    holds.wait_for(|holds| *holds == 0).await.expect("ended");
}

#[tokio::test]
async fn a_hold_is_taken_again_after_a_restart() {
    let place = place();
    let (mut server, client) = connected(place.path()).await;
    let held = client.hold_level(Level::Low).await.expect("held");
    let mut holds = server.script.holds.subscribe();
    server.kill().await;
    holds.wait_for(|holds| *holds == 0).await.expect("gone with the server");
    while held.level().is_some() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    server.restart();
    holds.wait_for(|holds| *holds == 1).await.expect("taken again");
    while held.level() != Some(Level::Low) {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(server.script.calls_of("hold_level"), ["2", "2"]);
}

#[tokio::test]
async fn a_hold_that_the_server_will_not_have_is_an_error() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    server.script.refusals.lock().expect("no panic").push_back(Status::permission_denied("You are excluded."));
    let error = client.hold_level(Level::Low).await.expect_err("refused");
    assert_eq!(error.to_string(), "You are excluded.");
}

#[tokio::test]
async fn a_hold_that_is_refused_for_as_long_as_the_patience_lasts_is_an_error() {
    let place = place();
    let (server, _) = connected(place.path()).await;
    let client = Options { patience: 3 * SHORT, ..options(place.path()) }.connect().await.expect("a client");
    refuse_for_long(&server);
    let (level, job, debt) =
        tokio::join!(client.hold_level(Level::Low), client.job("sort", None), client.debt(Debt::new("rebuild", SHORT)));
    for error in [level.err(), job.err(), debt.err()] {
        let error = error.expect("refused");
        assert_eq!(error.refusal(), Some("too-many"), "{error:?}");
    }
    // Nobody asks any more in the background.
    server.script.refusals.lock().expect("no panic").clear();
    tokio::time::sleep(SHORT).await;
    assert_eq!(*server.script.holds.borrow(), 0);
}

#[tokio::test]
async fn work_of_ones_own_is_told_when_it_may_be_done_and_says_how_far_it_is() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    let second = Duration::from_secs(1);
    let mut debt = client.debt(Debt::new("rebuild", 50 * second).done_within(60 * second)).await.expect("held");
    assert!(!debt.may_work());
    debt.report(Owing { service: 50 * second, done: 10 * second, tied_bytes: 0 });
    server.script.called("report_debt", 1).await;
    server.script.release.notify_one();
    debt.wait().await;
    assert!(debt.may_work());
    let mut holds = server.script.holds.subscribe();
    assert_eq!(*holds.borrow(), 1);
    drop(debt);
    holds.wait_for(|holds| *holds == 0).await.expect("ended");
    assert_eq!(server.script.calls_of("hold_debt"), ["rebuild 0 of 50 s"]);
    assert_eq!(server.script.calls_of("report_debt"), ["rebuild 10 of 50 s, 7"]);
}

#[tokio::test]
async fn no_report_of_how_far_work_is_arrives_after_a_newer_one() {
    let place = place();
    let (mut server, client) = connected(place.path()).await;
    let second = Duration::from_secs(1);
    let debt = client.debt(Debt::new("rebuild", 50 * second)).await.expect("held");
    server.kill().await;
    debt.report(Owing { service: 50 * second, done: 10 * second, tied_bytes: 0 });
    // It is tried in vain.
    tokio::time::sleep(SHORT).await;
    debt.report(Owing { service: 50 * second, done: 20 * second, tied_bytes: 0 });
    server.restart();
    server.script.called("report_debt", 1).await;
    let told = server.script.calls_of("report_debt");
    assert!(told.iter().all(|told| told.starts_with("rebuild 20 of 50 s")), "{told:?}");
}

#[tokio::test]
async fn work_that_may_take_longer_than_any_clock_runs_is_the_servers_to_judge() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    let debt = Debt::new("rebuild", Duration::from_secs(50)).done_within(Duration::MAX);
    drop(client.debt(debt).await.expect("held"));
    assert_eq!(server.script.calls_of("hold_debt").len(), 1);
}

#[tokio::test]
async fn a_program_whose_debt_was_replaced_hears_so_and_reports_no_more() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    let second = Duration::from_secs(1);
    let debt = client.debt(Debt::new("rebuild", 50 * second)).await.expect("held");
    assert!(debt.ended().is_none());
    let replaced = Status::already_exists("A later debt of this name took its place.");
    server.script.refusals.lock().expect("no panic").push_back(replaced);
    server.script.release.notify_one();
    while debt.ended().is_none() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let why = debt.ended().map(ToString::to_string);
    assert_eq!(why.as_deref(), Some("A later debt of this name took its place."));
    assert!(debt.may_work(), "nobody says any more when");
    debt.report(Owing { service: 50 * second, done: 10 * second, tied_bytes: 0 });
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(server.script.calls_of("report_debt"), [""; 0]);
    assert_eq!(server.script.calls_of("hold_debt").len(), 1, "it is not registered again");
}

#[tokio::test]
async fn work_of_ones_own_is_registered_again_after_a_restart_as_far_as_it_is_then() {
    let place = place();
    let (mut server, client) = connected(place.path()).await;
    let second = Duration::from_secs(1);
    let debt = client.debt(Debt::new("rebuild", 50 * second)).await.expect("held");
    debt.report(Owing { service: 60 * second, done: 20 * second, tied_bytes: 0 });
    server.script.called("report_debt", 1).await;
    let mut holds = server.script.holds.subscribe();
    server.kill().await;
    holds.wait_for(|holds| *holds == 0).await.expect("gone with the server");
    while !debt.may_work() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    server.restart();
    holds.wait_for(|holds| *holds == 1).await.expect("registered again");
    assert_eq!(server.script.calls_of("hold_debt"), ["rebuild 0 of 50 s", "rebuild 20 of 60 s"]);
}

#[tokio::test]
async fn a_refusal_for_good_is_told_also_when_it_comes_after_the_patience() {
    let place = place();
    let mut server = Listening::at(&place.path().join("tenant.sock"));
    let client = Options { patience: SHORT, ..options(place.path()) }.connect().await.expect("a client");
    server.kill().await;
    let debt = client.debt(Debt::new("rebuild", SHORT)).await.expect("kept trying");
    assert!(debt.ended().is_none());
    let refused = Status::permission_denied("You are excluded.");
    server.script.refusals.lock().expect("no panic").push_back(refused);
    server.restart();
    let ended = async {
        while debt.ended().is_none() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(LONG, ended).await.expect("told");
    assert_eq!(debt.ended().map(ToString::to_string).as_deref(), Some("You are excluded."));
}

#[tokio::test]
async fn a_patience_may_be_longer_than_any_clock_runs() {
    let place = place();
    let (mut server, _) = connected(place.path()).await;
    *server.script.first.lock().expect("no panic") = wait_answer();
    let client = Options { patience: Duration::MAX, ..options(place.path()) }.connect().await.expect("a client");
    client.credits(1).await.expect("an answer");
    let held = client.hold_level(Level::Low).await.expect("held");
    assert_eq!(held.level(), Some(Level::Low));
    let mut coordinated = client.coordinate(Operation::of_bytes(1)).await.expect("an answer");
    assert_eq!(coordinated.answer(), Answer::Wait { at_most: None });
    server.kill().await;
    server.restart();
    server.script.called("coordinate", 2).await;
    server.script.release.notify_one();
    assert_eq!(coordinated.wait().await, Begun::Told);
}
