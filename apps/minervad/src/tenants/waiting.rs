//! The slice loop takes the requests that wait, and carries them out together (`together`).

use crate::command::Command;
use crate::slice_loop::Driver;
use minerva_tenant_server::request::Call;
use std::sync::mpsc::Receiver;

/// Requests that are carried out together at most, so that no slice begins much later for them.
const TOGETHER_MAX: usize = 256;

/// A command and what waits behind it, up to the first that an operator's tool sent: to answer that may take long, and the loop looks at
/// the clock before it takes more.
fn waiting(first: Command, commands: &Receiver<Command>) -> impl Iterator<Item = Command> {
    let mut first = Some(first);
    let mut has_operators = false;
    let next = move || {
        if has_operators {
            return None;
        }
        let command = first.take().or_else(|| commands.try_recv().ok())?;
        has_operators = matches!(command, Command::Operator(_));
        Some(command)
    };
    std::iter::from_fn(next).take(TOGETHER_MAX)
}

impl Driver {
    /// Does what is asked, and what waits behind it. The answer is why to stop, if that is among it.
    pub(crate) fn obey_waiting(&mut self, first: Command, commands: &Receiver<Command>) -> Option<&'static str> {
        self.together.is_under_way = true;
        let mut stop = None;
        for command in waiting(first, commands) {
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

    /// Does what found no room in the queue.
    pub(crate) fn obey_late(&mut self) {
        for command in self.commands.take_late() {
            self.obey(command);
        }
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

#[cfg(test)]
mod tests {
    use super::{TOGETHER_MAX, waiting};
    use crate::command::Command;
    use minerva_operator_server::call::OperatorCall;
    use std::sync::mpsc::sync_channel;

    #[test]
    fn the_loop_looks_at_the_clock_after_each_call_of_an_operators_tool_and_loses_none() {
        let (queue, commands) = sync_channel(2 * TOGETHER_MAX);
        let send = |command| queue.send(command).expect("it has room");
        (0..2).for_each(|_| send(Command::Reload));
        (0..3).for_each(|number| send(Command::Operator(OperatorCall::EndRecord(number))));
        (0..TOGETHER_MAX + 1).for_each(|_| send(Command::StoreAnswered));
        let mut counts = Vec::new();
        while let Ok(first) = commands.try_recv() {
            counts.push(waiting(first, &commands).count());
        }
        assert_eq!(counts, [3, 1, 1, TOGETHER_MAX, 1]);
    }
}
