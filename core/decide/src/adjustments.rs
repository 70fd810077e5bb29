//! What the operator gives accounts and takes from them. It counts, and is answered, once it is committed; the ledger itself sees to
//! it that nothing is entered twice under one key.

use crate::adjusting::{known, refused};
use crate::participation::Participation;
use minerva_model::{Adjustment, Effect, LedgerEntry, MicroCredits, Nanos, RefusalKind};

/// An account can be given credits up to this, far below what sums can hold.
const HELD_MAX: MicroCredits = MicroCredits::credits(1_000_000_000);

impl Participation {
    /// The entry, or why there is none.
    pub(crate) fn adjust(&mut self, now: Nanos, adjustment: &Adjustment) -> Vec<Effect> {
        let Adjustment { id, tenant, gives, amount } = adjustment.clone();
        let Some(member) = self.members.get(&tenant) else {
            return vec![refused(tenant, id, RefusalKind::UnknownTenant, format!("There is no tenant {tenant}."))];
        };
        if self.adjusting.waits(tenant, &id) {
            return vec![known(tenant, id, "is being given an entry under this key")];
        }
        let account = member.account.clone();
        // As with what it earns, the longest of its tenants' times counts.
        let of_account = self.members.values().filter(|one| one.account == account);
        let expiry = of_account.map(|one| self.credits.settings().on(one.terms).expiry).max().unwrap_or_default();
        // As with a boost: what is too old is not there to be taken.
        let mut effects: Vec<Effect> = self.credits.expire(now, &account).map(Effect::Ledger).into_iter().collect();
        let entry = match gives {
            true => self.give(now, &account, amount, expiry),
            false => self.take(now, &account, amount),
        };
        effects.push(match entry {
            Err((kind, text)) => refused(tenant, id, kind, text),
            Ok(entry) => {
                self.adjusting.add(entry.number, tenant, id.clone());
                Effect::Ledger(LedgerEntry { request: Some(id), ..entry })
            }
        });
        effects
    }

    fn give(
        &mut self,
        now: Nanos,
        account: &str,
        amount: MicroCredits,
        expiry: Nanos,
    ) -> Result<LedgerEntry, (RefusalKind, String)> {
        let has = self.credits.held(account).plus(self.credits.accruing(account));
        if amount == MicroCredits::ZERO || has.plus(amount) > HELD_MAX {
            let text = format!(
                "An account can be given something, and up to {HELD_MAX} credits: {amount} are too many or none, beside the \
                 {has} that it has. Nothing was changed now; whether an earlier call under this key was carried out is told by \
                 `minerva-ctl audit`."
            );
            return Err((RefusalKind::OutOfRange, text));
        }
        Ok(self.credits.give(now, account, amount, expiry))
    }

    fn take(&mut self, now: Nanos, account: &str, amount: MicroCredits) -> Result<LedgerEntry, (RefusalKind, String)> {
        if amount == MicroCredits::ZERO {
            return Err((RefusalKind::OutOfRange, "Nothing is to be taken: name an amount.".to_owned()));
        }
        self.credits.take(now, account, amount).map_err(|held| {
            let accruing = self.credits.accruing(account);
            let text = format!(
                "{amount} credits cannot be taken: the account holds {held}, with {accruing} more not entered yet. Nothing was \
                 changed now; whether an earlier call under this key was carried out is told by `minerva-ctl audit`."
            );
            (RefusalKind::NotEnoughCredits, text)
        })
    }
}
