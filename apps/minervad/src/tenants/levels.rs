//! Claims on levels, handed to the engine, which says what they come to. What a tenant sets and schedules is in force at once and
//! answered when the store has it.

use crate::clock::{boottime, unix_ns};
use crate::slice_loop::Driver;
use crate::tenants::claims::{Claims, End, PersistentClaim, Set};
use crate::tenants::pending::Committing;
use crate::tenants::schedule::{TimeTable, check_spans};
use minerva_api::v1;
use minerva_model::{Event, Level, RefusalKind, Tenant, TenantId, Wish};
use minerva_store::{AnswerKind, Schedule, Span, StoredClaim};
use minerva_tenant_server::decode;
use minerva_tenant_server::process::{Process, ProcessHandle};
use minerva_tenant_server::request::{Answer, LevelLifetime, Refusal};
use tokio::sync::mpsc::Sender;

impl Driver {
    /// Sets a level, or comes back; answers what is in force. False when that is refused at once.
    pub(crate) fn set_level(
        &mut self,
        tenant: TenantId,
        level: Level,
        lifetime: LevelLifetime,
        answer: Answer<Level>,
    ) -> bool {
        let end = match lifetime {
            LevelLifetime::UntilReleased => End::Release,
            LevelLifetime::For(span) => End::At(boottime() + span),
            LevelLifetime::Process(process) => End::Process(process),
        };
        let set = (level != Level::Normal).then_some(Set { level, end });
        let table = self.claims(tenant).persistent.table.clone();
        let text = format!("level {level} (set)");
        self.persist(tenant, ("set", &text), PersistentClaim { set, table }, answer)
    }

    /// Replaces the schedule; answers what is in force. False when that is refused at once.
    pub(crate) fn set_schedule(
        &mut self,
        tenant: TenantId,
        entries: &[v1::ScheduleEntry],
        time_zone: String,
        answer: Answer<Level>,
    ) -> bool {
        let spans = self.check_spans(tenant, entries.len());
        let spans = spans.and_then(|()| entries.iter().map(span).collect::<Result<Vec<_>, _>>());
        let table = spans.and_then(|spans| {
            let table = TimeTable::new(Schedule { time_zone, spans });
            table.map_err(|message| Refusal::new(RefusalKind::OutOfRange, message))
        });
        match table {
            Ok(table) => {
                let set = self.claims(tenant).persistent.set.clone();
                let table = (!entries.is_empty()).then_some(table);
                let text = format!("levels by a schedule of {} spans", entries.len());
                self.persist(tenant, ("schedule", &text), PersistentClaim { set, table }, answer)
            }
            Err(refusal) => {
                // Whoever asked may have gone.
                let _ = answer.send(Err(refusal));
                false
            }
        }
    }

    /// Each span costs when a schedule is looked up, and whoever may make groups has any number of tenants.
    fn check_spans(&self, tenant: TenantId, count: usize) -> Result<(), Refusal> {
        let scheduled = self.parts.claims.iter().filter_map(|(other, claims)| Some((*other, claims.table()?)));
        let others = scheduled.filter_map(|(other, table)| Some((self.tenants.get(&other)?, table)));
        let own = self.tenants.get(&tenant);
        own.map_or(Ok(()), |own| check_spans(own, others, count))
            .map_err(|message| Refusal::new(RefusalKind::TooMany, message))
    }

    /// Puts in force what a tenant set and scheduled, and answers when it is kept.
    fn persist(
        &mut self,
        tenant: TenantId,
        what: (&str, &str),
        persistent: PersistentClaim,
        answer: Answer<Level>,
    ) -> bool {
        let before = std::mem::replace(&mut self.claims(tenant).persistent, persistent);
        match self.claim(tenant, what) {
            Ok(()) => {
                self.keep_claims(tenant, Some(answer));
                true
            }
            Err(refusal) => {
                self.claims(tenant).persistent = before;
                self.tell_holders(tenant);
                let _ = answer.send(Err(refusal));
                false
            }
        }
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
        let outcome = self.claim(tenant, ("hold", &format!("level {level} (held)")));
        if let Err(refusal) = &outcome {
            self.claims(tenant).unhold(refusal);
        }
        self.tell_holders(tenant);
        outcome.is_ok()
    }

    /// What is remembered of a tenant goes into the engine, and what it claimed holds on; what it held ended with the daemon.
    /// While the store cannot be read that is unknown, and tried again with every slice.
    pub(crate) fn recall(&mut self, tenant: &Tenant) {
        let recalled = self.memory.recalled(tenant, self.engine.knows_credits(tenant.id));
        let (Some(recalled), Some(claimed)) = (recalled, self.memory.claimed(tenant)) else {
            self.parts.unread.insert(tenant.id);
            self.claims(tenant.id).doubtful = true;
            return;
        };
        let was_unread = self.parts.unread.remove(&tenant.id);
        self.feed(Event::Recalled(Box::new(recalled)));
        self.recall_claims(tenant, claimed, was_unread);
    }

    /// Tries again to read what could not be read.
    pub(crate) fn recall_unread(&mut self) {
        // What is on its way to the ledger would be counted twice or not at all.
        while !self.memory.is_committing() {
            let Some(first) = self.parts.unread.first() else { return };
            let Some(tenant) = self.tenants.get(first).cloned() else {
                self.parts.unread.pop_first();
                continue;
            };
            self.recall(&tenant);
            if self.parts.unread.contains(&tenant.id) {
                return;
            }
        }
    }

    fn recall_claims(&mut self, tenant: &Tenant, claimed: StoredClaim, was_unread: bool) {
        let before = claimed.clone();
        let roots = self.watch.observer.roots();
        let binding = &self.parts.binding;
        let bind = |process: Process| process.again(&tenant.cgroup.path, roots, binding);
        match self.parts.claims.get_mut(&tenant.id) {
            None => {
                let claims = Claims::recalled(PersistentClaim::recalled(claimed, bind));
                self.parts.claims.insert(tenant.id, claims);
            }
            Some(claims) if was_unread && claims.doubtful => {
                claims.recall_late(PersistentClaim::recalled(claimed, bind))
            }
            // The tenant's rule changed; the claims are the same, and may be newer than what the store has.
            Some(_) => {}
        }
        let recalled = self.level_in_force(tenant.id);
        let claims = self.claims(tenant.id);
        claims.in_force = recalled;
        // The engine recalled the level, not what it came from.
        claims.told = claims.told.take().filter(|_| !was_unread);
        if claims.persistent.kept() != before {
            // A process has ended meanwhile, or the tenant has set something.
            claims.doubtful = true;
            self.keep_claims(tenant.id, None);
        }
        self.review_claim(tenant.id, "recalled");
    }

    /// Once a slice: ends what has ended, and tells the engine what is claimed now.
    pub(crate) fn review_claims(&mut self) {
        let tenants: Vec<TenantId> = self.parts.claims.keys().copied().collect();
        for tenant in tenants {
            self.review_claim(tenant, "ended");
        }
    }

    fn review_claim(&mut self, tenant: TenantId, origin: &str) {
        let in_force = self.level_in_force(tenant);
        let claims = self.claims(tenant);
        // The engine ends a level and goes on in a schedule by itself.
        claims.in_force = in_force;
        let ended = claims.end(boottime(), ProcessHandle::has_ended);
        let all = claims.all(boottime(), unix_ns());
        if claims.is_news(&all) {
            claims.told = Some(all.clone());
            self.feed(Event::LevelClaimsChanged { tenant, claims: all });
            let level = self.level_in_force(tenant);
            let before = std::mem::replace(&mut self.claims(tenant).in_force, level);
            if level != before {
                let origin = if ended || level < before { origin } else { "schedule" };
                let key = self.parts.own_key(origin);
                self.audit_request(tenant, AnswerKind::Granted, &key, format!("level {level} ({origin})"));
            }
        }
        if ended {
            self.keep_claims(tenant, None);
        }
        self.tell_holders(tenant);
    }

    /// A tenant asks for what it claims now; it is judged even if nothing changes. `what` is the origin of the key, and the words
    /// of the audit.
    fn claim(&mut self, tenant: TenantId, (origin, text): (&str, &str)) -> Result<(), Refusal> {
        let all = self.claims(tenant).all(boottime(), unix_ns());
        let key = self.parts.own_key(origin);
        if let Some(Err(refusal)) = self.request(tenant, key, Wish::ClaimLevels(all.clone()), text) {
            return Err(refusal);
        }
        let in_force = self.level_in_force(tenant);
        let claims = self.claims(tenant);
        claims.told = Some(all);
        claims.in_force = in_force;
        self.tell_holders(tenant);
        Ok(())
    }

    fn level_in_force(&self, tenant: TenantId) -> Level {
        self.engine.part(tenant).map_or(Level::Normal, |part| part.level)
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

    /// What a tenant set and scheduled is to be kept; `answer` is given when it is.
    fn keep_claims(&mut self, tenant: TenantId, answer: Option<Answer<Level>>) {
        let Some(known) = self.tenants.get(&tenant) else { return };
        let claims = self.parts.claims.entry(tenant).or_default();
        if claims.is_durable() {
            let in_force = claims.in_force;
            // Whoever asked may have gone.
            answer.map(|answer| answer.send(Ok(in_force)));
            return self.tell_holders(tenant);
        }
        claims.commit();
        let persistent = claims.persistent.clone();
        let number = self.memory.claim(known, persistent.kept());
        self.parts.committing.insert(number, Committing { tenant, persistent, answer });
        self.send_commits();
    }

    /// The store has what a tenant set and scheduled, or says why not.
    pub(crate) fn claims_kept(&mut self, number: u64, kept: Result<(), String>) {
        let Some(Committing { tenant, persistent, answer }) = self.parts.committing.remove(&number) else { return };
        let outcome = match kept {
            Ok(()) => {
                self.claims(tenant).committed(persistent);
                Ok(self.claims(tenant).in_force)
            }
            Err(detail) => Err(self.claims_not_kept(tenant, &detail)),
        };
        if let Some(answer) = answer {
            // Whoever asked may have gone.
            let _ = answer.send(outcome);
        }
        self.tell_holders(tenant);
    }

    fn claims_not_kept(&mut self, tenant: TenantId, detail: &str) -> Refusal {
        let claims = self.claims(tenant);
        claims.not_committed(unix_ns());
        let (stays, persistent) = (claims.doubtful, claims.persistent.kept());
        let message = if stays {
            if let Some(tenant) = self.tenants.get(&tenant) {
                self.memory.claim_later(tenant, persistent);
            }
            format!(
                "This is in force and could not be written down: {detail}. That is tried again with every slice; until it \
                 succeeds, a restart of Minerva would bring back what was set before."
            )
        } else {
            self.review_claim(tenant, "not-kept");
            format!("What was set could not be written down: {detail}. All is as before; set it again.")
        };
        Refusal::new(RefusalKind::NotCommitted, message)
    }
}

fn span(entry: &v1::ScheduleEntry) -> Result<Span, Refusal> {
    let level = decode::level(entry.level)?;
    let number = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);
    let days = u8::try_from(entry.days).unwrap_or(u8::MAX);
    Ok(Span { begin_minute: number(entry.begin_minute), end_minute: number(entry.end_minute), days, level })
}
