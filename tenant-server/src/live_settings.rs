//! What the server takes from a new operator's file while it serves: the limits, who is who, and the certificates.

use crate::authenticate::table::SharedIdentities;
use crate::descriptors;
use crate::directory::Directory;
use crate::slots::SharedQuotas;
use crate::tls::{Tls, TlsError};
use minerva_config::{ParticipationSettings, TenantLimits};
use minerva_model::Nanos;
use std::collections::BTreeSet;
use std::error::Error;
use std::iter::successors;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tenants that the operator's file names are looked for after so many slices: by then whoever is there was seen.
const SLICES_TO_APPEAR: u64 = 10;

/// See the file's documentation.
#[derive(Debug)]
pub struct LiveSettings {
    pub(crate) limits: SharedQuotas,
    pub(crate) identities: SharedIdentities,
    pub(crate) period: SharedPeriod,
    /// Absent where the TCP listener has no certificate.
    tls: Option<Tls>,
    /// The slice in which to look for tenants that are not there.
    look_in_slice: u64,
    /// Names that were found to be nobody's.
    missed: BTreeSet<String>,
}

/// The length of a slice, in which the loop sees new cgroups.
#[derive(Clone, Debug)]
pub(crate) struct SharedPeriod(Arc<AtomicU64>);

impl SharedPeriod {
    pub(crate) fn get(&self) -> Nanos {
        Nanos(self.0.load(Ordering::Relaxed))
    }
}

impl LiveSettings {
    /// Those of listeners that were opened with these settings, and of a loop whose slices are so long. Raises the limit of open files
    /// as connections need it; where it cannot be raised so far, fewer are admitted, and the log says so.
    pub fn new(settings: &ParticipationSettings, period: Nanos, tls: Option<Tls>) -> Self {
        let identities = SharedIdentities::new(&settings.identities);
        let (limits, fewer) = admitted(settings.limits);
        fewer.iter().for_each(|why| tracing::warn!("{why}"));
        let limits = SharedQuotas::new(limits);
        let period = SharedPeriod(Arc::new(AtomicU64::new(period.0)));
        Self { limits, identities, period, tls, look_in_slice: SLICES_TO_APPEAR, missed: BTreeSet::new() }
    }

    /// Limits, identities and how long a slice is hold from the next request on, certificates from the next handshake on. Answers, in
    /// sentences, what does not hold: certificates whose files are not good, which leaves those before in force, and more connections
    /// than files may be open.
    pub fn set(&mut self, settings: &ParticipationSettings, period: Nanos, slice: u64) -> Vec<String> {
        self.look_in_slice = slice + SLICES_TO_APPEAR;
        self.period.0.store(period.0, Ordering::Relaxed);
        let (limits, fewer) = admitted(settings.limits);
        self.limits.set(limits);
        self.identities.set(&settings.identities);
        let refused = self.tls.as_ref().and_then(|tls| tls.reload(settings).err());
        let refused = refused.map(|error| format!("the certificates before it stay: {}", in_full(&error)));
        refused.into_iter().chain(fewer).collect()
    }

    /// Tenants that `[[identities]]` name and that are not there when they should have been seen; each once.
    pub fn missing(&mut self, settings: &ParticipationSettings, slice: u64, directory: &Directory) -> Vec<String> {
        if slice != self.look_in_slice {
            return Vec::new();
        }
        let names = settings.identities.iter().map(|identity| &identity.tenant);
        let unknown = names.filter(|name| directory.of_name(name).is_none());
        unknown.filter(|name| self.missed.insert((*name).clone())).cloned().collect()
    }
}

/// The limits that can be kept, once as many files may be open as they need; why they are lower than asked for.
fn admitted(limits: TenantLimits) -> (TenantLimits, Option<String>) {
    descriptors::fitted(limits, descriptors::raise_limit(limits.connections_max))
}

/// The message with its causes.
fn in_full(error: &TlsError) -> String {
    let causes = successors(error.source(), |&cause| cause.source());
    causes.fold(error.to_string(), |message, cause| format!("{message}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::{LiveSettings, SLICES_TO_APPEAR};
    use crate::directory::Directory;
    use minerva_config::{Identity, KnownBy, ParticipationSettings, TenantLimits};
    use minerva_model::Nanos;
    use rustix::process::{Resource, getrlimit};

    #[test]
    fn more_connections_in_a_new_file_raise_the_limit_of_open_files_or_are_not_admitted() {
        let mut settings = ParticipationSettings::default();
        let mut live = LiveSettings::new(&settings, Nanos::SECOND, None);
        settings.limits = TenantLimits { connections_max: 100_000, ..settings.limits };
        let told = live.set(&settings, Nanos::SECOND, 1);
        let limit = getrlimit(Resource::Nofile);
        let needed = 2 * 100_000 + 256 + 4_096;
        let is_room = limit.current.is_none_or(|current| current >= needed);
        assert!(is_room || limit.current == limit.maximum, "{limit:?}");
        let admitted = live.limits.settings().connections_max;
        assert_eq!((admitted == 100_000, told.is_empty()), (is_room, is_room), "{admitted} {told:?}");
    }

    #[test]
    fn a_tenant_that_nobody_is_is_missed_once_and_not_before_it_can_be_seen() {
        let identity = |cid| Identity { tenant: "nobody".to_owned(), known_by: Some(KnownBy::VsockCid(cid)) };
        let settings =
            ParticipationSettings { identities: vec![identity(1), identity(2)], ..ParticipationSettings::default() };
        let (mut controls, directory) = (LiveSettings::new(&settings, Nanos::SECOND, None), Directory::default());
        let missing = |controls: &mut LiveSettings, slice| controls.missing(&settings, slice, &directory);
        assert!((0..SLICES_TO_APPEAR).all(|slice| missing(&mut controls, slice).is_empty()));
        assert_eq!(missing(&mut controls, SLICES_TO_APPEAR), ["nobody"]);
        controls.set(&settings, Nanos::SECOND, 100);
        assert!((100..120).all(|slice| missing(&mut controls, slice).is_empty()));
    }
}
