//! A thread that compares each tree's two accounts from time to time, and tells when they begin and cease to differ.

use crate::second_account::LOOK;
use crate::tenant::{Tenant, Tenants};
use anyhow::Context;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, PoisonError};
use std::thread::{self, JoinHandle};

/// A thread that compares.
#[derive(Debug)]
pub(crate) struct Auditor {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Auditor {
    pub(crate) fn start(tenants: Tenants) -> anyhow::Result<Self> {
        let (stop, stopped) = channel();
        let work = move || {
            while stopped.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                look_at_all(&tenants);
            }
        };
        let thread =
            thread::Builder::new().name("accounts".to_owned()).spawn(work).context("failed to start a thread")?;
        Ok(Self { stop, thread })
    }

    /// Ends it once what is under way is done.
    pub(crate) fn stop(self) {
        drop(self.stop);
        // It ends by itself, and a panic in it has ended the process before.
        let _ = self.thread.join();
    }
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
