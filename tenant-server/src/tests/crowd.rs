//! Crowds of strangers: whoever has something to say gets in.

use super::stage::{PATIENCE, TestBed, play, until, word};
use hyper_util::rt::TokioIo;
use minerva_api::v1;
use minerva_api::v1::participation_client::ParticipationClient;
use minerva_config::{Identity, KnownBy, TenantLimits};
use sha2::{Digest, Sha256};
use std::net::{Ipv4Addr, SocketAddr};
use tokio::io::AsyncReadExt;
use tokio::net::{TcpSocket, TcpStream};
use tonic::transport::{Endpoint, Uri};
use tonic::{Code, Request};

/// A stage with a TCP listener for tokens, and its address.
fn with_tokens(limits: TenantLimits) -> (TestBed, SocketAddr) {
    let address = std::net::TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr()).expect("a port");
    let stage = TestBed::with(|settings| {
        settings.limits = limits;
        settings.listen = Some(address);
        let digest = Sha256::digest("token of a").into();
        settings.identities.push(Identity { tenant: "a".to_owned(), known_by: Some(KnownBy::TokenSha256(digest)) });
    });
    (stage, address)
}

/// Connects from the last of 127.0.0.0/8 with this end, and says nothing.
async fn silent(address: SocketAddr, end: u8) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind((Ipv4Addr::new(127, 0, 0, end), 0).into()).expect("an address of this host");
    socket.connect(address).await.expect("a server")
}

/// Connects and asks with a token.
async fn asks(address: SocketAddr) -> Result<v1::DescribeResponse, tonic::Status> {
    let channel = Endpoint::from_shared(format!("http://{address}")).expect("an address").connect().await;
    let mut client = ParticipationClient::new(channel.expect("a server"));
    let mut request = Request::new(v1::DescribeRequest {});
    request.metadata_mut().insert("authorization", "Bearer token of a".parse().expect("plain text"));
    client.describe(request).await.map(tonic::Response::into_inner)
}

async fn is_hung_up_on(stream: &mut TcpStream) -> bool {
    matches!(tokio::time::timeout(PATIENCE, stream.read(&mut [0])).await, Ok(Ok(0) | Err(_)))
}

#[test]
fn a_crowd_keeps_nobody_out_not_even_of_its_own_address() {
    let (stage, address) = with_tokens(TenantLimits::default());
    play(async {
        let mut crowd = Vec::new();
        for _ in 0..600 {
            crowd.push(silent(address, 1).await);
        }
        assert_eq!(asks(address).await.expect("a tenant").tenant, "t1");
        assert!(is_hung_up_on(&mut crowd[0]).await, "the first of them made room");
        stage.assert_b_is_served().await;
    });
    let audited = stage.refusals.take();
    assert!(audited.iter().any(|row| row.text.contains("of address 127.0.0.1: It was hung up on")), "{audited:?}");
    assert!(audited.len() <= 50, "a crowd is not written down whole");
}

#[test]
fn the_crowd_of_one_address_costs_nobody_elses_connection() {
    // A quarter of them is for strangers.
    let (stage, address) = with_tokens(TenantLimits { connections_max: 64, ..TenantLimits::default() });
    play(async {
        let mut lonely = silent(address, 2).await;
        let mut crowd = Vec::new();
        for _ in 0..200 {
            crowd.push(silent(address, 3).await);
        }
        assert_eq!(asks(address).await.expect("a tenant").tenant, "t1");
        assert!(is_hung_up_on(&mut crowd[0]).await);
        let early = tokio::time::timeout(std::time::Duration::ZERO, lonely.read(&mut [0])).await;
        assert!(early.is_err(), "who came first and alone is still there: {early:?}");
        stage.assert_b_is_served().await;
    });
}

#[test]
fn who_guesses_tokens_slows_down_nobody_from_elsewhere() {
    let (stage, address) = with_tokens(TenantLimits { requests_per_second: 1, burst: 5, ..TenantLimits::default() });
    play(async {
        let connector =
            tower::service_fn(
                move |_: Uri| async move { Ok::<_, std::io::Error>(TokioIo::new(silent(address, 9).await)) },
            );
        let channel = Endpoint::from_static("http://minervad.invalid").connect_with_connector(connector).await;
        let mut guesser = ParticipationClient::new(channel.expect("a server"));
        let mut words = Vec::new();
        for number in 0..10 {
            let mut request = Request::new(v1::DescribeRequest {});
            let guess = format!("Bearer guess {number}").parse().expect("plain text");
            request.metadata_mut().insert("authorization", guess);
            let status = guesser.describe(request).await.expect_err("a guess");
            words.push((status.code(), word(&status).to_owned()));
        }
        assert_eq!(words[0], (Code::Unauthenticated, "not-identified".to_owned()));
        assert!(words.contains(&(Code::ResourceExhausted, "too-many-requests".to_owned())), "{words:?}");
        assert_eq!(asks(address).await.expect("a tenant").tenant, "t1");
        stage.assert_b_is_served().await;
    });
}

#[test]
fn who_answers_every_ping_and_never_asks_is_hung_up_on() {
    let (stage, address) = with_tokens(TenantLimits::default());
    play(async {
        let channel = Endpoint::from_shared(format!("http://{address}")).expect("an address").connect().await;
        let _open = channel.expect("a server");
        let audited = std::cell::RefCell::new(Vec::new());
        until("it is hung up on", || {
            audited.borrow_mut().extend(stage.refusals.take());
            audited.borrow().iter().any(|row| row.text.contains("it has not shown in time who it is"))
        })
        .await;
        stage.assert_b_is_served().await;
    });
}
