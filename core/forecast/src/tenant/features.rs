//! What the next slice is told from (seed 000, section 4.1): processor, memory, network, open files and their sizes, connections,
//! and the tenant's past slices.

/// What a slice says of a tenant. Values that are not finite or below 0 count as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reading {
    /// How long the slice was.
    pub elapsed_seconds: f64,
    /// Bytes read in it.
    pub read_bytes: f64,
    /// Bytes written in it.
    pub write_bytes: f64,
    /// What its processes use besides the disk; `None` if they were not looked at in this slice.
    pub usage: Option<Usage>,
    /// What the tenant itself says that the session will transfer, in bytes; believed only as far as it was right before.
    pub declared_bytes: Option<f64>,
}

/// What a tenant's processes use besides the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Usage {
    /// Processors in use.
    pub cpus: f64,
    /// Resident memory.
    pub memory_bytes: f64,
    /// Network traffic both ways, bytes a second.
    pub network_bytes_per_second: f64,
    /// Open file descriptors.
    pub open_files: f64,
    /// Of those, sockets.
    pub open_sockets: f64,
    /// Sizes of the open regular files together.
    pub open_file_bytes: f64,
}

/// Features of a row.
pub const FEATURES: usize = 27;

/// What a model is asked about. The first entry is log1p of the last slice's bytes a second.
pub type Row = [f32; FEATURES];

/// Seconds over which the moving averages of the rate reach.
const HORIZONS: [f64; 3] = [4.0, 16.0, 64.0];
/// Slices whose rates are kept.
const RECENT: usize = 16;
/// Weight of a new slice in the long mean, and how far the running median of the logarithm moves.
const LONG_WEIGHT: f32 = 1.0 / 600.0;
const MEDIAN_STEP: f32 = 0.05;

/// The running values behind a tenant's features. 250 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FeatureState {
    /// log1p of bytes a second, newest at `slices % RECENT`.
    recent: [f32; RECENT],
    /// The same as moving averages.
    averages: [f32; HORIZONS.len()],
    long: f32,
    median: f32,
    slices: u32,
    busy_slices: u32,
    idle_slices: u32,
    read_share: f32,
    usage: Usage,
    before: Usage,
    declared_log: f32,
}

impl FeatureState {
    /// Takes a slice in and says what the next is told from. `session` is what its session has transferred and how many seconds it
    /// lasts; `family_log` what sessions of its like transferred, as log1p of bytes.
    pub fn observe(&mut self, reading: &Reading, session: (f64, f64), family_log: f32) -> Row {
        let seconds = if reading.elapsed_seconds > 0.0 { reading.elapsed_seconds } else { 1.0 };
        let (read, write) = (sane(reading.read_bytes) / seconds, sane(reading.write_bytes) / seconds);
        let rate = log(read + write);
        self.slices = self.slices.wrapping_add(1);
        self.recent[self.slices as usize % RECENT] = rate;
        for (average, horizon) in self.averages.iter_mut().zip(HORIZONS) {
            *average += (rate - *average) * (1.0 - libm::exp(-seconds / horizon)) as f32;
        }
        self.long += (rate - self.long) * LONG_WEIGHT.max(1.0 / self.slices.max(1) as f32);
        self.median += (rate - self.median).clamp(-MEDIAN_STEP, MEDIAN_STEP);
        if rate > 0.0 {
            self.busy_slices = self.busy_slices.saturating_add(1);
            self.idle_slices = 0;
            self.read_share += 0.2 * ((read / (read + write)) as f32 - self.read_share);
        } else {
            self.idle_slices = self.idle_slices.saturating_add(1);
            self.busy_slices = 0;
        }
        if let Some(usage) = reading.usage {
            (self.before, self.usage) = (self.usage, usage.sane());
        } else {
            self.before = self.usage;
        }
        if let Some(declared) = reading.declared_bytes {
            self.declared_log = log(declared);
        }
        self.row(session, family_log)
    }

    fn row(&self, (attained, age): (f64, f64), family_log: f32) -> Row {
        let (usage, before) = (&self.usage, &self.before);
        let lag = |back: u32| self.recent[self.slices.wrapping_sub(back) as usize % RECENT];
        let last = lag(0);
        let grown = |now: f64, before: f64| log(now) - log(before);
        let open = usage.open_file_bytes;
        [
            // The model says by how much the next rate differs from the last: so most features are differences from it.
            last,
            lag(1) - last,
            lag(2) - last,
            lag(3) - last,
            self.averages[0] - last,
            self.averages[1] - last,
            self.averages[2] - last,
            self.recent.iter().copied().fold(0.0, f32::max) - last,
            self.recent.iter().copied().fold(f32::INFINITY, f32::min) - last,
            self.long - last,
            self.median - last,
            log(f64::from(self.busy_slices)),
            log(f64::from(self.idle_slices)),
            self.read_share,
            usage.cpus as f32,
            log(usage.memory_bytes),
            grown(usage.memory_bytes, before.memory_bytes),
            log(usage.network_bytes_per_second),
            log(usage.open_files),
            (usage.open_files - before.open_files) as f32,
            log(usage.open_sockets),
            (usage.open_sockets - before.open_sockets) as f32,
            log(open),
            log((open - attained).max(0.0)),
            log(attained),
            log(age),
            if self.declared_log > 0.0 { self.declared_log } else { family_log },
        ]
    }
}

impl Usage {
    fn sane(self) -> Self {
        Self {
            cpus: sane(self.cpus),
            memory_bytes: sane(self.memory_bytes),
            network_bytes_per_second: sane(self.network_bytes_per_second),
            open_files: sane(self.open_files),
            open_sockets: sane(self.open_sockets),
            open_file_bytes: sane(self.open_file_bytes),
        }
    }
}

/// At least 0 and finite.
pub(crate) fn sane(value: f64) -> f64 {
    if value.is_finite() && value > 0.0 { value } else { 0.0 }
}

fn log(value: f64) -> f32 {
    libm::log1p(sane(value)) as f32
}
