//! Today's client with servers that are older and newer than it.

#![expect(clippy::expect_used, reason = "a test bed that cannot be made is a failed test")]

use minerva_client::{
    Address, Answer, Begun, BoostAmount, Client, Credentials, Error, Level, Lifetime, Operation, Options,
};
use minerva_contract::newer::coordinate_response::Answer as NewerAnswer;
use minerva_contract::{first, newer};
use prost::Message;
use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::server::{Grpc, NamedService};
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status};
use tonic_prost::ProstCodec;
use tower::{Service, service_fn};

/// A server of another age.
#[derive(Clone, Copy, Debug)]
enum Age {
    /// Of the first contract, and before some of its methods were served.
    Older,
    Newer,
}

impl NamedService for Age {
    const NAME: &'static str = "minerva.v1.Participation";
}

impl Service<http::Request<Body>> for Age {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let age = *self;
        Box::pin(async move {
            Ok(match age {
                Self::Older => older(request).await,
                Self::Newer => newer(request).await,
            })
        })
    }
}

fn method(request: &http::Request<Body>) -> String {
    request.uri().path().rsplit('/').next().unwrap_or_default().to_owned()
}

async fn older(request: http::Request<Body>) -> http::Response<Body> {
    match method(&request).as_str() {
        "Describe" => {
            let response = first::DescribeResponse { tenant: "old".to_owned(), level: 2, ..Default::default() };
            answer(request, Ok(vec![response])).await
        }
        // As a server of tonic's answers to a method that it does not have.
        _ => Status::unimplemented("").into_http(),
    }
}

async fn newer(request: http::Request<Body>) -> http::Response<Body> {
    let frozen = newer::Level::Frozen as i32;
    match method(&request).as_str() {
        "Describe" => {
            let response = newer::DescribeResponse {
                tenant: "new".to_owned(),
                level: frozen,
                held_micro_credits: 7,
                motto: "onwards".to_owned(),
                hurries: vec![newer::HurryResponse {}; 2],
                ..Default::default()
            };
            answer(request, Ok(vec![response])).await
        }
        "SetLevel" => answer(request, Ok(vec![newer::SetLevelResponse { level: frozen }])).await,
        "HoldLevel" => answer(request, Ok(vec![newer::HoldLevelResponse { level: frozen }])).await,
        "Boost" => {
            let thanks = "a great deal".to_owned();
            answer(request, Ok(vec![newer::BoostResponse { slices: 3, thanks, ..Default::default() }])).await
        }
        "Coordinate" => {
            let answers = [NewerAnswer::Later(newer::Later {}), NewerAnswer::BeginNow(newer::BeginNow {})];
            let response = |one| newer::CoordinateResponse { answer: Some(one) };
            answer(request, Ok(answers.map(response).to_vec())).await
        }
        "Finish" => answer(request, Ok(vec![newer::FinishResponse {}])).await,
        _ => {
            let mut metadata = MetadataMap::new();
            metadata.insert("minerva-refusal", "not-on-sundays".parse().expect("a word"));
            let status = Status::with_metadata(Code::FailedPrecondition, "It is Sunday. Ask tomorrow.", metadata);
            answer::<newer::CreditsResponse>(request, Err(status)).await
        }
    }
}

/// One answer, or a stream of several; who asks knows which.
async fn answer<M: Message + Clone + 'static>(
    request: http::Request<Body>,
    answers: Result<Vec<M>, Status>,
) -> http::Response<Body> {
    let respond = service_fn(move |_: Request<()>| {
        let stream = answers.clone().map(|answers| Response::new(tokio_stream::iter(answers.into_iter().map(Ok))));
        std::future::ready(stream)
    });
    // Whatever is asked reads as the empty message with fields that it does not know.
    Grpc::new(ProstCodec::<M, ()>::default()).server_streaming(respond, request).await
}

async fn connected(age: Age, directory: &Path) -> Client {
    let socket = directory.join("tenant.sock");
    let listener = UnixListener::bind(&socket).expect("a socket");
    let served = Server::builder().add_service(age).serve_with_incoming(UnixListenerStream::new(listener));
    tokio::spawn(served);
    let options = Options {
        address: Some(Address::Unix(socket)),
        credentials: Credentials::default(),
        sockets: Vec::new(),
        agent: None,
        patience: Duration::from_secs(60),
        look_period: Duration::from_secs(60),
        quiet: true,
    };
    options.connect().await.expect("connected")
}

fn place() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("minerva-test-contract-").tempdir().expect("a directory")
}

#[tokio::test]
async fn what_an_older_server_does_not_know_is_told_and_the_rest_works() {
    let place = place();
    let client = connected(Age::Older, place.path()).await;
    assert_eq!(client.describe().await.expect("an answer").tenant, "old");
    let errors = [
        client.set_schedule(&[], "").await.expect_err("unknown"),
        client.boost(BoostAmount::Slices(1), None).await.expect_err("unknown"),
        client.hold_level(Level::Low).await.expect_err("unknown"),
        client.coordinate(Operation::of_bytes(1)).await.expect_err("unknown"),
    ];
    for error in errors {
        assert!(matches!(error, Error::Refused { code: Code::Unimplemented, .. }), "{error:?}");
        assert_eq!(error.to_string(), "the server is too old for this request: it needs a newer minervad");
    }
    assert_eq!(client.describe().await.expect("an answer").level, 2);
}

#[tokio::test]
async fn what_only_a_newer_server_knows_is_passed_over_or_carried() {
    let place = place();
    let client = connected(Age::Newer, place.path()).await;
    let told = client.describe().await.expect("an answer");
    assert_eq!((told.tenant.as_str(), told.level, told.held_micro_credits), ("new", 5, 7));
    assert_eq!(client.set_level(Level::Low, Lifetime::UntilReleased).await.expect("an answer"), Level::Normal);
    assert_eq!(client.boost(BoostAmount::Slices(3), None).await.expect("bought").slices, 3);
    let error = client.credits(1).await.expect_err("refused");
    assert_eq!((error.refusal(), error.to_string().as_str()), (Some("not-on-sundays"), "It is Sunday. Ask tomorrow."));
    let mut coordinated = client.coordinate(Operation::of_bytes(1)).await.expect("an answer");
    // An answer that nobody here knows is one to wait.
    assert_eq!(coordinated.answer(), Answer::Wait { at_most: None });
    assert_eq!(coordinated.wait().await, Begun::Told);
    coordinated.finish().await.expect("told");
    // A level that nobody here knows counts as none.
    let held = client.hold_level(Level::Low).await.expect("held");
    assert!(matches!(held.level(), None | Some(Level::Normal)), "{held:?}");
}
