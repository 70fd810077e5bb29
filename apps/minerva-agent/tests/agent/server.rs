//! The server at the other end: speaks the contract as a test tells it to, and counts what it is asked.

use minerva_api::v1;
use minerva_api::v1::coordinate_request::Deadline;
use minerva_api::v1::participation_server::{Participation, ParticipationServer};
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tokio::net::UnixListener;
use tokio::runtime::Runtime;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{ReceiverStream, UnixListenerStream};
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::MetadataMap;
use tonic::{Code, Request, Response, Status, Streaming};

/// Streams over one connection.
const STREAMS_MAX: u32 = 256;

/// What was asked, over all the lives of the server.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) levels: Vec<i32>,
    pub(crate) holds: usize,
    pub(crate) holds_open: usize,
    pub(crate) keys: Vec<String>,
    /// By when each operation that was asked about is to be done.
    pub(crate) within_ns: Vec<u64>,
    /// Debts, each as often as it was registered.
    pub(crate) debts: Vec<v1::HoldDebtRequest>,
    pub(crate) debt_reports: Vec<v1::ReportDebtRequest>,
    pub(crate) reports: Vec<v1::ReportRequest>,
    pub(crate) metadata: Vec<MetadataMap>,
}

/// Shared between the test and the server's lives.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    asked: Arc<Mutex<Asked>>,
    /// Operations that wait may begin.
    pub(crate) begins: watch::Sender<bool>,
}

impl Script {
    pub(crate) fn new() -> Self {
        Self { asked: Arc::default(), begins: watch::channel(false).0 }
    }

    pub(crate) fn asked<T>(&self, look: impl FnOnce(&mut Asked) -> T) -> T {
        look(&mut self.asked.lock().expect("no test panics with it"))
    }
}

/// A life of the server; dropping it cuts every connection.
pub(crate) struct Server(Option<Runtime>);

impl Server {
    pub(crate) fn start(socket: &Path, script: &Script) -> Self {
        let _ = std::fs::remove_file(socket);
        let listener = std::os::unix::net::UnixListener::bind(socket).expect("a socket");
        listener.set_nonblocking(true).expect("set up");
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let service = ParticipationServer::new(script.clone());
        runtime.spawn(async move {
            let connections = UnixListenerStream::new(UnixListener::from_std(listener).expect("a socket"));
            // As the daemon's.
            let mut server = tonic::transport::Server::builder().max_concurrent_streams(STREAMS_MAX);
            server.add_service(service).serve_with_incoming(connections).await
        });
        Self(Some(runtime))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Counts a hold for as long as it is open.
struct Open(Script);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.asked(|asked| asked.holds_open -= 1);
    }
}

fn out_of_range(sentence: &str) -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert("minerva-refusal", "out-of-range".parse().expect("a word"));
    Status::with_metadata(Code::InvalidArgument, sentence, metadata)
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Participation for Script {
    type HoldLevelStream = Answers<v1::HoldLevelResponse>;
    type CoordinateStream = Answers<v1::CoordinateResponse>;

    async fn describe(&self, request: Request<v1::DescribeRequest>) -> Result<Response<v1::DescribeResponse>, Status> {
        self.asked(|asked| asked.metadata.push(request.metadata().clone()));
        let mut response =
            Response::new(v1::DescribeResponse { tenant: "a guest".to_owned(), ..v1::DescribeResponse::default() });
        response.metadata_mut().insert("minerva-test", "kept".parse().expect("a value"));
        Ok(response)
    }

    async fn set_level(&self, request: Request<v1::SetLevelRequest>) -> Result<Response<v1::SetLevelResponse>, Status> {
        let level = request.into_inner().level;
        self.asked(|asked| asked.levels.push(level));
        Ok(Response::new(v1::SetLevelResponse { level }))
    }

    async fn hold_level(
        &self,
        request: Request<v1::HoldLevelRequest>,
    ) -> Result<Response<Self::HoldLevelStream>, Status> {
        let level = request.into_inner().level;
        self.asked(|asked| {
            asked.holds += 1;
            asked.holds_open += 1;
        });
        let open = Open(self.clone());
        let first = tokio_stream::once(Ok(v1::HoldLevelResponse { level }));
        let held = first.chain(tokio_stream::pending()).map(move |answer| {
            let _held = &open;
            answer
        });
        Ok(Response::new(Box::pin(held)))
    }

    type HoldJobStream = Answers<v1::HoldJobResponse>;

    async fn hold_job(&self, _: Request<v1::HoldJobRequest>) -> Result<Response<Self::HoldJobStream>, Status> {
        Err(Status::unimplemented("this server has no jobs"))
    }

    type HoldDebtStream = Answers<v1::HoldDebtResponse>;

    async fn hold_debt(&self, request: Request<v1::HoldDebtRequest>) -> Result<Response<Self::HoldDebtStream>, Status> {
        let debt = request.into_inner();
        if debt.service_ns == 0 {
            return Err(out_of_range("A debt takes more than 0."));
        }
        self.asked(|asked| {
            asked.debts.push(debt);
            asked.holds += 1;
            asked.holds_open += 1;
        });
        let open = Open(self.clone());
        let (tell, words) = mpsc::channel(4);
        let mut begins = self.begins.subscribe();
        tokio::spawn(async move {
            let _held = open;
            loop {
                // It may work while operations that wait may begin.
                let may_work = *begins.borrow_and_update();
                if tell.send(Ok(v1::HoldDebtResponse { may_work, registration: 7 })).await.is_err() {
                    return;
                }
                tokio::select! {
                    changed = begins.changed() => if changed.is_err() { return },
                    () = tell.closed() => return,
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(words))))
    }

    async fn report_debt(
        &self,
        request: Request<v1::ReportDebtRequest>,
    ) -> Result<Response<v1::ReportDebtResponse>, Status> {
        self.asked(|asked| asked.debt_reports.push(request.into_inner()));
        Ok(Response::new(v1::ReportDebtResponse {}))
    }

    async fn set_schedule(
        &self,
        _: Request<v1::SetScheduleRequest>,
    ) -> Result<Response<v1::SetScheduleResponse>, Status> {
        Ok(Response::new(v1::SetScheduleResponse { level: 1 }))
    }

    async fn credits(&self, _: Request<v1::CreditsRequest>) -> Result<Response<v1::CreditsResponse>, Status> {
        Err(Status::unimplemented("this server has none"))
    }

    async fn boost(&self, request: Request<v1::BoostRequest>) -> Result<Response<v1::BoostResponse>, Status> {
        let mut metadata = MetadataMap::new();
        let key = request.into_inner().request_id;
        if key == "unstored" {
            self.asked(|asked| asked.keys.push(key));
            metadata.insert("minerva-refusal", "not-committed".parse().expect("a word"));
            return Err(Status::with_metadata(Code::Unavailable, "It was not stored, and nothing spent.", metadata));
        }
        metadata.insert("minerva-refusal", "not-enough-credits".parse().expect("a word"));
        Err(Status::with_metadata(Code::FailedPrecondition, "A boost costs more than there is.", metadata))
    }

    async fn coordinate(
        &self,
        request: Request<v1::CoordinateRequest>,
    ) -> Result<Response<Self::CoordinateStream>, Status> {
        use v1::coordinate_response::Answer;
        let v1::CoordinateRequest { request_id, size_bytes, deadline, pool, .. } = request.into_inner();
        self.asked(|asked| {
            asked.keys.push(request_id);
            if let Some(Deadline::DoneWithinNs(span)) = deadline {
                asked.within_ns.push(span);
            }
        });
        // As one that nobody does in time.
        if size_bytes == u64::MAX {
            return Err(out_of_range("It cannot be done within 1 ns."));
        }
        if pool.is_some() {
            let answer = Some(Answer::WriteToPool(v1::WriteToPool {}));
            return Ok(Response::new(Box::pin(tokio_stream::once(Ok(v1::CoordinateResponse { answer })))));
        }
        let (tell, answers) = mpsc::channel(2);
        let mut begins = self.begins.subscribe();
        tokio::spawn(async move {
            let answer = |answer| Ok(v1::CoordinateResponse { answer: Some(answer) });
            let _ = tell.send(answer(Answer::Wait(v1::Wait { at_most_ns: None }))).await;
            if begins.wait_for(|begins| *begins).await.is_ok() {
                let _ = tell.send(answer(Answer::BeginNow(v1::BeginNow {}))).await;
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(answers))))
    }

    async fn begin(&self, _: Request<v1::BeginRequest>) -> Result<Response<v1::BeginResponse>, Status> {
        Ok(Response::new(v1::BeginResponse {}))
    }

    async fn finish(&self, _: Request<v1::FinishRequest>) -> Result<Response<v1::FinishResponse>, Status> {
        Ok(Response::new(v1::FinishResponse {}))
    }

    async fn cancel(&self, _: Request<v1::CancelRequest>) -> Result<Response<v1::CancelResponse>, Status> {
        Ok(Response::new(v1::CancelResponse {}))
    }

    async fn report(
        &self,
        request: Request<Streaming<v1::ReportRequest>>,
    ) -> Result<Response<v1::ReportResponse>, Status> {
        let mut reports = request.into_inner();
        let mut count = 0;
        while let Some(report) = reports.message().await? {
            count += 1;
            self.asked(|asked| asked.reports.push(report));
        }
        Ok(Response::new(v1::ReportResponse { reports: count }))
    }
}
