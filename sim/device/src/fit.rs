//! Parameters of an SSD from a fio run.
//!
//! Give fio one job per point, `--output-format=json`, `direct=1`, with `group_reporting` or not where `numjobs` is above 1:
//! random and sequential reads and writes of a few block sizes at a few depths. The fit changes channels, page times, command
//! time and cable of a profile until the model's requests a second are nearest to fio's, point by point on a logarithmic
//! scale. It walks to the best neighbour with shrinking steps: slow next to a closed form, but it needs none, it is
//! deterministic, and a point that the model cannot meet shows in [`SsdFit::points`]. Stalls are left as they were: means
//! do not show them.

use crate::device::{DeviceModel, Kind, Request};
use crate::profile::SsdProfile;
use crate::profile::{Media, Profile};
use crate::random::Random;
use minerva_model::Nanos;
use serde_json::Value;

/// One fio job, and what the fitted profile makes of it.
#[derive(Clone, Debug, PartialEq)]
pub struct FitPoint {
    /// fio's name of the job.
    pub job: String,
    /// Reads or writes.
    pub kind: Kind,
    /// Whether the offsets are random.
    pub random: bool,
    /// Bytes a request.
    pub block_bytes: u32,
    /// Requests at the disk at once.
    pub depth: u32,
    /// Requests a second that fio saw.
    pub measured_iops: f64,
    /// Requests a second of the model.
    pub modelled_iops: f64,
}

/// A fitted profile.
#[derive(Clone, Debug, PartialEq)]
pub struct SsdFit {
    /// The profile given, with the fitted parameters.
    pub profile: Profile,
    /// Every point of the run.
    pub points: Vec<FitPoint>,
}

/// Why there is no fit.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// The text is not what `fio --output-format=json` prints.
    #[error("fio's output is not JSON, at line {line}")]
    Json {
        /// Line of the text, from 1.
        line: usize,
        /// The parser's view.
        #[source]
        source: serde_json::Error,
    },
    /// A job cannot be understood.
    #[error("fio job `{job}`: {message}")]
    Job {
        /// Its name.
        job: String,
        /// What is wrong.
        message: String,
    },
    /// The profile to start from is not an SSD's.
    #[error("profile `{profile}` is not of an SSD; start from one such as `sata-ssd`")]
    NotAnSsd {
        /// Its name.
        profile: String,
    },
}

/// Fits `base` to the jobs of `fio_json`. Jobs that mix reads and writes, and those that only trim, are left out.
pub fn ssd_fit(base: &Profile, fio_json: &str) -> Result<SsdFit, FitError> {
    let Media::Ssd(ssd) = &base.media else {
        return Err(FitError::NotAnSsd { profile: base.name.clone() });
    };
    let mut points = parse_points(fio_json)?;
    let mut best = Parameters::of(base, ssd);
    let mut best_loss = loss(&best.apply(base, ssd), &points);
    for factor in [2.0, 1.4, 1.15, 1.05, 1.02] {
        for _ in 0..PASSES {
            let before = best_loss;
            for candidate in best.neighbours(factor) {
                let candidate_loss = loss(&candidate.apply(base, ssd), &points);
                if candidate_loss < best_loss {
                    (best, best_loss) = (candidate, candidate_loss);
                }
            }
            if best_loss >= before {
                break;
            }
        }
    }
    let mut profile = best.apply(base, ssd);
    for point in &mut points {
        point.modelled_iops = modelled_iops(&profile, point);
    }
    if let (Media::Ssd(fitted), Media::Ssd(given)) = (&mut profile.media, &base.media) {
        fitted.collection = given.collection;
    }
    Ok(SsdFit { profile, points })
}

/// Rounds over all neighbours with one step size; a round without a gain ends it.
const PASSES: usize = 12;

/// Channels, command, cable, and first and next page of reads and of writes.
#[derive(Clone, Debug)]
struct Parameters([f64; 7]);

impl Parameters {
    fn of(base: &Profile, ssd: &SsdProfile) -> Self {
        // A parameter of zero would never leave it by factors.
        let from = |us: f64| us.max(0.5);
        Self([
            f64::from(ssd.channels),
            from(ssd.command_us),
            base.interface_mb_per_s,
            from(ssd.read.first_page_us),
            from(ssd.read.next_page_us),
            from(ssd.write.first_page_us),
            from(ssd.write.next_page_us),
        ])
    }

    /// Every parameter a step up or down, and every pair a step in opposite directions: one page time against another
    /// or against the number of channels is how the walk leaves a narrow valley.
    fn neighbours(&self, factor: f64) -> Vec<Self> {
        let stepped = |steps: &[(usize, f64)]| {
            let mut changed = self.clone();
            steps.iter().for_each(|(index, step)| changed.0[*index] *= step);
            changed
        };
        let all = 0..self.0.len();
        let single = all.clone().flat_map(|index| [vec![(index, factor)], vec![(index, 1.0 / factor)]]);
        let pair = |(up, down): (usize, usize)| (up != down).then(|| vec![(up, factor), (down, 1.0 / factor)]);
        let pairs = all.clone().flat_map(|up| all.clone().map(move |down| (up, down))).filter_map(pair);
        single.chain(pairs).map(|steps| stepped(&steps)).collect()
    }

    /// The profile with these parameters, without stalls.
    fn apply(&self, base: &Profile, ssd: &SsdProfile) -> Profile {
        let [channels, command, cable, read_first, read_next, write_first, write_next] = self.0;
        let mut fitted = SsdProfile { collection: None, ..ssd.clone() };
        fitted.channels = channels.round().clamp(1.0, 1024.0) as u32;
        fitted.command_us = command;
        (fitted.read.first_page_us, fitted.read.next_page_us) = (read_first, read_next);
        (fitted.write.first_page_us, fitted.write.next_page_us) = (write_first, write_next);
        Profile {
            interface_mb_per_s: cable.clamp(1.0, 1e5),
            source: format!("{} fitted to a fio run", base.name),
            media: Media::Ssd(fitted),
            ..base.clone()
        }
    }
}

/// Mean square of the logarithmic error.
fn loss(profile: &Profile, points: &[FitPoint]) -> f64 {
    let error = |point: &FitPoint| libm::log(modelled_iops(profile, point) / point.measured_iops);
    points.iter().map(|point| error(point) * error(point)).sum::<f64>() / points.len().max(1) as f64
}

/// Requests a second of the model, with the point's depth kept at the disk.
fn modelled_iops(profile: &Profile, point: &FitPoint) -> f64 {
    let mut device = profile.build(None, 1);
    let blocks = (profile.capacity_bytes / u64::from(point.block_bytes)).max(1);
    let mut random = Random::new(1);
    let count = 64 + 4 * u64::from(point.depth);
    let mut submit = |device: &mut dyn DeviceModel, now: Nanos, tag: u64| {
        let block = if point.random { random.next() } else { tag } % blocks;
        let offset_bytes = block * u64::from(point.block_bytes);
        device.submit(now, Request { tag, kind: point.kind, offset_bytes, length_bytes: point.block_bytes });
    };
    for tag in 0..u64::from(point.depth) {
        submit(device.as_mut(), Nanos::ZERO, tag);
    }
    let mut now = Nanos::ZERO;
    for tag in 0..count {
        now = device.next_completion().unwrap_or(now);
        device.complete(now);
        submit(device.as_mut(), now, u64::from(point.depth) + tag);
    }
    count as f64 / now.as_secs_f64().max(1e-9)
}

fn parse_points(text: &str) -> Result<Vec<FitPoint>, FitError> {
    // fio prints its warnings above the JSON.
    let start = if text.starts_with('{') { 0 } else { text.find("\n{").map_or(0, |at| at + 1) };
    let above = text[..start].lines().count();
    let output: Value = serde_json::from_str(&text[start..])
        .map_err(|source| FitError::Json { line: above + source.line(), source })?;
    let mut jobs = Vec::<(FitPoint, [u64; 2])>::new();
    for job in output["jobs"].as_array().into_iter().flatten() {
        let Some((point, processes)) = parse_job(job, &output["global options"])? else { continue };
        // Without `group_reporting` each process has an entry, one after the other.
        match jobs.last_mut() {
            Some((sum, [entries, _])) if processes > 1 && *entries < processes && sum.job == point.job => {
                sum.measured_iops += point.measured_iops;
                *entries += 1;
            }
            _ => jobs.push((point, [1, processes])),
        }
    }
    if jobs.is_empty() {
        return Err(FitError::Job { job: "*".to_owned(), message: "no job reads or writes".to_owned() });
    }
    let whole = |(point, [entries, processes]): (FitPoint, [u64; 2])| {
        let message = || format!("it has {entries} entries of {processes} processes; give fio `group_reporting`");
        let is_whole = entries == 1 || entries == processes;
        if is_whole { Ok(point) } else { Err(FitError::Job { job: point.job.clone(), message: message() }) }
    };
    jobs.into_iter().map(whole).collect()
}

/// A job's point, or that of one of its processes, and how many of them there are.
fn parse_job(job: &Value, global: &Value) -> Result<Option<(FitPoint, u64)>, FitError> {
    let name = job["jobname"].as_str().unwrap_or("?").to_owned();
    let options = &job["job options"];
    let option = |key: &str| options[key].as_str().or_else(|| global[key].as_str());
    let fault = |message: String| FitError::Job { job: name.clone(), message };
    let (kind, random) = match option("rw").or_else(|| option("readwrite")).unwrap_or("read") {
        "read" => (Kind::Read, false),
        "randread" => (Kind::Read, true),
        "write" => (Kind::Write, false),
        "randwrite" => (Kind::Write, true),
        _ => return Ok(None),
    };
    let number = |key: &str, absent: &str| -> Result<u64, FitError> {
        let text = option(key).unwrap_or(absent);
        bytes_of(text).filter(|number| *number > 0).ok_or_else(|| fault(format!("`{key}={text}` is not a size")))
    };
    let block_bytes = number("bs", option("blocksize").unwrap_or("4k"))?;
    let processes = number("numjobs", "1")?;
    let depth = number("iodepth", "1")?.saturating_mul(processes);
    if block_bytes > 1 << 30 || depth > 4096 {
        return Err(fault(format!("{block_bytes} bytes a request at depth {depth} is out of range")));
    }
    let side = if kind == Kind::Read { "read" } else { "write" };
    let measured_iops = job[side]["iops"].as_f64().filter(|iops| *iops > 0.0);
    let measured_iops = measured_iops.ok_or_else(|| fault(format!("it has no `{side}.iops`")))?;
    let (block_bytes, depth) = (block_bytes as u32, depth as u32);
    let point = FitPoint { job: name, kind, random, block_bytes, depth, measured_iops, modelled_iops: 0.0 };
    Ok(Some((point, processes)))
}

/// fio's sizes: a number and perhaps k, m or g, powers of 1024.
fn bytes_of(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let factor = match &text[digits..] {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::{FitError, bytes_of, modelled_iops, parse_points, ssd_fit};
    use crate::profile::{Media, profile};

    fn fio(points: &[(&str, &str, u32, f64)]) -> String {
        let job = |(rw, bs, depth, iops): &(&str, &str, u32, f64)| {
            let side = if rw.ends_with("read") { "read" } else { "write" };
            format!(
                r#"{{"jobname":"{rw}-{bs}-{depth}","job options":{{"rw":"{rw}","bs":"{bs}","iodepth":"{depth}"}},"{side}":{{"iops":{iops}}}}}"#
            )
        };
        let jobs: Vec<String> = points.iter().map(job).collect();
        format!("fio: a warning\n{{\"global options\":{{\"direct\":\"1\"}},\n\"jobs\":[{}]}}", jobs.join(",\n"))
    }

    const RUN: [(&str, &str, u32, f64); 6] = [
        ("randread", "4k", 1, 1.0),
        ("randread", "4k", 32, 1.0),
        ("read", "1M", 4, 1.0),
        ("randwrite", "4k", 1, 1.0),
        ("randwrite", "4k", 32, 1.0),
        ("write", "1M", 4, 1.0),
    ];

    #[test]
    fn a_run_of_the_model_itself_is_found_again() {
        let mut truth = profile("sata-ssd").unwrap();
        truth.interface_mb_per_s = 1800.0;
        if let Media::Ssd(ssd) = &mut truth.media {
            (ssd.channels, ssd.read.first_page_us, ssd.write.first_page_us) = (16, 70.0, 20.0);
            ssd.collection = None;
        }
        let blank = parse_points(&fio(&RUN)).unwrap();
        let measured: Vec<_> =
            RUN.iter().zip(&blank).map(|(run, point)| (run.0, run.1, run.2, modelled_iops(&truth, point))).collect();
        let base = profile("sata-ssd").unwrap();
        let fit = ssd_fit(&base, &fio(&measured)).unwrap();
        assert_eq!(fit.points.len(), RUN.len());
        for point in &fit.points {
            let error = point.modelled_iops / point.measured_iops - 1.0;
            assert!(error.abs() < 0.1, "{point:?}");
        }
        assert_eq!(fit.profile.problem(), None);
        let Media::Ssd(fitted) = &fit.profile.media else { unreachable!() };
        assert!(fitted.collection.is_some(), "stalls stay as they were");
    }

    #[test]
    fn processes_with_entries_of_their_own_are_one_point() {
        let run = |entries: &[f64]| {
            let entry = |iops: &f64| {
                format!(
                    r#"{{"jobname":"four","job options":{{"rw":"randread","iodepth":"2","numjobs":"4"}},"read":{{"iops":{iops}}}}}"#
                )
            };
            let text = format!("{{\"jobs\":[{}]}}", entries.iter().map(entry).collect::<Vec<_>>().join(","));
            let points = parse_points(&text).map_err(|error| error.to_string())?;
            Ok::<_, String>(points.iter().map(|point| (point.depth, point.measured_iops)).collect::<Vec<_>>())
        };
        assert_eq!(run(&[100.0, 200.0, 300.0, 400.0]), Ok(vec![(8, 1000.0)]));
        assert_eq!(run(&[1000.0]), Ok(vec![(8, 1000.0)]), "with group_reporting");
        assert_eq!(
            run(&[100.0, 200.0]).unwrap_err(),
            "fio job `four`: it has 2 entries of 4 processes; give fio `group_reporting`"
        );
    }

    #[test]
    fn wrong_input_is_named() {
        let base = profile("sata-ssd").unwrap();
        assert!(matches!(ssd_fit(&base, "fio: x\n{\n oops"), Err(FitError::Json { line: 3, .. })));
        assert!(matches!(ssd_fit(&base, "{}"), Err(FitError::Job { .. })));
        let text = fio(&[("randread", "4x", 1, 5.0)]);
        assert!(ssd_fit(&base, &text).unwrap_err().to_string().contains("bs=4x"));
        let disk = profile("sata7200-80g").unwrap();
        assert!(matches!(ssd_fit(&disk, "{}"), Err(FitError::NotAnSsd { .. })));
        assert_eq!(
            (bytes_of("4k"), bytes_of("1MiB"), bytes_of("512"), bytes_of("k")),
            (Some(4096), Some(1 << 20), Some(512), None)
        );
    }
}
