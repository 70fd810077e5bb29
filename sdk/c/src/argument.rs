//! What C hands over, judged.

use crate::outcome::Failure;
use std::ffi::{CStr, c_char};

/// The text at `pointer`; nothing when it is null.
///
/// # Safety
///
/// `pointer` is null, or points to a text that ends with a zero and does not change during the call.
pub(crate) unsafe fn text<'a>(pointer: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: not null, and the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().map(Some).map_err(|_| Failure::Invalid(format!("{what} is not UTF-8")))
}

/// What `pointer` points to.
///
/// # Safety
///
/// `pointer` is null, or points to a `T` that nobody changes during the call.
pub(crate) unsafe fn given<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| Failure::Invalid(format!("{what} is null")))
}

/// Where an answer goes. It is found to be there before anything is done.
///
/// # Safety
///
/// `pointer` is null, or may be written to, and nobody else uses what it points to during the call.
pub(crate) unsafe fn place<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| Failure::Invalid(format!("{what} is null")))
}
