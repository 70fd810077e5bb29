//! How a call ended: a number that it returns, and a sentence that is kept for the thread.

use minerva_client::Error;
use std::cell::RefCell;
use std::error::Error as StdError;
use std::ffi::{CString, c_char};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a call ended. `minerva_last_error` has the sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum MinervaStatus {
    /// It was done, or there is no server and nothing to be done.
    Ok = 0,
    /// An argument that cannot be meant: a null pointer, a text that is not UTF-8, an unknown number.
    Invalid = 1,
    /// The address cannot be read, or certificates or tokens do not fit: somebody has to mend it.
    Unfit = 2,
    /// The server went away and did not come back in time, or did not answer. What was asked may have been done.
    Unreachable = 3,
    /// The server said no, and nothing changed. `minerva_last_refusal` has its word.
    Refused = 4,
    /// A bug of this library.
    Broken = 5,
    /// A file could not be made or opened; the sentence says why.
    File = 6,
}

/// Why a call failed.
#[derive(Debug)]
pub(crate) enum Failure {
    Invalid(String),
    Client(Error),
    File(String),
}

impl Failure {
    /// A file that could not be opened.
    pub(crate) fn file(path: &str, error: &io::Error) -> Self {
        Self::File(format!("failed to open {path}: {error}"))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Client(error)
    }
}

/// What the thread's last failed call has to say.
#[derive(Default)]
struct Last {
    sentence: CString,
    word: CString,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// Runs what a function does. Nothing that happens in it unwinds into the caller's frames.
pub(crate) fn guard(work: impl FnOnce() -> Result<(), Failure>) -> MinervaStatus {
    // What a panic leaves half done is dropped with the closure or owned by the client, whose locks recover.
    let (status, sentence, word) = match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => return MinervaStatus::Ok,
        Ok(Err(Failure::Invalid(sentence))) => (MinervaStatus::Invalid, sentence, String::new()),
        Ok(Err(Failure::File(sentence))) => (MinervaStatus::File, sentence, String::new()),
        Ok(Err(Failure::Client(error))) => {
            let word = error.refusal().unwrap_or_default().to_owned();
            (status_of(&error), sentence_of(&error), word)
        }
        Err(_) => {
            let sentence = "a bug of libminerva; standard error has its place".to_owned();
            (MinervaStatus::Broken, sentence, String::new())
        }
    };
    LAST.with_borrow_mut(|last| *last = Last { sentence: c_text(sentence), word: c_text(word) });
    status
}

fn status_of(error: &Error) -> MinervaStatus {
    match error {
        Error::Refused { .. } => MinervaStatus::Refused,
        Error::Unreachable { .. } => MinervaStatus::Unreachable,
        _ => MinervaStatus::Unfit,
    }
}

/// The error and what caused it.
fn sentence_of(error: &Error) -> String {
    let mut sentence = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        sentence = format!("{sentence}: {cause}");
        source = cause.source();
    }
    sentence
}

/// A text that came over the network may hold a zero, with which C would end it.
pub(crate) fn c_text(text: String) -> CString {
    let bytes: Vec<u8> = text.into_bytes().into_iter().filter(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

/// The sentence of the calling thread's last call that failed; empty when none did. Never null. It belongs to the library and
/// stays until the next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn minerva_last_error() -> *const c_char {
    LAST.with_borrow(|last| last.sentence.as_ptr())
}

/// The server's word for its refusal, such as `not-enough-credits`, if that was how the calling thread's last failed call
/// ended; else empty. Never null. It belongs to the library and stays until the next call of this thread.
#[unsafe(no_mangle)]
pub extern "C" fn minerva_last_refusal() -> *const c_char {
    LAST.with_borrow(|last| last.word.as_ptr())
}

#[cfg(test)]
mod tests {
    use super::{Failure, MinervaStatus, c_text, guard, minerva_last_error, minerva_last_refusal};
    use std::ffi::CStr;

    fn last() -> String {
        // SAFETY: the library's own text, which no other call of this thread replaces meanwhile.
        unsafe { CStr::from_ptr(minerva_last_error()) }.to_str().expect("UTF-8").to_owned()
    }

    #[test]
    fn a_panic_ends_as_a_status() {
        assert_eq!(guard(|| panic!("a test's own")), MinervaStatus::Broken);
        assert!(last().contains("bug of libminerva"));
    }

    #[test]
    fn each_thread_has_its_own_sentence() {
        assert_eq!(guard(|| Err(Failure::Invalid("mine".to_owned()))), MinervaStatus::Invalid);
        std::thread::spawn(|| assert_eq!(last(), "")).join().expect("a thread");
        assert_eq!(last(), "mine");
        // SAFETY: as above.
        assert!(unsafe { CStr::from_ptr(minerva_last_refusal()) }.is_empty());
    }

    #[test]
    fn a_zero_in_a_text_does_not_cut_it() {
        assert_eq!(c_text("a\0b".to_owned()).as_c_str(), c"ab");
    }
}
