//! Admits one request: who asks, whether the role has it, whether there is room; then the service, for so
//! long and no longer. What is refused here has not been read.

use crate::bounds::{MESSAGE_BYTES_MAX, REPORT_BYTES_MAX, REQUEST_WAIT_MAX};
use crate::call_context::Session;
use crate::connection::Connection;
use crate::directory::ListedTenant;
use crate::method::Method;
use crate::rpc::RpcHandler;
use crate::shared::{Caller, Shared};
use crate::slots::RequestSlot;
use crate::status::Denial;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use minerva_api::v1::participation_server::ParticipationServer;
use minerva_model::Role;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tonic::Status;
use tonic::codegen::Service;

const REPORT: &str = "Report";

/// The services behind it.
#[derive(Clone, Debug)]
pub(crate) struct Dispatcher {
    messages: ParticipationServer<RpcHandler>,
    reports: ParticipationServer<RpcHandler>,
}

impl Dispatcher {
    pub(crate) fn new(handler: RpcHandler) -> Self {
        let handler = Arc::new(handler);
        let server = |bytes| {
            ParticipationServer::from_arc(Arc::clone(&handler))
                .max_decoding_message_size(bytes)
                .max_encoding_message_size(usize::MAX)
        };
        Self { messages: server(MESSAGE_BYTES_MAX), reports: server(REPORT_BYTES_MAX) }
    }

    /// Answers one request; a refusal is an answer too.
    pub(crate) async fn serve(
        self,
        connection: Arc<Connection>,
        request: http::Request<Incoming>,
    ) -> Result<http::Response<Answer>, Infallible> {
        let method = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        let answer = match connection.caller(token(request.headers())).await {
            Ok(caller) => match admit(&connection, &caller, &method) {
                Ok(request_slot) => self.pass(connection, &method, request, caller, request_slot).await,
                Err(denial) => refuse(connection.shared(), &caller.tenant, &method, denial),
            },
            Err(denial) => {
                connection.refused(&method, &denial);
                Answer::of(Status::from(denial).into_http(), None)
            }
        };
        Ok(answer)
    }

    async fn pass(
        mut self,
        connection: Arc<Connection>,
        method: &str,
        mut request: http::Request<Incoming>,
        caller: Caller,
        request_slot: RequestSlot,
    ) -> http::Response<Answer> {
        let (shared, tenant) = (Arc::clone(connection.shared()), caller.tenant.clone());
        let process = connection.process().cloned();
        request.extensions_mut().insert(Arc::new(Session { caller, process }));
        drop(connection);
        let response = if method == REPORT {
            self.reports.call(request).await
        } else {
            let patience = Duration::from_nanos(REQUEST_WAIT_MAX.0);
            let answer = tokio::time::timeout(patience, self.messages.call(request)).await;
            match answer {
                Ok(response) => response,
                Err(_) => return refuse(&shared, &tenant, method, Denial::no_answer(REQUEST_WAIT_MAX)),
            }
        };
        let Ok(response) = response;
        // What the library refuses before the service has heard of it has no word yet.
        match Denial::of_library(response.headers(), method) {
            Some(denial) => refuse(&shared, &tenant, method, denial),
            None => Answer::of(response, Some(request_slot)),
        }
    }
}

/// Whether its tenant may have this now; then it is under way.
fn admit(connection: &Connection, caller: &Caller, method: &str) -> Result<RequestSlot, Denial> {
    connection.assign(&caller.tenant)?;
    let request_slot = connection.shared().begin(&caller.tenant.account)?;
    authorize(caller.tenant.role, method)?;
    Ok(request_slot)
}

fn refuse(shared: &Shared, tenant: &ListedTenant, method: &str, denial: Denial) -> http::Response<Answer> {
    shared.refused(tenant, "", method, &denial);
    Answer::of(Status::from(denial).into_http(), None)
}

/// Whether the contract has the call and the role the call.
fn authorize(role: Role, name: &str) -> Result<(), Denial> {
    let method = Method::of_name(name).ok_or_else(|| Denial::unknown_method(name))?;
    if method.is_permitted(role) {
        return Ok(());
    }
    Err(Denial::not_allowed(format!(
        "The operator's rules give this tenant the role `{}`, which does not have {name}.",
        role.as_str()
    )))
}

/// The token that the request shows.
fn token(headers: &http::HeaderMap) -> Option<&[u8]> {
    let value = headers.get(http::header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked("Bearer ".len())?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// The body of an answer; the request counts as under way until it is gone.
#[derive(Debug)]
pub(crate) struct Answer {
    body: tonic::body::Body,
    _under_way: Option<RequestSlot>,
}

impl Answer {
    fn of(response: http::Response<tonic::body::Body>, request_slot: Option<RequestSlot>) -> http::Response<Self> {
        response.map(|body| Self { body, _under_way: request_slot })
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::{authorize, token};
    use minerva_model::Role;

    #[test]
    fn a_call_that_nobody_listed_is_refused_whatever_the_role() {
        for role in [Role::Participant, Role::Guest, Role::Silent] {
            let refused = authorize(role, "AddedLater").expect_err("nobody decided who has it");
            assert_eq!((refused.code, refused.word), (tonic::Code::Unimplemented, "unknown-method"));
        }
        assert!(authorize(Role::Guest, "HoldLevel").is_ok());
        assert_eq!(authorize(Role::Guest, "Boost").expect_err("not a guest's").word, "not-allowed");
    }

    #[test]
    fn a_token_is_what_follows_bearer() {
        let read = |text: &'static str| {
            let mut headers = http::HeaderMap::new();
            headers.insert(http::header::AUTHORIZATION, http::HeaderValue::from_static(text));
            token(&headers).map(<[u8]>::to_vec)
        };
        assert_eq!(read("Bearer abc"), Some(b"abc".to_vec()));
        assert_eq!(read("bearer  abc "), Some(b"abc".to_vec()));
        assert_eq!((read("Basic abc"), read("Bear"), token(&http::HeaderMap::new())), (None, None, None));
    }
}
