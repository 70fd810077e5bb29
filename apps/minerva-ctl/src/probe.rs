//! `minerva-ctl doctor --probe`: proves on the disk itself that a weight or a cap bites. Two tenants of the probe's own read from the
//! disk. Where weights bite they have 800 and 100, and what each got is compared; where caps do, both read freely at first, then one
//! of them under a cap of a quarter of what it got, and its two rates are compared. Nothing is written to the disk.

use crate::output::{self, CommandStatus};
use crate::probe_groups::{ProbeGroups, cap, weight, write_group};
use crate::probe_reader::ReaderJob;
use anyhow::{Context, bail, ensure};
use minerva_actuate::suitability;
use minerva_config::Config;
use minerva_linux_observe::Roots;
use minerva_model::{BackEnd, Device, KnobFile};
use serde::Serialize;
use std::time::Duration;

/// What one read asks for.
const READ_BYTES: usize = 64 * 1024;
/// Reads that are under way at once. A reader that is to show what its weight gives it always has another one waiting: with one alone iocost
/// passes what it leaves unused on to the other. Under a cap one is enough, and no more is served after the time is over.
const WEIGHED_DEPTH: usize = 2;
const CAPPED_DEPTH: usize = 1;
/// Weights of the two readers: 8:1, as in the figure `weights-bite`.
const WEIGHTS: [u32; 2] = [800, 100];
/// Of the asked ratio this part must be reached. A busy disk and a short probe cost some; a knob that does nothing gives 1:1.
const PART_NEEDED: f64 = 0.6;
/// One reader is capped at what it got without a cap through this.
const CAP_DIVISOR: u64 = 4;
/// The kernel deals a cap out in pieces: with a smaller one a short probe would see none.
const CAP_BYTES_PER_SECOND_MIN: u64 = 256 * 1024;

/// What came of it.
#[derive(Debug, Serialize)]
struct Probed {
    kind: &'static str,
    /// `weight`: the bytes are those of two readers. `cap`: of one, without and with the cap.
    knob: &'static str,
    disk: String,
    back_end: &'static str,
    asked_ratio: f64,
    got_ratio: f64,
    bytes: [u64; 2],
    seconds: f64,
    bites: bool,
}

/// What is to be proved.
#[derive(Clone, Copy)]
enum Knob {
    Weight(KnobFile),
    Cap(KnobFile),
}

impl Knob {
    /// What a back end steers by, if it is a file of a group.
    const fn of(back_end: BackEnd) -> Option<Self> {
        match back_end {
            BackEnd::Bfq => Some(Self::Weight(KnobFile::BfqWeight)),
            BackEnd::BfqV1 => Some(Self::Weight(KnobFile::BfqV1Weight)),
            BackEnd::IoCost => Some(Self::Weight(KnobFile::IoWeight)),
            BackEnd::Max => Some(Self::Cap(KnobFile::IoMax)),
            BackEnd::ThrottleV1 => Some(Self::Cap(KnobFile::ThrottleReadBps)),
            BackEnd::Blk | BackEnd::Observe => None,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Weight(_) => "weight",
            Self::Cap(_) => "cap",
        }
    }

    const fn depth(self) -> usize {
        match self {
            Self::Weight(_) => WEIGHED_DEPTH,
            Self::Cap(_) => CAPPED_DEPTH,
        }
    }
}

/// Proves it on one disk. That it does not bite is a finding.
pub(crate) fn run(
    config: &Config,
    roots: &Roots,
    device: &Device,
    duration: Duration,
    json: bool,
) -> anyhow::Result<CommandStatus> {
    let back_end = suitability(&device.facts, config.engine.devices.get(&device.name)).back_end;
    let Some(knob) = Knob::of(back_end) else {
        bail!("there is nothing to prove on {}: no weight bites there, as said above", device.name)
    };
    let region = device.facts.size_bytes / 2 / READ_BYTES as u64 * READ_BYTES as u64;
    if region == 0 {
        bail!("{} is too small to read from", device.name);
    }
    let mut groups = ProbeGroups::open(config, roots)?;
    let job = ReaderJob {
        start: 0,
        length: region,
        read_bytes: READ_BYTES,
        depth: knob.depth(),
        random_seed: None,
        duration_milliseconds: u64::try_from(duration.as_millis()).unwrap_or(u64::MAX),
    };
    let raced = prove(knob, device, duration, &mut |set| race(&mut groups, device, &job, set));
    if let Some(number) = groups.signal() {
        groups.close().context("interrupted")?;
        output::note("interrupted; the probe's tenants and weights are removed");
        return Ok(CommandStatus::Signalled(number));
    }
    let (asked_ratio, bytes) = raced?;
    groups.close()?;
    // A disk slower than the least cap would pass whatever the knob does, and one that served nothing shows nothing.
    let shows = bytes.iter().all(|bytes| *bytes > 0) && asked_ratio > 1.0 / PART_NEEDED;
    ensure!(shows, "{} is too slow or too busy for a proof; try again", device.name);
    let got_ratio = bytes[0] as f64 / bytes[1] as f64;
    let bites = got_ratio >= asked_ratio * PART_NEEDED;
    let seconds = duration.as_secs_f64();
    let (disk, back_end) = (device.name.clone(), back_end.as_str());
    let knob = knob.name();
    let probed = Probed { kind: "probe", knob, disk, back_end, asked_ratio, got_ratio, bytes, seconds, bites };
    if json {
        output::json(&probed)?;
    } else {
        output::text(&page(&probed))?;
    }
    Ok(CommandStatus::found_if(!bites))
}

/// What a reader's knob is given and what undoes it, by the reader's number; and in which file.
type Knobs<'a> = (KnobFile, &'a dyn Fn(usize) -> Option<[String; 2]>);

/// Lets two readers race under these knobs, the one with this job and the other with the same behind it; the bytes that each read.
fn race(
    groups: &mut ProbeGroups,
    device: &Device,
    job: &ReaderJob,
    (file, texts): Knobs<'_>,
) -> anyhow::Result<[u64; 2]> {
    let names = WEIGHTS.map(|weight| format!("reader-{weight}"));
    let behind = ReaderJob { start: job.start + job.length, ..job.clone() };
    let jobs = [(&*names[0], job.clone()), (&*names[1], behind)];
    let readings = groups.race(device, &jobs, &|writer, index, path| match texts(index) {
        Some([text, undo]) => write_group(writer, file, device.id, path, text, undo),
        None => Ok(()),
    })?;
    Ok([readings[0].bytes, readings[1].bytes])
}

/// Lets the readers race as the knob asks; the ratio that it is to bring about, and the bytes whose ratio it did.
fn prove(
    knob: Knob,
    device: &Device,
    duration: Duration,
    race: &mut dyn FnMut(Knobs<'_>) -> anyhow::Result<[u64; 2]>,
) -> anyhow::Result<(f64, [u64; 2])> {
    match knob {
        Knob::Weight(file) => {
            output::say(&format!("two readers at 8:1 on {} for {} s", device.name, duration.as_secs_f64()));
            let asked_ratio = f64::from(WEIGHTS[0]) / f64::from(WEIGHTS[1]);
            race((file, &|index| Some(weight(file, WEIGHTS[index])))).map(|bytes| (asked_ratio, bytes))
        }
        Knob::Cap(file) => {
            output::say(&format!(
                "two readers on {}, for {} s freely and then with a cap",
                device.name,
                duration.as_secs_f64()
            ));
            let free = race((file, &|_| None))?;
            let rate = (free[1] as f64 / duration.as_secs_f64()) as u64;
            let most = (rate / CAP_DIVISOR).max(CAP_BYTES_PER_SECOND_MIN);
            let capped = race((file, &|index| (index == 1).then(|| cap(file, device.id, most))))?;
            Ok((rate as f64 / most as f64, [free[1], capped[1]]))
        }
    }
}

fn page(probed: &Probed) -> String {
    let rate = |bytes: u64| crate::figures::rate((bytes as f64 / probed.seconds) as u64);
    let knob = probed.knob;
    let answer = if probed.bites {
        format!("proven: the {knob} bites")
    } else {
        format!("the {knob} does not bite as it should")
    };
    format!(
        "disk {}: {answer}\n    asked {:.1}:1, got {:.1}:1 ({} and {})\n",
        probed.disk,
        probed.asked_ratio,
        probed.got_ratio,
        rate(probed.bytes[0]),
        rate(probed.bytes[1])
    )
}
