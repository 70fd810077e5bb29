//! Tenants that try to gain by taking part what others pay for or give up (docs/adr/0006): how far they get.

#![expect(clippy::expect_used, reason = "what a test cannot do without ends it, in its helpers too")]

#[path = "abuse/earning.rs"]
mod earning;
mod world;

use minerva_model::{
    AccessKind, CgroupRef, CreditLot, Deadline, Effect, EngineConfig, EntryNumber, Grant, Granted, Level, Lifetime,
    MicroCredits, Nanos, Operation, Origin, PolicyName, Recalled, RefusalKind, RequestId, Tenant, TenantId, TenantKind,
    Terms, Wish,
};
use std::collections::BTreeMap;
use world::{DISK, World};

const DISK_BYTES_PER_SECOND: f64 = 50e6;
/// More than anyone moves in a test.
const ENDLESS: f64 = 1e13;

fn world(sizes: &[f64]) -> World {
    World::new(&EngineConfig::default(), DISK_BYTES_PER_SECOND, sizes, 1, 0.0)
}

fn operation(bytes: u64, begin_within: Nanos, now: Nanos) -> Wish {
    let deadline = Some(Deadline::StartBefore(now + begin_within));
    Wish::Coordinate(Operation { device: DISK, access: AccessKind::SequentialRead, bytes, deadline }.into())
}

/// By how much a tenant is raised because of an operation that has precedence.
fn raised(world: &World, tenant: u64) -> Option<f64> {
    let decision = world.decider.decision(TenantId(tenant), DISK)?;
    decision.factors.iter().find(|factor| factor.policy == PolicyName::COORDINATION).map(|factor| factor.value)
}

fn goes_ahead(world: &World, tenant: u64) -> bool {
    raised(world, tenant).is_some_and(|factor| factor > 1.0)
}

/// Whether those who say nothing are spared.
fn world_that_spares(spare_silent: bool, sizes: &[f64]) -> World {
    let mut config = EngineConfig::default();
    config.coordination.spare_silent = spare_silent;
    World::new(&config, DISK_BYTES_PER_SECOND, sizes, 1, 0.0)
}

fn moved(world: &World, tenant: usize) -> f64 {
    ENDLESS - world.jobs[tenant].left
}

/// Four terabytes that begin at once, beside two that say nothing.
#[test]
fn a_huge_operation_is_ahead_for_a_minute_and_then_as_everyone() {
    let mut world = world_that_spares(false, &[ENDLESS; 3]);
    world.ask(0, operation(4 << 40, Nanos(1), Nanos::ZERO));
    let none = BTreeMap::new();
    let mut slices_ahead = 0;
    for _ in 0..70 {
        world.slice(&none);
        slices_ahead += u32::from(goes_ahead(&world, 0));
    }
    // A minute, and what is given back meanwhile.
    assert!((55..=67).contains(&slices_ahead), "{slices_ahead} slices");
    let before = [0, 1, 2].map(|tenant| moved(&world, tenant));
    for _ in 0..600 {
        world.slice(&none);
        slices_ahead += u32::from(goes_ahead(&world, 0));
    }
    assert!(slices_ahead <= 67, "precedence that was lost does not come back");
    let after = [0, 1, 2].map(|tenant| moved(&world, tenant) - before[tenant]);
    assert!(after[0] <= 1.05 * after[1] && after[0] <= 1.05 * after[2], "{after:?}");
}

/// Beside two that say nothing, and are never ahead of what they would have.
#[test]
fn an_operation_that_is_held_back_keeps_its_time_for_when_it_is_not() {
    let mut world = world_that_spares(true, &[ENDLESS; 3]);
    world.ask(0, operation(4 << 40, Nanos(1), Nanos::ZERO));
    let none = BTreeMap::new();
    let ahead: u32 = (0..120)
        .map(|_| {
            world.slice(&none);
            u32::from(goes_ahead(&world, 0))
        })
        .sum();
    assert!(ahead <= 5 && raised(&world, 0) == Some(1.0), "{ahead} slices, {:?}", raised(&world, 0));
    // Two minutes later those who say nothing step back.
    (1..3).for_each(|tenant| {
        world.ask(tenant, Wish::SetLevel { level: Level::Low, lifetime: Lifetime::UntilReleased });
    });
    (0..3).for_each(|_| world.slice(&none));
    assert!(raised(&world, 0).is_some(), "it has its precedence");
}

/// The only place is not taken for ever, and who waits for it is not told to go on beside the thief before it must.
#[test]
fn an_honest_operation_waits_for_a_huge_one_no_longer_than_a_minute() {
    let mut world = world(&[ENDLESS, 400e6]);
    world.ask(0, operation(4 << 40, Nanos(1), Nanos::ZERO));
    let none = BTreeMap::new();
    (0..5).for_each(|_| world.slice(&none));
    let asked_at = world.now;
    let id = world.coordinate(1, Some(Deadline::StartBefore(asked_at + Nanos::from_secs(3_600))));
    let operations = BTreeMap::from([(1, id)]);
    for _ in 0..120 {
        world.slice(&operations);
    }
    let released = world.jobs[1].released_at.expect("it begins");
    assert!(released.since(asked_at) <= Nanos::from_secs(67), "after {}", released.since(asked_at));
    // It is ahead of the other from then on: 8 s of the whole disk, and little more.
    let done = world.jobs[1].done_at.expect("it ends");
    assert!(done - released.as_secs_f64() <= 12.0, "in {} s", done - released.as_secs_f64());
}

/// One that announces the next operation when the last is done, for an hour: large ones, and ones that end within a slice.
#[test]
fn operations_back_to_back_are_ahead_for_a_tenth_of_the_time() {
    for (bytes, spare_silent) in [(100_000_000, true), (100_000_000, false), (1_000_000, true), (1_000_000, false)] {
        let mut world = world_that_spares(spare_silent, &[ENDLESS; 3]);
        let none = BTreeMap::new();
        let (mut under_way, mut turns, mut asked_for) = (None::<RequestId>, 0, 0.0);
        for _ in 0..3_600 {
            if moved(&world, 0) >= asked_for {
                if let Some(done) = under_way.take() {
                    world.ask(0, Wish::Finish(done));
                }
                asked_for = moved(&world, 0) + bytes as f64;
                under_way = Some(world.ask(0, operation(bytes, Nanos(1), world.now)));
            }
            turns += u32::from(goes_ahead(&world, 0));
            world.slice(&none);
        }
        assert!(turns <= 60 + 360 + 10, "{turns} slices of 3,600");
        let all = [0, 1, 2].map(|tenant| moved(&world, tenant));
        // The tenth, and what a third of the rest is.
        assert!(all[1] >= 0.28 * all.iter().sum::<f64>(), "{all:?}");
    }
}

#[test]
fn sizes_that_cannot_be_meant_are_refused_with_a_sentence() {
    let mut world = world(&[ENDLESS; 2]);
    let refusals = |world: &World| -> Vec<(RefusalKind, String)> {
        let refused = world.effects.iter().filter_map(|effect| match effect {
            Effect::Refused(refused) => Some((refused.kind, refused.message.clone())),
            _ => None,
        });
        refused.collect()
    };
    world.ask(0, operation(1 << 60, Nanos(1), Nanos::ZERO));
    let huge = refusals(&world);
    assert!(matches!(&huge[..], [(RefusalKind::OutOfRange, text)] if text.contains("longer than a day")), "{huge:?}");
    // Before the disk was measured nobody can say what does not fit.
    let within = |bytes, seconds, now| {
        let deadline = Some(Deadline::DoneBefore(now + Nanos::from_secs(seconds)));
        Wish::Coordinate(Operation { device: DISK, access: AccessKind::SequentialRead, bytes, deadline }.into())
    };
    let id = world.ask(0, within(5_000_000_000, 5, world.now));
    assert_eq!(refusals(&world).len(), 1);
    let none = BTreeMap::new();
    (0..5).for_each(|_| world.slice(&none));
    world.ask(0, Wish::Finish(id));
    world.ask(0, within(5_000_000_000, 5, world.now));
    let late = refusals(&world);
    assert!(
        matches!(&late[1..], [(RefusalKind::OutOfRange, text)] if text.contains("cannot be done within")),
        "{late:?}"
    );
    world.ask(0, within(400_000_000, 5, world.now));
    assert_eq!(refusals(&world).len(), 2, "what is only tight is not refused");
}

/// Tenant 0 buys a slice: the request, and its entry for the ledger.
fn buy(world: &mut World) -> (RequestId, EntryNumber) {
    let bought = world.ask(0, Wish::Boost { slices: 1, device: None });
    let entry = world.effects.iter().rev().find_map(|effect| match effect {
        Effect::Ledger(entry) if entry.request.as_ref() == Some(&bought) => Some(entry.number),
        _ => None,
    });
    (bought, entry.expect("it is to be committed"))
}

fn is_granted(effects: &[Effect], request: &RequestId) -> bool {
    effects
        .iter()
        .any(|effect| matches!(effect, Effect::Granted(Granted { id, grant: Grant::Now, .. }) if id == request))
}

/// A new file of the operator's puts the tenant into a group, which has an account of its own.
fn put_into_a_group(world: &mut World, number: u64) {
    seen_again(world, number, Some("g"), None);
}

/// As the operator's file says now, or of the making of whom a group was delegated to.
fn seen_again(world: &mut World, number: u64, group: Option<&str>, delegated_from: Option<CgroupRef>) {
    world.decider.tenant_seen(world.now, &tenant(number, group, delegated_from), &[]);
}

fn tenant(number: u64, group: Option<&str>, delegated_from: Option<CgroupRef>) -> Tenant {
    Tenant {
        id: TenantId(number),
        name: format!("vm-{number}"),
        kind: TenantKind::VirtualMachine,
        cgroup: CgroupRef { path: format!("t/{number}"), inode: number + 1 },
        group: group.map(str::to_owned),
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin { delegated_from, ..Origin::default() },
    }
}

#[test]
fn what_was_paid_is_given_also_to_a_tenant_whose_account_changed_meanwhile() {
    for is_committed in [true, false] {
        let mut world = world(&[ENDLESS; 3]);
        world.ask(0, Wish::SetLevel { level: Level::Lowest, lifetime: Lifetime::UntilReleased });
        (0..61).for_each(|_| world.slice(&BTreeMap::new()));
        let (bought, entry) = buy(&mut world);
        put_into_a_group(&mut world, 0);
        let effects = match is_committed {
            true => world.decider.committed(world.now, entry, true, None).0,
            false => world.decider.commit_failed(entry, "the disk is full"),
        };
        assert_eq!(is_granted(&effects, &bought), is_committed, "{effects:?}");
        let part = world.decider.part(TenantId(0)).expect("it is there");
        assert_eq!(part.boosts.len(), usize::from(is_committed));
        let (again, _) = world.decider.committed(world.now, entry, true, None);
        assert!(again.is_empty(), "once: {again:?}");
    }
}

/// The driver's clock leaps, forward and back, while a tenant earns and a purchase is under way.
#[test]
fn a_leap_of_the_clock_earns_nothing_keeps_nothing_and_loses_nothing() {
    let mut world = world(&[ENDLESS; 3]);
    world.ask(0, Wish::SetLevel { level: Level::Lowest, lifetime: Lifetime::UntilReleased });
    let none = BTreeMap::new();
    (0..61).for_each(|_| world.slice(&none));
    let has = |world: &World| {
        world.decider.part(TenantId(0)).map_or(MicroCredits::ZERO, |part| part.held.plus(part.accruing))
    };
    // Three on the disk, and nine points.
    let worth = MicroCredits(3_900_000);
    let before = has(&world);
    assert!(before > worth.times(50), "{before}");
    world.now += Nanos::from_secs(3_600);
    world.slice(&none);
    assert!(has(&world).less(before) <= worth, "a slice is a slice, however long: {before}, {}", has(&world));

    let (bought, entry) = buy(&mut world);
    let paid = has(&world);
    world.now = world.now - Nanos::from_secs(7_200);
    world.slice(&none);
    let (effects, _) = world.decider.committed(world.now, entry, true, None);
    assert!(is_granted(&effects, &bought), "{effects:?}");
    assert!(has(&world).less(paid) <= worth && has(&world) >= paid, "{paid}, {}", has(&world));

    // Two days later everything is too old, whoever asks first.
    world.now += Nanos::from_secs(2 * 86_400);
    world.effects.clear();
    world.ask(0, Wish::Boost { slices: 1, device: None });
    let refused =
        |effect: &Effect| matches!(effect, Effect::Refused(refused) if refused.kind == RefusalKind::NotEnoughCredits);
    assert!(world.effects.iter().any(refused), "{:?}", world.effects);
    assert_eq!(world.decider.part(TenantId(0)).map(|part| part.held), Some(MicroCredits::ZERO));
}

/// The tenant asks for one more operation; why it may not.
fn ask_for_another(world: &mut World, tenant: usize) -> (RequestId, Option<(RefusalKind, String)>) {
    world.effects.clear();
    let id = world.ask(tenant, operation(1_000_000, Nanos::from_secs(3_600), world.now));
    let refused = world.effects.iter().find_map(|effect| match effect {
        Effect::Refused(refused) => Some((refused.kind, refused.message.clone())),
        _ => None,
    });
    (id, refused)
}

/// A hundred machines that the operator put into one group.
#[test]
fn an_operators_group_has_as_many_operations_as_its_tenants_may_have() {
    let mut world = world(&[ENDLESS; 100]);
    (0..100).for_each(|number| put_into_a_group(&mut world, number));
    (0..2).for_each(|_| world.slice(&BTreeMap::new()));
    for tenant in 0..100 {
        assert_eq!(ask_for_another(&mut world, tenant).1, None, "{tenant}");
    }
    (1..16).for_each(|_| drop(ask_for_another(&mut world, 99)));
    let refused = ask_for_another(&mut world, 99).1.expect("too many of one tenant");
    assert!(refused.0 == RefusalKind::TooMany && refused.1.contains("16 operations of this tenant"), "{refused:?}");
}

/// A hundred tenants of one maker, half of which the operator named a group, and one of another.
#[test]
fn whoever_may_make_groups_has_so_many_operations_however_many_tenants_it_makes() {
    let mut world = world(&[ENDLESS; 101]);
    let user = CgroupRef { path: "t".to_owned(), inode: 7 };
    (0..100).for_each(|number| {
        seen_again(&mut world, number, (number % 2 == 0).then_some("g"), Some(user.clone()));
    });
    (0..2).for_each(|_| world.slice(&BTreeMap::new()));
    let ask = ask_for_another;
    let (mut taken, mut refused) = (Vec::new(), BTreeMap::<_, u32>::new());
    for tenant in 0..100 {
        for _ in 0..16 {
            match ask(&mut world, tenant) {
                (id, None) => taken.push((tenant, id)),
                (_, Some(why)) => *refused.entry(why).or_default() += 1,
            }
        }
    }
    assert_eq!(taken.len(), 64);
    let why = refused.first_key_value().map(|((kind, text), count)| (*kind, text.contains("64 operations"), *count));
    assert_eq!((refused.len(), why), (1, Some((RefusalKind::TooMany, true, 1_600 - 64))), "{refused:?}");
    assert_eq!(ask(&mut world, 100).1, None, "another is served");
    let (tenant, first) = taken.swap_remove(0);
    world.ask(tenant, Wish::Cancel(first));
    assert_eq!(ask(&mut world, 99).1, None, "and this one again when one of its own is over");
}

/// What the ledger held when tenant `number` was seen, as the store told it.
fn recalled(world: &mut World, number: u64, credits: MicroCredits) {
    let lots = vec![CreditLot { amount: credits, expires_in: Nanos::from_secs(3_600) }];
    let recalled = Recalled { tenant: TenantId(number), lots, purchases: Vec::new(), declaration: None };
    world.decider.recalled(world.now, &recalled);
}

/// A user makes one group after the other below the one that was delegated to it. The store is slow: it has not committed what the first
/// group spent when the second is seen.
#[test]
fn what_a_group_spends_is_not_there_for_the_next_one_and_what_it_earned_is() {
    let mut world = world(&[ENDLESS; 4]);
    let user = CgroupRef { path: "t".to_owned(), inode: 7 };
    seen_again(&mut world, 0, None, Some(user.clone()));
    let price = MicroCredits::credits(25);
    recalled(&mut world, 0, price);
    world.ask(0, Wish::SetLevel { level: Level::Lowest, lifetime: Lifetime::UntilReleased });
    (0..30).for_each(|_| world.slice(&BTreeMap::new()));
    let accrued = world.decider.part(TenantId(0)).expect("it is there").accruing;
    assert!(accrued > MicroCredits::credits(90), "{accrued}");
    let (_, entry) = buy(&mut world);
    world.decider.tenant_gone(TenantId(0));

    seen_again(&mut world, 1, None, Some(user.clone()));
    recalled(&mut world, 1, price);
    let part = world.decider.part(TenantId(1)).expect("it is there");
    assert_eq!((part.held, part.accruing), (MicroCredits::ZERO, accrued), "as the first left it");
    world.effects.clear();
    world.ask(1, Wish::Boost { slices: 1, device: None });
    let refused =
        |effect: &Effect| matches!(effect, Effect::Refused(refused) if refused.kind == RefusalKind::NotEnoughCredits);
    assert!(world.effects.iter().any(refused), "{:?}", world.effects);

    // This one is gone too, and in the next slice what accrued is entered.
    world.decider.tenant_gone(TenantId(1));
    world.decider.committed(world.now, entry, true, None);
    world.effects.clear();
    world.slice(&BTreeMap::new());
    let entered = world.effects.iter().filter_map(|effect| match effect {
        Effect::Ledger(entry) => Some((entry.account.as_str(), entry.amount)),
        _ => None,
    });
    assert_eq!(entered.collect::<Vec<_>>(), [(user.history_key(None).as_str(), accrued)]);
    world.slice(&BTreeMap::new());
    assert_eq!(world.decider.credits_held(), MicroCredits::ZERO, "the ledger alone knows it");
    seen_again(&mut world, 2, None, Some(user));
    recalled(&mut world, 2, accrued);
    assert_eq!(world.decider.part(TenantId(2)).map(|part| part.held), Some(accrued));
}
