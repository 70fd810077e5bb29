//! The formats, one file each.

pub(super) mod alibaba;
pub(super) mod blktrace;
pub(super) mod cloudphysics;
pub(super) mod fio_iolog;
pub(super) mod msr;
pub(super) mod oracle_general;
pub(super) mod spc;
pub(super) mod systor;
pub(super) mod tencent;
pub(super) mod vscsi;

use super::lines::Reason;
use minerva_blocksched::Kind;

/// Volumes of a byte address in units of 512.
const SECTOR_BYTES: u64 = 512;

/// The one-letter types of many formats.
fn read_or_write(text: &[u8]) -> Result<Kind, Reason> {
    match text.trim_ascii() {
        b"R" | b"r" => Ok(Kind::Read),
        b"W" | b"w" => Ok(Kind::Write),
        _ => Err("the type is neither R nor W".into()),
    }
}
