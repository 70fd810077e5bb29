//! The least start of all backlogged flows, which says whether all of them are ahead of their contracts. Most often one flow that is not
//! answers that; only without one are the others put in order, and then those alone whose start has changed since. Over all decisions that is
//! at most O(log flows) for each change.

use crate::tokens::Instant;
use crate::{IndexedHeap, Narrow};

/// Backlogged flows by their starts.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// As of when they were last put in order.
    ordered: IndexedHeap<Narrow>,
    /// Flows that have changed since, each once.
    changed: Vec<u32>,
    /// By flow.
    flows: Vec<Start>,
    backlogged: usize,
    /// A backlogged flow with its start, if one is known.
    witness: Option<(Instant, u32)>,
}

/// Of one flow.
#[derive(Clone, Copy, Debug, Default)]
struct Start {
    start: Instant,
    is_backlogged: bool,
    has_changed: bool,
}

impl Starts {
    /// A flow is backlogged, with this start.
    pub(super) fn set(&mut self, slot: usize, start: Instant) {
        if self.flows.len() <= slot {
            self.flows.resize(slot + 1, Start::default());
        }
        let flow = &mut self.flows[slot];
        if flow.is_backlogged && flow.start == start {
            return;
        }
        self.backlogged += usize::from(!flow.is_backlogged);
        (flow.start, flow.is_backlogged) = (start, true);
        self.change(slot);
        if self.witness.is_none_or(|(least, _)| start < least) {
            self.witness = Some((start, slot as u32));
        }
    }

    /// A flow has nothing queued any more.
    pub(super) fn remove(&mut self, slot: usize) {
        let Some(flow) = self.flows.get_mut(slot).filter(|flow| flow.is_backlogged) else { return };
        flow.is_backlogged = false;
        self.backlogged -= 1;
        self.change(slot);
    }

    fn change(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.flows[slot].has_changed, true) {
            self.changed.push(slot as u32);
        }
        self.witness = self.witness.filter(|(_, witness)| *witness as usize != slot);
    }

    /// The least start, if it is later than `bound`; none also where nothing is backlogged.
    pub(super) fn least_after(&mut self, bound: Instant) -> Option<Instant> {
        if self.backlogged == 0 || self.witness.is_some_and(|(start, _)| start <= bound) {
            return None;
        }
        for slot in self.changed.drain(..) {
            let flow = &mut self.flows[slot as usize];
            flow.has_changed = false;
            match flow.is_backlogged {
                true => self.ordered.set(slot as usize, Narrow(flow.start)),
                false => _ = self.ordered.remove(slot as usize),
            }
        }
        let (Narrow(least), slot) = self.ordered.peek()?;
        self.witness = Some((least, slot as u32));
        (least > bound).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::Starts;
    use proptest::prelude::{any, prop_assert_eq, proptest};
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn it_agrees_with_a_search_of_all(
            steps in proptest::collection::vec((0usize..8, any::<Option<u8>>(), any::<Option<u8>>()), 0..400),
        ) {
            let mut starts = Starts::default();
            let mut model: BTreeMap<usize, i128> = BTreeMap::new();
            for (slot, start, bound) in steps {
                match start.map(i128::from) {
                    Some(start) => {
                        starts.set(slot, start);
                        model.insert(slot, start);
                    }
                    None => {
                        starts.remove(slot);
                        model.remove(&slot);
                    }
                }
                if let Some(bound) = bound.map(i128::from) {
                    let least = model.values().min().copied().filter(|least| *least > bound);
                    prop_assert_eq!(starts.least_after(bound), least);
                }
            }
        }
    }
}
