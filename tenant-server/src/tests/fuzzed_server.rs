//! The scene that fuzzing plays in, with clients that behave.

use super::stage::Client;
use crate::test_server::{TestServer, Who};
use hyper_util::rt::TokioIo;
use minerva_api::v1;
use minerva_api::v1::participation_client::ParticipationClient;
use std::time::Duration;
use tonic::Code;
use tonic::transport::{Endpoint, Uri};

async fn client(server: &TestServer, who: Who) -> Client {
    let mut pipe = Some(server.connect(who));
    let connector = tower::service_fn(move |_: Uri| {
        let pipe = pipe.take().map(TokioIo::new).ok_or_else(|| std::io::Error::other("there is one connection"));
        async move { pipe }
    });
    let endpoint = Endpoint::from_static("http://minervad.invalid");
    ParticipationClient::new(endpoint.connect_with_connector(connector).await.expect("a server"))
}

#[test]
fn who_hangs_up_in_the_middle_of_everything_is_forgotten() {
    // The clock jumps to what is due next, so that patience costs no time.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime").block_on(async {
        let mut server = TestServer::new();
        let (reports, reported) = tokio::sync::mpsc::channel(1);
        let (mut one, mut other) = (client(&server, Who::A).await, client(&server, Who::A).await);
        let mut third = one.clone();
        let clients = tokio::spawn(async move {
            let level = v1::HoldLevelRequest { level: v1::Level::Low as i32 };
            let cancel = v1::CancelRequest { request_id: "never answered".to_owned() };
            let reported = tokio_stream::wrappers::ReceiverStream::new(reported);
            let (held, cancelled, reported) =
                tokio::join!(one.hold_level(level), other.cancel(cancel), third.report(reported));
            drop(held);
            (cancelled.map(drop), reported.map(drop))
        });
        reports.send(v1::ReportRequest::default()).await.expect("a client");
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(server.answer(0), 3, "a level, a cancellation and a report");
        assert!(!server.is_empty());
        clients.abort();
        assert!(clients.await.is_err());
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(server.is_empty(), "{server:?}");

        let mut nobody = client(&server, Who::Nobody).await;
        let status = nobody.describe(v1::DescribeRequest {}).await.expect_err("nobody");
        assert_eq!((status.code(), status.message()), (Code::Unauthenticated, "Nobody knows this process."));
    });
}
