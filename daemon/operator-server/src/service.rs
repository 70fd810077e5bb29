//! The operator's service: turns each call into one for the slice loop, or a look into the store. However many clients call, no slice
//! comes later for it than one call takes: queues are bounded, the loop has one call at a time that only looks (`looks`), it looks at the
//! clock after each call, and answers that nobody waits for are dropped.

use crate::access::Access;
use crate::audit;
use crate::call::{Ahead, BackgroundCall, CallSink, OperatorCall};
use crate::explain;
use crate::job_runs;
use crate::looks::{self, Looks};
use crate::plans;
use crate::room::Room;
use minerva_api::v1;
use minerva_api::v1::operator_server::Operator;
use minerva_linux_observe::PeerCredentials;
use minerva_store_thread::Questions;
use minerva_tenant_server::status::code_of;
use prometheus_client::metrics::counter::Counter;
use std::pin::Pin;
use std::sync::Arc;
use tokio::sync::{broadcast, mpsc, oneshot};
use tokio_stream::wrappers::errors::BroadcastStreamRecvError;
use tokio_stream::wrappers::{BroadcastStream, ReceiverStream};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};

/// Slices that may wait for a watching client; a slower one misses some.
pub const WATCH_QUEUE_LENGTH: usize = 4;
/// Pieces of a recording that may wait for a client. Some ten busy slices; a client slower than that loses the recording.
const RECORD_QUEUE_LENGTH: usize = 16 * 1024;

/// What the loop sends to those who watch.
pub type Slices = broadcast::Sender<Arc<v1::Slice>>;

/// Serves [`Operator`].
#[derive(Debug)]
pub struct Service {
    calls: Arc<dyn CallSink>,
    looks: Looks,
    slices: Slices,
    questions: Questions,
    dropped: Counter,
    /// For answers of many entries, which are held until their readers have them.
    long_audits: Arc<Room>,
}

/// A stream of answers.
type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Operator for Service {
    type WatchStream = Answers<v1::WatchResponse>;
    type RecordStream = Answers<v1::RecordResponse>;
    type AuditStream = Answers<v1::AuditResponse>;

    async fn status(&self, request: Request<v1::StatusRequest>) -> Result<Response<v1::StatusResponse>, Status> {
        let status = self.looks.status(access(&request)).await?;
        Ok(Response::new(v1::StatusResponse::clone(&status)))
    }

    async fn watch(&self, _: Request<v1::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let dropped = self.dropped.clone();
        let slices = BroadcastStream::new(self.slices.subscribe()).filter_map(move |slice| match slice {
            Ok(slice) => Some(Ok(v1::WatchResponse { slice: Some(v1::Slice::clone(&slice)) })),
            Err(BroadcastStreamRecvError::Lagged(count)) => {
                dropped.inc_by(count);
                None
            }
        });
        Ok(Response::new(Box::pin(slices)))
    }

    async fn explain(&self, request: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        let access = access(&request);
        let request = request.into_inner();
        if request.tenant.is_empty() {
            return Err(Status::invalid_argument("no tenant named: give its name, its id or its cgroup path"));
        }
        let status = self.looks.status(access).await?;
        explain::explain(&self.questions, request, &status).await.map(Response::new)
    }

    async fn forecast(&self, request: Request<v1::ForecastRequest>) -> Result<Response<v1::ForecastResponse>, Status> {
        let access = access(&request);
        let v1::ForecastRequest { tenant, horizon } = request.into_inner();
        if tenant.is_empty() {
            return Err(Status::invalid_argument("no tenant named: give its name, its id or its cgroup path"));
        }
        if !horizon.is_empty() {
            return self.load_forecast(tenant, &horizon, access).await;
        }
        let of = tenant.clone();
        let found = self.looks.ask(access, |answer| OperatorCall::Forecast(of, answer)).await?;
        let unknown = || Status::not_found(format!("no tenant has the name, id or cgroup path '{tenant}'"));
        found.map(Response::new).ok_or_else(unknown)
    }

    async fn record(
        &self,
        request: Request<Streaming<v1::RecordRequest>>,
    ) -> Result<Response<Self::RecordStream>, Status> {
        let (sender, receiver) = mpsc::channel(RECORD_QUEUE_LENGTH);
        let result = self.ask(|answer| OperatorCall::Record(sender, answer)).await?;
        let number = result.map_err(Status::failed_precondition)?;
        let calls = Arc::clone(&self.calls);
        let mut client = request.into_inner();
        tokio::spawn(async move {
            while let Ok(Some(_)) = client.message().await {}
            // A client that is gone is noticed by the loop as well, should this not get through.
            let _ = calls.send(OperatorCall::EndRecord(number));
        });
        let pieces = ReceiverStream::new(receiver).map(|piece| Ok(v1::RecordResponse { piece }));
        Ok(Response::new(Box::pin(pieces)))
    }

    async fn reload(&self, _: Request<v1::ReloadRequest>) -> Result<Response<v1::ReloadResponse>, Status> {
        let result = self.ask(OperatorCall::Reload).await?;
        let accepted = result.is_ok();
        let message = result.unwrap_or_else(|refused| refused);
        Ok(Response::new(v1::ReloadResponse { accepted, message }))
    }

    async fn register(&self, request: Request<v1::RegisterRequest>) -> Result<Response<v1::RegisterResponse>, Status> {
        let request = request.into_inner();
        let result = self.ask(|answer| OperatorCall::Register(request, answer)).await?;
        result.map(Response::new).map_err(Status::failed_precondition)
    }

    async fn adjust_credits(
        &self,
        request: Request<v1::AdjustCreditsRequest>,
    ) -> Result<Response<v1::AdjustCreditsResponse>, Status> {
        let request = request.into_inner();
        let result = self.ask(|answer| OperatorCall::Adjust(request, answer)).await?;
        result.map(Response::new).map_err(|refusal| Status::new(code_of(refusal.kind), refusal.message))
    }

    async fn report_migration(
        &self,
        request: Request<v1::ReportMigrationRequest>,
    ) -> Result<Response<v1::ReportMigrationResponse>, Status> {
        let request = request.into_inner();
        let result = self.ask(|answer| OperatorCall::Migration(request, answer)).await?;
        result.map(Response::new).map_err(|refusal| Status::new(code_of(refusal.kind), refusal.message))
    }

    async fn add_background(
        &self,
        request: Request<v1::AddBackgroundRequest>,
    ) -> Result<Response<v1::AddBackgroundResponse>, Status> {
        let request = request.into_inner();
        let outcome = self.ask(|answer| OperatorCall::Background(BackgroundCall::Add(request, answer))).await?;
        let queue = outcome.map_err(Status::failed_precondition)?;
        Ok(Response::new(v1::AddBackgroundResponse { queue: Some(queue) }))
    }

    async fn change_background(
        &self,
        request: Request<v1::ChangeBackgroundRequest>,
    ) -> Result<Response<v1::ChangeBackgroundResponse>, Status> {
        let access = access(&request);
        let request = request.into_inner();
        access.permit_change(request.change())?;
        let what = match request.change() {
            v1::BackgroundChange::Remove => "removed",
            v1::BackgroundChange::Pause => "paused",
            _ => "resumed",
        };
        let outcome = self.ask(|answer| OperatorCall::Background(BackgroundCall::Change(request, answer))).await?;
        let queue = outcome.map_err(Status::failed_precondition)?;
        Ok(Response::new(v1::ChangeBackgroundResponse { message: format!("{} is {what}", queue.name) }))
    }

    async fn background(
        &self,
        request: Request<v1::BackgroundRequest>,
    ) -> Result<Response<v1::BackgroundResponse>, Status> {
        let access = access(&request);
        let request = request.into_inner();
        let has_plans = request.span() != v1::BackgroundSpan::Unspecified;
        let asked =
            self.looks.ask(access, move |answer| OperatorCall::Background(BackgroundCall::Show(request, answer)));
        let ask = async { asked.await?.map_err(Status::unavailable) };
        let shown = if has_plans { plans::made(ask).await? } else { ask.await?.finish() };
        Ok(Response::new(shown))
    }

    async fn calibrate_background(
        &self,
        request: Request<v1::CalibrateBackgroundRequest>,
    ) -> Result<Response<v1::CalibrateBackgroundResponse>, Status> {
        let request = request.into_inner();
        let outcome = self.ask(|answer| OperatorCall::Background(BackgroundCall::Calibrate(request, answer))).await?;
        outcome.map_err(Status::failed_precondition)?;
        Ok(Response::new(v1::CalibrateBackgroundResponse {}))
    }

    async fn jobs(&self, request: Request<v1::JobsRequest>) -> Result<Response<v1::JobsResponse>, Status> {
        self.looks.ask(access(&request), OperatorCall::Jobs).await.map(Response::new)
    }

    async fn job_profile(
        &self,
        request: Request<v1::JobProfileRequest>,
    ) -> Result<Response<v1::JobProfileResponse>, Status> {
        let name = request.into_inner().name;
        let of_name = name.clone();
        let found = self.questions.look(move |store| store.job_runs(&of_name)).await;
        let runs = found.map_err(Status::unavailable)?;
        if runs.is_empty() {
            let why =
                format!("no run of a job called '{name}' has ended that is kept; `minerva-ctl jobs` shows the names");
            return Err(Status::not_found(why));
        }
        Ok(Response::new(v1::JobProfileResponse { runs: runs.into_iter().map(job_runs::run).collect() }))
    }

    async fn audit(&self, request: Request<v1::AuditRequest>) -> Result<Response<Self::AuditStream>, Status> {
        let (access, user) = (access(&request), user(&request));
        let mut request = request.into_inner();
        request.entries_max = audit::entries_max(&request, access)?;
        let held = audit::is_long(&request).then(|| self.long_audits.take(user).ok_or_else(audit::long_already));
        let held = held.transpose()?;
        let status = self.looks.status(access).await?;
        let tenants = status.slice.as_ref().map_or(&[][..], |slice| &slice.tenants);
        let entries = audit::entries(&self.questions, request, tenants).await?;
        let answers = entries.into_iter().map(move |entry| {
            let _is_held = &held;
            Ok(v1::AuditResponse { entry: Some(entry) })
        });
        Ok(Response::new(Box::pin(tokio_stream::iter(answers))))
    }
}

impl Service {
    /// A service that asks the loop by `calls`, the store's thread by `questions`, gets its slices from `slices`, and counts in `dropped`
    /// those that a watching client was too slow for.
    pub fn new(calls: Arc<dyn CallSink>, slices: Slices, questions: Questions, dropped: Counter) -> Self {
        let looks = Looks::new(Arc::clone(&calls));
        // Of each user one. How many users there may be, the connections bound.
        Self { calls, looks, slices, questions, dropped, long_audits: Room::new(usize::MAX, 1) }
    }

    /// The day or the week ahead of a disk or a group.
    async fn load_forecast(
        &self,
        of: String,
        horizon: &str,
        access: Access,
    ) -> Result<Response<v1::ForecastResponse>, Status> {
        let Some(ahead) = Ahead::from_word(horizon) else {
            return Err(Status::invalid_argument(format!("'{horizon}' is no horizon: give day or week")));
        };
        let asked = of.clone();
        let found = self.looks.ask(access, move |answer| OperatorCall::LoadForecast(asked, ahead, answer)).await?;
        let unknown = || {
            Status::not_found(format!(
                "no disk has the name or number '{of}', and no tenant is in a group of that name: a day or a week is forecast of disks \
                 (sda, 8:0) and of the operator's groups, not of single tenants"
            ))
        };
        found.map(Response::new).ok_or_else(unknown)
    }

    /// Sends a call that changes something, and waits for the answer.
    async fn ask<T>(&self, call: impl FnOnce(oneshot::Sender<T>) -> OperatorCall) -> Result<T, Status> {
        looks::ask(&*self.calls, call).await
    }
}

/// What the caller may do. The server puts it there, whatever the client sends; without it nothing is permitted.
fn access<T>(request: &Request<T>) -> Access {
    request.extensions().get().copied().unwrap_or(Access::Denied)
}

/// The number of the caller's user, from the same place.
fn user<T>(request: &Request<T>) -> u32 {
    request.extensions().get::<PeerCredentials>().map_or(u32::MAX, |peer| peer.uid)
}
