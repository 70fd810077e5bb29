//! What operators ask of background work. What is to last is in the store before it is answered.

use super::disk_of::disk_of;
use super::registered::spec;
use super::{Queue, registered};
use crate::clock::{boottime, unix_ns};
use crate::command::{BackgroundKept, Command};
use crate::slice_loop::Driver;
use minerva_api::v1;
use minerva_linux_background::{FileIdentity, Kind, Spec};
use minerva_model::{BackgroundCost, BackgroundId, BackgroundState, DeviceId, Event, Nanos};
use minerva_operator_server::call::{BackgroundAnswer, BackgroundCall};
use minerva_store::BackgroundRow;
use std::path::Path;

const NAME_BYTES_MAX: usize = 64;
/// More than anybody looks through.
const QUEUES_MAX: usize = 1_000;
const NANOS_PER_MS: u64 = 1_000_000;

impl Driver {
    /// Does what is asked.
    pub(crate) fn background_asked(&mut self, call: BackgroundCall) {
        match call {
            BackgroundCall::Add(request, answer) => match self.judge(request) {
                Ok((row, device)) => self.keep_then(row, Some(device), answer),
                // Whoever asked may have gone; the same holds below.
                Err(why) => drop(answer.send(Err(why))),
            },
            BackgroundCall::Change(request, answer) => self.change(&request, answer),
            BackgroundCall::Show(request, answer) => drop(answer.send(self.show_background(&request))),
        }
    }

    /// Puts in force what the store has, and answers.
    pub(crate) fn background_kept(&mut self, kept: BackgroundKept) {
        match kept {
            BackgroundKept::Kept { row, device, kept, answer } => {
                let outcome = kept.map(|()| self.set_queue(*row, device));
                drop(answer.send(outcome));
            }
            BackgroundKept::Forgotten { id, forgotten, answer } => {
                let outcome = forgotten.map(|()| self.remove_queue(id));
                drop(answer.send(outcome));
            }
        }
    }

    /// There may be one more queue, of this name.
    fn judge_room(&self, name: &str) -> Result<(), String> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(plain) {
            return Err(format!("'{name}' is no name: use 1 to {NAME_BYTES_MAX} letters, digits, '.', '_' or '-'"));
        }
        if !self.background.is_loaded {
            return Err("the store cannot be read, so nothing could be kept; see `minerva-ctl status`".to_owned());
        }
        if self.background.named(name).is_some() {
            return Err(format!("there is background work called {name} already; remove it, or take another name"));
        }
        if self.background.queues.len() >= QUEUES_MAX {
            return Err(format!("there are {QUEUES_MAX} queues already: remove those that are done"));
        }
        Ok(())
    }

    /// A new queue, if it can be carried out here.
    fn judge(&mut self, request: v1::AddBackgroundRequest) -> Result<(BackgroundRow, DeviceId), String> {
        let v1::AddBackgroundRequest { name, kind, path, command, sla_ns, priority, never_stop } = request;
        self.judge_room(&name)?;
        let kind = Kind::from_word(&kind)
            .ok_or_else(|| format!("'{kind}' is no kind: use {}", Kind::ALL.map(Kind::as_str).join(", ")))?;
        if sla_ns == Some(0) {
            return Err("the deadline is now: give it some time with --sla".to_owned());
        }
        let priority = u8::try_from(priority).map_err(|_| "the priority is at most 255".to_owned())?;
        if never_stop && kind != Kind::Command {
            return Err(format!("{} can always be stopped: leave out --never-stop", kind.as_str()));
        }
        let id = BackgroundId(self.background.last_id.0 + 1);
        let place = Path::new(&path);
        let identity = FileIdentity::of(place).map_err(|error| error.in_full())?;
        let work = Spec { id, name, kind, path: place.into(), identity, command, never_stop, position: 0 };
        work.check(&self.background.roots.sys).map_err(|error| error.in_full())?;
        let device = disk_of(&self.background.roots, kind, place)?;
        if !self.devices.contains_key(&device) {
            return Err(format!("{path} is on the disk {device}, which Minerva does not watch (daemon.devices_only)"));
        }
        self.background.last_id = id;
        let now_ms = unix_ns() / NANOS_PER_MS as i64;
        let sla_ms = sla_ns.map(|ns| i64::try_from(ns / NANOS_PER_MS).unwrap_or(i64::MAX));
        let row = BackgroundRow {
            id,
            name: work.name,
            kind: kind.as_str().to_owned(),
            path,
            identity: (identity.device, identity.inode),
            command: work.command,
            never_stop,
            priority,
            added_unix_ms: now_ms,
            due_unix_ms: sla_ms.map(|sla| now_ms.saturating_add(sla)),
            is_paused: false,
            state: BackgroundState::Waiting,
            message: String::new(),
            done_items: 0.0,
            total_items: None,
            position: 0,
            ran_ms: 0,
            cost: BackgroundCost { seconds_per_item: kind.seconds_per_item(), measured_seconds: 0.0, slow_down: None },
        };
        Ok((row, device))
    }

    fn change(&mut self, request: &v1::ChangeBackgroundRequest, answer: BackgroundAnswer) {
        let Some(queue) = self.background.named(&request.name) else {
            return drop(answer.send(Err(format!("there is no background work called {}", request.name))));
        };
        let (mut row, device) = (queue.row.clone(), queue.device);
        match request.change() {
            v1::BackgroundChange::Pause => row.is_paused = true,
            v1::BackgroundChange::Resume => {
                row.is_paused = false;
                if row.state == BackgroundState::Failed {
                    (row.state, row.message) = (BackgroundState::Waiting, String::new());
                    if let Some(carrier) = &self.background.carrier {
                        carrier.begin_again(row.id);
                    }
                }
            }
            v1::BackgroundChange::Remove => {
                let (id, commands) = (row.id, self.commands.clone());
                return self.memory.questions().look_then(
                    move |store| store.forget_background(id),
                    move |forgotten| {
                        let forgotten = BackgroundKept::Forgotten { id, forgotten, answer };
                        // The loop may have ended.
                        let _ = commands.send(Command::Background(forgotten));
                    },
                );
            }
            v1::BackgroundChange::Unspecified => {
                return drop(answer.send(Err("say whether to pause, resume or remove it".to_owned())));
            }
        }
        self.keep_then(row, device, answer);
    }

    /// Keeps a queue, and then puts it in force.
    fn keep_then(&self, row: BackgroundRow, device: Option<DeviceId>, answer: BackgroundAnswer) {
        let (kept_row, commands) = (row.clone(), self.commands.clone());
        self.memory.questions().look_then(
            move |store| store.keep_background(&kept_row),
            move |kept| {
                let kept = BackgroundKept::Kept { row: Box::new(row), device, kept, answer };
                // The loop may have ended.
                let _ = commands.send(Command::Background(kept));
            },
        );
    }

    /// Puts a queue in force, new or changed.
    pub(super) fn set_queue(&mut self, row: BackgroundRow, device: Option<DeviceId>) -> v1::BackgroundQueue {
        let id = row.id;
        let work = spec(&row);
        let is_new = !self.background.queues.contains_key(&id);
        self.background.queues.insert(id, Queue { row, device, kept_at: boottime() });
        let row = &self.background.queues[&id].row;
        if let (Some(work), Some(device)) = (work, device)
            && row.state != BackgroundState::Done
        {
            let cgroup = self.background.settings.cgroup(id);
            let queue = registered::queue(row, &work, device, cgroup);
            let ran = Nanos::from_millis(row.ran_ms);
            if self.background.carrier.is_none() {
                match super::Carrier::start(self.background.settings.clone()) {
                    Ok(carrier) => self.background.carrier = Some(carrier),
                    Err(error) => tracing::error!("no background work is carried out: {error:#}"),
                }
            }
            if let Some(carrier) = self.background.carrier.as_ref().filter(|_| is_new) {
                carrier.add(work, device, ran);
            }
            self.feed(Event::BackgroundSet(Box::new(queue)));
        }
        self.shown_queue(id)
    }

    fn remove_queue(&mut self, id: BackgroundId) -> v1::BackgroundQueue {
        let shown = self.shown_queue(id);
        if self.background.queues.remove(&id).is_some() {
            if let Some(carrier) = &self.background.carrier {
                carrier.remove(id);
            }
            self.feed(Event::BackgroundGone(id));
        }
        shown
    }
}
