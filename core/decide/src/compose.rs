//! The policies' factors joined to a share, in a fixed order:
//!
//! | factor | says | when it is there |
//! |---|---|---|
//! | fennel | past use | always |
//! | credits | slices of high priority were bought; history does not count | a boost runs; then no operation and no level counts |
//! | coordination | an operation is under way: the place it began with, raised while others use the disk | it runs |
//! | levels | the tenant steps back | it does |
//! | operator | the operator's weight | it is not 100 % |
//! | levels | all are raised alike, so that there is room below for who steps back | somebody does, and all others are heavy |
//! | guard | the floor | it raises the share; never at level `idle` |

use crate::fennel::Fennel;
use crate::floor::Floor;
use crate::stance::Stance;
use crate::usage::{Averages, Usage};
use minerva_model::{Decision, DeviceId, Factor, Nanos, Policy, Reason, Share, TenantId};

/// What the policies say of one pair.
#[derive(Clone, Copy)]
pub(crate) struct Opinions<'a> {
    pub(crate) fennel: &'a Fennel,
    pub(crate) usage: &'a Usage,
    pub(crate) stance: Stance,
    pub(crate) weight_percent: u32,
    /// Everyone on the disk is raised so many times.
    pub(crate) room: u32,
    pub(crate) floor: &'a Floor,
}

impl Opinions<'_> {
    /// The share before the room and the guard, not rounded.
    fn unguarded(&self) -> f64 {
        let history = self.fennel.factor(self.usage.group);
        let own = f64::from(Share::NEUTRAL.get()) * history * f64::from(self.weight_percent) / 100.0;
        self.stance.factors(history).fold(own, |share, factor| share * factor.value)
    }

    /// The share that the policies alone give, before everyone is raised.
    pub(crate) fn without_room(&self) -> Share {
        if self.stance.is_idle() { Share::MIN } else { Share::from_f64(self.unguarded()) }
    }

    /// The share that the policies alone give.
    pub(crate) fn without_floor(&self) -> Share {
        if self.stance.is_idle() { Share::MIN } else { Share::from_f64(self.unguarded() * f64::from(self.room)) }
    }

    /// The share.
    pub(crate) fn share(&self) -> Share {
        match self.stance.is_idle() {
            true => Share::MIN,
            false => self.without_floor().max(Share::new(self.floor.level)),
        }
    }

    /// The share with every reason.
    pub(crate) fn decision(&self, tenant: TenantId, device: DeviceId, heaviest: Averages, now: Nanos) -> Decision {
        let (without, share) = (self.without_floor(), self.share());
        let mut factors = Vec::with_capacity(3);
        let value = self.fennel.factor(self.usage.group);
        factors.push(Factor { policy: Policy::Fennel, value, reason: self.fennel.reason(self.usage, heaviest, now) });
        factors.extend(self.stance.factors(value));
        if self.weight_percent != 100 {
            let reason = Reason::OperatorWeight { percent: self.weight_percent };
            factors.push(Factor { policy: Policy::Operator, value: f64::from(self.weight_percent) / 100.0, reason });
        }
        if self.stance.is_idle() {
            // Whatever the others come to, the product is the least share.
            let share = f64::from(Share::MIN.get());
            let least = share / self.unguarded().max(share / 1_000.0);
            factors
                .iter_mut()
                .filter(|factor| factor.policy == Policy::Levels)
                .for_each(|factor| factor.value *= least);
        } else if self.room > 1 {
            let (value, reason) = (f64::from(self.room), Reason::Room { times: self.room });
            factors.push(Factor { policy: Policy::Levels, value, reason });
        }
        if share > without {
            // A weight of 0 % would leave nothing to multiply; the share is then counted from the least one.
            let unguarded = self.unguarded() * f64::from(self.room);
            let value = f64::from(share.get()) / unguarded.max(f64::from(Share::MIN.get()) / 1_000.0);
            let reason = Reason::Floor { permille: self.floor.permille, without };
            factors.push(Factor { policy: Policy::Guard, value, reason });
        }
        Decision { tenant, device, share, factors }
    }
}
