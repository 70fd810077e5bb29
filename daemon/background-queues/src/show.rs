//! What operators see of background work.

use crate::owed::Owed;
use crate::registered::{by_wall, due_unix_ms};
use crate::{Queue, Queues};
use minerva_api::v1;
use minerva_background::{
    Payment, Plan, PlannedSlot, QueueOverTime, QueueStretch, Shortage, SpaceDate, Span, WorkView,
};
use minerva_linux_background::Kind;
use minerva_model::{BackgroundHold, BackgroundId, BackgroundPace, BackgroundState, DeviceId, Nanos};
use std::collections::{BTreeMap, BTreeSet};

const BLOCK_BYTES: f64 = 4096.0;
/// Cores of a disk in a plan: thousandths of its time.
const PARTS: f64 = 1000.0;
/// Of work that runs and gets nowhere.
const HUNG: &str = "it ran for ten minutes without getting on: other work of this disk goes first";

/// Of a command, of which no more is known.
const HUNG_COMMAND: &str = "in ten minutes of running its processes did next to nothing with a processor or a disk: other work of this disk goes first";

/// Of a plan's limit above this the size of the file system is not known.
const LIMIT_BYTES_KNOWN: f64 = 1e14;

impl Queues {
    /// The disks of which plans are made: something is still to be done on each.
    pub fn disks_to_plan(&self) -> BTreeSet<DeviceId> {
        let owed = self.queues.values().filter(|queue| !queue.row.state.is_over());
        let of_tenants = self.owed.values().filter(|owed| !owed.state.is_over()).map(|owed| owed.owner.device);
        owed.filter_map(|queue| queue.device).chain(of_tenants).collect()
    }

    /// All queues, oldest first. `disk_name` is a disk's kernel name, `view` what the engine knows of a queue.
    pub fn shown_all<'a>(
        &self,
        disk_name: impl Fn(DeviceId) -> Option<String>,
        view: impl Fn(BackgroundId) -> Option<WorkView<'a>>,
    ) -> Vec<v1::BackgroundQueue> {
        let of_operators = self.queues.keys().map(|id| self.shown(*id, &disk_name, view(*id).as_ref()));
        let of_tenants = self.owed.iter().map(|(id, owed)| shown_owed(*id, owed, &disk_name, view(*id).as_ref()));
        of_operators.chain(of_tenants).collect()
    }

    /// One queue.
    pub fn shown(
        &self,
        id: BackgroundId,
        disk_name: impl Fn(DeviceId) -> Option<String>,
        view: Option<&WorkView<'_>>,
    ) -> v1::BackgroundQueue {
        let Some(queue) = self.queues.get(&id) else { return v1::BackgroundQueue::default() };
        let row = &queue.row;
        let state = match row.state {
            state if state.is_over() => state.as_str(),
            _ if row.is_paused => "paused",
            state => state.as_str(),
        };
        let cost = view.map_or(row.cost, |view| view.cost);
        v1::BackgroundQueue {
            id: id.to_string(),
            name: row.name.clone(),
            kind: row.kind.clone(),
            path: row.path.clone(),
            command: row.command.clone(),
            device: queue.device.and_then(disk_name).unwrap_or_default(),
            priority: row.priority.into(),
            state: state.to_owned(),
            reason: reason(queue, view),
            message: row.message.clone(),
            done_items: row.done_items,
            total_items: row.total_items,
            items: Kind::from_word(&row.kind).map_or("", Kind::items).to_owned(),
            left_seconds: view.map_or(0.0, |view| view.left_seconds),
            ran_seconds: row.ran_ms as f64 / 1000.0,
            tied_bytes: view.map_or(0, |view| view.tied_bytes as u64),
            added_unix_ns: row.added_unix_ms.saturating_mul(1_000_000),
            due_unix_ns: due_unix_ms(row).saturating_mul(1_000_000),
            seconds_per_item: cost.seconds_per_item,
            measured_seconds: cost.measured_seconds,
            slow_down: cost.slow_down,
            hold: match view.map(|view| view.queue.hold) {
                Some(BackgroundHold::Cap) => "cap",
                _ => "stop",
            }
            .to_owned(),
            share_permille: share_permille(view),
            processors: queue.processors.clone(),
            others_processors: view.and_then(|view| view.others_processors),
            slipped_seconds: view.map_or(0.0, |view| view.slipped_seconds),
            planned_due_unix_ns: view.map_or(0, |view| by_wall(view.planned_due)),
        }
    }

    /// What each queue is called, by number.
    pub fn names(&self) -> BTreeMap<u32, String> {
        let of_operators = self.queues.iter().map(|(id, queue)| (id.0, queue.row.name.clone()));
        let of_tenants = self.owed.iter().map(|(id, owed)| (id.0, owed.owner.name.clone()));
        of_operators.chain(of_tenants).collect()
    }
}

/// A disk's plan for people, for as long as was asked for. `names` are those of queues.
pub fn shown_plan(
    names: &BTreeMap<u32, String>,
    (disk_name, span): (String, v1::BackgroundSpan),
    (plan, queues): &(Plan, Vec<QueueOverTime>),
    space: SpaceDate,
) -> v1::BackgroundPlan {
    let name = |id: u32| names.get(&id).cloned().unwrap_or_else(|| format!("b{id}"));
    let alarm = |at_seconds: f64, shortage: Shortage| v1::BackgroundAlarm {
        at_unix_ns: wall(at_seconds),
        message: match shortage {
            Shortage::Space { blocks } => {
                format!("space runs out: {:.1} GB too few", blocks * BLOCK_BYTES / 1e9)
            }
            Shortage::Deadline { id } => format!("{} misses its deadline", name(id.0)),
        },
    };
    let stretches: BTreeMap<u32, &[QueueStretch]> =
        queues.iter().map(|queue| (queue.id.0, &queue.stretches[..])).collect();
    let payment = |payment: &Payment| v1::BackgroundPayment {
        id: BackgroundId(payment.id.0).to_string(),
        name: name(payment.id.0),
        paid_unix_ns: payment.paid_seconds.map(wall),
        stretches: stretches.get(&payment.id.0).map_or_else(Vec::new, |of| of.iter().map(stretch).collect()),
    };
    v1::BackgroundPlan {
        device: disk_name,
        span: span.into(),
        violations: plan.violations() as u32,
        payments: plan.payments.iter().map(payment).collect(),
        alarms: plan.alarms.iter().map(|found| alarm(found.at_seconds, found.shortage)).collect(),
        slots: slots(plan),
        space_likely_unix_ns: space.likely_seconds.map(wall),
        space_earliest_unix_ns: space.earliest_seconds.map(wall),
        space_latest_unix_ns: space.latest_seconds.map(wall),
        is_space_interval_known: space.is_interval_known,
    }
}

fn stretch(stretch: &QueueStretch) -> v1::BackgroundStretch {
    v1::BackgroundStretch {
        start_unix_ns: wall(stretch.start_seconds),
        length_ns: (stretch.seconds * 1e9) as u64,
        permille: stretch.cores.round() as u32,
        left_seconds: stretch.core_seconds / PARTS,
        tied_bytes: (stretch.blocks * BLOCK_BYTES) as u64,
    }
}

/// What a tenant owes; its path is the tenant's name.
fn shown_owed(
    id: BackgroundId,
    owed: &Owed,
    disk_name: impl Fn(DeviceId) -> Option<String>,
    view: Option<&WorkView<'_>>,
) -> v1::BackgroundQueue {
    let cost = view.map_or(owed.cost, |view| view.cost);
    v1::BackgroundQueue {
        id: id.to_string(),
        name: owed.owner.name.clone(),
        kind: "owed".to_owned(),
        path: owed.owner.tenant_name.clone(),
        command: Vec::new(),
        device: disk_name(owed.owner.device).unwrap_or_default(),
        priority: 0,
        state: owed.state.as_str().to_owned(),
        reason: match view {
            Some(view) if view.is_silent => "its program has said nothing for a while".to_owned(),
            Some(view) if view.is_hung => HUNG.to_owned(),
            Some(view) => view.order.reason.clone(),
            None => String::new(),
        },
        message: String::new(),
        done_items: owed.owing.done.as_secs_f64(),
        total_items: Some(owed.owing.service.as_secs_f64()),
        items: "seconds".to_owned(),
        left_seconds: view.map_or(0.0, |view| view.left_seconds),
        ran_seconds: owed.ran.as_secs_f64(),
        tied_bytes: owed.owing.tied_bytes,
        added_unix_ns: by_wall(owed.added),
        due_unix_ns: view.map_or(0, |view| by_wall(view.due)),
        seconds_per_item: cost.seconds_per_item,
        measured_seconds: cost.measured_seconds,
        slow_down: cost.slow_down,
        hold: "told".to_owned(),
        share_permille: share_permille(view),
        processors: String::new(),
        others_processors: None,
        slipped_seconds: view.map_or(0.0, |view| view.slipped_seconds),
        planned_due_unix_ns: view.map_or(0, |view| by_wall(view.planned_due)),
    }
}

/// The part of the disk's time that a queue has against others.
fn share_permille(view: Option<&WorkView<'_>>) -> u32 {
    match view.map(|view| view.order.pace) {
        Some(BackgroundPace::Share(permille)) => permille.into(),
        _ => 0,
    }
}

/// For how long a plan is to be; none was asked for.
pub const fn span_of(span: v1::BackgroundSpan) -> Option<Span> {
    match span {
        v1::BackgroundSpan::Unspecified => None,
        v1::BackgroundSpan::Hour => Some(Span::Hour),
        v1::BackgroundSpan::Day => Some(Span::Day),
        v1::BackgroundSpan::Week => Some(Span::Week),
        v1::BackgroundSpan::Month => Some(Span::Month),
    }
}

fn slots(plan: &Plan) -> Vec<v1::BackgroundSlot> {
    let slot = |slot: &PlannedSlot| {
        let limit = (slot.bucket_blocks + slot.used_blocks) * BLOCK_BYTES;
        let is_known = limit < LIMIT_BYTES_KNOWN;
        v1::BackgroundSlot {
            start_unix_ns: wall(slot.start_seconds),
            length_ns: (slot.seconds * 1e9) as u64,
            foreground_permille: slot.foreground_cores as u32,
            background_permille: slot.background_cores.round() as u32,
            stolen_permille: slot.stolen_cores.round() as u32,
            used_bytes: if is_known { (slot.used_blocks * BLOCK_BYTES) as u64 } else { 0 },
            tied_bytes: (slot.debt_blocks * BLOCK_BYTES) as u64,
            limit_bytes: if is_known { limit as u64 } else { 0 },
        }
    };
    plan.slots.iter().map(slot).collect()
}

/// Seconds of the loop's clock by the wall's.
fn wall(seconds: f64) -> i64 {
    by_wall(Nanos((seconds.max(0.0) * 1e9) as u64))
}

/// Why a queue runs or does not.
fn reason(queue: &Queue, view: Option<&WorkView<'_>>) -> String {
    match view {
        _ if queue.device.is_none() && queue.row.state != BackgroundState::Done => queue.absent.clone(),
        Some(view) if view.is_silent => "its worker has said nothing for a while".to_owned(),
        Some(view) if view.is_hung && queue.row.kind == Kind::Command.as_str() => HUNG_COMMAND.to_owned(),
        Some(view) if view.is_hung => HUNG.to_owned(),
        Some(view) => view.order.reason.clone(),
        None => String::new(),
    }
}
