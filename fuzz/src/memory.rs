//! How much memory this thread holds. libFuzzer's own limits on allocations need the address sanitizer.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// Bytes allocated less bytes freed.
pub(crate) fn held() -> isize {
    NOW.get()
}

/// Calls it, and says how much more was held at most meanwhile than before. Calls may be within one another.
pub(crate) fn most_held_in(work: impl FnOnce()) -> isize {
    let (before, most_before) = (held(), MOST.get());
    MOST.set(before);
    work();
    let most = MOST.get();
    MOST.set(most.max(most_before));
    most - before
}

fn count(bytes: isize) {
    // A thread that is ending has no counter any more, and nothing of it is counted.
    let counted = NOW.try_with(|now| {
        now.set(now.get() + bytes);
        now.get()
    });
    let _ = counted.and_then(|now| MOST.try_with(|most| most.set(most.get().max(now))));
}

// SAFETY: every call goes to the system's allocator with the arguments as they came; counting touches no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size().cast_signed());
        // SAFETY: the caller's promise on `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;
