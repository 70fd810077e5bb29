//! Profiles of measured drives, from the parameter files of DiskSim.
//!
//! A drive comes as `NAME.diskspecs` (electronics and buffer), a model file (zones and mechanics), a seek curve and a
//! `NAME.parv` (of which only the speed of the bus is used). The first names the second, the second the third. Nothing
//! is fitted: every number of the profile is one of the files'. What the parameters mean is from DiskSim's manual
//! (Bucy, Ganger et al., CMU-PDL-08-101).

mod syntax;

use crate::device::SECTOR_BYTES;
use crate::geometry::Geometry;
use crate::profile::{
    CacheProfile, HddProfile, Layout, Media, Overhead, Profile, ReadAhead, Serpentine, Sparing, WriteBack, Zone,
};
use crate::seek::Seek;
use syntax::{Block, Value};

/// The texts that describe one drive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sources<'a> {
    /// `NAME.diskspecs`.
    pub diskspecs: &'a str,
    /// The file that [`model_file`] names; empty when the model is inside the diskspecs.
    pub model: &'a str,
    /// The file that [`seek_file`] names, where the model has a measured curve.
    pub seek: Option<&'a str>,
    /// `NAME.parv`, where there is one.
    pub parv: Option<&'a str>,
}

/// Parameter files that do not describe a drive.
#[derive(Debug, thiserror::Error)]
#[error("{file}, line {line}: {message}")]
pub struct ImportError {
    /// Which of the texts: `diskspecs`, `model`, `seek` or `parv`.
    pub file: &'static str,
    /// Line of the text, from 1; 1 when the text as a whole is at fault.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

/// The name of the model file that a diskspecs text asks for.
pub fn model_file(diskspecs: &str) -> Option<String> {
    let block = syntax::find(diskspecs, "disksim_disk").ok().flatten()?;
    let word = block.word("Model")?;
    word.strip_prefix("source ").map(|name| name.trim().to_owned())
}

/// The name of the seek curve that a model text asks for.
pub fn seek_file(model: &str) -> Option<String> {
    let block = syntax::find(model, "dm_disk").ok().flatten()?;
    Some(block.block("Mechanical Model")?.word("Full seek curve")?.to_owned())
}

/// Makes a profile of the texts.
pub fn import(name: &str, sources: &Sources<'_>) -> Result<Profile, ImportError> {
    let at = |file, (line, message): (usize, String)| ImportError { file, line, message };
    let whole = |file, message: &str| ImportError { file, line: 1, message: message.to_owned() };
    let disk = syntax::find(sources.diskspecs, "disksim_disk")
        .map_err(|error| at("diskspecs", error))?
        .ok_or_else(|| whole("diskspecs", "there is no `disksim_disk NAME { ... }` in it"))?;
    let inside = disk.block("Model").cloned();
    let model = match inside {
        Some(block) => block,
        None => syntax::find(sources.model, "dm_disk")
            .map_err(|error| at("model", error))?
            .ok_or_else(|| whole("model", "there is no `dm_disk NAME { ... }` in it"))?,
    };
    let mechanics = model.block("Mechanical Model").ok_or_else(|| whole("model", "it has no `Mechanical Model`"))?;
    let layout = model.block("Layout Model").ok_or_else(|| whole("model", "it has no `Layout Model`"))?;
    let rotation_rpm = mechanics.positive("Rotation speed (in rpms)").map_err(|error| at("model", error))?;
    let heads = model.positive("Number of data surfaces").map_err(|error| at("model", error))? as u32;
    // A part of a surface is none.
    if !(1..=256).contains(&heads) {
        return Err(whole("model", &format!("{heads} data surfaces are not within 1 and 256")));
    }
    let head_switch_ms = mechanics.number("Head switch time", 0.0).map_err(|error| at("model", error))?;
    let cylinders = model.number("Number of cylinders", 4.0).map_err(|error| at("model", error))? as u32;
    let seek = seek_curve(mechanics, sources.seek, cylinders)?;
    let single_ms = seek.time_ns(1, 1000) as f64 / 1e6;
    let switches = [head_switch_ms, single_ms.max(head_switch_ms)].map(|ms| ms * rotation_rpm / 60_000.0);
    let cable = cable_ms(&disk, sources.parv).map_err(|(file, error)| at(file, error))?;
    let mut profile = Profile {
        name: name.to_owned(),
        source: format!("DiskSim parameter files of {name}"),
        capacity_bytes: SECTOR_BYTES,
        queue_depth: disk.number("Max queue length", 1.0).map_err(|error| at("diskspecs", error))?.clamp(1.0, 256.0)
            as u32,
        interface_mb_per_s: mb_per_s(cable[0]),
        interface_write_mb_per_s: Some(mb_per_s(cable[1])),
        media: Media::Hdd(HddProfile {
            rotation_rpm,
            heads,
            layout: zones(layout, switches).map_err(|error| at("model", error))?,
            seek,
            head_switch_ms,
            write_settle_ms: mechanics.number("Add. write settling delay", 0.0).map_err(|error| at("model", error))?,
            overhead: overheads(&disk).map_err(|error| at("diskspecs", error))?,
            cache: cache(&disk).map_err(|error| at("diskspecs", error))?,
            age_ms_max: 1000.0,
        }),
    };
    if let Media::Hdd(hdd) = &profile.media {
        // The zones of some drives hold a little more than the drive admits to: spares that the files do not list.
        let held = Geometry::sectors_of(hdd).unwrap_or(1).max(1);
        let admitted = model.number("Block count", 0.0).map_err(|error| at("model", error))? as u64;
        profile.capacity_bytes = SECTOR_BYTES * if admitted == 0 { held } else { held.min(admitted) };
    }
    match profile.problem() {
        None => Ok(profile),
        Some(message) => Err(whole("model", &message)),
    }
}

fn mb_per_s(sector_ms: f64) -> f64 {
    // A bus without a time per sector is one that never limits: 100 GB/s.
    if sector_ms > 0.0 { (SECTOR_BYTES as f64 / sector_ms / 1e3).min(1e5) } else { 1e5 }
}

type Fault = (usize, String);

/// Time of a sector on the cable, for reads and for writes: the slowest of the drive and the buses above it.
fn cable_ms(disk: &Block, parv: Option<&str>) -> Result<[f64; 2], (&'static str, Fault)> {
    let own = disk.number("Bulk sector transfer time", 0.0).map_err(|error| ("diskspecs", error))?;
    let mut slowest = [own; 2];
    for bus in syntax::find_all(parv.unwrap_or_default(), "disksim_bus").map_err(|error| ("parv", error))? {
        for (time, key) in slowest.iter_mut().zip(["Read block transfer time", "Write block transfer time"]) {
            *time = time.max(bus.number(key, 0.0).map_err(|error| ("parv", error))?);
        }
    }
    Ok(slowest)
}

fn overheads(disk: &Block) -> Result<Overhead, Fault> {
    let scale = disk.number("Time scale for overheads", 1.0)?;
    let each = disk.number("Per-request overhead time", 0.0)?;
    let time = |key: &str| disk.number(key, 0.0).map(|ms| ms * scale);
    let pair = |kind: &str| -> Result<[f64; 2], Fault> {
        Ok([time(&format!("{kind} over. after read"))? + each, time(&format!("{kind} over. after write"))? + each])
    };
    let disconnects = !disk.flag("Never disconnect")?;
    let fast_writes = disk.number("Fast write level", 0.0)? > 0.0;
    let prepare_ms = time("Data preparation overhead")?;
    let reselect = |key: &str| if disconnects { time(key) } else { Ok(0.0) };
    let reconnect_ms = reselect("First reselect overhead")? + if disconnects { prepare_ms } else { 0.0 };
    let read_hit = pair("Read hit")?;
    Ok(Overhead {
        read_hit_ms: read_hit.map(|ms| ms + prepare_ms),
        read_miss_ms: pair("Read miss")?,
        write_hit_ms: pair("Write hit")?,
        write_miss_ms: pair("Write miss")?,
        reconnect_ms,
        write_prepare_ms: prepare_ms,
        write_reach_ms_min: time("Minimum seek delay")?,
        read_completion_ms: time("Read completion overhead")?,
        // A write that is complete only on the medium has left the bus meanwhile.
        write_completion_ms: time("Write completion overhead")?
            + if fast_writes { 0.0 } else { reselect("First reselect overhead")? },
    })
}

fn cache(disk: &Block) -> Result<CacheProfile, Fault> {
    let enabled = disk.number("Enable caching in buffer", 0.0)? > 0.0;
    let segment_sectors = disk.number("Segment size (in blks)", 0.0)?;
    let sectors_max = disk.number("Maximum read-ahead (blks)", 0.0)?;
    let read_ahead = match disk.number("Buffer continuous read", 0.0)? as u32 {
        _ if !enabled => ReadAhead::Off,
        0 => ReadAhead::Off,
        1 => ReadAhead::Track,
        2 => ReadAhead::Cylinder,
        4 => ReadAhead::TrackThenNext,
        _ => ReadAhead::Sectors,
    };
    let watermark = disk.number("High (read) water mark", 0.0)?;
    Ok(CacheProfile {
        segments: if enabled { disk.number("Number of buffer segments", 1.0)? as u32 } else { 0 },
        segment_sectors: segment_sectors as u32,
        read_ahead,
        read_ahead_sectors_max: match read_ahead {
            ReadAhead::Sectors if sectors_max == 0.0 => segment_sectors as u32,
            _ => sectors_max as u32,
        },
        read_ahead_after_hit: disk.flag("Read-ahead on idle hit")?,
        read_hits_ahead: disk.flag("Allow almost read hits")?,
        keeps_passing_sectors: disk.flag("Read any free blocks")?,
        read_watermark: if disk.flag("Set watermark by reqsize")? { watermark.clamp(0.0, 1.0) } else { 0.0 },
        // DiskSim's rule for the drives that disconnect once more in a write.
        write_begin_sectors: if disk.flag("Extra write disconnect")? { 10 } else { 1 },
        read_hits_on_writes: enabled && disk.flag("Allow read hits on write data")?,
        separate_write_segment: disk.flag("Use separate write segment")?,
        write_back: match disk.number("Fast write level", 0.0)? as u32 {
            0 => WriteBack::Off,
            1 => WriteBack::Single,
            _ => WriteBack::On,
        },
        write_sectors_max: (disk.number("Maximum number of write segments", 1.0)?.max(1.0) * segment_sectors) as u32,
        zero_latency_read: disk.flag("Immediate buffer read")?,
        zero_latency_write: disk.flag("Immediate buffer write")?,
    })
}

fn seek_curve(mechanics: &Block, seek: Option<&str>, cylinders: u32) -> Result<Seek, ImportError> {
    let at = |(line, message): Fault| ImportError { file: "model", line, message };
    let number = |key: &str| mechanics.positive(key).map_err(at);
    let (line, kind) = mechanics
        .get("Seek type")
        .and_then(|(line, value)| Some((line, value.as_word()?)))
        .ok_or_else(|| at((mechanics.line, "the mechanical model has no `Seek type`".to_owned())))?;
    Ok(match kind {
        "extracted" => {
            let text = seek.ok_or_else(|| at((line, "the measured seek curve it names is missing".to_owned())))?;
            Seek::Table(seek_table(text)?)
        }
        "hpl" | "hplplus10" => {
            let list = |key: &str| mechanics.numbers(key).map_err(at);
            let values = list("HPL seek equation values")?;
            let [knee, short_base_ms, short_root_ms, long_base_ms, long_slope_ms, single] = values[..] else {
                return Err(at((line, "`HPL seek equation values` must be six numbers".to_owned())));
            };
            Seek::Hpl {
                knee,
                short_base_ms,
                short_root_ms,
                long_base_ms,
                long_slope_ms,
                single_ms: (single >= 0.0).then_some(single),
                first_ms: if kind == "hplplus10" { list("First ten seek times")? } else { Vec::new() },
            }
        }
        "curve" => Seek::Lee {
            single_ms: number("Single cylinder seek time")?,
            average_ms: number("Average seek time")?,
            full_ms: number("Full strobe seek time")?,
        },
        "linear" => Seek::Table(vec![
            (1, number("Single cylinder seek time")?),
            // A random seek crosses a third of the cylinders on average.
            ((cylinders / 3).max(2), number("Average seek time")?),
            (cylinders.max(4) - 1, number("Full strobe seek time")?),
        ]),
        "constant" => Seek::Constant { ms: number("Average seek time")? },
        other => return Err(at((line, format!("seek type `{other}` is not known")))),
    })
}

/// Points of a measured curve: `distance, ms` a line; further columns are ignored.
fn seek_table(text: &str) -> Result<Vec<(u32, f64)>, ImportError> {
    let mut points: Vec<(u32, f64)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split([',', ' ', '\t', '\r']).filter(|field| !field.is_empty()).collect();
        let is_title = fields.first().is_none_or(|field| field.starts_with(|c: char| c.is_alphabetic() || c == '#'));
        if is_title {
            continue;
        }
        let fault = |message: String| ImportError { file: "seek", line: index + 1, message };
        let point = match fields[..] {
            [distance, ms, ..] => distance.parse().ok().zip(ms.parse::<f64>().ok().filter(|ms| ms.is_finite())),
            _ => None,
        };
        let point: (u32, f64) = point.ok_or_else(|| fault(format!("`{}` is not `distance, ms`", line.trim())))?;
        if point.0 == 0 {
            continue;
        }
        if points.last().is_some_and(|last| last.0 >= point.0) {
            return Err(fault(format!("distance {} does not rise", point.0)));
        }
        points.push(point);
    }
    if points.is_empty() {
        return Err(ImportError { file: "seek", line: 1, message: "there are no points in it".to_owned() });
    }
    Ok(points)
}

/// The zones. `switches` are the turns lost by a switch of head and of cylinder, for skews the drive leaves open.
fn zones(layout: &Block, switches: [f64; 2]) -> Result<Layout, Fault> {
    if layout.kind != "dm_layout_g1" {
        return Err((layout.line, format!("layout `{}` is not supported; `dm_layout_g1` is", layout.kind)));
    }
    let scheme = layout.number("Sparing scheme used", 0.0)? as u32;
    let range = layout.number("Rangesize for sparing", 1.0)? as u32;
    let sparing = match scheme {
        0 => Sparing::None,
        1 => Sparing::Track,
        2 => Sparing::Cylinder,
        3 => Sparing::SectorsPerTrack,
        4 => Sparing::CylinderSlipToEnd,
        5 => Sparing::CylinderFront,
        6 => Sparing::CylinderFrontSlipToEnd,
        7 | 10 => Sparing::ZoneSlipToEnd,
        8 => Sparing::Range(range.max(1)),
        9 => Sparing::Zone,
        other => return Err((layout.line, format!("sparing scheme {other} is not known"))),
    };
    let serpentine = match layout.number("LBN-to-PBN mapping scheme", 0.0)? as u32 {
        0 => Serpentine::No,
        1 => Serpentine::PerZone,
        2 => Serpentine::PerDisk,
        other => return Err((layout.line, format!("LBN-to-PBN mapping scheme {other} is not known"))),
    };
    let listed = layout.list("Zones")?;
    let mut zones = Vec::with_capacity(listed.len());
    for value in listed {
        let Value::Block(block) = value else {
            return Err((layout.line, "`Zones` must be a list of blocks".to_owned()));
        };
        let mut zone = zone(block, switches)?;
        if scheme == 7 {
            // Spares at the end of the disk are not the zone's.
            zone.spares = 0;
        }
        zones.push(zone);
    }
    Ok(Layout::Table { sparing, serpentine, zones })
}

fn zone(block: &Block, switches: [f64; 2]) -> Result<Zone, Fault> {
    let whole = |key: &str| block.number(key, 0.0).map(|number| number.max(0.0));
    let sectors_per_track = block.positive("Blocks per track")?;
    let skew = |key: &str, turns: f64| -> Result<f64, Fault> {
        // -1: as much as the switch takes; -2: the same in whole sectors.
        Ok(match block.number(key, 0.0)? {
            -1.0 => turns * sectors_per_track,
            -2.0 => (turns * sectors_per_track).ceil(),
            sectors => sectors,
        })
    };
    let numbers = |key: &str| -> Result<Vec<u64>, Fault> {
        Ok(block.numbers(key)?.into_iter().map(|number| number.max(0.0) as u64).collect())
    };
    Ok(Zone {
        first_cylinder: whole("First cylinder number")? as u32,
        last_cylinder: whole("Last cylinder number")? as u32,
        sectors_per_track: sectors_per_track as u32,
        first_angle_sectors: block.number("Offset of first block", 0.0)?,
        unused_front_sectors: whole("Empty space at zone front")? as u64,
        track_skew_sectors: skew("Skew for track switch", switches[0])?,
        cylinder_skew_sectors: skew("Skew for cylinder switch", switches[1])?,
        spares: whole("Number of spares")? as u32,
        slipped: numbers("slips")?,
        remapped: numbers("defects")?.chunks_exact(2).map(|pair| (pair[0], pair[1])).filter(|(a, b)| a != b).collect(),
    })
}
