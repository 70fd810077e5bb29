//! Memory for direct I/O.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Direct I/O wants buffers on the device's logical blocks; a page satisfies every device.
pub(super) const ALIGNMENT: usize = 4096;

/// Memory that direct I/O accepts.
pub(super) struct AlignedBuffer {
    start: *mut u8,
    layout: Layout,
}

impl AlignedBuffer {
    pub(super) fn new(length: usize) -> Self {
        #[expect(clippy::expect_used, reason = "a power of two and a length that came from 32 bits cannot overflow")]
        let layout = Layout::from_size_align(length.max(ALIGNMENT), ALIGNMENT).expect("a layout for the buffer");
        // SAFETY: the layout's size is not zero.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        Self { start, layout }
    }

    pub(super) fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: `start` is valid for `size` bytes that were zeroed, and `&mut self` makes the borrow exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.layout.size()) }
    }
}

impl Drop for AlignedBuffer {
    fn drop(&mut self) {
        // SAFETY: allocated with this very layout, and freed once.
        unsafe { dealloc(self.start, self.layout) };
    }
}
