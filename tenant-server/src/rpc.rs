//! The service for tenants: each call is judged, becomes an [`Ask`](crate::request::Ask), and the answer of the loop
//! becomes the answer of the call.

use crate::authenticate::process::LiveProcess;
use crate::bounds::{ANSWER_WAIT_MAX, REPORT_BYTES_MAX};
use crate::call_context::{CallContext, Session};
use crate::decode::{self, AskedLifetime};
use crate::request::{Call, LevelLifetime, Refusal};
use crate::shared::Shared;
use crate::status::Denial;
use minerva_api::v1;
use minerva_api::v1::participation_server::Participation;
use minerva_model::RequestId;
use std::error::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

/// Answers of a stream that may wait for a slow client. The loop keeps the latest in mind and tries again.
const STREAM_QUEUE_LENGTH: usize = 4;

/// Serves [`Participation`].
#[derive(Debug)]
pub(crate) struct RpcHandler {
    shared: Arc<Shared>,
}

/// A stream of answers.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Participation for RpcHandler {
    type HoldLevelStream = Answers<v1::HoldLevelResponse>;
    type HoldJobStream = Answers<v1::HoldJobResponse>;
    type HoldDebtStream = Answers<v1::HoldDebtResponse>;
    type CoordinateStream = Answers<v1::CoordinateResponse>;

    async fn describe(&self, request: Request<v1::DescribeRequest>) -> Result<Response<v1::DescribeResponse>, Status> {
        self.answered("Describe", String::new(), request, async |CallContext { session, .. }, _| {
            let mut answer = self.shared.ask(&session.caller.tenant, Call::Describe).await?;
            answer.identified_by = session.caller.identified_by.to_owned();
            Ok(answer)
        })
        .await
    }

    async fn set_level(&self, request: Request<v1::SetLevelRequest>) -> Result<Response<v1::SetLevelResponse>, Status> {
        self.answered("SetLevel", String::new(), request, async |CallContext { session, .. }, message| {
            let (level, lifetime) = decode::set_level(&message)?;
            let lifetime = match lifetime {
                AskedLifetime::UntilReleased => LevelLifetime::UntilReleased,
                AskedLifetime::For(span) => LevelLifetime::For(span),
                AskedLifetime::Process(pid) => self.lifetime_of(session, pid).await?,
            };
            let call = |answer| Call::SetLevel { level, lifetime, answer };
            let level = self.shared.ask(&session.caller.tenant, call).await?;
            Ok(v1::SetLevelResponse { level: decode::level_number(level) })
        })
        .await
    }

    async fn hold_level(
        &self,
        request: Request<v1::HoldLevelRequest>,
    ) -> Result<Response<Self::HoldLevelStream>, Status> {
        self.answered("HoldLevel", String::new(), request, async |context, message| {
            let level = decode::level(message.level)?;
            let call = |changes| Call::HoldLevel { level, changes };
            let levels = self.stream(&context.session, call).await?;
            let answer = |level| v1::HoldLevelResponse { level: decode::level_number(level) };
            Ok(answers(context.clone(), levels, answer))
        })
        .await
    }

    async fn hold_job(&self, request: Request<v1::HoldJobRequest>) -> Result<Response<Self::HoldJobStream>, Status> {
        self.answered("HoldJob", String::new(), request, async |context, message| {
            let job = decode::job(message)?;
            let places = self.stream(&context.session, |places| Call::HoldJob { job, places }).await?;
            Ok(answers(context.clone(), places, |place| place))
        })
        .await
    }

    async fn hold_debt(&self, request: Request<v1::HoldDebtRequest>) -> Result<Response<Self::HoldDebtStream>, Status> {
        self.answered("HoldDebt", String::new(), request, async |context, message| {
            let decode::PutOff { debt, within, disk, guest_disk } = decode::debt(message)?;
            let disk = context.seen_from_here(disk, guest_disk);
            let call = |words| Call::HoldDebt { debt, within, disk, words };
            let words = self.stream(&context.session, call).await?;
            Ok(answers(context.clone(), words, |word| word))
        })
        .await
    }

    async fn report_debt(
        &self,
        request: Request<v1::ReportDebtRequest>,
    ) -> Result<Response<v1::ReportDebtResponse>, Status> {
        self.answered("ReportDebt", String::new(), request, async |CallContext { session, .. }, message| {
            let registration = message.registration;
            let debt = decode::debt_report(message)?;
            let call = |answer| Call::ReportDebt(debt, registration, answer);
            self.shared.ask(&session.caller.tenant, call).await?;
            Ok(v1::ReportDebtResponse {})
        })
        .await
    }

    async fn set_schedule(
        &self,
        request: Request<v1::SetScheduleRequest>,
    ) -> Result<Response<v1::SetScheduleResponse>, Status> {
        self.answered("SetSchedule", String::new(), request, async |CallContext { session, .. }, message| {
            let (entries, time_zone) = decode::schedule(message)?;
            let call = |answer| Call::SetSchedule { entries, time_zone, answer };
            let level = self.shared.ask(&session.caller.tenant, call).await?;
            Ok(v1::SetScheduleResponse { level: decode::level_number(level) })
        })
        .await
    }

    async fn credits(&self, request: Request<v1::CreditsRequest>) -> Result<Response<v1::CreditsResponse>, Status> {
        self.answered("Credits", String::new(), request, async |CallContext { session, .. }, message| {
            let entries_max = decode::entries_max(&message);
            self.shared.ask(&session.caller.tenant, |answer| Call::Credits { entries_max, answer }).await
        })
        .await
    }

    async fn boost(&self, request: Request<v1::BoostRequest>) -> Result<Response<v1::BoostResponse>, Status> {
        let key = request.get_ref().request_id.clone();
        self.answered("Boost", key, request, async |CallContext { session, .. }, message| {
            let decode::Purchase { id, amount, device } = decode::boost(message)?;
            let call = |answer| Call::Boost { id, amount, device, answer };
            self.shared.ask(&session.caller.tenant, call).await
        })
        .await
    }

    async fn coordinate(
        &self,
        request: Request<v1::CoordinateRequest>,
    ) -> Result<Response<Self::CoordinateStream>, Status> {
        let key = request.get_ref().request_id.clone();
        self.answered("Coordinate", key, request, async |context, message| {
            let decode::Announcement { id, size_bytes, access, within, disk, guest_disk, pool } =
                decode::coordinate(message)?;
            let disk = context.seen_from_here(disk, guest_disk);
            let call = |answers| Call::Coordinate { id, size_bytes, access, within, disk, pool, answers };
            let grants = self.stream(&context.session, call).await?;
            Ok(answers(context.clone(), grants, |grant| grant))
        })
        .await
    }

    async fn begin(&self, request: Request<v1::BeginRequest>) -> Result<Response<v1::BeginResponse>, Status> {
        let key = request.get_ref().request_id.clone();
        self.answered("Begin", key, request, async |CallContext { session, .. }, message| {
            let id = operation(message.request_id)?;
            self.shared.ask(&session.caller.tenant, |answer| Call::Begin(id, answer)).await?;
            Ok(v1::BeginResponse {})
        })
        .await
    }

    async fn finish(&self, request: Request<v1::FinishRequest>) -> Result<Response<v1::FinishResponse>, Status> {
        let key = request.get_ref().request_id.clone();
        self.answered("Finish", key, request, async |CallContext { session, .. }, message| {
            let id = operation(message.request_id)?;
            self.shared.ask(&session.caller.tenant, |answer| Call::Finish(id, answer)).await?;
            Ok(v1::FinishResponse {})
        })
        .await
    }

    async fn cancel(&self, request: Request<v1::CancelRequest>) -> Result<Response<v1::CancelResponse>, Status> {
        let key = request.get_ref().request_id.clone();
        self.answered("Cancel", key, request, async |CallContext { session, .. }, message| {
            let id = operation(message.request_id)?;
            self.shared.ask(&session.caller.tenant, |answer| Call::Cancel(id, answer)).await?;
            Ok(v1::CancelResponse {})
        })
        .await
    }

    async fn report(
        &self,
        request: Request<Streaming<v1::ReportRequest>>,
    ) -> Result<Response<v1::ReportResponse>, Status> {
        self.answered("Report", String::new(), request, async |CallContext { session, .. }, mut client| {
            let mut reports = 0;
            while let Some(report) = next_report(&mut client).await? {
                let tenant = &session.caller.tenant;
                if reports > 0 {
                    self.shared.limits().with(|limits, now| limits.further(now, &tenant.account))?;
                }
                decode::report(&report)?;
                self.shared.report(tenant, report)?;
                reports += 1;
            }
            Ok(v1::ReportResponse { reports })
        })
        .await
    }
}

/// The operation that a message is about.
fn operation(text: String) -> Result<RequestId, Denial> {
    Ok(decode::request_id(text)?)
}

/// The next report. A client that hangs up has ended its reports as well as one that says so; one whose words cannot be read
/// has not.
async fn next_report(client: &mut Streaming<v1::ReportRequest>) -> Result<Option<v1::ReportRequest>, Denial> {
    match client.message().await {
        Ok(report) => Ok(report),
        // Behind what the connection did stands its error; what the message is like is the reader's own word.
        Err(status) if status.source().is_some() => Ok(None),
        Err(status) => Err(Denial::unreadable(&status, REPORT_BYTES_MAX)),
    }
}

/// A stream's answers in the form of the contract.
fn answers<T: Send + 'static, A: Send + 'static>(
    context: CallContext,
    (first, rest): (T, mpsc::Receiver<Result<T, Refusal>>),
    answer: impl Fn(T) -> A + Send + 'static,
) -> Answers<A> {
    let all = tokio_stream::once(Ok(first)).chain(ReceiverStream::new(rest));
    Box::pin(all.map(move |one| one.map(&answer).map_err(|refusal| context.refuse(Denial::of_loop(refusal)))))
}

impl RpcHandler {
    pub(crate) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Finds who asks, and tells what is refused.
    async fn answered<Q, A>(
        &self,
        method: &'static str,
        key: String,
        request: Request<Q>,
        work: impl AsyncFnOnce(&CallContext, Q) -> Result<A, Denial>,
    ) -> Result<Response<A>, Status> {
        let session = request.extensions().get::<Arc<Session>>().cloned();
        let session = session.ok_or_else(|| Status::internal("the dispatcher did not say who asks"))?;
        let context = CallContext { shared: Arc::clone(&self.shared), method, key, session };
        let answer = work(&context, request.into_inner()).await;
        answer.map(Response::new).map_err(|denial| context.refuse(denial))
    }

    /// Asks for a stream; answered by it or refused, when its first answer is there.
    async fn stream<T: Send + 'static>(
        &self,
        session: &Session,
        call: impl FnOnce(mpsc::Sender<Result<T, Refusal>>) -> Call,
    ) -> Result<(T, mpsc::Receiver<Result<T, Refusal>>), Denial> {
        let slot = self.shared.slot(&session.caller.tenant)?;
        let (sender, mut receiver) = mpsc::channel(STREAM_QUEUE_LENGTH);
        self.shared.send(session.caller.tenant.id, call(sender))?;
        let patience = Duration::from_nanos(ANSWER_WAIT_MAX.0);
        let first = tokio::time::timeout(patience, receiver.recv()).await;
        drop(slot);
        match first {
            Err(_) => Err(Denial::no_answer(ANSWER_WAIT_MAX)),
            Ok(None) => Err(Denial::stopping()),
            Ok(Some(Err(refusal))) => Err(Denial::of_loop(refusal)),
            Ok(Some(Ok(first))) => Ok((first, receiver)),
        }
    }

    /// A level that ends with a process: one of the same tenant, so that nobody can watch for the end of others'.
    async fn lifetime_of(&self, session: &Session, pid: u32) -> Result<LevelLifetime, Denial> {
        let Some(caller) = &session.process else {
            let text = "A level can end with a process over a Unix socket only; hold it with a stream instead.";
            return Err(Denial::out_of_range(text.to_owned()));
        };
        let Shared { starts, roots, directory, .. } = &*self.shared;
        let tenant = &session.caller.tenant;
        let own = |cgroup: &str| directory.of_cgroup(cgroup).is_some_and(|listed| listed.id == tenant.id);
        let process = match pid {
            0 => caller.clone(),
            _ => match LiveProcess::of_number(pid, roots) {
                Ok((process, cgroup)) if own(&cgroup) => process,
                // The same for one that is not there: others' processes are not to be found out so.
                _ => return Err(Denial::out_of_range(format!("There is no process {pid} of this tenant."))),
            },
        };
        starts.bind(&tenant.maker, process, roots).await.map(LevelLifetime::Process)
    }
}
