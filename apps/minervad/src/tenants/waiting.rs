//! The slice loop takes the requests that wait, and carries them out together (`together`).

use crate::command::Command;
use crate::slice_loop::Driver;
use minerva_tenant_server::request::Call;
use std::sync::mpsc::Receiver;

/// Requests that are carried out together at most, so that no slice begins much later for them.
const TOGETHER_MAX: usize = 256;

impl Driver {
    /// Does what is asked, and what waits behind it. The answer is why to stop, if that is among it.
    pub(crate) fn obey_waiting(&mut self, first: Command, commands: &Receiver<Command>) -> Option<&'static str> {
        self.together.is_under_way = true;
        let waiting = std::iter::once(first).chain(std::iter::from_fn(|| commands.try_recv().ok()));
        let mut stop = None;
        for command in waiting.take(TOGETHER_MAX) {
            self.metrics.commands_waiting.dec();
            match command {
                Command::Stop(why) => {
                    stop = Some(why);
                    break;
                }
                Command::Tenant(request) => {
                    let can_wait = matches!(request.call, Call::SetLevel { .. } | Call::SetSchedule { .. });
                    if !can_wait {
                        self.write_deferred();
                    }
                    self.together.defers_knobs = can_wait;
                    self.asked(request);
                    self.together.defers_knobs = false;
                }
                other => {
                    self.write_deferred();
                    self.obey(other);
                }
            }
        }
        self.write_deferred();
        self.together.is_under_way = false;
        // Also what was asked for here goes to the store.
        self.take_acknowledgements();
        self.count_journal_syncs();
        stop
    }

    fn write_deferred(&mut self) {
        let knobs = std::mem::take(&mut self.together.knobs);
        if !knobs.is_empty() {
            let response = self.carry_out(knobs);
            self.settle(response, None);
        }
    }

    /// Hands what is to be committed to the store's thread, unless more is to come at once.
    pub(crate) fn send_commits(&mut self) {
        if !self.together.is_under_way() {
            self.memory.send_commits();
        }
    }
}
