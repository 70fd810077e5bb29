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

/// Time a closed-loop process spends on other things.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pause {
    /// How long.
    pub time: Nanos,
    /// After how many requests.
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
    /// A closed loop makes no more than this many bytes a second, averaged from its start.
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
    /// Where a sequential process goes on, for reads and for writes: each direction has its place, as in fio.
    next_block: [u64; 2],
    writes_since_flush: u32,
    flushing: bool,
    made: u64,
    made_bytes: u64,
    outstanding: u32,
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
            next_block: [0; 2],
            writes_since_flush: 0,
            flushing: false,
            made: 0,
            made_bytes: 0,
            outstanding: 0,
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
                // Neighbouring ranks are not neighbours on the disk: an odd factor permutes the blocks of 2^64.
                ((u128::from(rank.wrapping_mul(0x9E37_79B9_7F4A_7C15)) * u128::from(self.blocks)) >> 64) as u64
            }
        }
    }

    fn request(&mut self) -> IoRequest {
        let percent = self.plan.read_percent;
        let read = percent >= 100 || (percent > 0 && self.random.random_range(0..100u8) < percent);
        let block = self.block(read);
        self.writes_since_flush += u32::from(!read);
        self.made += 1;
        self.made_bytes += u64::from(self.plan.block_bytes);
        self.outstanding += 1;
        IoRequest {
            kind: if read { Kind::Read } else { Kind::Write },
            sync: read || self.plan.sync_writes,
            tag: self.plan.tag,
            offset_bytes: self.plan.offset_bytes + block * u64::from(self.plan.block_bytes),
            length_bytes: self.plan.block_bytes,
        }
    }

    fn flush_is_due(&self) -> bool {
        self.plan.flush_every_writes.is_some_and(|every| every > 0 && self.writes_since_flush >= every)
    }

    fn flush(&mut self) -> IoRequest {
        self.writes_since_flush = 0;
        self.flushing = true;
        self.outstanding += 1;
        IoRequest { kind: Kind::Flush, sync: true, tag: self.plan.tag, offset_bytes: 0, length_bytes: 0 }
    }

    fn has_ended(&self, now: Nanos) -> bool {
        self.plan.total_bytes.is_some_and(|total| self.made_bytes >= total)
            || self.plan.ends_at.is_some_and(|end| now >= end)
    }

    /// The instant before which the plan's rate allows no more.
    fn rate_due(&self, started: Nanos) -> Nanos {
        self.plan.rate_bytes_per_second.filter(|rate| *rate > 0).map_or(Nanos::ZERO, |rate| {
            let spent = u128::from(self.made_bytes) * 1_000_000_000 / u128::from(rate);
            started + Nanos(u64::try_from(spent).unwrap_or(u64::MAX))
        })
    }

    fn next_open(&mut self, now: Nanos) -> Step {
        let Some(gap) = self.gap else { return Step::Finished };
        if self.made == 0 && self.due == Nanos::ZERO {
            self.due = now + Nanos((gap.sample(&mut self.random) * 1e9) as u64);
        }
        if now < self.due {
            return Step::At(self.due);
        }
        self.due += Nanos((gap.sample(&mut self.random) * 1e9) as u64);
        Step::Issue(self.request())
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
        if self.flush_is_due() {
            // A flush covers what has completed, so it waits for what is on its way.
            return if self.outstanding > 0 { Step::Blocked } else { Step::Issue(self.flush()) };
        }
        let Loop::Closed { depth } = self.plan.when else { return self.next_open(now) };
        if self.outstanding >= depth.max(1) {
            return Step::Blocked;
        }
        let due = self.due.max(self.rate_due(started));
        if now < due { Step::At(due) } else { Step::Issue(self.request()) }
    }

    fn completed(&mut self, now: Nanos, request: &IoRequest) {
        self.outstanding = self.outstanding.saturating_sub(1);
        if request.kind == Kind::Flush {
            self.flushing = false;
            return;
        }
        if let (Some(pause), Loop::Closed { .. }) = (self.plan.pause, self.plan.when)
            && self.made.is_multiple_of(u64::from(pause.every.max(1)))
        {
            self.due = now + pause.time;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Generator, Loop, Pattern, Pause, Plan};
    use crate::{Source, Step};
    use minerva_model::Nanos;
    use proptest::prelude::{Just, Strategy, prop_assert, prop_oneof, proptest};

    fn issued(step: Step) -> Option<u64> {
        match step {
            Step::Issue(request) => Some(request.offset_bytes),
            _ => None,
        }
    }

    #[test]
    fn a_synchronous_reader_thinks_between_requests() {
        let plan = Plan {
            pause: Some(Pause { time: Nanos(10), every: 1 }),
            total_bytes: Some(8192),
            offset_bytes: 4096,
            ..Plan::default()
        };
        let mut reader = Generator::new(plan, 1);
        let Step::Issue(first) = reader.next(Nanos(5)) else { panic!("it starts at once") };
        assert_eq!(first.offset_bytes, 4096);
        assert_eq!(reader.next(Nanos(5)), Step::Blocked);
        reader.completed(Nanos(100), &first);
        assert_eq!(reader.next(Nanos(100)), Step::At(Nanos(110)));
        let Step::Issue(second) = reader.next(Nanos(110)) else { panic!("it goes on after thinking") };
        assert_eq!(second.offset_bytes, 8192);
        assert_eq!(reader.next(Nanos(110)), Step::Blocked);
        reader.completed(Nanos(120), &second);
        assert_eq!(reader.next(Nanos(130)), Step::Finished);
    }

    #[test]
    fn a_rate_is_kept_on_average() {
        let plan = Plan { rate_bytes_per_second: Some(4096), ..Plan::default() };
        let mut reader = Generator::new(plan, 1);
        let Step::Issue(request) = reader.next(Nanos::ZERO) else { panic!("the first is free") };
        reader.completed(Nanos(1), &request);
        assert_eq!(reader.next(Nanos(1)), Step::At(Nanos::SECOND));
    }

    #[test]
    fn open_arrivals_come_at_their_mean_rate() {
        let plan = Plan { when: Loop::Open { rate_per_second: 1000.0 }, ..Plan::default() };
        let mut source = Generator::new(plan, 7);
        let mut now = Nanos::ZERO;
        let mut made = 0;
        while now < Nanos::from_secs(20) {
            match source.next(now) {
                Step::Issue(_) => made += 1,
                Step::At(at) => now = at,
                other => panic!("{other:?}"),
            }
        }
        assert!((19_000..21_000).contains(&made), "{made} arrivals in 20 s at 1,000 a second");
    }

    proptest! {
        #[test]
        fn requests_lie_in_their_region(
            pattern in prop_oneof![
                Just(Pattern::Sequential),
                Just(Pattern::Random),
                (0.1f64..3.0).prop_map(|exponent| Pattern::Zipf { exponent })
            ],
            seed in 0u64..100,
            blocks in 1u64..1000,
        ) {
            let plan = Plan { pattern, offset_bytes: 1 << 20, region_bytes: blocks * 4096, when: Loop::Closed { depth: 500 }, ..Plan::default() };
            let mut source = Generator::new(plan, seed);
            for _ in 0..200 {
                let offset = issued(source.next(Nanos::ZERO)).expect("depth is left");
                prop_assert!(offset >= 1 << 20 && offset + 4096 <= (1 << 20) + blocks * 4096);
            }
        }
    }
}
