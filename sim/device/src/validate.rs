//! A model against a measured drive: replay the trace, compare the distributions of service times.
//!
//! The measure is Ruemmler and Wilkes' demerit figure: the root mean square of the horizontal distance between the two
//! distribution curves, also as a share of the measured mean.

use crate::device::{DeviceModel, Kind, Request, SECTOR_BYTES};
use minerva_model::Nanos;

/// One line of a trace: what was asked, how long the drive took, how long the host waited before it asked again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Whether it is a write.
    pub write: bool,
    /// First sector.
    pub first_sector: u64,
    /// Number of sectors.
    pub sectors: u32,
    /// Measured on the drive.
    pub service_ms: f64,
    /// From its completion to the next request.
    pub think_ms: f64,
}

/// A trace line that cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("trace, line {line}: {message}")]
pub struct TraceError {
    /// Line of the text, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// Reads a trace of lines `R|W class sector sectors service_us think_us`. The class (what the drive's cache did) is not
/// used: the model must find it out by itself. Empty lines are skipped.
pub fn parse_trace(text: &str) -> Result<Vec<Measured>, TraceError> {
    let mut all = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let measured = parse_line(line).ok_or_else(|| TraceError {
            line: index + 1,
            message: format!("`{}` is not `R|W class sector sectors service_us think_us`", line.trim()),
        })?;
        all.push(measured);
    }
    Ok(all)
}

fn parse_line(line: &str) -> Option<Measured> {
    let mut fields = line.split_whitespace();
    let write = match fields.next()? {
        "R" => false,
        "W" => true,
        _ => return None,
    };
    let _class = fields.next()?;
    let first_sector = fields.next()?.parse().ok()?;
    let sectors: u32 = fields.next()?.parse().ok()?;
    let mut time = || fields.next()?.parse::<f64>().ok().filter(|us| us.is_finite() && *us >= 0.0).map(|us| us / 1e3);
    let (service_ms, think_ms) = (time()?, time()?);
    (sectors > 0 && fields.next().is_none()).then_some(Measured { write, first_sector, sectors, service_ms, think_ms })
}

/// Replays a trace closed-loop, each request a think time behind the completion before it. Answers the model's service
/// times in milliseconds, in the trace's order, without those of requests that never complete.
pub fn replay(device: &mut dyn DeviceModel, trace: &[Measured]) -> Vec<f64> {
    let mut now = Nanos::ZERO;
    let mut times = Vec::with_capacity(trace.len());
    for (tag, measured) in (0u64..).zip(trace) {
        let request = Request {
            tag,
            kind: if measured.write { Kind::Write } else { Kind::Read },
            offset_bytes: measured.first_sector * SECTOR_BYTES,
            length_bytes: measured.sectors.saturating_mul(SECTOR_BYTES as u32),
        };
        device.submit(now, request);
        let Some(done) = device.next_completion() else { continue };
        while device.complete(done).is_some() {}
        times.push(done.since(now).as_millis_f64());
        now = done + Nanos((measured.think_ms * 1e6) as u64);
    }
    times
}

/// Root mean square of the horizontal distance between the distributions of two samples, in their unit. Not a number for an
/// empty sample, which agrees with nothing.
pub fn cdf_rms_ms(measured_ms: &[f64], modelled_ms: &[f64]) -> f64 {
    let sorted = |sample: &[f64]| {
        let mut sample = sample.to_vec();
        sample.sort_by(f64::total_cmp);
        sample
    };
    let (measured, modelled) = (sorted(measured_ms), sorted(modelled_ms));
    let points = measured.len().max(modelled.len());
    if measured.is_empty() || modelled.is_empty() {
        return f64::NAN;
    }
    // The quantile in the middle of each of `points` equal shares; with equal sizes that is sample by sample.
    let at = |sample: &[f64], point: usize| sample[(2 * point + 1) * sample.len() / (2 * points)];
    let squares: f64 = (0..points).map(|point| (at(&measured, point) - at(&modelled, point)).powi(2)).sum();
    (squares / points as f64).sqrt()
}

/// DiskSim's own RMS in microseconds against the same traces, as its validation suite publishes them.
const DISKSIM_RMS_US: [(&str, u32); 10] = [
    ("atlas_III", 378),
    ("barracuda", 349),
    ("cheetah4LP", 318),
    ("cheetah9LP", 107),
    ("ibm18es", 135),
    ("atlas10k", 268),
    ("hp_c2247a", 90),
    ("hp_c3323a", 306),
    ("hp_c2490a", 254),
    ("dec_rz26", 340),
];
/// The goal: an RMS of at most so many times DiskSim's, and a demerit of at most so much.
const RATIO_MAX: f64 = 1.5;
const DEMERIT_MAX: f64 = 0.1;

/// DiskSim's own RMS against the trace of this drive, in milliseconds; none where it is not known.
pub fn disksim_rms_ms(drive: &str) -> Option<f64> {
    DISKSIM_RMS_US.iter().find(|(name, _)| *name == drive).map(|(_, rms_us)| f64::from(*rms_us) / 1e3)
}

/// How well a model meets a trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Agreement {
    /// Requests compared.
    pub requests: usize,
    /// Mean of the measured service times.
    pub mean_measured_ms: f64,
    /// Mean of the model's.
    pub mean_modelled_ms: f64,
    /// [`cdf_rms_ms`] of the two. Not a number where there is nothing to compare: no request, or one that never completed.
    pub rms_ms: f64,
}

impl Agreement {
    /// Replays `trace` on `device` and compares.
    pub fn measure(device: &mut dyn DeviceModel, trace: &[Measured]) -> Self {
        let modelled = replay(device, trace);
        let measured: Vec<f64> = trace.iter().map(|line| line.service_ms).collect();
        let mean = |sample: &[f64]| sample.iter().sum::<f64>() / sample.len().max(1) as f64;
        Self {
            requests: trace.len(),
            mean_measured_ms: mean(&measured),
            mean_modelled_ms: mean(&modelled),
            rms_ms: if modelled.len() == trace.len() { cdf_rms_ms(&measured, &modelled) } else { f64::NAN },
        }
    }

    /// The RMS as a share of the measured mean. Not a number, which is below no goal, where the RMS is none, or where all measured times
    /// are 0.
    pub fn demerit(&self) -> f64 {
        if self.mean_measured_ms > 0.0 { self.rms_ms / self.mean_measured_ms } else { f64::NAN }
    }

    /// The RMS as a multiple of DiskSim's for this drive; none where that is not known.
    pub fn ratio(&self, drive: &str) -> Option<f64> {
        disksim_rms_ms(drive).map(|rms_ms| self.rms_ms / rms_ms)
    }

    /// Whether the model of this drive meets the goal: an RMS of at most 1.5 times DiskSim's and a demerit of at most 10 %. One whose RMS
    /// under DiskSim is not known is not judged by half of it, and one that was not compared has no demerit.
    pub fn is_met(&self, drive: &str) -> bool {
        self.ratio(drive).is_some_and(|ratio| ratio <= RATIO_MAX) && self.demerit() <= DEMERIT_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::{Agreement, Measured, cdf_rms_ms, parse_trace};
    use crate::device::{Completion, DeviceModel, Request, Statistics};
    use minerva_model::Nanos;

    /// Takes a millisecond for each request of the first so many, and never completes another.
    struct Lazy {
        left: u32,
        due: Option<Completion>,
    }

    impl DeviceModel for Lazy {
        fn capacity_bytes(&self) -> u64 {
            1 << 30
        }

        fn queue_depth(&self) -> u32 {
            1
        }

        fn submit(&mut self, now: Nanos, request: Request) {
            self.due = (self.left > 0).then_some(Completion { tag: request.tag, at: now + Nanos::from_millis(1) });
            self.left = self.left.saturating_sub(1);
        }

        fn next_completion(&self) -> Option<Nanos> {
            self.due.map(|due| due.at)
        }

        fn complete(&mut self, _: Nanos) -> Option<Completion> {
            self.due.take()
        }

        fn statistics(&self) -> Statistics {
            Statistics::default()
        }
    }

    #[test]
    fn what_was_not_compared_agrees_with_nothing() {
        let demerit = |completed: u32, requests: usize| {
            let line = Measured { write: false, first_sector: 0, sectors: 8, service_ms: 1.0, think_ms: 0.0 };
            Agreement::measure(&mut Lazy { left: completed, due: None }, &vec![line; requests]).demerit()
        };
        assert_eq!(demerit(3, 3), 0.0);
        // No trace, a request that never completes, and none that does.
        assert!([demerit(3, 0), demerit(2, 3), demerit(0, 3)].iter().all(|demerit| demerit.is_nan()));
    }

    #[test]
    fn a_drive_that_cannot_be_judged_meets_no_goal() {
        let is_met = |drive: &str, mean_measured_ms: f64, rms_ms: f64| {
            Agreement { requests: 1, mean_measured_ms, mean_modelled_ms: 1.0, rms_ms }.is_met(drive)
        };
        // 0.402 ms are 1.5 times DiskSim's.
        assert_eq!(
            [is_met("atlas10k", 4.1, 0.4), is_met("atlas10k", 4.1, 0.41), is_met("atlas10k", 3.9, 0.4)],
            [true, false, false]
        );
        assert_eq!(
            [is_met("unknown", 4.1, 0.01), is_met("atlas10k", 4.1, f64::NAN), is_met("atlas10k", 0.0, 0.4)],
            [false; 3]
        );
    }

    #[test]
    fn the_distance_does_not_depend_on_the_order() {
        assert_eq!(cdf_rms_ms(&[3.0, 1.0, 2.0], &[1.0, 2.0, 3.0]), 0.0);
        assert_eq!(cdf_rms_ms(&[1.0, 2.0], &[2.0, 3.0]), 1.0);
        assert_eq!(cdf_rms_ms(&[1.0, 1.0, 1.0, 1.0], &[4.0]), 3.0);
        assert!(cdf_rms_ms(&[], &[4.0]).is_nan() && cdf_rms_ms(&[4.0], &[]).is_nan());
    }

    #[test]
    fn a_torn_line_is_named() {
        assert_eq!(parse_trace("R Hit 5 4 1000.5 20\n\nW Miss 9 1 3 0\n").unwrap().len(), 2);
        for bad in
            ["R Hit 5 4 1000.5", "X Hit 5 4 1 1", "R Hit 5 0 1 1", "R Hit -5 1 1 1", "R Hit 5 1 nan 1", "R H 5 1 1 1 1"]
        {
            assert_eq!(parse_trace(&format!("R Hit 5 4 1 1\n{bad}\n")).unwrap_err().line, 2, "{bad}");
        }
    }
}
