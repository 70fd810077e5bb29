//! What disks were told to discard, as differences, and their free space as it is told.

use minerva_model::{DeviceId, DeviceSpace, SpaceSignals};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The last reading of each disk.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SpaceReadings {
    discarded: BTreeMap<DeviceId, u64>,
}

impl SpaceReadings {
    /// A counter that went backwards counts from zero again; the first reading says nothing of what was before it.
    pub(crate) fn slice(&mut self, samples: &[DeviceSpace]) -> Vec<SpaceSignals> {
        let signals = |sample: &DeviceSpace| {
            let before = sample.discarded_bytes.and_then(|bytes| self.discarded.insert(sample.device, bytes));
            let now = sample.discarded_bytes.unwrap_or(0);
            SpaceSignals {
                device: sample.device,
                discarded_bytes: before.map_or(0, |before| now.checked_sub(before).unwrap_or(now)),
                free_bytes: sample.free_bytes,
            }
        };
        let mut signals: Vec<SpaceSignals> = samples.iter().map(signals).collect();
        signals.sort_by_key(|row| row.device);
        signals.dedup_by_key(|row| row.device);
        signals
    }

    pub(crate) fn device_gone(&mut self, id: DeviceId) {
        self.discarded.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::SpaceReadings;
    use minerva_model::{DeviceId, DeviceSpace};

    #[test]
    fn discards_are_differences_and_free_space_is_what_was_read() {
        let mut readings = SpaceReadings::default();
        let row = |minor, discarded_bytes, free_bytes| {
            let device = DeviceId { major: 8, minor };
            DeviceSpace { device, discarded_bytes, free_bytes }
        };
        let mut slice = |samples: &[DeviceSpace]| {
            let rows = readings.slice(samples).into_iter();
            rows.map(|row| (row.device.minor, row.discarded_bytes, row.free_bytes)).collect::<Vec<_>>()
        };
        assert_eq!(slice(&[row(1, Some(7), None), row(0, Some(500), Some(9))]), [(0, 0, Some(9)), (1, 0, None)]);
        assert_eq!(slice(&[row(0, Some(600), None), row(1, None, None)]), [(0, 100, None), (1, 0, None)]);
        assert_eq!(slice(&[row(0, Some(30), Some(8)), row(1, Some(9), None)]), [(0, 30, Some(8)), (1, 2, None)]);
    }
}
