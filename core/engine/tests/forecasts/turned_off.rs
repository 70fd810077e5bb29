//! Tenants whose forecasts are turned off while they work.

use super::{MIB, configured, kept, run, sample, seen};
use minerva_model::{Event, FittedModel, ForecastMode, ModelKind, Nanos, TenantId};

/// What is kept of families after one session of 40 MiB, and in the midst of another tenant's of the same family; `between` happens then.
fn families_kept(between: Vec<Event>) -> Option<FittedModel> {
    let mut events = vec![(Nanos::SECOND, configured(ForecastMode::Shadow, Nanos::SECOND))];
    events.extend([1, 2].map(|number| (Nanos::SECOND, seen(number, None))));
    for second in 0..8_u64 {
        let bytes = [second.min(4) * 10 * MIB, second.saturating_sub(4) * MIB];
        events.push((Nanos::from_secs(second + 2), Event::Sampled(Box::new(sample(&bytes)))));
    }
    events.push((Nanos::from_secs(10), Event::TenantGone(TenantId(1))));
    events.extend(between.into_iter().chain([Event::Stopping]).map(|event| (Nanos::from_secs(10), event)));
    let (_, effects) = run(events);
    kept(&effects).into_iter().rfind(|model| model.kind == ModelKind::Families)
}

#[test]
fn forecasts_that_are_turned_off_teach_nothing_of_what_is_under_way() {
    let undisturbed = families_kept(Vec::new());
    assert!(undisturbed.is_some(), "one session has ended");
    let configured = |mode| configured(mode, Nanos::SECOND);
    assert_eq!(families_kept(vec![configured(ForecastMode::Off), configured(ForecastMode::Shadow)]), undisturbed);
    assert_eq!(families_kept(vec![seen(2, Some(ForecastMode::Off)), seen(2, None)]), undisturbed, "by a rule");
    assert_ne!(families_kept(vec![Event::TenantGone(TenantId(2))]), undisturbed, "one that ends does");
}
