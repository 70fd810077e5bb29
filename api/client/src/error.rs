//! What can go wrong, and what the server said to it.

use std::io;
use std::path::PathBuf;
use std::time::Duration;
use tonic::{Code, Status};

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address cannot be read.
    #[error("'{text}' is no address of a server of Minerva: {reason}")]
    Address {
        /// As it was given.
        text: String,
        /// What to write.
        reason: String,
    },
    /// A file with a certificate, a key or a token cannot be read.
    #[error("failed to read {what} from {path}", path = path.display())]
    Credentials {
        /// What it should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Credentials that do not fit the address or one another.
    #[error("{0}")]
    Unfit(String),
    /// The server is there, and no connection to it can be made: certificates do not fit, or it speaks something else.
    #[error("failed to connect to {address}")]
    Connect {
        /// The server.
        address: String,
        /// Why.
        #[source]
        source: tonic::transport::Error,
    },
    /// The server went away and did not come back in time, or did not answer. What was asked may have been done.
    #[error("no answer from {address} within {} s: is minervad running?{}", waited.as_secs(), again(request_id.as_deref()))]
    Unreachable {
        /// The server.
        address: String,
        /// For how long it was tried.
        waited: Duration,
        /// The key of what was asked, if that counts: asked for again under it, it is done once.
        request_id: Option<String>,
        /// What happened last.
        #[source]
        source: Box<Status>,
    },
    /// The server said no. Nothing changed by the request.
    #[error("{message}")]
    Refused {
        /// A stable word for programs, such as `not-enough-credits`; empty when the server gave none.
        word: String,
        /// What happened and what to do, in the server's words.
        message: String,
        /// The status code.
        code: Code,
    },
}

impl Error {
    /// The server's stable word for its refusal, such as `not-enough-credits`.
    pub fn refusal(&self) -> Option<&str> {
        match self {
            Self::Refused { word, .. } if !word.is_empty() => Some(word),
            _ => None,
        }
    }

    /// From a status that is not worth another try, or was tried for long enough; `key` is that of what was asked.
    pub(crate) fn of_status(status: Status, address: &str, waited: Duration, key: Option<&str>) -> Self {
        if is_refusal(&status) {
            return Self::refused(&status);
        }
        let request_id = key.map(str::to_owned);
        Self::Unreachable { address: address.to_owned(), waited, request_id, source: Box::new(status) }
    }

    /// From a status with which the server said no.
    pub(crate) fn refused(status: &Status) -> Self {
        let word = word(status).unwrap_or_default().to_owned();
        let message = match (status.message(), status.code()) {
            // Servers have sentences of their own for it, none of which says what to do: a library's, and `minervad`'s.
            (_, Code::Unimplemented) if matches!(&*word, "" | UNKNOWN_METHOD) => TOO_OLD.to_owned(),
            ("", code) => format!("the server refused: {}", code.description()),
            (message, _) => message.to_owned(),
        };
        Self::Refused { word, message, code: status.code() }
    }
}

/// What an older server does not know.
const TOO_OLD: &str = "the server is too old for this request: it needs a newer minervad";

/// What to do about a request that may have been done.
fn again(request_id: Option<&str>) -> String {
    request_id
        .map(|key| format!(" What was asked may have been done; ask again under the request_id {key}"))
        .unwrap_or_default()
}

/// Metadata of a refusal: its word, and after how many milliseconds it is worth another try.
const WORD_KEY: &str = "minerva-refusal";
const RETRY_AFTER_KEY: &str = "minerva-retry-after-ms";
/// The word of a server for a request that it does not have.
const UNKNOWN_METHOD: &str = "unknown-method";
/// The word of an agent that has not reached its server.
pub(crate) const NO_SERVER: &str = "no-server";

fn word(status: &Status) -> Option<&str> {
    status.metadata().get(WORD_KEY)?.to_str().ok()
}

/// Whether another try is worth it. With the server's word for its refusal, only what the contract names; without one, all that a
/// lost connection may look like on this side.
pub(crate) fn is_worth_another_try(status: &Status) -> bool {
    matches!(status.code(), Code::Unavailable | Code::ResourceExhausted | Code::DeadlineExceeded) || is_broken(status)
}

/// Whether the connection failed, rather than the server having said no.
fn is_broken(status: &Status) -> bool {
    let codes = [Code::Unavailable, Code::Cancelled, Code::Unknown, Code::Internal, Code::Aborted];
    word(status).is_none() && codes.contains(&status.code())
}

/// Whether the request may have been done all the same: its answer was lost, or did not come in time.
pub(crate) fn may_be_done(status: &Status) -> bool {
    status.code() == Code::DeadlineExceeded || is_broken(status)
}

/// Whether the server said no, for now or for good, rather than having been away.
pub(crate) fn is_refusal(status: &Status) -> bool {
    !may_be_done(status) && !says_no_server(status)
}

/// Whether it is an agent that says so, and has not reached its server since it started.
pub(crate) fn says_no_server(status: &Status) -> bool {
    word(status) == Some(NO_SERVER)
}

/// When the server would like to be asked again.
pub fn retry_after(status: &Status) -> Option<Duration> {
    status.metadata().get(RETRY_AFTER_KEY)?.to_str().ok()?.parse().ok().map(Duration::from_millis)
}

/// Whether a socket is missing, or left over from a program that ended.
pub(crate) fn nobody_listens(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::{Error, is_worth_another_try, retry_after};
    use std::time::Duration;
    use tonic::metadata::MetadataMap;
    use tonic::{Code, Status};

    fn refused(code: Code, word: &'static str) -> Status {
        let mut metadata = MetadataMap::new();
        metadata.insert("minerva-refusal", word.parse().expect("a word"));
        metadata.insert("minerva-retry-after-ms", "250".parse().expect("a number"));
        Status::with_metadata(code, "a sentence", metadata)
    }

    #[test]
    fn a_refusal_keeps_the_servers_word_and_sentence() {
        let status = refused(Code::FailedPrecondition, "not-enough-credits");
        assert!(!is_worth_another_try(&status));
        assert_eq!(retry_after(&status), Some(Duration::from_millis(250)));
        let error = Error::of_status(status, "unix:/a", Duration::ZERO, Some("key"));
        assert_eq!((error.refusal(), error.to_string().as_str()), (Some("not-enough-credits"), "a sentence"));
    }

    #[test]
    fn what_may_have_been_done_is_not_called_refused_and_names_its_key() {
        for status in [refused(Code::DeadlineExceeded, "no-answer"), Status::unavailable("broken pipe")] {
            let error = Error::of_status(status, "unix:/a", Duration::from_secs(10), Some("the-key"));
            assert_eq!(error.refusal(), None);
            assert!(error.to_string().ends_with("ask again under the request_id the-key"), "{error}");
        }
    }

    #[test]
    fn a_server_that_does_not_know_a_request_is_too_old() {
        for status in [Status::unimplemented(""), Status::unimplemented("Method not found!")] {
            assert!(Error::refused(&status).to_string().contains("needs a newer minervad"));
        }
        let minervad = Error::refused(&refused(Code::Unimplemented, "unknown-method"));
        assert!(minervad.to_string().contains("needs a newer minervad"), "{minervad}");
        assert_eq!(minervad.refusal(), Some("unknown-method"));
        let own = Error::refused(&refused(Code::Unimplemented, "not-here"));
        assert_eq!((own.refusal(), own.to_string().as_str()), (Some("not-here"), "a sentence"));
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        assert!(is_worth_another_try(&refused(Code::ResourceExhausted, "too-many")));
        assert!(is_worth_another_try(&refused(Code::Unavailable, "stopping")));
        assert!(is_worth_another_try(&refused(Code::DeadlineExceeded, "no-answer")));
        assert!(is_worth_another_try(&Status::unknown("stream closed because of a broken pipe")));
        assert!(!is_worth_another_try(&refused(Code::Aborted, "not-committed")));
        assert!(!is_worth_another_try(&Status::unauthenticated("who are you?")));
        assert!(!is_worth_another_try(&Status::unimplemented("")));
    }
}
