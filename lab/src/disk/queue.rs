//! A block device's request queue: its elevator and the few settings that decide whether weights bite.

use crate::error::{At, LabError, Result};
use std::fs;
use std::path::PathBuf;

/// `/sys/block/NAME/queue`.
#[derive(Clone, Debug)]
pub struct BlockQueue {
    name: String,
    directory: PathBuf,
}

impl BlockQueue {
    /// The queue of the disk that the kernel calls `name`, such as `loop3`.
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), directory: PathBuf::from(format!("/sys/block/{name}/queue")) }
    }

    /// What `file` holds.
    pub fn read(&self, file: &str) -> Result<String> {
        let path = self.directory.join(file);
        Ok(fs::read_to_string(&path).at("read", &path)?.trim().to_owned())
    }

    /// Writes `value` to `file`.
    pub fn write(&self, file: &str, value: &str) -> Result<()> {
        let path = self.directory.join(file);
        fs::write(&path, value).at("write", &path)
    }

    /// Chooses the elevator. BFQ is told to obey weights at once: it does only with `low_latency` 0.
    pub fn set_elevator(&self, elevator: &str) -> Result<()> {
        let offered = self.read("scheduler")?;
        let known = offered.split_whitespace().any(|word| word.trim_matches(['[', ']']) == elevator);
        if !known {
            return Err(LabError::UnknownElevator {
                device: self.name.clone(),
                elevator: elevator.to_owned(),
                available: offered.replace(['[', ']'], ""),
            });
        }
        self.write("scheduler", elevator)?;
        if elevator == "bfq" {
            self.write("iosched/low_latency", "0")?;
        }
        Ok(())
    }

    /// The elevator in force.
    pub fn elevator(&self) -> Result<String> {
        let offered = self.read("scheduler")?;
        let chosen = offered.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
        Ok(chosen.unwrap_or("none").to_owned())
    }
}

/// A queue's elevator and `low_latency` as they were; dropping it puts them back.
#[derive(Debug)]
pub struct QueueBefore {
    queue: BlockQueue,
    elevator: String,
    low_latency: Option<String>,
}

impl QueueBefore {
    /// What `queue` has now.
    pub fn of(queue: BlockQueue) -> Result<Self> {
        let elevator = queue.elevator()?;
        let low_latency = if elevator == "bfq" { Some(queue.read("iosched/low_latency")?) } else { None };
        Ok(Self { queue, elevator, low_latency })
    }
}

impl Drop for QueueBefore {
    fn drop(&mut self) {
        // A disk that has gone needs nothing put back.
        let _ = self.queue.write("scheduler", &self.elevator);
        if let Some(value) = &self.low_latency {
            let _ = self.queue.write("iosched/low_latency", value);
        }
    }
}
