//! What operators' tools are shown. They are served by `minerva-operator-server`.

pub(crate) mod days;
mod forecast;
pub(crate) mod foreseen;
pub(crate) mod status;
