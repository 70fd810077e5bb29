//! Claims on levels, carried out: what is in force for a tenant is what its claims come to, and the engine is told when that
//! changes.

use crate::clock::{boottime, unix_ns};
use crate::driver::Driver;
use crate::participation::ask::{LevelLifetime, Refusal};
use crate::participation::claims::{Claims, End, Set};
use crate::participation::convert;
use crate::participation::schedule::TimeTable;
use minerva_api::v1;
use minerva_model::{Level, Lifetime, RefusalKind, Tenant, TenantId, Wish};
use minerva_store::{Schedule, Span};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::os::fd::OwnedFd;
use tokio::sync::mpsc::Sender;

impl Driver {
    /// Sets a level, or comes back; answers what is in force.
    pub(crate) fn set_level(
        &mut self,
        tenant: TenantId,
        level: Level,
        lifetime: LevelLifetime,
    ) -> Result<Level, Refusal> {
        let end = match lifetime {
            LevelLifetime::UntilReleased => End::Release,
            LevelLifetime::For(span) => End::At(boottime() + span),
            LevelLifetime::Process(process) => End::Process(process),
        };
        let set = (level != Level::Normal).then_some(Set { level, end });
        let before = self.claims(tenant).set(set);
        let outcome = self.enforce(tenant, "set", Asking::Tenant);
        if outcome.is_err() {
            self.claims(tenant).set(before);
        }
        self.keep_claims(tenant);
        outcome
    }

    /// Holds a level for as long as somebody listens.
    pub(crate) fn hold_level(
        &mut self,
        tenant: TenantId,
        level: Level,
        changes: Sender<Result<Level, Refusal>>,
    ) -> bool {
        if self.claims(tenant).hold(level, changes).is_err() {
            return false;
        }
        let outcome = self.enforce(tenant, "hold", Asking::Tenant);
        if let Err(refusal) = &outcome {
            self.claims(tenant).unhold(refusal);
        }
        self.keep_claims(tenant);
        outcome.is_ok()
    }

    /// Replaces the schedule; answers what is in force.
    pub(crate) fn set_schedule(
        &mut self,
        tenant: TenantId,
        entries: &[v1::ScheduleEntry],
        time_zone: String,
    ) -> Result<Level, Refusal> {
        let spans = entries.iter().map(span).collect::<Result<Vec<_>, _>>()?;
        let table = TimeTable::new(Schedule { time_zone, spans })
            .map_err(|message| Refusal { kind: RefusalKind::OutOfRange, message })?;
        let before = self.claims(tenant).schedule((!entries.is_empty()).then_some(table));
        let outcome = self.enforce(tenant, "schedule", Asking::Tenant);
        if outcome.is_err() {
            self.claims(tenant).schedule(before);
        }
        self.keep_claims(tenant);
        outcome
    }

    /// What a tenant claimed before this start holds on; what it held ended with the daemon. To be called when the engine has
    /// recalled it.
    pub(crate) fn recall_claims(&mut self, tenant: &Tenant) {
        if !self.parts.claims.contains_key(&tenant.id) {
            self.parts.claims.insert(tenant.id, Claims::recalled(self.memory.claimed(tenant)));
        }
        let recalled = self.engine.part(tenant.id).map_or(Level::Normal, |part| part.level);
        self.claims(tenant.id).in_force = recalled;
        self.review_claim(tenant.id, "recalled");
    }

    /// Once a slice: ends what has ended, and puts in force what the claims come to now.
    pub(crate) fn review_claims(&mut self) {
        let tenants: Vec<TenantId> = self.parts.claims.keys().copied().collect();
        for tenant in tenants {
            self.review_claim(tenant, "ended");
        }
    }

    fn review_claim(&mut self, tenant: TenantId, origin: &str) {
        let ended = self.claims(tenant).end(boottime(), has_ended);
        let claims = self.claims(tenant);
        let level = claims.level(unix_ns());
        if level != claims.in_force {
            let origin = if ended || level < claims.in_force { origin } else { "schedule" };
            if self.enforce(tenant, origin, Asking::Loop).is_err() {
                // A rule forbids it by now. It is asked for again only when it changes.
                self.claims(tenant).in_force = level;
            }
        }
        if ended {
            self.keep_claims(tenant);
        }
        self.tell_holders(tenant);
    }

    /// Tells the engine what the claims of a tenant come to. One that asks is judged even if nothing changes.
    fn enforce(&mut self, tenant: TenantId, origin: &str, asking: Asking) -> Result<Level, Refusal> {
        let level = self.claims(tenant).level(unix_ns());
        let wish = match (asking, level) {
            // Coming back is never refused.
            (Asking::Loop, Level::Normal) => Wish::ReleaseLevel,
            _ => Wish::SetLevel { level, lifetime: Lifetime::UntilReleased },
        };
        let key = self.parts.own_key(origin);
        let verdict = self.request(tenant, key, wish, &format!("level {level} ({origin})"));
        if let Some(Err(refusal)) = verdict {
            return Err(refusal);
        }
        self.claims(tenant).in_force = level;
        self.tell_holders(tenant);
        Ok(level)
    }

    fn claims(&mut self, tenant: TenantId) -> &mut Claims {
        self.parts.claims.entry(tenant).or_default()
    }

    fn tell_holders(&mut self, tenant: TenantId) {
        let claims = self.claims(tenant);
        claims.tell();
        if claims.is_empty() {
            self.parts.claims.remove(&tenant);
        }
    }

    fn keep_claims(&mut self, tenant: TenantId) {
        let standing = self.claims(tenant).standing();
        if let Some(tenant) = self.tenants.get(&tenant) {
            self.memory.claim(tenant, standing);
        }
        self.tell_holders(tenant);
    }
}

/// Who wants a level changed.
#[derive(Clone, Copy)]
enum Asking {
    Tenant,
    Loop,
}

fn span(entry: &v1::ScheduleEntry) -> Result<Span, Refusal> {
    let level = convert::level(entry.level)?;
    let number = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
    let days = u8::try_from(entry.days).unwrap_or(u8::MAX);
    Ok(Span { begin_minute: number(entry.begin_minute), end_minute: number(entry.end_minute), days, level })
}

/// A pidfd can be read once its process has ended.
fn has_ended(process: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(process, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|count| count > 0)
}
