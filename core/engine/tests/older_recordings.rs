//! What an earlier version recorded.

use minerva_model::{
    BackgroundSettings, CgroupRef, EngineConfig, ForecastSettings, Origin, Tenant, TenantId, TenantKind, Terms,
};

/// What a daemon of the first version recorded is understood: settings without the tables that came later.
#[test]
fn settings_of_an_older_recording_are_read() {
    let mut old = serde_json::to_value(EngineConfig::default()).unwrap();
    for table in ["credits", "levels", "coordination", "forecast", "background"] {
        assert!(old.as_object_mut().unwrap().remove(table).is_some());
    }
    let (forecast, background) = (ForecastSettings::absent(), BackgroundSettings::absent());
    let as_before = EngineConfig { forecast, background, ..EngineConfig::default() };
    assert_eq!(serde_json::from_value::<EngineConfig>(old).unwrap(), as_before);
    let tenant = Tenant {
        id: TenantId(1),
        name: "tenant".to_owned(),
        kind: TenantKind::Cgroup,
        cgroup: CgroupRef { path: "a".to_owned(), inode: 1 },
        group: None,
        weight_percent: 100,
        excluded: false,
        job: None,
        terms: Terms::default(),
        origin: Origin::default(),
    };
    let mut old = serde_json::to_value(&tenant).unwrap();
    for term in ["role", "price_percent", "quota_percent", "credits_expiry", "forecast"] {
        assert!(old.as_object_mut().unwrap().remove(term).is_some());
    }
    assert_eq!(serde_json::from_value::<Tenant>(old).unwrap(), tenant);
}
