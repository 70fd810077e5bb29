//! A thread that compares each tree's two accounts from time to time, and tells when they begin and cease to differ.

use crate::looker::Looker;
use crate::second_account::LOOK;
use crate::tenant::{Tenant, Tenants};
use std::sync::{Arc, PoisonError};

/// Compares.
pub(crate) fn start(tenants: Tenants) -> anyhow::Result<Looker> {
    Looker::start("accounts", move |stop| {
        while !stop.comes_within(LOOK) {
            look_at_all(&tenants);
        }
    })
}

fn look_at_all(tenants: &Tenants) {
    // Who changes which tenants there are does not wait for a walk.
    let found: Vec<_> = {
        let tenants = tenants.read().unwrap_or_else(PoisonError::into_inner);
        let of = |tenant: &Tenant| {
            let (temporary, stable) = (Arc::clone(&tenant.temporary.tree), Arc::clone(&tenant.stable.tree));
            (tenant.name.clone(), tenant.second.clone(), temporary, stable)
        };
        tenants.iter().map(of).collect()
    };
    let mut has_walked = false;
    for (name, second, temporary, stable) in found {
        for (pool, account) in [("temporary", &second.temporary), ("stable", &second.stable)] {
            let Some(account) = account else { continue };
            if has_walked && account.is_walk() {
                continue;
            }
            let before = account.told().difference;
            has_walked |= account.look(&temporary, &stable);
            let after = account.told().difference;
            if before.is_empty() != after.is_empty() {
                let told = if after.is_empty() { "both accounts are the same again" } else { &after };
                eprintln!("minerva-fs: {name}/{pool}: {told}");
            }
        }
    }
}
