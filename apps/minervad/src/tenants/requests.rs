//! What tenants ask for, carried out: each request becomes one of the engine's, and the engine's answer goes back.

use crate::clock::{boottime, unix_ns};
use crate::slice_loop::Driver;
use crate::tenants::describe;
use crate::tenants::pending::{Answered, EngineAnswer, Response, Waiting};
use crate::tenants::reports;
use minerva_api::v1;
use minerva_api::v1::coordinate_response::Answer as CoordinateAnswer;
use minerva_model::{
    Boost, Deadline, DeviceId, Event, Grant, MicroCredits, Nanos, OperationRequest, PoolOffer, RefusalKind, RequestId,
    TenantId, TenantRequest, Wish,
};
use minerva_store::{AnswerKind, LedgerRow, RequestRow};
use minerva_store_thread::Kept;
use minerva_tenant_server::refusals::{Refused, RefusedRequest, Who};
use minerva_tenant_server::request::{Answer, BoostAmount, Call, Refusal, TenantCall, WantedDisk, Within};
use tokio::sync::mpsc::Sender;

/// What a purchase buys: the key of the tenant's declaration, and the boost.
pub(crate) type Bought = (String, Boost);

/// The answers of a coordinated operation.
type Operations = Sender<Result<v1::CoordinateResponse, Refusal>>;

impl Driver {
    /// Refusals of the listeners go to the audit.
    pub(crate) fn audit_refused(&mut self) {
        for refused in self.parts.refusals.take() {
            self.memory.audit_request(refused_row(refused));
        }
    }

    /// Carries out one request of a tenant.
    pub(crate) fn asked(&mut self, request: TenantCall) {
        let TenantCall { tenant, call } = request;
        let kind = call.kind();
        if !self.tenants.contains_key(&tenant) {
            let message = format!("There is no tenant {tenant} any more.");
            call.refuse(&Refusal::new(RefusalKind::UnknownTenant, message));
            return self.metrics.requested(kind, false);
        }
        if self.parts.unread.contains(&tenant) && matches!(call, Call::Boost { .. } | Call::Credits { .. }) {
            let message = "What the account holds is not known, because the store could not be read; that is tried again \
                           with every slice. Nothing was spent.";
            call.refuse(&Refusal::new(RefusalKind::NotCommitted, message.to_owned()));
            return self.metrics.requested(kind, false);
        }
        let granted = match call {
            Call::Describe(answer) => {
                let described = self.describe(tenant);
                reply(answer, described)
            }
            Call::SetLevel { level, lifetime, answer } => self.set_level(tenant, level, lifetime, answer),
            Call::HoldLevel { level, changes } => self.hold_level(tenant, level, changes),
            Call::HoldJob { job, places } => self.hold_job(tenant, job, places),
            Call::HoldDebt { debt, within, disk, words } => self.hold_debt(tenant, debt, (within, disk), words),
            Call::ReportDebt(debt, registration, answer) => {
                let outcome = self.debt_reported(tenant, debt, registration);
                reply(answer, outcome)
            }
            Call::SetSchedule { entries, time_zone, answer } => self.set_schedule(tenant, &entries, time_zone, answer),
            Call::Credits { entries_max, answer } => self.tell_credits(tenant, entries_max, answer),
            Call::Boost { id, amount, device, answer } => self.boost(tenant, id, amount, device, answer),
            Call::Coordinate { id, size_bytes, access, within, disk, pool, answers } => {
                let operation = self.operation(tenant, (size_bytes, access), within, (disk, pool));
                self.coordinate(tenant, id, operation, answers)
            }
            Call::Begin(id, answer) => self.about_operation(tenant, "begin", Wish::Start(id), answer),
            Call::Finish(id, answer) => self.about_operation(tenant, "finish", Wish::Finish(id), answer),
            Call::Cancel(id, answer) => self.about_operation(tenant, "cancel", Wish::Cancel(id), answer),
            Call::Report { report, slot: _ } => {
                self.feed(Event::Reported(reports::summed(tenant, &report)));
                let account = self.tenants.get(&tenant).map(minerva_model::Tenant::history_key).unwrap_or_default();
                self.parts.reports.keep(boottime(), tenant, account, &report);
                true
            }
        };
        self.metrics.requested(kind, granted);
    }

    /// Asks the engine, and keeps what was asked and answered for the audit. Nothing when the answer waits for the store.
    pub(crate) fn request(&mut self, tenant: TenantId, id: RequestId, wish: Wish, text: &str) -> Option<EngineAnswer> {
        self.request_and_buy(tenant, id, wish, text, None)
    }

    /// The same, with what a purchase buys.
    fn request_and_buy(
        &mut self,
        tenant: TenantId,
        id: RequestId,
        wish: Wish,
        text: &str,
        bought: Option<Bought>,
    ) -> Option<EngineAnswer> {
        let event = Event::Requested(TenantRequest { id: id.clone(), tenant, wish });
        let mut result = self.consult(tenant, &id, event, bought);
        match &mut result {
            None => {}
            Some(Ok(grant)) => {
                let how = match grant {
                    Grant::Now => String::new(),
                    Grant::AfterSlices(slices) => format!(": after {slices} slices"),
                    Grant::OnCallback => ": waits".to_owned(),
                    Grant::ToPool => ": to the pool".to_owned(),
                };
                self.audit_request(tenant, AnswerKind::Granted, &id, format!("{text}{how}"));
            }
            Some(Err(refusal)) => self.tell_refusal(tenant, &id, text, refusal),
        }
        result
    }

    /// What the engine says at once to a request that an event makes. `bought` is kept with the request's entry in the ledger.
    pub(crate) fn consult(
        &mut self,
        tenant: TenantId,
        id: &RequestId,
        event: Event,
        bought: Option<Bought>,
    ) -> Option<EngineAnswer> {
        let mut response = self.handle(event);
        let own = response.answers.iter().position(|answer| (answer.tenant, &answer.id) == (tenant, id));
        let result = own.map(|index| response.answers.remove(index).result);
        self.settle(response, bought);
        result
    }

    /// Enters what the engine wants in the ledger, a purchase with what it buys, and answers those who wait.
    pub(crate) fn settle(&mut self, response: Response, mut bought: Option<Bought>) {
        for entry in response.entries {
            let boost = bought.take_if(|(_, boost)| entry.request.as_ref() == Some(&boost.request));
            self.memory.post(entry, boost);
        }
        self.send_commits();
        for Answered { tenant, id, result } in response.answers {
            self.answered(tenant, &id, result);
        }
        for answer in response.migrations {
            self.migration_counted(answer);
        }
    }

    /// Puts what the engine refused into the log and the audit, so that no listener has to.
    pub(crate) fn tell_refusal(&self, tenant: TenantId, id: &RequestId, what: &str, refusal: &mut Refusal) {
        let Some(tenant) = self.tenants.get(&tenant) else { return };
        let who = Who::Tenant { name: &tenant.name, account: &tenant.history_key() };
        let (word, message) = (refusal.kind.as_str(), &refusal.message);
        self.parts.refusals.note(&Refused { who, request: &id.0, what, word, message });
        refusal.is_told = true;
    }

    /// Keeps an answer for the audit.
    pub(crate) fn audit_request(&mut self, tenant: TenantId, kind: AnswerKind, id: &RequestId, text: String) {
        let Some(tenant) = self.tenants.get(&tenant) else { return };
        self.memory.audit_request(RequestRow {
            at_unix_ms: unix_ns() / 1_000_000,
            tenant_name: tenant.name.clone(),
            account: tenant.history_key(),
            kind,
            request: id.0.clone(),
            text,
        });
    }

    fn boost(
        &mut self,
        tenant: TenantId,
        id: RequestId,
        amount: BoostAmount,
        device: Option<DeviceId>,
        answer: Answer<v1::BoostResponse>,
    ) -> bool {
        let slice = self.file.config.engine.observe.slice.0.max(1);
        let slices = match amount {
            BoostAmount::Slices(slices) => slices,
            BoostAmount::For(span) => u32::try_from(span.0.div_ceil(slice)).unwrap_or(u32::MAX),
        };
        let device = match device.map(|device| self.disk_named(device)).transpose() {
            Ok(device) => device,
            Err(refusal) => return reply(answer, Err(refusal)),
        };
        let text = match device {
            Some(device) => format!("boost of {slices} slices on {}", self.disk_called(device)),
            None => format!("boost of {slices} slices"),
        };
        let key = self.tenants.get(&tenant).map(minerva_model::Tenant::declaration_key).unwrap_or_default();
        let bought = (key, Boost { request: id.clone(), device, slices_left: slices });
        match self.request_and_buy(tenant, id.clone(), Wish::Boost { slices, device }, &text, Some(bought)) {
            Some(Ok(_)) => reply(answer, Ok(self.bought(tenant, &id, slices))),
            Some(Err(refusal)) => reply(answer, Err(refusal)),
            None => {
                self.parts.wait(tenant, id, Waiting::Boost { slices, answer });
                true
            }
        }
    }

    /// What a boosted slice costs this tenant.
    fn slice_price(&self, tenant: TenantId) -> MicroCredits {
        let terms = self.tenants.get(&tenant).map(|known| known.terms).unwrap_or_default();
        self.file.config.engine.credits.on(terms).boosted_slice_price
    }

    /// What was bought and paid, whatever the price is by now.
    fn bought(&self, tenant: TenantId, id: &RequestId, slices: u32) -> v1::BoostResponse {
        let price = || self.slice_price(tenant).times(u64::from(slices));
        let price = self.engine.purchase(tenant, id).map_or_else(price, |purchase| purchase.price);
        let held = self.engine.part(tenant).map_or(0, |part| part.held.0);
        v1::BoostResponse { slices, price_micro_credits: price.0, held_micro_credits: held }
    }

    /// What came of entries goes into the engine.
    pub(crate) fn take_acknowledgements(&mut self) {
        for acknowledged in self.memory.acknowledged() {
            match acknowledged {
                Kept::Entry(event) => self.feed(*event),
                Kept::Claims(number, kept) => self.claims_kept(number, kept),
            }
        }
        self.memory.send_commits();
    }

    /// The operation with its disk, if one was named, and its deadline. One that is asked for again keeps those that it had: the
    /// engine sees to that.
    fn operation(
        &mut self,
        tenant: TenantId,
        (bytes, access): (u64, minerva_model::AccessKind),
        within: Option<Within>,
        (disk, pool): (WantedDisk, Option<PoolOffer>),
    ) -> Result<OperationRequest, Refusal> {
        let device = self.disk_wanted(tenant, disk)?;
        // A partition or a volume stands for its disk here too.
        let whole = |device| self.disk_below(device).unwrap_or(device);
        let pool = pool.map(|pool| PoolOffer { device: pool.device.map(whole), ..pool });
        let now = boottime();
        let deadline = within.map(|within| match within {
            Within::Begin(span) => Deadline::StartBefore(now + span),
            Within::Done(span) => Deadline::DoneBefore(now + span),
        });
        Ok(OperationRequest { device, access, bytes, deadline, pool })
    }

    fn coordinate(
        &mut self,
        tenant: TenantId,
        id: RequestId,
        operation: Result<OperationRequest, Refusal>,
        answers: Operations,
    ) -> bool {
        let result = operation.and_then(|operation| {
            let megabytes = operation.bytes as f64 / 1e6;
            let access = operation.access.as_str();
            let usual = || "the disk it uses most".to_owned();
            let device = operation.device.map_or_else(usual, |device| self.disk_called(device));
            let text = format!("operation of {megabytes:.1} MB, {access} on {device}{}", Until(operation.deadline));
            // The engine answers at once.
            self.request(tenant, id.clone(), Wish::Coordinate(operation), &text).unwrap_or(Ok(Grant::OnCallback))
        });
        let slice_ns = self.file.config.engine.observe.slice.0;
        let answer = match result {
            // Whoever asked may have gone.
            Err(refusal) => {
                let _ = answers.try_send(Err(refusal));
                return false;
            }
            Ok(Grant::Now) => {
                let _ = answers.try_send(Ok(begin_now()));
                return true;
            }
            Ok(Grant::ToPool) => {
                let answer = Some(CoordinateAnswer::WriteToPool(v1::WriteToPool {}));
                let _ = answers.try_send(Ok(v1::CoordinateResponse { answer }));
                return true;
            }
            Ok(Grant::AfterSlices(slices)) => CoordinateAnswer::BeginAfter(v1::BeginAfter { slices, slice_ns }),
            Ok(Grant::OnCallback) => CoordinateAnswer::Wait(v1::Wait { at_most_ns: self.longest_wait(tenant, &id) }),
        };
        let _ = answers.try_send(Ok(v1::CoordinateResponse { answer: Some(answer) }));
        self.parts.wait(tenant, id, Waiting::Operation(answers));
        true
    }

    /// How long an operation waits at most.
    fn longest_wait(&self, tenant: TenantId, id: &RequestId) -> Option<u64> {
        let part = self.engine.part(tenant)?;
        let (_, operation, _) = part.operations.iter().find(|(key, ..)| key == id)?;
        let hold_max = self.file.config.engine.coordination.hold_max;
        Some(operation.deadline.map_or(hold_max, |deadline| deadline.at().since(boottime())).0)
    }

    fn about_operation(&mut self, tenant: TenantId, word: &str, wish: Wish, answer: Answer<()>) -> bool {
        let text = match &wish {
            Wish::Start(id) | Wish::Finish(id) | Wish::Cancel(id) => format!("{word} {id}"),
            _ => word.to_owned(),
        };
        let own = self.parts.own_key(word);
        let result = self.request(tenant, own, wish, &text).unwrap_or(Ok(Grant::Now));
        reply(answer, result.map(drop))
    }

    /// The engine answered those who waited.
    fn answered(&mut self, tenant: TenantId, id: &RequestId, mut result: EngineAnswer) {
        let waited = self.parts.waited(tenant, id);
        let text = waited.iter().find_map(|one| match one {
            Waiting::Boost { slices, .. } => Some(format!("boost of {slices} slices")),
            Waiting::Adjustment { text, .. } => Some(text.clone()),
            Waiting::Operation(_) | Waiting::Migration(_) => None,
        });
        let text = text.unwrap_or_else(|| "boost".to_owned());
        match &mut result {
            Ok(_) => self.audit_request(tenant, AnswerKind::Granted, id, text),
            Err(refusal) => self.tell_refusal(tenant, id, &text, refusal),
        }
        for one in waited {
            match (one, &result) {
                (Waiting::Boost { slices, answer }, Ok(_)) => drop(reply(answer, Ok(self.bought(tenant, id, slices)))),
                (Waiting::Adjustment { answer, .. }, Ok(_)) => drop(reply(answer, Ok(self.adjusted(tenant)))),
                (Waiting::Operation(answers), Ok(_)) => drop(answers.try_send(Ok(begin_now()))),
                // The engine answers these otherwise: `migration_counted`.
                (Waiting::Migration(_), Ok(_)) => {}
                (one, Err(refusal)) => one.refuse(refusal),
            }
        }
    }

    /// An operation that waited is to begin.
    pub(crate) fn called_back(&mut self, tenant: TenantId, id: &RequestId) {
        self.audit_request(tenant, AnswerKind::Ready, id, "operation: begin now".to_owned());
        for one in self.parts.waited(tenant, id) {
            if let Waiting::Operation(answers) = one {
                // Two answers fit into the queue, and this is the second. Whoever waited may have gone.
                let _ = answers.try_send(Ok(begin_now()));
            }
        }
    }

    /// Whether it is granted; the entries come later.
    fn tell_credits(&mut self, tenant: TenantId, entries_max: u32, answer: Answer<v1::CreditsResponse>) -> bool {
        let (Some(part), Some(known)) = (self.engine.part(tenant), self.tenants.get(&tenant)) else {
            let message = format!("There is no tenant {tenant} any more.");
            return reply(answer, Err(Refusal::new(RefusalKind::UnknownTenant, message)));
        };
        let engine = &self.file.config.engine;
        let response = v1::CreditsResponse {
            held_micro_credits: part.held.0,
            accruing_micro_credits: part.accruing.0,
            slice_price_micro_credits: self.slice_price(tenant).0,
            slice_ns: engine.observe.slice.0,
            entries: Vec::new(),
        };
        if entries_max == 0 {
            return reply(answer, Ok(response));
        }
        let account = known.history_key();
        let entries = |rows: Vec<LedgerRow>| rows.into_iter().map(describe::entry).collect();
        let then = move |rows: Result<Vec<LedgerRow>, String>| {
            let outcome = rows.map(|rows| v1::CreditsResponse { entries: entries(rows), ..response });
            let refusal =
                |detail| Refusal::new(RefusalKind::NotCommitted, format!("The ledger cannot be read now: {detail}."));
            reply(answer, outcome.map_err(refusal));
        };
        self.memory.questions().look_then(move |store| store.ledger(Some(&account), 0, entries_max), then);
        true
    }
}

/// Answers, and tells whether it was granted. Whoever asked may have gone.
fn reply<T>(answer: Answer<T>, outcome: Result<T, Refusal>) -> bool {
    let granted = outcome.is_ok();
    let _ = answer.send(outcome);
    granted
}

const fn begin_now() -> v1::CoordinateResponse {
    v1::CoordinateResponse { answer: Some(CoordinateAnswer::BeginNow(v1::BeginNow {})) }
}

/// A deadline in words.
struct Until(Option<Deadline>);

impl std::fmt::Display for Until {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let left = |at: Nanos| at.since(boottime());
        match self.0 {
            None => Ok(()),
            Some(Deadline::StartBefore(at)) => write!(f, ", begun within {}", left(at)),
            Some(Deadline::DoneBefore(at)) => write!(f, ", done within {}", left(at)),
        }
    }
}

/// A refusal as the audit has it.
fn refused_row(refused: RefusedRequest) -> RequestRow {
    let RefusedRequest { at_unix_ms, tenant_name, account, request, text } = refused;
    RequestRow { at_unix_ms, tenant_name, account, kind: AnswerKind::Refused, request, text }
}
