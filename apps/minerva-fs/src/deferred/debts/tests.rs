//! Debts as a daemon hears of them, one made up, which treats debts of one name as `minervad` does.

use super::{DebtLink, Owed, request};
use minerva_api::v1;
use minerva_api::v1::participation_server::{Participation, ParticipationServer};
use minerva_model::DeviceId;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{Sender, channel};
use tonic::codegen::tokio_stream::wrappers::ReceiverStream;
use tonic::codegen::tokio_stream::{Empty, Stream};
use tonic::{Request, Response, Status, Streaming};

const DISK: DeviceId = DeviceId { major: 254, minor: 0 };
/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;
type Answer<T> = Result<Response<T>, Status>;
type Holder = Sender<Result<v1::HoldDebtResponse, Status>>;

/// Has one debt, the last that was registered.
#[derive(Clone, Debug, Default)]
struct Daemon {
    registrations: Arc<AtomicU64>,
    holder: Arc<Mutex<Option<Holder>>>,
}

impl Daemon {
    /// Serves until the test ends.
    fn start(socket: &Path) -> Self {
        let daemon = Self::default();
        let (service, socket) = (ParticipationServer::new(daemon.clone()), socket.to_owned());
        let listener = std::os::unix::net::UnixListener::bind(socket).unwrap();
        listener.set_nonblocking(true).unwrap();
        let serve = async move {
            let listener = tokio::net::UnixListener::from_std(listener).unwrap();
            let (sender, connections) = channel(1);
            tokio::spawn(async move {
                while sender.send(listener.accept().await.map(|(stream, _)| stream)).await.is_ok() {}
            });
            let server = tonic::transport::Server::builder().add_service(service);
            server.serve_with_incoming(ReceiverStream::new(connections)).await
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        thread::spawn(move || runtime.block_on(serve));
        daemon
    }
}

fn not_asked<T>() -> Answer<T> {
    Err(Status::unimplemented("nobody asks this"))
}

#[tonic::async_trait]
impl Participation for Daemon {
    type HoldLevelStream = Empty<Result<v1::HoldLevelResponse, Status>>;
    type HoldJobStream = Empty<Result<v1::HoldJobResponse, Status>>;
    type HoldDebtStream = Answers<v1::HoldDebtResponse>;
    type CoordinateStream = Empty<Result<v1::CoordinateResponse, Status>>;

    async fn hold_debt(&self, _: Request<v1::HoldDebtRequest>) -> Answer<Self::HoldDebtStream> {
        let registration = self.registrations.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, words) = channel(4);
        sender.try_send(Ok(v1::HoldDebtResponse { may_work: true, registration })).unwrap();
        if let Some(before) = self.holder.lock().unwrap().replace(sender) {
            let _ = before.try_send(Err(Status::already_exists("A later debt of this name took its place.")));
        }
        Ok(Response::new(Box::pin(ReceiverStream::new(words))))
    }

    async fn report_debt(&self, told: Request<v1::ReportDebtRequest>) -> Answer<v1::ReportDebtResponse> {
        if told.get_ref().registration == self.registrations.load(Ordering::Relaxed) {
            Ok(Response::new(v1::ReportDebtResponse {}))
        } else {
            Err(Status::already_exists("A later debt of this name took its place."))
        }
    }

    async fn describe(&self, _: Request<v1::DescribeRequest>) -> Answer<v1::DescribeResponse> {
        not_asked()
    }

    async fn set_level(&self, _: Request<v1::SetLevelRequest>) -> Answer<v1::SetLevelResponse> {
        not_asked()
    }

    async fn hold_level(&self, _: Request<v1::HoldLevelRequest>) -> Answer<Self::HoldLevelStream> {
        not_asked()
    }

    async fn hold_job(&self, _: Request<v1::HoldJobRequest>) -> Answer<Self::HoldJobStream> {
        not_asked()
    }

    async fn set_schedule(&self, _: Request<v1::SetScheduleRequest>) -> Answer<v1::SetScheduleResponse> {
        not_asked()
    }

    async fn credits(&self, _: Request<v1::CreditsRequest>) -> Answer<v1::CreditsResponse> {
        not_asked()
    }

    async fn boost(&self, _: Request<v1::BoostRequest>) -> Answer<v1::BoostResponse> {
        not_asked()
    }

    async fn coordinate(&self, _: Request<v1::CoordinateRequest>) -> Answer<Self::CoordinateStream> {
        not_asked()
    }

    async fn begin(&self, _: Request<v1::BeginRequest>) -> Answer<v1::BeginResponse> {
        not_asked()
    }

    async fn finish(&self, _: Request<v1::FinishRequest>) -> Answer<v1::FinishResponse> {
        not_asked()
    }

    async fn cancel(&self, _: Request<v1::CancelRequest>) -> Answer<v1::CancelResponse> {
        not_asked()
    }

    async fn report(&self, _: Request<Streaming<v1::ReportRequest>>) -> Answer<v1::ReportResponse> {
        not_asked()
    }
}

fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn where_nobody_answers_nothing_may_move() {
    let folder = tempfile::tempdir().unwrap();
    let link = DebtLink::new(folder.path().join("nobody.sock"));
    link.owe(DISK, 1 << 20);
    assert_eq!(link.may_work(DISK), None);
    link.owe_nothing(DISK);
    assert!(link.owed(DISK, 0).is_none(), "and its thread ends");
}

#[test]
fn who_asked_about_a_debt_that_is_over_ends_and_leaves_a_later_one_alone() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("daemon.sock");
    let daemon = Daemon::start(&socket);
    let link = DebtLink { look: Duration::from_millis(20), ..DebtLink::new(socket) };
    for registrations in 1..=3 {
        link.owe(DISK, 1 << 20);
        until("it is registered", || link.may_work(DISK) == Some(true));
        assert_eq!(daemon.registrations.load(Ordering::Relaxed), registrations);
        if registrations < 3 {
            link.owe_nothing(DISK);
        }
    }
    // Each thread has the table.
    until("the earlier ones have ended", || Arc::strong_count(&link.disks) == 2);
    assert_eq!(daemon.registrations.load(Ordering::Relaxed), 3, "none of them registered it again");
    assert_eq!(link.may_work(DISK), Some(true));
    link.owe_nothing(DISK);
    until("the last one has ended", || Arc::strong_count(&link.disks) == 1);
}

#[test]
fn what_waits_is_told_in_time_of_the_disk() {
    let asked = request(DISK, Owed { waiting_bytes: 3, moved_bytes: 2, may_work: None, generation: 0 });
    assert_eq!((asked.name.as_str(), asked.working_device.as_str()), ("minerva-fs-254-0", "254:0"));
    assert_eq!((asked.service_ns, asked.done_ns, asked.tied_bytes), (50, 20, 3));
}
