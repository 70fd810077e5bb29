//! Priorities of single requests, for programs in a guest whose disk minerva-blk serves. No server is asked, and no client is needed.

use crate::argument::place;
use crate::outcome::{Failure, MinervaStatus, guard};
use minerva_client::{Tag, TagLevels, tag_levels, tagged};
use std::cell::RefCell;

thread_local! {
    /// What `minerva_tag` gave and `minerva_untag` takes back, the newest last.
    static TAGGED: RefCell<Vec<minerva_client::Tagged>> = const { RefCell::new(Vec::new()) };
}

fn tag_of(tag: u8, stream: u8) -> Result<Tag, Failure> {
    let found = Tag::new(tag).ok_or_else(|| format!("tags go from 1 to 254, and {tag} is none"));
    let found = found.and_then(|tag| match stream {
        0 => Ok(tag),
        stream => tag.in_stream(stream).ok_or_else(|| format!("streams go from 1 to 31, and {stream} is none")),
    });
    found.map_err(Failure::Invalid)
}

/// Gives the requests of the calling thread a tag, 1 to 254, more is better, until `minerva_untag`; threads and processes that it starts
/// meanwhile keep it. `stream`, 1 to 31, tells applications of a guest apart; 0: one that follows from the process and the tag. What is
/// tagged once more is untagged as often. A kernel before 6.1.191 and 6.5 gets the nearest of eight levels.
#[unsafe(no_mangle)]
pub extern "C" fn minerva_tag(tag: u8, stream: u8) -> MinervaStatus {
    guard(|| {
        let given = tagged(tag_of(tag, stream)?);
        let given = given.map_err(|error| Failure::Invalid(format!("the kernel takes no I/O priority: {error}")))?;
        TAGGED.with_borrow_mut(|all| all.push(given));
        Ok(())
    })
}

/// Takes back the last `minerva_tag` of the calling thread. Without one it is nothing to do.
#[unsafe(no_mangle)]
pub extern "C" fn minerva_untag() {
    guard(|| {
        drop(TAGGED.with_borrow_mut(Vec::pop));
        Ok(())
    });
}

/// The I/O priority that carries a tag, for one request: `io_uring_sqe.ioprio`, or `aio_reqprio` with `IOCB_FLAG_IOPRIO`, on a file that was
/// opened with O_DIRECT. Parameters as of `minerva_tag`.
///
/// # Safety
///
/// `ioprio` may be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minerva_tag_ioprio(tag: u8, stream: u8, ioprio: *mut u16) -> MinervaStatus {
    guard(|| {
        // SAFETY: as the caller promises.
        let ioprio = unsafe { place(ioprio, "ioprio")? };
        *ioprio = tag_of(tag, stream)?.ioprio();
        Ok(())
    })
}

/// How many tags this kernel passes to the host: 254, 8 on old kernels, or 0 where it takes no I/O priorities.
#[unsafe(no_mangle)]
pub extern "C" fn minerva_tag_levels() -> u32 {
    let mut levels = 0;
    guard(|| {
        levels = match tag_levels() {
            Ok(TagLevels::All) => 254,
            Ok(TagLevels::Eight) => 8,
            Err(_) => 0,
        };
        Ok(())
    });
    levels
}
