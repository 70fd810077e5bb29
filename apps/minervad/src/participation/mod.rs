//! Tenants that take part (Malensek et al. 2016, section 3): who may ask is found out at the doors, what was asked is carried out by the
//! slice loop.

mod adjust;
pub(crate) mod ask;
mod asks;
pub(crate) mod audit;
pub(crate) mod claims;
mod convert;
mod describe;
pub(crate) mod directory;
pub(crate) mod door;
mod door_connection;
pub(crate) mod door_controls;
mod door_gate;
pub(crate) mod door_lobby;
mod door_place;
mod door_service;
pub(crate) mod door_status;
mod door_stream;
#[cfg(test)]
mod door_tests;
mod door_tls;
#[cfg(any(test, feature = "fuzzing"))]
pub mod door_trial;
mod identity;
mod identity_machine;
mod identity_table;
mod levels;
mod limits;
#[cfg(feature = "fuzzing")]
pub mod message_trial;
mod method;
pub(crate) mod parts;
pub(crate) mod refusals;
mod reports;
mod schedule;
mod strangers;
