//! What the host's scheduler calls a kind of request, and what the disk does.

use minerva_blocksched::Kind;
use minerva_sim_device::Kind as DeviceKind;

/// The disk's word for it.
pub(crate) fn device_kind(kind: Kind) -> DeviceKind {
    match kind {
        Kind::Read => DeviceKind::Read,
        Kind::Write => DeviceKind::Write,
        Kind::Flush => DeviceKind::Flush,
        Kind::Discard => DeviceKind::Discard,
    }
}
