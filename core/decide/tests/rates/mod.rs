//! Disks whose bandwidth changes, what is known of them at the start, and what could at best be done on them in time.

/// A disk delivers between these, in bytes a second.
pub(crate) const SLOWEST: f64 = 12.5e6;
pub(crate) const FASTEST: f64 = 200e6;
/// What a disk delivers that does not change.
pub(crate) const STEADY: f64 = 50e6;
/// From one second to the next a disk that changes drifts by this part at most.
const DRIFT: f64 = 0.05;
/// Once in so many seconds it jumps anywhere between [`SLOWEST`] and [`FASTEST`].
const JUMP_SECONDS: u64 = 15;
/// Seconds after which the rate stays as it is.
const CHANGING_SECONDS: usize = 400;
/// Parts of a second in which the best order is followed.
const STEPS: u32 = 20;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) + 1)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    /// 0 to 1.
    fn part(&mut self) -> f64 {
        self.below(1 << 24) as f64 / (1_u64 << 24) as f64
    }

    /// Every ratio is as likely as its inverse.
    fn rate(&mut self) -> f64 {
        SLOWEST * (FASTEST / SLOWEST).powf(self.part())
    }
}

/// What a disk does, and what the engine is told of it at the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Steady, and known.
    Known,
    /// Changing; remembered is a rate that it had at some other time.
    Remembered,
    /// Changing, and never measured.
    Unknown,
}

impl Kind {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Known => "steady and known",
            Self::Remembered => "changing, remembered otherwise",
            Self::Unknown => "changing, never measured",
        }
    }
}

pub(crate) struct Disk {
    pub(crate) kind: Kind,
    /// Bytes a second at the start as the engine has them from its store.
    pub(crate) remembered: Option<f64>,
    rates: Vec<f64>,
}

impl Disk {
    pub(crate) fn draw(random: &mut Random) -> Self {
        let kind = [Kind::Known, Kind::Remembered, Kind::Unknown][random.below(3) as usize];
        if kind == Kind::Known {
            return Self { kind, remembered: Some(STEADY), rates: vec![STEADY] };
        }
        let remembered = (kind == Kind::Remembered).then(|| random.rate());
        let mut rate = random.rate();
        let rates = (0..CHANGING_SECONDS).map(|_| {
            let drift = 1.0 + DRIFT * (2.0 * random.part() - 1.0);
            rate = if random.below(JUMP_SECONDS) == 0 { random.rate() } else { rate * drift };
            rate = rate.clamp(SLOWEST, FASTEST);
            rate
        });
        Self { kind, remembered, rates: rates.collect() }
    }

    /// Bytes a second in the second that begins then.
    pub(crate) fn rate(&self, second: usize) -> f64 {
        self.rates[second.min(self.rates.len() - 1)]
    }

    /// Whether the disk can do all of these in time: asked at, bytes, to be done by; in seconds. Serving the one with the
    /// earliest deadline first, with preemption, does it if anything does (Dertouzos 1974; the exchange of what is served
    /// holds for each byte, so also where the rate changes), and needs no bandwidth for that.
    pub(crate) fn can_do(&self, operations: &[(u64, f64, u64)]) -> bool {
        let mut left: Vec<(u64, f64, u64)> = operations.to_vec();
        left.sort_by_key(|(at, _, deadline)| (*deadline, *at));
        let end = left.iter().map(|(_, _, deadline)| *deadline).max().unwrap_or(0);
        for second in 0..end {
            for _ in 0..STEPS {
                let mut capacity = self.rate(second as usize) / f64::from(STEPS);
                for (_, bytes, _) in left.iter_mut().filter(|(at, ..)| *at <= second) {
                    let part = capacity.min(*bytes);
                    *bytes -= part;
                    capacity -= part;
                }
            }
            if left.iter().any(|(_, bytes, deadline)| *deadline == second + 1 && *bytes > 0.5) {
                return false;
            }
        }
        true
    }
}

/// Rates by the second, operations as (asked at, bytes, deadline), and whether all can be done.
type Case<'a> = (&'a [f64], &'a [(u64, f64, u64)], bool);

#[test]
fn what_can_be_done_in_time_by_hand() {
    let disk = |rates: &[f64]| Disk { kind: Kind::Unknown, remembered: None, rates: rates.to_vec() };
    let table: [Case<'_>; 8] = [
        (&[10.0], &[], true),
        (&[10.0], &[(0, 20.0, 2)], true),
        (&[10.0], &[(0, 21.0, 2)], false),
        (&[10.0], &[(0, 20.0, 4), (0, 20.0, 4)], true),
        (&[10.0], &[(0, 20.0, 3), (0, 20.0, 3)], false),
        // Only if the long one that began is put aside for the one that is due.
        (&[10.0], &[(0, 50.0, 6), (1, 10.0, 2)], true),
        (&[10.0, 10.0, 20.0], &[(0, 40.0, 3)], true),
        (&[20.0, 10.0, 5.0], &[(1, 20.0, 3)], false),
    ];
    for (index, (rates, operations, expected)) in table.iter().enumerate() {
        assert_eq!(disk(rates).can_do(operations), *expected, "case {index}");
    }
}

#[test]
fn disks_of_every_kind_are_drawn_and_those_that_change_drift_and_jump_within_the_bounds() {
    let (mut kinds, mut jumps) = (std::collections::BTreeSet::new(), 0);
    for seed in 0..100 {
        let disk = Disk::draw(&mut Random::new(seed));
        let again = Disk::draw(&mut Random::new(seed));
        assert_eq!((disk.kind, &disk.rates), (again.kind, &again.rates), "seed {seed}");
        kinds.insert(disk.kind);
        assert!(disk.rates.iter().all(|rate| (SLOWEST..=FASTEST).contains(rate)), "seed {seed}: {:?}", disk.rates);
        let changes: Vec<f64> = disk.rates.windows(2).map(|pair| (pair[1] / pair[0] - 1.0).abs()).collect();
        assert_eq!(changes.iter().any(|part| *part > 0.0), disk.kind != Kind::Known, "seed {seed}");
        jumps += changes.iter().filter(|part| **part > DRIFT * 1.001).count();
    }
    assert_eq!(kinds.len(), 3);
    assert!(jumps > 100, "{jumps} jumps");
}
