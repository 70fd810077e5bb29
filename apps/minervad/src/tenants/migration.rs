//! What the cache reports that it moved for tenants.

use crate::slice_loop::Driver;
use crate::tenants::pending::Waiting;
use minerva_api::v1;
use minerva_model::{
    Event, MigrationAnswer, MigrationOutcome, MigrationReport, MovedBytes, RefusalKind, RequestId, TenantId,
};
use minerva_tenant_server::request::{Answer, Refusal};

const KEY_LENGTH_MAX: usize = 64;
/// Files of one tenant go to few disks.
const DISKS_MAX: usize = 64;

impl Driver {
    /// Asks the engine; the answer comes at once, or with the commit.
    pub(crate) fn migration_reported(
        &mut self,
        request: &v1::ReportMigrationRequest,
        answer: Answer<v1::ReportMigrationResponse>,
    ) {
        match self.judge_migration(request) {
            Err(refusal) => drop(answer.send(Err(refusal))),
            Ok(report) => {
                self.parts.wait(report.tenant, report.id.clone(), Waiting::Migration(answer));
                self.feed(Event::MigrationReported(report));
            }
        }
    }

    /// What is meant; or why that cannot be.
    fn judge_migration(&self, request: &v1::ReportMigrationRequest) -> Result<MigrationReport, Refusal> {
        let refuse = |kind, text: String| Err(Refusal::new(kind, text));
        let key = &request.request_id;
        if key.is_empty() || key.chars().count() > KEY_LENGTH_MAX || key.chars().any(char::is_control) {
            let text = "A key has 1 to 64 printable characters; a UUID will do.".to_owned();
            return refuse(RefusalKind::OutOfRange, text);
        }
        let moved: Option<Vec<MovedBytes>> = request.moved.iter().map(moved_bytes).collect();
        let Some(moved) = moved.filter(|moved| moved.len() <= DISKS_MAX) else {
            let text = format!("What was moved is told by disk, as MAJ:MIN, of at most {DISKS_MAX}.");
            return refuse(RefusalKind::OutOfRange, text);
        };
        let Some(tenant) = self.tenant_of(&request.cgroup, &request.inodes) else {
            let text = format!("{} is no tenant's cgroup any more.", request.cgroup);
            return refuse(RefusalKind::UnknownTenant, text);
        };
        if self.parts.unread.contains(&tenant) {
            let text = "What the account holds is not known, because the store could not be read; report again.";
            return refuse(RefusalKind::NotCommitted, text.to_owned());
        }
        let service = self.parts.directory.of_cgroup(&request.service_cgroup).map(|listed| listed.id);
        let id = RequestId(format!("{}{key}", RequestId::MOVED_PREFIX));
        Ok(MigrationReport { id, tenant, service, moved })
    }

    /// The tenant of a group or of one above it, if that is still the group that it was.
    fn tenant_of(&self, cgroup: &str, inodes: &[u64]) -> Option<TenantId> {
        let listed = self.parts.directory.of_cgroup(cgroup)?;
        let known = &self.tenants.get(&listed.id)?.cgroup;
        let depth = known.path.split('/').filter(|name| !name.is_empty()).count();
        let inode = inodes.get(depth.checked_sub(1)?)?;
        (*inode == known.inode).then_some(listed.id)
    }

    /// The engine answered.
    pub(crate) fn migration_counted(&mut self, answer: MigrationAnswer) {
        let MigrationAnswer { id, tenant, outcome } = answer;
        let result = match outcome {
            MigrationOutcome::Counted { earned, reason } => {
                Ok(v1::ReportMigrationResponse { earned_micro_credits: earned.0, why: reason.to_string() })
            }
            MigrationOutcome::NotCommitted { detail } => {
                let text =
                    format!("It could not be written to the ledger: {detail}. Nothing was counted; report again.");
                Err(Refusal::new(RefusalKind::NotCommitted, text))
            }
        };
        for waited in self.parts.waited(tenant, &id) {
            if let Waiting::Migration(answer) = waited {
                // Whoever waited may have gone, and reports again.
                let _ = answer.send(result.clone());
            }
        }
    }
}

fn moved_bytes(moved: &v1::MovedBytes) -> Option<MovedBytes> {
    Some(MovedBytes { device: moved.device.parse().ok()?, bytes: moved.bytes })
}
