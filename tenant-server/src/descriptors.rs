//! Open files: each connection of a tenant takes some, and whatever tenants do, those that the slice loop needs are left.

use minerva_config::TenantLimits;
use minerva_linux_observe::DESCRIPTORS_MAX;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The socket, and the process at its other end.
const PER_CONNECTION: u64 = 2;
/// Descriptors that the daemon needs beside those of connections.
const OWN: u64 = 256;
/// The observer keeps one part in so many of what may be open, up to its bound.
const OBSERVERS_PART: u64 = 4;

/// Raises the limit of open files for so many connections, the hard one too where the daemon may (CAP_SYS_RESOURCE, which its unit has
/// not), and never lowers it. Answers what is allowed then; nothing if there is no limit.
pub(crate) fn raise_limit(connections_max: u32) -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    // Two of the usual limit of 1,024 are soon one too many; the service manager's hard limit is meant for this.
    let wanted = PER_CONNECTION * u64::from(connections_max) + OWN + OBSERVERS_PART * DESCRIPTORS_MAX;
    if limit.current.is_none_or(|current| current >= wanted) {
        return limit.current;
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum.map(|most| most.max(wanted)) };
    let within = Rlimit { current: Some(limit.maximum.map_or(wanted, |most| most.min(wanted))), ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised).or_else(|_| setrlimit(Resource::Nofile, within)) {
        tracing::warn!(%error, "the number of open files was not raised, so that fewer tenants can connect, ignoring");
    }
    getrlimit(Resource::Nofile).current
}

/// The limits with no more connections than fit into so many open files, and a sentence for people if these are fewer than asked
/// for. One always may: else nobody could.
pub(crate) fn fitted(limits: TenantLimits, open_files: Option<u64>) -> (TenantLimits, Option<String>) {
    let asked = limits.connections_max;
    let Some(open_files) = open_files else { return (limits, None) };
    let observers = (open_files / OBSERVERS_PART).min(DESCRIPTORS_MAX);
    let fit = (open_files.saturating_sub(OWN + observers) / PER_CONNECTION).max(1);
    let connections_max = u32::try_from(fit).unwrap_or(u32::MAX).min(asked);
    let why = (connections_max < asked).then(|| {
        format!(
            "{connections_max} connections of tenants are admitted and not {asked}, as only {open_files} files may be open; raise \
             LimitNOFILE= of the unit, or lower participation.connections_max"
        )
    });
    (TenantLimits { connections_max, ..limits }, why)
}

#[cfg(test)]
mod tests {
    use super::fitted;
    use minerva_config::TenantLimits;

    #[test]
    fn no_more_connections_are_admitted_than_fit_beside_what_the_daemon_opens() {
        let limits = TenantLimits { connections_max: 16_384, ..TenantLimits::default() };
        let admitted = |open_files| fitted(limits, open_files).0.connections_max;
        assert_eq!([Some(1_024), Some(4_096), Some(65_536), None].map(admitted), [256, 1_408, 16_384, 16_384]);
        assert_eq!([0, 256, 341].map(|files| admitted(Some(files))), [1, 1, 1]);
        let why = fitted(limits, Some(4_096)).1.expect("a reason");
        assert!(why.starts_with("1408 connections of tenants are admitted and not 16384"), "{why}");
        assert_eq!(fitted(limits, Some(65_536)).1, None);
    }
}
