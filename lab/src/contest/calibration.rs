//! What an operator does once with a disk for iocost: measures what it delivers while nobody else uses it.

use super::{Cast, PAGE_BYTES, Speed};
use crate::error::Result;
use crate::scene::{Arm, Equal, IoCostModel, Scene, Stage, TenantPlan, run_scene};
use crate::workload::Access;
use minerva_model::Nanos;

/// How long each kind of work is measured.
const SPAN: Nanos = Nanos::from_secs(6);
/// Requests at once, enough to fill the disk.
const DEPTH: u32 = 16;

/// Measures the stage's disk: reads of 256 KiB in sequence and of half a database's page at random, each with requests enough to fill it.
pub fn calibrate(stage: &Stage<'_>) -> Result<IoCostModel> {
    let cast = Cast { speed: Speed::of(stage.profile), scale: 1.0 };
    let random = cast.plan("random reads".to_owned(), Access::RandomRead, PAGE_BYTES / 2, 0.0, DEPTH);
    let rate = |name: &str, plan: TenantPlan| {
        let tenants = vec![TenantPlan { name: "tenant-1".to_owned(), lasts: Some(SPAN), region: 0.1, ..plan }];
        let title = format!("calibration: {}", tenants[0].description);
        let scene = Scene { name: name.to_owned(), title, scale: 1.0, tenants };
        let arm =
            Arm { name: "none".to_owned(), elevator: "none".to_owned(), low_latency: false, steering: Box::new(Equal) };
        let run = run_scene(&scene, &arm, stage, &mut |_| ())?;
        // What a program does at its start is not the disk's.
        let bins = &run.series.mb_per_s[0];
        let later = &bins[bins.len() / 2..bins.len().saturating_sub(1).max(bins.len() / 2)];
        Ok(later.iter().sum::<f64>() / later.len().max(1) as f64 * 1e6)
    };
    let bytes_per_second = rate("scan", TenantPlan { depth: DEPTH, ..cast.scanner(4000.0) })? as u64;
    let random_bytes_per_second = rate("random", random)?;
    let random_operations_per_second = (random_bytes_per_second / f64::from(PAGE_BYTES / 2)) as u64;
    Ok(IoCostModel { bytes_per_second, random_operations_per_second })
}
