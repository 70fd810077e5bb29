//! The server for tenants. It finds out from the connection alone who asks, limits how often, judges what is said, and hands
//! requests to a slice loop that answers them.
//!
//! The way of a request: [`listen`] opens the sockets; [`server`] accepts a connection and gives it a slot; `authenticate` and
//! `connection` find out which tenant it is; `dispatch` admits the request, if its role has it and there is room; `rpc` and
//! [`decode`] turn it into a [`request::TenantCall`], which the loop takes from its [`request::RequestSink`] and answers.
//!
//! All of it runs on a thread of its own: whatever tenants do, operators and the slice loop do not wait.

mod authenticate;
mod bounds;
mod call_context;
mod connection;
mod container_socket;
pub mod decode;
#[cfg(feature = "fuzzing")]
pub mod decode_check;
mod descriptors;
pub mod directory;
mod dispatch;
pub mod listen;
pub mod live_settings;
mod method;
mod preface;
mod quota;
pub mod refusals;
pub mod request;
mod rpc;
pub mod server;
pub mod shared;
mod slots;
mod source;
pub mod status;
#[cfg(any(test, feature = "fuzzing"))]
pub mod test_server;
#[cfg(test)]
mod tests;
mod tls;
mod unauthenticated;
mod waiting_slot;

pub use authenticate::process;
pub use source::Source;
