//! One queue of real work, and what it looks like to a plan.

use crate::ahead::PARTS;
use crate::cost::Learnt;
use crate::debt::Debts;
use crate::file_system::BLOCK_BYTES;
use crate::processors::Processors;
use crate::slip::Slip;
use crate::terms::{Growth, QueueId, Terms};
use minerva_model::{
    BackgroundBeside, BackgroundHold, BackgroundOrder, BackgroundPace, BackgroundQueue, BackgroundReport,
    BackgroundSettings, BackgroundState, Nanos,
};
use serde::{Deserialize, Serialize};

/// The time that work is given for which none was named: so that none is put off for ever.
pub const SLA_DEFAULT: Nanos = Nanos::from_secs(30 * 86_400);
/// Work of unknown size is taken to be this much longer than what was done of it, and this many seconds at least.
const UNKNOWN_GROWTH: f64 = 1.25;
const UNKNOWN_SECONDS: f64 = 60.0;
/// A queue that gave no report for so long is not counted on to do anything.
const SILENT: Nanos = Nanos::from_secs(30);
/// One that ran for so long without getting on hangs; less may be one long call into the kernel.
pub const HUNG: Nanos = Nanos::from_secs(600);

/// A queue under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) queue: BackgroundQueue,
    pub(crate) learnt: Learnt,
    pub(crate) state: BackgroundState,
    pub(crate) order: BackgroundOrder,
    /// The order was told, since the driver last said what the queue is.
    pub(crate) is_told: bool,
    /// Ran in the slice that is under way.
    pub(crate) ran: Nanos,
    /// Of that, while others used the disk too.
    #[serde(default)]
    pub(crate) ran_beside: Nanos,
    pub(crate) done_items: f64,
    pub(crate) total_items: Option<f64>,
    pub(crate) tied_bytes: f64,
    pub(crate) reported_at: Option<Nanos>,
    /// For how long it ran since it last got on.
    #[serde(default)]
    pub(crate) in_vain: Nanos,
    /// It ran beside others at a limit when it last reported, whatever its pace.
    #[serde(default)]
    pub(crate) is_beside_others: bool,
    /// It did so once. In recordings of earlier versions, which do not say how it can run beside others, what it has of them it has at a limit
    /// from then on.
    #[serde(default)]
    pub(crate) is_limited: bool,
    /// How it can run beside others, as it last reported.
    #[serde(default)]
    pub(crate) beside: Option<BackgroundBeside>,
    /// How many processors its processes may use.
    #[serde(default)]
    pub(crate) processors: Processors,
    /// The file system that it works on, where that is known by number.
    #[serde(default)]
    pub(crate) file_system: Option<u64>,
    /// How far its end moved from plan to plan.
    #[serde(default)]
    pub(crate) slip: Slip,
}

impl Work {
    pub(crate) fn new(queue: BackgroundQueue) -> Self {
        let order = BackgroundOrder { id: queue.id, pace: BackgroundPace::Hold, reason: String::new(), processors: 0 };
        Self {
            learnt: Learnt::new(queue.cost),
            state: BackgroundState::Waiting,
            order,
            is_told: false,
            ran: Nanos::ZERO,
            ran_beside: Nanos::ZERO,
            done_items: crate::quantity(queue.done_items),
            total_items: queue.total_items.map(crate::quantity),
            tied_bytes: 0.0,
            reported_at: None,
            in_vain: Nanos::ZERO,
            is_beside_others: false,
            is_limited: false,
            beside: None,
            processors: Processors::default(),
            file_system: None,
            slip: Slip::default(),
            queue,
        }
    }

    /// Takes a report; what was freed with it. A queue that lies about its progress is believed in what it does only: items that are
    /// taken back are not done, and never more than there are.
    pub(crate) fn reported(&mut self, now: Nanos, report: &BackgroundReport, settings: &BackgroundSettings) -> f64 {
        let done = crate::quantity(report.done_items);
        let does = done > self.done_items;
        // Another worker may count anew what is left.
        let is_same_count = report.total_items.map(crate::quantity) == self.total_items;
        if settings.what_is_lost_counts && is_same_count {
            self.learnt.lost(self.done_items - done);
        }
        if settings.looking_costs_nothing && report.gets_on == Some(true) && !does {
            self.learnt.looked();
        } else {
            self.learnt.ran(report.ran.as_secs_f64(), done - self.done_items);
        }
        let gets_on = report.gets_on.unwrap_or(does);
        self.in_vain = if gets_on { Nanos::ZERO } else { self.in_vain + report.ran };
        self.done_items = done;
        self.total_items = report.total_items.map(crate::quantity);
        // A worker that begins anew knows of nothing that is tied until it has looked.
        let frees = does || report.gets_on.is_none() || !settings.growth_is_net;
        let freed = if frees { (self.tied_bytes - crate::quantity(report.tied_bytes)).max(0.0) } else { 0.0 };
        self.tied_bytes = crate::quantity(report.tied_bytes);
        self.ran += report.ran;
        self.ran_beside += report.ran_beside;
        self.processors.slice(report.processors.as_ref());
        self.file_system = report.file_system;
        self.state = report.state;
        self.is_beside_others = report.is_beside_others;
        self.is_limited |= report.is_beside_others;
        self.beside = report.beside;
        self.reported_at = Some(now);
        freed
    }

    /// It is to be done, now or later.
    pub(crate) fn is_owed(&self) -> bool {
        !self.state.is_over()
    }

    /// It can run now if it is let.
    pub(crate) fn is_ready(&self) -> bool {
        self.is_owed() && !self.queue.is_paused
    }

    /// A tenant says that it owes it.
    pub(crate) fn is_debt(&self) -> bool {
        self.queue.hold == BackgroundHold::Told
    }

    /// It says nothing any more: hung, or gone.
    pub(crate) fn is_silent(&self, now: Nanos) -> bool {
        self.reported_at.is_some_and(|at| now.since(at) > SILENT)
    }

    /// It runs and gets nowhere: others go first, and nothing is taken from others for it.
    pub(crate) fn is_hung(&self) -> bool {
        self.in_vain >= HUNG
    }

    /// It gets on in time that is taken from others.
    pub(crate) fn can_take(&self) -> bool {
        self.beside != Some(BackgroundBeside::Nothing)
    }

    /// In that time it runs in stretches, not at a limit.
    pub(crate) fn takes_in_stretches(&self) -> bool {
        self.beside.map_or(!self.is_limited, |beside| beside == BackgroundBeside::Stretches)
    }

    pub(crate) fn left_items(&self) -> f64 {
        let per_second = 1.0 / self.learnt.cost.seconds_per_item;
        let unknown = (self.done_items * (UNKNOWN_GROWTH - 1.0)).max(UNKNOWN_SECONDS * per_second);
        // One that has done more than there was is not done until it says so.
        self.total_items.map_or(unknown, |total| (total - self.done_items).max(per_second))
    }

    /// For how long it will run.
    pub(crate) fn left_seconds(&self) -> f64 {
        self.left_items() * self.learnt.cost.seconds_per_item
    }

    pub(crate) fn due(&self) -> Nanos {
        self.queue.due.unwrap_or(self.queue.added + SLA_DEFAULT)
    }

    /// The time that it was given for all of it.
    pub(crate) fn given(&self) -> Nanos {
        self.queue.given.unwrap_or_else(|| self.due().since(self.queue.added))
    }

    /// When it was added; below 0 where that was before the boot.
    fn added_seconds(&self) -> f64 {
        let before_due = |given: Nanos| self.due().as_secs_f64() - given.as_secs_f64();
        self.queue.given.map_or(self.queue.added.as_secs_f64(), before_due)
    }

    /// Blocks that it ties on a file system. Where nobody says on which it is, it may be any.
    pub(crate) fn tied_blocks(&self, file_system: Option<u64>) -> f64 {
        let is_there = self.file_system.is_none_or(|own| Some(own) == file_system);
        if is_there { self.tied_bytes / BLOCK_BYTES } else { 0.0 }
    }

    /// By when it must be done as planned to be done by its deadline, if it goes on to slip as it did.
    pub(crate) fn planned_due(&self, now: Nanos) -> Nanos {
        let left = self.due().since(now);
        if left == Nanos::ZERO { self.due() } else { now + Nanos((left.0 as f64 * (1.0 - self.slip.rate())) as u64) }
    }

    /// Enters it among the debts of its disk, to be done by `due`; of one file system the space counts, and so much of what it is said to tie.
    pub(crate) fn defer_into(&self, debts: &mut Debts, due: Nanos, file_system: Option<u64>, tied_part: f64) {
        let items = self.left_items();
        let added = self.added_seconds();
        let terms = Terms {
            priority: self.queue.priority,
            core_seconds_per_item: f64::from(PARTS) * self.learnt.cost.seconds_per_item,
            blocks_per_item: tied_part * self.tied_blocks(file_system) / items,
            sla_seconds: Some(due.as_secs_f64() - added),
            growth: Growth::default(),
        };
        let id = QueueId(self.queue.id.0);
        // Terms of estimates are always good; others would leave the queue out of the plan, which holds it back from nothing.
        if debts.register(id, terms).is_none() {
            debts.defer(added, id, items);
        }
    }
}
