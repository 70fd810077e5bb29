//! Faults: a disk that is slow for a while, or stands still.

use minerva_model::Nanos;
use minerva_sim_device::{Completion, DeviceModel, Request, Statistics};

/// From an instant until another everything the disk does takes longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// First instant.
    pub from: Nanos,
    /// First instant after it.
    pub until: Nanos,
    /// How many times longer; `None` stands still.
    pub slower: Option<u32>,
}

/// A disk with faults. Its own time goes slower while a fault lasts, so whatever the model does is slowed, also what it
/// does on its own.
pub struct Faulty {
    inner: Box<dyn DeviceModel>,
    faults: Vec<Fault>,
    /// Requests that it has.
    under_way: u32,
    /// For how long it had one, up to `seen`. The model counts in its own time, in which a slow disk has little to do.
    busy: Nanos,
    seen: Nanos,
}

impl Faulty {
    /// `inner` with these faults. While several last the slowest of them rules; one that ends before it starts is none.
    pub fn new(inner: Box<dyn DeviceModel>, faults: Vec<Fault>) -> Self {
        let faults = apart(&faults);
        Self { inner, faults, under_way: 0, busy: Nanos::ZERO, seen: Nanos::ZERO }
    }

    /// Counts the time until `now`.
    fn pass(&mut self, now: Nanos) {
        if self.under_way > 0 {
            self.busy += now.since(self.seen);
        }
        self.seen = self.seen.max(now);
    }

    /// The disk's own time at an instant.
    fn own_time(&self, now: Nanos) -> Nanos {
        let mut own = 0;
        let mut at = Nanos::ZERO;
        for fault in self.faults.iter().take_while(|fault| fault.from <= now) {
            own += fault.from.since(at).0;
            let lasted = fault.until.min(now).since(fault.from).0;
            own += fault.slower.map_or(0, |slower| lasted / u64::from(slower));
            at = fault.until.min(now);
        }
        Nanos(own + now.since(at).0)
    }

    /// The first instant at which the disk's own time is at least `own`.
    fn instant(&self, own: Nanos) -> Nanos {
        let mut left = own.0;
        let mut at = Nanos::ZERO;
        for fault in &self.faults {
            let before = fault.from.since(at).0;
            if left <= before {
                break;
            }
            left -= before;
            at = fault.until;
            let lasted = fault.until.since(fault.from).0;
            let Some(slower) = fault.slower.map(u64::from) else { continue };
            if left <= lasted / slower {
                return Nanos(fault.from.0 + left * slower);
            }
            left -= lasted / slower;
        }
        Nanos(at.0 + left)
    }
}

/// The same faults as ones that follow each other: time is cut wherever one begins or ends.
fn apart(faults: &[Fault]) -> Vec<Fault> {
    let mut cuts: Vec<Nanos> = faults.iter().flat_map(|fault| [fault.from, fault.until]).collect();
    cuts.sort();
    cuts.dedup();
    let ruling = |part: &[Nanos]| {
        let (from, until) = (part[0], part[1]);
        let lasting = faults.iter().filter(|fault| fault.from <= from && until <= fault.until);
        // Standing still is slower than any factor.
        let slowest =
            lasting.map(|fault| fault.slower.map_or(u32::MAX, |slower| slower.clamp(1, u32::MAX - 1))).max()?;
        Some(Fault { from, until, slower: (slowest < u32::MAX).then_some(slowest) })
    };
    cuts.windows(2).filter_map(ruling).collect()
}

impl DeviceModel for Faulty {
    fn capacity_bytes(&self) -> u64 {
        self.inner.capacity_bytes()
    }

    fn queue_depth(&self) -> u32 {
        self.inner.queue_depth()
    }

    fn submit(&mut self, now: Nanos, request: Request) {
        self.pass(now);
        self.under_way += 1;
        self.inner.submit(self.own_time(now), request);
    }

    fn next_completion(&self) -> Option<Nanos> {
        self.inner.next_completion().map(|own| self.instant(own))
    }

    fn complete(&mut self, now: Nanos) -> Option<Completion> {
        let done = self.inner.complete(self.own_time(now));
        let done = done.map(|done| Completion { at: self.instant(done.at), ..done });
        self.pass(done.map_or(now, |done| done.at));
        self.under_way -= u32::from(done.is_some());
        done
    }

    fn statistics(&self) -> Statistics {
        Statistics { busy_time: self.busy, ..self.inner.statistics() }
    }
}

#[cfg(test)]
mod tests {
    use super::{Fault, Faulty};
    use minerva_model::Nanos;
    use minerva_sim_device::{Kind, Request, profile};
    use proptest::prelude::{prop_assert, prop_assert_eq, proptest};

    fn faulty(faults: Vec<Fault>) -> Faulty {
        Faulty::new(profile("sata-ssd").expect("built in").build(None, 1), faults)
    }

    #[test]
    fn a_request_takes_longer_while_the_disk_is_slow_or_still() {
        use minerva_sim_device::DeviceModel;
        let took = |faults| {
            let mut device = faulty(faults);
            device.submit(Nanos(1000), Request { tag: 0, kind: Kind::Read, offset_bytes: 0, length_bytes: 4096 });
            device.next_completion().expect("one is under way").since(Nanos(1000)).0
        };
        let healthy = took(Vec::new());
        let all_day = Nanos::from_secs(10);
        assert_eq!(took(vec![Fault { from: Nanos(0), until: all_day, slower: Some(3) }]).abs_diff(3 * healthy) / 4, 0);
        let stall = Fault { from: Nanos(2000), until: Nanos(2000) + Nanos::from_millis(5), slower: None };
        assert_eq!(took(vec![stall]), healthy + 5_000_000);
    }

    #[test]
    fn a_slow_disk_that_always_has_a_request_is_busy_all_the_time() {
        use minerva_sim_device::DeviceModel;
        let busy_s = |pause: Nanos, slower| {
            let until = Nanos::from_secs(10);
            let mut device = faulty(vec![Fault { from: Nanos::ZERO, until, slower }]);
            let mut now = Nanos::ZERO;
            while now < until {
                device.submit(now, Request { tag: 0, kind: Kind::Read, offset_bytes: 0, length_bytes: 4096 });
                now = device.next_completion().expect("one is under way");
                // The caller looks when it has something else to do.
                now += pause;
                assert!(device.complete(now).is_some());
            }
            device.statistics().busy_time.as_secs_f64()
        };
        assert!((9.9..10.1).contains(&busy_s(Nanos::ZERO, Some(4))));
        assert!((9.9..10.1).contains(&busy_s(Nanos::ZERO, Some(1))));
        // 416 us of work and as much of rest.
        let half = busy_s(Nanos::from_micros(430), Some(4));
        assert!((4.5..5.5).contains(&half), "{half}");
    }

    #[test]
    fn of_faults_at_one_time_the_slowest_rules() {
        let fault = |from, until, slower| Fault { from: Nanos(from), until: Nanos(until), slower };
        let device = faulty(vec![fault(100, 500, Some(2)), fault(200, 300, None), fault(250, 400, Some(4))]);
        let parts = [fault(100, 200, Some(2)), fault(200, 250, None), fault(250, 300, None), fault(300, 400, Some(4))];
        assert_eq!(device.faults, [&parts[..], &[fault(400, 500, Some(2))]].concat());
        assert_eq!(device.own_time(Nanos(500)), Nanos(100 + 50 + 25 + 50));
        assert!(faulty(vec![fault(9, 9, None), fault(8, 7, Some(3))]).faults.is_empty());
    }

    proptest! {
        #[test]
        fn the_two_clocks_agree(
            parts in proptest::collection::vec((0u64..1000, 0u64..1000, proptest::option::of(1u32..9)), 0..6),
            own in 0u64..5000,
        ) {
            let fault = |(from, lasts, slower)| Fault { from: Nanos(from), until: Nanos(from + lasts), slower };
            let device = faulty(parts.into_iter().map(fault).collect());
            let at = device.instant(Nanos(own));
            prop_assert!(device.own_time(at) >= Nanos(own));
            if at.0 > 0 {
                prop_assert!(device.own_time(Nanos(at.0 - 1)) < Nanos(own) || own == 0);
            }
            prop_assert_eq!(device.own_time(Nanos(0)), Nanos(0));
        }
    }
}
