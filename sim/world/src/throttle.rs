//! The throttle layer of a virtual kernel: above the elevator it holds requests of tenants that are capped, reads and writes apart.
//!
//! As Linux does it (`blk-throttle`), a cap is kept by slices of a tenth of a second. Of each slice that has begun all bytes may pass at once;
//! a request that does not fit waits until the slice is over and until what is missing would have come in after that, by the kernel's tick. What
//! was not used by the end of a slice is lost, also to who was waiting for the disk; who asks for nothing until its slices are over begins anew. A cap
//! that changes takes along what a request that waits has waited for. What is not capped passes at once.

use minerva_blocksched::{Kind, Request};
use minerva_model::Nanos;
use std::collections::VecDeque;

/// Reads and writes, in bytes a second; nothing: no limit.
pub(crate) type Caps = [Option<u64>; 2];

const SLICE: Nanos = Nanos::from_millis(100);
/// What the kernel waits in: a 250th of a second, as most distributions have it.
const TICK: Nanos = Nanos::from_millis(4);

/// Requests of one tenant in one direction.
#[derive(Debug, Default)]
struct Way {
    cap: Option<u64>,
    waiting: VecDeque<Request>,
    /// When the head may go on.
    due: Nanos,
    /// Since when bytes are counted, and when that begins anew for one that asks for nothing.
    since: Nanos,
    until: Nanos,
    /// Bytes that passed since then; negative what is still due from before.
    passed: i64,
}

impl Way {
    /// A request comes to a way on which nothing waits; whether it may pass at once.
    fn meet(&mut self, now: Nanos, bytes: u32) -> bool {
        if now > self.until {
            (self.since, self.passed) = (now, 0);
        }
        self.until = self.until.max(slices_up(now + SLICE));
        self.due_at(now, bytes) <= now && {
            self.charge(now, bytes);
            true
        }
    }

    /// When a request may pass that is the first in line.
    fn due_at(&self, now: Nanos, bytes: u32) -> Nanos {
        let Some(cap) = self.cap.map(|cap| cap.max(1)) else { return now };
        let elapsed = now.since(self.since);
        let begun = Nanos((elapsed.0 / SLICE.0 + 1) * SLICE.0);
        let missing = self.passed + i64::from(bytes) - bytes_in(cap, begun);
        if missing <= 0 {
            return now;
        }
        let missing_ns = u128::from(missing.unsigned_abs()) * 1_000_000_000 / u128::from(cap);
        let wait = u64::try_from(missing_ns).unwrap_or(u64::MAX / 4).saturating_add(begun.since(elapsed).0);
        Nanos(now.0.saturating_add(wait.div_ceil(TICK.0) * TICK.0))
    }

    /// It passes; what whole slices before this one would have let pass is settled.
    fn charge(&mut self, now: Nanos, bytes: u32) {
        let Some(cap) = self.cap else { return };
        self.passed += i64::from(bytes);
        let over = Nanos(now.since(self.since).0 / SLICE.0 * SLICE.0);
        if over > Nanos::ZERO {
            self.passed = (self.passed - bytes_in(cap, over)).max(0);
            self.since += over;
        }
        self.until = self.until.max(slices_up(now + SLICE));
    }

    fn schedule(&mut self, now: Nanos) {
        let Some(bytes) = self.waiting.front().map(|head| head.length_bytes) else { return };
        self.due = self.due_at(now, bytes);
        self.until = self.until.max(slices_up(self.due));
    }

    fn set_cap(&mut self, now: Nanos, cap: Option<u64>) {
        if self.cap == cap {
            return;
        }
        let came_in = self.cap.map_or(0, |old| bytes_in(old, now.since(self.since)));
        self.passed = if self.waiting.is_empty() { 0 } else { self.passed - came_in };
        (self.since, self.until, self.cap) = (now, slices_up(now + SLICE), cap);
        self.schedule(now);
    }
}

fn bytes_in(cap: u64, time: Nanos) -> i64 {
    i64::try_from(u128::from(cap) * u128::from(time.0) / 1_000_000_000).unwrap_or(i64::MAX / 4)
}

fn slices_up(at: Nanos) -> Nanos {
    Nanos(at.0.div_ceil(SLICE.0).saturating_mul(SLICE.0))
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
        if way.waiting.is_empty() && way.meet(now, request.length_bytes) {
            return Some(request);
        }
        way.waiting.push_back(request);
        if way.waiting.len() == 1 {
            way.schedule(now);
        }
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
                way.set_cap(now, *cap);
            }
        }
    }

    /// When the next request that waits may go on.
    pub(crate) fn next_release(&self) -> Option<Nanos> {
        if self.held == 0 {
            return None;
        }
        self.tenants.iter().flatten().filter(|way| !way.waiting.is_empty()).map(|way| way.due).min()
    }

    /// Hands over what may go on now.
    pub(crate) fn release_due(&mut self, now: Nanos, mut pass: impl FnMut(Request)) {
        if self.held == 0 {
            return;
        }
        for way in self.tenants.iter_mut().flatten() {
            while way.due <= now
                && let Some(head) = way.waiting.pop_front()
            {
                way.charge(now, head.length_bytes);
                way.schedule(now);
                self.held -= 1;
                pass(head);
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
        throttle.set_caps(Nanos::ZERO, &[[Some(1280), None], [None, None]]);
        let come = [(0, 2, Kind::Read), (0, 3, Kind::Read), (0, 4, Kind::Write), (1, 5, Kind::Read)];
        let passed =
            come.map(|(tenant, id, kind)| throttle.admit(Nanos::ZERO, tenant, request(id, kind, 4096)).is_some());
        assert_eq!(passed, [false, false, true, true]);
        assert_eq!((released(&mut throttle, 0), throttle.next_release()), (vec![], Some(Nanos::from_millis(3_200))));
        assert_eq!((released(&mut throttle, 3), released(&mut throttle, 4)), (vec![], vec![2]));
        assert_eq!(throttle.next_release(), Some(Nanos::from_millis(7_200)));
        // A cap that is lifted frees what waits at once.
        throttle.set_caps(Nanos::from_secs(5), &[[None, None], [None, None]]);
        assert_eq!((released(&mut throttle, 5), throttle.next_release()), (vec![3], None));
        // Who comes in a slice has waited for as much of it as has passed.
        throttle.set_caps(Nanos::from_secs(5), &[[Some(8192), None], [None, None]]);
        for (ms, free_at_ms) in [(5_050, 5_502), (9_000, 9_504)] {
            assert!(throttle.admit(Nanos::from_millis(ms), 0, request(6, Kind::Read, 4096)).is_none());
            let free_at = throttle.next_release().expect("it waits");
            assert_eq!(free_at, Nanos::from_millis(free_at_ms));
            throttle.release_due(free_at, |_| ());
        }
    }

    /// When each of some requests passes, in milliseconds, if the next comes so long after one has passed.
    fn passes_at(cap: u64, length_bytes: u32, think_ms: u64) -> Vec<u64> {
        let mut throttle = Throttle::default();
        throttle.set_caps(Nanos::ZERO, &[[Some(cap), None]]);
        let mut now = Nanos::ZERO;
        (0..6)
            .map(|id| {
                if throttle.admit(now, 0, request(id, Kind::Read, length_bytes)).is_none() {
                    now = throttle.next_release().expect("it waits");
                    throttle.release_due(now, |_| ());
                }
                let passed = now.0 / 1_000_000;
                now += Nanos::from_millis(think_ms);
                passed
            })
            .collect()
    }

    #[test]
    fn all_bytes_of_a_slice_may_pass_at_once_and_then_none() {
        // A quarter of a mebibyte each, of which two and a half pass in a slice.
        assert_eq!(passes_at(6_553_600, 1 << 18, 5), [0, 5, 122, 127, 132, 241]);
        // Whose requests take long enough never notices.
        assert_eq!(passes_at(6_553_600, 1 << 18, 50), [0, 50, 100, 150, 200, 250]);
        // Four slices make up a request.
        assert_eq!(passes_at(655_360, 1 << 18, 5), [400, 801, 1202, 1603, 2000, 2401]);
    }
}
