//! Any order of events, from any state.

use crate::{config, device, drain, path, sampled, seen, touches_kernel};
use minerva_engine::{Engine, replay};
use minerva_model::{
    AccessKind, CreditLot, Deadline, DeviceId, EntryNumber, Event, Level, LevelClaims, Lifetime, MicroCredits, Mode,
    Nanos, OperationRequest, Outcome, Recalled, RequestId, ScheduledClaim, ServedContracts, ServedDisk, ServedDisks,
    SetClaim, TenantHistory, TenantId, TenantRequest, UsageAverage, Wish, WriteId,
};
use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest};

fn any_device() -> impl Strategy<Value = DeviceId> {
    (0..3_u32).prop_map(|minor| DeviceId { major: 8, minor })
}

fn any_history() -> impl Strategy<Value = Vec<TenantHistory>> {
    let row = (0..4_u64, any_device(), any::<f64>(), any::<u8>(), any::<u64>());
    let row = row.prop_map(|(number, device, rate, group, age)| TenantHistory {
        key: format!("cgroup:{}#{number}", path(number)),
        device,
        disk_part: if number % 2 == 0 { rate } else { 0.0 },
        usage: UsageAverage { recent_bytes_per_second: rate.abs(), long_term_bytes_per_second: rate / 3.0 },
        group,
        age: Nanos(age),
    });
    proptest::collection::vec(row, 0..3)
}

fn any_claims() -> impl Strategy<Value = LevelClaims> {
    let level = || (0..4_usize).prop_map(|index| Level::ALL[index]);
    let at = || (0..200_u64).prop_map(Nanos::from_secs);
    let set = (level(), proptest::option::of(at())).prop_map(|(level, until)| SetClaim { level, until });
    let scheduled = (level(), proptest::option::of((at(), level())));
    let scheduled = scheduled.prop_map(|(level, next)| ScheduledClaim { level, next });
    let held = proptest::collection::vec(level(), 0..3);
    let all = (proptest::option::of(set), held, proptest::option::of(scheduled));
    all.prop_map(|(set, held, scheduled)| LevelClaims { set, held, scheduled })
}

fn any_wish() -> impl Strategy<Value = Wish> {
    let level = (0..4_usize, any::<Option<u64>>()).prop_map(|(level, until)| Wish::SetLevel {
        level: Level::ALL[level],
        lifetime: until.map_or(Lifetime::UntilReleased, |at| Lifetime::Until(Nanos(at))),
    });
    let deadline = proptest::option::of((any::<bool>(), 0..200_u64).prop_map(|(start, seconds)| match start {
        true => Deadline::StartBefore(Nanos::from_secs(seconds)),
        false => Deadline::DoneBefore(Nanos::from_secs(seconds)),
    }));
    let coordinate = (proptest::option::of(any_device()), 0..4_usize, any::<u64>(), deadline).prop_map(
        |(device, access, bytes, deadline)| {
            let bytes = bytes >> (bytes % 64);
            Wish::Coordinate(OperationRequest { device, access: AccessKind::ALL[access], bytes, deadline, pool: None })
        },
    );
    let named = (0..3_u8, "[0-9]{0,2}").prop_map(|(which, id)| match which {
        0 => Wish::Start(RequestId(id)),
        1 => Wish::Finish(RequestId(id)),
        _ => Wish::Cancel(RequestId(id)),
    });
    prop_oneof![
        level,
        any_claims().prop_map(Wish::ClaimLevels),
        Just(Wish::ReleaseLevel),
        (any::<u32>(), proptest::option::of(any_device()))
            .prop_map(|(slices, device)| Wish::Boost { slices: slices >> (slices % 32), device }),
        coordinate,
        named,
    ]
}

fn any_event() -> impl Strategy<Value = Event> {
    let mode = prop_oneof![Just(Mode::Observe), Just(Mode::Shadow), Just(Mode::Enforce)];
    let outcome = prop_oneof![
        "(default [0-9]{1,4}\n)?(8:0 [0-9]{1,5}\n)?".prop_map(Outcome::Text),
        ".{0,20}".prop_map(Outcome::Text),
        Just(Outcome::Vanished),
        Just(Outcome::Refused { errno: Some(22), detail: "no".to_owned() }),
        Just(Outcome::Busy),
    ];
    prop_oneof![
        1 => mode.prop_map(config),
        2 => (any_device(), any::<bool>()).prop_map(|(id, bfq)| Event::DeviceSeen(device(id, bfq))),
        1 => any_device().prop_map(Event::DeviceGone),
        3 => (0..5_u64, any_history()).prop_map(|(number, history)| seen(number, history)),
        1 => (0..5_u64).prop_map(|number| Event::TenantGone(TenantId(number))),
        8 => proptest::collection::vec(0..2_000_u64, 0..5).prop_map(|megabytes| sampled(&megabytes)),
        8 => (0..40_u64, outcome).prop_map(|(id, outcome)| Event::Answered { id: WriteId(id), outcome }),
        1 => Just(Event::KnobsRestored),
        8 => (0..5_u64, 0..12_u8, any_wish()).prop_map(|(number, key, wish)| {
            Event::Requested(TenantRequest { id: RequestId(key.to_string()), tenant: TenantId(number), wish })
        }),
        3 => (0..12_u64, any::<bool>()).prop_map(|(entry, fresh)| {
            Event::Committed { entry: EntryNumber(entry), fresh, known: None }
        }),
        1 => (0..12_u64).prop_map(|entry| Event::CommitFailed { entry: EntryNumber(entry), detail: "full".to_owned() }),
        1 => (0..5_u64, any::<u64>(), any::<u64>()).prop_map(|(number, amount, left)| {
            let lots = vec![CreditLot { amount: MicroCredits(amount), expires_in: Nanos(left) }];
            let recalled = Recalled { tenant: TenantId(number), lots, purchases: Vec::new(), declaration: None };
            Event::Recalled(Box::new(recalled))
        }),
        3 => (0..5_u64, any_claims()).prop_map(|(number, claims)| {
            Event::LevelClaimsChanged { tenant: TenantId(number), claims }
        }),
        2 => (0..2_u8, any_device(), proptest::collection::vec((0..5_u64, "[ab]"), 0..3)).prop_map(|(server, device, disks)| {
            let disks = disks.into_iter().map(|(tenant, name)| ServedDisk { name, tenant: TenantId(tenant) }).collect();
            Event::ServerSeen(ServedDisks { server: server.to_string(), device, disks })
        }),
        2 => (0..2_u8, any_device(), 0..5_u64, 0..1_500_u32, 0..9_u64).prop_map(
            |(server, device, number, reserved_permille, missed)| {
                let (tenant, guests) = (Some(TenantId(number)), vec![TenantId(number / 2)]);
                let server = server.to_string();
                Event::ContractsSeen(ServedContracts { server, device, tenant, guests, reserved_permille, missed })
            }
        ),
        1 => (0..2_u8).prop_map(|server| Event::ServerGone(server.to_string())),
        1 => Just(Event::Stopping),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Unknown ids, devices twice, answers to nothing, time that goes back: no panic, and twice the same is the same.
    #[test]
    fn any_order_of_events_is_handled_and_replays_byte_for_byte(
        events in proptest::collection::vec((0..100_u64, any_event()), 0..120),
    ) {
        let run = || {
            let events = events.iter().map(|(seconds, event)| (Nanos::from_secs(*seconds), event.clone()));
            serde_json::to_string(&replay(events)).unwrap()
        };
        prop_assert_eq!(run(), run());
    }

    /// Cut anywhere, the rest gives the same effects from a snapshot as without one, and leads to the same state.
    #[test]
    fn an_engine_restored_from_a_snapshot_goes_on_as_the_original(
        events in proptest::collection::vec((0..100_u64, any_event()), 1..120),
        cut in any::<proptest::sample::Index>(),
        polled in any::<bool>(),
    ) {
        let (before, after) = events.split_at(cut.index(events.len()));
        let mut original = Engine::new();
        for (seconds, event) in before {
            original.handle(Nanos::from_secs(*seconds), event.clone());
        }
        if polled {
            drain(&mut original);
        }
        let mut restored = Engine::restored(&original.snapshot()).unwrap();
        for (seconds, event) in after {
            let effects = [&mut original, &mut restored].map(|engine| {
                engine.handle(Nanos::from_secs(*seconds), event.clone());
                serde_json::to_string(&drain(engine)).unwrap()
            });
            prop_assert_eq!(&effects[0], &effects[1]);
            prop_assert_eq!(original.next_wakeup(), restored.next_wakeup());
        }
        prop_assert!(original.snapshot() == restored.snapshot(), "the same events lead to the same state");
    }

    /// Only `enforce` touches the kernel.
    #[test]
    fn shadow_never_touches_the_kernel(events in proptest::collection::vec((0..100_u64, any_event()), 0..80)) {
        let events = events.into_iter().map(|(seconds, event)| match event {
            Event::Configured(_) => (Nanos::from_secs(seconds), config(Mode::Shadow)),
            event => (Nanos::from_secs(seconds), event),
        });
        prop_assert!(replay(events).iter().all(|(_, effect)| !touches_kernel(effect)));
    }
}
