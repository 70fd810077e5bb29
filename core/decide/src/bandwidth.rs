//! What each disk delivers, learnt from slices in which it was busy: a mean over time whose weight halves with the
//! operator's half-life, one for each kind of access. Two slices of a new disk already outweigh what is assumed.

use minerva_model::{AccessKind, DeviceId, DeviceSignals, LearntBandwidth, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A disk is busy in a slice in which it had a request for this part of it, in thousandths.
const BUSY_PERMILLE: u32 = 900;
/// Requests of this mean size are neighbours on the disk: elevators merge neighbours, and nothing else grows so large.
const SEQUENTIAL_BYTES: u64 = 32 << 10;
/// A slice tells of a kind when this part of its bytes went that way, in thousandths.
const ONE_WAY_PERMILLE: u128 = 900;
/// No measurement weighs more than so many seconds, so that a disk that changed is known anew in minutes.
const MEASURED_SECONDS_MAX: f64 = 300.0;
/// What was learnt is stored again when it is off by this part.
const STORE_AGAIN_AT: f64 = 0.1;
/// No disk delivers more; a stored number beyond it is damaged.
const BYTES_PER_SECOND_MAX: f64 = 1e15;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Measured {
    bytes_per_second: f64,
    seconds: f64,
    at: Nanos,
    stored: f64,
}

/// What was learnt.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Bandwidths {
    half_life: Nanos,
    learnt: BTreeMap<(DeviceId, AccessKind), Measured>,
}

impl Bandwidths {
    pub(crate) fn configure(&mut self, half_life: Nanos) {
        self.half_life = half_life;
    }

    /// Learns from a slice; what the store should have of it.
    pub(crate) fn learn(&mut self, now: Nanos, row: &DeviceSignals) -> Option<LearntBandwidth> {
        let access = kind(row)?;
        let seconds = row.elapsed.as_secs_f64();
        let rate = row.transferred.bytes() as f64 / seconds.max(1e-9);
        let half_life = self.half_life.0.max(1) as f64;
        let fresh = Measured { bytes_per_second: rate, seconds: 0.0, at: now, stored: 0.0 };
        let one = self.learnt.entry((row.device, access)).or_insert(fresh);
        let old = one.seconds * libm::exp2(-(now.since(one.at).0 as f64) / half_life);
        let weight = old + seconds;
        one.bytes_per_second = (one.bytes_per_second * old + rate * seconds) / weight.max(1e-9);
        one.seconds = weight.min(MEASURED_SECONDS_MAX);
        one.at = now;
        let due = (one.bytes_per_second - one.stored).abs() > STORE_AGAIN_AT * one.stored;
        due.then(|| {
            one.stored = one.bytes_per_second;
            let (bytes_per_second, measured_seconds) = (one.bytes_per_second, one.seconds);
            LearntBandwidth { device: row.device, access, bytes_per_second, measured_seconds, age: Nanos::ZERO }
        })
    }

    /// What is remembered, unless something fresher is known. A row without a sane number is as if it had never been.
    pub(crate) fn recall(&mut self, now: Nanos, row: &LearntBandwidth) {
        let sane = (1.0..=BYTES_PER_SECOND_MAX).contains(&row.bytes_per_second) && row.measured_seconds >= 0.0;
        if sane {
            let measured = Measured {
                bytes_per_second: row.bytes_per_second,
                seconds: row.measured_seconds.min(MEASURED_SECONDS_MAX),
                at: now - row.age,
                stored: row.bytes_per_second,
            };
            self.learnt.entry((row.device, row.access)).or_insert(measured);
        }
    }

    /// What the disk delivers, if it was measured.
    pub(crate) fn get(&self, device: DeviceId, access: AccessKind) -> Option<f64> {
        self.learnt.get(&(device, access)).map(|one| one.bytes_per_second)
    }

    pub(crate) fn device_gone(&mut self, device: DeviceId) {
        self.learnt.retain(|(id, _), _| *id != device);
    }
}

/// What a slice tells of, if the disk was busy with one thing.
fn kind(row: &DeviceSignals) -> Option<AccessKind> {
    let (bytes, ops) = (row.transferred.bytes(), row.transferred.ops());
    if row.busy_permille < BUSY_PERMILLE || bytes == 0 || ops == 0 || row.elapsed == Nanos::ZERO {
        return None;
    }
    let mostly = |part: u64| u128::from(part) * 1_000 >= u128::from(bytes) * ONE_WAY_PERMILLE;
    match (mostly(row.transferred.read_bytes), mostly(row.transferred.write_bytes), bytes / ops >= SEQUENTIAL_BYTES) {
        (true, _, true) => Some(AccessKind::SequentialRead),
        (true, _, false) => Some(AccessKind::RandomRead),
        (_, true, true) => Some(AccessKind::SequentialWrite),
        (_, true, false) => Some(AccessKind::RandomWrite),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::Bandwidths;
    use minerva_model::{AccessKind, DeviceId, DeviceSignals, IoCounters, Nanos};

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    fn slice(read_bytes: u64, read_ops: u64, busy_permille: u32) -> DeviceSignals {
        DeviceSignals {
            device: DISK,
            elapsed: Nanos::SECOND,
            transferred: IoCounters { read_bytes, read_ops, ..IoCounters::default() },
            busy_permille,
            read_latency: None,
            write_latency: None,
            contention: 0,
            unattributed_bytes: 0,
            flushes: 0,
        }
    }

    #[test]
    fn only_busy_slices_teach_and_what_is_learnt_survives() {
        let mut known = Bandwidths::default();
        known.configure(Nanos::from_secs(600));
        assert!(known.learn(Nanos::SECOND, &slice(5_000_000, 50, 400)).is_none());
        let row = known.learn(Nanos::from_secs(2), &slice(40_000_000, 400, 990)).expect("news");
        known.learn(Nanos::from_secs(3), &slice(44_000_000, 400, 990));
        assert_eq!(known.get(DISK, AccessKind::SequentialRead).map(|rate| (rate / 1e5).round()), Some(420.0));
        known.learn(Nanos::from_secs(4), &slice(400_000, 100, 990));
        assert_eq!(known.get(DISK, AccessKind::RandomRead), Some(400_000.0));

        let mut restarted = Bandwidths::default();
        restarted.recall(Nanos::from_secs(9), &row);
        assert_eq!(restarted.get(DISK, AccessKind::SequentialRead), Some(40_000_000.0));
        restarted.recall(
            Nanos::from_secs(9),
            &minerva_model::LearntBandwidth { bytes_per_second: f64::NAN, access: AccessKind::RandomWrite, ..row },
        );
        assert_eq!(restarted.get(DISK, AccessKind::RandomWrite), None);
    }
}
