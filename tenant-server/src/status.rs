//! Refusals as tenants hear them: a gRPC status with a sentence, and in its metadata a stable word and, where another try is
//! worth while, when. What each word means is one table here.

use crate::authenticate::process::AuthenticationError;
use crate::bounds::MESSAGE_BYTES_MAX;
use crate::quota::QuotaExceeded;
use crate::request::Refusal;
use minerva_config::TenantLimits;
use minerva_model::{Nanos, RefusalKind};
use tonic::metadata::MetadataValue;
use tonic::{Code, Status};

/// The metadata with the word.
const WORD: &str = "minerva-refusal";
/// The metadata with the time until another try.
const RETRY_AFTER: &str = "minerva-retry-after-ms";
/// The loop or the connection has room again after this long, as far as anybody can say.
const BUSY: Nanos = Nanos::from_millis(250);

/// A refusal of the server, or of the loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) code: Code,
    pub(crate) word: &'static str,
    pub(crate) message: String,
    pub(crate) retry_after: Option<Nanos>,
    /// The loop has it in the log and the audit already.
    pub(crate) is_told: bool,
}

/// The code that each kind of refusal has. `UNAVAILABLE` and `RESOURCE_EXHAUSTED` are worth another try, the others are not.
pub const fn code_of(kind: RefusalKind) -> Code {
    match kind {
        RefusalKind::UnknownTenant | RefusalKind::UnknownDevice | RefusalKind::UnknownOperation => Code::NotFound,
        RefusalKind::NotAllowed => Code::PermissionDenied,
        RefusalKind::OutOfRange => Code::InvalidArgument,
        RefusalKind::TooLate | RefusalKind::NotEnoughCredits => Code::FailedPrecondition,
        RefusalKind::TooMany => Code::ResourceExhausted,
        RefusalKind::KeyReused => Code::AlreadyExists,
        RefusalKind::NotCommitted | RefusalKind::Stopping => Code::Unavailable,
    }
}

impl Denial {
    const fn new(code: Code, word: &'static str, message: String) -> Self {
        Self { code, word, message, retry_after: None, is_told: false }
    }

    /// What the loop or the engine refused.
    pub(crate) fn of_loop(refusal: Refusal) -> Self {
        let denial = Self::from(refusal);
        if denial.word != RefusalKind::UnknownTenant.as_str() {
            return denial;
        }
        // It went between the server and the loop. Who asks again is looked up anew.
        Self { code: Code::Unavailable, retry_after: Some(BUSY), ..denial }
    }

    /// Nobody knows who asks.
    pub(crate) const fn unauthenticated(message: String) -> Self {
        Self::new(Code::Unauthenticated, "not-identified", message)
    }

    /// It did not say who it is for so long that it is hung up on.
    pub(crate) fn said_nothing() -> Self {
        Self::unauthenticated("It was hung up on: it has not shown in time who it is.".to_owned())
    }

    /// The same, because others wait to be let in.
    pub(crate) fn made_room() -> Self {
        Self::unauthenticated("It was hung up on to make room: it had not shown who it is.".to_owned())
    }

    /// The role does not have it, or two proofs name two tenants.
    pub(crate) const fn not_allowed(message: String) -> Self {
        Self::new(Code::PermissionDenied, RefusalKind::NotAllowed.as_str(), message)
    }

    /// A message that cannot be meant.
    pub(crate) const fn out_of_range(message: String) -> Self {
        Self::new(Code::InvalidArgument, RefusalKind::OutOfRange.as_str(), message)
    }

    /// A request that the service never heard of, because the library that reads it refused it: in our words, as every other.
    pub(crate) fn of_library(headers: &http::HeaderMap, method: &str) -> Option<Self> {
        if headers.contains_key(WORD) {
            return None;
        }
        let status = Status::from_header_map(headers).filter(|status| status.code() != Code::Ok)?;
        Some(match status.code() {
            Code::Unimplemented => Self::unknown_method(method),
            _ => Self::unreadable(&status, MESSAGE_BYTES_MAX),
        })
    }

    /// A call that this server does not have.
    pub(crate) fn unknown_method(method: &str) -> Self {
        let shown: String = method.chars().take(32).collect();
        let message =
            format!("There is no request `{shown}` here, or it is packed in a way that this server cannot unpack.");
        Self::new(Code::Unimplemented, "unknown-method", message)
    }

    /// A message that cannot be read, in the words of the library that tried.
    pub(crate) fn unreadable(status: &Status, bytes_max: usize) -> Self {
        Self::out_of_range(match status.code() {
            Code::OutOfRange => format!("The message is too long: {bytes_max} bytes are allowed."),
            _ => format!("This is no message of the contract: {}.", status.message().trim_end_matches('.')),
        })
    }

    /// Who asks is known, and is no tenant.
    pub(crate) const fn unknown_tenant(message: String) -> Self {
        Self::new(Code::NotFound, RefusalKind::UnknownTenant.as_str(), message)
    }

    /// It may be a tenant in a moment: a cgroup, or a tenant by its name.
    pub(crate) fn not_seen_yet(what: &str, slice: Nanos) -> Self {
        let message = format!("Minerva has not seen the {what} yet; it looks once in {slice}. Ask again.");
        let denial = Self::new(Code::Unavailable, "not-seen-yet", message);
        Self { retry_after: Some(slice), ..denial }
    }

    /// More than the server can take now.
    pub(crate) fn busy() -> Self {
        let message = "The server is busy; ask again in a moment.".to_owned();
        Self { retry_after: Some(BUSY), ..Self::new(Code::ResourceExhausted, "busy", message) }
    }

    /// More of one maker's tenants than may wait for their answers at a time.
    pub(crate) fn too_many_waiting(count: usize) -> Self {
        let message =
            format!("{count} requests wait for their answers, which is the limit. Ask again when some are answered.");
        Self { retry_after: Some(BUSY), ..Self::new(Code::ResourceExhausted, "too-many-streams", message) }
    }

    /// The loop did not answer in time.
    pub(crate) fn no_answer(patience: Nanos) -> Self {
        let message = format!(
            "There was no answer within {patience}. What was asked may still be done: ask again under the same request_id."
        );
        Self::new(Code::DeadlineExceeded, "no-answer", message)
    }

    /// It is not known when a process started, and so which one it is.
    pub(crate) fn held_up(pid: u32) -> Self {
        let message = format!(
            "Process {pid} does not answer: it begins another program and closes a file that takes long, or several others of this tenant \
             do. Try again."
        );
        Self { retry_after: Some(BUSY), ..Self::new(Code::Unavailable, "process-held-up", message) }
    }

    /// The loop has ended.
    pub(crate) fn stopping() -> Self {
        Self::new(Code::Unavailable, RefusalKind::Stopping.as_str(), "The server is stopping.".to_owned())
    }

    /// Beyond the limits, said with the limit.
    pub(crate) fn excess(excess: QuotaExceeded, limits: &TenantLimits) -> Self {
        let denial = |word, message| Self::new(Code::ResourceExhausted, word, message);
        match excess {
            QuotaExceeded::Requests(wait) => {
                let (rate, burst) = (limits.requests_per_second, limits.burst);
                let message =
                    format!("Too many requests: {rate} a second are allowed, and {burst} at once after a pause.");
                Self { retry_after: Some(wait), ..denial("too-many-requests", message) }
            }
            QuotaExceeded::Connections(count) => {
                let most = limits.connections_per_account_max;
                denial(
                    "too-many-connections",
                    format!("This is one of {count} connections; {most} are allowed. Close some."),
                )
            }
            QuotaExceeded::Streams(count) => {
                let most = limits.streams_per_account_max;
                let message =
                    format!("{count} requests and streams are under way, and {most} are allowed. End some first.");
                Self { retry_after: Some(BUSY), ..denial("too-many-streams", message) }
            }
            QuotaExceeded::Server => Self::busy(),
        }
    }
}

impl From<Refusal> for Denial {
    fn from(refusal: Refusal) -> Self {
        let Refusal { kind, message, is_told } = refusal;
        Self { is_told, ..Self::new(code_of(kind), kind.as_str(), message) }
    }
}

impl From<AuthenticationError> for Denial {
    fn from(error: AuthenticationError) -> Self {
        Self::unauthenticated(error.to_string())
    }
}

impl From<Denial> for Status {
    fn from(denial: Denial) -> Self {
        let Denial { code, word, message, retry_after, is_told: _ } = denial;
        let mut status = Self::new(code, message);
        status.metadata_mut().insert(WORD, MetadataValue::from_static(word));
        if let Some(wait) = retry_after {
            status.metadata_mut().insert(RETRY_AFTER, MetadataValue::from(wait.0.div_ceil(1_000_000)));
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::{Denial, RETRY_AFTER, WORD, code_of};
    use crate::quota::QuotaExceeded;
    use minerva_config::TenantLimits;
    use minerva_model::{Nanos, RefusalKind};
    use tonic::{Code, Status};

    #[test]
    fn each_kind_of_refusal_has_its_code() {
        let table = [
            (RefusalKind::UnknownTenant, Code::NotFound),
            (RefusalKind::UnknownDevice, Code::NotFound),
            (RefusalKind::UnknownOperation, Code::NotFound),
            (RefusalKind::NotAllowed, Code::PermissionDenied),
            (RefusalKind::OutOfRange, Code::InvalidArgument),
            (RefusalKind::TooLate, Code::FailedPrecondition),
            (RefusalKind::NotEnoughCredits, Code::FailedPrecondition),
            (RefusalKind::TooMany, Code::ResourceExhausted),
            (RefusalKind::KeyReused, Code::AlreadyExists),
            (RefusalKind::NotCommitted, Code::Unavailable),
            (RefusalKind::Stopping, Code::Unavailable),
        ];
        for (kind, code) in table {
            assert_eq!(code_of(kind), code, "{kind:?}");
        }
    }

    #[test]
    fn a_program_reads_the_word_and_when_to_come_again() {
        let limits = TenantLimits { requests_per_second: 5, burst: 7, ..TenantLimits::default() };
        let status = Status::from(Denial::excess(QuotaExceeded::Requests(Nanos(1_500_001)), &limits));
        assert_eq!(status.code(), Code::ResourceExhausted);
        assert_eq!(status.message(), "Too many requests: 5 a second are allowed, and 7 at once after a pause.");
        let text = |name| status.metadata().get(name).and_then(|value| value.to_str().ok());
        assert_eq!((text(WORD), text(RETRY_AFTER)), (Some("too-many-requests"), Some("2")));
        let status = Status::from(Denial::stopping());
        assert!(status.metadata().get(RETRY_AFTER).is_none());
    }
}
