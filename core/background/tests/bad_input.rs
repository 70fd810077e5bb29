//! Debts, deadlines, forecasts and pools as they should not be.

use minerva_background::{
    Debts, Expected, Growth, Machine, Measured, Plan, PlanInput, Planner, PlannerSettings, QueueId, Replan, Shortage,
    Spread, Terms,
};

const HOUR: f64 = 3600.0;
const MACHINE: Machine = Machine { cores: 10, foreground_ops_per_core_second: 50.0 };

fn terms() -> Terms {
    Terms {
        priority: 1,
        core_seconds_per_item: 1.0,
        blocks_per_item: 1.0,
        sla_seconds: None,
        growth: Growth::default(),
    }
}

fn owing(terms: Terms, items: f64) -> Debts {
    let mut debts = Debts::default();
    assert_eq!(debts.register(QueueId(1), terms), None);
    debts.defer(0.0, QueueId(1), items);
    debts
}

fn hours(count: usize, capacity_blocks: f64) -> Vec<Expected> {
    let slot = Expected {
        seconds: HOUR,
        foreground_ops_per_second: 200.0,
        written_blocks_per_second: 0.0,
        unique_share: 0.0,
        capacity_blocks,
    };
    vec![slot; count]
}

fn plan(debts: &Debts, expected: &[Expected], used_blocks: f64) -> Plan {
    Plan::new(&PlanInput {
        now_seconds: 0.0,
        machine: MACHINE,
        debts,
        expected,
        used_blocks,
        limit_share: 0.95,
        spread: Spread::Headroom,
        against_cores_max: f64::INFINITY,
        wait_seconds: None,
    })
}

fn worked(plan: &Plan) -> f64 {
    plan.slots.iter().map(|slot| slot.background_cores * slot.seconds).sum()
}

#[test]
fn no_debt_and_no_number_of_items_is_no_work() {
    for items in [0.0, -5.0, f64::NAN, f64::INFINITY] {
        let debts = owing(terms(), items);
        assert_eq!((debts.tied_blocks(), worked(&plan(&debts, &hours(4, 100.0), 0.0))), (0.0, 0.0), "{items}");
    }
    let mut debts = Debts::default();
    assert!(!debts.defer(0.0, QueueId(7), 5.0), "a queue that nobody registered");
}

#[test]
fn refused_terms_leave_what_is_there() {
    let mut debts = owing(terms(), 5.0);
    let before = debts.clone();
    assert!(debts.register(QueueId(1), Terms { core_seconds_per_item: -1.0, ..terms() }).is_some());
    assert!(debts.register(QueueId(2), Terms { core_seconds_per_item: f64::INFINITY, ..terms() }).is_some());
    assert_eq!(debts, before);
}

#[test]
fn a_deadline_in_the_past_is_paid_first_and_at_once() {
    let mut debts = owing(Terms { priority: 9, ..terms() }, 1e6);
    debts.register(QueueId(2), Terms { priority: 0, sla_seconds: Some(-60.0), ..terms() });
    debts.defer(0.0, QueueId(2), 20.0);
    let plan = plan(&debts, &hours(3, 1e9), 0.0);
    let late = plan.payments.iter().find(|payment| payment.id == QueueId(2)).expect("it owes");
    assert_eq!(late.paid_seconds, Some(HOUR));
    debts.serve(1.0, 20.0);
    assert_eq!(debts.owed().find(|owed| owed.id == QueueId(2)).map(|owed| owed.items), Some(0.0));
}

#[test]
fn a_deadline_that_cannot_be_kept_is_told_with_its_queue() {
    let debts = owing(Terms { sla_seconds: Some(2.0 * HOUR), ..terms() }, 100.0 * HOUR);
    let plan = plan(&debts, &hours(24, 1e9), 0.0);
    let alarm = plan.alarms.first().expect("10 cores do not do 100 core-hours in two hours");
    assert_eq!((alarm.shortage, alarm.at_seconds), (Shortage::Deadline { id: QueueId(1) }, 2.0 * HOUR));
    assert_eq!(plan.slots[0].background_cores.round(), 10.0, "what can be done is done");
}

#[test]
fn a_queue_that_vanishes_takes_its_debt_with_it_and_a_new_plan_is_due() {
    let mut debts = owing(terms(), 5.0);
    let mut planner = Planner::new(MACHINE, PlannerSettings::default());
    assert_eq!(planner.due(0.0, &debts), Some(Replan::First));
    planner.adopt(0.0, plan(&debts, &hours(4, 100.0), 0.0), &debts);
    assert_eq!(planner.due(1.0, &debts), None);
    assert_eq!(debts.remove(QueueId(1)), 5.0);
    assert_eq!(debts.remove(QueueId(1)), 0.0);
    assert_eq!(planner.due(1.0, &debts), Some(Replan::QueuesChanged));
    assert_eq!((debts.tied_blocks(), debts.settle(QueueId(1), 3.0)), (0.0, 0.0));
}

#[test]
fn progress_beyond_what_is_owed_frees_no_more_than_that() {
    let mut debts = owing(terms(), 5.0);
    assert_eq!(debts.settle(QueueId(1), f64::INFINITY), 5.0);
    assert_eq!(debts.settle(QueueId(1), 1.0), 0.0);
    let mut debts = owing(terms(), 5.0);
    assert_eq!((debts.settle(QueueId(1), -3.0), debts.tied_blocks()), (0.0, 5.0));
}

#[test]
fn without_a_forecast_the_gaps_are_used_and_a_pool_that_runs_full_is_emptied() {
    let debts = owing(terms(), 100.0);
    let without = plan(&debts, &[], 0.0);
    assert!(without.slots.is_empty() && without.payments[0].paid_seconds.is_none() && without.alarms.is_empty());
    let mut planner = Planner::new(MACHINE, PlannerSettings::default());
    assert_eq!(planner.split(0.0, &debts).background_cores, 0, "nobody knows yet what the foreground wants");
    let second =
        |used_blocks| Measured { foreground_ops: 100.0, used_blocks, capacity_blocks: 1000.0, ..Measured::default() };
    (0..300).for_each(|_| planner.observe(second(0.0), 0.0));
    let split = planner.split(300.0, &debts);
    assert!(split.background_cores >= 5 && split.stolen_cores == 0, "{split:?}");
    planner.observe(second(900.0), 0.0);
    let split = planner.split(301.0, &debts);
    assert_eq!(
        (split.background_cores, split.foreground_cores),
        (10, 0),
        "used and tied blocks fill the pool: {split:?}"
    );
}

#[test]
fn a_pool_that_shrinks_is_planned_for_and_told_before_it_is_full() {
    let debts = owing(terms(), 50.0 * HOUR);
    let mut expected = hours(10, 1e9);
    assert_eq!(worked(&plan(&debts, &expected, 0.0)), 0.0, "nothing is short");
    expected[8..].iter_mut().for_each(|slot| slot.capacity_blocks = 20.0 * HOUR);
    let shrinks = plan(&debts, &expected, 0.0);
    assert!(shrinks.alarms.is_empty() && shrinks.violations() == 0, "{:?}", shrinks.alarms);
    assert!(
        (worked(&shrinks) - 31.0 * HOUR).abs() < 0.01 * HOUR,
        "50 core-hours tied, 19 allowed: {}",
        worked(&shrinks)
    );
    let mut planner = Planner::new(MACHINE, PlannerSettings::default());
    let second = |capacity_blocks| Measured { capacity_blocks, ..Measured::default() };
    planner.observe(second(1e9), 0.0);
    planner.adopt(0.0, shrinks, &debts);
    planner.observe(second(5e8), 0.0);
    assert_eq!(planner.due(1.0, &debts), Some(Replan::CapacityChanged));
    // What is in use alone does not fit: paying cannot help, but whatever is tied is paid.
    expected[8..].iter_mut().for_each(|slot| slot.capacity_blocks = 100.0);
    let full = plan(&debts, &expected, 200.0);
    let alarm = full.alarms.first().expect("no room for what is in use");
    assert!(matches!(alarm.shortage, Shortage::Space { .. }) && alarm.at_seconds == 9.0 * HOUR, "{alarm:?}");
    assert!((worked(&full) - 50.0 * HOUR).abs() < 0.01 * HOUR, "{}", worked(&full));
}

#[test]
fn what_differs_from_the_forecast_makes_a_plan_due() {
    let debts = owing(terms(), 5.0);
    let mut planner = Planner::new(MACHINE, PlannerSettings::default());
    planner.adopt(0.0, plan(&debts, &hours(4, 100.0), 0.0), &debts);
    let second = Measured { written_blocks: 10.0, ..Measured::default() };
    (0..700).for_each(|_| planner.observe(second, 9.0));
    assert_eq!(planner.due(700.0, &debts), None);
    (0..700).for_each(|_| planner.observe(second, 4.0));
    assert_eq!(planner.due(500.0, &debts), None, "not every second");
    assert_eq!(planner.due(1400.0, &debts), Some(Replan::ForecastErred));
    assert_eq!(planner.due(3600.0, &debts), Some(Replan::Time));
}

#[test]
fn the_deadline_of_seconds_and_that_of_a_month_are_one_plan() {
    let mut debts = owing(Terms { sla_seconds: Some(30.0), ..terms() }, 40.0);
    debts.register(QueueId(2), Terms { sla_seconds: Some(20.0 * 86_400.0), blocks_per_item: 0.0, ..terms() });
    debts.defer(0.0, QueueId(2), 1000.0);
    let seconds = hours(60, 1e9).into_iter().map(|slot| Expected { seconds: 1.0, ..slot });
    let expected: Vec<Expected> = seconds.chain(hours(30 * 24, 1e9)).collect();
    let plan = plan(&debts, &expected, 0.0);
    let paid: Vec<f64> = plan.payments.iter().filter_map(|payment| payment.paid_seconds).collect();
    assert!(plan.alarms.is_empty() && paid.len() == 2, "{:?} {paid:?}", plan.alarms);
    assert!(paid[0] <= 31.0 && paid[1] <= 20.0 * 86_400.0, "{paid:?}");
}
