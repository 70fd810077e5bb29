//! The policies' factors joined to a share, in a fixed order: fennel, operator, guard.

use crate::fennel::Fennel;
use crate::floor::Floor;
use crate::usage::{Averages, Usage};
use minerva_model::{Decision, DeviceId, Factor, Nanos, Policy, Reason, Share, TenantId};

/// What the policies say of one pair.
#[derive(Clone, Copy)]
pub(crate) struct Opinions<'a> {
    pub(crate) fennel: &'a Fennel,
    pub(crate) usage: &'a Usage,
    pub(crate) weight_percent: u32,
    pub(crate) floor: &'a Floor,
}

impl Opinions<'_> {
    /// The share before the guard, not rounded.
    fn unguarded(&self) -> f64 {
        f64::from(Share::NEUTRAL.get()) * self.fennel.factor(self.usage.group) * f64::from(self.weight_percent) / 100.0
    }

    /// The share that the policies alone give.
    pub(crate) fn without_floor(&self) -> Share {
        Share::from_f64(self.unguarded())
    }

    /// The share.
    pub(crate) fn share(&self) -> Share {
        self.without_floor().max(Share::new(self.floor.level))
    }

    /// The share with every reason.
    pub(crate) fn decision(&self, tenant: TenantId, device: DeviceId, heaviest: Averages, now: Nanos) -> Decision {
        let (without, share) = (self.without_floor(), self.share());
        let mut factors = Vec::with_capacity(3);
        let value = self.fennel.factor(self.usage.group);
        factors.push(Factor { policy: Policy::Fennel, value, reason: self.fennel.reason(self.usage, heaviest, now) });
        if self.weight_percent != 100 {
            let reason = Reason::OperatorWeight { percent: self.weight_percent };
            factors.push(Factor { policy: Policy::Operator, value: f64::from(self.weight_percent) / 100.0, reason });
        }
        if share > without {
            // A weight of 0 % would leave nothing to multiply; the share is then counted from the least one.
            let value = f64::from(share.get()) / self.unguarded().max(f64::from(Share::MIN.get()) / 1_000.0);
            let reason = Reason::Floor { permille: self.floor.permille, without };
            factors.push(Factor { policy: Policy::Guard, value, reason });
        }
        Decision { tenant, device, share, factors }
    }
}
