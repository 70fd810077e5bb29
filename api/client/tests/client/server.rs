//! The other end: a server that speaks the contract and does what a test tells it, over real sockets. It keeps what a server
//! keeps, so that a key sent twice is answered twice and done once.

use minerva_client::v1;
use minerva_client::v1::coordinate_request::Deadline;
use minerva_client::v1::coordinate_response::Answer;
use minerva_client::v1::participation_server::{Participation, ParticipationServer};
use std::collections::{BTreeSet, VecDeque};
use std::fmt::Debug;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::metadata::MetadataMap;
use tonic::transport::Server;
use tonic::{Code, Request, Response, Status, Streaming};

/// A refusal of the server's, which it would like to be asked about again soon.
pub(crate) fn refusal(code: Code, word: &'static str, sentence: &str) -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert("minerva-refusal", word.parse().expect("a word"));
    metadata.insert("minerva-retry-after-ms", "1".parse().expect("a number"));
    Status::with_metadata(code, sentence, metadata)
}

/// How a server hangs: whoever coordinates or holds a level hears nothing, once there are no refusals left.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hang {
    /// It has not taken what is asked.
    Untaken,
    /// It has.
    Taken,
}

/// What the tests see and steer.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Every call, in order: the method and what was asked for.
    pub(crate) calls: Mutex<Vec<(&'static str, String)>>,
    /// So many requests are carried out and their connection is cut before the answer.
    pub(crate) cuts: Mutex<u32>,
    /// Answers to the next requests, in place of what they would get.
    pub(crate) refusals: Mutex<VecDeque<Status>>,
    /// Keys under which something was bought.
    pub(crate) purchases: Mutex<BTreeSet<String>>,
    /// Holds that are open.
    pub(crate) holds: watch::Sender<usize>,
    /// The first answer to who coordinates; absent: none, ever. Who may begin, and offers a pool with room for all that it moves, is
    /// told to write there.
    pub(crate) first: Mutex<Option<Answer>>,
    /// The pool of each who coordinates: what it takes, and its disk.
    pub(crate) offered: Mutex<Vec<Option<(u64, String)>>>,
    pub(crate) hangs: Mutex<Option<Hang>>,
    /// The deadline of each who coordinates, in nanoseconds from then.
    pub(crate) spans: Mutex<Vec<u64>>,
    /// The disk that each who coordinates named, and the one below its path.
    pub(crate) disks: Mutex<Vec<(String, String)>>,
    /// Lets who waits begin.
    pub(crate) release: Notify,
    /// Authorizations that came with requests.
    pub(crate) tokens: Mutex<Vec<String>>,
    /// The connections, to cut them.
    streams: Mutex<Vec<StdUnixStream>>,
}

impl Script {
    pub(crate) fn calls_of(&self, method: &str) -> Vec<String> {
        let calls = self.calls.lock().expect("no panic");
        calls.iter().filter(|(name, _)| *name == method).map(|(_, text)| text.clone()).collect()
    }

    /// Waits until a method was called so often.
    pub(crate) async fn called(&self, method: &str, times: usize) {
        while self.calls_of(method).len() < times {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }

    pub(crate) fn cut(&self) {
        for stream in self.streams.lock().expect("no panic").drain(..) {
            // One that ended by itself is as good.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// Notes the call; a refusal, or a cut, where the test wants one.
    fn note<T: Debug>(&self, method: &'static str, request: &Request<T>, text: String) -> Result<(), Status> {
        self.calls.lock().expect("no panic").push((method, text));
        if let Some(token) = request.metadata().get("authorization") {
            self.tokens.lock().expect("no panic").push(token.to_str().expect("text").to_owned());
        }
        if let Some(status) = self.refusals.lock().expect("no panic").pop_front() {
            return Err(status);
        }
        Ok(())
    }

    /// Whether what is asked is only taken; where the test wants it, it is not even that.
    async fn hang(&self) -> bool {
        let hang = *self.hangs.lock().expect("no panic");
        match hang {
            Some(Hang::Untaken) => std::future::pending().await,
            Some(Hang::Taken) => true,
            None => false,
        }
    }

    /// What was done is done; the answer may get lost.
    fn lose_answer(&self) {
        let mut cuts = self.cuts.lock().expect("no panic");
        if *cuts > 0 {
            *cuts -= 1;
            self.cut();
        }
    }
}

/// The service.
#[derive(Clone, Debug)]
pub(crate) struct Service(pub(crate) Arc<Script>);

/// Counts a hold for as long as its stream is open.
struct Holding(Arc<Script>);

impl Drop for Holding {
    fn drop(&mut self) {
        self.0.holds.send_modify(|holds| *holds -= 1);
    }
}

type Answers<T> = std::pin::Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Participation for Service {
    async fn describe(&self, request: Request<v1::DescribeRequest>) -> Result<Response<v1::DescribeResponse>, Status> {
        self.0.note("describe", &request, String::new())?;
        Ok(Response::new(v1::DescribeResponse { tenant: "scripted".to_owned(), ..v1::DescribeResponse::default() }))
    }

    async fn set_level(&self, request: Request<v1::SetLevelRequest>) -> Result<Response<v1::SetLevelResponse>, Status> {
        self.0.note("set_level", &request, format!("{:?}", request.get_ref().lifetime))?;
        self.0.lose_answer();
        Ok(Response::new(v1::SetLevelResponse { level: request.get_ref().level }))
    }

    type HoldLevelStream = Answers<v1::HoldLevelResponse>;

    async fn hold_level(
        &self,
        request: Request<v1::HoldLevelRequest>,
    ) -> Result<Response<Self::HoldLevelStream>, Status> {
        let level = request.get_ref().level;
        self.0.note("hold_level", &request, level.to_string())?;
        if self.0.hang().await {
            return Ok(Response::new(Box::pin(tokio_stream::pending())));
        }
        self.0.holds.send_modify(|holds| *holds += 1);
        let holding = Holding(self.0.clone());
        let (answers, stream) = mpsc::channel(1);
        answers.send(Ok(v1::HoldLevelResponse { level })).await.expect("just made");
        // Open until the client goes: the stream keeps both ends.
        let stream = ReceiverStream::new(stream).map(move |answer| {
            let _keep = (&holding, &answers);
            answer
        });
        Ok(Response::new(Box::pin(stream)))
    }

    type HoldJobStream = Answers<v1::HoldJobResponse>;

    async fn hold_job(&self, request: Request<v1::HoldJobRequest>) -> Result<Response<Self::HoldJobStream>, Status> {
        let job = request.get_ref();
        self.0.note("hold_job", &request, format!("{} {:?}", job.name, job.size_bytes))?;
        self.0.holds.send_modify(|holds| *holds += 1);
        let holding = Holding(self.0.clone());
        let (answers, stream) = mpsc::channel(1);
        answers.send(Ok(v1::HoldJobResponse { place: 2, jobs: 3 })).await.expect("just made");
        let stream = ReceiverStream::new(stream).map(move |answer| {
            let _keep = (&holding, &answers);
            answer
        });
        Ok(Response::new(Box::pin(stream)))
    }

    type HoldDebtStream = Answers<v1::HoldDebtResponse>;

    async fn hold_debt(&self, request: Request<v1::HoldDebtRequest>) -> Result<Response<Self::HoldDebtStream>, Status> {
        let debt = request.get_ref();
        let text = format!("{} {} of {} s", debt.name, debt.done_ns / 1_000_000_000, debt.service_ns / 1_000_000_000);
        self.0.note("hold_debt", &request, text)?;
        self.0.holds.send_modify(|holds| *holds += 1);
        let holding = Holding(self.0.clone());
        let (answers, stream) = mpsc::channel(2);
        let script = self.0.clone();
        answers.send(Ok(v1::HoldDebtResponse { may_work: false, registration: 7 })).await.expect("just made");
        tokio::spawn(async move {
            script.release.notified().await;
            let refusal = script.refusals.lock().expect("no panic").pop_front();
            let is_over = refusal.is_some();
            let word = refusal.map_or(Ok(v1::HoldDebtResponse { may_work: true, registration: 7 }), Err);
            // The client may have gone.
            let _ = answers.send(word).await;
            if !is_over {
                answers.closed().await;
            }
        });
        let stream = ReceiverStream::new(stream).map(move |answer| {
            let _keep = &holding;
            answer
        });
        Ok(Response::new(Box::pin(stream)))
    }

    async fn report_debt(
        &self,
        request: Request<v1::ReportDebtRequest>,
    ) -> Result<Response<v1::ReportDebtResponse>, Status> {
        let debt = request.get_ref();
        let text = format!("{} {} of {} s", debt.name, debt.done_ns / 1_000_000_000, debt.service_ns / 1_000_000_000);
        self.0.note("report_debt", &request, format!("{text}, {}", debt.registration))?;
        Ok(Response::new(v1::ReportDebtResponse {}))
    }

    async fn set_schedule(
        &self,
        request: Request<v1::SetScheduleRequest>,
    ) -> Result<Response<v1::SetScheduleResponse>, Status> {
        self.0.note("set_schedule", &request, request.get_ref().time_zone.clone())?;
        Ok(Response::new(v1::SetScheduleResponse { level: v1::Level::Idle.into() }))
    }

    async fn credits(&self, request: Request<v1::CreditsRequest>) -> Result<Response<v1::CreditsResponse>, Status> {
        self.0.note("credits", &request, request.get_ref().entries_max.to_string())?;
        Ok(Response::new(v1::CreditsResponse { held_micro_credits: 75_000_000, ..v1::CreditsResponse::default() }))
    }

    async fn boost(&self, request: Request<v1::BoostRequest>) -> Result<Response<v1::BoostResponse>, Status> {
        let key = request.get_ref().request_id.clone();
        self.0.note("boost", &request, key.clone())?;
        self.0.purchases.lock().expect("no panic").insert(key);
        self.0.lose_answer();
        Ok(Response::new(v1::BoostResponse { slices: 3, price_micro_credits: 75_000_000, held_micro_credits: 0 }))
    }

    type CoordinateStream = Answers<v1::CoordinateResponse>;

    async fn coordinate(
        &self,
        request: Request<v1::CoordinateRequest>,
    ) -> Result<Response<Self::CoordinateStream>, Status> {
        let span = request.get_ref().deadline.map_or(0, |deadline| match deadline {
            Deadline::BeginWithinNs(span) | Deadline::DoneWithinNs(span) => span,
        });
        self.0.spans.lock().expect("no panic").push(span);
        self.0.note("coordinate", &request, request.get_ref().request_id.clone())?;
        if self.0.hang().await {
            return Ok(Response::new(Box::pin(tokio_stream::pending())));
        }
        let offered = request.get_ref().pool.clone().map(|pool| (pool.left_bytes, pool.device));
        self.0.offered.lock().expect("no panic").push(offered);
        let disks = (request.get_ref().device.clone(), request.get_ref().working_device.clone());
        self.0.disks.lock().expect("no panic").push(disks);
        let has_room =
            request.get_ref().pool.as_ref().is_some_and(|pool| pool.left_bytes >= request.get_ref().size_bytes);
        let (answers, stream) = mpsc::channel(2);
        let script = self.0.clone();
        tokio::spawn(async move {
            let Some(first) = *script.first.lock().expect("no panic") else {
                // It never answers; the stream stays open.
                answers.closed().await;
                return;
            };
            let first = match first {
                Answer::BeginNow(_) if has_room => Answer::WriteToPool(v1::WriteToPool {}),
                first => first,
            };
            let send = |answer| answers.send(Ok(v1::CoordinateResponse { answer: Some(answer) }));
            // Whoever asked may have gone.
            let _ = send(first).await;
            if !matches!(first, Answer::BeginNow(_) | Answer::WriteToPool(_)) {
                tokio::select! {
                    () = script.release.notified() => drop(send(Answer::BeginNow(v1::BeginNow {})).await),
                    () = answers.closed() => {}
                }
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn begin(&self, request: Request<v1::BeginRequest>) -> Result<Response<v1::BeginResponse>, Status> {
        self.0.note("begin", &request, request.get_ref().request_id.clone())?;
        Ok(Response::new(v1::BeginResponse {}))
    }

    async fn finish(&self, request: Request<v1::FinishRequest>) -> Result<Response<v1::FinishResponse>, Status> {
        self.0.note("finish", &request, request.get_ref().request_id.clone())?;
        self.0.lose_answer();
        Ok(Response::new(v1::FinishResponse {}))
    }

    async fn cancel(&self, request: Request<v1::CancelRequest>) -> Result<Response<v1::CancelResponse>, Status> {
        self.0.note("cancel", &request, request.get_ref().request_id.clone())?;
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
            self.0.calls.lock().expect("no panic").push(("report", report.agent));
        }
        Ok(Response::new(v1::ReportResponse { reports: count }))
    }
}

/// A server at a Unix socket.
pub(crate) struct Listening {
    pub(crate) script: Arc<Script>,
    socket: PathBuf,
    task: Option<JoinHandle<()>>,
}

impl Listening {
    pub(crate) fn at(socket: &Path) -> Self {
        let mut server = Self { script: Arc::default(), socket: socket.to_owned(), task: None };
        server.start();
        server
    }

    pub(crate) fn start(&mut self) {
        let listener = UnixListener::bind(&self.socket).expect("a socket");
        let script = self.script.clone();
        let incoming = remembered(listener, script.clone());
        let serve =
            Server::builder().add_service(ParticipationServer::new(Service(script))).serve_with_incoming(incoming);
        self.task = Some(tokio::spawn(async move { serve.await.expect("served") }));
    }

    /// As `kill -9`: nothing is answered any more, and the socket's file is left.
    pub(crate) async fn kill(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
            let _ = task.await;
        }
        self.script.cut();
    }

    pub(crate) fn restart(&mut self) {
        std::fs::remove_file(&self.socket).expect("what was left");
        self.start();
    }
}

/// Connections as they come, each remembered so that it can be cut.
fn remembered(listener: UnixListener, script: Arc<Script>) -> impl Stream<Item = std::io::Result<UnixStream>> {
    tokio_stream::wrappers::UnixListenerStream::new(listener).map(move |stream| {
        let stream = stream?;
        let other_end = StdUnixStream::from(stream.as_fd().try_clone_to_owned()?);
        script.streams.lock().expect("no panic").push(other_end);
        Ok(stream)
    })
}
