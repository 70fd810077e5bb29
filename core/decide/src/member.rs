//! A tenant that may ask.

use minerva_model::{Role, Terms};
use serde::{Deserialize, Serialize};

/// What is known of a tenant that may ask.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) account: String,
    pub(crate) has_group: bool,
    /// The group above of whoever made the tenant's, and may have any number of tenants ([`minerva_model::Tenant::maker`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) maker: Option<String>,
    pub(crate) declaration_key: String,
    pub(crate) excluded: bool,
    pub(crate) terms: Terms,
}

impl Member {
    /// What it gives up earns. `unless_excluded`: not where a rule excludes it.
    pub(crate) fn may_earn(&self, unless_excluded: bool) -> bool {
        self.terms.role == Role::Participant && !(unless_excluded && self.excluded)
    }
}
