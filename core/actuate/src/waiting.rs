//! Who is capped so low that one of its requests takes longer than a slice.
//!
//! Such a tenant completes nothing in most slices, and is there all the same. Were it taken for gone, the others would be alone on the disk and
//! nobody capped; in the next slice it would have what it can get, and be capped again: caps of 4 MB/s together let two readers have 8.5.

use crate::tenant_use::{Cap, Use};
use minerva_model::{Nanos, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// It is waited for so many times as long as its request should take under its cap.
const PATIENCE: f64 = 1.5;

/// Those of one disk.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Waiting {
    /// When each tenant with a cap last completed something, and what that slice was like.
    seen: BTreeMap<TenantId, (Nanos, Use)>,
}

impl Waiting {
    /// What tenants did in the slice that ends now, and after them those that wait for their cap, as if they had used what it lets pass.
    pub(crate) fn with_waiting(&mut self, now: Nanos, uses: &[Use], cap: impl Fn(TenantId) -> Option<Cap>) -> Vec<Use> {
        self.seen.extend(uses.iter().map(|one| (one.tenant, (now, *one))));
        let mut all = uses.to_vec();
        self.seen.retain(|tenant, (at, one)| {
            if *at == now {
                return true;
            }
            let waits = cap(*tenant).and_then(|cap| one.under(cap, now.since(*at)));
            all.extend(waits);
            waits.is_some()
        });
        all
    }

    /// The tenant is gone.
    pub(crate) fn forget(&mut self, tenant: TenantId) {
        self.seen.remove(&tenant);
    }
}

impl Use {
    /// The same tenant under a cap, if a request such as those it made may take for longer than `waited`.
    fn under(&self, cap: Cap, waited: Nanos) -> Option<Self> {
        let reads = self.read_bytes_per_second >= self.write_bytes_per_second;
        let way = if reads { cap.read } else { cap.write };
        let takes_s = self.request_bytes / way.max(1) as f64;
        (waited.as_secs_f64() < PATIENCE * takes_s).then(|| {
            let part = (cap.read + cap.write) as f64 / (self.read_bytes_per_second + self.write_bytes_per_second);
            Self {
                read_bytes_per_second: self.read_bytes_per_second * part,
                write_bytes_per_second: self.write_bytes_per_second * part,
                ..*self
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Waiting;
    use crate::tenant_use::{Cap, Use};
    use minerva_model::{Nanos, TenantId};

    #[test]
    fn who_cannot_complete_a_request_under_its_cap_is_still_there_for_a_while() {
        let mut waiting = Waiting::default();
        let reader = |tenant, rate| Use {
            tenant: TenantId(tenant),
            share: 100.0,
            read_bytes_per_second: rate,
            write_bytes_per_second: 0.0,
            request_bytes: 256e3,
        };
        let cap = |_| Some(Cap { read: 64_000, write: 4_000 });
        let mut present = |second, uses: &[Use]| {
            let all = waiting.with_waiting(Nanos::from_secs(second), uses, cap);
            all.iter().map(|one| (one.tenant.0, one.read_bytes_per_second)).collect::<Vec<_>>()
        };
        assert_eq!(present(1, &[reader(1, 256e3), reader(2, 5e6)]), [(1, 256e3), (2, 5e6)]);
        // A request takes four seconds, and is waited for for six; what counts is what the cap lets pass.
        for second in 2..7 {
            assert_eq!(present(second, &[reader(2, 5e6)]), [(2, 5e6), (1, 68e3)], "{second}");
        }
        assert_eq!(present(7, &[reader(2, 5e6)]), [(2, 5e6)]);
        let mut waiting = Waiting::default();
        waiting.with_waiting(Nanos::SECOND, &[reader(1, 256e3)], |_| None);
        assert!(
            waiting.with_waiting(Nanos::from_secs(2), &[], |_| None).is_empty(),
            "without a cap nobody waits for one"
        );
    }
}
