//! Who may ask what at the operators' socket: root, the daemon's own user and the socket's group everything; the viewers' group
//! may look. The file's permissions say nearly the same; this holds when somebody loosens them.

use std::convert::Infallible;
use std::fs;
use std::future::ready;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::Service;
use tonic::server::NamedService;
use tonic::transport::server::UdsConnectInfo;

/// What viewers may ask: nothing of it changes anything.
const LOOKING: [&str; 4] = ["Status", "Watch", "Explain", "Audit"];

/// The groups, by number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Groups {
    pub(crate) operators: u32,
    pub(crate) viewers: Option<u32>,
}

/// The operator's service behind its gate.
#[derive(Clone, Debug)]
pub(crate) struct OperatorGate<S> {
    service: S,
    groups: Groups,
}

impl<S> OperatorGate<S> {
    pub(crate) const fn new(service: S, groups: Groups) -> Self {
        Self { service, groups }
    }
}

impl<S: NamedService> NamedService for OperatorGate<S> {
    const NAME: &'static str = S::NAME;
}

impl<S> Service<http::Request<Body>> for OperatorGate<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.service.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let method = request.uri().path().rsplit('/').next().unwrap_or_default();
        match self.groups.admit(request.extensions().get::<UdsConnectInfo>(), method) {
            Ok(()) => Box::pin(self.service.call(request)),
            Err(status) => Box::pin(ready(Ok(status.into_http()))),
        }
    }
}

impl Groups {
    /// Lets the peer ask for this, or says why not.
    fn admit(self, peer: Option<&UdsConnectInfo>, method: &str) -> Result<(), Status> {
        let Some(peer) = peer.and_then(|info| info.peer_cred) else {
            return Err(Status::unauthenticated("the kernel does not say who asks"));
        };
        let own = rustix::process::geteuid().as_raw();
        let is_member = |group| peer.gid() == group || peer.pid().is_some_and(|pid| is_member(pid, group));
        if peer.uid() == 0 || peer.uid() == own || is_member(self.operators) {
            return Ok(());
        }
        let (uid, gid) = (peer.uid(), peer.gid());
        if !self.viewers.is_some_and(is_member) {
            tracing::warn!(uid, gid, method, "refused a client that is not an operator");
            return Err(Status::permission_denied("only root and the group of the daemon's socket may ask"));
        }
        if LOOKING.contains(&method) {
            return Ok(());
        }
        tracing::warn!(uid, gid, method, "refused a viewer what only operators may");
        let message = format!("members of daemon.viewer_group may look and no more; {method} is for operators");
        Err(Status::permission_denied(message))
    }
}

/// The process has the group among its supplementary ones, which the kernel does not tell of a peer.
fn is_member(pid: i32, group: u32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let groups = status.lines().find_map(|line| line.strip_prefix("Groups:")).unwrap_or_default();
    groups.split_whitespace().any(|number| number.parse() == Ok(group))
}
