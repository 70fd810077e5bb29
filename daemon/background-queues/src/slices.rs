//! Background work from slice to slice: what is registered is read from the store, and how far each is goes to the engine, and now
//! and then to the store.

use crate::absent::Tables;
use crate::owed::FIRST_ID;
use crate::registered::{self, ahead_ns, both_clocks, keep_position, spec};
use crate::{Queue, Queues};
use minerva_clock::boottime;
use minerva_linux_background::QueueStatus;
use minerva_model::{BackgroundCost, BackgroundId, BackgroundState, DeviceId, Event, Nanos};
use minerva_store::BackgroundRow;

/// By how much the wall clock moves before deadlines are converted again: one that is only kept exact moves less in a day.
const STEP_NS: u128 = 60 * 1_000_000_000;

/// How often what changes all the time is kept. What ended is kept at once.
const KEEP_PERIOD: Nanos = Nanos::from_secs(10);

/// How far queues are.
#[derive(Debug, Default)]
pub struct Reported {
    /// For the engine.
    pub events: Vec<Event>,
    /// To be kept now.
    pub rows: Vec<BackgroundRow>,
}

impl Queues {
    /// The store was read: what it has is known.
    pub const fn is_loaded(&self) -> bool {
        self.is_loaded
    }

    /// Takes what the store has, and the last number that was used. `is_watched` says of a disk whether it is looked at. The answer is
    /// for the engine.
    pub fn load(
        &mut self,
        (rows, last_id): (Vec<BackgroundRow>, BackgroundId),
        is_watched: impl Fn(DeviceId) -> bool,
    ) -> Vec<Event> {
        self.is_loaded = true;
        self.last_id = last_id;
        self.end_unknown(&rows);
        let tables = Tables::default();
        for row in rows {
            let device = if row.state == BackgroundState::Done { self.disk_of_done(&row, &tables) } else { None };
            // What is still to be done has no disk yet.
            drop(self.set(row, device));
        }
        self.find_disks_by(&tables, is_watched)
    }

    /// Ends work that is in no row: of a store that was lost, or that was removed when the last daemon had no time left to end it. Its numbers
    /// are not used again, for what it left would be taken for another's: its end, that its command was begun, or a worker that lives.
    fn end_unknown(&mut self, rows: &[BackgroundRow]) {
        let is_known = |id: &BackgroundId| rows.iter().any(|row| row.id == *id);
        let mut left = self.settings.numbers_left();
        left.retain(|id| id.0 < FIRST_ID);
        self.last_id = left.last().map_or(self.last_id, |last| self.last_id.max(*last));
        for id in left.into_iter().filter(|id| !is_known(id)) {
            tracing::warn!("background work {id} is in no list any more, and what is left of it is ended and removed");
            if let Some(carrier) = self.carry() {
                carrier.remove(id);
            }
        }
    }

    /// How far all is, as asked for in the slice before. Never waits.
    pub fn reported(&mut self) -> Reported {
        let mut reported = Reported { events: self.deadlines_after_clock_step(both_clocks()), ..Reported::default() };
        let statuses = self.carrier.as_ref().map(|carrier| carrier.statuses()).unwrap_or_default();
        for status in statuses {
            self.take_status(&status, &mut reported);
        }
        reported
    }

    /// The wall clock, of which deadlines are instants, was stepped: they are other instants of the loop's clock.
    fn deadlines_after_clock_step(&mut self, now: (i64, Nanos)) -> Vec<Event> {
        let ahead = ahead_ns(now);
        if self.ahead_ns.get_or_insert(ahead).abs_diff(ahead) < STEP_NS {
            return Vec::new();
        }
        self.ahead_ns = Some(ahead);
        let converted = |Queue { row, device, .. }: &Queue| {
            let (work, device) = spec(row).zip(*device).filter(|_| row.state != BackgroundState::Done)?;
            let queue = registered::queue(row, &work, (device, self.settings.cgroup(row.id)), now);
            Some(Event::BackgroundSet(Box::new(queue)))
        };
        self.queues.values().filter_map(converted).collect()
    }

    fn take_status(&mut self, status: &QueueStatus, reported: &mut Reported) {
        let QueueStatus { report, message, position, found, is_absent, processors } = status;
        if let Some(owed) = self.owed.get_mut(&report.id) {
            reported.events.extend(owed.reported(report).map(Event::BackgroundReported));
        }
        let Some(queue) = self.queues.get_mut(&report.id) else { return };
        queue.processors.clone_from(processors);
        let before = queue.row.state;
        let row = &mut queue.row;
        row.state = report.state;
        keep_position(row, *position, found);
        row.message.clone_from(message);
        (row.done_items, row.total_items) = (report.done_items, report.total_items);
        row.ran_ms += report.ran.0 / 1_000_000;
        let is_over = before != report.state && report.state.is_over();
        if is_over {
            let (name, state) = (&row.name, report.state.as_str());
            tracing::info!(name, state, "background work: {message}");
        }
        if is_over || boottime().since(queue.kept_at) >= KEEP_PERIOD {
            reported.rows.extend(self.row_to_keep(report.id));
        }
        if !is_absent {
            reported.events.push(Event::BackgroundReported(*report));
            return;
        }
        reported.events.push(self.without_disk(report.id));
        self.note_absent(report.id, message.clone());
    }

    /// The engine learnt what a queue costs. The answer is to be kept.
    pub fn learnt(&mut self, id: BackgroundId, cost: BackgroundCost) -> Option<BackgroundRow> {
        if let Some(owed) = self.owed.get_mut(&id) {
            owed.cost = cost;
        }
        self.queues.get_mut(&id)?.row.cost = cost;
        self.row_to_keep(id)
    }

    fn row_to_keep(&mut self, id: BackgroundId) -> Option<BackgroundRow> {
        let queue = self.queues.get_mut(&id)?;
        queue.kept_at = boottime();
        Some(queue.row.clone())
    }

    /// Stops all work, which waits for the next daemon. The answer is to be kept.
    pub fn stop(&mut self) -> Vec<BackgroundRow> {
        let Some(carrier) = self.carrier.take() else { return Vec::new() };
        carrier.stop();
        self.queues.values().map(|queue| queue.row.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use crate::Queue;
    use crate::registered::{both_clocks, due_unix_ms};
    use crate::requests::row;
    use crate::testing::{queues, queues_in};
    use minerva_api::v1;
    use minerva_linux_background::Kind;
    use minerva_model::{BackgroundId, BackgroundState, DeviceId, Event, Nanos};

    #[test]
    fn a_deadline_stays_an_instant_of_the_wall_clock_when_that_is_stepped() {
        let mut queues = queues();
        for (id, state) in [(1, BackgroundState::Waiting), (2, BackgroundState::Done)] {
            let request = v1::AddBackgroundRequest { sla_ns: Some(3_600_000_000_000), ..<_>::default() };
            let mut row = row(BackgroundId(id), Kind::Delete, request).expect("it can be meant");
            row.state = state;
            let device = Some(DeviceId { major: 8, minor: 0 });
            let (absent, processors) = (String::new(), String::new());
            queues.queues.insert(row.id, Queue { row, device, absent, kept_at: Nanos::ZERO, processors });
        }
        let (unix_ns, boottime) = both_clocks();
        let mut after = |seconds: i64| queues.deadlines_after_clock_step((unix_ns + seconds * 1_000_000_000, boottime));
        assert_eq!(after(0), []);
        assert_eq!(after(30), [], "it is only kept exact");
        let told = after(600);
        let [Event::BackgroundSet(queue)] = told.as_slice() else { panic!("of the one that is not done: {told:?}") };
        assert_eq!(after(640), []);
        let due_ns = i128::from(due_unix_ms(&queues.queues[&BackgroundId(1)].row)) * 1_000_000;
        let left_ns = due_ns - i128::from(unix_ns) - 600_000_000_000;
        assert_eq!(queue.due.map(|due| i128::from(due.0) - i128::from(boottime.0)), Some(left_ns));
    }

    #[test]
    fn what_a_lost_store_knew_is_ended_and_its_numbers_are_not_used_again() {
        let root = tempfile::tempdir().expect("a directory");
        let left = |kind: &str, number: u32| root.path().join(kind).join(format!("background/b{number}"));
        for directory in [left("state", 1), left("state", 2), left("run", 3)] {
            std::fs::create_dir_all(directory).expect("a directory");
        }
        // By this new work of that number would have been done at once.
        let result = r#"{"is_done":true,"message":"","progress":{}}"#;
        for number in [1, 2] {
            std::fs::write(left("state", number).join("result"), result).expect("a file");
        }
        let mut queues = queues_in(root.path());
        let known = row(BackgroundId(2), Kind::Delete, v1::AddBackgroundRequest::default()).expect("it can be meant");
        assert_eq!(queues.load((vec![known], BackgroundId(2)), |_| true), []);
        assert_eq!(queues.last_id, BackgroundId(3));
        // Until all is done that was said before.
        drop(queues.stop());
        let is_there = [left("state", 1), left("state", 2), left("run", 3)].map(|directory| directory.exists());
        assert_eq!(is_there, [false, true, false]);
    }
}
