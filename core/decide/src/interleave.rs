//! Temporal discontinuity avoidance (Malensek et al. 2016, section 4.2): bursts take turns.
//!
//! Tenants that alternate between the disk and other work leave it idle whenever they do the other work at the same time. While two
//! of them use the disk at once, one burst goes first: it ends sooner, and while that tenant computes, the disk carries what the
//! other has waiting. So their phases part, and stay apart. A burst that goes first is not interrupted; the next is that of the
//! tenant that had the least of the disk lately, so that their shares become equal.
//!
//! Of a batch job whose own bursts are too few to be known, those of earlier runs of its name are taken (`makespan/bursts.rs`).
//!
//! **Guards.** Only those take part of which the next slices are foreseen, with skill, as partly busy and partly dormant, or whose
//! bursts have been alike; noise has no skill, its probabilities stay near a half, and its bursts have nothing in common. The waiting ones keep all of their share but the part that skill has
//! earned, which goes to whose burst is first (`deal.rs`); nobody else is touched. And what is measured counts: whoever goes
//! on for longer than the forecast reaches, or transfers twice what its bursts do, loses its turn, and has none until it was dormant.

use crate::compose::{DecideInput, Pair, SharePolicy};
use crate::deal::{DealKind, PART_MAX, Stake, is_fresh};
use crate::stance::Stance;
use minerva_model::{DeviceId, IoSignals, Nanos, Outlook, PolicyName, Reason, TenantId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A slice is foreseen as busy from this probability on, and as dormant up to the other, in thousandths.
const BUSY_PERMILLE: u16 = 700;
const DORMANT_PERMILLE: u16 = 300;
/// So many slices of each must be ahead: weights need one to take effect.
const SLICES_OF_EACH: usize = 2;
/// A burst goes first for at most so many slices, as many as are foreseen.
const TURN_SLICES: u32 = 15;
/// A burst that transfers so many times what bursts do is none.
const OUTGROWN: f64 = 2.0;
/// Half-life of what tenants had of the disk lately.
const LATELY: Nanos = Nanos::from_secs(60);
/// Less skill moves nothing, and a part is a multiple of this.
const PART_STEP: f64 = 0.1;

/// Whose burst goes first, as a factor.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule {
    disks: BTreeMap<DeviceId, Turns>,
}

/// Those on one disk that alternate.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Turns {
    members: BTreeMap<TenantId, Member>,
    /// Whose burst goes first, and for how many slices it has.
    first: Option<(TenantId, u32)>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Member {
    /// Transferred lately, in bytes.
    attained: f64,
    /// It used the disk in the last slice.
    active: bool,
    /// It had its turn and did not stop.
    overran: bool,
    /// What the skill of its phases has earned; 0 if they are not foreseen.
    part: f64,
    /// The next slice is foreseen as one without I/O.
    pausing: bool,
    /// What its bursts transfer, where they are alike.
    #[serde(default)]
    burst_bytes: Option<f64>,
    /// What the one under way has.
    #[serde(default)]
    in_burst: f64,
    /// What they transfer is told by earlier runs of the same batch job.
    #[serde(default)]
    by_runs: bool,
}

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::INTERLEAVE
    }

    fn slice(&mut self, now: Nanos, input: &DecideInput<'_>) {
        let slice = input.signals.io.iter().map(|row| row.elapsed).max().unwrap_or(Nanos::ZERO);
        self.foresee(now, slice, &input.outlook);
        self.disks.values_mut().flat_map(|turns| turns.members.values_mut()).for_each(|member| member.active = false);
        for row in &input.signals.io {
            let member = self.disks.get_mut(&row.device).and_then(|turns| turns.members.get_mut(&row.tenant));
            if let Some(member) = member {
                member.take(row);
            }
        }
        self.disks.values_mut().for_each(Turns::pass);
    }

    fn has_stakes(&self) -> bool {
        self.disks.values().any(|turns| turns.first.is_some())
    }

    fn stake(&self, pair: &Pair<'_>) -> Option<Stake> {
        let turns = self.disks.get(&pair.device).filter(|_| pair.stance == Stance::default())?;
        let (first, _) = turns.first?;
        let member = turns.members.get(&pair.tenant).filter(|member| member.part > 0.0)?;
        let claim = f64::from(u8::from(first == pair.tenant));
        Some(Stake { kind: DealKind::Burst, part: member.part, claim, past: 1.0, present: pair.present })
    }

    fn factor(&self, pair: &Pair<'_>, product: f64) -> Option<f64> {
        self.stake(pair).and_then(|stake| pair.deals.factor(&stake, product))
    }

    fn reason(&self, pair: &Pair<'_>, _: f64) -> Reason {
        let Some(Stake { claim, part, .. }) = self.stake(pair) else { return Reason::NoHistory };
        let member = self.disks.get(&pair.device).and_then(|turns| turns.members.get(&pair.tenant));
        let by_runs = member.is_some_and(|member| member.by_runs);
        Reason::Interleaved { leads: claim > 0.0, part_permille: (part * 1e3).round() as u32, by_runs }
    }
}

impl Rule {
    /// Who takes part from now on. What a tenant had lately stays while its phases are foreseen at all.
    fn foresee(&mut self, now: Nanos, slice: Nanos, outlook: &Outlook) {
        if outlook.phases().is_empty() {
            self.disks.clear();
            return;
        }
        let mut disks = std::mem::take(&mut self.disks);
        for phases in outlook.phases() {
            let known = disks.get(&phases.device).and_then(|turns| turns.members.get(&phases.tenant));
            let count =
                |within: &dyn Fn(u16) -> bool| phases.busy_permille.iter().filter(|busy| within(**busy)).count();
            let alternates = count(&|busy| busy >= BUSY_PERMILLE) >= SLICES_OF_EACH
                && count(&|busy| busy <= DORMANT_PERMILLE) >= SLICES_OF_EACH;
            let is_usable = alternates && is_fresh(phases.made_at, now, slice) && phases.skill >= PART_STEP;
            let earned = |skill: f64| (skill.clamp(0.0, PART_MAX) / PART_STEP + 1e-9).floor() * PART_STEP;
            let by_series = if is_usable { earned(phases.skill) } else { 0.0 };
            let by_bursts = if is_fresh(phases.made_at, now, slice) { earned(phases.burst.certainty) } else { 0.0 };
            let member = Member {
                part: by_series.max(by_bursts),
                // What a series says of the next slice supposes the rate of before; bytes that are left are surer.
                pausing: by_bursts < by_series && phases.busy_permille[0] <= DORMANT_PERMILLE,
                burst_bytes: (by_bursts > 0.0).then_some(phases.burst.bytes),
                by_runs: phases.burst.by_runs && by_bursts > by_series,
                ..known.copied().unwrap_or_default()
            };
            self.disks.entry(phases.device).or_default().members.insert(phases.tenant, member);
        }
        for (device, turns) in &mut self.disks {
            turns.first = disks.remove(device).and_then(|before| before.first);
        }
    }
}

impl Member {
    fn take(&mut self, row: &IoSignals) {
        let bytes = row.transferred.bytes() as f64;
        self.attained *= libm::exp2(-row.elapsed.as_secs_f64() / LATELY.as_secs_f64());
        self.attained += bytes;
        self.active = bytes > 0.0;
        self.in_burst = if self.active { self.in_burst + bytes } else { 0.0 };
        self.overran |= self.burst_bytes.is_some_and(|expected| self.in_burst > OUTGROWN * expected);
    }

    /// Its burst may go first.
    fn may_lead(&self) -> bool {
        self.active && self.part > 0.0 && !self.overran && !self.pausing
    }
}

impl Turns {
    /// A slice has passed: the turn goes on, ends, or goes to another.
    fn pass(&mut self) {
        for member in self.members.values_mut().filter(|member| !member.active) {
            (member.overran, member.in_burst) = (false, 0.0);
        }
        let before = self.first.take();
        if let Some((tenant, slices)) = before
            && let Some(member) = self.members.get_mut(&tenant)
        {
            member.overran |= slices >= TURN_SLICES;
        }
        // One that is dormant will be back, and then finds whose burst is under way.
        if self.members.values().filter(|member| member.part > 0.0).count() < 2 {
            return;
        }
        let goes_on = before.filter(|(tenant, _)| self.members.get(tenant).is_some_and(Member::may_lead));
        let candidates = self.members.iter().filter(|(_, member)| member.may_lead());
        let least = candidates.min_by(|(_, a), (_, b)| a.attained.total_cmp(&b.attained));
        self.first = match goes_on {
            Some((tenant, slices)) => Some((tenant, slices + 1)),
            None => least.map(|(tenant, _)| (*tenant, 1)),
        };
    }
}
