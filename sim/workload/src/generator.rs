//! Streams of requests made by rule, in the terms of fio: pattern, block size, depth, think time, rate.

use crate::{IoRequest, Source, Step};
use minerva_blocksched::Kind;
use minerva_model::Nanos;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, Exp, Zipf};
use rand_pcg::Pcg64Mcg;

/// Where requests lie.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// One after the other, and from the start again at the end of the region.
    Sequential,
    /// Uniform over the region's blocks.
    Random,
    /// The region's blocks by rank, scattered over the region; the greater the exponent the hotter the hot ones.
    Zipf {
        /// Exponent, above 0.
        exponent: f64,
    },
}

/// What makes the next request happen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Loop {
    /// Up to this many requests are outstanding; the next is made when one completes.
    Closed {
        /// Outstanding at most; 1 is a synchronous process.
        depth: u32,
    },
    /// Requests are made at a mean rate whatever completes, with exponential gaps.
    Open {
        /// Requests a second.
        rate_per_second: f64,
    },
}

/// Time a closed-loop process spends on other things. As in fio, it waits for all of its requests before that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    /// How long.
    pub time: Nanos,
    /// After how many completed requests.
    pub every: u32,
}

/// Everything a generator needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Where requests lie.
    pub pattern: Pattern,
    /// What makes the next one happen.
    pub when: Loop,
    /// Reads in a hundred; the rest are writes.
    pub read_percent: u8,
    /// All requests are discards instead.
    pub discards: bool,
    /// The process waits for its writes (its reads it always waits for).
    pub sync_writes: bool,
    /// Size of a request.
    pub block_bytes: u32,
    /// Start of the region.
    pub offset_bytes: u64,
    /// Length of the region.
    pub region_bytes: u64,
    /// Bytes after which the process ends.
    pub total_bytes: Option<u64>,
    /// Instant at which the process ends.
    pub ends_at: Option<Nanos>,
    /// Think time.
    pub pause: Option<Pause>,
    /// A closed loop makes no more than this many bytes a second, averaged from its start: reads and writes each, as in fio.
    pub rate_bytes_per_second: Option<u64>,
    /// The process makes its writes durable after so many of them, and waits for that.
    pub flush_every_writes: Option<u32>,
    /// The application's priority.
    pub tag: Option<u8>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            pattern: Pattern::Sequential,
            when: Loop::Closed { depth: 1 },
            read_percent: 100,
            discards: false,
            sync_writes: true,
            block_bytes: 4096,
            offset_bytes: 0,
            region_bytes: 1 << 30,
            total_bytes: None,
            ends_at: None,
            pause: None,
            rate_bytes_per_second: None,
            flush_every_writes: None,
            tag: None,
        }
    }
}

/// A process that follows a [`Plan`]. Equal plans and seeds make equal requests.
#[derive(Debug)]
pub struct Generator {
    plan: Plan,
    random: Pcg64Mcg,
    zipf: Option<Zipf<f64>>,
    gap: Option<Exp<f64>>,
    blocks: u64,
    /// Which way the next request goes, once that is drawn.
    reads_next: Option<bool>,
    /// Where a sequential process goes on, for reads and for writes: each direction has its place, as in fio.
    next_block: [u64; 2],
    writes_since_flush: u32,
    flushing: bool,
    /// For writes and for reads.
    made_bytes: [u64; 2],
    outstanding: u32,
    completed_since_pause: u32,
    started: Option<Nanos>,
    /// When the next request may be made.
    due: Nanos,
}

impl Generator {
    /// A process with this plan. A region smaller than a block counts as one block; an exponent or rate that is not above
    /// zero counts as uniform, or as never.
    pub fn new(plan: Plan, seed: u64) -> Self {
        let blocks = (plan.region_bytes / u64::from(plan.block_bytes.max(1))).max(1);
        let zipf = match plan.pattern {
            Pattern::Zipf { exponent } => Zipf::new(blocks as f64, exponent).ok(),
            _ => None,
        };
        let gap = match plan.when {
            Loop::Open { rate_per_second } => Exp::new(rate_per_second).ok().filter(|_| rate_per_second > 0.0),
            Loop::Closed { .. } => None,
        };
        Self {
            plan,
            random: Pcg64Mcg::seed_from_u64(seed),
            zipf,
            gap,
            blocks,
            reads_next: None,
            next_block: [0; 2],
            writes_since_flush: 0,
            flushing: false,
            made_bytes: [0; 2],
            outstanding: 0,
            completed_since_pause: 0,
            started: None,
            due: Nanos::ZERO,
        }
    }

    fn block(&mut self, read: bool) -> u64 {
        match self.plan.pattern {
            Pattern::Sequential => {
                let next = &mut self.next_block[usize::from(read)];
                let block = *next;
                *next = (block + 1) % self.blocks;
                block
            }
            Pattern::Random => self.random.random_range(0..self.blocks),
            Pattern::Zipf { .. } => {
                let rank = self.zipf.as_ref().map_or(0, |zipf| zipf.sample(&mut self.random) as u64 - 1);
                scattered(rank.min(self.blocks - 1), self.blocks)
            }
        }
    }

    /// Which way the next request goes; drawn once for each.
    fn reads_next(&mut self) -> bool {
        let percent = self.plan.read_percent;
        let random = &mut self.random;
        *self
            .reads_next
            .get_or_insert_with(|| percent >= 100 || (percent > 0 && random.random_range(0..100u8) < percent))
    }

    fn request(&mut self, read: bool) -> IoRequest {
        self.reads_next = None;
        let block = self.block(read);
        self.made_bytes[usize::from(read)] += u64::from(self.plan.block_bytes);
        self.outstanding += 1;
        let kind = match (self.plan.discards, read) {
            (true, _) => Kind::Discard,
            (false, true) => Kind::Read,
            (false, false) => Kind::Write,
        };
        self.writes_since_flush += u32::from(kind == Kind::Write);
        IoRequest {
            kind,
            sync: kind != Kind::Write || self.plan.sync_writes,
            tag: self.plan.tag,
            offset_bytes: self.plan.offset_bytes + block * u64::from(self.plan.block_bytes),
            length_bytes: self.plan.block_bytes,
        }
    }

    fn is_flush_due(&self) -> bool {
        self.plan.flush_every_writes.is_some_and(|every| every > 0 && self.writes_since_flush >= every)
    }

    /// The process waits for what is under way, and then thinks.
    fn is_pause_due(&self) -> bool {
        self.plan.pause.is_some_and(|pause| self.completed_since_pause >= pause.every.max(1))
    }

    fn flush(&mut self) -> IoRequest {
        self.writes_since_flush = 0;
        self.flushing = true;
        self.outstanding += 1;
        IoRequest { kind: Kind::Flush, sync: true, tag: self.plan.tag, offset_bytes: 0, length_bytes: 0 }
    }

    fn has_ended(&self, now: Nanos) -> bool {
        self.plan.total_bytes.is_some_and(|total| self.made_bytes.iter().sum::<u64>() >= total)
            || self.plan.ends_at.is_some_and(|end| now >= end)
    }

    /// The instant before which the plan's rate allows no more reads, or writes.
    fn rate_due(&self, started: Nanos, read: bool) -> Nanos {
        self.plan.rate_bytes_per_second.filter(|rate| *rate > 0).map_or(Nanos::ZERO, |rate| {
            let spent = u128::from(self.made_bytes[usize::from(read)]) * 1_000_000_000 / u128::from(rate);
            started + Nanos(u64::try_from(spent).unwrap_or(u64::MAX))
        })
    }

    /// When the next request may be made, and which way it goes. Of a mixed process whose turn is over its rate the other
    /// way goes first if it may sooner, as in fio.
    fn next_way(&mut self, now: Nanos, started: Nanos) -> (Nanos, bool) {
        let read = self.reads_next();
        let due = self.rate_due(started, read);
        if due > now && (1..100).contains(&self.plan.read_percent) {
            let other = self.rate_due(started, !read);
            if other < due {
                return (other, !read);
            }
        }
        (due, read)
    }

    fn next_open(&mut self, now: Nanos) -> Step {
        let Some(gap) = self.gap else { return Step::Finished };
        if self.made_bytes == [0; 2] && self.due == Nanos::ZERO {
            self.due = now + Nanos((gap.sample(&mut self.random) * 1e9) as u64);
        }
        if now < self.due {
            return Step::At(self.due);
        }
        self.due += Nanos((gap.sample(&mut self.random) * 1e9) as u64);
        let read = self.reads_next();
        Step::Issue(self.request(read))
    }
}

impl Source for Generator {
    fn next(&mut self, now: Nanos) -> Step {
        let started = *self.started.get_or_insert(now);
        if self.has_ended(now) {
            return if self.outstanding == 0 { Step::Finished } else { Step::Blocked };
        }
        if self.flushing {
            return Step::Blocked;
        }
        if self.is_flush_due() {
            // A flush covers what has completed, so it waits for what is on its way.
            return if self.outstanding > 0 { Step::Blocked } else { Step::Issue(self.flush()) };
        }
        let Loop::Closed { depth } = self.plan.when else { return self.next_open(now) };
        if self.outstanding >= depth.max(1) || self.is_pause_due() {
            return Step::Blocked;
        }
        let (rate_due, read) = self.next_way(now, started);
        let due = self.due.max(rate_due);
        if now < due { Step::At(due) } else { Step::Issue(self.request(read)) }
    }

    fn completed(&mut self, now: Nanos, request: &IoRequest) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if request.kind == Kind::Flush {
            self.flushing = false;
            return;
        }
        self.completed_since_pause = self.completed_since_pause.saturating_add(1);
        if let (Some(pause), Loop::Closed { .. }) = (self.plan.pause, self.plan.when)
            && self.outstanding == 0
            && self.is_pause_due()
        {
            self.completed_since_pause = 0;
            self.due = now + pause.time;
        }
    }
}

/// A permutation of `0..blocks`, so that neighbouring ranks are not neighbours on the disk and each block has one rank: every
/// round permutes the numbers of as many bits as `blocks` needs, and what falls outside goes on until it falls inside.
fn scattered(rank: u64, blocks: u64) -> u64 {
    const FACTORS: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xBF58_476D_1CE4_E5B9, 0x94D0_49BB_1331_11EB];
    let bits = (u64::BITS - (blocks - 1).leading_zeros()).max(1);
    let mask = u64::MAX >> (u64::BITS - bits);
    let mut block = rank;
    loop {
        for factor in FACTORS {
            // An odd factor permutes, and so does folding the upper bits onto the lower ones.
            block = block.wrapping_mul(factor).wrapping_add(factor >> 32) & mask;
            block ^= block >> bits.div_ceil(2);
        }
        if block < blocks {
            return block;
        }
    }
}

#[cfg(test)]
mod tests;
