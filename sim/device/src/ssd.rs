//! Flash behind a translation layer: latency by operation and size, channels in parallel, and stalls.
//!
//! Not a translation layer: a table that a measurement can fill. A request is cut into stripes; each stripe occupies the
//! channel that its address belongs to for `first_page_us + (pages - 1) * next_page_us`, and the request is done when
//! its last stripe is. After a random amount of written bytes the whole device stops for a random time, which is what
//! collecting free blocks looks like from outside. Both are drawn from the seed, so the same requests see the same stalls.

use crate::device::{Completion, DeviceModel, Kind, Request, SECTOR_BYTES, Statistics, sectors_within};
use crate::profile::{PageTime, Profile, SsdProfile};
use crate::random::Random;
use minerva_model::Nanos;

#[derive(Clone, Copy, Debug)]
struct Times {
    first_ns: u64,
    next_ns: u64,
}

impl Times {
    fn new(time: PageTime) -> Self {
        Self { first_ns: (time.first_page_us * 1e3).round() as u64, next_ns: (time.next_page_us * 1e3).round() as u64 }
    }

    fn pages_ns(self, pages: u64) -> u64 {
        self.first_ns + pages.saturating_sub(1) * self.next_ns
    }
}

/// An SSD under way.
pub(crate) struct Ssd {
    capacity_bytes: u64,
    queue_depth: u32,
    ssd: SsdProfile,
    /// To the host, and from it.
    interface_bytes_per_us: [f64; 2],
    times: [Times; 4],
    command_ns: u64,
    random: Random,
    /// When each channel is free.
    free_at_ns: Vec<u64>,
    command_free_ns: u64,
    interface_free_ns: u64,
    writes_done_ns: u64,
    until_collection_bytes: u64,
    busy_until_ns: u64,
    /// Requests whose completion the caller has not taken, unordered: a heap would be faster only past the queue
    /// depths a disk has.
    under_way: Vec<(u64, u64)>,
    statistics: Statistics,
}

impl Ssd {
    pub(crate) fn new(profile: &Profile, ssd: &SsdProfile, sectors: u64, seed: u64) -> Self {
        let mut device = Self {
            capacity_bytes: sectors * SECTOR_BYTES,
            queue_depth: profile.queue_depth,
            ssd: ssd.clone(),
            interface_bytes_per_us: [
                profile.interface_mb_per_s,
                profile.interface_write_mb_per_s.unwrap_or(profile.interface_mb_per_s),
            ],
            times: [ssd.read, ssd.write, ssd.flush, ssd.discard].map(Times::new),
            command_ns: (ssd.command_us * 1e3).round() as u64,
            random: Random::new(seed),
            free_at_ns: vec![0; ssd.channels as usize],
            command_free_ns: 0,
            interface_free_ns: 0,
            writes_done_ns: 0,
            until_collection_bytes: u64::MAX,
            busy_until_ns: 0,
            under_way: Vec::with_capacity(profile.queue_depth as usize),
            statistics: Statistics::default(),
        };
        device.draw_collection();
        device
    }

    fn draw_collection(&mut self) {
        if let Some(collection) = self.ssd.collection {
            let share = -libm::log(1.0 - self.random.unit());
            self.until_collection_bytes = (share * collection.written_bytes_mean as f64) as u64;
        }
    }

    /// Stops every channel when enough has been written.
    fn collect(&mut self, at_ns: u64, written_bytes: u64) {
        let Some(collection) = self.ssd.collection else { return };
        if self.until_collection_bytes > written_bytes {
            self.until_collection_bytes -= written_bytes;
            return;
        }
        let span_us = collection.stall_us_max - collection.stall_us_min;
        let stall_ns = ((collection.stall_us_min + self.random.unit() * span_us) * 1e3) as u64;
        for free_at_ns in &mut self.free_at_ns {
            *free_at_ns = (*free_at_ns).max(at_ns) + stall_ns;
        }
        self.statistics.stalls += 1;
        self.draw_collection();
    }

    /// When the channels are done with the first stripe, and with all, of a run of bytes that they may start on at
    /// `at_ns`.
    fn stripes(&mut self, at_ns: u64, first_byte: u64, bytes: u64, times: Times) -> (u64, u64) {
        let (stripe, page) = (u64::from(self.ssd.stripe_bytes), u64::from(self.ssd.page_bytes));
        let channels = self.free_at_ns.len() as u64;
        let end = first_byte + bytes;
        let mut from = first_byte;
        let (mut first_done_ns, mut done_ns) = (None, at_ns);
        while from < end {
            let to = ((from / stripe + 1) * stripe).min(end);
            let pages = to.div_ceil(page) - from / page;
            let free_at_ns = &mut self.free_at_ns[(from / stripe % channels) as usize];
            let busy_ns = times.pages_ns(pages);
            *free_at_ns = (*free_at_ns).max(at_ns) + busy_ns;
            self.statistics.transfer_time += Nanos(busy_ns);
            done_ns = done_ns.max(*free_at_ns);
            first_done_ns = first_done_ns.or(Some(*free_at_ns));
            from = to;
        }
        (first_done_ns.unwrap_or(done_ns), done_ns)
    }

    /// Moves `bytes` over the cable, which carries one request at a time, from `at_ns` on.
    fn interface(&mut self, at_ns: u64, bytes: u64, is_write: bool) -> u64 {
        self.interface_free_ns = self.interface_free_ns.max(at_ns) + self.cable_ns(bytes, is_write);
        self.interface_free_ns
    }

    fn cable_ns(&self, bytes: u64, is_write: bool) -> u64 {
        (bytes as f64 / self.interface_bytes_per_us[usize::from(is_write)] * 1e3) as u64
    }
}

impl DeviceModel for Ssd {
    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn queue_depth(&self) -> u32 {
        self.queue_depth
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        let (first, count) = sectors_within(&request, self.capacity_bytes / SECTOR_BYTES);
        let (first_byte, bytes) = (first * SECTOR_BYTES, count * SECTOR_BYTES);
        self.command_free_ns = self.command_free_ns.max(now.0) + self.command_ns;
        let started_ns = self.command_free_ns;
        let [read, write, flush, discard] = self.times;
        let done_ns = match request.kind {
            Kind::Read => {
                self.statistics.reads += 1;
                self.statistics.read_bytes += bytes;
                // The cable carries the first stripe while the channels fetch the rest.
                let (first_ns, fetched_ns) = self.stripes(started_ns, first_byte, bytes, read);
                let last_ns = fetched_ns + self.cable_ns(bytes.min(u64::from(self.ssd.stripe_bytes)), false);
                self.interface(first_ns, bytes, false).max(last_ns)
            }
            Kind::Write => {
                self.statistics.writes += 1;
                self.statistics.write_bytes += bytes;
                let received_ns = self.interface(started_ns, bytes, true);
                self.collect(received_ns, bytes);
                let (_, done_ns) = self.stripes(received_ns, first_byte, bytes, write);
                self.writes_done_ns = self.writes_done_ns.max(done_ns);
                done_ns
            }
            Kind::Flush => {
                self.statistics.flushes += 1;
                started_ns.max(self.writes_done_ns) + flush.first_ns
            }
            Kind::Discard => {
                self.statistics.discards += 1;
                started_ns + discard.pages_ns(1)
            }
        };
        let from_ns = self.busy_until_ns.max(now.0);
        self.busy_until_ns = self.busy_until_ns.max(done_ns);
        self.statistics.busy_time += Nanos(self.busy_until_ns.saturating_sub(from_ns));
        self.under_way.push((done_ns, request.tag));
    }

    fn next_completion(&self) -> Option<Nanos> {
        self.under_way.iter().map(|(done_ns, _)| Nanos(*done_ns)).min()
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        // Ties go to the smaller tag, so that the order does not depend on the order of the vector.
        let index = (0..self.under_way.len()).min_by_key(|index| self.under_way[*index])?;
        if self.under_way[index].0 > now.0 {
            return None;
        }
        let (done_ns, tag) = self.under_way.swap_remove(index);
        Some(Completion { tag, at: Nanos(done_ns) })
    }

    fn statistics(&self) -> Statistics {
        self.statistics
    }
}
