//! Bursts and pauses of a process that alternates between the disk and other work.

use super::Cancel;
use minerva_model::Nanos;
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A pause is slept in pieces, so that a worker that is told to stop does.
const PIECE: Duration = Duration::from_millis(50);

/// When a worker pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rests {
    /// It does so after about so many bytes,
    pub burst_bytes: u64,
    /// for about so long.
    pub pause: Nanos,
    /// Each burst and each pause differs from that by up to this part, in thousandths.
    pub jitter_permille: u32,
}

/// How far a worker is in its burst.
pub(super) struct Resting {
    rests: Rests,
    random: fastrand::Rng,
    left_bytes: u64,
}

impl Resting {
    pub(super) fn new(rests: Rests, seed: u64) -> Self {
        let mut resting = Self { rests, random: fastrand::Rng::with_seed(seed), left_bytes: 0 };
        resting.left_bytes = resting.about(rests.burst_bytes);
        resting
    }

    fn about(&mut self, value: u64) -> u64 {
        let part = f64::from(self.rests.jitter_permille) / 1e3 * (2.0 * self.random.f64() - 1.0);
        (value as f64 * (1.0 + part).max(0.0)) as u64
    }

    /// Takes what was transferred; the pause that is due, if one is.
    pub(super) fn after(&mut self, bytes: u64) -> Option<Nanos> {
        self.left_bytes = self.left_bytes.saturating_sub(bytes);
        if self.left_bytes > 0 {
            return None;
        }
        self.left_bytes = self.about(self.rests.burst_bytes);
        Some(Nanos(self.about(self.rests.pause.0)))
    }
}

/// Pauses for so long, or until it is told to stop.
pub(super) fn rest(pause: Nanos, cancel: &Cancel) {
    let mut left = Duration::from_nanos(pause.0);
    while !left.is_zero() && !cancel.load(Ordering::Relaxed) {
        let piece = left.min(PIECE);
        std::thread::sleep(piece);
        left -= piece;
    }
}

#[cfg(test)]
mod tests {
    use super::{Resting, Rests};
    use minerva_model::Nanos;

    #[test]
    fn a_burst_is_followed_by_a_pause_and_both_vary_by_no_more_than_told() {
        let rests = Rests { burst_bytes: 1000, pause: Nanos::from_secs(2), jitter_permille: 100 };
        let mut resting = Resting::new(rests, 3);
        let mut bursts = Vec::new();
        let mut bytes = 0;
        for _ in 0..10_000 {
            bytes += 10;
            if let Some(pause) = resting.after(10) {
                assert!((1.8..=2.2).contains(&pause.as_secs_f64()), "{pause:?}");
                bursts.push(std::mem::take(&mut bytes));
            }
        }
        assert!(bursts.len() > 90 && bursts.iter().all(|burst| (900..=1110).contains(burst)), "{bursts:?}");
        assert!(bursts.iter().min() < bursts.iter().max());
    }
}
