//! Disk time: for how long each tenant kept a disk busy.
//!
//! Bytes alone do not tell it. A disk with arms that reads 4 KiB here and there moves less than a megabyte a second and has no time
//! for anybody else. The kernel counts for how long a disk had a request in flight (`Documentation/admin-guide/iostats.rst`), of
//! all tenants together; a tenant's own time it counts only where iocost is enabled. So the measured time of each slice is
//! shared out by what the tenants' requests should have cost:
//!
//! `cost = requests * positioning + bytes * transfer`
//!
//! - Where seeks cost time, positioning is a seek and half a turn. It is paid in full by requests of up to 32 KiB. Readers that go
//!   on where they were are merged and read ahead by the kernel, so larger requests are the less likely to need it, by the square
//!   of their size.
//! - Elsewhere every request pays the same, and what it is follows from the most requests a second that the disk was seen to do.
//! - The transfer follows from the most bytes a second that the disk was seen to deliver.
//!
//! Both are bounds that nobody can move but by making the disk deliver more, so a tenant cannot teach Minerva that its requests
//! are cheap. What is given out adds up to the time for which the disk was busy, and nobody gets more than that.

use minerva_model::{DeviceId, DeviceSignals, IoCounters, Nanos, POSITIONING, Signals};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Requests up to this size are taken for ones that do not go on where the last one ended.
const RANDOM_BYTES_MAX: f64 = 32.0 * 1024.0;
/// A disk is taken to deliver at least 100 MB/s where seeks cost time; 1 GB/s and 50,000 requests a second elsewhere.
const TRANSFER_SECONDS_MAX: [f64; 2] = [10e-9, 1e-9];
const REQUEST_SECONDS_MAX: f64 = 20e-6;
/// A slice tells what the disk can do when it was busy for this part of it, in thousandths.
const BUSY_PERMILLE: u32 = 100;
/// In each such slice a bound that was not reached grows by this part, so that what a cache once did is forgotten in hours.
const FORGET: f64 = 1e-4;

/// What requests cost on one disk.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Costs {
    rotational: bool,
    /// The least time of a request that was seen, in seconds.
    request: f64,
    /// The least time of a byte that was seen, in seconds.
    transfer: f64,
}

/// The costs of every disk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct DiskTimes {
    disks: BTreeMap<DeviceId, Costs>,
}

impl Costs {
    fn new(rotational: bool) -> Self {
        Self { rotational, request: REQUEST_SECONDS_MAX, transfer: transfer_max(rotational) }
    }

    /// What a slice shows of the disk.
    fn learn(&mut self, slice: &DeviceSignals) {
        let busy = slice.elapsed.as_secs_f64() * f64::from(slice.busy_permille) / 1e3;
        let (ops, bytes) = (slice.transferred.ops() as f64, slice.transferred.bytes() as f64);
        if slice.busy_permille < BUSY_PERMILLE || ops == 0.0 || bytes == 0.0 {
            return;
        }
        let seen = |known: f64, count: f64, most: f64| (known * (1.0 + FORGET)).min(busy / count).min(most);
        self.request = seen(self.request, ops, REQUEST_SECONDS_MAX);
        self.transfer = seen(self.transfer, bytes, transfer_max(self.rotational));
    }

    /// What requests should have cost, in seconds.
    fn of(&self, io: &IoCounters) -> f64 {
        let (ops, bytes) = (io.ops() as f64, io.bytes() as f64);
        if ops == 0.0 {
            return 0.0;
        }
        let positioning = match self.rotational {
            true => {
                let likely = (RANDOM_BYTES_MAX * ops / bytes.max(1.0)).min(1.0);
                POSITIONING.as_secs_f64() * likely * likely
            }
            false => self.request,
        };
        ops * positioning + bytes * self.transfer
    }
}

/// What is known of a disk while a slice is shared out.
struct Sharing {
    device: DeviceId,
    costs: Costs,
    /// The part of the slice for which the disk was busy; nothing if the kernel did not say, though something was moved.
    busy: Option<f64>,
    /// What is not accounted to any tenant.
    others: IoCounters,
    elapsed: Nanos,
    /// The parts of a second that all should have taken, together.
    expected: f64,
}

impl DiskTimes {
    pub(crate) fn device_seen(&mut self, id: DeviceId, rotational: bool) {
        let costs = self.disks.entry(id).or_insert_with(|| Costs::new(rotational));
        if costs.rotational != rotational {
            *costs = Costs::new(rotational);
        }
    }

    pub(crate) fn device_gone(&mut self, id: DeviceId) {
        self.disks.remove(&id);
    }

    /// Gives every row its disk time.
    pub(crate) fn share_out(&mut self, signals: &mut Signals) {
        let mut disks: Vec<Sharing> = signals.devices.iter().map(|slice| self.sharing(slice)).collect();
        // First what each should have taken, which stands in its row meanwhile, then what it comes to.
        for row in &mut signals.io {
            let Ok(index) = disks.binary_search_by_key(&row.device, |disk| disk.device) else {
                continue;
            };
            row.disk_time = disks[index].expect(&row.transferred, row.elapsed, row.served);
        }
        for row in &mut signals.unseen {
            let Ok(index) = disks.binary_search_by_key(&row.device, |disk| disk.device) else { continue };
            row.disk_time = disks[index].expect(&row.transferred, row.elapsed, None);
        }
        for disk in &mut disks {
            disk.expected += disk.part(&disk.others, disk.elapsed, None);
        }
        for row in &mut signals.io {
            let Ok(index) = disks.binary_search_by_key(&row.device, |disk| disk.device) else {
                // The disk was not read in this slice.
                row.disk_time = seconds(Costs::new(true).of(&row.transferred)).min(row.elapsed);
                continue;
            };
            row.disk_time = seconds(row.disk_time.as_secs_f64() * disks[index].scale());
        }
        for row in &mut signals.unseen {
            let index = disks.binary_search_by_key(&row.device, |disk| disk.device);
            let scale = index.map_or(0.0, |index| disks[index].scale());
            row.disk_time = seconds(row.disk_time.as_secs_f64() * scale);
        }
    }

    fn sharing(&mut self, slice: &DeviceSignals) -> Sharing {
        let costs = self.disks.entry(slice.device).or_insert_with(|| Costs::new(true));
        costs.learn(slice);
        Sharing {
            device: slice.device,
            costs: *costs,
            busy: (slice.busy_permille > 0).then(|| f64::from(slice.busy_permille) / 1e3),
            others: slice.transferred,
            elapsed: slice.elapsed,
            expected: 0.0,
        }
    }
}

impl Sharing {
    /// Takes what somebody did off what nobody accounts for; the time that it should have taken.
    fn expect(&mut self, io: &IoCounters, elapsed: Nanos, served: Option<Nanos>) -> Nanos {
        let part = self.part(io, elapsed, served);
        self.expected += part;
        self.others = less(&self.others, io);
        seconds(part * elapsed.as_secs_f64())
    }

    /// The part of a second that somebody should have taken. `served` is the kernel's own figure.
    fn part(&self, io: &IoCounters, elapsed: Nanos, served: Option<Nanos>) -> f64 {
        let cost = served.map_or_else(|| self.costs.of(io), Nanos::as_secs_f64);
        let part = cost / elapsed.as_secs_f64().max(1e-9);
        part.min(self.busy.unwrap_or(1.0))
    }

    /// What brings the parts to what was measured.
    fn scale(&self) -> f64 {
        match self.busy {
            Some(busy) if self.expected > 0.0 => busy / self.expected,
            _ => 1.0 / self.expected.max(1.0),
        }
    }
}

fn transfer_max(rotational: bool) -> f64 {
    TRANSFER_SECONDS_MAX[usize::from(!rotational)]
}

fn seconds(value: f64) -> Nanos {
    Nanos((value * 1e9) as u64)
}

fn less(from: &IoCounters, what: &IoCounters) -> IoCounters {
    IoCounters {
        read_bytes: from.read_bytes.saturating_sub(what.read_bytes),
        write_bytes: from.write_bytes.saturating_sub(what.write_bytes),
        read_ops: from.read_ops.saturating_sub(what.read_ops),
        write_ops: from.write_ops.saturating_sub(what.write_ops),
    }
}
