//! Injection, as BFQ calls it: while the disk is kept idle for a flow only so that the flow gets its share, requests of others
//! are slipped in, as long as that costs the flow little.
//!
//! How little is tried out. The time that a request of the flow takes is measured with nobody else at the disk and with
//! others slipped in. As many may be slipped in as make it not half as long again. A limit holds for a second; then all is
//! measured anew, for neither the flow nor the disk stays as it is. So even where it never pays it is tried once a second.
//! The figures (half as long again, a second, 10 ms) are how the kernel's BFQ is known to behave. They were written down from
//! that and not from its source, and judged by measurement: `tests/conformance`.

use crate::{Request, RequestId};
use minerva_model::Nanos;

/// A limit is found out anew after this.
const RENEWAL: Nanos = Nanos::SECOND;
/// A limit that was just lowered is not tried at once.
const PAUSE: Nanos = Nanos::from_millis(10);

/// What a flow bears.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limit {
    /// Others' requests are slipped in while fewer than this are at the disk.
    requests: u32,
    /// The time of a request with nobody else at the disk, once measured.
    alone: Option<Nanos>,
    lowered_at: Nanos,
}

impl Limit {
    /// Others' requests are slipped in while fewer than this are at the disk.
    pub(crate) fn requests(&self) -> u32 {
        self.requests
    }

    /// Learns from a request that took `took`; `slipped_in` says whether others' were, meanwhile.
    fn learn(&mut self, now: Nanos, took: Nanos, slipped_in: bool, is_last: bool, in_flight_max: u32) {
        let Some(alone) = self.alone else {
            if is_last {
                self.alone = Some(took);
                self.requests = self.requests.max(1);
            }
            return;
        };
        if slipped_in {
            let is_long = took.0 >= alone.0 / 2 * 3;
            if is_long && self.requests > 0 {
                self.requests -= 1;
                self.lowered_at = now;
            } else if !is_long && self.requests <= in_flight_max {
                self.requests += 1;
            }
        }
        if took < alone || !slipped_in && is_last {
            self.alone = Some(took);
        }
    }
}

/// What is at the disk, and the measurement under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Injection {
    in_flight: u32,
    in_flight_max: u32,
    /// Something was slipped in since the flow in service last had the disk to itself.
    slipped_in: bool,
    sample: Option<Sample>,
}

#[derive(Clone, Copy, Debug)]
struct Sample {
    from: Nanos,
    request: Option<RequestId>,
}

impl Injection {
    /// Requests at the disk, of all flows.
    pub(crate) fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// The flow in service, which had nothing queued, has a request.
    pub(crate) fn arrived(&mut self, now: Nanos, limit: &mut Limit, thinks_long: bool) {
        if now.since(limit.lowered_at) >= RENEWAL {
            *limit = Limit { requests: u32::from(thinks_long), alone: None, lowered_at: now };
        }
        let with_others = self.slipped_in && limit.alone.is_some();
        if (self.in_flight == 0 || with_others) && now.since(limit.lowered_at) >= PAUSE {
            self.slipped_in &= self.in_flight > 0;
            self.sample = Some(Sample { from: now, request: None });
        }
    }

    /// A request is sent, of the flow in service or slipped in.
    pub(crate) fn sent(&mut self, request: &Request, in_service: bool) {
        self.in_flight += 1;
        self.in_flight_max = self.in_flight_max.max(self.in_flight);
        self.slipped_in |= !in_service;
        if in_service && let Some(sample) = self.sample.as_mut() {
            sample.request.get_or_insert(request.id);
        }
    }

    /// So many of the requests at the disk hang. They are not counted any more, nor when they are done.
    pub(crate) fn give_up(&mut self, hung: u32) {
        self.in_flight = self.in_flight.saturating_sub(hung);
        self.sample = None;
    }

    /// A request is done; `limit` is its flow's.
    pub(crate) fn completed(&mut self, now: Nanos, request: &Request, limit: &mut Limit) {
        if let Some(sample) = self.sample.filter(|sample| sample.request == Some(request.id)) {
            self.sample = None;
            limit.learn(now, now.since(sample.from), self.slipped_in, self.in_flight == 1, self.in_flight_max);
        }
        self.in_flight = self.in_flight.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::{Injection, Limit};
    use crate::{FlowId, Kind, Request, RequestId};
    use minerva_model::Nanos;

    fn request(id: u64) -> Request {
        Request {
            id: RequestId(id),
            flow: FlowId(0),
            kind: Kind::Read,
            sync: true,
            tag: None,
            offset_bytes: 0,
            length_bytes: 4096,
            arrived: Nanos::ZERO,
        }
    }

    /// A request of the flow from `from_ms` to `to_ms`, with one of another's slipped in before it or not.
    fn serve(injection: &mut Injection, limit: &mut Limit, from_ms: u64, to_ms: u64, slip_in: bool) {
        let other = request(1);
        if slip_in {
            injection.sent(&other, false);
        }
        injection.arrived(Nanos::from_millis(from_ms), limit, false);
        injection.sent(&request(0), true);
        if slip_in {
            injection.completed(Nanos::from_millis(to_ms), &other, &mut Limit::default());
        }
        injection.completed(Nanos::from_millis(to_ms), &request(0), limit);
    }

    #[test]
    fn a_limit_rises_while_others_cost_little_and_falls_when_they_cost_much() {
        let (mut injection, mut limit) = (Injection::default(), Limit::default());
        serve(&mut injection, &mut limit, 100, 110, false);
        assert_eq!(limit.requests(), 1, "one is tried once the flow's own time is known");
        serve(&mut injection, &mut limit, 120, 132, true);
        assert_eq!(limit.requests(), 2);
        serve(&mut injection, &mut limit, 140, 160, true);
        assert_eq!(limit.requests(), 1);
        serve(&mut injection, &mut limit, 180, 200, true);
        assert_eq!(limit.requests(), 0);
        serve(&mut injection, &mut limit, 1300, 1310, false);
        assert_eq!(limit.requests(), 0, "it begins anew");
        serve(&mut injection, &mut limit, 1320, 1330, false);
        assert_eq!(limit.requests(), 1, "and is tried again");
        assert_eq!(injection.in_flight(), 0);
    }
}
