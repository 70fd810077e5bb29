//! A contract that comes, changes or goes while requests of its flow are queued: it holds for them too, from that instant on. What
//! they were given before counted with the other rate: without a contract a request starts an hour after the one before it.

use super::{Htbs, Tags};
use crate::flow::FlowId;
use crate::table::Flow;
use crate::tokens::{Bucket, instant};
use minerva_model::Nanos;

impl Htbs {
    /// Judges a flow by its new terms as if it had just come, with all that it has queued.
    pub(super) fn begin_anew(&mut self, flow: FlowId, now: Nanos) {
        let (at, drift) = (instant(now), self.drift);
        let Flow { queue, state, .. } = self.flows.at(flow);
        let queued = queue.len();
        state.bucket = Bucket::default();
        state.queued_charge = state.queued_units as f64;
        // Starts of a flow with nothing queued are kept as they are, those of others as stored.
        state.start_max = if queued == 0 { at } else { at + drift };
        state.start_min = state.start_max;
        if queued == 0 {
            return;
        }
        self.refill(flow, at);
        for index in 0..queued {
            let units = self.flows.at(flow).queue[index].1.units;
            let start = self.start_tag(flow, units, at + drift, false, true);
            let Flow { queue, state, .. } = self.flows.at(flow);
            queue[index].1 = Tags { start, delay_ns: state.terms.delay.0, units };
            state.start_min = if index == 0 { start } else { state.start_min.min(start) };
            state.start_max = state.start_max.max(start);
            state.bucket.tokens -= f64::from(units);
        }
        self.track_head(flow);
    }
}
