//! What holds for any debts and any forecast.

use minerva_background::{Debts, Expected, Growth, Machine, Plan, PlanInput, QueueId, Shortage, Spread, Terms};
use proptest::prelude::*;

const CORES: u32 = 16;
const LIMIT_SHARE: f64 = 0.9;

fn any_terms() -> impl Strategy<Value = Terms> {
    let growth = (0.0..2.0, 0.0..2.0, 0.0..0.5, prop::option::of(600.0..7200.0));
    (0..4_u8, 0.01..1.0, 0.0..4.0, prop::option::of(3_600.0..200_000.0), growth).prop_map(
        |(priority, core_seconds_per_item, blocks_per_item, sla_seconds, (written, overwritten, always, release))| {
            Terms {
                priority,
                core_seconds_per_item,
                blocks_per_item,
                sla_seconds,
                growth: Growth {
                    items_per_written_block: written,
                    items_per_overwritten_block: overwritten,
                    items_per_second: always,
                    release_period_seconds: release,
                },
            }
        },
    )
}

fn debts_of(queues: &[(Terms, f64)]) -> (Debts, Vec<(QueueId, Terms)>) {
    let mut debts = Debts::default();
    let terms: Vec<(QueueId, Terms)> =
        queues.iter().enumerate().map(|(number, (terms, _))| (QueueId(number as u32), *terms)).collect();
    for ((id, terms), (_, items)) in terms.iter().zip(queues) {
        assert_eq!(debts.register(*id, *terms), None);
        debts.defer(0.0, *id, *items);
    }
    (debts, terms)
}

fn any_debts() -> impl Strategy<Value = Debts> {
    prop::collection::vec((any_terms(), 0.0..3e4), 1..8).prop_map(|queues| debts_of(&queues).0)
}

fn any_forecast() -> impl Strategy<Value = Vec<Expected>> {
    let slot = (prop::sample::select(vec![60.0, 600.0, 3600.0]), 0.0..1000.0, 0.0..30.0, 0.0..0.2);
    (prop::collection::vec(slot, 1..80), 1e4..1e6).prop_map(|(slots, capacity_blocks)| {
        let expected = |(seconds, foreground_ops_per_second, written_blocks_per_second, unique_share)| Expected {
            seconds,
            foreground_ops_per_second,
            written_blocks_per_second,
            unique_share,
            capacity_blocks,
        };
        slots.into_iter().map(expected).collect()
    })
}

fn input<'a>(debts: &'a Debts, expected: &'a [Expected], spread: Spread) -> PlanInput<'a> {
    PlanInput {
        now_seconds: 0.0,
        machine: Machine { cores: CORES, foreground_ops_per_core_second: 50.0 },
        debts,
        expected,
        used_blocks: 0.0,
        limit_share: LIMIT_SHARE,
        spread,
        against_cores_max: f64::INFINITY,
        wait_seconds: Some(0.01),
    }
}

/// Adds a part of what a slot brings.
fn grow(debts: &mut Debts, terms: &[(QueueId, Terms)], now: f64, slot: &Expected, seconds: f64) {
    for (id, terms) in terms {
        let rate = terms.growth.items_per_second(slot.written_blocks_per_second, slot.unique_share);
        debts.defer(now, *id, rate * seconds);
    }
}

proptest! {
    #[test]
    fn the_plan_never_overfills_the_pool_when_the_forecast_is_right(
        queues in prop::collection::vec((any_terms(), 0.0..3e4), 1..8),
        expected in any_forecast(),
        even in any::<bool>(),
    ) {
        let (mut debts, terms) = debts_of(&queues);
        let spread = if even { Spread::Even } else { Spread::Headroom };
        let plan = Plan::new(&input(&debts, &expected, spread));
        let is_space = |alarm: &&minerva_background::Alarm| matches!(alarm.shortage, Shortage::Space { .. });
        let safe_until = plan.alarms.iter().find(is_space).map_or(f64::INFINITY, |alarm| alarm.at_seconds);
        let (mut now, mut used) = (0.0, 0.0);
        for (slot, planned) in expected.iter().zip(&plan.slots) {
            prop_assert!((0.0..=f64::from(CORES) + 1e-6).contains(&planned.background_cores));
            grow(&mut debts, &terms, now, slot, slot.seconds);
            used += slot.written_blocks_per_second * slot.unique_share * slot.seconds;
            now += slot.seconds;
            debts.serve(now - 1e-6 * slot.seconds, planned.background_cores * slot.seconds);
            if now < safe_until - 1e-6 {
                let (both, limit) = (used + debts.tied_blocks(), LIMIT_SHARE * slot.capacity_blocks);
                prop_assert!(both <= limit * 1.000_01 + 1e-3, "{both} of {limit} at {now}");
            }
        }
    }

    #[test]
    fn what_an_alarm_tells_would_not_hold_with_all_cores_that_may_work_either(
        queues in prop::collection::vec((any_terms(), 0.0..3e4), 1..8),
        expected in any_forecast(),
        against in prop::sample::select(vec![f64::INFINITY, 8.0, 1.0, 0.0]),
    ) {
        let (mut debts, terms) = debts_of(&queues);
        let input = PlanInput { against_cores_max: against, wait_seconds: None, ..input(&debts, &expected, Spread::Headroom) };
        let plan = Plan::new(&input);
        let may_work = |slot: &Expected| {
            let free = f64::from(CORES) - (slot.foreground_ops_per_second / 50.0).ceil();
            free.max(against).min(f64::from(CORES))
        };
        for (slot, planned) in expected.iter().zip(&plan.slots) {
            prop_assert!(planned.background_cores <= may_work(slot) * 1.000_001 + 1e-6, "{planned:?}");
        }
        let Some(alarm) = plan.alarms.first() else { return Ok(()) };
        let (mut now, mut used) = (0.0, 0.0);
        for slot in &expected {
            grow(&mut debts, &terms, now, slot, slot.seconds);
            used += slot.written_blocks_per_second * slot.unique_share * slot.seconds;
            now += slot.seconds;
            debts.serve(now - 1e-6 * slot.seconds, may_work(slot) * slot.seconds);
            if now >= alarm.at_seconds - 1e-6 {
                let holds = match alarm.shortage {
                    Shortage::Space { .. } => used + debts.tied_blocks() <= LIMIT_SHARE * slot.capacity_blocks,
                    Shortage::Deadline { id } => {
                        let due = debts.owed().find(|owed| owed.id == id).and_then(|owed| owed.due_seconds);
                        due.is_none_or(|due| due > now)
                    }
                };
                prop_assert!(!holds, "{alarm:?} at {now}");
                break;
            }
        }
    }

    #[test]
    fn a_higher_priority_never_waits_for_a_lower_one(mut debts in any_debts(), work in 0.0..5e3) {
        // Nothing is urgent at the start: deadlines are an hour away or more.
        let before: Vec<_> = debts.owed().collect();
        let ready_before = debts.ready_core_seconds(1.0);
        // What each queue alone could work on: all its debt, or none if it waits for a release.
        let is_ready: Vec<bool> = before
            .iter()
            .map(|owed| {
                let mut alone = debts.clone();
                before.iter().filter(|other| other.id != owed.id).for_each(|other| {
                    alone.remove(other.id);
                });
                alone.ready_core_seconds(1.0) > 0.0
            })
            .collect();
        let served = debts.serve(1.0, work);
        prop_assert!(served.core_seconds <= work + 1e-6);
        prop_assert!(served.core_seconds + 1e-3 >= work.min(ready_before), "no core idles beside work");
        let after: Vec<_> = debts.owed().collect();
        let waits = after.iter().zip(&is_ready).find(|(owed, is_ready)| **is_ready && owed.items > 1e-6);
        let Some((waits, _)) = waits else { return Ok(()) };
        for (before, after) in before.iter().zip(&after).filter(|(_, after)| after.priority < waits.priority) {
            prop_assert!(before.items == after.items, "{:?} was paid while {:?} waited", after.id, waits.id);
        }
    }

    #[test]
    fn no_queue_starves(mut terms in any_terms(), sla in 3_600.0..50_000.0) {
        // A queue of the highest priority with more work than all cores do, for ever.
        let mut debts = Debts::default();
        let greedy = Terms { priority: 9, core_seconds_per_item: 1.0, blocks_per_item: 9.0, sla_seconds: Some(80_000.0), growth: Growth::default() };
        (terms.priority, terms.sla_seconds, terms.growth) = (0, Some(sla), Growth::default());
        prop_assert_eq!(debts.register(QueueId(0), greedy), None);
        prop_assert_eq!(debts.register(QueueId(1), terms), None);
        debts.defer(0.0, QueueId(1), 100.0);
        let step = 60.0;
        let mut now = 0.0;
        while now < sla {
            debts.defer(now, QueueId(0), 2.0 * f64::from(CORES) * step);
            now += step;
            debts.serve(now, f64::from(CORES) * step);
        }
        let left = debts.owed().find(|owed| owed.id == QueueId(1)).map_or(0.0, |owed| owed.items);
        prop_assert!(left <= 1e-6, "{left} items are left after their deadline of {sla} s");
    }

    #[test]
    fn no_number_makes_a_plan_panic_or_leave_its_range(
        mut debts in any_debts(),
        wild in prop::collection::vec((any::<f64>(), any::<f64>(), any::<f64>(), any::<f64>(), any::<f64>()), 0..20),
        (now, used, limit) in (any::<f64>(), any::<f64>(), any::<f64>()),
        cores in 0..70_u32,
        rate in any::<f64>(),
    ) {
        let expected: Vec<Expected> = wild
            .into_iter()
            .map(|(seconds, foreground, written, unique_share, capacity_blocks)| Expected {
                seconds,
                foreground_ops_per_second: foreground,
                written_blocks_per_second: written,
                unique_share,
                capacity_blocks,
            })
            .collect();
        debts.defer(now, QueueId(0), used);
        debts.settle(QueueId(0), limit);
        let machine = Machine { cores, foreground_ops_per_core_second: rate };
        let input = PlanInput { now_seconds: 0.0, machine, used_blocks: used, limit_share: limit, ..input(&debts, &expected, Spread::Even) };
        let plan = Plan::new(&input);
        prop_assert_eq!(plan.slots.len(), expected.len());
        for slot in &plan.slots {
            prop_assert!((0.0..=f64::from(cores) * 1.000_001 + 1e-6).contains(&slot.background_cores), "{slot:?}");
        }
    }
}
