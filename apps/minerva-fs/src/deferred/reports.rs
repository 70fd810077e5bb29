//! What was moved in gaps, for whom, until the daemon has counted it.
//!
//! | what happens | what stands in the log |
//! |---|---|
//! | a piece is moved | nothing yet: after a crash the file is copied anew, and counted then |
//! | the daemon's slice ends | the bytes of each file that count from now on, and a report of them, in one transaction |
//! | the copy is whole | the same, with the step of its row |
//! | the daemon answers | the report goes |
//!
//! So each byte is in one report at most, and each report is sent, under its own key, until it is answered. Of a group one report is under
//! way at a time; what is moved meanwhile makes up the next.

use super::asker::{self, AskerGroup};
use minerva_api::v1;
use minerva_linux_observe::Roots;
use minerva_model::DeviceId;
use minerva_store::{CountedBytes, Deferral, MovedRow, RedoLog, StoreError};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tonic::{Code, Status};

/// Reports that are sent after one slice.
const SENT_MAX: usize = 16;
/// A group that was no tenant's so often is taken for gone. A new one is known after a slice.
const UNKNOWN_MAX: u32 = 10;

/// What moving earned a tenant of the cache since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Earned {
    pub(crate) micro_credits: u64,
    /// What was said of the last report.
    pub(crate) why: String,
}

/// A report that was not answered.
#[derive(Clone, Debug)]
struct Report {
    tenant: String,
    cgroup: String,
    moved: BTreeMap<String, u64>,
    /// Nothing is added to it any more.
    is_closed: bool,
    unknown: u32,
}

/// Moved and not in the log yet.
#[derive(Clone, Debug)]
struct Fresh {
    tenant: String,
    cgroup: String,
    device: DeviceId,
    bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    /// By file.
    fresh: BTreeMap<u64, Fresh>,
    /// Up to where each file is counted, or will be by what is fresh.
    counted: BTreeMap<u64, u64>,
    /// By key.
    reports: BTreeMap<String, Report>,
    /// By tenant of the cache.
    earned: BTreeMap<String, Earned>,
}

/// See the file's documentation.
pub(super) struct Reports {
    log: Arc<Mutex<RedoLog>>,
    /// Where cgroups are; nothing where that cannot be told, and then nobody's are kept.
    roots: Option<Roots>,
    boot: String,
    state: Mutex<State>,
}

impl Reports {
    /// With what an earlier process left of these files.
    pub(super) fn open(log: Arc<Mutex<RedoLog>>, files: &[Deferral]) -> Result<Self, StoreError> {
        let roots = Roots::detect().ok();
        let boot = roots.as_ref().map(asker::boot).unwrap_or_default();
        let mut state = State::default();
        let counted = files.iter().filter(|row| row.counted_bytes > 0);
        state.counted = counted.map(|row| (row.id, row.counted_bytes)).collect();
        for row in locked(&log).moved()? {
            state.add(row);
        }
        state.reports.values_mut().for_each(|report| report.is_closed = true);
        Ok(Self { log, roots, boot, state: Mutex::new(state) })
    }

    /// The group of the process at the other end of a connection, as it is kept; empty where that cannot be told.
    pub(super) fn group_of(&self, stream: &UnixStream) -> String {
        let group = self.roots.as_ref().and_then(|roots| AskerGroup::of_peer(stream, roots));
        group.map_or_else(String::new, |group| group.to_text())
    }

    /// Of this service.
    fn own_group(&self) -> String {
        self.roots.as_ref().and_then(|roots| roots.cgroup_of(std::process::id())).unwrap_or_default()
    }

    /// Bytes of a file were moved in a gap that were not before, up to here.
    pub(super) fn moved(&self, row: &Deferral, device: DeviceId, bytes: u64, up_to: u64) {
        if bytes == 0 || row.cgroup.is_empty() {
            return;
        }
        let mut state = self.state();
        let counted = state.counted.entry(row.id).or_default();
        *counted = up_to.max(*counted);
        let (tenant, cgroup) = (row.tenant.clone(), row.cgroup.clone());
        let fresh = state.fresh.entry(row.id).or_insert(Fresh { tenant, cgroup, device, bytes: 0 });
        fresh.bytes += bytes;
    }

    /// Up to where a file is counted.
    pub(super) fn counted_bytes(&self, id: u64) -> u64 {
        self.state().counted.get(&id).copied().unwrap_or(0)
    }

    /// Keeps what changes of a row, with what of it is to be reported.
    pub(super) fn keep(&self, row: &Deferral) -> Result<(), StoreError> {
        let mut state = self.state();
        let counted: Vec<CountedBytes> = state.to_count(Some(row.id));
        locked(&self.log).count(&counted, Some(row))?;
        state.count(counted);
        Ok(())
    }

    /// A file waits no more; what was moved of it stays to be reported.
    pub(super) fn forget(&self, id: u64) -> Result<(), StoreError> {
        let mut state = self.state();
        let counted = state.to_count(Some(id));
        if !counted.is_empty() {
            locked(&self.log).count(&counted, None)?;
            state.count(counted);
        }
        state.counted.remove(&id);
        locked(&self.log).forget(id)
    }

    /// A slice has ended: keeps what was moved in it. What is to be sent now, by key.
    pub(super) fn due(&self) -> Vec<(String, v1::ReportMigrationRequest)> {
        let mut state = self.state();
        let counted = state.to_count(None);
        if !counted.is_empty() {
            match locked(&self.log).count(&counted, None) {
                Ok(()) => state.count(counted),
                // It stays fresh, and is tried again.
                Err(_) => return Vec::new(),
            }
        }
        let mut due = Vec::new();
        for key in state.next_of_each_group() {
            let Some(report) = state.reports.get_mut(&key) else { continue };
            report.is_closed = true;
            match AskerGroup::from_text(&report.cgroup, &self.boot) {
                Some(group) => due.push((key.clone(), request(key, group, self.own_group(), &report.moved))),
                // Of another boot: nobody has that account.
                None => self.drop_report(&mut state, &key),
            }
            if due.len() == SENT_MAX {
                break;
            }
        }
        due
    }

    /// The daemon counted a report.
    pub(super) fn answered(&self, key: &str, answer: &v1::ReportMigrationResponse) {
        let mut state = self.state();
        let Some(tenant) = state.reports.get(key).map(|report| report.tenant.clone()) else { return };
        let earned = state.earned.entry(tenant).or_default();
        earned.micro_credits += answer.earned_micro_credits;
        earned.why.clone_from(&answer.why);
        self.drop_report(&mut state, key);
    }

    /// The daemon did not count it.
    pub(super) fn refused(&self, key: &str, status: &Status) {
        let mut state = self.state();
        let Some(report) = state.reports.get_mut(key) else { return };
        report.unknown += u32::from(status.code() == Code::NotFound);
        let is_over = status.code() == Code::InvalidArgument || report.unknown >= UNKNOWN_MAX;
        let tenant = report.tenant.clone();
        state.earned.entry(tenant).or_default().why = status.message().to_owned();
        if is_over {
            self.drop_report(&mut state, key);
        }
    }

    /// What moving earned a tenant of the cache.
    pub(super) fn earned(&self, tenant: &str) -> Earned {
        self.state().earned.get(tenant).cloned().unwrap_or_default()
    }

    fn drop_report(&self, state: &mut State, key: &str) {
        // Where this fails it is sent again after the next start, and counted once all the same.
        let _ = locked(&self.log).forget_report(key);
        state.reports.remove(key);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What is fresh, of one file or of all, as it is to be kept.
    fn to_count(&self, only: Option<u64>) -> Vec<CountedBytes> {
        let fresh = self.fresh.iter().filter(|(id, _)| only.is_none_or(|only| only == **id));
        let mut keys: BTreeMap<&str, String> = BTreeMap::new();
        let mut counted = Vec::new();
        for (id, one) in fresh {
            let report = keys.entry(&one.cgroup).or_insert_with(|| self.open_report(&one.cgroup)).clone();
            counted.push(CountedBytes {
                id: *id,
                counted_bytes: self.counted.get(id).copied().unwrap_or(0),
                moved: MovedRow {
                    report,
                    tenant: one.tenant.clone(),
                    cgroup: one.cgroup.clone(),
                    device: one.device.to_string(),
                    bytes: one.bytes,
                },
            });
        }
        counted
    }

    /// The report of a group to which bytes are added: the one that is open, or a new one.
    fn open_report(&self, cgroup: &str) -> String {
        let mut open = self.reports.iter().filter(|(_, report)| !report.is_closed && report.cgroup == cgroup);
        open.next().map_or_else(|| uuid::Uuid::new_v4().simple().to_string(), |(key, _)| key.clone())
    }

    /// It was kept.
    fn count(&mut self, counted: Vec<CountedBytes>) {
        for CountedBytes { id, moved, .. } in counted {
            self.fresh.remove(&id);
            self.add(moved);
        }
    }

    fn add(&mut self, row: MovedRow) {
        let MovedRow { report, tenant, cgroup, device, bytes } = row;
        let new = Report { tenant, cgroup, moved: BTreeMap::new(), is_closed: false, unknown: 0 };
        let report = self.reports.entry(report).or_insert(new);
        *report.moved.entry(device).or_default() += bytes;
    }

    /// Of each group the report that was sent already, or else one that was not.
    fn next_of_each_group(&self) -> Vec<String> {
        let mut next = Vec::new();
        let mut groups = BTreeSet::new();
        for is_closed in [true, false] {
            for (key, report) in self.reports.iter().filter(|(_, report)| report.is_closed == is_closed) {
                if groups.insert(&report.cgroup) {
                    next.push(key.clone());
                }
            }
        }
        next
    }
}

fn locked(log: &Mutex<RedoLog>) -> MutexGuard<'_, RedoLog> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

fn request(
    key: String,
    group: AskerGroup,
    service_cgroup: String,
    moved: &BTreeMap<String, u64>,
) -> v1::ReportMigrationRequest {
    let moved = moved.iter().map(|(device, bytes)| v1::MovedBytes { device: device.clone(), bytes: *bytes });
    v1::ReportMigrationRequest {
        request_id: key,
        cgroup: group.path,
        inodes: group.inodes,
        service_cgroup,
        moved: moved.collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Reports, UNKNOWN_MAX};
    use crate::deferred::asker::{AskerGroup, boot};
    use minerva_api::v1;
    use minerva_linux_observe::Roots;
    use minerva_model::DeviceId;
    use minerva_store::{Deferral, DeferralStep, RedoLog};
    use std::path::Path;
    use std::sync::{Arc, Mutex};
    use tonic::Status;

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    fn row(log: &Mutex<RedoLog>, cgroup: &str, of_boot: &str) -> Deferral {
        let group = AskerGroup { boot: of_boot.to_owned(), path: cgroup.to_owned(), inodes: vec![7] };
        let mut row = Deferral {
            id: 0,
            tenant: "web".to_owned(),
            pool: "stable".to_owned(),
            source: "s".into(),
            directory: "/data".into(),
            directory_identity: (1, 2),
            name: "n".into(),
            link_inode: 0,
            copy_inode: 0,
            copy_name: ".minerva-s.part".into(),
            user: (0, 0, Vec::new()),
            added_unix_ms: 0,
            is_asked_for: false,
            step: DeferralStep::Waiting,
            cgroup: if cgroup.is_empty() { String::new() } else { group.to_text() },
            counted_bytes: 0,
        };
        row.id = log.lock().unwrap().add(&row).unwrap();
        row
    }

    fn open(path: &Path) -> (Arc<Mutex<RedoLog>>, Reports) {
        let (log, _) = RedoLog::open(path).unwrap();
        let rows = log.all().unwrap();
        let log = Arc::new(Mutex::new(log));
        (Arc::clone(&log), Reports::open(log, &rows).unwrap())
    }

    fn this_boot() -> Option<String> {
        let roots = Roots::detect().ok()?;
        Some(boot(&roots))
    }

    /// Group and bytes of what is due.
    fn due(reports: &Reports) -> Vec<(String, u64)> {
        reports
            .due()
            .into_iter()
            .map(|(_, one)| (one.cgroup, one.moved.iter().map(|moved| moved.bytes).sum()))
            .collect()
    }

    #[test]
    fn one_report_of_a_group_is_under_way_and_what_is_moved_meanwhile_makes_up_the_next() {
        let Some(boot) = this_boot() else { return eprintln!("skipped: needs /proc") };
        let folder = tempfile::tempdir().unwrap();
        let (log, reports) = open(&folder.path().join("deferred.db"));
        let (a, b, nobody) = (row(&log, "a", &boot), row(&log, "b", &boot), row(&log, "", &boot));
        reports.moved(&a, DISK, 5, 5);
        reports.moved(&b, DISK, 3, 3);
        reports.moved(&nobody, DISK, 9, 9);
        let first = reports.due();
        assert_eq!(first.len(), 2, "{first:?}");
        reports.moved(&a, DISK, 2, 7);
        let again = reports.due();
        assert_eq!(again, first, "it is sent as it was until it is answered");
        let answer = v1::ReportMigrationResponse { earned_micro_credits: 30, why: "w".to_owned() };
        for (key, _) in &first {
            reports.answered(key, &answer);
            reports.answered(key, &answer);
        }
        assert_eq!(reports.earned("web").micro_credits, 60, "each is answered once");
        assert_eq!(due(&reports), [("a".to_owned(), 2)]);
    }

    #[test]
    fn a_kill_at_any_moment_loses_and_doubles_no_byte() {
        let Some(boot) = this_boot() else { return eprintln!("skipped: needs /proc") };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deferred.db");
        let (log, reports) = open(&path);
        let file = row(&log, "a", &boot);
        reports.moved(&file, DISK, 4, 4);
        // Killed before the slice ended: nothing is counted, and the new copy counts from the beginning.
        drop((log, reports));
        let (log, reports) = open(&path);
        assert_eq!((reports.counted_bytes(file.id), due(&reports)), (0, Vec::new()));
        reports.moved(&file, DISK, 6, 6);
        let sent = reports.due();
        // Killed after it was sent: it is sent again under its key, and the new copy counts from there on.
        drop((log, reports));
        let (log, reports) = open(&path);
        assert_eq!((reports.counted_bytes(file.id), reports.due()), (6, sent.clone()));
        reports.moved(&file, DISK, 1, 7);
        reports.keep(&Deferral { step: DeferralStep::Switching, ..file.clone() }).unwrap();
        // Killed between the last step and the end of the slice.
        drop((log, reports));
        let (_log, reports) = open(&path);
        reports.answered(&sent[0].0, &v1::ReportMigrationResponse::default());
        assert_eq!(due(&reports), [("a".to_owned(), 1)]);
        // A file that is done with leaves what was moved of it to be reported.
        reports.moved(&file, DISK, 2, 9);
        reports.forget(file.id).unwrap();
        assert_eq!(reports.counted_bytes(file.id), 0);
        let last = reports.due();
        reports.answered(&last[0].0, &v1::ReportMigrationResponse::default());
        assert_eq!(due(&reports), [("a".to_owned(), 2)]);
    }

    #[test]
    fn a_group_of_another_boot_and_one_that_is_no_tenants_are_given_up() {
        let Some(boot) = this_boot() else { return eprintln!("skipped: needs /proc") };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deferred.db");
        let (log, reports) = open(&path);
        let (gone, old) = (row(&log, "gone", &boot), row(&log, "old", "another"));
        reports.moved(&gone, DISK, 1, 1);
        reports.moved(&old, DISK, 1, 1);
        for _ in 0..UNKNOWN_MAX {
            let sent = reports.due();
            assert_eq!(sent.len(), 1);
            reports.refused(&sent[0].0, &Status::unavailable("busy"));
            reports.refused(&sent[0].0, &Status::not_found("gone is no tenant's cgroup any more"));
        }
        assert_eq!(reports.due(), []);
        assert!(reports.earned("web").why.contains("no tenant's"));
        drop(log.lock().unwrap().moved().map(|rows| assert_eq!(rows, [])));
    }
}
