//! From a logical sector to a cylinder, a head and an angle.
//!
//! An angle is a `u32`: 2^32 to the turn, so that wrapping arithmetic is arithmetic modulo a turn. A sector's angle is
//! that of its leading edge. Everything is computed from tables made once; nothing here allocates after that.

use crate::profile::{HddProfile, Layout, Serpentine, Sparing, Zone};

/// Where a sector is, and how far the run of sectors that starts with it goes without leaving the track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) cylinder: u32,
    pub(crate) head: u32,
    /// Of the sector's leading edge.
    pub(crate) angle: u32,
    /// Angle of one sector.
    pub(crate) sector_angle: u32,
    /// Logical sectors from this one to the end of the track, this one included.
    pub(crate) left_on_track: u32,
    /// Sectors of the track before this one.
    pub(crate) before_on_track: u32,
}

/// The whole disk.
#[derive(Clone, Debug)]
pub(crate) struct Geometry {
    pub(crate) cylinders: u32,
    pub(crate) heads: u32,
    pub(crate) sectors: u64,
    zones: Vec<ZoneMap>,
    /// Zone of the first sector of every 2^`bucket_shift` sectors.
    buckets: Vec<u16>,
    bucket_shift: u32,
}

#[derive(Clone, Debug)]
struct ZoneMap {
    /// First logical sector of the zone, and how many it has.
    first: u64,
    sectors: u64,
    unused_front: u64,
    first_cylinder: u32,
    sectors_per_track: u32,
    sector_angle: u32,
    first_angle: u32,
    track_skew: u32,
    cylinder_skew: u32,
    /// Sectors of the sparing unit: on the medium, with an address, and spares before the first address.
    unit_physical: u64,
    unit_logical: u64,
    unit_front: u64,
    /// A slipped defect also shifts the angle of every later track or cylinder.
    slip_unit_for_angle: u64,
    slips: Vec<Slip>,
    slip_carries: bool,
    remapped: Vec<(u64, u64)>,
    /// Every second cylinder from this one on is used from its last head to its first.
    serpentine_from: Option<u32>,
}

/// A skipped sector: from the logical sector `from` of its unit on, addresses lie `shift` sectors further.
#[derive(Clone, Copy, Debug)]
struct Slip {
    physical: u64,
    unit: u64,
    from: u64,
    shift: u64,
}

/// Spares and the like of a zone, in sectors of its sparing unit: physical, logical, front.
fn unit_sizes(sparing: Sparing, zone: &Zone, heads: u32, zone_sectors: u64) -> (u64, u64, u64) {
    let track = u64::from(zone.sectors_per_track);
    let cylinder = track * u64::from(heads);
    let spares = u64::from(zone.spares);
    match sparing {
        Sparing::None => (zone_sectors, zone_sectors, 0),
        Sparing::Track => (zone_sectors, zone_sectors.saturating_sub(spares * track), 0),
        Sparing::SectorsPerTrack => (track, track.saturating_sub(spares), 0),
        Sparing::Cylinder | Sparing::CylinderSlipToEnd => (cylinder, cylinder.saturating_sub(spares), 0),
        Sparing::CylinderFront | Sparing::CylinderFrontSlipToEnd => (cylinder, cylinder.saturating_sub(spares), spares),
        Sparing::Range(cylinders) => {
            let range = cylinder * u64::from(cylinders.max(1));
            (range, range.saturating_sub(spares), 0)
        }
        Sparing::Zone | Sparing::ZoneSlipToEnd => (zone_sectors, zone_sectors.saturating_sub(spares), 0),
    }
}

impl ZoneMap {
    fn new(first: u64, zone: &Zone, sparing: Sparing, heads: u32, serpentine: Serpentine) -> Self {
        let spt = u64::from(zone.sectors_per_track);
        let tracks = u64::from(zone.last_cylinder - zone.first_cylinder + 1) * u64::from(heads);
        let (unit_physical, unit_logical, unit_front) = unit_sizes(sparing, zone, heads, tracks * spt);
        let slip_carries =
            matches!(sparing, Sparing::CylinderSlipToEnd | Sparing::CylinderFrontSlipToEnd | Sparing::ZoneSlipToEnd);
        let mut slipped: Vec<u64> = match sparing {
            // Whole tracks: the list holds track numbers.
            Sparing::Track => {
                let there = zone.slipped.iter().filter(|track| **track < tracks);
                there.flat_map(|track| (0..spt).map(move |sector| track * spt + sector)).collect()
            }
            _ => zone.slipped.iter().copied().filter(|sector| *sector < tracks * spt).collect(),
        };
        slipped.sort_unstable();
        slipped.dedup();
        let slips = slips_of(&slipped, unit_physical, slip_carries);
        let (units, rest) = (tracks * spt / unit_physical, tracks * spt % unit_physical);
        let addressed = units * unit_logical + rest.min(unit_logical);
        let lost = zone.unused_front_sectors.saturating_add(if slip_carries { slips.len() as u64 } else { 0 });
        Self {
            first,
            sectors: addressed.saturating_sub(lost),
            unused_front: zone.unused_front_sectors,
            first_cylinder: zone.first_cylinder,
            sectors_per_track: zone.sectors_per_track,
            sector_angle: turns(1.0 / spt as f64),
            first_angle: turns(zone.first_angle_sectors / spt as f64),
            track_skew: turns(zone.track_skew_sectors / spt as f64),
            cylinder_skew: turns(zone.cylinder_skew_sectors / spt as f64),
            unit_physical,
            unit_logical,
            unit_front,
            slip_unit_for_angle: match sparing {
                Sparing::SectorsPerTrack => spt,
                Sparing::Cylinder
                | Sparing::CylinderSlipToEnd
                | Sparing::CylinderFront
                | Sparing::CylinderFrontSlipToEnd => spt * u64::from(heads),
                _ => 0,
            },
            slips,
            slip_carries,
            remapped: match sparing {
                Sparing::Track => Vec::new(),
                _ => zone.remapped.iter().copied().filter(|(_, spare)| *spare < tracks * spt).collect(),
            },
            serpentine_from: match serpentine {
                Serpentine::No => None,
                Serpentine::PerZone => Some(zone.first_cylinder),
                Serpentine::PerDisk => Some(0),
            },
        }
    }

    /// Physical sector of a logical one, both counted from the start of the zone.
    fn physical(&self, logical: u64) -> u64 {
        let logical = logical + self.unused_front;
        let (unit, within) = (logical / self.unit_logical, logical % self.unit_logical);
        let plain = unit * self.unit_physical + self.unit_front + within;
        if self.slips.is_empty() {
            return plain;
        }
        let shift = if self.slip_carries {
            // Every skipped sector at or before the target pushes it one further.
            self.slips.partition_point(|slip| slip.from <= plain) as u64
        } else {
            let behind = self.slips.partition_point(|slip| (slip.unit, slip.from) <= (unit, within + self.unit_front));
            self.slips[..behind].last().filter(|slip| slip.unit == unit).map_or(0, |slip| slip.shift)
        };
        plain + shift
    }

    fn position(&self, logical: u64, heads: u32) -> Position {
        let mut physical = self.physical(logical);
        let spt = u64::from(self.sectors_per_track);
        if let Some((_, spare)) = self.remapped.iter().find(|(defect, _)| *defect == physical) {
            physical = *spare;
        }
        let (track, sector) = (physical / spt, physical % spt);
        let (cylinder, head) = ((track / u64::from(heads)) as u32, (track % u64::from(heads)) as u32);
        // Modulo 2^32 like the angle it is multiplied into.
        let switches = head.wrapping_add((heads - 1).wrapping_mul(cylinder));
        let mut angle = self
            .first_angle
            .wrapping_add(self.track_skew.wrapping_mul(switches))
            .wrapping_add(self.cylinder_skew.wrapping_mul(cylinder))
            .wrapping_add(self.sector_angle.wrapping_mul(sector as u32));
        let mut left = (spt - sector) as u32;
        let unit_left = self.unit_logical - (logical + self.unused_front) % self.unit_logical;
        if !self.slips.is_empty() {
            angle = angle.wrapping_add(self.sector_angle.wrapping_mul(self.slips_before_unit(physical)));
            let skipped = self.slips_between(physical, physical + u64::from(left));
            left -= skipped.min(left - 1);
        }
        if unit_left < u64::from(left) {
            left = unit_left as u32;
        }
        let remaining = self.sectors - logical;
        if remaining < u64::from(left) {
            left = remaining as u32;
        }
        Position {
            cylinder: self.first_cylinder + cylinder,
            head: if self.serpentine_from.is_some_and(|from| (self.first_cylinder + cylinder - from) % 2 == 1) {
                heads - 1 - head
            } else {
                head
            },
            angle,
            sector_angle: self.sector_angle,
            left_on_track: left,
            before_on_track: sector as u32,
        }
    }

    fn slips_before_unit(&self, physical: u64) -> u32 {
        match self.slip_unit_for_angle {
            0 => 0,
            unit => {
                let start = physical / unit * unit;
                self.slips.partition_point(|slip| slip.physical < start) as u32
            }
        }
    }

    fn slips_between(&self, from: u64, to: u64) -> u32 {
        let start = self.slips.partition_point(|slip| slip.physical < from);
        self.slips[start..].iter().take_while(|slip| slip.physical < to).count() as u32
    }
}

fn slips_of(sorted: &[u64], unit_physical: u64, carries: bool) -> Vec<Slip> {
    let mut slips: Vec<Slip> = Vec::with_capacity(sorted.len());
    for physical in sorted {
        let unit = if carries { 0 } else { physical / unit_physical };
        let before = slips.last().filter(|slip| slip.unit == unit).map_or(0, |slip| slip.shift);
        let from = physical - unit * unit_physical;
        slips.push(Slip { physical: *physical, unit, from: from.saturating_sub(before), shift: before + 1 });
    }
    slips
}

/// An angle given in turns.
fn turns(count: f64) -> u32 {
    let fraction = count.rem_euclid(1.0);
    ((fraction * 4_294_967_296.0).round() as u64) as u32
}

impl Geometry {
    pub(crate) fn new(hdd: &HddProfile, capacity_sectors: u64) -> Self {
        let (sparing, serpentine, listed);
        let zones: &[Zone] = match &hdd.layout {
            Layout::Table { sparing: of_table, serpentine: order, zones } => {
                (sparing, serpentine) = (*of_table, *order);
                zones
            }
            Layout::Linear { .. } => {
                (sparing, serpentine) = (Sparing::None, Serpentine::No);
                listed = linear_zones(hdd, capacity_sectors);
                &listed
            }
        };
        let mut maps: Vec<ZoneMap> = Vec::with_capacity(zones.len());
        for zone in zones {
            let first = maps.last().map_or(0, |map| map.first + map.sectors);
            maps.push(ZoneMap::new(first, zone, sparing, hdd.heads, serpentine));
        }
        maps.retain(|map| map.sectors > 0);
        let all = maps.last().map_or(0, |map| map.first + map.sectors);
        let sectors = all.min(capacity_sectors);
        let bucket_shift = (64 - sectors.leading_zeros()).saturating_sub(10);
        let buckets = (0..=(sectors >> bucket_shift))
            .map(|bucket| maps.partition_point(|map| map.first <= bucket << bucket_shift).saturating_sub(1) as u16)
            .collect();
        let cylinders = zones.last().map_or(1, |zone| zone.last_cylinder + 1);
        Self { cylinders, heads: hdd.heads, sectors, zones: maps, buckets, bucket_shift }
    }

    /// What makes the layout impossible, if anything.
    pub(crate) fn problem(hdd: &HddProfile, capacity_sectors: u64) -> Option<String> {
        match &hdd.layout {
            Layout::Linear { zones, outer_mb_per_s, inner_mb_per_s, head_skew_ms, cylinder_skew_ms } => {
                let skews = [("head_skew_ms", head_skew_ms), ("cylinder_skew_ms", cylinder_skew_ms)];
                if let Some((key, ms)) = skews.into_iter().find(|(_, ms)| !(0.0..=1000.0).contains(*ms)) {
                    return Some(format!("{key}: {ms} ms is not within 0 and 1000"));
                }
                if !(1..=1000).contains(zones) {
                    return Some(format!("zones: {zones} is not within 1 and 1000"));
                }
                let speeds = [("outer_mb_per_s", outer_mb_per_s), ("inner_mb_per_s", inner_mb_per_s)];
                speeds
                    .into_iter()
                    .find(|(_, speed)| !(**speed > 0.01 && **speed < 1e5))
                    .map(|(key, speed)| format!("{key}: {speed} is not within 0.01 and 100000"))
            }
            Layout::Table { zones, .. } => zones_problem(zones, hdd, capacity_sectors),
        }
    }

    /// The sectors that a layout of listed zones holds; `None` when the layout is impossible.
    pub(crate) fn sectors_of(hdd: &HddProfile) -> Option<u64> {
        Self::problem(hdd, 0).is_none().then(|| Self::new(hdd, u64::MAX).sectors)
    }

    /// Where `sector` is. A sector past the end is the last one.
    pub(crate) fn position(&self, sector: u64) -> Position {
        let sector = sector.min(self.sectors - 1);
        let mut index = usize::from(self.buckets[(sector >> self.bucket_shift) as usize]);
        while let Some(next) = self.zones.get(index + 1) {
            if next.first > sector {
                break;
            }
            index += 1;
        }
        let zone = &self.zones[index];
        zone.position(sector - zone.first, self.heads)
    }
}

/// The angle of a sector that fills its track is a turn, which is 0.
const SECTORS_PER_TRACK_MIN: u32 = 2;
const SECTORS_PER_TRACK_MAX: u32 = 100_000;

/// Slipped defects of one zone; measured drives have dozens.
const SLIPPED_MAX: usize = 10_000;

fn zones_problem(zones: &[Zone], hdd: &HddProfile, capacity_sectors: u64) -> Option<String> {
    if zones.is_empty() || zones.len() > 60_000 {
        return Some(format!("zones: there are {}, not within 1 and 60000", zones.len()));
    }
    let mut previous: Option<u32> = None;
    for zone in zones {
        let Zone { first_cylinder, last_cylinder, sectors_per_track, .. } = *zone;
        if last_cylinder > 1_000_000_000 {
            return Some(format!("zones: cylinder {last_cylinder} is past 1000000000"));
        }
        if first_cylinder > last_cylinder || previous.is_some_and(|last| first_cylinder <= last) {
            return Some(format!("zones: cylinders {first_cylinder} to {last_cylinder} do not follow the zone before"));
        }
        if !(SECTORS_PER_TRACK_MIN..=SECTORS_PER_TRACK_MAX).contains(&sectors_per_track) {
            return Some(format!(
                "zones: {sectors_per_track} sectors per track is not within {SECTORS_PER_TRACK_MIN} and {SECTORS_PER_TRACK_MAX}"
            ));
        }
        if zone.slipped.len() > SLIPPED_MAX {
            return Some(format!(
                "zones: {} slipped defects in one zone are more than {SLIPPED_MAX}",
                zone.slipped.len()
            ));
        }
        previous = Some(last_cylinder);
    }
    let sectors = Geometry::new(hdd, u64::MAX).sectors;
    (sectors < capacity_sectors)
        .then(|| format!("zones: they hold {sectors} sectors, and capacity_bytes asks for {capacity_sectors}"))
}

/// Zones of equal cylinder count whose sustained speed falls evenly, and which hold at least `capacity_sectors`.
fn linear_zones(hdd: &HddProfile, capacity_sectors: u64) -> Vec<Zone> {
    let Layout::Linear { zones, outer_mb_per_s, inner_mb_per_s, head_skew_ms, cylinder_skew_ms } = hdd.layout else {
        return Vec::new();
    };
    let turn_ms = 60_000.0 / hdd.rotation_rpm;
    let heads = f64::from(hdd.heads);
    // A sequential reader loses one skew a track, so the track must hold more than speed times turn.
    let skew_ms = ((heads - 1.0) * head_skew_ms + cylinder_skew_ms) / heads;
    let per_track: Vec<u32> = (0..zones)
        .map(|index| {
            let share = f64::from(index) / f64::from(zones.max(2) - 1);
            let speed = outer_mb_per_s + (inner_mb_per_s - outer_mb_per_s) * share;
            let sectors = (speed * 1e3 * (turn_ms + skew_ms) / 512.0).round() as u32;
            sectors.clamp(SECTORS_PER_TRACK_MIN, SECTORS_PER_TRACK_MAX)
        })
        .collect();
    let per_cylinder: u64 = per_track.iter().map(|spt| u64::from(*spt) * u64::from(hdd.heads)).sum();
    let cylinders_max = u32::MAX / zones.max(1);
    let cylinders = u32::try_from(capacity_sectors.div_ceil(per_cylinder)).unwrap_or(u32::MAX).min(cylinders_max);
    per_track
        .iter()
        .zip(0u32..)
        .map(|(spt, index)| Zone {
            first_cylinder: index * cylinders,
            last_cylinder: (index + 1) * cylinders - 1,
            sectors_per_track: *spt,
            track_skew_sectors: head_skew_ms / turn_ms * f64::from(*spt),
            cylinder_skew_sectors: cylinder_skew_ms / turn_ms * f64::from(*spt),
            ..Zone::default()
        })
        .collect()
}
