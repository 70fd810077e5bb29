//! What a policy costs: this file, and its line in the list in `lib.rs` (docs/extending.md). It is there in unit tests only.

use crate::compose::{Pair, SharePolicy};
use minerva_model::{Horizon, PolicyName, Reason};
use serde::{Deserialize, Serialize};

/// Who is expected to move little in the next slice goes ahead, as far as the forecast has skill.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Rule;

impl SharePolicy for Rule {
    fn name(&self) -> PolicyName {
        PolicyName::new("sample")
    }

    fn factor(&self, pair: &Pair<'_>, _: f64) -> Option<f64> {
        let forecast = pair.outlook.get(pair.tenant, pair.device, Horizon::NextSlice)?;
        (forecast.skill > 0.0 && forecast.bytes() < 1e6).then_some(1.0 + forecast.skill)
    }

    fn reason(&self, _: &Pair<'_>, _: f64) -> Reason {
        Reason::Stated { text: "little is expected of it".to_owned() }
    }
}

mod tests {
    use crate::{DecideInput, Decider};
    use minerva_model::{
        CgroupRef, DeviceId, EngineConfig, Forecast, Horizon, Interval, IoCounters, IoSignals, Nanos, Outlook, Signals,
        Tenant, TenantId, TenantKind, Terms,
    };

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    fn forecast(tenant: u64, bytes: f64, skill: f64) -> Forecast {
        Forecast {
            tenant: TenantId(tenant),
            device: DISK,
            horizon: Horizon::NextSlice,
            read_bytes: Interval { value: bytes, lower: 0.0, upper: 2.0 * bytes, coverage_permille: 800 },
            write_bytes: Interval::default(),
            busy_permille: 1_000,
            skill,
            is_naive: false,
            made_at: Nanos::SECOND,
        }
    }

    /// What is told after a slice in which tenants 1 to 3 read alike.
    fn told(outlook: Outlook) -> Vec<String> {
        let mut decider = Decider::default();
        decider.configure(Nanos::ZERO, &EngineConfig::default());
        let mut signals = Signals::default();
        for number in 1..=3 {
            let tenant = Tenant {
                id: TenantId(number),
                name: format!("tenant-{number}"),
                kind: TenantKind::Cgroup,
                cgroup: CgroupRef { path: format!("t/{number}"), inode: number },
                group: None,
                origin: minerva_model::Origin::default(),
                weight_percent: 100,
                excluded: false,
                job: None,
                terms: Terms::default(),
            };
            decider.tenant_seen(Nanos::ZERO, &tenant, &[]);
            signals.io.push(IoSignals {
                tenant: tenant.id,
                device: DISK,
                elapsed: Nanos::SECOND,
                transferred: IoCounters { read_bytes: 9_000_000, read_ops: 9, ..IoCounters::default() },
                latency: None,
                active: true,
                served: None,
                disk_time: Nanos::from_millis(90),
            });
        }
        let input = DecideInput { signals: &signals, outlook };
        let decided = decider.slice(Nanos::SECOND, input);
        decided.decisions.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn it_has_a_factor_with_its_reason_where_it_knows_something_and_none_anywhere_else() {
        let without = told(Outlook::default());
        let unskilled = Outlook::new(vec![forecast(1, 10.0, 0.0), forecast(2, 10.0, -3.0), forecast(3, 1e9, 0.9)]);
        assert_eq!(told(unskilled), without, "forecasts without skill, and one of much, change nothing");
        let with = told(Outlook::new(vec![forecast(2, 10.0, 0.5)]));
        assert_eq!((&with[0], &with[2]), (&without[0], &without[2]));
        assert!(with[1].contains("* sample x1.500 (little is expected of it)"), "{}", with[1]);
        assert_ne!(with[1], without[1]);
    }
}
