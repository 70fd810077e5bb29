//! What the daemon says of the disks, slice by slice: who uses them, and who is expected to. Where there is none the disks' own counters
//! have to do. After each slice the daemon is told what was moved in it.

use super::debts::DebtLink;
use super::reports::Reports;
use minerva_api::client::Operator;
use minerva_api::v1;
use minerva_decide::ToldBy;
use minerva_model::DeviceId;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What is older says nothing of now.
const FRESH: Duration = Duration::from_secs(3);
/// How often a daemon is looked for where there is none.
const LOOK: Duration = Duration::from_secs(5);
/// How long the answer to a report is waited for, so that what is said of the disks stays fresh meanwhile.
const ANSWER: Duration = Duration::from_secs(1);
/// Where tenants ask the daemon, in the folder of its socket.
const TENANT_SOCKET: &str = "tenant.sock";
/// The horizon of forecasts that is looked at.
const HORIZON: &str = "pattern";

/// What was told of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// Tenants other than this service that actively used it.
    pub(super) contention: u32,
    /// Probability that one of them will within 15 s, in thousandths.
    pub(super) expected_permille: Option<u32>,
}

#[derive(Debug, Default)]
struct Latest {
    at: Option<Instant>,
    disks: BTreeMap<DeviceId, Told>,
}

/// The latest slice of a daemon, as long as it is fresh; in a guest, what the host says.
#[derive(Clone, Debug)]
pub(super) struct DaemonLink {
    latest: Arc<Mutex<Latest>>,
    debts: DebtLink,
    is_guest: bool,
}

impl DaemonLink {
    /// Listens at a socket from now on, and reports there; what waits is registered at that of tenants beside it.
    pub(super) fn start(socket: PathBuf, reports: Arc<Reports>) -> std::io::Result<Self> {
        let debts = DebtLink::new(socket.with_file_name(TENANT_SOCKET));
        let link = Self { latest: Arc::default(), debts, is_guest: false };
        let of_thread = link.clone();
        let work = move || {
            // Without a runtime there is no daemon to be heard.
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else { return };
            loop {
                let _ = runtime.block_on(of_thread.listen(&socket, &reports));
                of_thread.latest().at = None;
                thread::sleep(LOOK);
            }
        };
        thread::Builder::new().name("daemon".to_owned()).spawn(work)?;
        Ok(link)
    }

    /// In a guest, whose host is asked at this socket.
    pub(super) fn of_guest(agent: PathBuf) -> Self {
        Self { latest: Arc::default(), debts: DebtLink::new(agent), is_guest: true }
    }

    /// Whether only the host can say who uses a disk.
    pub(super) fn is_of_guest(&self) -> bool {
        self.is_guest
    }

    /// Who is told what waits.
    pub(super) fn debts(&self) -> &DebtLink {
        &self.debts
    }

    async fn listen(&self, socket: &Path, reports: &Reports) -> anyhow::Result<()> {
        let mut client = minerva_api::client::connect(socket).await?;
        let mut slices = client.watch(v1::WatchRequest {}).await?.into_inner();
        let own = own_groups();
        while let Some(answer) = slices.message().await? {
            let slice = answer.slice.unwrap_or_default();
            let disks =
                slice.devices.iter().filter_map(|device| Some((number(&device.number)?, told(&slice, device, &own))));
            *self.latest() = Latest { at: Some(Instant::now()), disks: disks.collect() };
            report(&mut client, reports).await;
        }
        Ok(())
    }

    /// What was told of a disk in the latest slice.
    pub(super) fn told(&self, disk: DeviceId) -> Option<Told> {
        if self.is_guest {
            let may_work = self.debts.may_work(disk)?;
            return Some(Told { contention: u32::from(!may_work), expected_permille: None });
        }
        let latest = self.latest();
        let is_fresh = latest.at.is_some_and(|at| at.elapsed() < FRESH);
        if is_fresh { latest.disks.get(&disk).copied() } else { None }
    }

    /// Who tells how many use a disk.
    pub(super) fn told_by(&self) -> ToldBy {
        let is_fresh = self.latest().at.is_some_and(|at| at.elapsed() < FRESH);
        if is_fresh { ToldBy::Daemon } else { ToldBy::Counters }
    }

    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends what is due, and takes what was answered. What was not is sent again after a later slice.
async fn report(client: &mut Operator, reports: &Reports) {
    for (key, request) in reports.due() {
        match tokio::time::timeout(ANSWER, client.report_migration(request)).await {
            Ok(Ok(answer)) => reports.answered(&key, answer.get_ref()),
            Ok(Err(status)) => reports.refused(&key, &status),
            Err(_) => return,
        }
    }
}

/// The groups of this process: what is in them is no other's use.
fn own_groups() -> Vec<String> {
    let text = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let paths = text.lines().filter_map(|line| line.splitn(3, ':').nth(2));
    paths.map(|path| path.trim_start_matches('/').to_owned()).filter(|path| !path.is_empty()).collect()
}

fn told(slice: &v1::Slice, device: &v1::Device, own: &[String]) -> Told {
    let mut told = Told::default();
    let mut quiet = 1.0;
    let mut is_foreseen = false;
    for tenant in slice.tenants.iter().filter(|tenant| !own.contains(&tenant.cgroup)) {
        for used in tenant.uses.iter().filter(|used| used.device == device.number) {
            told.contention += u32::from(used.active);
            let foreseen = used.forecasts.iter().filter(|forecast| forecast.horizon == HORIZON && forecast.skill > 0.0);
            for forecast in foreseen {
                is_foreseen = true;
                quiet *= 1.0 - f64::from(forecast.busy_permille.min(1000)) / 1000.0;
            }
        }
    }
    told.expected_permille = is_foreseen.then_some(((1.0 - quiet) * 1000.0) as u32);
    told
}

fn number(text: &str) -> Option<DeviceId> {
    let (major, minor) = text.split_once(':')?;
    Some(DeviceId { major: major.parse().ok()?, minor: minor.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use super::{Told, number, told};
    use minerva_api::v1;
    use minerva_model::DeviceId;

    #[test]
    fn others_are_counted_without_ourselves_and_forecasts_only_with_skill() {
        let forecast = |busy_permille, skill| v1::Forecast {
            horizon: "pattern".to_owned(),
            busy_permille,
            skill,
            ..v1::Forecast::default()
        };
        let tenant = |cgroup: &str, active, forecasts| v1::Tenant {
            cgroup: cgroup.to_owned(),
            uses: vec![v1::Use { device: "8:0".to_owned(), active, forecasts, ..v1::Use::default() }],
            ..v1::Tenant::default()
        };
        let device = v1::Device { number: "8:0".to_owned(), ..v1::Device::default() };
        let slice = v1::Slice {
            tenants: vec![
                tenant("system.slice/minerva-fs.service", true, vec![forecast(1000, 0.9)]),
                tenant("a", true, vec![forecast(500, 0.5), forecast(900, 0.0)]),
                tenant("b", false, vec![forecast(500, 0.1)]),
            ],
            ..v1::Slice::default()
        };
        let own = ["system.slice/minerva-fs.service".to_owned()];
        assert_eq!(told(&slice, &device, &own), Told { contention: 1, expected_permille: Some(750) });
        assert_eq!(number("8:16"), Some(DeviceId { major: 8, minor: 16 }));
    }
}
