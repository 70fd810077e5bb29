//! Keys of requests: each is one tenant's, stands for what it first stood for, and is answered again and not carried out again.

mod disk;

use disk::{DISK, bfq_disk};
use minerva_engine::Engine;
use minerva_model::{
    AccessKind, CgroupRef, CreditLot, Effect, EngineConfig, EntryNumber, Event, Grant, Granted, MicroCredits, Mode,
    Nanos, Operation, Purchase, Recalled, RefusalKind, Refused, RequestId, Tenant, TenantId, TenantKind, TenantRequest,
    Wish,
};

const NOW: Nanos = Nanos::SECOND;

/// Two tenants of one group on a disk.
fn engine(purchases: &[Purchase]) -> Engine {
    let mut engine = Engine::new();
    engine.handle(NOW, Event::Configured(Box::new(EngineConfig { mode: Mode::Enforce, ..EngineConfig::default() })));
    engine.handle(NOW, Event::DeviceSeen(bfq_disk()));
    for number in [1, 2] {
        let tenant = Tenant {
            id: TenantId(number),
            name: format!("t{number}"),
            kind: TenantKind::Cgroup,
            cgroup: CgroupRef { path: format!("t{number}"), inode: number },
            group: Some("g".to_owned()),
            weight_percent: 100,
            excluded: false,
            job: None,
            terms: minerva_model::Terms::default(),
            origin: minerva_model::Origin::default(),
        };
        let lots = vec![CreditLot { amount: MicroCredits::credits(500), expires_in: Nanos::from_secs(600) }];
        let purchases = if number == 1 { purchases.to_vec() } else { Vec::new() };
        let recalled = Recalled { tenant: tenant.id, lots, purchases, declaration: None };
        let id = tenant.id;
        engine.handle(NOW, Event::TenantSeen { tenant, history: Vec::new() });
        assert_eq!(engine.knows_credits(id), number == 2, "the second is of the first's account");
        engine.handle(NOW, Event::Recalled(Box::new(recalled)));
    }
    while engine.poll_effect().is_some() {}
    engine
}

/// What comes of a request: the entries for the ledger, grants, and refusals.
#[derive(Debug, Default, PartialEq)]
struct Came {
    entries: Vec<EntryNumber>,
    granted: Vec<(TenantId, Grant)>,
    refused: Vec<RefusalKind>,
}

fn came(engine: &mut Engine, event: Event) -> Came {
    engine.handle(NOW, event);
    let mut came = Came::default();
    while let Some(effect) = engine.poll_effect() {
        match effect {
            Effect::Ledger(entry) => came.entries.push(entry.number),
            Effect::Granted(Granted { tenant, grant, .. }) => came.granted.push((tenant, grant)),
            Effect::Refused(Refused { kind, .. }) => came.refused.push(kind),
            _ => {}
        }
    }
    came
}

fn ask(engine: &mut Engine, tenant: u64, key: &str, wish: Wish) -> Came {
    let request = TenantRequest { id: RequestId(key.to_owned()), tenant: TenantId(tenant), wish };
    came(engine, Event::Requested(request))
}

const fn boost(slices: u32) -> Wish {
    Wish::Boost { slices, device: None }
}

fn purchase(slices: u32, price: u64) -> Purchase {
    let request = RequestId("k".to_owned());
    Purchase { request, slices: Some(slices), device: None, price: MicroCredits::credits(price) }
}

fn granted(tenant: u64) -> Came {
    Came { granted: vec![(TenantId(tenant), Grant::Now)], ..Came::default() }
}

fn reused() -> Came {
    Came { refused: vec![RefusalKind::KeyReused], ..Came::default() }
}

#[test]
fn two_tenants_of_a_group_buy_under_the_same_key_each_for_itself() {
    let mut engine = engine(&[]);
    let first = ask(&mut engine, 1, "k", boost(2)).entries;
    let second = ask(&mut engine, 2, "k", boost(3)).entries;
    assert_eq!((first.len(), second.len()), (1, 1), "nobody waits for the other's purchase");
    // The same tenant hears with its first one, and not of another amount.
    assert_eq!(ask(&mut engine, 1, "k", boost(2)), Came::default());
    assert_eq!(ask(&mut engine, 1, "k", boost(3)), reused());
    for (tenant, entry) in [(1, first[0]), (2, second[0])] {
        let committed = Event::Committed { entry, fresh: true, known: None };
        assert_eq!(came(&mut engine, committed), granted(tenant));
        assert_eq!(engine.part(TenantId(tenant)).map(|part| part.boosts.len()), Some(1));
    }
    assert_eq!(engine.part(TenantId(1)).map(|part| part.held), Some(MicroCredits::credits(500 - 5 * 25)));
}

#[test]
fn a_key_stands_for_what_it_bought_also_after_a_restart_and_many_other_answers() {
    // Bought when a slice cost 10 credits.
    let mut engine = engine(&[purchase(2, 20)]);
    for round in 0..2 {
        assert_eq!(ask(&mut engine, 1, "k", boost(2)), granted(1));
        assert_eq!(ask(&mut engine, 1, "k", boost(3)), reused(), "round {round}");
        let paid = engine.purchase(TenantId(1), &RequestId("k".to_owned())).map(|purchase| purchase.price);
        assert_eq!(paid, Some(MicroCredits::credits(20)));
        for number in 0..40 {
            operation(&mut engine, number);
        }
    }
    assert_eq!(
        engine.part(TenantId(1)).map(|part| (part.held, part.boosts.len())),
        Some((MicroCredits::credits(500), 0))
    );
}

#[test]
fn a_purchase_that_only_the_ledger_remembers_is_told_as_it_was() {
    for (asked, comes) in [(2, granted(1)), (3, reused())] {
        let mut engine = engine(&[]);
        let entry = ask(&mut engine, 1, "k", boost(asked)).entries[0];
        let committed = Event::Committed { entry, fresh: false, known: Some(purchase(2, 20)) };
        assert_eq!(came(&mut engine, committed), comes);
        let part = engine.part(TenantId(1)).expect("known");
        assert_eq!((part.held, part.boosts.len()), (MicroCredits::credits(500), 0), "nothing is spent");
        assert_eq!(ask(&mut engine, 1, "k", boost(3)), reused());
        assert_eq!(ask(&mut engine, 1, "k", boost(2)), granted(1));
    }
}

/// An operation from its announcement to its end, as the daemon tells of it: all but the first under keys of its own.
fn operation(engine: &mut Engine, number: u32) {
    let id = RequestId(format!("operation-{number}"));
    let wish = Operation { device: DISK, access: AccessKind::SequentialRead, bytes: 1 << 20, deadline: None };
    assert_eq!(ask(engine, 1, &id.0, Wish::Coordinate(wish.into())), granted(1));
    for (word, wish) in [("begin", Wish::Start(id.clone())), ("finish", Wish::Finish(id))] {
        ask(engine, 1, &format!("minerva:{word}-{number}"), wish);
    }
}

#[test]
fn an_operation_that_is_over_does_not_begin_again_when_its_announcement_comes_again() {
    let mut engine = engine(&[]);
    for number in 0..20 {
        operation(&mut engine, number);
    }
    let wish = Operation { device: DISK, access: AccessKind::SequentialRead, bytes: 1 << 20, deadline: None };
    assert_eq!(ask(&mut engine, 1, "operation-0", Wish::Coordinate(wish.into())), granted(1));
    assert_eq!(engine.part(TenantId(1)).map(|part| part.operations.len()), Some(0), "no ghost holds the place");
}
