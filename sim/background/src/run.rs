//! The loop: a second is decided, served and counted.

use crate::load::Load;
use crate::outlook::{Forecaster, Outlook};
use crate::policy::{Deciding, Policy, View};
use crate::server::Server;
use minerva_background::Measured;
use minerva_forecast::seasonal::BIN_SECONDS;

const HOUR_SECONDS: usize = 3600;
/// Requests below this are none: remainders of sums.
const NO_REQUEST: f64 = 1e-6;

/// An hour's means, for plots.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Hour {
    /// Requests a second.
    pub ops: f64,
    /// Cores that paid debt.
    pub background_cores: f64,
    /// Of the pool, at the end: in use beside debt.
    pub used_share: f64,
    /// Of the pool, at the end: tied by debt.
    pub debt_share: f64,
    /// Part of its seconds in violation.
    pub violation_share: f64,
}

/// What came of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Part of the seconds at whose end a request waited.
    pub violation_share: f64,
    /// Part of the requests that came beyond what the foreground's cores serve in a second.
    pub queued_share: f64,
    /// Seconds at whose end used and tied blocks exceeded the pool.
    pub full_seconds: u32,
    /// The most that used and tied blocks took of the pool.
    pub fill_share_max: f64,
    /// Debt at the end, of the pool.
    pub debt_share_end: f64,
    /// Plans made.
    pub plans: u32,
    /// Of them, those with an alarm.
    pub alarmed_plans: usize,
    /// When the first alarm was raised and what it said: seconds from the start.
    pub first_alarm: Option<(f64, f64)>,
    /// Each hour.
    pub hours: Vec<Hour>,
}

/// Plays the days of a load under a policy that is given forecasts, each multiplied by `factor`.
pub fn run(load: &Load, server: Server, policy: Policy, forecaster: Forecaster, factor: f64) -> Outcome {
    let mut outlook = Outlook::new(load, server, forecaster, factor);
    let mut deciding = Deciding::new(policy, server);
    // Days begin at a midnight, so that hours, bins and snapshots are those of the clock.
    let start_seconds = load.first_bin as f64 * BIN_SECONDS as f64;
    let mut days = Days::new(server);
    for (at, second) in load.seconds.iter().enumerate() {
        if at > 0 && at % BIN_SECONDS as usize == 0 {
            outlook.end_bin();
        }
        let now_seconds = start_seconds + at as f64;
        let gone_seconds = (at % BIN_SECONDS as usize) as f64;
        let view =
            View { now_seconds, debts: &days.debts, used_blocks: days.used_blocks, outlook: &outlook, gone_seconds };
        let cores = deciding.cores(&view);
        let measured = days.play(now_seconds, second.ops, second.written_blocks, cores, policy == Policy::Floor);
        deciding.observe(now_seconds, measured);
    }
    let mut outcome = days.finish();
    outcome.plans = deciding.plans;
    outcome.alarmed_plans = deciding.alarms.len();
    outcome.first_alarm = deciding.alarms.first().map(|(raised, date)| (raised - start_seconds, date - start_seconds));
    outcome
}

/// The state of the server, and what is counted.
struct Days {
    server: Server,
    debts: minerva_background::Debts,
    used_blocks: f64,
    waiting: f64,
    /// That waiting requests will write.
    waiting_blocks: f64,
    seconds: usize,
    violations: usize,
    arrived: f64,
    queued: f64,
    hour: (Hour, usize),
    outcome: Outcome,
}

impl Days {
    fn new(server: Server) -> Self {
        Self {
            server,
            debts: server.debts(),
            used_blocks: 0.0,
            waiting: 0.0,
            waiting_blocks: 0.0,
            seconds: 0,
            violations: 0,
            arrived: 0.0,
            queued: 0.0,
            hour: (Hour::default(), 0),
            outcome: Outcome::default(),
        }
    }

    /// One second.
    fn play(&mut self, now_seconds: f64, ops: f64, written_blocks: f64, cores: f64, is_floor: bool) -> Measured {
        let machine = self.server.machine;
        let serves = (f64::from(machine.cores) - cores) * machine.foreground_ops_per_core_second;
        self.queued += (ops - serves).max(0.0);
        self.arrived += ops;
        // A write leaves debt once it is served, so a foreground without cores leaves none.
        let (asked, asked_blocks) = (self.waiting + ops, self.waiting_blocks + written_blocks);
        let part = if asked > serves { serves / asked } else { 1.0 };
        let written_blocks = part * asked_blocks;
        (self.waiting, self.waiting_blocks) = ((asked - serves).max(0.0), asked_blocks - written_blocks);
        let is_violated = self.waiting > NO_REQUEST;
        self.violations += usize::from(is_violated);
        let served = self.debts.serve(now_seconds, cores);
        if !is_floor {
            self.server.defer(&mut self.debts, now_seconds, written_blocks);
            self.used_blocks += written_blocks * self.server.unique_share;
        }
        self.count(ops, cores, is_violated);
        Measured {
            foreground_ops: ops,
            waiting_ops: self.waiting,
            written_blocks,
            served_core_seconds: served.core_seconds,
            used_blocks: self.used_blocks,
            capacity_blocks: self.server.capacity_blocks,
        }
    }

    fn count(&mut self, ops: f64, cores: f64, is_violated: bool) {
        let capacity = self.server.capacity_blocks;
        let (used_share, debt_share) = (self.used_blocks / capacity, self.debts.tied_blocks() / capacity);
        let fill = used_share + debt_share;
        self.outcome.fill_share_max = self.outcome.fill_share_max.max(fill);
        self.outcome.full_seconds += u32::from(fill > 1.0);
        self.outcome.debt_share_end = debt_share;
        self.seconds += 1;
        let (hour, violated) = &mut self.hour;
        hour.ops += ops / HOUR_SECONDS as f64;
        hour.background_cores += cores / HOUR_SECONDS as f64;
        (hour.used_share, hour.debt_share) = (used_share, debt_share);
        *violated += usize::from(is_violated);
        if self.seconds.is_multiple_of(HOUR_SECONDS) {
            hour.violation_share = *violated as f64 / HOUR_SECONDS as f64;
            self.outcome.hours.push(*hour);
            self.hour = (Hour::default(), 0);
        }
    }

    fn finish(mut self) -> Outcome {
        self.outcome.violation_share = self.violations as f64 / self.seconds.max(1) as f64;
        self.outcome.queued_share = if self.arrived > 0.0 { self.queued / self.arrived } else { 0.0 };
        self.outcome
    }
}
