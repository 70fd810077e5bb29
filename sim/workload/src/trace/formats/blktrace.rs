//! What `blktrace` writes: `struct blk_io_trace` of linux/blktrace_api.h, 48 bytes and `pdu_len` more, of either byte order.
//!
//! A request is what was queued (action Q); when it completed (action C) gives its latency. A completion covers a whole
//! request, into which several queued ones may have been merged, so it answers all that lie in its range. Requests leave in
//! the order in which they were queued, so one that nothing answers holds back those behind it, up to [`PENDING_MAX`] of
//! them. blktrace writes a file for each processor; `blkparse -d` joins them in the order of time.

use super::SECTOR_BYTES;
use crate::trace::decode::Decode;
use crate::trace::fixed::malformed;
use crate::trace::input::Input;
use crate::trace::lines::Reason;
use crate::trace::record::{Found, Position, Raw};
use minerva_blocksched::Kind;
use minerva_model::Nanos;
use std::collections::VecDeque;
use std::io::{BufRead, Read};

/// The magic in the upper three bytes of a record's first word, and the version in its lowest.
pub(in crate::trace) const MAGIC: u32 = 0x6561_7407;
const RECORD_BYTES: usize = 48;
/// Requests that may be waiting for their completion at once; the kernel's queues are far shorter.
const PENDING_MAX: usize = 4096;
/// A request that is not answered in this time never will be (it was merged away, or the event was lost).
const ANSWER_MAX: Nanos = Nanos::from_secs(60);

const ACTION_QUEUE: u32 = 1;
const ACTION_COMPLETE: u32 = 8;
const CATEGORY_WRITE: u32 = 1 << (16 + 1);
const CATEGORY_FLUSH: u32 = 1 << (16 + 2);
const CATEGORY_NOTIFY: u32 = 1 << (16 + 10);
const CATEGORY_DISCARD: u32 = 1 << (16 + 13);

/// The order of the bytes of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::trace) enum Order {
    Little,
    Big,
}

impl Order {
    /// By a record's first word.
    pub(in crate::trace) fn of(head: &[u8]) -> Option<Self> {
        let word: [u8; 4] = head.get(..4)?.try_into().ok()?;
        [(Self::Little, MAGIC.to_le_bytes()), (Self::Big, MAGIC.to_be_bytes())]
            .into_iter()
            .find_map(|(order, magic)| (word == magic).then_some(order))
    }

    fn u32(self, bytes: [u8; 4]) -> u32 {
        match self {
            Self::Little => u32::from_le_bytes(bytes),
            Self::Big => u32::from_be_bytes(bytes),
        }
    }

    fn u64(self, bytes: [u8; 8]) -> u64 {
        match self {
            Self::Little => u64::from_le_bytes(bytes),
            Self::Big => u64::from_be_bytes(bytes),
        }
    }

    fn u16(self, bytes: [u8; 2]) -> u16 {
        match self {
            Self::Little => u16::from_le_bytes(bytes),
            Self::Big => u16::from_be_bytes(bytes),
        }
    }
}

/// The parts of a record that say something to us.
struct Event {
    time_ns: u64,
    sector: u64,
    bytes: u32,
    action: u32,
    device: u32,
    error: u16,
    pdu_bytes: u16,
}

impl Event {
    fn read(order: Order, record: &[u8; RECORD_BYTES]) -> Self {
        use crate::trace::fixed::bytes;
        Self {
            time_ns: order.u64(bytes(record, 8)),
            sector: order.u64(bytes(record, 16)),
            bytes: order.u32(bytes(record, 24)),
            action: order.u32(bytes(record, 28)),
            device: order.u32(bytes(record, 36)),
            error: order.u16(bytes(record, 44)),
            pdu_bytes: order.u16(bytes(record, 46)),
        }
    }

    fn request(&self) -> Result<Raw, Reason> {
        let kind = match self.action {
            action if action & CATEGORY_DISCARD != 0 => Kind::Discard,
            action if action & CATEGORY_FLUSH != 0 && self.bytes == 0 => Kind::Flush,
            action if action & CATEGORY_WRITE != 0 => Kind::Write,
            _ => Kind::Read,
        };
        let offset_bytes = if kind == Kind::Flush { Some(0) } else { self.sector.checked_mul(SECTOR_BYTES) };
        let raw = Raw {
            at_ns: self.time_ns,
            kind,
            offset_bytes: offset_bytes.ok_or("the sector is too great")?,
            length_bytes: u64::from(self.bytes),
            volume: self.device,
            latency: None,
        };
        raw.objection().map_or(Ok(raw), |objection| Err(objection.into()))
    }
}

struct Pending {
    raw: Raw,
    answered: bool,
    begins: u64,
}

pub(in crate::trace) struct Blktrace {
    input: Input,
    order: Order,
    /// Where the last record began, and where the next does.
    begins: u64,
    read: u64,
    /// Where the entry began that was given out last.
    given_out: u64,
    pending: VecDeque<Pending>,
    newest_ns: u64,
    ended: bool,
}

impl Blktrace {
    pub(in crate::trace) fn new(input: Input, order: Order) -> Self {
        Self { input, order, begins: 0, read: 0, given_out: 0, pending: VecDeque::new(), newest_ns: 0, ended: false }
    }

    /// The oldest request, if it need not wait any longer.
    fn ready(&mut self) -> Option<Found> {
        let oldest = self.pending.front()?;
        let old = Nanos(self.newest_ns).since(Nanos(oldest.raw.at_ns)) > ANSWER_MAX;
        if oldest.answered || self.ended || old || self.pending.len() > PENDING_MAX {
            let pending = self.pending.pop_front()?;
            self.given_out = pending.begins;
            return Some(Found::Request(pending.raw));
        }
        None
    }

    /// Fills `record` as far as the trace goes.
    fn fill(&mut self, record: &mut [u8; RECORD_BYTES]) -> std::io::Result<usize> {
        let mut filled = 0;
        while filled < RECORD_BYTES {
            match self.input.read(&mut record[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        self.begins = self.read;
        self.read += filled as u64;
        Ok(filled)
    }

    fn skip(&mut self, bytes: u64) -> std::io::Result<u64> {
        let skipped = std::io::copy(&mut self.input.by_ref().take(bytes), &mut std::io::sink())?;
        self.read += skipped;
        Ok(skipped)
    }

    /// Goes on to the next word that could begin a record.
    fn find_magic(&mut self) -> std::io::Result<()> {
        let magic = match self.order {
            Order::Little => MAGIC.to_le_bytes(),
            Order::Big => MAGIC.to_be_bytes(),
        };
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            let found = memchr::memchr(magic[0], buffer);
            let used = found.unwrap_or(buffer.len());
            // A match that the buffer's end cuts short is taken for one; if it is none, that is found out next.
            let possible = found.is_some() && magic.starts_with(&buffer[used..buffer.len().min(used + 4)]);
            let step = if possible { used } else { (used + 1).min(buffer.len()) };
            self.input.consume(step);
            self.read += step as u64;
            if possible {
                return Ok(());
            }
        }
    }

    fn complete(&mut self, event: &Event) {
        let from = event.sector.saturating_mul(SECTOR_BYTES);
        let end = from.saturating_add(u64::from(event.bytes));
        for pending in self.pending.iter_mut().filter(|pending| pending.raw.volume == event.device) {
            let raw = &mut pending.raw;
            let same = match raw.kind {
                Kind::Flush => event.action & CATEGORY_FLUSH != 0 && event.bytes == 0,
                _ => raw.offset_bytes >= from && raw.offset_bytes < end,
            };
            if same && !pending.answered {
                pending.answered = true;
                raw.latency = (event.error == 0).then(|| Nanos(event.time_ns).since(Nanos(raw.at_ns)));
            }
        }
    }

    /// Takes in one record; what is to be said of it at once.
    fn take_in(&mut self, record: &[u8; RECORD_BYTES]) -> std::io::Result<Option<Found>> {
        match Order::of(record) {
            Some(order) => {
                let event = Event::read(order, record);
                let pdu_bytes = u64::from(event.pdu_bytes);
                if self.skip(pdu_bytes)? < pdu_bytes {
                    return Ok(Some(malformed(self.begins, "a truncated record: its payload is cut off".into())));
                }
                if order != self.order {
                    return Ok(Some(malformed(self.begins, "a record of the other byte order".into())));
                }
                self.newest_ns = self.newest_ns.max(event.time_ns);
                match event.action & 0xFFFF {
                    _ if event.action & CATEGORY_NOTIFY != 0 => {}
                    ACTION_COMPLETE => self.complete(&event),
                    ACTION_QUEUE => match event.request() {
                        Ok(raw) => self.pending.push_back(Pending { raw, answered: false, begins: self.begins }),
                        Err(reason) => return Ok(Some(malformed(self.begins, reason))),
                    },
                    _ => {}
                }
                Ok(None)
            }
            None => {
                let found = malformed(self.begins, "not a record of blktrace version 7".into());
                self.find_magic()?;
                Ok(Some(found))
            }
        }
    }
}

impl Decode for Blktrace {
    fn next(&mut self) -> std::io::Result<Option<Found>> {
        loop {
            if let Some(found) = self.ready() {
                return Ok(Some(found));
            }
            if self.ended {
                return Ok(None);
            }
            let mut record = [0; RECORD_BYTES];
            match self.fill(&mut record)? {
                0 => self.ended = true,
                RECORD_BYTES => {
                    if let Some(found) = self.take_in(&record)? {
                        self.given_out = self.begins;
                        return Ok(Some(found));
                    }
                }
                filled => {
                    self.ended = true;
                    self.given_out = self.begins;
                    let reason = format!("a truncated record: {filled} of {RECORD_BYTES} bytes");
                    return Ok(Some(malformed(self.begins, reason.into())));
                }
            }
        }
    }

    fn position(&self) -> Position {
        Position::Byte(self.given_out)
    }
}
