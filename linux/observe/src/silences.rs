//! Who lately kept a round waiting. Whoever lets its processes hang again and again, for a while each, is left out for twice as many rounds
//! each time, and asked last after that, so that it takes from the others little of their rounds.

use std::collections::BTreeMap;

/// Rounds that one is left out for at most. So many after that it is as everyone again.
const ROUNDS_MAX: u64 = 64;

#[derive(Debug, Default)]
pub(crate) struct Silences {
    round: u64,
    by_maker: BTreeMap<String, Silence>,
}

#[derive(Debug, Default)]
struct Silence {
    /// It is left out for so many rounds.
    rounds: u64,
    /// The last of them.
    until: u64,
}

impl Silences {
    pub(crate) fn begin_round(&mut self) {
        self.round += 1;
        let round = self.round;
        self.by_maker.retain(|_, silence| silence.until + ROUNDS_MAX >= round);
    }

    /// A process of this maker's did not answer.
    pub(crate) fn note(&mut self, maker: &str) {
        let silence = self.by_maker.entry(maker.to_owned()).or_default();
        silence.rounds = (silence.rounds * 2).clamp(1, ROUNDS_MAX);
        silence.until = self.round + silence.rounds;
    }

    pub(crate) fn is_left_out(&self, maker: &str) -> bool {
        self.by_maker.get(maker).is_some_and(|silence| silence.until >= self.round)
    }

    /// It is asked last.
    pub(crate) fn is_recent(&self, maker: &str) -> bool {
        self.by_maker.contains_key(maker)
    }
}

#[cfg(test)]
mod tests {
    use super::{ROUNDS_MAX, Silences};

    #[test]
    fn who_is_silent_again_and_again_is_left_out_for_twice_as_long_each_time_and_forgiven_later() {
        let mut silences = Silences::default();
        silences.begin_round();
        let mut lengths = Vec::new();
        for _ in 0..9 {
            silences.note("a");
            let mut rounds = 0;
            silences.begin_round();
            while silences.is_left_out("a") {
                rounds += 1;
                silences.begin_round();
            }
            assert!(silences.is_recent("a"));
            lengths.push(rounds);
        }
        assert_eq!(lengths, [1, 2, 4, 8, 16, 32, 64, 64, 64]);
        assert!(!silences.is_left_out("b") && !silences.is_recent("b"));
        for _ in 0..ROUNDS_MAX {
            silences.begin_round();
        }
        assert!(!silences.is_recent("a"));
    }
}
