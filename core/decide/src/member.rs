//! A tenant that may ask.

use minerva_model::Terms;

/// What is known of a tenant that may ask.
#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub(crate) account: String,
    pub(crate) has_group: bool,
    pub(crate) declaration_key: String,
    pub(crate) excluded: bool,
    pub(crate) terms: Terms,
}
