//! A slot among the requests that wait for the slice loop.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedSemaphorePermit;

/// A slot among the requests that wait for their answer, or for the loop to take them; given back by being dropped.
#[derive(Debug)]
pub struct WaitingSlot {
    _slot: OwnedSemaphorePermit,
    maker: String,
    waiting_of: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl WaitingSlot {
    /// One that `waiting_of` counts for `maker` already.
    pub(crate) fn new(
        slot: OwnedSemaphorePermit,
        maker: String,
        waiting_of: Arc<Mutex<BTreeMap<String, usize>>>,
    ) -> Self {
        Self { _slot: slot, maker, waiting_of }
    }
}

impl Drop for WaitingSlot {
    fn drop(&mut self) {
        let mut waiting_of = self.waiting_of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = waiting_of.get_mut(&self.maker) {
            *count -= 1;
            if *count == 0 {
                waiting_of.remove(&self.maker);
            }
        }
    }
}
