//! Priorities of single requests, for programs in a guest whose disk `minerva-blk` serves: no server is asked, the kernel carries them in each
//! request.
//!
//! ```no_run
//! # fn load() {}
//! # fn example() -> std::io::Result<()> {
//! use minerva_client::{Tag, tagged};
//!
//! let urgent = Tag::new(200).expect("1 to 254");
//! let tagged = tagged(urgent)?; // this thread, and threads and processes that it starts
//! load();
//! drop(tagged); // as before
//! # Ok(())
//! # }
//! ```
//!
//! A single request has a tag of its own where the program makes it so: [`Tag::ioprio`] is what io_uring's `sqe->ioprio` and libaio's
//! `aio_reqprio` (with `IOCB_FLAG_IOPRIO`) take, on files opened with `O_DIRECT`. Buffered reads, and direct and synced writes, have the
//! thread's; what the kernel writes back later has none.

use std::io;
use std::marker::PhantomData;

/// 0 and 255 are reserved (Bai and Huang, The Tag Scheduler).
const TAG_MAX: u8 = 254;
/// Applications of a guest that can be told apart; stream 0 is for requests without a tag.
const STREAM_MAX: u8 = 31;
const CLASS_SHIFT: u16 = 13;
const CLASS_BEST_EFFORT: u16 = 2 << CLASS_SHIFT;
const LEVEL_LOWEST: u8 = 7;
/// `IOPRIO_WHO_PROCESS` (`include/uapi/linux/ioprio.h`), which means a thread.
const WHO_PROCESS: libc::c_int = 1;

/// How urgent requests are, and which application of the guest they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag {
    tag: u8,
    stream: u8,
}

/// How many tags the kernel tells apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TagLevels {
    /// All 254: Linux 6.1.191, 6.5 and later.
    All,
    /// The eight levels of best effort: tags of one level are one to the host, and streams are not told apart.
    Eight,
}

impl Tag {
    /// A tag, 1 to 254, more is better. Its stream is one of this process and this tag, so that applications and what is more and less urgent
    /// in one seldom wait behind each other; [`Tag::in_stream`] chooses another.
    pub fn new(tag: u8) -> Option<Self> {
        let stream = (std::process::id().wrapping_add(u32::from(tag)) % u32::from(STREAM_MAX)) as u8 + 1;
        Self { tag, stream: 1 }.in_stream(stream).filter(|_| (1..=TAG_MAX).contains(&tag))
    }

    /// The same in a stream, 1 to 31. What is queued of one stream is served in the order in which it came.
    pub fn in_stream(self, stream: u8) -> Option<Self> {
        (1..=STREAM_MAX).contains(&stream).then_some(Self { stream, ..self })
    }

    /// The I/O priority that carries it: for `ioprio_set(2)`, io_uring's `sqe->ioprio` and libaio's `aio_reqprio`.
    pub const fn ioprio(self) -> u16 {
        let low = (self.tag & 0x1f) as u16;
        self.level() | (self.stream as u16) << 8 | low << 3
    }

    /// What is left of it on kernels that pass eight levels.
    pub const fn level(self) -> u16 {
        CLASS_BEST_EFFORT | (LEVEL_LOWEST - (self.tag >> 5)) as u16
    }
}

/// The requests of a thread have a tag until this is dropped, which is to be in that thread.
#[derive(Debug)]
pub struct Tagged {
    before: u16,
    levels: TagLevels,
    /// It must not leave its thread.
    _thread: PhantomData<*const ()>,
}

impl Tagged {
    /// Whether the kernel passes the tag or its level only.
    pub fn levels(&self) -> TagLevels {
        self.levels
    }
}

impl Drop for Tagged {
    fn drop(&mut self) {
        // What was set before was allowed.
        let _ = set(self.before);
    }
}

/// Gives the requests of this thread a tag, and those of threads and processes that it starts meanwhile, which keep it. An old kernel gets
/// the level that is next to it. An error where the kernel has no I/O priorities, or a filter of system calls forbids them.
pub fn tagged(tag: Tag) -> io::Result<Tagged> {
    let before = get()?;
    let levels = match set(tag.ioprio()) {
        Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
            set(tag.level())?;
            TagLevels::Eight
        }
        result => result.map(|()| TagLevels::All)?,
    };
    Ok(Tagged { before, levels, _thread: PhantomData })
}

/// How many tags this kernel passes. Tried in a thread of its own, so that nothing else changes.
pub fn tag_levels() -> io::Result<TagLevels> {
    let probe = std::thread::Builder::new().name("tag".to_owned()).spawn(|| {
        let finest = Tag { tag: 1, stream: 1 };
        tagged(finest).map(|tagged| tagged.levels())
    });
    probe?.join().unwrap_or_else(|_| Err(io::Error::other("the thread that tried it panicked")))
}

fn get() -> io::Result<u16> {
    // SAFETY: it takes no pointer; thread 0 is the calling one.
    let found = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
    if found < 0 {
        return Err(io::Error::last_os_error());
    }
    let found = u16::try_from(found).map_err(io::Error::other)?;
    // A thread without a class cannot be given a level back.
    Ok(if found >> CLASS_SHIFT == 0 { 0 } else { found })
}

fn set(ioprio: u16) -> io::Result<()> {
    // SAFETY: it takes no pointer; thread 0 is the calling one.
    match unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, libc::c_int::from(ioprio)) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Tag, TagLevels, get, set, tag_levels, tagged};

    #[test]
    fn what_is_no_tag_is_none_and_the_rest_has_the_documented_bits() {
        assert_eq!((Tag::new(0), Tag::new(255)), (None, None));
        let tag = Tag::new(200).unwrap();
        assert_eq!((tag.in_stream(0), tag.in_stream(32)), (None, None));
        // Best effort, stream 3, the low five bits of 200, and 7 less its high three.
        assert_eq!(tag.in_stream(3).map(Tag::ioprio), Some(2 << 13 | 3 << 8 | 8 << 3 | 1));
        assert_eq!(tag.level(), 2 << 13 | 1);
        assert_ne!(tag.stream, Tag::new(201).unwrap().stream, "neighbours do not wait behind each other");
    }

    #[test]
    fn a_thread_has_its_tag_until_it_is_dropped_and_others_have_what_they_had() {
        let levels = tag_levels().unwrap();
        std::thread::spawn(move || {
            set(2 << 13 | 6).unwrap();
            let tag = Tag::new(200).unwrap();
            let outer = tagged(tag).unwrap();
            let inner = tagged(Tag::new(12).unwrap()).unwrap();
            assert_eq!(outer.levels(), levels);
            // A thread that is started has the tag of who starts it.
            let child = std::thread::spawn(|| get().unwrap()).join().unwrap();
            assert_eq!(child, get().unwrap());
            drop(inner);
            let expected = if levels == TagLevels::All { tag.ioprio() } else { tag.level() };
            assert_eq!(get().unwrap(), expected);
            drop(outer);
            assert_eq!(get().unwrap(), 2 << 13 | 6);
        })
        .join()
        .unwrap();
        std::thread::spawn(|| {
            set(0).unwrap();
            drop(tagged(Tag::new(1).unwrap()).unwrap());
            assert_eq!(get().unwrap(), 0, "a thread without a priority has none again");
        })
        .join()
        .unwrap();
    }
}
