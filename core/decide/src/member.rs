//! A tenant that may ask.

use minerva_model::Terms;
use serde::{Deserialize, Serialize};

/// What is known of a tenant that may ask.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) account: String,
    pub(crate) has_group: bool,
    pub(crate) declaration_key: String,
    pub(crate) excluded: bool,
    pub(crate) terms: Terms,
}
