//! What waits is registered with the daemon as work that can wait (docs/adr/0034), a debt for each disk, so that it is listed and planned with
//! all other work. In a guest the daemon is the host's, asked through the agent as everything that guests ask, and says when files may move:
//! where nobody answers they wait, because a guest sees nobody but itself.

use minerva_api::client::{Tenant, connect_as_tenant};
use minerva_api::v1;
use minerva_model::DeviceId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// How far it is, is told so often.
const REPORT: Duration = Duration::from_secs(1);
/// How often somebody is looked for where nobody answers.
const LOOK: Duration = Duration::from_secs(5);
/// A first guess of how long a byte takes: what it really takes is measured there.
const NS_PER_BYTE: u64 = 10;

/// What one disk is owed.
#[derive(Clone, Copy, Debug, Default)]
struct Owed {
    waiting_bytes: u64,
    moved_bytes: u64,
    /// As the daemon says, if it does.
    may_work: Option<bool>,
    /// Whose turn it is to ask about it. Who asked about an earlier debt to the same disk may find out only later that it is over.
    generation: u64,
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct DebtLink {
    socket: PathBuf,
    /// How often somebody is looked for where nobody answers.
    look: Duration,
    disks: Arc<Mutex<BTreeMap<DeviceId, Owed>>>,
    generations: Arc<AtomicU64>,
}

impl DebtLink {
    pub(super) fn new(socket: PathBuf) -> Self {
        Self { socket, look: LOOK, disks: Arc::default(), generations: Arc::default() }
    }

    /// What waits for a disk now.
    pub(super) fn owe(&self, disk: DeviceId, bytes: u64) {
        let mut disks = self.disks();
        if let Some(owed) = disks.get_mut(&disk) {
            owed.waiting_bytes = bytes;
            return;
        }
        let generation = self.generations.fetch_add(1, Ordering::Relaxed);
        disks.insert(disk, Owed { waiting_bytes: bytes, generation, ..Owed::default() });
        let link = self.clone();
        // Without it nobody knows of it, and in a guest it waits.
        let _ = thread::Builder::new().name("debts".to_owned()).spawn(move || link.ask_about(disk, generation));
    }

    /// Nothing waits for a disk any more: it is not asked about.
    pub(super) fn owe_nothing(&self, disk: DeviceId) {
        self.disks().remove(&disk);
    }

    /// So much was moved there.
    pub(super) fn moved(&self, disk: DeviceId, bytes: u64) {
        if let Some(owed) = self.disks().get_mut(&disk) {
            owed.moved_bytes += bytes;
        }
    }

    /// Whether files may move to it now; nothing where nobody says.
    pub(super) fn may_work(&self, disk: DeviceId) -> Option<bool> {
        self.disks().get(&disk)?.may_work
    }

    fn disks(&self) -> MutexGuard<'_, BTreeMap<DeviceId, Owed>> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn owed(&self, disk: DeviceId, generation: u64) -> Option<Owed> {
        self.disks().get(&disk).copied().filter(|owed| owed.generation == generation)
    }

    /// Whether it is still this one's turn to ask.
    fn told(&self, disk: DeviceId, generation: u64, may_work: Option<bool>) -> bool {
        match self.disks().get_mut(&disk).filter(|owed| owed.generation == generation) {
            Some(owed) => {
                owed.may_work = may_work;
                true
            }
            None => false,
        }
    }

    /// Until nothing waits for the disk, or somebody else asks about it: of two the daemon would hear the later one only, by turns.
    fn ask_about(&self, disk: DeviceId, generation: u64) {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
        while self.owed(disk, generation).is_some() {
            let _ = runtime.block_on(self.hold(disk, generation, &self.socket));
            if self.told(disk, generation, None) {
                thread::sleep(self.look);
            }
        }
    }

    /// As long as whoever listens is there.
    async fn hold(&self, disk: DeviceId, generation: u64, socket: &Path) -> anyhow::Result<()> {
        let mut server: Tenant = connect_as_tenant(socket).await?;
        let Some(owed) = self.owed(disk, generation) else { return Ok(()) };
        let mut answers = server.hold_debt(request(disk, owed)).await?.into_inner();
        let mut registration = 0;
        loop {
            match tokio::time::timeout(REPORT, answers.message()).await {
                Ok(Ok(Some(answer))) => {
                    registration = answer.registration;
                    if !self.told(disk, generation, Some(answer.may_work)) {
                        return Ok(());
                    }
                }
                Ok(Ok(None)) => return Ok(()),
                Ok(Err(status)) => return Err(status.into()),
                Err(_) => {
                    let Some(owed) = self.owed(disk, generation) else { return Ok(()) };
                    server.report_debt(report(disk, owed, registration)).await?;
                }
            }
        }
    }
}

fn name(disk: DeviceId) -> String {
    format!("minerva-fs-{}-{}", disk.major, disk.minor)
}

fn request(disk: DeviceId, owed: Owed) -> v1::HoldDebtRequest {
    let v1::ReportDebtRequest { name, service_ns, done_ns, tied_bytes, .. } = report(disk, owed, 0);
    let working_device = disk.to_string();
    v1::HoldDebtRequest { name, service_ns, done_ns, tied_bytes, working_device, ..v1::HoldDebtRequest::default() }
}

fn report(disk: DeviceId, owed: Owed, registration: u64) -> v1::ReportDebtRequest {
    let ns = |bytes: u64| bytes.saturating_mul(NS_PER_BYTE);
    v1::ReportDebtRequest {
        name: name(disk),
        service_ns: ns(owed.waiting_bytes.saturating_add(owed.moved_bytes)).max(1),
        done_ns: ns(owed.moved_bytes),
        tied_bytes: owed.waiting_bytes,
        registration,
    }
}

#[cfg(test)]
mod tests;
