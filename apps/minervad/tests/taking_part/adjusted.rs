//! What the operator gives and takes: durable before it is answered, once under a key, and never below zero.

use super::{account, endowed, kill, store};
use crate::bed::{Daemon, until};
use crate::listeners::{Relay, describe};
use minerva_api::v1;
use minerva_api::v1::adjust_credits_request::Change;
use tonic::{Code, Status};

fn adjust(daemon: &Daemon, key: &str, change: Change) -> Result<u64, Status> {
    let request = v1::AdjustCreditsRequest {
        request_id: key.to_owned(),
        tenant: "heavy".to_owned(),
        change: Some(change),
        reason: "a word in the audit".to_owned(),
    };
    let answer = daemon.ask(async |mut client| client.adjust_credits(request).await).expect("a daemon")?;
    Ok(answer.into_inner().held_micro_credits)
}

fn audit(daemon: &Daemon) -> Vec<v1::AuditEntry> {
    let entries = daemon.ask(async |mut client| {
        let request = v1::AuditRequest { tenant: "heavy".to_owned(), ..v1::AuditRequest::default() };
        let mut answers = client.audit(request).await.expect("an audit").into_inner();
        let mut entries = Vec::new();
        while let Some(answer) = answers.message().await.expect("an entry") {
            entries.push(answer.entry.expect("an entry"));
        }
        entries
    });
    entries.expect("a daemon")
}

#[test]
fn an_operator_gives_and_takes_credits_once_under_a_key_and_never_below_zero() {
    let Some((bed, socket)) = endowed(0) else { return };
    let (give, take) = (Change::GiveMicroCredits, Change::TakeMicroCredits);
    let mut daemon = bed.start();
    assert_eq!(adjust(&daemon, "k1", give(100_000_000)).expect("given"), 100_000_000);
    assert_eq!(store(&bed).balance_micro_credits(&account(&bed)).expect("read"), 100_000_000, "answered means durable");
    assert_eq!(adjust(&daemon, "k2", take(40_000_000)).expect("taken"), 60_000_000);
    let too_much = adjust(&daemon, "k3", take(60_000_001)).expect_err("it holds less");
    assert_eq!(too_much.code(), Code::FailedPrecondition);
    assert!(too_much.message().contains("60.000001 credits cannot be taken: the account holds 60"), "{too_much:?}");
    for (key, change) in [("k4", give(0)), ("k4", take(0)), ("", give(1)), ("k4", give(u64::MAX))] {
        assert_eq!(adjust(&daemon, key, change).expect_err("cannot be meant").code(), Code::InvalidArgument);
    }
    // The answer was lost, and a daemon died in between: it is not done again.
    for _ in 0..2 {
        for (key, change) in [("k1", give(100_000_000)), ("k2", take(40_000_000))] {
            let again = adjust(&daemon, key, change).expect_err("done already");
            assert_eq!(again.code(), Code::AlreadyExists, "{again:?}");
            assert!(again.message().contains("nothing was changed now"), "{again:?}");
        }
        kill(&mut daemon);
        daemon = bed.start();
    }
    let relay = Relay::start(&bed, &socket, &bed.cgroup("heavy"));
    assert_eq!(describe(&relay.socket).expect("the tenant").held_micro_credits, 60_000_000);
    assert_eq!(store(&bed).balance_micro_credits(&account(&bed)).expect("read"), 60_000_000);
    assert_eq!(adjust(&daemon, "k5", give(1_000_000)).expect("given"), 61_000_000);
    until("the audit has the entries and the reason", || {
        let entries = audit(&daemon);
        let has = |kind: &str, text: &str| entries.iter().any(|one| one.kind == kind && one.text.contains(text));
        let told = has("granted", "the operator gives 1 credits: a word in the audit");
        told && has("given", "100 credits, until") && has("taken", "40 credits")
    });
}
