//! Those who do not keep to the rules: what they meet, and that nobody else notices.

use super::stage::{PATIENCE, TestBed, play, until, word};
use minerva_api::v1;
use minerva_config::TenantLimits;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tonic::Code;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// An empty frame SETTINGS.
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];

/// Says this, and waits until the server hangs up.
async fn is_hung_up_on(stage: &TestBed, said: &[u8]) {
    let mut stream = UnixStream::connect(stage.socket("a")).await.expect("a server");
    // The server may hang up before all is said.
    let _ = stream.write_all(said).await;
    let mut rest = Vec::new();
    let end = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await;
    // A reset is an end too.
    assert!(end.is_ok(), "the server still listens to {:?}", &said[..said.len().min(40)]);
}

#[test]
fn garbage_silence_and_oversized_frames_are_hung_up_on() {
    let stage = TestBed::new(TenantLimits::default());
    let oversized = [PREFACE, SETTINGS, &[0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 1], &[0; 4096]].concat();
    let half_a_header = [PREFACE, SETTINGS, &[0, 0, 9, 1]].concat();
    let half_open = [PREFACE, SETTINGS].concat();
    play(async {
        tokio::join!(
            is_hung_up_on(&stage, b""),
            is_hung_up_on(&stage, b"PRI * HTTP/2.0"),
            is_hung_up_on(&stage, b"GET / HTTP/1.1\r\nHost: minervad\r\n\r\n"),
            is_hung_up_on(&stage, &[0x16; 4096]),
            is_hung_up_on(&stage, &oversized),
            // Half-open: it spoke once and answers no ping any more.
            is_hung_up_on(&stage, &half_open),
            is_hung_up_on(&stage, &half_a_header),
            stage.assert_b_is_served(),
        );
        stage.assert_b_is_served().await;
    });
}

#[test]
fn a_message_that_is_too_long_is_refused_and_the_connection_goes_on() {
    let stage = TestBed::new(TenantLimits::default());
    play(async {
        let mut client = stage.client("a").await;
        let time_zone = "x".repeat(65 << 10);
        let request = v1::SetScheduleRequest { entries: Vec::new(), time_zone };
        let status = client.set_schedule(request).await.expect_err("too long");
        assert_eq!((status.code(), word(&status)), (Code::InvalidArgument, "out-of-range"), "{status:?}");
        assert_eq!(status.message(), "The message is too long: 65536 bytes are allowed.");
        assert!(client.describe(v1::DescribeRequest {}).await.is_ok());
        stage.assert_b_is_served().await;
    });
    let audited = stage.refusals.take();
    assert_eq!(audited.len(), 1, "{audited:?}");
    assert_eq!((audited[0].tenant_name.as_str(), audited[0].account.as_str()), ("a", "cgroup:a#1"));
}

#[test]
fn who_asks_too_often_is_told_so_and_nobody_else_waits() {
    let stage = TestBed::new(TenantLimits { requests_per_second: 1, burst: 20, ..TenantLimits::default() });
    play(async {
        let client = stage.client("a").await;
        let mut flood = tokio::task::JoinSet::new();
        for _ in 0..500 {
            let mut client = client.clone();
            flood.spawn(async move { client.describe(v1::DescribeRequest {}).await.map(drop) });
        }
        stage.assert_b_is_served().await;
        let answers = flood.join_all().await;
        let refused: Vec<_> = answers.into_iter().filter_map(Result::err).collect();
        // A slow machine earns a token or two meanwhile.
        assert!((400..=480).contains(&refused.len()), "{}", refused.len());
        for status in &refused {
            assert_eq!((status.code(), word(status)), (Code::ResourceExhausted, "too-many-requests"));
            let wait = status.metadata().get("minerva-retry-after-ms").and_then(|wait| wait.to_str().ok());
            assert!(wait.and_then(|wait| wait.parse::<u64>().ok()).is_some_and(|wait| (1..=1000).contains(&wait)));
        }
        stage.assert_b_is_served().await;
    });
    let audited = stage.refusals.take();
    assert!(audited.len() <= 50, "a flood is not written down whole");
    assert!(audited.iter().all(|row| row.tenant_name == "a"), "{audited:?}");
}

#[test]
fn streams_that_nobody_reads_hold_up_nobody() {
    let limits = TenantLimits { streams_per_account_max: 100, ..TenantLimits::default() };
    let stage = TestBed::new(limits);
    play(async {
        let mut client = stage.client("a").await;
        let mut unread = Vec::new();
        for _ in 0..100 {
            let request = v1::HoldLevelRequest { level: v1::Level::Idle as i32 };
            unread.push(client.hold_level(request).await.expect("held"));
        }
        let status = client.describe(v1::DescribeRequest {}).await.expect_err("one too many");
        assert_eq!((status.code(), word(&status)), (Code::ResourceExhausted, "too-many-streams"));
        // The loop never waits for a client: a full queue says so at once.
        let holders: Vec<_> = stage.scripted.lock().expect("a loop").held.iter().map(|(_, one)| one.clone()).collect();
        for _ in 0..10_000 {
            holders.iter().for_each(|one| drop(one.try_send(Ok(minerva_model::Level::Low))));
        }
        stage.assert_b_is_served().await;
        drop(unread);
        until("the streams have ended", || holders.iter().all(|one| one.is_closed())).await;
        assert!(client.describe(v1::DescribeRequest {}).await.is_ok());
    });
}

#[test]
fn too_many_connections_are_told_so_and_then_hung_up_on() {
    let stage = TestBed::new(TenantLimits { connections_per_account_max: 2, ..TenantLimits::default() });
    play(async {
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(stage.client("a").await);
        }
        assert!(clients[0].describe(v1::DescribeRequest {}).await.is_ok(), "those who came first stay");
        let status = clients[2].describe(v1::DescribeRequest {}).await.expect_err("the third");
        assert_eq!((status.code(), word(&status)), (Code::ResourceExhausted, "too-many-connections"));
        assert!(status.message().contains("one of 3 connections; 2 are allowed"), "{}", status.message());
        stage.assert_b_is_served().await;
        let mut beyond = Vec::new();
        for _ in 0..10 {
            beyond.push(UnixStream::connect(stage.socket("a")).await.expect("a server"));
        }
        let last = beyond.last_mut().expect("one");
        let end = tokio::time::timeout(PATIENCE, last.read(&mut [0])).await;
        assert!(matches!(end, Ok(Ok(0))), "it is hung up on: {end:?}");
        // Who is waited for says nothing too, and is then hung up on without a word.
        let refused = stage.refusals.take();
        let is_at_once = refused.iter().any(|row| row.tenant_name == "a" && row.text.starts_with("connect: "));
        assert!(is_at_once, "it is hung up on without waiting for what it says: {refused:?}");
        drop((beyond, clients));
        stage.assert_b_is_served().await;
        // The places are free again.
        let mut client = stage.client("a").await;
        let served_again = async {
            while client.describe(v1::DescribeRequest {}).await.is_err() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(PATIENCE, served_again).await.expect("there is a place again");
    });
}
