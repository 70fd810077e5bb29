//! Many tenants at once.

use super::{MIB, configured, sample, seen};
use minerva_engine::Engine;
use minerva_model::{Event, ForecastMode, Horizon, Nanos, TenantId};

/// Everybody at once, then nobody, then the counters begin again.
#[test]
fn ten_thousand_tenants_at_once_cost_a_bounded_number_of_states() {
    const TENANTS: u64 = 12_000;
    let mut engine = Engine::new();
    engine.handle(Nanos::SECOND, configured(ForecastMode::On, Nanos::SECOND));
    (1..=TENANTS).for_each(|number| engine.handle(Nanos::SECOND, seen(number, None)));
    for second in 0..8_u64 {
        let bytes = if second == 5 { 3 * MIB } else { second * MIB };
        let event = Event::Sampled(Box::new(sample(&vec![bytes; TENANTS as usize])));
        engine.handle(Nanos::from_secs(second + 1), event);
        while engine.poll_effect().is_some() {}
    }
    let forecast = engine.outlook().forecasts().iter().filter(|row| row.horizon == Horizon::NextSlice).count();
    assert_eq!((forecast, engine.pairs_without_room()), (10_000, 2_000));
    (1..=TENANTS).for_each(|number| engine.handle(Nanos::from_secs(9), Event::TenantGone(TenantId(number))));
    engine.handle(Nanos::from_secs(10), Event::Sampled(Box::new(sample(&[]))));
    assert!(engine.outlook().is_empty());
}
