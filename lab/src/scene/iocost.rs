//! A disk that is set up for iocost, as an operator who measured it has it.

use super::{Steered, Steering, SteeringContext};
use crate::error::{At, Result};
use crate::workload::CgroupParent;
use minerva_model::DeviceId;
use std::fs;
use std::path::{Path, PathBuf};

/// The controller keeps to the model, whatever latencies are.
const QOS: &str = "enable=1 ctrl=user rpct=0 rlat=250000 wpct=0 wlat=250000 min=100 max=100";

/// What a disk delivers. Writes are taken to be as fast as reads, and small requests in sequence as those at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoCostModel {
    /// Large reads in sequence.
    pub bytes_per_second: u64,
    /// Reads of 4 KiB at random.
    pub random_operations_per_second: u64,
}

impl IoCostModel {
    /// What `io.cost.model` is told behind the device.
    pub(crate) fn line(self) -> String {
        let Self { bytes_per_second: bytes, random_operations_per_second: operations } = self;
        format!(
            "ctrl=user model=linear rbps={bytes} rseqiops={operations} rrandiops={operations} wbps={bytes} \
             wseqiops={operations} wrandiops={operations}"
        )
    }
}

/// iocost with this model on the scene's disk while whoever steers does; put back at the end.
pub struct WithIoCost {
    /// The model.
    pub model: IoCostModel,
    /// Who steers.
    pub steering: Box<dyn Steering>,
}

impl Steering for WithIoCost {
    fn name(&self) -> &str {
        self.steering.name()
    }

    fn start(&self, context: &SteeringContext<'_>) -> Result<Box<dyn Steered>> {
        let calibrated = Calibrated::new(context.disk.id, context.parent, &self.model.line())?;
        Ok(Box::new(AtWork { steered: self.steering.start(context)?, _calibrated: calibrated }))
    }
}

/// The steering ends before iocost does: fields are dropped from top to bottom.
struct AtWork {
    steered: Box<dyn Steered>,
    _calibrated: Calibrated,
}

impl Steered for AtWork {
    fn check(&mut self) -> Result<()> {
        self.steered.check()
    }

    fn participation_socket(&self) -> Option<&Path> {
        self.steered.participation_socket()
    }
}

/// A disk that is set up for iocost; dropping it turns iocost off for it.
pub(crate) struct Calibrated {
    device: DeviceId,
    root: PathBuf,
}

impl Calibrated {
    /// Sets it up with what `io.cost.model` is told behind the device.
    pub(crate) fn new(device: DeviceId, parent: &CgroupParent, model: &str) -> Result<Self> {
        let root = parent.path().parent().unwrap_or(parent.path()).to_owned();
        let calibrated = Self { device, root };
        for (file, line) in [("io.cost.model", model), ("io.cost.qos", QOS)] {
            let path = calibrated.root.join(file);
            fs::write(&path, format!("{device} {line}")).at("write", &path)?;
        }
        Ok(calibrated)
    }
}

impl Drop for Calibrated {
    fn drop(&mut self) {
        // It goes with the disk in any case.
        let _ = fs::write(self.root.join("io.cost.qos"), format!("{} enable=0", self.device));
    }
}

#[cfg(test)]
mod tests {
    use super::IoCostModel;

    #[test]
    fn a_model_is_told_as_the_kernel_reads_it() {
        let model = IoCostModel { bytes_per_second: 16_000_000, random_operations_per_second: 500 };
        assert_eq!(
            model.line(),
            "ctrl=user model=linear rbps=16000000 rseqiops=500 rrandiops=500 wbps=16000000 wseqiops=500 wrandiops=500"
        );
    }
}
