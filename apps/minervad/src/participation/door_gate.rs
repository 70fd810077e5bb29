//! The way of one request through a door: who asks, whether the role has it, whether there is room; then the service, for so
//! long and no longer. What is refused here has not been read.

use crate::participation::directory::Listed;
use crate::participation::door_connection::Connection;
use crate::participation::door_lobby::{ANSWER_PATIENCE, Asker, Lobby};
use crate::participation::door_place::UnderWay;
use crate::participation::door_service::{Door, Peerage};
use crate::participation::door_status::Denial;
use crate::participation::method::Method;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use minerva_api::v1::participation_server::ParticipationServer;
use minerva_model::{Nanos, Role};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tonic::Status;
use tonic::codegen::Service;

/// What a tenant says is small; more is refused before it is read.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// A report names files.
pub(crate) const REPORT_BYTES_MAX: usize = 256 << 10;
/// The request has to arrive and be answered within this.
const REQUEST_PATIENCE: Nanos = Nanos(2 * ANSWER_PATIENCE.0);
const REPORT: &str = "Report";

/// The services behind the doors.
#[derive(Clone, Debug)]
pub(crate) struct Gate {
    messages: ParticipationServer<Door>,
    reports: ParticipationServer<Door>,
}

impl Gate {
    pub(crate) fn new(door: Door) -> Self {
        let door = Arc::new(door);
        let server = |bytes| {
            ParticipationServer::from_arc(Arc::clone(&door))
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
        let answer = match connection.asker(token(request.headers())).await {
            Ok(asker) => match admit(&connection, &asker, &method) {
                Ok(under_way) => self.pass(connection, &method, request, asker, under_way).await,
                Err(denial) => refuse(connection.lobby(), &asker.tenant, &method, denial),
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
        asker: Asker,
        under_way: UnderWay,
    ) -> http::Response<Answer> {
        let (lobby, tenant) = (Arc::clone(connection.lobby()), asker.tenant.clone());
        let process = connection.process().copied();
        request.extensions_mut().insert(Arc::new(Peerage { asker, process }));
        drop(connection);
        let response = if method == REPORT {
            self.reports.call(request).await
        } else {
            let patience = Duration::from_nanos(REQUEST_PATIENCE.0);
            let answer = tokio::time::timeout(patience, self.messages.call(request)).await;
            match answer {
                Ok(response) => response,
                Err(_) => return refuse(&lobby, &tenant, method, Denial::no_answer(REQUEST_PATIENCE)),
            }
        };
        let Ok(response) = response;
        // What the library refuses before the service has heard of it has no word yet.
        match Denial::of_library(response.headers(), method) {
            Some(denial) => refuse(&lobby, &tenant, method, denial),
            None => Answer::of(response, Some(under_way)),
        }
    }
}

/// Whether its tenant may have this now; then it is under way.
fn admit(connection: &Connection, asker: &Asker, method: &str) -> Result<UnderWay, Denial> {
    connection.sit(&asker.tenant)?;
    let under_way = connection.lobby().begin(&asker.tenant.account)?;
    authorize(asker.tenant.role, method)?;
    Ok(under_way)
}

fn refuse(lobby: &Lobby, tenant: &Listed, method: &str, denial: Denial) -> http::Response<Answer> {
    lobby.refused(tenant, "", method, &denial);
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
    _under_way: Option<UnderWay>,
}

impl Answer {
    fn of(response: http::Response<tonic::body::Body>, under_way: Option<UnderWay>) -> http::Response<Self> {
        response.map(|body| Self { body, _under_way: under_way })
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
