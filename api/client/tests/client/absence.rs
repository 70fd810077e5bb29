//! Behind an agent that has no server, and what comes later.

use crate::server::Listening;
use crate::{SHORT, connected, options, place, refusal};
use minerva_client::{Begun, BoostAmount, Error, Level, Lifetime, Operation, Options};
use std::time::Duration;
use tonic::{Code, Status};

/// What an agent says that has not reached its server.
fn no_server() -> Status {
    refusal(Code::Unavailable, "no-server", "No server answers at vsock:2:7420 (Connection reset by peer).")
}

fn say_no_server(server: &Listening, times: usize) {
    server.script.refusals.lock().expect("no panic").extend(vec![no_server(); times]);
}

#[tokio::test]
async fn behind_an_agent_without_a_server_nothing_is_asked_twice() {
    let place = place();
    // Each kind of request is the first one once.
    for method in ["describe", "set_level", "hold_level", "boost", "coordinate"] {
        let socket = place.path().join("tenant.sock");
        let _ = std::fs::remove_file(&socket);
        let (server, client) = connected(place.path()).await;
        say_no_server(&server, 1);
        match method {
            "describe" => assert_eq!(client.describe().await.expect("nothing").role, "silent"),
            "set_level" => {
                let level = client.set_level(Level::Low, Lifetime::UntilReleased).await.expect("nothing");
                assert_eq!(level, Level::Normal);
            }
            "hold_level" => assert_eq!(client.hold_level(Level::Low).await.expect("nothing").level(), None),
            "boost" => {
                assert_eq!(client.boost(BoostAmount::Slices(1), None).await.expect("nothing").slices, 0);
            }
            _ => {
                let mut begun = client.coordinate(Operation::of_bytes(1)).await.expect("nothing");
                assert_eq!(begun.wait().await, Begun::Unserved);
            }
        }
        assert!(client.absence().is_some_and(|why| why.contains("vsock:2:7420")), "{:?}", client.absence());
        // The next is not sent: it would be answered.
        assert_eq!(client.credits(1).await.expect("nothing").held_micro_credits, 0);
        assert_eq!(server.script.calls_of(method).len(), 1);
        assert!(server.script.calls_of("credits").is_empty());
    }
}

#[tokio::test]
async fn a_server_that_comes_later_is_found_by_a_later_call() {
    let place = place();
    let at_each_call = Options { look_period: Duration::ZERO, ..options(place.path()) };
    let client = at_each_call.connect().await.expect("a client");
    assert_eq!(client.credits(1).await.expect("nothing").held_micro_credits, 0);
    let server = Listening::at(&place.path().join("tenant.sock"));
    // It looks no longer than a moment, so that a busy machine may take more than one call.
    while client.credits(1).await.expect("an answer").held_micro_credits == 0 {}
    assert_eq!(client.absence(), None);
    // The same behind an agent: what it says once does not count for ever.
    let client = Options { look_period: Duration::ZERO, ..options(place.path()) }.connect().await.expect("a client");
    say_no_server(&server, 1);
    assert_eq!(client.hold_level(Level::Idle).await.expect("nothing").level(), None);
    while client.hold_level(Level::Idle).await.expect("held").level().is_none() {}
}

#[tokio::test]
async fn a_server_that_was_there_is_away_and_not_absent() {
    let place = place();
    let (server, client) = connected(place.path()).await;
    client.describe().await.expect("an answer");
    // The agent was started anew while the server was away, and then that was back.
    say_no_server(&server, 2);
    assert_eq!(client.credits(1).await.expect("an answer").held_micro_credits, 75_000_000);
    let client = Options { patience: SHORT, ..options(place.path()) }.connect().await.expect("a client");
    client.describe().await.expect("an answer");
    say_no_server(&server, 100);
    let error = client.boost(BoostAmount::Slices(1), None).await.expect_err("no answer");
    assert!(matches!(error, Error::Unreachable { .. }), "{error:?}");
}
