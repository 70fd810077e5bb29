//! How many files are being put for each tenant, or replaced: as long as there are any it does not leave, though none of them waits yet, or
//! any more.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The counts, by tenant.
#[derive(Debug, Default)]
pub(super) struct UnderWay(Mutex<BTreeMap<String, u64>>);

/// One of them, for as long as it is there.
#[derive(Debug)]
pub(super) struct UnderWayGuard<'a> {
    of: &'a UnderWay,
    tenant: String,
}

impl UnderWay {
    /// One more.
    pub(super) fn enter(&self, tenant: &str) -> UnderWayGuard<'_> {
        *self.counts().entry(tenant.to_owned()).or_default() += 1;
        UnderWayGuard { of: self, tenant: tenant.to_owned() }
    }

    /// How many there are now.
    pub(super) fn by_tenant(&self) -> BTreeMap<String, u64> {
        self.counts().clone()
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<String, u64>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for UnderWayGuard<'_> {
    fn drop(&mut self) {
        let mut counts = self.of.counts();
        if let Some(count) = counts.get_mut(&self.tenant) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.tenant);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::UnderWay;
    use std::collections::BTreeMap;

    #[test]
    fn what_is_being_put_counts_for_its_tenant_until_it_is_there() {
        let under_way = UnderWay::default();
        let counts = |counts: &[(&str, u64)]| {
            assert_eq!(
                under_way.by_tenant(),
                counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect::<BTreeMap<_, _>>()
            );
        };
        let [first, second] = [under_way.enter("web"), under_way.enter("web")];
        let other = under_way.enter("other");
        counts(&[("web", 2), ("other", 1)]);
        drop((first, other));
        counts(&[("web", 1)]);
        drop(second);
        counts(&[]);
    }
}
