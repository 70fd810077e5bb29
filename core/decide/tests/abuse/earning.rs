//! What earns though nothing is given up.

use crate::world::World;
use crate::{DISK_BYTES_PER_SECOND, ENDLESS, tenant};
use minerva_model::{EngineConfig, Level, Lifetime, MicroCredits, Tenant, TenantId, Wish};
use std::collections::BTreeMap;

/// A heavy reader that is at a lower level when each slice ends, and else not.
#[test]
fn who_steps_back_only_while_slices_end_earns_nothing() {
    for (earned_by_whole_slices, steps_back_for_long) in [(true, false), (true, true), (false, false)] {
        let mut config = EngineConfig::default();
        config.credits.earned_by_whole_slices = earned_by_whole_slices;
        let mut world = World::new(&config, DISK_BYTES_PER_SECOND, &[ENDLESS; 3], 1, 0.0);
        for _ in 0..60 {
            world.ask(0, Wish::SetLevel { level: Level::Lowest, lifetime: Lifetime::UntilReleased });
            world.slice(&BTreeMap::new());
            if !steps_back_for_long {
                world.ask(0, Wish::ReleaseLevel);
            }
        }
        let part = world.decider.part(TenantId(0)).expect("it is there");
        let earns = part.accruing.plus(part.held) > MicroCredits::ZERO;
        assert_eq!(earns, steps_back_for_long || !earned_by_whole_slices, "{part:?}");
    }
}

#[test]
fn who_is_excluded_earns_no_more() {
    for earned_by_whole_slices in [true, false] {
        let mut config = EngineConfig::default();
        config.credits.earned_by_whole_slices = earned_by_whole_slices;
        let mut world = World::new(&config, DISK_BYTES_PER_SECOND, &[ENDLESS; 3], 1, 0.0);
        world.ask(0, Wish::SetLevel { level: Level::Lowest, lifetime: Lifetime::UntilReleased });
        (0..20).for_each(|_| world.slice(&BTreeMap::new()));
        let accruing = |world: &World| world.decider.part(TenantId(0)).map(|part| part.accruing);
        let before = accruing(&world);
        assert!(before > Some(MicroCredits::ZERO));
        let excluded = Tenant { excluded: true, ..tenant(0, None, None) };
        world.decider.tenant_seen(world.now, &excluded, &[]);
        (0..20).for_each(|_| world.slice(&BTreeMap::new()));
        assert_eq!(accruing(&world) == before, earned_by_whole_slices);
    }
}
