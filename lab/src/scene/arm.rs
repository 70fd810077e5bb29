//! One arm of a comparison: an elevator, its `low_latency`, and who steers under it.

use super::{Steered, Steering, SteeringContext};
use crate::disk::{BlockQueue, QueueBefore};
use crate::error::Result;
use std::path::Path;

/// An elevator on the scene's disk, set when the arm begins and put back at its end, and whoever steers under it.
pub struct Arm {
    /// Short name for tables and legends.
    pub name: String,
    /// `bfq`, `mq-deadline`, `kyber` or `none`.
    pub elevator: String,
    /// BFQ's `low_latency`.
    pub low_latency: bool,
    /// Who steers.
    pub steering: Box<dyn Steering>,
}

impl Steering for Arm {
    fn name(&self) -> &str {
        &self.name
    }

    fn start(&self, context: &SteeringContext<'_>) -> Result<Box<dyn Steered>> {
        let queue = BlockQueue::new(&context.disk.kernel_name);
        let before = QueueBefore::of(queue.clone())?;
        queue.set_elevator(&self.elevator)?;
        if self.elevator == "bfq" {
            queue.write("iosched/low_latency", if self.low_latency { "1" } else { "0" })?;
        }
        Ok(Box::new(ArmAtWork { steered: self.steering.start(context)?, _before: before }))
    }
}

/// The steering ends before the elevator under it changes: fields are dropped from top to bottom.
struct ArmAtWork {
    steered: Box<dyn Steered>,
    _before: QueueBefore,
}

impl Steered for ArmAtWork {
    fn check(&mut self) -> Result<()> {
        self.steered.check()
    }

    fn see(&mut self, left_bytes: &[u64]) -> Result<()> {
        self.steered.see(left_bytes)
    }

    fn participation_socket(&self) -> Option<&Path> {
        self.steered.participation_socket()
    }

    fn end(self: Box<Self>) -> Result<()> {
        self.steered.end()
    }
}
