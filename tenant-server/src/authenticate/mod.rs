//! Who is at the other end of a connection: a process of this host, a virtual machine, or whoever has a proof that the operator's
//! file names.

pub(crate) mod peer;
pub mod process;
pub(crate) mod starts;
pub(crate) mod table;
pub(crate) mod vm;
