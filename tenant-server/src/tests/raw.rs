//! Bytes that no library would send, as the bodies of requests: what cannot be read is refused like everything else.

use super::stage::{TestBed, play, until};
use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::Full;
use hyper_util::rt::{TokioExecutor, TokioIo};
use minerva_api::v1;
use minerva_config::TenantLimits;
use prost::Message;
use tokio::net::UnixStream;
use tonic::{Code, Status};

/// A message with its head.
fn framed(message: &[u8]) -> Vec<u8> {
    headed(u32::try_from(message.len()).expect("short"), message)
}

/// Bytes under a head that says that they are this many.
fn headed(length: u32, bytes: &[u8]) -> Vec<u8> {
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(length);
    framed.put_slice(bytes);
    framed.to_vec()
}

/// Says this to `a`'s listener, and hears how it is answered.
async fn say(stage: &TestBed, method: &str, body: Vec<u8>) -> Option<Status> {
    let stream = TokioIo::new(UnixStream::connect(stage.socket("a")).await.expect("a server"));
    let (mut sender, connection) =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), stream).await.expect("HTTP/2");
    let connection = tokio::spawn(connection);
    let request = http::Request::post(format!("http://minervad.invalid/minerva.v1.Participation/{method}"))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .body(Full::new(Bytes::from(body)))
        .expect("a request");
    let answer = sender.send_request(request).await.expect("an answer");
    let status = Status::from_header_map(answer.headers());
    connection.abort();
    status
}

fn report(uptime_ns: u64) -> Vec<u8> {
    framed(&v1::ReportRequest { uptime_ns, ..v1::ReportRequest::default() }.encode_to_vec())
}

#[test]
fn what_cannot_be_read_is_refused_with_a_word_and_a_sentence_and_audited() {
    let stage = TestBed::new(TenantLimits::default());
    // A field of the wrong kind, and one that ends before it should.
    let (wrong_kind, cut_off) = (framed(&[0x0a, 0x01, 0x61]), framed(&[0x08]));
    let (known, unknown) = ("This is no message of the contract: ", "There is no request `Nonsense` here");
    let (bad, none) = (Code::InvalidArgument, Code::Unimplemented);
    let table = [
        ("SetLevel", wrong_kind.clone(), bad, "out-of-range", known),
        ("SetLevel", cut_off.clone(), bad, "out-of-range", known),
        ("SetLevel", Vec::new(), bad, "out-of-range", known),
        ("Boost", headed(65 << 10, b"x"), bad, "out-of-range", "The message is too long: 65536 bytes are allowed."),
        ("Nonsense", framed(b""), none, "unknown-method", unknown),
        ("Report", cut_off, bad, "out-of-range", known),
        ("Report", [report(1), framed(&[0x0a, 0x01])].concat(), bad, "out-of-range", known),
        ("Report", [report(1), headed(9, b"half")].concat(), bad, "out-of-range", known),
        (
            "Report",
            [report(1), headed(257 << 10, b"x")].concat(),
            bad,
            "out-of-range",
            "The message is too long: 262144 bytes are allowed.",
        ),
    ];
    play(async {
        for (method, body, code, word, sentence) in &table {
            let status = say(&stage, method, body.clone()).await.expect("a refusal");
            assert_eq!((status.code(), super::stage::word(&status)), (*code, *word), "{method} {status:?}");
            assert!(status.message().starts_with(sentence), "{method}: {}", status.message());
        }
        let good = say(&stage, "Report", [report(1), report(2)].concat()).await;
        assert!(good.is_none(), "{good:?}");
        stage.assert_b_is_served().await;
    });
    let audited = stage.refusals.take();
    assert_eq!(audited.len(), table.len(), "{audited:?}");
    for ((method, _, _, word, _), row) in table.iter().zip(&audited) {
        assert_eq!(row.tenant_name, "a");
        assert!(row.text.starts_with(&format!("{method}: ")) && row.text.ends_with(&format!("({word})")), "{row:?}");
    }
}

#[test]
fn a_client_that_hangs_up_has_ended_its_reports_and_is_refused_nothing() {
    let stage = TestBed::new(TenantLimits { streams_per_account_max: 1, ..TenantLimits::default() });
    play(async {
        let (sender, receiver) = tokio::sync::mpsc::channel(1);
        let mut client = stage.client("a").await;
        let reports = tokio::spawn(async move {
            client.report(tokio_stream::wrappers::ReceiverStream::new(receiver)).await.map(drop)
        });
        sender.send(v1::ReportRequest::default()).await.expect("a client");
        let mut other = stage.client("a").await;
        // The reports are the one stream that there may be.
        while other.describe(v1::DescribeRequest {}).await.is_ok() {}
        reports.abort();
        while other.describe(v1::DescribeRequest {}).await.is_err() {}
    });
    let audited = stage.refusals.take();
    assert!(audited.iter().all(|row| !row.text.starts_with("Report")), "{audited:?}");
}

#[test]
fn a_line_break_in_a_key_is_no_line_of_the_log() {
    let stage = TestBed::new(TenantLimits::default());
    play(async {
        let request_id = format!("k\nrefused: nobody{}", "x".repeat(100));
        let asked = stage.client("a").await.finish(v1::FinishRequest { request_id }).await;
        assert!(asked.is_err());
        let audited = std::cell::RefCell::new(Vec::new());
        until("it is audited", || {
            audited.borrow_mut().extend(stage.refusals.take());
            !audited.borrow().is_empty()
        })
        .await;
        let request = &audited.borrow()[0].request;
        assert!(request.starts_with("k?refused") && request.len() == 64, "{request}");
    });
}
