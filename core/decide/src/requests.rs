//! Requests judged, carried out and answered. Whatever is refused has changed nothing, and a request that comes again under
//! its key is answered again and not done again.

use crate::answers::key_reused;
use crate::coordination::OperationKey;
use crate::crowd::Around;
use crate::operation::Stage;
use crate::participation::{Participation, PendingPurchase};
use crate::to_pool::expected_others;
use minerva_model::{
    Boost, Deadline, DeviceId, Effect, Grant, Granted, Lifetime, Nanos, Operation, Outlook, Purchase, RefusalKind,
    Refused, RequestId, Role, TenantId, TenantRequest, Wish,
};
use std::collections::BTreeSet;

/// No operation is larger: a mebibyte short of what the size of a device can be.
const BYTES_MAX: u64 = 1 << 60;
/// Nor does one take the disk longer than this: that is a load, and not something to fit in.
const OPERATION_LONGEST: Nanos = Nanos::from_secs(86_400);
/// An operation cannot be done in time if the disk would have to be so many times as fast as it was measured to be. Beside
/// others it was measured at less than its best.
const FASTER_AT_MOST: f64 = 2.0;
/// All groups that somebody makes in one that was delegated may have as many operations as so many tenants. Each that waits is looked at
/// whenever anybody asks.
const TENANTS_OF_A_MAKER: usize = 4;
/// No level or deadline lies further ahead: ten years, which is a mistake and not a plan.
const AHEAD_MAX: Nanos = Nanos::from_secs(10 * 365 * 86_400);

/// What became of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handled {
    pub(crate) effects: Vec<Effect>,
    /// Tenants whose shares may have changed.
    pub(crate) changed: Vec<TenantId>,
}

type Refusal = (RefusalKind, String);
type History<'a> = &'a dyn Fn(TenantId, DeviceId) -> (f64, u32);

/// What a request is judged by besides what tenants asked for.
#[derive(Clone, Copy)]
pub(crate) struct Known<'a> {
    /// Disks on which something can be asked for.
    pub(crate) devices: &'a BTreeSet<DeviceId>,
    /// The factor of a tenant's group, and the operator's weight in percent.
    pub(crate) history: History<'a>,
    /// What is expected of tenants.
    pub(crate) outlook: &'a Outlook,
}

impl Participation {
    /// A tenant asks for something.
    pub(crate) fn requested(&mut self, now: Nanos, request: &TenantRequest, known: Known<'_>) -> Handled {
        if let Some(answer) = self.known_answer(request) {
            return Handled { effects: answer, changed: Vec::new() };
        }
        let mut effects = Vec::new();
        let done = self.judge(request).and_then(|()| self.carry_out(now, request, known, &mut effects));
        let TenantRequest { id, tenant, .. } = request.clone();
        let mut changed: Vec<TenantId> = done.is_ok().then_some(tenant).into_iter().collect();
        let answer = match done {
            // Not kept either, and nothing is under way: in the pool there may be no room the next time.
            Ok(Some(grant @ Grant::ToPool)) => {
                effects.push(Effect::Granted(Granted { id, tenant, grant }));
                return Handled { effects, changed: Vec::new() };
            }
            Ok(Some(grant)) => Some(Effect::Granted(Granted { id, tenant, grant })),
            Ok(None) => None,
            // Not kept: what was refused may be granted when it is asked for again.
            Err((kind, message)) => {
                effects.push(Effect::Refused(Refused { id, tenant, kind, message }));
                return Handled { effects, changed };
            }
        };
        changed.extend(effects.iter().filter_map(|effect| match effect {
            Effect::Ready { tenant, .. } => Some(*tenant),
            _ => None,
        }));
        if answer.is_some() {
            effects.extend(changed.iter().filter_map(|tenant| self.declaration(*tenant)).map(Effect::Declare));
        }
        effects.extend(answer.clone());
        // Levels are set, not counted: what comes again is done again, to no effect. And what the driver asks under a key of
        // its own never comes again; it would take the place of answers to clients.
        let is_level = matches!(request.wish, Wish::ClaimLevels(_) | Wish::SetLevel { .. } | Wish::ReleaseLevel);
        if !is_level && !request.id.is_own() {
            self.answers.keep(request.clone(), answer);
        }
        Handled { effects, changed }
    }

    fn known_answer(&self, request: &TenantRequest) -> Option<Vec<Effect>> {
        let TenantRequest { id, tenant, wish } = request;
        let member = self.members.get(tenant)?;
        let granted = |grant| vec![Effect::Granted(Granted { id: id.clone(), tenant: *tenant, grant })];
        let kept = self.answers.find(*tenant, id);
        if kept.is_some_and(|(_, before, _)| !is_same(before, wish)) {
            return Some(vec![key_reused(*tenant, id)]);
        }
        let (account, key) = (&member.account, &member.declaration_key);
        let bought = self.credits.bought(account, key, id);
        if let Some(purchase) = bought.or_else(|| self.credits.being_bought(account, key, id)) {
            return Some(match wish {
                Wish::Boost { slices, device } if purchase.is_of(*slices, *device) => {
                    // Who asks again before the commit hears with the first.
                    bought.map_or_else(Vec::new, |_| granted(Grant::Now))
                }
                _ => vec![key_reused(*tenant, id)],
            });
        }
        if let Wish::Coordinate(operation) = wish {
            return match self.coordination.get(&(*tenant, id.clone())) {
                Some(one) if !is_same(&Wish::Coordinate(one.operation.into()), &Wish::Coordinate(*operation)) => {
                    Some(vec![key_reused(*tenant, id)])
                }
                Some(one) => Some(granted(match one.stage {
                    Stage::Running(_) => Grant::Now,
                    Stage::Waiting { .. } => Grant::OnCallback,
                })),
                // It is over; whoever asks again has not heard that it could begin.
                None => kept.map(|_| granted(Grant::Now)),
            };
        }
        kept.map(|(_, _, answer)| answer.iter().cloned().collect())
    }

    /// What can be refused without looking at the wish itself.
    fn judge(&self, request: &TenantRequest) -> Result<(), Refusal> {
        let Some(member) = self.members.get(&request.tenant) else {
            return Err((RefusalKind::UnknownTenant, format!("There is no tenant {}.", request.tenant)));
        };
        if request.wish == Wish::ReleaseLevel {
            // Coming back is never refused, also when a rule came meanwhile.
            return Ok(());
        }
        let mut lengths = [Some(&request.id), key_of(&request.wish)].into_iter().flatten().map(|id| id.0.len());
        if lengths.any(|length| length == 0 || length > RequestId::LENGTH_MAX) {
            let text = format!("A key has 1 to {} bytes; a UUID will do.", RequestId::LENGTH_MAX);
            return Err((RefusalKind::OutOfRange, text));
        }
        if member.excluded {
            return Err((RefusalKind::NotAllowed, RefusalKind::EXCLUDED.to_owned()));
        }
        if member.terms.role == Role::Silent {
            let text = "The operator's rules give this tenant the role `silent`: it may not ask for anything.";
            return Err((RefusalKind::NotAllowed, text.to_owned()));
        }
        Ok(())
    }

    /// The grant, or nothing when the answer waits for a commit.
    fn carry_out(
        &mut self,
        now: Nanos,
        request: &TenantRequest,
        known: Known<'_>,
        effects: &mut Vec<Effect>,
    ) -> Result<Option<Grant>, Refusal> {
        let Known { devices, history, outlook } = known;
        let tenant = request.tenant;
        match &request.wish {
            Wish::ClaimLevels(_) | Wish::SetLevel { .. } | Wish::ReleaseLevel => {
                self.change_level(now, request).map(|()| Some(Grant::Now))
            }
            Wish::Boost { slices, device } => {
                check_device(*device, devices)?;
                // After a suspension the first purchase may come before the first slice.
                let account = self.members.get(&tenant).map(|member| member.account.as_str());
                effects.extend(account.and_then(|name| self.credits.expire(now, name)).map(Effect::Ledger));
                effects.push(self.buy(now, request, *slices, *device)?);
                Ok(None)
            }
            Wish::Coordinate(wanted) => {
                let operation = wanted.on(wanted.device.ok_or_else(|| no_usual_disk(devices))?);
                self.check_operation(now, tenant, &operation, devices)?;
                let around = Around::new(&self.crowd, &self.bandwidths, &self.members, history);
                let expected = expected_others(outlook, now, tenant, operation.device);
                if self.coordination.belongs_in_pool(&operation, wanted.pool, expected, &around) {
                    return Ok(Some(Grant::ToPool));
                }
                Ok(Some(self.coordination.ask(now, (tenant, request.id.clone()), operation, &around)))
            }
            Wish::Start(id) => {
                let around = Around::new(&self.crowd, &self.bandwidths, &self.members, history);
                let known = self.coordination.start(now, &(tenant, id.clone()), &around);
                known.then_some(Some(Grant::Now)).ok_or_else(|| unknown_operation(id))
            }
            Wish::Finish(id) | Wish::Cancel(id) => {
                self.end_operation(now, (tenant, id.clone()), history, effects)?;
                Ok(Some(Grant::Now))
            }
        }
    }

    /// A tenant steps back, or comes back.
    fn change_level(&mut self, now: Nanos, request: &TenantRequest) -> Result<(), Refusal> {
        let TenantRequest { tenant, id, wish } = request;
        match wish {
            Wish::ClaimLevels(claims) => {
                let until = claims.set.and_then(|set| set.until);
                check_lifetime(now, until.map_or(Lifetime::UntilReleased, Lifetime::Until))?;
                self.levels.claim(*tenant, claims.clone(), Some(id));
            }
            Wish::SetLevel { level, lifetime } => {
                check_lifetime(now, *lifetime)?;
                self.levels.set(*tenant, *level, *lifetime, Some(id));
            }
            _ => self.levels.release(*tenant),
        }
        Ok(())
    }

    /// An operation is over. Whoever waited for it need not wait for the end of the slice.
    fn end_operation(
        &mut self,
        now: Nanos,
        key: OperationKey,
        history: History<'_>,
        effects: &mut Vec<Effect>,
    ) -> Result<(), Refusal> {
        let device = self.coordination.get(&key).map(|one| one.operation.device);
        let device = device.ok_or_else(|| unknown_operation(&key.1))?;
        let around = Around::new(&self.crowd, &self.bandwidths, &self.members, history);
        self.coordination.end(now, &key, &around);
        let due = self.coordination.release(now, device, &around);
        effects.extend(due.into_iter().map(|(tenant, id)| Effect::Ready { tenant, id }));
        Ok(())
    }

    fn buy(
        &mut self,
        now: Nanos,
        request: &TenantRequest,
        slices: u32,
        device: Option<DeviceId>,
    ) -> Result<Effect, Refusal> {
        let Some(member) = self.members.get(&request.tenant) else {
            return Err((RefusalKind::UnknownTenant, format!("There is no tenant {}.", request.tenant)));
        };
        let settings = self.credits.settings().on(member.terms);
        if !settings.enabled || !self.enforces {
            let why = if settings.enabled { "Minerva does not steer at present" } else { "credits are switched off" };
            return Err((RefusalKind::NotAllowed, format!("No boost can be bought: {why}. Nothing was spent.")));
        }
        if !(1..=settings.boost_slices_max).contains(&slices) {
            let text = format!("A boost is of 1 to {} slices, not {slices}.", settings.boost_slices_max);
            return Err((RefusalKind::OutOfRange, text));
        }
        if member.terms.role == Role::Guest {
            let text = "The operator's rules give this tenant the role `guest`: it may not buy. Nothing was spent.";
            return Err((RefusalKind::NotAllowed, text.to_owned()));
        }
        let price = settings.boosted_slice_price.times(u64::from(slices));
        let (account, key) = (member.account.clone(), member.declaration_key.clone());
        let purchase = Purchase { request: request.id.clone(), slices: Some(slices), device, price };
        let entry = self.credits.spend(now, (&account, &key), purchase).map_err(|held| {
            let accruing = self.credits.accruing(&account);
            let text = format!(
                "{slices} boosted slices cost {price} credits and the account holds {held}, with {accruing} more not \
                 entered yet. Credits are earned by stepping back while others use the disk."
            );
            (RefusalKind::NotEnoughCredits, text)
        })?;
        let boost = Boost { request: request.id.clone(), device, slices_left: slices };
        self.purchases_under_way.insert(entry.number, PendingPurchase { tenant: request.tenant, boost });
        Ok(Effect::Ledger(entry))
    }

    fn check_operation(
        &self,
        now: Nanos,
        tenant: TenantId,
        operation: &Operation,
        devices: &BTreeSet<DeviceId>,
    ) -> Result<(), Refusal> {
        check_device(Some(operation.device), devices)?;
        if !(1..=BYTES_MAX).contains(&operation.bytes) {
            let text = format!("An operation moves 1 to {BYTES_MAX} bytes, not {}.", operation.bytes);
            return Err((RefusalKind::OutOfRange, text));
        }
        if let Some(deadline) = operation.deadline {
            if deadline.at() <= now {
                let late = now.since(deadline.at());
                let text = format!("The deadline passed {late} ago. Begin at once, or ask with a later one.");
                return Err((RefusalKind::TooLate, text));
            }
            check_ahead(now, deadline.at())?;
        }
        self.check_size(now, operation)?;
        self.check_count(tenant)
    }

    /// Each tenant has so many at most, and all together that somebody made who may make groups, and so has any number of tenants. An
    /// operator's group has as many as the operator made.
    fn check_count(&self, tenant: TenantId) -> Result<(), Refusal> {
        let operations_max = self.coordination.settings().operations_max as usize;
        let refuse = |whose: &str, most: usize| {
            let text = format!(
                "{most} operations of {whose} wait or are under way, which is the limit. Finish or cancel some first."
            );
            Err((RefusalKind::TooMany, text))
        };
        if self.coordination.of(tenant).count() >= operations_max {
            return refuse("this tenant", operations_max);
        }
        let maker = |tenant: TenantId| self.members.get(&tenant)?.maker.as_ref();
        let Some(own) = maker(tenant) else { return Ok(()) };
        let together_max = operations_max.saturating_mul(TENANTS_OF_A_MAKER);
        if self.coordination.count_of(|tenant| maker(tenant) == Some(own)) >= together_max {
            return refuse("the groups of this tenant's owner", together_max);
        }
        Ok(())
    }

    fn check_size(&self, now: Nanos, operation: &Operation) -> Result<(), Refusal> {
        let measured = self.bandwidths.get(operation.device, operation.access);
        let rate = measured.unwrap_or(self.coordination.settings().assumed_bytes_per_second as f64).max(1.0);
        let Operation { device, bytes, .. } = *operation;
        let megabytes = bytes as f64 / 1e6;
        let known = if measured.is_some() { "was measured" } else { "is taken" };
        let delivers = format!("Disk {device} {known} to deliver {:.1} MB/s", rate / 1e6);
        let refuse = |text: String| Err((RefusalKind::OutOfRange, text));
        if let (Some(Deadline::DoneBefore(at)), Some(rate)) = (operation.deadline, measured) {
            let within = at.since(now);
            if bytes as f64 > rate * within.as_secs_f64() * FASTER_AT_MOST {
                return refuse(format!(
                    "{delivers}, so {megabytes:.1} MB cannot be done within {within}. Ask with a later deadline, or say by \
                     when it is to begin."
                ));
            }
        }
        if bytes as f64 > rate * OPERATION_LONGEST.as_secs_f64() {
            return refuse(format!(
                "{delivers}, so {megabytes:.1} MB would take it longer than a day, which cannot be fitted in. Begin \
                 without asking, at a low level if others matter."
            ));
        }
        Ok(())
    }
}

/// A request that comes again has the same words. Deadlines are counted from when it was first asked, and the disk may have
/// been chosen for it: of an operation the first ones stand.
fn is_same(before: &Wish, wish: &Wish) -> bool {
    match (before, wish) {
        (Wish::Coordinate(before), Wish::Coordinate(now)) => (before.bytes, before.access) == (now.bytes, now.access),
        _ => before == wish,
    }
}

const fn key_of(wish: &Wish) -> Option<&RequestId> {
    match wish {
        Wish::Start(id) | Wish::Finish(id) | Wish::Cancel(id) => Some(id),
        _ => None,
    }
}

fn check_lifetime(now: Nanos, lifetime: Lifetime) -> Result<(), Refusal> {
    match lifetime {
        Lifetime::UntilReleased => Ok(()),
        Lifetime::Until(at) if at <= now => {
            let text = format!("The level would have ended {} ago.", now.since(at));
            Err((RefusalKind::TooLate, text))
        }
        Lifetime::Until(at) => check_ahead(now, at),
    }
}

fn check_ahead(now: Nanos, at: Nanos) -> Result<(), Refusal> {
    if at.since(now) > AHEAD_MAX {
        return Err((RefusalKind::OutOfRange, "That is more than ten years ahead.".to_owned()));
    }
    Ok(())
}

fn check_device(device: Option<DeviceId>, devices: &BTreeSet<DeviceId>) -> Result<(), Refusal> {
    match device {
        Some(id) if !devices.contains(&id) => {
            Err((RefusalKind::UnknownDevice, format!("There is no disk {id} that Minerva watches.")))
        }
        _ => Ok(()),
    }
}

/// The request names no disk, and none can be told from what the tenant does.
fn no_usual_disk(devices: &BTreeSet<DeviceId>) -> Refusal {
    let disks: Vec<String> = devices.iter().map(ToString::to_string).collect();
    let disks = if disks.is_empty() { "none".to_owned() } else { disks.join(", ") };
    (RefusalKind::UnknownDevice, format!("This tenant has used no disk yet, so say which one: {disks}."))
}

fn unknown_operation(id: &RequestId) -> Refusal {
    let text = format!("No operation waits or is under way under the key {id}: it was never asked for, or it is over.");
    (RefusalKind::UnknownOperation, text)
}
