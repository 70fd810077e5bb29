//! What clients and signals ask of the loop.

use crate::command::Command;
use crate::metrics::OutcomeLabel;
use crate::operator::status;
use crate::overwriters::Overwriter;
use crate::slice_loop::Driver;
use minerva_api::v1;
use minerva_config::Config;
use minerva_model::{Event, FindingKind};
use minerva_operator_server::call::OperatorCall;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

impl Driver {
    /// Does what is asked. Whoever asked may have gone before the answer.
    pub(crate) fn obey(&mut self, command: Command) {
        match command {
            Command::Stop(_) => {}
            Command::Reload => drop(self.reload()),
            Command::Operator(call) => self.answer(call),
            // These come with what else waits: `obey_waiting`.
            Command::Tenant(request) => self.asked(request),
            Command::Background(kept) => self.background_kept(kept),
            // What came of them is taken after each command.
            Command::StoreAnswered => {}
        }
    }

    /// Does what an operator asks.
    fn answer(&mut self, call: OperatorCall) {
        match call {
            OperatorCall::Reload(answer) => drop(answer.send(self.reload())),
            OperatorCall::Status(answer) => drop(answer.send(self.status())),
            OperatorCall::LoadForecast(of, ahead, answer) => drop(answer.send(self.load_forecast(&of, ahead))),
            OperatorCall::Forecast(tenant, answer) => drop(answer.send(self.forecast(&tenant))),
            OperatorCall::Record(client, answer) => self.begin_recording(client, answer),
            OperatorCall::Jobs(answer) => drop(answer.send(self.show_jobs())),
            OperatorCall::EndRecord(number) => self.recording.end(number),
            OperatorCall::Register(request, answer) => drop(answer.send(self.register(request))),
            OperatorCall::Background(call) => self.background_asked(call),
            OperatorCall::Adjust(request, answer) => self.adjust(&request, answer),
            OperatorCall::Migration(request, answer) => self.migration_reported(&request, answer),
        }
    }

    /// Reads the operator's file again; a bad one changes nothing. The answer says which is in force, or what is wrong.
    pub(crate) fn reload(&mut self) -> Result<String, String> {
        self.manager.reloading();
        let result = self.file.reload().map(|()| self.configure());
        let outcome = match &result {
            Ok(message) => {
                tracing::info!("{message}");
                "accepted"
            }
            Err(message) => {
                tracing::error!("the operator's file was refused, the one before it stays in force:\n{message}");
                "refused"
            }
        };
        self.metrics.reloads.get_or_create(&OutcomeLabel { outcome }).inc();
        self.manager.ready(outcome);
        result
    }

    /// Puts new settings in force. The answer says so, and what is not.
    fn configure(&mut self) -> String {
        for warning in &self.file.config.warnings {
            tracing::warn!("{warning}");
        }
        self.level.set(self.file.config.daemon.log.level);
        let Config { participation, engine, .. } = &self.file.config;
        let not_taken = self.parts.live_settings.set(participation, engine.observe.slice, self.progress.slices);
        self.watch.apply_rules(&self.file.config);
        self.watch.tell_hidden_again();
        self.findings.reloaded();
        // Also when they are the same: whoever asks for a reload may have ended a fight over a knob, which is then ours again.
        self.feed(Event::Configured(Box::new(self.file.config.engine.clone())));
        self.find_unknown_disks();
        let path = self.file.path_in_force();
        let in_force = if path.is_empty() {
            "there is no file, so that the defaults hold".to_owned()
        } else {
            format!("{path} is in force")
        };
        let mut answer = format!("{in_force}, generation {}", self.file.generation);
        for but in self.outweighed().into_iter().chain(self.takes_a_restart()).chain(not_taken) {
            answer.push_str("; ");
            answer.push_str(&but);
        }
        answer
    }

    /// What of the file the command line outweighs.
    fn outweighed(&self) -> Option<String> {
        let (mode, of_file) = self.file.outweighed_mode()?;
        let (mode, of_file) = (status::mode(mode), status::mode(of_file));
        Some(format!("the command line's `--mode {mode}` outweighs mode = \"{of_file}\", and so the mode is {mode}"))
    }

    /// What of the file differs from what the daemon started with and stays as it was.
    fn takes_a_restart(&self) -> Option<String> {
        let (started, now) = (&self.file.started, &self.file.config);
        let mut daemon = started.daemon.clone();
        daemon.log.level = now.daemon.log.level;
        let is_same = daemon == now.daemon
            && started.named == now.named
            && started.participation.is_same_server(&now.participation);
        let text = "changes of [daemon], [named], [participation] but for its limits, identities and certificates, of the log's \
                    format, and a new vsock_socket take a restart";
        (!is_same).then(|| text.to_owned())
    }

    /// Begins a recording where the engine is: nothing is written to the kernel, and nobody is told anything.
    fn begin_recording(&mut self, client: Sender<Vec<u8>>, answer: oneshot::Sender<Result<u64, String>>) {
        let outcome = self.recording.begin(client, || self.engine.snapshot());
        match &outcome {
            Ok(_) => tracing::info!("a recording begins"),
            Err(message) => tracing::info!("a recording was refused: {message}"),
        }
        // Whoever asked may have gone.
        drop(answer.send(outcome));
    }

    fn register(&mut self, request: v1::RegisterRequest) -> Result<v1::RegisterResponse, String> {
        let ours = [(Some(std::process::id()), "Minerva itself"), (self.knobs.guard_pid(), "Minerva's guard")];
        if let Some((_, who)) = ours.iter().find(|(pid, _)| *pid == Some(request.pid)) {
            return Err(format!("{} is {who}, which stays where it is", request.pid));
        }
        let name = if request.name.is_empty() { format!("pid-{}", request.pid) } else { request.name };
        let cgroup = self
            .watch
            .register(&name, request.pid, request.weight_percent)
            .map_err(|error| format!("{:#}", anyhow::Error::new(error)))?;
        tracing::info!(name, pid = request.pid, weight = request.weight_percent, "a named tenant");
        self.watch.apply_rules(&self.file.config);
        Ok(v1::RegisterResponse { name, cgroup })
    }

    /// Names those who wrote watched knobs since the last slice, each process once a knob.
    pub(crate) fn name_overwriters(&mut self) {
        for Overwriter { pid, message } in self.knobs.take_overwriters() {
            tracing::warn!(kind = FindingKind::Overwritten.as_str(), pid, "{message}");
            self.findings.show(FindingKind::Overwritten, true, (None, None), message);
        }
    }
}
