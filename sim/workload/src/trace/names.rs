//! Numbers for volumes that a trace calls by name, in the order of their first appearance.

use super::lines::Reason;
use std::collections::HashMap;

/// More volumes than any published trace has; the bound keeps memory constant on nonsense.
const VOLUMES_MAX: usize = 100_000;
/// A longer name is nonsense.
const NAME_BYTES_MAX: usize = 4096;

#[derive(Default)]
pub(super) struct Names {
    numbers: HashMap<Vec<u8>, u32>,
    names: Vec<String>,
}

impl Names {
    /// The number of the volume called `name`.
    pub(super) fn number(&mut self, name: &[u8]) -> Result<u32, Reason> {
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        if name.len() > NAME_BYTES_MAX || self.names.len() >= VOLUMES_MAX {
            return Err(
                format!("more than {VOLUMES_MAX} volumes, or a name of more than {NAME_BYTES_MAX} bytes").into()
            );
        }
        let number = self.names.len() as u32;
        self.numbers.insert(name.to_vec(), number);
        self.names.push(String::from_utf8_lossy(name).into_owned());
        Ok(number)
    }

    /// The names, by number.
    pub(super) fn list(&self) -> &[String] {
        &self.names
    }
}
