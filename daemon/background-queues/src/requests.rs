//! What operators ask of background work, judged. What is to last is in the store before it is in force.

use crate::Queues;
use crate::disk_of::{disk_of, mounts};
use crate::registered::{SLA_DEFAULT_MS, keep_identity, spec};
use minerva_api::v1;
use minerva_clock::unix_ns;
use minerva_linux_background::{Automounts, Kind, Seen, USED_PERCENT_MAX_DEFAULT};
use minerva_model::{BackgroundCost, BackgroundId, BackgroundState, DeviceId};
use minerva_store::{BackgroundFound, BackgroundRow};
use std::path::Path;

const NAME_BYTES_MAX: usize = 64;
/// More than anybody looks through.
const QUEUES_MAX: usize = 1_000;
const NANOS_PER_MS: u64 = 1_000_000;

/// What the store is to do, before [`Queues::set`] or [`Queues::remove`].
#[derive(Debug)]
pub enum Change {
    /// Keep this, which is on this disk.
    Keep(Box<BackgroundRow>, Option<DeviceId>),
    /// Forget this.
    Forget(BackgroundId),
}

impl Queues {
    /// It is known what there is: before the store was read, whatever is not found may be in it. Errors: a sentence.
    pub fn check_loaded(&self) -> Result<(), String> {
        let why = "the store has not been read yet, so nobody knows what background work there is; try again in a few seconds, and see \
                   `minerva-ctl status` if that does not help";
        self.is_loaded.then_some(()).ok_or_else(|| why.to_owned())
    }

    /// There may be one more queue, of this name.
    fn judge_room(&self, name: &str) -> Result<(), String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(plain) {
            return Err(format!("'{name}' is no name: use 1 to {NAME_BYTES_MAX} letters, digits, '.', '_' or '-'"));
        }
        if !self.is_loaded {
            return Err("the store cannot be read, so nothing could be kept; see `minerva-ctl status`".to_owned());
        }
        if self.named(name).is_some() {
            return Err(format!("there is background work called {name} already; remove it, or take another name"));
        }
        if self.queues.len() >= QUEUES_MAX {
            return Err(format!("there are {QUEUES_MAX} queues already: remove those that are done"));
        }
        Ok(())
    }

    /// A new queue, if it can be carried out here, and its disk. `is_watched` says of a disk whether it is looked at. Errors: a sentence.
    pub fn judge(
        &mut self,
        request: v1::AddBackgroundRequest,
        is_watched: impl Fn(DeviceId) -> bool,
    ) -> Result<(BackgroundRow, DeviceId), String> {
        self.judge_room(&request.name)?;
        let kind = Kind::from_word(&request.kind)
            .ok_or_else(|| format!("'{}' is no kind: use {}", request.kind, Kind::ALL.map(Kind::as_str).join(", ")))?;
        let seen = request.seen;
        let mut row = row(BackgroundId(self.last_id.0 + 1), kind, request)?;
        Automounts::read(&self.roots.proc).check(kind, Path::new(&row.path)).map_err(|error| error.in_full())?;
        let identity = kind.identity(Path::new(&row.path), &self.roots.sys).map_err(|error| error.in_full())?;
        if seen.is_some_and(|seen| !is_what_was_seen(identity.seen(), seen)) {
            let path = &row.path;
            return Err(format!("the daemon finds another at {path}: whoever asks has mounts or a root of its own"));
        }
        keep_identity(&mut row, &identity);
        let work = spec(&row).ok_or("its kind is not known here")?;
        work.check(&self.roots.sys).map_err(|error| error.in_full())?;
        let device = disk_of(&self.roots, &mounts(&self.roots)?, kind, &work.path)?;
        if !is_watched(device) {
            let path = &row.path;
            return Err(format!(
                "{path} is on the disk {device}, which Minerva does not watch: `daemon.devices_only` leaves it out, or it came just now, then try again"
            ));
        }
        self.last_id = row.id;
        Ok((row, device))
    }

    /// What pausing, resuming or removing a queue means. Errors: a sentence.
    pub fn change(&mut self, request: &v1::ChangeBackgroundRequest) -> Result<Change, String> {
        self.check_loaded()?;
        let queue = self.named(&request.name);
        let queue = queue.ok_or_else(|| match self.owed.values().find(|owed| owed.owner.name == request.name) {
            Some(owed) => format!("{} is what {} owes: only its program ends it", request.name, owed.owner.tenant_name),
            None => format!("there is no background work called {}", request.name),
        })?;
        let (mut row, device) = (queue.row.clone(), queue.device);
        match request.change() {
            v1::BackgroundChange::Pause => {
                if self.must_go_on(&row) {
                    let name = &row.name;
                    return Err(format!(
                        "{name} has begun and must not be stopped (--never-stop), so it cannot be paused: it goes on to its end, or \
                         until `minerva-ctl background remove {name}` ends it"
                    ));
                }
                row.is_paused = true;
            }
            v1::BackgroundChange::Resume => {
                row.is_paused = false;
                if row.state == BackgroundState::Failed {
                    (row.state, row.message) = (BackgroundState::Waiting, String::new());
                    // Also if nothing was carried out since the daemon started: the end of its last run is kept.
                    if let Some(carrier) = self.carry() {
                        carrier.begin_again(row.id);
                    }
                }
            }
            v1::BackgroundChange::Remove => return Ok(Change::Forget(row.id)),
            v1::BackgroundChange::Unspecified => return Err("say whether to pause, resume or remove it".to_owned()),
        }
        Ok(Change::Keep(Box::new(row), device))
    }

    /// It runs, and nothing stops it: others may wait for what it holds.
    fn must_go_on(&self, row: &BackgroundRow) -> bool {
        let has_begun = || row.state == BackgroundState::Running || self.settings.has_begun(row.id);
        row.never_stop && !row.state.is_over() && has_begun()
    }
}

/// What the daemon finds at a path is what the caller did.
fn is_what_was_seen(found: Seen, seen: v1::PathSeen) -> bool {
    let v1::PathSeen { device, inode, born_ns } = seen;
    found == Seen { device, inode, born_ns }
}

/// What is to be kept of a request that can be meant. Errors: a sentence.
pub(crate) fn row(id: BackgroundId, kind: Kind, request: v1::AddBackgroundRequest) -> Result<BackgroundRow, String> {
    let v1::AddBackgroundRequest { name, path, command, sla_ns, priority, never_stop, used_percent_max, .. } = request;
    // Deadlines are kept in milliseconds.
    if sla_ns.is_some_and(|ns| ns < NANOS_PER_MS) {
        return Err("the deadline is now: give it some time with --sla".to_owned());
    }
    let priority = u8::try_from(priority).map_err(|_| "the priority is at most 255".to_owned())?;
    if never_stop && kind != Kind::Command {
        return Err(format!("{} can always be stopped: leave out --never-stop", kind.as_str()));
    }
    if used_percent_max.is_some() && kind != Kind::BtrfsBalance {
        return Err(format!("{} has no chunks: leave out --used-percent-max", kind.as_str()));
    }
    // Else what was meant to run would be taken for what is to be deleted, or not run at all.
    if !command.is_empty() && kind != Kind::Command {
        return Err(format!("{} takes no command: leave out --kind, or what stands after --", kind.as_str()));
    }
    let used_percent_max = u8::try_from(used_percent_max.unwrap_or(USED_PERCENT_MAX_DEFAULT.into()));
    let used_percent_max = used_percent_max.ok().filter(|percent| *percent <= 100);
    let now_ms = unix_ns() / NANOS_PER_MS as i64;
    let sla_ms = sla_ns.map_or(SLA_DEFAULT_MS, |ns| i64::try_from(ns / NANOS_PER_MS).unwrap_or(i64::MAX));
    Ok(BackgroundRow {
        id,
        name,
        kind: kind.as_str().to_owned(),
        path,
        // Looked at once the rest is known to be meant.
        identity: (0, 0),
        lasting_identity: None,
        parent_inode: None,
        command,
        never_stop,
        priority,
        added_unix_ms: now_ms,
        // By the wall clock, which a reboot does not begin anew.
        due_unix_ms: Some(now_ms.saturating_add(sla_ms)),
        is_paused: false,
        state: BackgroundState::Waiting,
        message: String::new(),
        done_items: 0.0,
        total_items: None,
        position: 0,
        found: BackgroundFound::default(),
        ran_ms: 0,
        used_percent_max: used_percent_max.ok_or("chunks are used by at most 100 percent")?,
        cost: BackgroundCost { seconds_per_item: kind.seconds_per_item(), measured_seconds: 0.0, slow_down: None },
    })
}

#[cfg(test)]
mod tests {
    use super::row;
    use crate::Queue;
    use crate::testing::queues_in;
    use minerva_api::v1;
    use minerva_linux_background::Kind;
    use minerva_model::{BackgroundId, BackgroundState, Nanos};

    #[test]
    fn a_command_that_must_not_be_stopped_is_paused_only_before_it_has_begun() {
        let root = tempfile::tempdir().expect("a directory");
        let mut queues = queues_in(root.path());
        queues.is_loaded = true;
        for (id, never_stop) in [(1, true), (2, false)] {
            let request = v1::AddBackgroundRequest { name: format!("b{id}"), never_stop, ..<_>::default() };
            let row = row(BackgroundId(id), Kind::Command, request).expect("it can be meant");
            let (absent, processors) = (String::new(), String::new());
            queues.queues.insert(row.id, Queue { row, device: None, absent, kept_at: Nanos::ZERO, processors });
        }
        let pause = |queues: &mut crate::Queues, name: &str| {
            let change = v1::BackgroundChange::Pause.into();
            queues.change(&v1::ChangeBackgroundRequest { name: name.to_owned(), change }).map(drop)
        };
        assert_eq!(pause(&mut queues, "b1"), Ok(()), "its worker is not let run");
        // What a worker writes down before it begins the command.
        for name in ["b1", "b2"] {
            let state = root.path().join("state/background").join(name);
            std::fs::create_dir_all(&state).expect("a directory");
            std::fs::write(state.join("begun"), "null").expect("a file");
        }
        let why = pause(&mut queues, "b1").expect_err("it goes on");
        assert!(why.contains("b1 has begun and must not be stopped") && why.contains("remove b1"), "{why}");
        assert_eq!(pause(&mut queues, "b2"), Ok(()), "it can be stopped");
        queues.queues.get_mut(&BackgroundId(1)).expect("it is there").row.state = BackgroundState::Failed;
        assert_eq!(pause(&mut queues, "b1"), Ok(()), "it is over");
    }

    #[test]
    fn before_the_store_was_read_nobody_is_told_that_there_is_no_such_work() {
        let root = tempfile::tempdir().expect("a directory");
        let mut queues = queues_in(root.path());
        let change = |queues: &mut crate::Queues| {
            let change = v1::BackgroundChange::Remove.into();
            queues
                .change(&v1::ChangeBackgroundRequest { name: "rm-1-1".to_owned(), change })
                .expect_err("none is there")
        };
        let why = queues.check_loaded().expect_err("it was not read");
        assert_eq!(change(&mut queues), why);
        assert_eq!(queues.load((Vec::new(), BackgroundId(0)), |_| true), []);
        assert_eq!(queues.check_loaded(), Ok(()));
        assert_eq!(change(&mut queues), "there is no background work called rm-1-1");
    }
}
