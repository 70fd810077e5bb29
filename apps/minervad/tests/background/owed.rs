//! What programs owe: they are told when they may work, and what they say of it is seen.

use super::{queue, queues};
use crate::bed::{Bed, Daemon, until};
use crate::listeners::{Relay, at, describe};
use minerva_api::v1;
use std::fs;
use std::time::{Duration, Instant};

const SECOND_NS: u64 = 1_000_000_000;

/// A daemon in `shadow` and a way in as the tenant `sparing`; `number` is its disk's.
struct Scene {
    relay: Relay,
    number: String,
    daemon: Daemon,
    bed: Bed,
}

fn scene() -> Option<Scene> {
    let bed = Bed::new()?;
    bed.write_config("mode = \"shadow\"");
    let number = fs::read_to_string(format!("/sys/block/{}/dev", bed.device)).expect("a disk").trim().to_owned();
    let daemon = bed.start();
    let relay = Relay::start(&bed, &bed.directory.path().join("run/tenant.sock"), &bed.cgroup("sparing"));
    until("the tenant is seen", || describe(&relay.socket).is_ok());
    Some(Scene { relay, number, daemon, bed })
}

fn request(scene: &Scene) -> v1::HoldDebtRequest {
    v1::HoldDebtRequest {
        name: "rebuild".to_owned(),
        service_ns: 500 * SECOND_NS,
        tied_bytes: 1 << 20,
        done_within_ns: Some(86_400 * SECOND_NS),
        device: scene.number.clone(),
        ..v1::HoldDebtRequest::default()
    }
}

/// Reads what is told until that is said.
async fn told(words: &mut tonic::Streaming<v1::HoldDebtResponse>, may_work: bool) {
    let begun = Instant::now();
    loop {
        assert!(begun.elapsed() < Duration::from_secs(60), "never told {may_work}");
        let next = tokio::time::timeout(Duration::from_secs(5), words.message()).await;
        // Where nothing changes nothing is said.
        let Ok(answer) = next else { continue };
        if answer.expect("a server").expect("a word").may_work == may_work {
            return;
        }
    }
}

#[test]
fn a_program_is_told_to_work_in_gaps_its_debt_is_listed_and_planned_and_goes_with_it() {
    let Some(mut scene) = scene() else { return };
    scene.bed.start_reader_without_pauses("heavy");
    let request = request(&scene);
    let Scene { relay, daemon, bed, .. } = &mut scene;
    at(&relay.socket, async |mut client| {
        let mut words = client.hold_debt(request.clone()).await.expect("held").into_inner();
        told(&mut words, false).await;
        let spoken = tokio::time::timeout(Duration::from_secs(3), words.message()).await;
        assert!(spoken.is_err(), "others read all the time: {spoken:?}");
        bed.stop_readers();
        told(&mut words, true).await;
        let report = v1::ReportDebtRequest {
            name: request.name.clone(),
            service_ns: request.service_ns,
            done_ns: 100 * SECOND_NS,
            tied_bytes: 1 << 19,
            registration: 0,
        };
        client.report_debt(report.clone()).await.expect("taken");
        // On another thread, as a client speaks on this one.
        let looks = |daemon: &Daemon| {
            daemon.until("it is listed", || queue(daemon, "rebuild").done_items == 100.0);
            let listed = queue(daemon, "rebuild");
            let shown = (listed.kind.as_str(), listed.hold.as_str(), listed.items.as_str(), listed.total_items);
            assert_eq!(shown, ("owed", "told", "seconds", Some(500.0)), "{listed:?}");
            assert!(listed.path.ends_with("sparing") && listed.tied_bytes == 1 << 19, "{listed:?}");
            let asked = v1::BackgroundRequest { span: v1::BackgroundSpan::Day.into() };
            let plans =
                daemon.ask(async |mut client| client.background(asked).await).expect("a daemon").expect("plans");
            let payments = &plans.get_ref().plans.first().expect("a plan").payments;
            assert_eq!(payments.iter().map(|paid| paid.name.as_str()).collect::<Vec<_>>(), ["rebuild"]);
            let remove =
                v1::ChangeBackgroundRequest { name: "rebuild".to_owned(), change: v1::BackgroundChange::Remove.into() };
            let refused = daemon.ask(async |mut client| client.change_background(remove).await).expect("a daemon");
            assert!(refused.expect_err("not the operator's").message().contains("only its program ends it"));
        };
        std::thread::scope(|scope| scope.spawn(|| looks(daemon)).join().expect("looked"));
        // Others come back: it is to pause.
        bed.start_reader_without_pauses("heavy");
        told(&mut words, false).await;
        bed.stop_readers();
        // All is done: nothing is owed until there is more.
        let done = v1::ReportDebtRequest { done_ns: request.service_ns, tied_bytes: 0, ..report };
        client.report_debt(done).await.expect("taken");
        std::thread::scope(|scope| {
            let done = || daemon.until("it is done", || queue(daemon, "rebuild").state == "done");
            scope.spawn(done).join().expect("looked");
        });
    });
    // The stream ended with the connection.
    daemon.until("it is forgotten", || queues(daemon).is_empty());
}

#[test]
fn a_debt_that_cannot_be_meant_is_refused_with_the_reason_and_nothing_is_owed() {
    let Some(scene) = scene() else { return };
    let good = request(&scene);
    at(&scene.relay.socket, async |mut client| {
        let minus = |seconds: i64| (seconds * SECOND_NS as i64).cast_unsigned();
        let bad = [
            (v1::HoldDebtRequest { service_ns: 0, ..good.clone() }, "more than 0"),
            (v1::HoldDebtRequest { service_ns: minus(-5), ..good.clone() }, "negative number"),
            (v1::HoldDebtRequest { service_ns: u64::MAX, ..good.clone() }, "at most ten years"),
            (v1::HoldDebtRequest { done_ns: good.service_ns + 1, ..good.clone() }, "raise service_ns"),
            (v1::HoldDebtRequest { tied_bytes: u64::MAX, ..good.clone() }, "No debt ties"),
            (v1::HoldDebtRequest { done_within_ns: Some(0), ..good.clone() }, "passed already"),
            (v1::HoldDebtRequest { done_within_ns: Some(minus(-60)), ..good.clone() }, "negative number"),
            (v1::HoldDebtRequest { name: "a b".to_owned(), ..good.clone() }, "letters"),
            (v1::HoldDebtRequest { device: "0:0".to_owned(), ..good.clone() }, "no disk 0:0"),
        ];
        for (request, why) in bad {
            let refusal = client.hold_debt(request.clone()).await.expect_err("refused");
            assert!(refusal.message().contains(why), "{request:?}: {}", refusal.message());
        }
        let unheld =
            v1::ReportDebtRequest { name: "rebuild".to_owned(), service_ns: 1, ..v1::ReportDebtRequest::default() };
        let refusal = client.report_debt(unheld).await.expect_err("nobody holds it");
        assert!(refusal.message().contains("Nobody holds a debt called rebuild"), "{}", refusal.message());
        // A later one of the name takes the place of the one before, which hears so.
        let mut first = client.hold_debt(good.clone()).await.expect("held").into_inner();
        let _second = client.hold_debt(good.clone()).await.expect("held").into_inner();
        let ended = loop {
            match first.message().await {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ended without a word"),
                Err(status) => break status,
            }
        };
        assert!(ended.message().contains("took its place"), "{}", ended.message());
        let mut held = Vec::new();
        for number in 1..16 {
            let request = v1::HoldDebtRequest { name: format!("debt-{number}"), ..good.clone() };
            held.push(client.hold_debt(request).await.expect("held"));
        }
        let more = v1::HoldDebtRequest { name: "one-more".to_owned(), ..good.clone() };
        let refusal = client.hold_debt(more).await.expect_err("too many");
        assert!(refusal.message().contains("which is the limit"), "{}", refusal.message());
    });
    scene.daemon.until("all are forgotten", || queues(&scene.daemon).is_empty());
}

#[test]
fn a_program_whose_debt_was_replaced_is_told_so_and_counts_for_nothing() {
    let Some(scene) = scene() else { return };
    let good = request(&scene);
    at(&scene.relay.socket, async |mut client| {
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut words = client.hold_debt(good.clone()).await.expect("held").into_inner();
            let registration = words.message().await.expect("a server").expect("a word").registration;
            held.push((registration, words));
        }
        let [earlier, later] = [held[0].0, held[1].0];
        assert!(0 < earlier && earlier < later, "{earlier} and {later}");
        let report = |registration, seconds: u64| v1::ReportDebtRequest {
            name: good.name.clone(),
            service_ns: good.service_ns,
            done_ns: seconds * SECOND_NS,
            tied_bytes: good.tied_bytes,
            registration,
        };
        client.report_debt(report(later, 50)).await.expect("whoever holds it is heard");
        let refusal = client.report_debt(report(earlier, 400)).await.expect_err("it was replaced");
        assert!(refusal.message().contains("took its place"), "{}", refusal.message());
        std::thread::scope(|scope| {
            let looks = || assert!((queue(&scene.daemon, "rebuild").done_items - 50.0).abs() < 0.1);
            scope.spawn(looks).join().expect("looked");
        });
        // A program of before there were registrations names none.
        client.report_debt(report(0, 60)).await.expect("the name is held");
    });
}
