//! What an operator gives accounts and takes from them.

use crate::slice_loop::Driver;
use crate::tenants::pending::Waiting;
use minerva_api::v1;
use minerva_api::v1::adjust_credits_request::Change;
use minerva_model::{Adjustment, Event, MicroCredits, RefusalKind, RequestId, Tenant, TenantId};
use minerva_operator_server::audit;
use minerva_tenant_server::request::{Answer, Refusal};

const KEY_LENGTH_MAX: usize = 64;
const REASON_LENGTH_MAX: usize = 200;

impl Driver {
    /// Asks the engine; the answer comes with the commit.
    pub(crate) fn adjust(&mut self, request: &v1::AdjustCreditsRequest, answer: Answer<v1::AdjustCreditsResponse>) {
        let (adjustment, text) = match self.judge_adjustment(request) {
            Ok(judged) => judged,
            Err(refusal) => return drop(answer.send(Err(refusal))),
        };
        let (tenant, id) = (adjustment.tenant, adjustment.id.clone());
        match self.consult(tenant, &id, Event::Adjusted(adjustment), None) {
            Some(Err(mut refusal)) => {
                self.tell_refusal(tenant, &id, &text, &mut refusal);
                drop(answer.send(Err(refusal)));
            }
            _ => self.parts.wait(tenant, id, Waiting::Adjustment { text, answer }),
        }
    }

    /// What is meant, and how the audit tells it; or why that cannot be.
    fn judge_adjustment(&self, request: &v1::AdjustCreditsRequest) -> Result<(Adjustment, String), Refusal> {
        let refuse = |kind, text: &str| Err(Refusal::new(kind, format!("{text} Nothing was changed.")));
        let key = &request.request_id;
        let is_printable = |text: &str| !text.chars().any(char::is_control);
        if key.is_empty() || key.chars().count() > KEY_LENGTH_MAX || !is_printable(key) {
            return refuse(RefusalKind::OutOfRange, "A key has 1 to 64 printable characters; a UUID will do.");
        }
        if request.reason.chars().count() > REASON_LENGTH_MAX || !is_printable(&request.reason) {
            return refuse(RefusalKind::OutOfRange, "A reason has at most 200 printable characters.");
        }
        let (gives, amount) = match request.change {
            Some(Change::GiveMicroCredits(amount)) => (true, MicroCredits(amount)),
            Some(Change::TakeMicroCredits(amount)) => (false, MicroCredits(amount)),
            None => return refuse(RefusalKind::OutOfRange, "Say how many credits to give or to take."),
        };
        let tenant = self.tenant_called(&request.tenant)?;
        if self.parts.unread.contains(&tenant.id) {
            let text = "What the account holds is not known, because the store could not be read; ask again.";
            return refuse(RefusalKind::NotCommitted, text);
        }
        let id = RequestId(format!("{}operator-{key}", RequestId::OWN_PREFIX));
        let word = if gives { "gives" } else { "takes" };
        let reason = if request.reason.is_empty() { String::new() } else { format!(": {}", request.reason) };
        let text = format!("the operator {word} {amount} credits{reason}");
        Ok((Adjustment { id, tenant: tenant.id, gives, amount }, text))
    }

    /// A tenant by its id, cgroup path, account or name. One name may be that of several accounts.
    fn tenant_called(&self, text: &str) -> Result<&Tenant, Refusal> {
        let all = || self.tenants.values();
        let path = text.trim_start_matches('/');
        let group = text.strip_prefix("group:");
        let exact = all().find(|one| one.id.to_string() == text || one.cgroup.path == path);
        let found = exact.or_else(|| all().find(|one| group.is_some() && one.group.as_deref() == group));
        if let Some(tenant) = found {
            return Ok(tenant);
        }
        let mut named = all().filter(|one| one.name == text);
        let first = named.next().ok_or_else(|| {
            let message = format!(
                "There is no tenant with the name, id, cgroup path or account '{text}'; `minerva-ctl status` lists them."
            );
            Refusal::new(RefusalKind::UnknownTenant, message)
        })?;
        if named.any(|other| other.history_key() != first.history_key()) {
            let message = format!("Several tenants have the name '{text}'; give an id or a cgroup path.");
            return Err(Refusal::new(RefusalKind::OutOfRange, message));
        }
        Ok(first)
    }

    /// What the account holds now.
    pub(crate) fn adjusted(&self, tenant: TenantId) -> v1::AdjustCreditsResponse {
        let account = self.tenants.get(&tenant).map(|one| audit::shown(&one.history_key())).unwrap_or_default();
        let held = self.engine.part(tenant).map_or(0, |part| part.held.0);
        v1::AdjustCreditsResponse { account, held_micro_credits: held }
    }
}
