//! How a batch is stored: with one sync where that can be done.

use crate::jobs::Batch;
use minerva_store::{Store, StoreError};

/// What of a batch is stored by one call, and how it is taken out.
type Part = (fn(&mut Store, &Batch) -> Result<(), StoreError>, fn(&mut Batch));

/// In the order of what they cost to lose.
const PARTS: [Part; 7] = [
    (
        |store, held| store.declare(&held.declarations.values().cloned().collect::<Vec<_>>()),
        |held| held.declarations.clear(),
    ),
    (
        |store, held| store.claim(held.claims.iter().map(|(key, claim)| (key.as_str(), claim))),
        |held| held.claims.clear(),
    ),
    (|store, held| store.learn(&held.learnt.values().copied().collect::<Vec<_>>()), |held| held.learnt.clear()),
    (
        |store, held| store.remember(&held.histories.values().cloned().collect::<Vec<_>>()),
        |held| held.histories.clear(),
    ),
    (|store, held| store.forget(held.forgotten.iter().map(String::as_str)), |held| held.forgotten.clear()),
    (|store, held| store.audit_requests(&held.requests), |held| held.requests.clear()),
    (|store, held| store.audit(&held.audit), |held| held.audit.clear()),
];

/// Stores all of it with one sync, and takes out what is stored. Where that fails, as on a disk that is nearly full, each part by
/// itself.
pub(super) fn keep_all(store: &mut Store, held: &mut Batch) -> Result<(), StoreError> {
    if store.together(|store| PARTS.iter().try_for_each(|(keep, _)| keep(store, held))).is_ok() {
        PARTS.iter().for_each(|(_, clear)| clear(held));
        return Ok(());
    }
    PARTS.iter().try_for_each(|(keep, clear)| {
        keep(store, held)?;
        clear(held);
        Ok(())
    })
}
