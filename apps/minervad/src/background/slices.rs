//! Background work from slice to slice: what is registered is read from the store, how far each is goes to the engine, and now and
//! then to the store.

use super::disk_of::disk_of;
use super::registered::spec;
use crate::clock::boottime;
use crate::slice_loop::Driver;
use minerva_linux_background::QueueStatus;
use minerva_model::{BackgroundCost, BackgroundId, BackgroundState, DeviceId, Event, Nanos};
use minerva_store::BackgroundRow;
use std::path::Path;

/// How often what changes all the time is kept. What ended is kept at once.
const KEEP_PERIOD: Nanos = Nanos::from_secs(10);

impl Driver {
    /// Once a slice, before the sample: reads what is registered, if that has not been done, and tells the engine how far all is.
    pub(crate) fn carry_background(&mut self) {
        self.load_background();
        let Some(carrier) = &self.background.carrier else { return };
        for status in carrier.statuses() {
            self.background_stands(&status);
        }
    }

    /// The disk is there now: what waited for it can be carried out.
    fn load_background(&mut self) {
        if !self.background.is_loaded {
            let Some((rows, last)) = self.memory.background() else { return };
            self.background.is_loaded = true;
            self.background.last_id = last;
            for row in rows {
                let device = self.find_disk(&row);
                self.set_queue(row, device);
            }
        }
        let lost: Vec<BackgroundRow> = self
            .background
            .queues
            .values()
            .filter(|queue| queue.device.is_none())
            .map(|queue| queue.row.clone())
            .collect();
        for row in lost.into_iter().filter(|row| row.state != BackgroundState::Done) {
            if let Some(device) = self.find_disk(&row) {
                self.background.queues.remove(&row.id);
                self.set_queue(row, Some(device));
            }
        }
    }

    fn find_disk(&self, row: &BackgroundRow) -> Option<DeviceId> {
        let kind = spec(row)?.kind;
        let device = disk_of(&self.background.roots, kind, Path::new(&row.path)).ok()?;
        self.devices.contains_key(&device).then_some(device)
    }

    fn background_stands(&mut self, status: &QueueStatus) {
        let QueueStatus { report, message, position } = status;
        let Some(queue) = self.background.queues.get_mut(&report.id) else { return };
        let before = queue.row.state;
        let row = &mut queue.row;
        (row.state, row.position) = (report.state, *position);
        row.message.clone_from(message);
        (row.done_items, row.total_items) = (report.done_items, report.total_items);
        row.ran_ms += report.ran.0 / 1_000_000;
        if before != report.state && report.state.is_over() {
            let (name, state) = (&row.name, report.state.as_str());
            tracing::info!(name, state, "background work: {message}");
        }
        let is_over = before != report.state && report.state.is_over();
        if is_over || boottime().since(queue.kept_at) >= KEEP_PERIOD {
            self.keep_queue(report.id);
        }
        self.feed(Event::BackgroundReported(*report));
    }

    /// The engine learnt what a queue costs.
    pub(crate) fn background_learnt(&mut self, id: BackgroundId, cost: BackgroundCost) {
        if let Some(queue) = self.background.queues.get_mut(&id) {
            queue.row.cost = cost;
            self.keep_queue(id);
        }
    }

    fn keep_queue(&mut self, id: BackgroundId) {
        let Some(queue) = self.background.queues.get_mut(&id) else { return };
        queue.kept_at = boottime();
        let row = queue.row.clone();
        let tell = |kept: Result<(), String>| {
            if let Err(error) = kept {
                tracing::warn!(error, "how far background work is was not kept, trying again");
            }
        };
        self.memory.questions().look_then(move |store| store.keep_background(&row), tell);
    }

    /// Stops all work, which waits for the next daemon.
    pub(crate) fn stop_background(&mut self) {
        let ids: Vec<BackgroundId> = self.background.queues.keys().copied().collect();
        if let Some(carrier) = self.background.carrier.take() {
            ids.into_iter().for_each(|id| self.keep_queue(id));
            carrier.stop();
        }
    }
}
