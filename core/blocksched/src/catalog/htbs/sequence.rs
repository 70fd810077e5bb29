//! Whether a flow goes straight on: where its last request ended, and how often it jumped.

use super::options::SequentialTest;
use crate::Request;

/// A flow's recent path over the disk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sequence {
    next_bytes: Option<u64>,
    /// One bit a request, the newest lowest; set for a jump.
    jumps: u32,
    ever_jumped: bool,
    /// Somebody waited for the last request.
    pub(super) last_sync: bool,
    /// The last request was a flush or a discard.
    pub(super) last_moved_nothing: bool,
}

impl Sequence {
    /// A request leaves.
    pub(super) fn note(&mut self, request: &Request) {
        self.last_sync = request.sync;
        self.last_moved_nothing = !request.moves_data();
        // It has no place on the disk.
        if !request.moves_data() {
            return;
        }
        let jumped = self.next_bytes.is_some_and(|next| next != request.offset_bytes);
        self.jumps = self.jumps << 1 | u32::from(jumped);
        self.ever_jumped |= jumped;
        self.next_bytes = Some(request.end_bytes());
    }

    /// Whether the flow counts as sequential.
    pub(super) fn is_sequential(&self, test: SequentialTest) -> bool {
        match test {
            SequentialTest::Sticky => !self.ever_jumped,
            SequentialTest::Window { jumps_max } => self.jumps.count_ones() <= jumps_max,
        }
    }

    /// Where the last request ended.
    pub(super) fn position_bytes(&self) -> Option<u64> {
        self.next_bytes
    }
}
