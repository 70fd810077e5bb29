//! What outlives a restart: for each disk and group the bin under way, and the histories of its series. Scores and intervals are those
//! of the replayed histories; of the models, those that need no fit take part in that.
//!
//! Values are kept as steps of 1/1024 of log1p, to 0.05 %: a history of six weeks takes 12 kB.

use super::LOADS_MAX;
use super::series::{FORGET_BINS, Series};
use super::space::Space;
use crate::codec::{Damaged, Reader, Writer};
use crate::seasonal::{BINS_PER_WEEK, Bins};
use minerva_model::{DeviceId, LoadOf};
use std::collections::BTreeMap;

const KIND: u16 = 2;
/// Since the third with how long each has been silent, and with a mark where its free space is not known.
const VERSION: u16 = 3;
const VERSION_WITHOUT_SILENCE: u16 = 2;
/// Where a level is not known.
const NO_LEVEL: f32 = -1.0;
const HISTORY_MAX: usize = 7 * BINS_PER_WEEK;
const NAME_MAX: usize = 255;
/// Steps of a logarithm.
const STEPS: f64 = 1024.0;
/// Bins since 1970 until long after this program.
const BIN_MAX: u64 = 1 << 32;

/// `with_silence` as since the third version.
pub(super) fn encode(all: &BTreeMap<LoadOf, Series>, with_silence: bool) -> Option<Vec<u8>> {
    let mut writer = Writer::default();
    let kept = || {
        let has_history = |series: &Series| series.parts[0].ensemble.history().len() > 0;
        all.iter().filter_map(move |(of, series)| Some((of, series, series.bins.current()?))).filter(
            move |(of, series, _)| {
                let is_short = if let LoadOf::Group(name) = of { name.len() <= NAME_MAX } else { true };
                is_short && has_history(series)
            },
        )
    };
    writer.count(kept().count());
    for (of, series, current) in kept() {
        match of {
            LoadOf::Device(device) => {
                writer.u8(0);
                writer.u32(device.major);
                writer.u32(device.minor);
            }
            LoadOf::Group(name) => {
                writer.u8(1);
                writer.count(name.len());
                name.bytes().for_each(|byte| writer.u8(byte));
            }
        }
        writer.u64(current);
        if with_silence {
            writer.u32(series.silent_bins);
        }
        series.parts.iter().for_each(|part| history(&mut writer, part.ensemble.history()));
        writer.u8(u8::from(series.space.is_some()));
        if let Some(space) = &series.space {
            let unknown = if with_silence { NO_LEVEL } else { 0.0 };
            writer.f32(space.level.map_or(unknown, |level| level as f32));
            space.flows.iter().for_each(|flow| history(&mut writer, flow.history()));
        }
    }
    let version = if with_silence { VERSION } else { VERSION_WITHOUT_SILENCE };
    (kept().count() > 0).then(|| writer.seal(KIND, version))
}

pub(super) fn decode(bytes: &[u8], only_its_own: bool) -> Result<BTreeMap<LoadOf, Series>, Damaged> {
    let opened = Reader::open(bytes, KIND, VERSION);
    let has_silence = opened.is_ok();
    let mut reader = opened.or_else(|_| Reader::open(bytes, KIND, VERSION_WITHOUT_SILENCE))?;
    let mut all = BTreeMap::new();
    for _ in 0..reader.count(LOADS_MAX)? {
        let of = whose(&mut reader)?;
        let next = reader.u64()?;
        if next > BIN_MAX {
            return Err(Damaged::Value);
        }
        let in_week = (next % BINS_PER_WEEK as u64) as usize;
        let silent_bins = if has_silence { reader.u32()?.min(FORGET_BINS) } else { 0 };
        let mut series = Series::after(Bins::after(next), silent_bins, only_its_own);
        for part in &mut series.parts {
            replay(&read_history(&mut reader)?, in_week, |bin, value| part.observe(bin, value));
        }
        if reader.u8()? != 0 {
            let level = reader.finite_f32()?;
            let flows = [read_history(&mut reader)?, read_history(&mut reader)?];
            let level = Some(f64::from(level)).filter(|level| *level >= 0.0);
            series.space = Some(Box::new(space(&flows, in_week, level, only_its_own)?));
        }
        all.insert(of, series);
    }
    reader.end()?;
    Ok(all)
}

fn whose(reader: &mut Reader<'_>) -> Result<LoadOf, Damaged> {
    match reader.u8()? {
        0 => Ok(LoadOf::Device(DeviceId { major: reader.u32()?, minor: reader.u32()? })),
        1 => {
            let name: Result<Vec<u8>, Damaged> = (0..reader.count(NAME_MAX)?).map(|_| reader.u8()).collect();
            String::from_utf8(name?).map(LoadOf::Group).map_err(|_| Damaged::Value)
        }
        _ => Err(Damaged::Value),
    }
}

/// The levels of the past are what its flows made of them.
fn space(flows: &[Vec<f32>; 2], next: usize, level: Option<f64>, only_its_own: bool) -> Result<Space, Damaged> {
    let [used, freed] = flows;
    if used.len() != freed.len() {
        return Err(Damaged::Value);
    }
    let mut space = Space::new(only_its_own);
    let mut at = 0;
    replay(used, next, |bin, used| {
        space.take(bin, [used, f64::from(freed[at])]);
        at += 1;
    });
    space.level = level;
    Ok(space)
}

/// Each value with the number in its week of its bin; `next` is that of the bin after the last.
fn replay(values: &[f32], next: usize, mut each: impl FnMut(usize, f64)) {
    let weeks = values.len().div_ceil(BINS_PER_WEEK);
    let first = weeks * BINS_PER_WEEK + next - values.len();
    values.iter().enumerate().for_each(|(at, value)| each((first + at) % BINS_PER_WEEK, f64::from(*value)));
}

fn history(writer: &mut Writer, values: impl ExactSizeIterator<Item = f32>) {
    writer.count(values.len());
    for value in values {
        let step = (libm::log1p(f64::from(value)) * STEPS).round() as u16;
        step.to_le_bytes().into_iter().for_each(|byte| writer.u8(byte));
    }
}

fn read_history(reader: &mut Reader<'_>) -> Result<Vec<f32>, Damaged> {
    let value = |reader: &mut Reader<'_>| {
        let step = u16::from_le_bytes([reader.u8()?, reader.u8()?]);
        Ok(libm::expm1(f64::from(step) / STEPS) as f32)
    };
    (0..reader.count(HISTORY_MAX)?).map(|_| value(reader)).collect()
}
