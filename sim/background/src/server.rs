//! The machine, its pool and the debt that writes leave, as in the paper's simulation.

use minerva_background::{Debts, Growth, Machine, QueueId, Terms};

/// Garbage of overwritten blocks.
const OVERWRITES: QueueId = QueueId(0);
/// Blocks of snapshots that expired.
const SNAPSHOTS: QueueId = QueueId(1);
const DAY_SECONDS: f64 = 86_400.0;

/// A storage server.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Server {
    /// Its cores.
    pub machine: Machine,
    /// Background operations that a core does in a second.
    pub background_ops_per_core_second: f64,
    /// The part of written blocks that overwrites nothing.
    pub unique_share: f64,
    /// Time between snapshots, and how long each is kept.
    pub snapshot_seconds: f64,
    /// The pool.
    pub capacity_blocks: f64,
}

impl Server {
    /// The published machine, with a pool for the debt of a day on which so many blocks are written.
    pub fn published(written_blocks_per_day: f64) -> Self {
        let unique_share = 0.05;
        Self {
            machine: Machine { cores: 64, foreground_ops_per_core_second: 50.0 },
            background_ops_per_core_second: 20.0,
            unique_share,
            snapshot_seconds: 3600.0,
            // Each written block is an operation of a snapshot's deletion, and one of garbage collection if it overwrote another.
            capacity_blocks: written_blocks_per_day * (2.0 - unique_share),
        }
    }

    /// The same for a load.
    pub fn for_load(load: &crate::Load) -> Self {
        Self::published(load.written_per_weekday_second() * DAY_SECONDS)
    }

    /// Its queues, owing nothing.
    pub fn debts(&self) -> Debts {
        let mut debts = Debts::default();
        let terms = |growth| Terms {
            priority: 1,
            core_seconds_per_item: 1.0 / self.background_ops_per_core_second,
            blocks_per_item: 1.0,
            sla_seconds: None,
            growth,
        };
        let overwrites = Growth { items_per_overwritten_block: 1.0, ..Growth::default() };
        let snapshots = Growth {
            items_per_written_block: 1.0,
            release_period_seconds: Some(self.snapshot_seconds),
            ..Growth::default()
        };
        debts.register(OVERWRITES, terms(overwrites));
        debts.register(SNAPSHOTS, terms(snapshots));
        debts
    }

    /// Defers what writes leave behind.
    pub(crate) fn defer(&self, debts: &mut Debts, now_seconds: f64, written_blocks: f64) {
        debts.defer(now_seconds, OVERWRITES, written_blocks * (1.0 - self.unique_share));
        debts.defer(now_seconds, SNAPSHOTS, written_blocks);
    }
}
