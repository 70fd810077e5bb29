//! What the doctor tells.

use serde::Serialize;

/// One thing that was looked at.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    pub(crate) what: String,
    pub(crate) is_good: bool,
    pub(crate) detail: String,
}

impl Finding {
    /// Something that keeps nothing from being served.
    pub(crate) fn note(what: &str, detail: String) -> Self {
        Self { what: what.to_owned(), is_good: true, detail }
    }
}
