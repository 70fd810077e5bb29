//! The throttle layer of a virtual kernel: above the elevator it holds requests of tenants that are capped, reads and writes apart.
//!
//! A request goes on when its own bytes have come in at the cap's rate since the one before it went, and at most for [`KEPT`] before it came: who
//! waits for a request to be served loses nothing of its cap meanwhile, and who rests keeps little of it (the limits as documented in
//! `Documentation/admin-guide/cgroup-v2.rst`). What is not capped passes at once.

use minerva_blocksched::{Kind, Request};
use minerva_model::Nanos;
use std::collections::VecDeque;

/// Reads and writes, in bytes a second; nothing: no limit.
pub(crate) type Caps = [Option<u64>; 2];

/// So much of its cap a tenant keeps that asks for nothing.
const KEPT: Nanos = Nanos::from_millis(100);

/// Requests of one tenant in one direction.
#[derive(Debug, Default)]
struct Way {
    cap: Option<u64>,
    waiting: VecDeque<Request>,
    /// When the head's bytes began to come in.
    since: Nanos,
    /// When the last one went.
    went: Nanos,
}

impl Way {
    fn release_at(&self) -> Option<Nanos> {
        let head = self.waiting.front()?;
        let Some(cap) = self.cap else { return Some(self.since) };
        let took_ns = u128::from(head.length_bytes) * 1_000_000_000 / u128::from(cap.max(1));
        Some(Nanos(self.since.0.saturating_add(u64::try_from(took_ns).unwrap_or(u64::MAX))))
    }
}

/// All tenants' requests that wait.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    tenants: Vec<[Way; 2]>,
    /// How many wait in `tenants`.
    held: usize,
}

impl Throttle {
    /// A tenant's request comes; it is given back if it may pass at once.
    pub(crate) fn admit(&mut self, now: Nanos, tenant: usize, request: Request) -> Option<Request> {
        let way = self.tenants.get_mut(tenant).map(|ways| &mut ways[usize::from(request.kind != Kind::Read)]);
        let Some(way) = way.filter(|way| way.cap.is_some() || !way.waiting.is_empty()) else { return Some(request) };
        if way.waiting.is_empty() {
            way.since = way.went.max(Nanos(now.0.saturating_sub(KEPT.0)));
        }
        way.waiting.push_back(request);
        self.held += 1;
        None
    }

    /// The caps of all tenants from now on.
    pub(crate) fn set_caps(&mut self, now: Nanos, caps: &[Caps]) {
        if caps.iter().all(|caps| *caps == [None; 2]) && self.tenants.is_empty() {
            return;
        }
        self.tenants.resize_with(self.tenants.len().max(caps.len()), Default::default);
        for (ways, caps) in self.tenants.iter_mut().zip(caps) {
            for (way, cap) in ways.iter_mut().zip(caps) {
                if way.cap.is_some() && cap.is_none() {
                    way.since = now;
                }
                way.cap = *cap;
            }
        }
    }

    /// When the next request that waits may go on.
    pub(crate) fn next_release(&self) -> Option<Nanos> {
        if self.held == 0 {
            return None;
        }
        self.tenants.iter().flatten().filter_map(Way::release_at).min()
    }

    /// Hands over what may go on now.
    pub(crate) fn release_due(&mut self, now: Nanos, mut pass: impl FnMut(Request)) {
        if self.held == 0 {
            return;
        }
        for way in self.tenants.iter_mut().flatten() {
            while way.release_at().is_some_and(|at| at <= now) {
                way.went = now;
                way.since = if way.cap.is_some() { now } else { way.since };
                way.waiting.pop_front().into_iter().for_each(&mut pass);
                self.held -= 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Throttle;
    use minerva_blocksched::{FlowId, Kind, Request, RequestId};
    use minerva_model::Nanos;

    fn request(id: u64, kind: Kind, length_bytes: u32) -> Request {
        let (arrived, offset_bytes) = (Nanos::ZERO, 0);
        Request { id: RequestId(id), flow: FlowId(0), kind, sync: true, tag: None, offset_bytes, length_bytes, arrived }
    }

    fn released(throttle: &mut Throttle, second: u64) -> Vec<u64> {
        let mut ids = Vec::new();
        throttle.release_due(Nanos::from_secs(second), |request| ids.push(request.id.0));
        ids
    }

    #[test]
    fn a_capped_tenant_waits_for_its_bytes_and_nobody_else_does() {
        let mut throttle = Throttle::default();
        assert!(throttle.admit(Nanos::ZERO, 0, request(1, Kind::Read, 4096)).is_some());
        throttle.set_caps(Nanos::ZERO, &[[Some(1024), None], [None, None]]);
        let come = [(0, 2, Kind::Read), (0, 3, Kind::Read), (0, 4, Kind::Write), (1, 5, Kind::Read)];
        let passed =
            come.map(|(tenant, id, kind)| throttle.admit(Nanos::ZERO, tenant, request(id, kind, 4096)).is_some());
        assert_eq!(passed, [false, false, true, true]);
        assert_eq!((released(&mut throttle, 0), throttle.next_release()), (vec![], Some(Nanos::from_secs(4))));
        assert_eq!((released(&mut throttle, 3), released(&mut throttle, 4)), (vec![], vec![2]));
        assert_eq!(throttle.next_release(), Some(Nanos::from_secs(8)));
        // A cap that is lifted frees what waits at once.
        throttle.set_caps(Nanos::from_secs(5), &[[None, None], [None, None]]);
        assert_eq!((released(&mut throttle, 5), throttle.next_release()), (vec![3], None));
        // The time since the last one went counts, and not all of a long rest.
        throttle.set_caps(Nanos::from_secs(5), &[[Some(8192), None], [None, None]]);
        for (ms, free_at_ms) in [(5_050, 5_500), (9_000, 9_400)] {
            throttle.admit(Nanos::from_millis(ms), 0, request(6, Kind::Read, 4096));
            assert_eq!(throttle.next_release(), Some(Nanos::from_millis(free_at_ms)));
            throttle.release_due(Nanos::from_millis(free_at_ms), |_| ());
        }
    }
}
