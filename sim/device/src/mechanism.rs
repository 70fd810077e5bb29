//! Arm and platters: how long it takes to reach a sector and to pass over a run of sectors.

use crate::geometry::{Geometry, Position};
use crate::profile::HddProfile;
use crate::seek::SeekCurve;

/// Where the arm is, and the tables that say how long everything takes. Times are instants or spans in nanoseconds.
#[derive(Clone, Debug)]
pub(crate) struct Mechanism {
    pub(crate) geometry: Geometry,
    seek: SeekCurve,
    turn_ns: u64,
    /// Turns per nanosecond, in units of 2^-64: one wrapping product gives the angle at any instant.
    turns_per_ns: u64,
    first_angle: u32,
    head_switch_ns: u64,
    write_settle_ns: i64,
    cylinder: u32,
    head: u32,
}

/// What it takes to start on a sector.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// Moving and settling.
    pub(crate) seek_ns: u64,
    /// Waiting for the sector.
    pub(crate) rotation_ns: u64,
    /// Whether the arm changes the cylinder.
    pub(crate) moves: bool,
}

impl Mechanism {
    pub(crate) fn new(hdd: &HddProfile, capacity_sectors: u64, first_angle: u32) -> Self {
        let geometry = Geometry::new(hdd, capacity_sectors);
        let turn_ns = 60e9 / hdd.rotation_rpm;
        Self {
            seek: SeekCurve::new(&hdd.seek, geometry.cylinders),
            geometry,
            turn_ns: turn_ns.round() as u64,
            turns_per_ns: (18_446_744_073_709_551_616.0 / turn_ns).round() as u64,
            first_angle,
            head_switch_ns: (hdd.head_switch_ms * 1e6).round() as u64,
            write_settle_ns: (hdd.write_settle_ms * 1e6).round() as i64,
            cylinder: 0,
            head: 0,
        }
    }

    /// The angle under the heads at `at_ns`.
    fn angle_at(&self, at_ns: u64) -> u32 {
        ((at_ns.wrapping_mul(self.turns_per_ns) >> 32) as u32).wrapping_add(self.first_angle)
    }

    /// The time in which the platters turn by `angle`.
    pub(crate) fn angle_ns(&self, angle: u32) -> u64 {
        (u64::from(angle) * self.turn_ns) >> 32
    }

    /// Time from now, at `at_ns`, until `angle` is under the heads.
    pub(crate) fn wait_ns(&self, at_ns: u64, angle: u32) -> u64 {
        let wait = angle.wrapping_sub(self.angle_at(at_ns));
        // The angle of an instant is rounded; a sector that begins right now must not cost a whole turn.
        if wait > u32::MAX - 4096 { 0 } else { self.angle_ns(wait) }
    }

    /// Time to bring the heads to a track, without waiting for a sector.
    pub(crate) fn move_ns(&self, to: &Position, write: bool) -> u64 {
        if to.cylinder == self.cylinder && to.head == self.head {
            return 0;
        }
        let seek_ns = self.seek.time_ns(to.cylinder.abs_diff(self.cylinder));
        let switch_ns = if to.head == self.head { 0 } else { self.head_switch_ns };
        let moved_ns = seek_ns.max(switch_ns);
        if write { moved_ns.saturating_add_signed(self.write_settle_ns) } else { moved_ns }
    }

    /// What it takes to start on `to` when the arm is told so at `at_ns`.
    pub(crate) fn reach(&self, at_ns: u64, to: &Position, write: bool) -> Reach {
        let seek_ns = self.move_ns(to, write);
        Reach { seek_ns, rotation_ns: self.wait_ns(at_ns + seek_ns, to.angle), moves: to.cylinder != self.cylinder }
    }

    /// The heads are on this track now.
    pub(crate) fn arrive(&mut self, to: &Position) {
        self.cylinder = to.cylinder;
        self.head = to.head;
    }
}
