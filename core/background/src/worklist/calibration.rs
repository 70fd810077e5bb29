//! Measuring what a disk serves to others while its background work rests, as in the calibration period of Kachmar and Kaeli (2020).

use super::Worklist;
use crate::ahead::Foreground;
use minerva_model::{DeviceId, DiskCalibration, Effect, Nanos};
use serde::{Deserialize, Serialize};

/// Longer than this no work rests for it.
const LENGTH_MAX: Nanos = Nanos::from_secs(3600);
/// A disk that was busy for less says nothing of what it serves.
const BUSY_SECONDS_MIN: f64 = 1.0;

/// A measurement under way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Calibrating {
    pub(super) until: Nanos,
    busy_seconds: f64,
    bytes: f64,
    requests: f64,
    active_seconds: f64,
}

impl Calibrating {
    /// A slice of `seconds` in which no work ran.
    pub(super) fn slice(&mut self, foreground: &Foreground, seconds: f64) {
        let Foreground { busy, bytes_per_second, requests_per_second, .. } = *foreground;
        self.busy_seconds += busy.clamp(0.0, 1.0) * seconds;
        self.bytes += bytes_per_second * seconds;
        self.requests += requests_per_second * seconds;
        self.active_seconds += if requests_per_second > 0.0 { seconds } else { 0.0 };
    }

    fn measured(&self) -> Option<DiskCalibration> {
        let is_enough = self.busy_seconds >= BUSY_SECONDS_MIN && self.bytes > 0.0 && self.active_seconds > 0.0;
        is_enough.then(|| DiskCalibration {
            bytes_per_busy_second: self.bytes / self.busy_seconds,
            requests_per_second: self.requests / self.active_seconds,
            busy_seconds: self.busy_seconds,
        })
    }
}

impl Worklist {
    /// Work of a disk rests for so long, and what the disk serves to others is measured; one that is under way begins anew.
    pub fn calibrate(&mut self, now: Nanos, device: DeviceId, length: Nanos) {
        let until = now + length.min(LENGTH_MAX);
        let begun = Calibrating { until, busy_seconds: 0.0, bytes: 0.0, requests: 0.0, active_seconds: 0.0 };
        self.calibrating.insert(device, begun);
    }

    /// What was measured before now.
    pub fn calibrated(&mut self, device: DeviceId, calibration: DiskCalibration) {
        self.disks.entry(device).or_default().calibrated(calibration);
        self.plans.remove(&device);
    }

    /// For how long a disk's work still rests to be measured.
    pub fn calibrating_left(&self, now: Nanos, device: DeviceId) -> Option<Nanos> {
        self.calibrating.get(&device).map(|calibrating| calibrating.until.since(now))
    }

    /// What a disk serves to others, as plans go by it.
    pub fn serves(&self, device: DeviceId) -> Option<DiskCalibration> {
        self.disks.get(&device)?.serves()
    }

    /// Takes over what was measured once that is over, to be kept.
    pub(super) fn end_calibration(&mut self, now: Nanos, device: DeviceId) -> Option<Effect> {
        self.calibrating.get(&device).filter(|calibrating| calibrating.until <= now)?;
        let calibration = self.calibrating.remove(&device)?.measured()?;
        self.calibrated(device, calibration);
        Some(Effect::BackgroundCalibrated { device, calibration })
    }
}
