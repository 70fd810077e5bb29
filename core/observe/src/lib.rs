//! Differences of two samples: rates, resets, latency, contention, disk time, pressure, and what tenants use besides the disk.
//!
//! [`Observer`] keeps the last reading of every pair (tenant, device) and of every device. Each keeps the instant of its
//! own last reading: a pair that could not be read in one slice has a difference over two in the next. All rows are sorted
//! vectors that are merged in one pass, so a slice costs no search and no allocation a row, whether 10 tenants or 10,000.
//!
//! What is unknown is left out rather than guessed: the first reading of anything gives no row in [`Signals`], with one
//! exception. A pair that is new while its disk has been watched, and whose counters hold no more than the disk moved in
//! this slice, began in this slice, and its counters are its difference. Otherwise the first slice of every newcomer, which
//! is when Minerva must act, would be missed. A pair of which that is not so was there before and only now came into view,
//! such as a cgroup that a new rule made a tenant; its first reading is where later differences start.

mod counters;
mod disk_time;
mod space;
mod subtrees;
mod tenant_usage;

use crate::counters::{Difference, Row, began_in_this_slice, difference};
use crate::disk_time::DiskTimes;
use crate::space::SpaceReadings;
use crate::subtrees::Subtrees;
use crate::tenant_usage::TenantReadings;
use minerva_model::{
    AgentReport, DeviceId, DeviceSample, DeviceSignals, Finding, FindingKind, IoCounters, IoSignals, Nanos,
    ObserveSettings, Sample, Signals, Tenant, TenantId, TenantIo, WaitCounters,
};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::cmp::Ordering;

/// Turns samples into signals. See the crate's documentation.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Observer {
    settings: ObserveSettings,
    last: Option<Nanos>,
    devices: Vec<(DeviceId, Reading)>,
    pairs: Vec<(PairKey, Reading)>,
    /// The vector that `pairs` had before, kept for its memory.
    #[serde(skip)]
    spare: Vec<(PairKey, Reading)>,
    disk_times: DiskTimes,
    tenants: TenantReadings,
    #[serde(default)]
    spaces: SpaceReadings,
    #[serde(default)]
    subtrees: Subtrees,
}

type PairKey = (TenantId, DeviceId);

/// Counters and when they were read.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Reading {
    at: Nanos,
    row: Row,
}

/// Counters that began again, for one finding a slice.
#[derive(Default)]
struct Restarts {
    devices: Vec<DeviceId>,
    pairs: usize,
    first_pair: Option<PairKey>,
}

impl Observer {
    /// Takes over the operator's settings. What was read so far stays.
    pub fn configure(&mut self, settings: &ObserveSettings) {
        self.settings = *settings;
    }

    /// What happened since the sample before. A sample that is not later than the one before has no length and is passed
    /// over; the next one then spans both.
    pub fn signals(&mut self, now: Nanos, sample: &Sample) -> (Signals, Vec<Finding>) {
        if self.last.is_some_and(|last| now <= last) {
            return (Signals::default(), Vec::new());
        }
        self.last = Some(now);
        let mut restarts = Restarts::default();
        let devices = self.device_signals(now, &sample.devices, &mut restarts);
        let spaces = self.spaces.slice(&sample.spaces);
        let mut signals = Signals { devices, spaces, ..Signals::default() };
        self.pair_signals(now, &sample.io, &mut signals, &mut restarts);
        self.subtrees.slice(now, &sample.subtrees, &mut signals);
        self.disk_times.share_out(&mut signals);
        self.tenants.slice(now, sample, &mut signals);
        (signals, restarts.finding().into_iter().collect())
    }

    /// An agent reported: it counts in the slice that ends next.
    pub fn reported(&mut self, report: AgentReport) {
        self.tenants.reported(report);
    }

    /// A tenant appeared, or what is known of it changed.
    pub fn tenant_seen(&mut self, tenant: &Tenant) {
        self.subtrees.tenant_seen(tenant);
    }

    /// Forgets a tenant's counters.
    pub fn tenant_gone(&mut self, id: TenantId) {
        self.subtrees.tenant_gone(id);
        self.tenants.tenant_gone(id);
        let start = self.pairs.partition_point(|((tenant, _), _)| *tenant < id);
        let end = self.pairs.partition_point(|((tenant, _), _)| *tenant <= id);
        self.pairs.drain(start..end);
    }

    /// A disk appeared, or what is known of it changed. Seeks cost time on it if it is `rotational`.
    pub fn device_seen(&mut self, id: DeviceId, rotational: bool) {
        self.disk_times.device_seen(id, rotational);
    }

    /// Forgets a disk's counters and everyone's on it: its number may come back as another disk.
    pub fn device_gone(&mut self, id: DeviceId) {
        self.disk_times.device_gone(id);
        self.spaces.device_gone(id);
        self.subtrees.device_gone(id);
        self.devices.retain(|(device, _)| *device != id);
        self.pairs.retain(|((_, device), _)| *device != id);
    }

    fn device_signals(&mut self, now: Nanos, samples: &[DeviceSample], restarts: &mut Restarts) -> Vec<DeviceSignals> {
        let samples = sorted(samples, |sample| sample.device);
        let mut signals = Vec::with_capacity(samples.len());
        for sample in samples.iter() {
            let row = Row {
                io: sample.counters,
                wait: Some(sample.wait),
                served_ns: None,
                busy_ns: sample.busy_ns,
                flushes: sample.flushes,
            };
            let reading = Reading { at: now, row };
            let position = self.devices.binary_search_by_key(&sample.device, |(device, _)| *device);
            let old = match position {
                Ok(index) => std::mem::replace(&mut self.devices[index].1, reading),
                Err(index) => {
                    self.devices.insert(index, (sample.device, reading));
                    continue;
                }
            };
            let moved = match difference(&old.row, &row) {
                Difference::Moved(moved) => moved,
                Difference::Restarted => {
                    restarts.devices.push(sample.device);
                    row
                }
            };
            signals.push(device_row(sample.device, now.since(old.at), &moved));
        }
        signals
    }

    fn pair_signals(&mut self, now: Nanos, samples: &[TenantIo], signals: &mut Signals, restarts: &mut Restarts) {
        let samples = sorted(samples, |sample| (sample.tenant, sample.device));
        let active_ops = self.settings.active_ops.max(1);
        let mut next = std::mem::take(&mut self.spare);
        next.clear();
        next.reserve(samples.len());
        signals.io.reserve(samples.len());
        let mut before = self.pairs.iter().copied().peekable();
        for sample in samples.iter() {
            let key = (sample.tenant, sample.device);
            // Pairs that were not read in this slice keep their last reading.
            while let Some(unread) = before.next_if(|(old, _)| *old < key) {
                next.push(unread);
            }
            let old = before.next_if(|(old, _)| *old == key).map(|(_, reading)| reading);
            let row = Row { io: sample.counters, wait: sample.wait, served_ns: sample.served_ns, ..Row::default() };
            next.push((key, Reading { at: now, row }));
            let disk = signals.devices.binary_search_by_key(&sample.device, |device| device.device).ok();
            let disk = disk.map(|index| &mut signals.devices[index]);
            let elapsed = old.map(|old| now.since(old.at)).or(disk.as_ref().map(|disk| disk.elapsed));
            let moved = match old.map(|old| difference(&old.row, &row)) {
                Some(Difference::Moved(moved)) => Some(moved),
                other => {
                    if other.is_some() {
                        restarts.pair(key);
                    }
                    disk.as_ref().is_some_and(|disk| began_in_this_slice(&row.io, disk)).then_some(row)
                }
            };
            let (Some(moved), Some(elapsed)) = (moved, elapsed) else { continue };
            let active = moved.io.ops() >= active_ops;
            if let Some(disk) = disk {
                disk.contention += u32::from(active);
                disk.unattributed_bytes = disk.unattributed_bytes.saturating_sub(moved.io.bytes());
            }
            let latency = moved.wait.and_then(|wait| mean(wait, &moved.io));
            let (tenant, device) = key;
            let served = moved.served_ns.map(Nanos);
            let (transferred, disk_time) = (moved.io, Nanos::ZERO);
            signals.io.push(IoSignals { tenant, device, elapsed, transferred, latency, active, served, disk_time });
        }
        next.extend(before);
        self.spare = std::mem::replace(&mut self.pairs, next);
    }
}

impl Restarts {
    fn pair(&mut self, key: PairKey) {
        self.pairs += 1;
        self.first_pair.get_or_insert(key);
    }

    fn finding(&self) -> Option<Finding> {
        let what = match (self.devices.len(), self.pairs) {
            (0, 0) => return None,
            (0, pairs) => format!("the counters of {pairs} tenant rows"),
            (devices, 0) => format!("the counters of {devices} disks"),
            (devices, pairs) => format!("the counters of {devices} disks and {pairs} tenant rows"),
        };
        let alone = self.pairs + self.devices.len() == 1;
        Some(Finding {
            kind: FindingKind::CounterReset,
            device: self.devices.first().copied().or(self.first_pair.map(|pair| pair.1)).filter(|_| alone),
            tenant: self.first_pair.map(|pair| pair.0).filter(|_| alone),
            message: format!(
                "{what} went backwards. They count from zero again, as after a change of the elevator; at most one slice \
                 of use is lost. Nothing is to be done."
            ),
        })
    }
}

fn device_row(device: DeviceId, elapsed: Nanos, moved: &Row) -> DeviceSignals {
    let wait = moved.wait.unwrap_or_default();
    // A disk cannot be busy for longer than the slice was; the two clocks are read apart.
    let busy_permille = u128::from(moved.busy_ns) * 1_000 / u128::from(elapsed.0.max(1));
    DeviceSignals {
        device,
        elapsed,
        transferred: moved.io,
        busy_permille: busy_permille.min(1_000) as u32,
        read_latency: WaitCounters::mean(wait.read_ns, moved.io.read_ops),
        write_latency: WaitCounters::mean(wait.write_ns, moved.io.write_ops),
        contention: 0,
        unattributed_bytes: moved.io.bytes(),
        flushes: moved.flushes,
    }
}

fn mean(wait: WaitCounters, io: &IoCounters) -> Option<Nanos> {
    WaitCounters::mean(wait.read_ns.saturating_add(wait.write_ns), io.ops())
}

/// `rows` as a sample promises them: sorted, no key twice. A driver that breaks the promise costs a copy, not a wrong
/// difference.
fn sorted<T: Clone, K: Ord>(rows: &[T], key: impl Fn(&T) -> K) -> Cow<'_, [T]> {
    if rows.windows(2).all(|pair| key(&pair[0]).cmp(&key(&pair[1])) == Ordering::Less) {
        return Cow::Borrowed(rows);
    }
    let mut rows = rows.to_vec();
    rows.sort_by_key(&key);
    rows.dedup_by(|next, kept| key(next) == key(kept));
    Cow::Owned(rows)
}

#[cfg(test)]
mod tests;
