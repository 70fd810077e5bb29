//! The only source of chance: SplitMix64 (Steele, Lea, Flood 2014), seeded by the caller.

/// A stream of numbers fixed by its seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        ((mixed >> 11) as f64 + 0.5) / 9_007_199_254_740_992.0
    }

    /// Standard normal (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let (radius, angle) = (self.unit(), self.unit());
        libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(std::f64::consts::TAU * angle)
    }
}

/// Noise whose values have a variance of one and follow each other (first-order autoregression).
#[derive(Clone, Debug)]
pub(crate) struct Noise {
    random: Random,
    keep: f64,
    value: f64,
}

impl Noise {
    /// `keep` of a value is in the next, 0 to 1.
    pub(crate) fn new(seed: u64, keep: f64) -> Self {
        let mut random = Random::new(seed);
        let value = random.normal();
        Self { random, keep, value }
    }

    /// The next factor: log-normal with a mean of one and a deviation of `sigma` in the logarithm.
    pub(crate) fn factor(&mut self, sigma: f64) -> f64 {
        self.value = self.keep * self.value + libm::sqrt(1.0 - self.keep * self.keep) * self.random.normal();
        libm::exp(sigma * self.value - sigma * sigma / 2.0)
    }
}
