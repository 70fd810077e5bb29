//! The thread that carries background work out. It looks for others at a disk far more often than there are slices.

use anyhow::Context;
use minerva_clock::boottime;
use minerva_linux_background::{Before, Executor, QueueStatus, Settings, Spec, Told};
use minerva_model::{BackgroundId, BackgroundOrder, DeviceId};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Before ordinary processes: whoever comes back to the disk waits for this thread.
const NICE: i32 = -15;
/// How often it is looked how workers are while none may run.
const REST: Duration = Duration::from_millis(250);

/// What the thread is told.
enum Word {
    Add(Box<Spec>, DeviceId, Before),
    Tell(Told),
    Order(BackgroundOrder),
    BeginAgain(BackgroundId),
    Remove(BackgroundId),
    Report,
    Stop,
}

/// The loop's end.
pub(crate) struct Carrier {
    words: Sender<Word>,
    statuses: Receiver<Vec<QueueStatus>>,
    thread: JoinHandle<()>,
}

impl Carrier {
    /// Starts the thread.
    pub(crate) fn start(settings: Settings) -> anyhow::Result<Self> {
        let (words, heard) = channel();
        let (tell, statuses) = channel();
        let thread = std::thread::Builder::new()
            .name("background".to_owned())
            .spawn(move || {
                if let Err(error) = rustix::process::setpriority_process(None, NICE) {
                    tracing::info!(%error, "the thread for background work runs at ordinary priority, ignoring");
                }
                carry(&mut Executor::new(settings), &heard, &tell);
            })
            .context("failed to start the thread for background work")?;
        Ok(Self { words, statuses, thread })
    }

    /// A queue, with what was known of it before.
    pub(crate) fn add(&self, spec: Spec, device: DeviceId, before: Before) {
        self.say(Word::Add(Box::new(spec), device, before));
    }

    /// What a tenant's program does by itself.
    pub(crate) fn tell(&self, told: Told) {
        self.say(Word::Tell(told));
    }

    pub(crate) fn order(&self, order: BackgroundOrder) {
        self.say(Word::Order(order));
    }

    pub(crate) fn begin_again(&self, id: BackgroundId) {
        self.say(Word::BeginAgain(id));
    }

    pub(crate) fn remove(&self, id: BackgroundId) {
        self.say(Word::Remove(id));
    }

    /// How queues are, as asked for in the slice before; and asks again. Never waits.
    pub(crate) fn statuses(&self) -> Vec<QueueStatus> {
        let told = self.statuses.try_iter().flatten().collect();
        self.say(Word::Report);
        told
    }

    /// Stops all work and ends the thread.
    pub(crate) fn stop(self) {
        self.say(Word::Stop);
        if self.thread.join().is_err() {
            tracing::error!("the thread for background work had panicked; its work is stopped by the guard");
        }
    }

    fn say(&self, word: Word) {
        // It ends only when it is told to, or by a panic, which was logged.
        let _ = self.words.send(word);
    }
}

fn carry(executor: &mut Executor, words: &Receiver<Word>, tell: &Sender<Vec<QueueStatus>>) {
    loop {
        let wait = executor.step(boottime()).unwrap_or(REST);
        let word = match words.recv_timeout(wait) {
            Ok(word) => word,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return stop(executor),
        };
        match word {
            Word::Add(spec, device, before) => executor.add(boottime(), *spec, device, before),
            Word::Tell(told) => executor.tell(boottime(), told),
            Word::Order(order) => executor.order(&order),
            Word::BeginAgain(id) => executor.begin_again(id),
            Word::Remove(id) => executor.remove(id),
            // The loop may have ended.
            Word::Report => drop(tell.send(executor.statuses(boottime()))),
            Word::Stop => return stop(executor),
        }
    }
}

fn stop(executor: &mut Executor) {
    for error in executor.stop() {
        tracing::warn!("background work was not stopped in full: {}", error.in_full());
    }
}
