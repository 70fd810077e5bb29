//! Batch jobs in the loop.

use super::{DISK, device, drain, sampled, seen};
use minerva_engine::Engine;
use minerva_model::{EngineConfig, Event, ForecastMode, JobPhase, JobPhaseKind, JobSettings, Mode, Nanos, TenantId};

/// Four runs of bursts of 400 MB with computing in between.
fn recalled(name: &str) -> Event {
    let phase = |kind, read_bytes_per_second| JobPhase {
        kind,
        seconds: 4.0,
        read_bytes_per_second,
        write_bytes_per_second: 0.0,
    };
    let run = [phase(JobPhaseKind::Read, 1e8), phase(JobPhaseKind::Compute, 0.0)].repeat(5);
    Event::JobRunsRecalled { name: name.to_owned(), bytes: vec![2_000_000_000; 4], phases: vec![run; 4] }
}

#[test]
fn runs_that_are_recalled_tell_bursts_only_where_forecasts_are_on() {
    for (mode, is_told) in [(ForecastMode::On, true), (ForecastMode::Shadow, false), (ForecastMode::Off, false)] {
        let mut engine = Engine::new();
        let mut config = EngineConfig { mode: Mode::Shadow, ..EngineConfig::default() };
        config.forecast.mode = mode;
        let job = |name: &str| Some(JobSettings { name: name.to_owned(), bytes: None });
        for event in [
            Event::Configured(Box::new(config)),
            Event::DeviceSeen(device(DISK, true)),
            seen(1, Vec::new()),
            seen(2, Vec::new()),
            recalled("sort"),
            recalled("count"),
            Event::JobDeclared { tenant: TenantId(1), job: job("sort") },
            Event::JobDeclared { tenant: TenantId(2), job: job("count") },
        ] {
            engine.handle(Nanos::SECOND, event);
        }
        for second in 1..5 {
            engine.handle(Nanos::from_secs(second), sampled(&[second * 50, second * 40]));
            drain(&mut engine);
        }
        let decisions = [1, 2].map(|tenant| engine.decision(TenantId(tenant), DISK).expect("a decision").to_string());
        let by_runs = decisions.iter().filter(|text| text.contains("by earlier runs of this job")).count();
        assert_eq!(by_runs, if is_told { 2 } else { 0 }, "{mode:?}: {decisions:?}");
    }
}
