//! The priority that a Linux guest puts into the header of each of its requests, and what it means here.
//!
//! A virtio-blk request of a Linux guest carries the 16-bit I/O priority of the thread or of the single request
//! (`drivers/block/virtio_blk.c`): 3 bits class, 10 bits hint, 3 bits level (`include/uapi/linux/ioprio.h`). An application
//! that wants more than the kernel's 8 levels writes a *tag* there, 1 to 254, more is better (Bai and Huang), and a stream,
//! 1 to 31, by which the scheduler tells the applications of one guest apart:
//!
//! | bits | content |
//! |---|---|
//! | 15..13 | class best effort (2) |
//! | 12..8 | stream |
//! | 7..3 | the lower 5 bits of the tag |
//! | 2..0 | 7 less the upper 3 bits of the tag: a truthful coarse level for the guest's own elevator |
//!
//! As no stream is 0, the hint is at least 32: never one of the kernel's own (1 to 7, command duration limits), and never 0 as
//! with plain `ionice`. What is no tag is mapped by [`Priority::of`].

/// Streams of one guest, with stream 0 for what carries no tag.
pub const STREAMS: u8 = 32;
/// The least and the greatest tag; 0 and 255 are reserved (Bai and Huang).
pub const TAG_MIN: u8 = 1;
/// See [`TAG_MIN`].
pub const TAG_MAX: u8 = 254;

const CLASS_SHIFT: u16 = 13;
const CLASS_REAL_TIME: u16 = 1;
const CLASS_BEST_EFFORT: u16 = 2;
const CLASS_IDLE: u16 = 3;
/// What the kernel sends for a thread without a priority and with nice 0, and for ext4's journal (`journal_ioprio`).
const LEVEL_DEFAULT: u16 = 4;
const LEVEL_JOURNAL: u16 = 3;
const LEVEL_LOWEST: u16 = 7;

/// How tags of one disk are bounded: by the operator, since a guest is not trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TagBounds {
    /// Of requests without a tag, 1 to 254.
    pub default: u8,
    /// No request has more, 1 to 254.
    pub max: u8,
}

/// What the I/O priority of one request means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 where none was given, else 1 to 31.
    pub stream: u8,
    /// Never above the disk's greatest.
    pub tag: u8,
}

impl Priority {
    /// Reads the priority that a request carries. What is no tag maps so:
    ///
    /// - no class, plain level 4 (the kernel's default) and 3 (ext4's journal), and everything unknown: the disk's default;
    /// - best effort 2, 1 and 0: a third, two thirds and all of the way from the default to the greatest;
    /// - best effort 5, 6 and 7: three, two and one quarters of the default;
    /// - real time: the greatest. Idle: 1.
    pub const fn of(ioprio: u16, bounds: TagBounds) -> Self {
        let (class, hint, level) = (ioprio >> CLASS_SHIFT, (ioprio >> 3) & 0x3ff, ioprio & 7);
        let (stream, tag) = match class {
            CLASS_BEST_EFFORT if hint >= STREAMS as u16 => (hint >> 5, ((LEVEL_LOWEST - level) << 5) | (hint & 0x1f)),
            CLASS_BEST_EFFORT => (0, plain(level, bounds)),
            CLASS_REAL_TIME => (0, bounds.max as u16),
            CLASS_IDLE => (0, TAG_MIN as u16),
            _ => (0, bounds.default as u16),
        };
        // 0 and 255 are no tags.
        let is_tag = tag >= TAG_MIN as u16 && tag <= TAG_MAX as u16;
        let tag = if is_tag { tag as u8 } else { bounds.default };
        Self { stream: stream as u8, tag: if tag < bounds.max { tag } else { bounds.max } }
    }

    /// The I/O priority that a guest's application sets for a stream and a tag; none for a stream that is not in 1 to 31 or a
    /// tag that is not in 1 to 254.
    pub const fn encode(stream: u8, tag: u8) -> Option<u16> {
        if stream == 0 || stream >= STREAMS || tag < TAG_MIN || tag > TAG_MAX {
            return None;
        }
        let (stream, tag) = (stream as u16, tag as u16);
        Some(CLASS_BEST_EFFORT << CLASS_SHIFT | stream << 8 | (tag & 0x1f) << 3 | (LEVEL_LOWEST - (tag >> 5)))
    }
}

/// What plain `ionice -c best-effort -n LEVEL` stands for.
const fn plain(level: u16, bounds: TagBounds) -> u16 {
    let (default, max) = (bounds.default as u16, bounds.max as u16);
    match level {
        LEVEL_JOURNAL | LEVEL_DEFAULT => default,
        0..LEVEL_JOURNAL => default + max.saturating_sub(default) * (LEVEL_JOURNAL - level) / LEVEL_JOURNAL,
        _ => {
            let tag = default * (LEVEL_LOWEST + 1 - level) / LEVEL_DEFAULT;
            if tag == 0 { TAG_MIN as u16 } else { tag }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Priority, STREAMS, TAG_MAX, TAG_MIN, TagBounds};

    const BOUNDS: TagBounds = TagBounds { default: 64, max: 200 };

    #[test]
    fn every_tag_and_stream_comes_back_and_none_passes_the_greatest() {
        for stream in 1..STREAMS {
            for tag in TAG_MIN..=TAG_MAX {
                let ioprio = Priority::encode(stream, tag).unwrap();
                assert_eq!(Priority::of(ioprio, BOUNDS), Priority { stream, tag: tag.min(200) });
            }
        }
        for (stream, tag) in [(0, 1), (32, 1), (1, 0), (1, 255)] {
            assert_eq!(Priority::encode(stream, tag), None);
        }
    }

    #[test]
    fn whatever_a_guest_sends_is_within_the_bounds_of_its_disk() {
        for ioprio in 0..=u16::MAX {
            let Priority { stream, tag } = Priority::of(ioprio, BOUNDS);
            assert!(stream < STREAMS && (TAG_MIN..=200).contains(&tag), "{ioprio:#x}");
        }
    }

    #[test]
    fn priorities_that_are_no_tag_map_as_documented() {
        let cases = [
            ("none", 0, 64),
            ("the kernel's default", 0x4004, 64),
            ("ext4's journal", 0x4003, 64),
            ("ionice -n 2", 0x4002, 109),
            ("ionice -n 1", 0x4001, 154),
            ("ionice -n 0", 0x4000, 200),
            ("ionice -n 5", 0x4005, 48),
            ("ionice -n 6", 0x4006, 32),
            ("ionice -n 7", 0x4007, 16),
            ("real time", 0x2004, 200),
            ("idle", 0x6000, 1),
            ("idle with data", 0x7fff, 1),
            ("a command duration limit", 0x4004 | 5 << 3, 64),
            ("no such class", 0xe000, 64),
            ("firmware's 99", 99, 64),
            ("the reserved tag 0", 0x4000 | 1 << 8 | 7, 64),
            ("the reserved tag 255", 0x4000 | 1 << 8 | 31 << 3, 64),
        ];
        for (name, ioprio, tag) in cases {
            assert_eq!(Priority::of(ioprio, BOUNDS).tag, tag, "{name}");
        }
    }
}
