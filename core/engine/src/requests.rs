//! What tenants ask for: answered at once, and in force within the slice.

use crate::{Decider, Engine, Part};
use minerva_model::{
    Decision, Effect, MicroCredits, Mode, Purchase, RefusalKind, Refused, RequestId, TenantId, TenantRequest,
};

impl Engine {
    /// What a tenant takes part in, for `status`; nothing if it is unknown.
    pub fn part(&self, tenant: TenantId) -> Option<Part> {
        Decider::part(&self.decider, tenant)
    }

    /// What a tenant bought under a key.
    pub fn purchase(&self, tenant: TenantId, request: &RequestId) -> Option<&Purchase> {
        self.decider.purchase(tenant, request)
    }

    /// Whether what the store says of the credits of a tenant's account is known already, and would be ignored.
    pub fn knows_credits(&self, tenant: TenantId) -> bool {
        self.decider.knows_credits(tenant)
    }

    /// What all accounts hold together.
    pub fn credits_held(&self) -> MicroCredits {
        self.decider.credits_held()
    }

    pub(crate) fn requested(&mut self, request: TenantRequest) {
        if self.stopping {
            let TenantRequest { id, tenant, .. } = request;
            let message = "Minerva is ending; ask again when it has started anew.".to_owned();
            self.effects.push_back(Effect::Refused(Refused { id, tenant, kind: RefusalKind::Stopping, message }));
            return;
        }
        let (effects, decisions) = self.decider.requested(self.now, &request, &self.signals);
        self.asked_for(effects, decisions);
    }

    /// Effects and shares that follow from what tenants asked for. The shares come first, so that a tenant that hears of its
    /// grant finds it in force.
    pub(crate) fn asked_for(&mut self, effects: Vec<Effect>, mut decisions: Vec<Decision>) {
        if self.mode == Mode::Observe {
            decisions.clear();
        }
        if !self.stopping {
            self.actuator.reshare(self.now, &decisions);
        }
        self.effects.extend(decisions.into_iter().map(Effect::Decided));
        while let Some(effect) = self.actuator.poll_effect() {
            self.effects.push_back(effect);
        }
        self.effects.extend(effects);
    }
}
