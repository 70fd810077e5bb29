//! Outlooks of experiments in place of the engine's own: what an oracle knows, and what last time says.

use minerva_forecast::online::{NAIVE, Naive, SkillMeter};
use minerva_model::{DeviceId, Forecast, Horizon, Interval, Nanos, Outlook, TenantId};
use minerva_sim_workload::UnderWay;

/// Where the engine's outlook comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OutlookSource {
    /// The engine makes forecasts, if its settings say so.
    #[default]
    Engine,
    /// Each session is taken to transfer what its tenant's last one did, and believed as far as that has proved better than
    /// the best forecast which knows no tenant.
    LastValue,
    /// What is left of each session is known.
    Oracle,
}

/// What is supposed of one world's tenants.
#[derive(Clone, Debug)]
pub(crate) struct Supposed {
    source: OutlookSource,
    tenants: Vec<Followed>,
    /// Totals of all sessions, as log1p.
    host: Naive,
    skill: SkillMeter,
}

/// One tenant's sessions.
#[derive(Clone, Copy, Debug, Default)]
struct Followed {
    last_total: Option<f64>,
    under_way: Option<UnderWay>,
    /// What was forecast of the one under way and by the naive ones, as log1p.
    forecast: Option<(f64, [f64; NAIVE])>,
}

impl Supposed {
    pub(crate) fn new(source: OutlookSource, tenants: usize) -> Self {
        Self {
            source,
            tenants: vec![Followed::default(); tenants],
            host: Naive::default(),
            skill: SkillMeter::default(),
        }
    }

    /// What is expected of the next slice; nothing where the engine's own outlook stands.
    pub(crate) fn outlook(&mut self, now: Nanos, device: DeviceId, sessions: &[Option<UnderWay>]) -> Option<Outlook> {
        if self.source == OutlookSource::Engine {
            return None;
        }
        let mut rows = Vec::new();
        for (id, under_way) in sessions.iter().enumerate() {
            self.follow(id, *under_way);
            let foreseen = under_way.and_then(|under_way| match self.source {
                OutlookSource::Oracle => Some((under_way.left_bytes as f64, 1.0)),
                _ => self.by_last_value(id, under_way),
            });
            rows.extend(foreseen.map(|(left, skill)| forecast(TenantId(id as u64), device, left, skill, now)));
        }
        Some(Outlook::new(rows))
    }

    /// Learns from a session that ended, and forecasts one that began.
    fn follow(&mut self, id: usize, under_way: Option<UnderWay>) {
        let number = |under_way: Option<UnderWay>| under_way.map(|under_way| under_way.number);
        let tenant = &mut self.tenants[id];
        if number(tenant.under_way) != number(under_way) {
            if let Some(ended) = tenant.under_way {
                let total = libm::log1p(ended.total_bytes as f64);
                if let Some((forecast, naive)) = tenant.forecast.take() {
                    self.skill.observe(forecast, &naive, total);
                }
                self.host.observe(total);
                tenant.last_total = Some(ended.total_bytes as f64);
            }
            if under_way.is_some() {
                tenant.forecast = tenant.last_total.map(|last| (libm::log1p(last), self.host.forecasts()));
            }
        }
        tenant.under_way = under_way;
    }

    fn by_last_value(&self, id: usize, under_way: UnderWay) -> Option<(f64, f64)> {
        let last = self.tenants[id].last_total?;
        let attained = (under_way.total_bytes - under_way.left_bytes) as f64;
        // One that has outgrown its forecast is as long again as it was so far, and nothing is sure, as in `core/forecast`.
        Some(if attained > last { (attained, 0.0) } else { (last - attained, self.skill.told()) })
    }
}

fn forecast(tenant: TenantId, device: DeviceId, left: f64, skill: f64, made_at: Nanos) -> Forecast {
    Forecast {
        tenant,
        device,
        horizon: Horizon::Session,
        read_bytes: Interval { value: left, lower: left, upper: left, coverage_permille: 1_000 },
        write_bytes: Interval::default(),
        busy_permille: 1_000,
        skill,
        is_naive: false,
        made_at,
    }
}

#[cfg(test)]
mod tests {
    use super::{OutlookSource, Supposed};
    use minerva_model::{DeviceId, Forecast, Nanos};
    use minerva_sim_workload::UnderWay;

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };

    /// Skill and what is left at the start of the last of 60 sessions, whose sizes `size` says.
    fn last(source: OutlookSource, size: impl Fn(u64) -> u64) -> (f64, f64) {
        let mut supposed = Supposed::new(source, 1);
        let mut last = (0.0, 0.0);
        for number in 0..60 {
            let total_bytes = size(number);
            let under_way = UnderWay { number, total_bytes, left_bytes: total_bytes };
            let outlook = supposed.outlook(Nanos::from_secs(number), DISK, &[Some(under_way)]).unwrap();
            last = outlook.forecasts().first().map_or((0.0, 0.0), |row: &Forecast| (row.skill, row.bytes()));
        }
        last
    }

    #[test]
    fn the_oracle_knows_and_last_time_is_believed_as_far_as_it_was_right() {
        let alternating = |number: u64| if number.is_multiple_of(2) { 1_000_000 } else { 900_000_000 };
        let runs = |number: u64| if (number / 15).is_multiple_of(2) { 1_000_000 } else { 900_000_000 };
        assert_eq!(last(OutlookSource::Oracle, alternating), (1.0, 900e6));
        let (skill, left) = last(OutlookSource::LastValue, alternating);
        assert!(skill <= 0.0 && left == 1e6, "{skill}");
        assert!(last(OutlookSource::LastValue, runs).1 == 900e6);
    }
}
