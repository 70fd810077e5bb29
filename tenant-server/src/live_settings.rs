//! What the server takes from a new operator's file while it serves: the limits, who is who, and the certificates.

use crate::authenticate::table::SharedIdentities;
use crate::directory::Directory;
use crate::slots::SharedQuotas;
use crate::tls::{Tls, TlsError};
use minerva_config::ParticipationSettings;
use minerva_model::Nanos;
use std::collections::BTreeSet;
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
    /// Those of listeners that were opened with these settings, and of a loop whose slices are so long.
    pub fn new(settings: &ParticipationSettings, period: Nanos, tls: Option<Tls>) -> Self {
        let identities = SharedIdentities::new(&settings.identities);
        let limits = SharedQuotas::new(settings.limits);
        let period = SharedPeriod(Arc::new(AtomicU64::new(period.0)));
        Self { limits, identities, period, tls, look_in_slice: SLICES_TO_APPEAR, missed: BTreeSet::new() }
    }

    /// Limits, identities and how long a slice is hold from the next request on, certificates from the next handshake on. Files of certificates that
    /// are not good are an error, and leave those before in force.
    pub fn set(&mut self, settings: &ParticipationSettings, period: Nanos, slice: u64) -> Result<(), TlsError> {
        self.look_in_slice = slice + SLICES_TO_APPEAR;
        self.period.0.store(period.0, Ordering::Relaxed);
        self.limits.set(settings.limits);
        self.identities.set(&settings.identities);
        self.tls.as_ref().map_or(Ok(()), |tls| tls.reload(settings))
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

#[cfg(test)]
mod tests {
    use super::{LiveSettings, SLICES_TO_APPEAR};
    use crate::directory::Directory;
    use minerva_config::{Identity, KnownBy, ParticipationSettings};
    use minerva_model::Nanos;

    #[test]
    fn a_tenant_that_nobody_is_is_missed_once_and_not_before_it_can_be_seen() {
        let identity = |cid| Identity { tenant: "nobody".to_owned(), known_by: Some(KnownBy::VsockCid(cid)) };
        let settings =
            ParticipationSettings { identities: vec![identity(1), identity(2)], ..ParticipationSettings::default() };
        let (mut controls, directory) = (LiveSettings::new(&settings, Nanos::SECOND, None), Directory::default());
        let missing = |controls: &mut LiveSettings, slice| controls.missing(&settings, slice, &directory);
        assert!((0..SLICES_TO_APPEAR).all(|slice| missing(&mut controls, slice).is_empty()));
        assert_eq!(missing(&mut controls, SLICES_TO_APPEAR), ["nobody"]);
        controls.set(&settings, Nanos::SECOND, 100).expect("there are no certificates");
        assert!((100..120).all(|slice| missing(&mut controls, slice).is_empty()));
    }
}
