//! What this host adds to a request of the emulated disk: system calls, the loop device's worker, FUSE, two changes of
//! process and a late timer; through `minerva-blk` also the ring there and back. Measured by the real arm on two calibration disks, and
//! played by the simulated arm.
//!
//! Each request passes a station that serves one at a time (copying and thinking of the FUSE threads), and besides takes
//! some time during which others may pass: half of it on the way to the disk and half on the way back. Rare long delays are
//! stalls of the host, which hit whatever is on its way at the time.

use minerva_model::Nanos;
use serde::{Deserialize, Serialize};

/// The disk on which delays are measured takes this long, one request at a time.
pub(crate) const CONSTANT_US: f64 = 1000.0;
/// A delay of this many times what nine in ten do not exceed is a stall.
const STALL_FACTOR: f64 = 2.0;
/// The way through the kernel has four changes of process of about the same length. One is above the elevator: to the process that
/// waits for the answer.
pub(crate) const ABOVE_ELEVATOR: f64 = 1.0 / 4.0;
/// Through a server there are two more, and two are above its scheduler: to the server, and back.
pub(crate) const ABOVE_SERVER: f64 = 2.0 / 6.0;

/// What was measured of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Of the station, for each request, in nanoseconds.
    pub station_ns: f64,
    /// Of the station, for each byte, in nanoseconds.
    pub station_ns_per_byte: f64,
    /// Everything else: pairs of a part of all requests, rising to 1, and the nanoseconds that it did not exceed.
    pub delay_ns: Vec<(f64, f64)>,
    /// The part of the usual delay that lies above whoever orders requests, and in which others can be served.
    #[serde(default = "above_elevator")]
    pub above_part: f64,
}

/// Of records that were made when there was no other.
const fn above_elevator() -> f64 {
    ABOVE_ELEVATOR
}

impl Default for Host {
    /// One that adds nothing.
    fn default() -> Self {
        Self { station_ns: 0.0, station_ns_per_byte: 0.0, delay_ns: Vec::new(), above_part: ABOVE_ELEVATOR }
    }
}

impl Host {
    /// The mean of two measurements, point by point: what it was between them.
    pub fn between(&self, later: &Self) -> Self {
        let mean = |left: f64, right: f64| f64::midpoint(left, right);
        let delays = self.delay_ns.iter().zip(&later.delay_ns);
        Self {
            station_ns: mean(self.station_ns, later.station_ns),
            station_ns_per_byte: mean(self.station_ns_per_byte, later.station_ns_per_byte),
            delay_ns: delays.map(|((part, left), (_, right))| (*part, mean(*left, *right))).collect(),
            above_part: self.above_part,
        }
    }

    /// The time of the station for a request.
    pub(crate) fn station(&self, length_bytes: u32) -> Nanos {
        Nanos((self.station_ns + self.station_ns_per_byte * f64::from(length_bytes)) as u64)
    }

    /// The delay of one request; `part` is uniform over 0 to 1. On straight lines between the measured points.
    pub(crate) fn delay(&self, part: f64) -> Nanos {
        let right = self.delay_ns.partition_point(|(below, _)| *below < part);
        let Some((high_part, high)) = self.delay_ns.get(right).or(self.delay_ns.last()).copied() else {
            return Nanos::ZERO;
        };
        let (low_part, low) = right.checked_sub(1).map_or((0.0, high), |left| self.delay_ns[left]);
        let along = ((part - low_part) / (high_part - low_part).max(f64::EPSILON)).clamp(0.0, 1.0);
        Nanos((low + along * (high - low)).max(0.0) as u64)
    }

    /// How long a process takes to learn of an answer and to be heard again: the part of the way above whoever orders requests, who
    /// meanwhile could serve others.
    pub(crate) fn wake(&self) -> Nanos {
        Nanos((self.delay(0.5).0 as f64 * self.above_part) as u64)
    }

    /// Delays from this part on are stalls.
    pub(crate) fn stalls_from(&self) -> f64 {
        let cut_ns = STALL_FACTOR * self.delay(0.9).0 as f64;
        let Some(right) = self.delay_ns.iter().position(|(_, delay)| *delay > cut_ns) else { return 1.0 };
        let (high_part, high) = self.delay_ns[right];
        let (low_part, low) = right.checked_sub(1).map_or((0.0, 0.0), |left| self.delay_ns[left]);
        low_part + (high_part - low_part) * (cut_ns - low) / (high - low)
    }

    /// The mean time from one stall to the next; none without stalls.
    pub(crate) fn stall_gap_mean_ns(&self) -> Option<f64> {
        let period_ns = CONSTANT_US * 1e3 + self.station_ns + self.delay_mean().0 as f64;
        let rare = 1.0 - self.stalls_from();
        (rare > 0.0).then(|| period_ns / rare)
    }

    /// How long a stall is; `part` is uniform over 0 to 1.
    pub(crate) fn stall(&self, part: f64) -> Nanos {
        let from = self.stalls_from();
        self.delay(from + (1.0 - from) * part).since(self.delay(0.5))
    }

    /// The mean delay, for people.
    pub fn delay_mean(&self) -> Nanos {
        const STEPS: u32 = 1000;
        let sum: u64 = (0..STEPS).map(|step| self.delay((f64::from(step) + 0.5) / f64::from(STEPS)).0).sum();
        Nanos(sum / u64::from(STEPS))
    }
}

#[cfg(test)]
mod tests {
    use super::{ABOVE_SERVER, Host};
    use minerva_model::Nanos;

    #[test]
    fn a_record_without_a_part_above_is_of_the_way_through_the_kernel() {
        let text = r#"{ "station_ns": 1.0, "station_ns_per_byte": 2.0, "delay_ns": [[1.0, 1200.0]] }"#;
        let host: Host = serde_json::from_str(text).unwrap();
        assert_eq!((host.wake(), host.between(&host)), (Nanos(300), host.clone()));
        let served = Host { above_part: ABOVE_SERVER, ..host };
        assert_eq!((served.wake(), served.between(&served).wake()), (Nanos(400), Nanos(400)));
    }
}
