//! The weights that the kernel holds for tenants while a scene plays, whoever wrote them.

use crate::disk::Disk;
use crate::workload::{CgroupParent, WeightKnob};
use minerva_model::{DeviceId, Nanos};

/// Reads the tenants' weights once in each bin of a run's series.
pub(super) struct WeightLog<'a> {
    parent: &'a CgroupParent,
    device: DeviceId,
    /// Nothing where the kernel looks at no weight: shares may be caps then, which do not add up to a disk.
    knob: Option<WeightKnob>,
    bin: Nanos,
    names: Vec<&'a str>,
    /// For each tenant, in the order of the names, a weight a bin.
    rows: Vec<Vec<f64>>,
}

impl<'a> WeightLog<'a> {
    /// For a disk whose elevator stays what it is now.
    pub(super) fn new(parent: &'a CgroupParent, disk: &Disk, names: Vec<&'a str>, bin: Nanos) -> Self {
        let device = disk.info().id;
        let elevator = disk.queue().elevator().unwrap_or_default();
        let rows = vec![Vec::new(); names.len()];
        Self { parent, device, knob: parent.weight_knob(device, &elevator), bin, names, rows }
    }

    /// Reads the weights if a bin has begun for which there are none yet. Bins that nobody looked into have those of the next.
    pub(super) fn look(&mut self, elapsed: Nanos) {
        let Some(knob) = self.knob else { return };
        let bins = (elapsed.0 / self.bin.0) as usize + 1;
        for (name, row) in self.names.iter().zip(&mut self.rows) {
            if row.len() < bins {
                let weight = self.parent.weight_of(name, self.device, knob);
                row.resize(bins, weight.unwrap_or(f64::NAN));
            }
        }
    }

    /// For each tenant a weight a bin, where the kernel looks at weights.
    pub(super) fn into_rows(self) -> Option<Vec<Vec<f64>>> {
        self.knob.map(|_| self.rows)
    }
}
