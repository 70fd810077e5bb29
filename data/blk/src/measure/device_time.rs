//! Who has the disk of the host: each moment is shared by the requests that are there. Two clock readings a request, whatever is there.

use minerva_model::Nanos;

/// A clock that goes slower the more requests are at the disk, by one part for each.
#[derive(Debug, Default)]
pub(crate) struct DeviceClock {
    /// What one request that was there all the time would have been charged.
    shared_ns: u64,
    at: Nanos,
    in_flight: u32,
}

impl DeviceClock {
    /// A request goes to the disk; what the clock says then.
    pub(crate) fn begin(&mut self, now: Nanos) -> u64 {
        self.advance(now);
        self.in_flight += 1;
        self.shared_ns
    }

    /// A request comes back that went when the clock said `begun`; what of the disk's time it had.
    pub(crate) fn end(&mut self, now: Nanos, begun: u64) -> Nanos {
        self.advance(now);
        self.in_flight = self.in_flight.saturating_sub(1);
        Nanos(self.shared_ns.saturating_sub(begun))
    }

    fn advance(&mut self, now: Nanos) {
        // A round of many requests has one instant.
        if now <= self.at {
            return;
        }
        self.shared_ns += now.since(self.at).0 / u64::from(self.in_flight.max(1));
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceClock;
    use minerva_model::Nanos;

    #[test]
    fn each_moment_is_shared_by_the_requests_that_are_there() {
        let mut clock = DeviceClock::default();
        let first = clock.begin(Nanos(1000));
        let second = clock.begin(Nanos(1100));
        assert_eq!(clock.end(Nanos(1300), first), Nanos(100 + 200 / 2));
        assert_eq!(clock.end(Nanos(1350), second), Nanos(200 / 2 + 50));
        let alone = clock.begin(Nanos(9000));
        assert_eq!(clock.end(Nanos(9001), alone), Nanos(1), "nobody is charged for an idle disk");
    }
}
