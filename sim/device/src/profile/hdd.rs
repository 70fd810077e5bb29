//! Parameters of a hard disk.

use crate::seek::Seek;
use serde::{Deserialize, Serialize};

/// A hard disk's mechanics, electronics and cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddProfile {
    /// Turns a minute.
    pub rotation_rpm: f64,
    /// Surfaces with data.
    pub heads: u32,
    /// How sectors lie on the surfaces.
    pub layout: Layout,
    /// Time to move the arm.
    pub seek: Seek,
    /// Time to change the surface on the same cylinder.
    pub head_switch_ms: f64,
    /// Added to every move of the arm or head that a write makes. Negative when writes settle faster than reads.
    pub write_settle_ms: f64,
    /// Time of the electronics around a request.
    pub overhead: Overhead,
    /// The disk's buffer.
    pub cache: CacheProfile,
    /// With several requests at the disk, none is passed over for longer than this by nearer ones.
    pub age_ms_max: f64,
}

/// How sectors lie on the surfaces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Layout {
    /// Zones of equal cylinder count, sequential speed falling evenly from the outer to the inner one. The number of
    /// cylinders follows from the capacity, so a smaller capacity is a coarser disk with the same stroke.
    Linear {
        /// Number of zones.
        zones: u32,
        /// Sustained sequential speed of the outermost zone. A track holds two sectors at least, so that a disk is never slower than that.
        outer_mb_per_s: f64,
        /// Sustained sequential speed of the innermost zone.
        inner_mb_per_s: f64,
        /// Angle between the ends of neighbouring tracks of a cylinder, in time of rotation.
        head_skew_ms: f64,
        /// Angle between the ends of neighbouring cylinders, in time of rotation.
        cylinder_skew_ms: f64,
    },
    /// Zones one by one, from cylinder 0 inwards. A smaller capacity is the outer part of the same disk.
    Table {
        /// Where the spare sectors are.
        sparing: Sparing,
        /// Whether neighbouring cylinders are joined at the same head.
        #[serde(default)]
        serpentine: Serpentine,
        /// The zones, in the order of their cylinders.
        zones: Vec<Zone>,
    },
}

/// In which order the heads of a cylinder are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Serpentine {
    /// Always from the first to the last.
    #[default]
    No,
    /// Every second cylinder of a zone backwards.
    PerZone,
    /// Every odd cylinder backwards.
    PerDisk,
}

/// Where a disk keeps its spare sectors, which decides how logical addresses shift around defects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Sparing {
    /// No spares.
    None,
    /// Whole tracks at the end of a zone.
    Track,
    /// Sectors at the end of every cylinder; a slipped defect shifts the rest of its cylinder.
    Cylinder,
    /// As `Cylinder`, but a slipped defect shifts everything behind it to the end of the zone.
    CylinderSlipToEnd,
    /// Sectors at the start of every cylinder.
    CylinderFront,
    /// As `CylinderFront`, but a slipped defect shifts everything behind it to the end of the zone.
    CylinderFrontSlipToEnd,
    /// Sectors at the end of every so many cylinders.
    Range(u32),
    /// Sectors at the end of every track; a slipped defect shifts the rest of its track.
    SectorsPerTrack,
    /// Sectors at the end of every zone; a slipped defect uses one of them up.
    Zone,
    /// As `Zone`, but a slipped defect makes the zone one address smaller.
    ZoneSlipToEnd,
}

/// One zone of a [`Layout::Table`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Zone {
    /// First cylinder.
    pub first_cylinder: u32,
    /// Last cylinder.
    pub last_cylinder: u32,
    /// Physical sectors on each track, 2 at least.
    pub sectors_per_track: u32,
    /// Angle of the zone's first sector.
    #[serde(default)]
    pub first_angle_sectors: f64,
    /// Sectors at the front without a logical address.
    #[serde(default)]
    pub unused_front_sectors: u64,
    /// Skew from one track to the next on the same cylinder.
    pub track_skew_sectors: f64,
    /// Skew from one cylinder to the next.
    pub cylinder_skew_sectors: f64,
    /// Spares per unit of the [`Sparing`].
    #[serde(default)]
    pub spares: u32,
    /// Defective sectors that were skipped, counted from the start of the zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slipped: Vec<u64>,
    /// Defective sectors and the spare that stands in for each, counted from the start of the zone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remapped: Vec<(u64, u64)>,
}

/// Time of the electronics around a request. Pairs are after a read, after a write.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overhead {
    /// Before a read that the cache answers.
    pub read_hit_ms: [f64; 2],
    /// Before a read that needs the medium.
    pub read_miss_ms: [f64; 2],
    /// Before a write that continues what the cache holds.
    pub write_hit_ms: [f64; 2],
    /// Before any other write.
    pub write_miss_ms: [f64; 2],
    /// Between the moment a read's data is ready and the cable.
    #[serde(default)]
    pub reconnect_ms: f64,
    /// Before a write's data crosses the cable.
    #[serde(default)]
    pub write_prepare_ms: f64,
    /// From the order to the arm to the first sector of a write, at least.
    #[serde(default)]
    pub write_reach_ms_min: f64,
    /// After a read's data.
    #[serde(default)]
    pub read_completion_ms: f64,
    /// After a write's data.
    #[serde(default)]
    pub write_completion_ms: f64,
}

impl Overhead {
    pub(super) fn all(&self) -> [(&'static str, f64); 13] {
        [
            ("read_hit_ms", self.read_hit_ms[0]),
            ("read_hit_ms", self.read_hit_ms[1]),
            ("read_miss_ms", self.read_miss_ms[0]),
            ("read_miss_ms", self.read_miss_ms[1]),
            ("write_hit_ms", self.write_hit_ms[0]),
            ("write_hit_ms", self.write_hit_ms[1]),
            ("write_miss_ms", self.write_miss_ms[0]),
            ("write_miss_ms", self.write_miss_ms[1]),
            ("reconnect_ms", self.reconnect_ms),
            ("write_prepare_ms", self.write_prepare_ms),
            ("write_reach_ms_min", self.write_reach_ms_min),
            ("read_completion_ms", self.read_completion_ms),
            ("write_completion_ms", self.write_completion_ms),
        ]
    }

    /// The same time before every request.
    pub const fn flat(ms: f64) -> Self {
        Self {
            read_hit_ms: [ms; 2],
            read_miss_ms: [ms; 2],
            write_hit_ms: [ms; 2],
            write_miss_ms: [ms; 2],
            reconnect_ms: 0.0,
            write_prepare_ms: 0.0,
            write_reach_ms_min: 0.0,
            read_completion_ms: 0.0,
            write_completion_ms: 0.0,
        }
    }
}

/// The disk's buffer: segments that hold runs of sectors.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheProfile {
    /// Segments; 0 turns the buffer off.
    pub segments: u32,
    /// Size of a segment.
    pub segment_sectors: u32,
    /// How far the disk reads on behind a read.
    pub read_ahead: ReadAhead,
    /// So many sectors behind the end of the read, at most. 0 is no bound for the kinds that have another.
    pub read_ahead_sectors_max: u32,
    /// Whether a read that the buffer answers makes an idle disk read on.
    #[serde(default)]
    pub read_ahead_after_hit: bool,
    /// Whether a read waits for sectors that the disk is about to read ahead, instead of seeking to them.
    #[serde(default)]
    pub read_hits_ahead: bool,
    /// Whether sectors that pass under the head before the first one of a read are kept.
    #[serde(default)]
    pub keeps_passing_sectors: bool,
    /// Share of a read that must be in the buffer before the cable carries it.
    #[serde(default)]
    pub read_watermark: f64,
    /// Sectors of a write that must be in the buffer before the medium begins, if it has so many. 0 counts as 1.
    #[serde(default)]
    pub write_begin_sectors: u32,
    /// Whether a read may take what a write left in the buffer.
    pub read_hits_on_writes: bool,
    /// Whether writes have a segment of their own.
    #[serde(default)]
    pub separate_write_segment: bool,
    /// When a write is complete.
    pub write_back: WriteBack,
    /// With write-back, so much may be in the buffer only.
    #[serde(default)]
    pub write_sectors_max: u32,
    /// Whether the disk takes the sectors of a read in the order in which they pass under the head.
    #[serde(default)]
    pub zero_latency_read: bool,
    /// As `zero_latency_read`, for writes.
    #[serde(default)]
    pub zero_latency_write: bool,
}

/// How far a disk reads on behind a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReadAhead {
    /// Not at all.
    Off,
    /// To the end of the track.
    Track,
    /// To the end of the cylinder.
    Cylinder,
    /// A number of sectors.
    Sectors,
    /// To the end of the track, and of the next one when the segment already came from the track before.
    TrackThenNext,
}

/// When a write is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WriteBack {
    /// When it is on the medium.
    Off,
    /// When it is in the buffer, and the disk begins it only when the write before is on the medium.
    Single,
    /// When it is in the buffer.
    On,
}
