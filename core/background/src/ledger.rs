//! A forecast as curves over its slots: work that can be paid by then, work that is due by then, space that is left.

use crate::debt::Debts;
use crate::quantity;
use crate::terms::Growth;
use std::collections::BTreeMap;

/// A slot is no longer, some 30 years.
const SECONDS_MAX: f64 = 1e9;
/// No machine does more in a second.
const RATE_MAX: f64 = 1e12;

/// What is expected of a slot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Expected {
    /// Its length.
    pub seconds: f64,
    /// Requests that the foreground brings.
    pub foreground_ops_per_second: f64,
    /// Blocks that it writes.
    pub written_blocks_per_second: f64,
    /// The part of them that overwrites nothing, 0 to 1.
    pub unique_share: f64,
    /// The pool's size.
    pub capacity_blocks: f64,
}

impl Expected {
    /// With everything that is no number, or out of range, put into it.
    pub(crate) fn sane(&self) -> Self {
        Self {
            seconds: quantity(self.seconds).min(SECONDS_MAX),
            foreground_ops_per_second: quantity(self.foreground_ops_per_second).min(RATE_MAX),
            written_blocks_per_second: quantity(self.written_blocks_per_second).min(RATE_MAX),
            unique_share: quantity(self.unique_share).min(1.0),
            capacity_blocks: quantity(self.capacity_blocks),
        }
    }

    fn unique_blocks(&self) -> f64 {
        self.written_blocks_per_second * self.unique_share * self.seconds
    }
}

/// The curves; each has a value for the end of each slot.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    /// Absolute.
    pub(crate) ends: Vec<f64>,
    /// Core-seconds that can be worked on by then, from now.
    pub(crate) ready: Vec<f64>,
    /// Core-seconds that are due by then.
    pub(crate) due: Vec<f64>,
    /// Blocks above what debt may tie if none of it were paid; below 0 where there is room.
    pub(crate) excess: Vec<f64>,
    /// Blocks in use beside debt.
    pub(crate) used: Vec<f64>,
    /// Blocks that used and tied ones together may be.
    pub(crate) limit: Vec<f64>,
    /// Blocks freed by a core-second, in the mean of all debt.
    pub(crate) density: f64,
}

impl Ledger {
    pub(crate) fn new(
        now_seconds: f64,
        debts: &Debts,
        expected: &[Expected],
        used_blocks: f64,
        limit_share: f64,
    ) -> Self {
        let mut end = now_seconds;
        let ends: Vec<f64> = expected
            .iter()
            .map(|slot| {
                end += slot.seconds;
                end
            })
            .collect();
        let mut used = quantity(used_blocks);
        let used: Vec<f64> = expected
            .iter()
            .map(|slot| {
                used += slot.unique_blocks();
                used
            })
            .collect();
        let limit: Vec<f64> = expected.iter().map(|slot| limit_share * slot.capacity_blocks).collect();
        let mut ledger = Self {
            ready: vec![0.0; ends.len()],
            due: vec![0.0; ends.len()],
            excess: vec![0.0; ends.len()],
            ends,
            used,
            limit,
            density: 0.0,
        };
        ledger.standing(debts);
        ledger.coming(now_seconds, debts, expected);
        for curve in [&mut ledger.ready, &mut ledger.due, &mut ledger.excess] {
            accumulate(curve);
        }
        let work = ledger.ready.last().copied().unwrap_or(0.0);
        ledger.density = if work > 0.0 { ledger.excess.last().copied().unwrap_or(0.0) / work } else { 0.0 };
        for at in 0..ledger.ends.len() {
            ledger.excess[at] += ledger.used[at] - ledger.limit[at];
        }
        ledger
    }

    /// What is owed now.
    fn standing(&mut self, debts: &Debts) {
        for queue in debts.queues() {
            for cohort in &queue.cohorts {
                let work = cohort.items * queue.terms.core_seconds_per_item;
                self.book(self.slot_of(cohort.from_seconds), cohort.due_seconds, work);
            }
        }
        if let Some(first) = self.excess.first_mut() {
            *first += debts.tied_blocks();
        }
    }

    /// What the forecast adds: once for all queues that are released and due alike, as there are more queues than kinds of them.
    fn coming(&mut self, now_seconds: f64, debts: &Debts, expected: &[Expected]) {
        let horizon = self.ends.last().map_or(0.0, |end| end - now_seconds);
        let mut alike: BTreeMap<(u64, u64), (Growth, f64, Sums, Sums)> = BTreeMap::new();
        for queue in debts.queues() {
            let (growth, sla) = (queue.terms.growth, queue.terms.sla());
            let sla = if sla > horizon { f64::INFINITY } else { sla };
            let key = (growth.release_period_seconds.unwrap_or(0.0).to_bits(), sla.to_bits());
            let (_, _, work, blocks) = alike.entry(key).or_insert((growth, sla, Sums::default(), Sums::default()));
            work.add(&growth, queue.terms.core_seconds_per_item);
            blocks.add(&growth, queue.terms.blocks_per_item);
        }
        for (growth, sla, work, blocks) in alike.values() {
            let mut start = now_seconds;
            for (at, slot) in expected.iter().enumerate() {
                let from = growth.release_seconds(start);
                self.book(self.slot_of(from), from + sla, work.of(slot));
                self.excess[at] += blocks.of(slot);
                start = self.ends[at];
            }
        }
    }

    /// Work in the slot in which it can be done, and in the last that ends before it is due.
    fn book(&mut self, from: Option<usize>, due_seconds: f64, core_seconds: f64) {
        if let Some(from) = from {
            self.ready[from] += core_seconds;
            if self.ends.last().is_some_and(|end| *end >= due_seconds) {
                let due = self.ends.partition_point(|end| *end <= due_seconds).saturating_sub(1);
                self.due[due.max(from)] += core_seconds;
            }
        }
    }

    /// The slot that an instant lies in; what is past lies in the first.
    fn slot_of(&self, seconds: f64) -> Option<usize> {
        if self.ends.last().is_none_or(|end| *end <= seconds) {
            return None;
        }
        Some(self.ends.partition_point(|end| *end <= seconds))
    }
}

/// Core-seconds or blocks of all items that slots bring.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    per_written_block: f64,
    per_overwritten_block: f64,
    per_second: f64,
}

impl Sums {
    fn add(&mut self, growth: &Growth, each: f64) {
        self.per_written_block += growth.items_per_written_block * each;
        self.per_overwritten_block += growth.items_per_overwritten_block * each;
        self.per_second += growth.items_per_second * each;
    }

    fn of(&self, slot: &Expected) -> f64 {
        let written = slot.written_blocks_per_second;
        let overwritten = written * (1.0 - slot.unique_share);
        slot.seconds * (self.per_second + written * self.per_written_block + overwritten * self.per_overwritten_block)
    }
}

fn accumulate(curve: &mut [f64]) {
    let mut sum = 0.0;
    for value in curve {
        sum += *value;
        *value = sum;
    }
}
