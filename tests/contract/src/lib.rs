//! The tenants' contract as it was first and as a later version may be, compiled as a program of that age has it. Tests speak
//! with them to today's server and today's clients, which must understand one another.

/// The first version that was committed, from `api/tests/v1-first`.
#[expect(missing_docs, reason = "generated: the .proto file documents every item")]
#[expect(
    clippy::allow_attributes_without_reason,
    unused_qualifications,
    reason = "generated code is not ours to style"
)]
pub mod first {
    include!(concat!(env!("OUT_DIR"), "/first/minerva.v1.rs"));
}

/// Today's with a method, fields, a level and an answer that nobody knows yet; `build.rs` has them.
#[expect(missing_docs, reason = "generated: the .proto file documents every item")]
#[expect(
    clippy::allow_attributes_without_reason,
    unused_qualifications,
    reason = "generated code is not ours to style"
)]
pub mod newer {
    include!(concat!(env!("OUT_DIR"), "/newer/minerva.v1.rs"));
}

include!(concat!(env!("OUT_DIR"), "/methods.rs"));

/// The methods of a service of today's contract, such as `Operator`, in the contract's order. Empty when there is no such service.
pub fn methods(service: &str) -> Vec<String> {
    let service = METHODS.iter().find(|(name, _)| *name == service);
    service.map(|(_, methods)| methods.iter().map(|method| (*method).to_owned()).collect()).unwrap_or_default()
}
