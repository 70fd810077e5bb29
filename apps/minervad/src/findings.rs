//! What `status` shows of what was found, and what the log says of decisions in `shadow` mode.

use crate::clock::unix_ns;
use minerva_api::v1;
use minerva_model::{DeviceId, FindingKind, Nanos, TenantId};
use std::collections::{BTreeSet, VecDeque};

/// Findings that `status` shows.
const FINDINGS_SHOWN: usize = 50;
/// In `shadow` mode the log says this often what was decided.
const DIGEST_PERIOD: Nanos = Nanos::from_secs(60);

/// What people are told.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    /// The latest.
    latest: VecDeque<Shown>,
    digest: Digest,
}

/// A finding, and what it is about.
#[derive(Debug)]
struct Shown {
    kind: FindingKind,
    device: Option<DeviceId>,
    tenant: Option<TenantId>,
    told: v1::Finding,
}

impl Findings {
    /// Keeps one in these words; beyond what is shown the oldest goes. What it is the end of, or says anew, is no warning any more.
    pub(crate) fn show(
        &mut self,
        kind: FindingKind,
        warning: bool,
        (device, tenant): (Option<DeviceId>, Option<TenantId>),
        message: String,
    ) {
        match kind {
            FindingKind::CapsBack => self.end(|shown| shown.kind == FindingKind::CapsLifted),
            FindingKind::Steerable | FindingKind::NotSteerable => {
                // What is told of a model that the kernel guessed comes after it, if it is so still.
                self.end(|shown| {
                    matches!(shown.kind, FindingKind::NotSteerable | FindingKind::NotCalibrated)
                        && shown.device == device
                });
            }
            FindingKind::DiskGone => self.end(|shown| shown.device.is_some() && shown.device == device),
            _ => {}
        }
        if self.latest.len() == FINDINGS_SHOWN {
            self.latest.pop_front();
        }
        let told = v1::Finding { unix_ns: unix_ns(), kind: kind.as_str().to_owned(), warning, message };
        self.latest.push_back(Shown { kind, device, tenant, told });
    }

    /// The operator's file was read again: what is wrong with it still is found again, and so is who goes on to write knobs.
    pub(crate) fn reloaded(&mut self) {
        self.end(|shown| {
            matches!(
                shown.kind,
                FindingKind::UnknownDisk
                    | FindingKind::HiddenTenants
                    | FindingKind::Overwritten
                    | FindingKind::FightGivenUp
            )
        });
    }

    /// The file systems of a disk say again how much space is free.
    pub(crate) fn answers(&mut self, device: DeviceId) {
        self.end(|shown| shown.kind == FindingKind::FileSystemSilent && shown.device == Some(device));
    }

    /// The last that was told of each disk asks for something for as long as it `stands`. The engine tells it once, and not that it ended.
    pub(crate) fn oversubscribed(&mut self, stands: impl Fn(DeviceId) -> bool) {
        let mut seen = BTreeSet::new();
        let all = self.latest.iter_mut().rev().filter(|shown| shown.kind == FindingKind::Oversubscribed);
        for (shown, device) in all.filter_map(|shown| shown.device.map(|device| (shown, device))) {
            shown.told.warning = seen.insert(device) && stands(device);
        }
    }

    /// Nobody can act on what is about a tenant that is gone.
    pub(crate) fn tenant_gone(&mut self, tenant: TenantId) {
        self.end(|shown| shown.tenant == Some(tenant));
    }

    fn end(&mut self, which: impl Fn(&Shown) -> bool) {
        self.latest.iter_mut().filter(|shown| which(shown)).for_each(|shown| shown.told.warning = false);
    }

    /// The oldest first.
    pub(crate) fn shown(&self) -> Vec<v1::Finding> {
        self.latest.iter().map(|shown| shown.told.clone()).collect()
    }

    /// Counts a decision.
    pub(crate) fn decided(&mut self, share: u32, tenant: &str, device: &str) {
        self.digest.decided(share, tenant, device);
    }

    /// A slice is over: now and then the log says what was decided, if that was all that became of it.
    pub(crate) fn end_slice(&mut self, now: Nanos, is_shadow: bool) {
        self.digest.end_period(now, is_shadow);
    }
}

/// What was decided since the log last said so. A shadow that says nothing would be a shadow that nobody believes; one that says
/// everything is not read.
#[derive(Debug, Default)]
struct Digest {
    since: Nanos,
    decisions: u64,
    /// The smallest share, and whose on which disk.
    smallest: Option<(u32, String, String)>,
}

impl Digest {
    /// Counts a decision.
    fn decided(&mut self, share: u32, tenant: &str, device: &str) {
        self.decisions += 1;
        if self.smallest.as_ref().is_none_or(|(smallest, ..)| share < *smallest) {
            self.smallest = Some((share, tenant.to_owned(), device.to_owned()));
        }
    }

    /// Begins anew when the period is over, and says what was decided in it if that was all that became of it.
    fn end_period(&mut self, now: Nanos, is_shadow: bool) {
        if now.since(self.since) < DIGEST_PERIOD {
            return;
        }
        let Self { decisions, smallest, .. } = std::mem::replace(self, Self { since: now, ..Self::default() });
        if let Some((share, tenant, disk)) = smallest.filter(|_| is_shadow) {
            tracing::info!(
                decisions,
                "nothing is written in shadow mode; the smallest share decided in the last minute was {share}, for {tenant} on \
                 {disk} (minerva-ctl explain '{tenant}')"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{FINDINGS_SHOWN, Findings};
    use minerva_model::{DeviceId, FindingKind, TenantId};

    fn show(findings: &mut Findings, kind: FindingKind, device: Option<u32>, tenant: Option<u64>) {
        let device = device.map(|minor| DeviceId { major: 8, minor });
        findings.show(kind, kind.is_warning(), (device, tenant.map(TenantId)), String::new());
    }

    #[test]
    fn the_latest_findings_are_shown() {
        let mut findings = Findings::default();
        (0..FINDINGS_SHOWN + 3).for_each(|number| {
            findings.show(FindingKind::Steerable, false, (None, None), number.to_string());
        });
        let shown = findings.shown();
        assert_eq!((shown.len(), shown[0].message.as_str()), (FINDINGS_SHOWN, "3"));
    }

    fn warned(findings: &Findings) -> Vec<String> {
        findings.shown().into_iter().filter(|shown| shown.warning).map(|shown| shown.kind).collect()
    }

    #[test]
    fn a_finding_that_is_over_once_its_remedy_was_applied_is_no_warning() {
        let mut findings = Findings::default();
        let disk = |minor| DeviceId { major: 8, minor };
        for device in [0, 16] {
            for kind in [FindingKind::NotCalibrated, FindingKind::FileSystemSilent, FindingKind::Oversubscribed] {
                show(&mut findings, kind, Some(device), None);
            }
        }
        let of_one = ["not-calibrated", "file-system-silent", "oversubscribed"];
        assert_eq!(warned(&findings), [of_one, of_one].concat());
        show(&mut findings, FindingKind::Steerable, Some(0), None);
        findings.answers(disk(0));
        findings.oversubscribed(|device| device == disk(16));
        assert_eq!(warned(&findings), of_one, "of the other disk");
        // The model is the kernel's guess still, and of work that is too much again in the same way nothing new is told.
        show(&mut findings, FindingKind::Steerable, Some(16), None);
        show(&mut findings, FindingKind::NotCalibrated, Some(16), None);
        show(&mut findings, FindingKind::Oversubscribed, Some(16), None);
        findings.oversubscribed(|_| true);
        let again = ["oversubscribed", "file-system-silent", "not-calibrated", "oversubscribed"];
        assert_eq!(warned(&findings), again, "the last of each disk");
    }

    #[test]
    fn a_finding_that_is_over_or_asks_for_nothing_is_no_warning() {
        let mut findings = Findings::default();
        for kind in [FindingKind::ModelDamaged, FindingKind::HistoryDropped] {
            show(&mut findings, kind, None, None);
        }
        assert!(warned(&findings).is_empty());
        let told = [
            (FindingKind::CapsLifted, None, None),
            (FindingKind::NotSteerable, Some(0), None),
            (FindingKind::NotSteerable, Some(16), None),
            (FindingKind::WriteRefused, Some(16), Some(7)),
            (FindingKind::UnknownDisk, None, None),
            (FindingKind::FightGivenUp, Some(0), None),
            (FindingKind::Oversubscribed, Some(0), None),
        ];
        told.iter().for_each(|(kind, device, tenant)| show(&mut findings, *kind, *device, *tenant));
        assert_eq!(warned(&findings).len(), told.len());
        show(&mut findings, FindingKind::CapsBack, None, None);
        show(&mut findings, FindingKind::Steerable, Some(0), None);
        let left = ["not-steerable", "write-refused", "unknown-disk", "fight-given-up", "oversubscribed"];
        assert_eq!(warned(&findings), left, "of the other disk");
        findings.tenant_gone(TenantId(7));
        findings.reloaded();
        assert_eq!(warned(&findings), ["not-steerable", "oversubscribed"]);
        // It is found again after a reload.
        show(&mut findings, FindingKind::UnknownDisk, None, None);
        show(&mut findings, FindingKind::DiskGone, Some(16), None);
        assert_eq!(warned(&findings), ["oversubscribed", "unknown-disk"]);
        assert_eq!(findings.shown().len(), told.len() + 6, "all are shown");
    }
}
