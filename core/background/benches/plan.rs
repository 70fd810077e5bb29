//! The figure `plan-cost`: a month's plan for 1,000 queues, as it is made anew each hour.
//! `cargo bench -p minerva-background --bench plan` prints it as JSON lines.

#![expect(clippy::disallowed_macros, reason = "a measurement is printed")]

use minerva_background::{Debts, Expected, Growth, Machine, Plan, PlanInput, QueueId, Spread, Terms};

const QUEUES: u32 = 1_000;
const PLANS: u32 = 24;
const GOAL_MS: f64 = 100.0;
const WEEK_BINS: usize = 1_008;
const HOURS_BEYOND: usize = 23 * 24;

fn main() {
    for (what, load) in [("a light load", 0.6), ("a full one", 1.0), ("one that cores have to be stolen from", 2.0)] {
        let (debts, expected) = (debts(), month(load));
        let mut took: Vec<f64> = Vec::new();
        let mut last = Plan::default();
        for hour in 0..PLANS {
            let now_seconds = f64::from(hour) * 3600.0;
            let input = PlanInput {
                now_seconds,
                machine: Machine { cores: 64, foreground_ops_per_core_second: 50.0 },
                debts: &debts,
                expected: &expected,
                used_blocks: 0.0,
                limit_share: 0.95,
                spread: Spread::Headroom,
                against_cores_max: f64::INFINITY,
                wait_seconds: Some(0.005),
            };
            let started = thread_seconds();
            last = Plan::new(&input);
            took.push((thread_seconds() - started) * 1000.0);
        }
        took.sort_unstable_by(f64::total_cmp);
        let (median, worst) = (took[took.len() / 2], took[took.len() - 1]);
        println!(
            "{{\"id\":\"plan-cost\",\"value\":{median:.1},\"unit\":\"ms\",\"goal\":\"below {GOAL_MS} ms\",\"met\":{},\
             \"detail\":\"a month in {} slots, {QUEUES} queues, {what}: median of {PLANS}, slowest {worst:.1} ms, CPU time; {} slots with \
             stolen cores, {} alarms, {} queues paid\"}}",
            median < GOAL_MS,
            expected.len(),
            last.violations(),
            last.alarms.len(),
            last.payments.iter().filter(|payment| payment.paid_seconds.is_some()).count(),
        );
    }
}

/// CPU time of this thread: what others do on the machine is none of the plan's cost.
fn thread_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Queues of four priorities, many densities, deadlines of a day to a month, some that frees nothing.
fn debts() -> Debts {
    let mut debts = Debts::default();
    for number in 0..QUEUES {
        let part = f64::from(number % 10);
        let terms = Terms {
            priority: (number % 4) as u8,
            core_seconds_per_item: 0.02 + 0.01 * part,
            blocks_per_item: f64::from(number % 5),
            sla_seconds: (number % 3 > 0).then(|| f64::from(1 + number % 30) * 86_400.0),
            growth: Growth {
                items_per_written_block: 1.0 / f64::from(QUEUES),
                release_period_seconds: (number % 7 == 0).then_some(3600.0),
                ..Growth::default()
            },
        };
        let refused = debts.register(QueueId(number), terms);
        assert!(refused.is_none(), "{refused:?}");
        debts.defer(0.0, QueueId(number), 5_000.0 * part);
    }
    debts
}

/// A week in bins of ten minutes, the rest in hours; busy by day.
fn month(load: f64) -> Vec<Expected> {
    let slot = |seconds: f64, at: f64| {
        let hour = (at / 3600.0) % 24.0;
        let busy = if (8.0..18.0).contains(&hour) { 1.0 } else { 0.2 };
        Expected {
            seconds,
            foreground_ops_per_second: 1800.0 * load * busy,
            written_blocks_per_second: 600.0 * load * busy,
            unique_share: 0.002,
            capacity_blocks: 60e6,
        }
    };
    let week = (0..WEEK_BINS).map(|bin| slot(600.0, bin as f64 * 600.0));
    week.chain((0..HOURS_BEYOND).map(|hour| slot(3600.0, hour as f64 * 3600.0))).collect()
}
