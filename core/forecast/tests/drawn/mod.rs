//! Tenants that are drawn: some whose sessions go with the files that they open, and some that are noise.

#![allow(clippy::expect_used, reason = "a test that cannot be set up fails")]

use minerva_forecast::tenant::{Reading, SessionClass, Usage};
use minerva_forecast::{Family, Forecaster, ForecasterSettings, Key, SliceTime};
use minerva_model::{DeviceId, Nanos, TenantId};

pub(crate) fn key(tenant: u64) -> Key {
    (TenantId(tenant), DeviceId { major: 8, minor: 0 })
}

/// A tenant's slice as the forecaster takes it.
pub(crate) type Named = (Key, Family, Reading);

pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / 2.0_f64.powi(53)
    }
}

pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// Tenants of three families start sessions whose sizes go with the size of the file they open; afterwards they are silent.
pub(crate) struct Host {
    draws: Draws,
    /// For each tenant: bytes left, seconds until the next session, size of the open file.
    pub(crate) tenants: Vec<(f64, f64, f64)>,
    /// Tenant 0 opens a small file and reads on and on.
    has_liar: bool,
}

/// Sizes of the families' sessions: light, moderate, heavy.
const SIZES: [f64; 3] = [8.0 * MIB, 200.0 * MIB, 3000.0 * MIB];

impl Host {
    pub(crate) fn new(seed: u64, tenants: usize, has_liar: bool) -> Self {
        let mut draws = Draws(seed);
        let tenants = (0..tenants).map(|_| (0.0, 40.0 * draws.uniform(), 0.0)).collect();
        Self { draws, tenants, has_liar }
    }

    /// A slice, and which tenants began a session in it with which class.
    pub(crate) fn slice(&mut self) -> (Vec<Named>, Vec<(Key, SessionClass)>) {
        let (mut slice, mut begun) = (Vec::new(), Vec::new());
        for (number, (left, wait, file)) in self.tenants.iter_mut().enumerate() {
            let family = number % SIZES.len();
            *wait -= 1.0;
            if *left <= 0.0 && *wait <= 0.0 {
                let size = SIZES[family] * (0.5 + self.draws.uniform());
                (*left, *file, *wait) = (size, size, 60.0);
                if self.has_liar && number == 0 {
                    (*left, *file) = (f64::INFINITY, 0.1 * MIB);
                }
                begun.push((key(number as u64), SessionClass::of(size)));
            }
            let bytes = f64::min(*left, (60.0 + 40.0 * self.draws.uniform()) * MIB);
            *left -= bytes;
            if *left <= 0.0 && bytes > 0.0 {
                *wait = 15.0 + 30.0 * self.draws.uniform();
            }
            let is_open = bytes > 0.0;
            let usage = Usage {
                cpus: 0.3,
                memory_bytes: 1e8,
                open_files: if is_open { 5.0 } else { 4.0 },
                open_file_bytes: if is_open { *file } else { 0.0 },
                ..Usage::default()
            };
            let reading = Reading { elapsed_seconds: 1.0, read_bytes: bytes, usage: Some(usage), ..Reading::default() };
            slice.push((key(number as u64), family as u64 + 1, reading));
        }
        (slice, begun)
    }
}

/// Of the sessions of each class, how many began and of how many the first slice told the class, once a host had learnt for 700 slices.
pub(crate) fn classes_told(seed: u64, slices: usize) -> [(f64, f64); 4] {
    let (mut host, mut forecaster) = (Host::new(seed, 30, false), Forecaster::new(ForecasterSettings::default()));
    let mut told = [(0.0, 0.0); 4];
    for slice in 0..slices {
        let (readings, begun) = host.slice();
        forecaster.observe(SliceTime::default(), &readings);
        if slice < 700 {
            continue;
        }
        for (who, class) in begun {
            let outlook = forecaster.outlook(who).expect("known").session.expect("a session");
            told[class as usize].0 += f64::from(u8::from(outlook.class == class));
            told[class as usize].1 += 1.0;
        }
    }
    told
}

/// The mean over classes that there were.
pub(crate) fn balanced(told: &[(f64, f64)]) -> f64 {
    let rates: Vec<f64> = told.iter().filter(|(_, count)| *count > 0.0).map(|(right, count)| right / count).collect();
    rates.iter().sum::<f64>() / rates.len() as f64
}

/// Of twenty tenants that are white noise: how many forecasts of any horizon were told from the hundredth slice on, and how many of them had
/// at least this skill.
pub(crate) fn noise_with_skill(seed: u64, slices: u64, skill: f64) -> (usize, usize) {
    let (mut draws, mut forecaster) = (Draws(seed), Forecaster::new(ForecasterSettings::default()));
    let (mut all, mut skilled) = (0, 0);
    for slice in 0..slices {
        let noise: Vec<Named> = (0..20_u64)
            .map(|tenant| {
                let read_bytes = 1e6 * draws.uniform();
                (key(tenant), 0, Reading { elapsed_seconds: 1.0, read_bytes, ..Reading::default() })
            })
            .collect();
        forecaster.observe(SliceTime::default(), &noise);
        if slice >= 100 {
            let outlook = forecaster.to_model(Nanos::from_secs(slice), Nanos::SECOND);
            all += outlook.forecasts().len();
            skilled += outlook.forecasts().iter().filter(|row| row.skill >= skill).count();
        }
    }
    (all, skilled)
}
