//! A tenant that may ask.

use minerva_model::Terms;
use serde::{Deserialize, Serialize};

/// What is known of a tenant that may ask.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) account: String,
    pub(crate) has_group: bool,
    /// The group that was delegated to whoever made the tenant's, which may have any number of tenants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) delegated_from: Option<String>,
    pub(crate) declaration_key: String,
    pub(crate) excluded: bool,
    pub(crate) terms: Terms,
}
