//! Arm and platters: how long it takes to reach a sector, and when the sectors of a run pass under the head.

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

impl Reach {
    pub(crate) fn total_ns(&self) -> u64 {
        self.seek_ns + self.rotation_ns
    }
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

    /// One turn.
    pub(crate) fn turn_ns(&self) -> u64 {
        self.turn_ns
    }

    /// The time in which `sectors` of a track pass.
    pub(crate) fn sectors_ns(&self, sectors: u64, sector_angle: u32) -> u64 {
        // A turn is less than 2^30 ns and a track less than 2^32 units of angle, so two tracks at once still fit.
        (sectors * u64::from(sector_angle)).saturating_mul(self.turn_ns) >> 32
    }

    /// How many sectors pass completely in `span_ns`, which must be less than two turns.
    pub(crate) fn sectors_in(&self, span_ns: u64, sector_angle: u32) -> u64 {
        (span_ns << 32) / self.turn_ns / u64::from(sector_angle)
    }

    /// Time from now, at `at_ns`, until `angle` is under the heads.
    fn wait_ns(&self, at_ns: u64, angle: u32) -> u64 {
        let wait = angle.wrapping_sub(self.angle_at(at_ns));
        // The angle of an instant is rounded; a sector that begins right now must not cost a whole turn.
        if wait > u32::MAX - 4096 { 0 } else { (u64::from(wait) * self.turn_ns) >> 32 }
    }

    /// Time to bring the heads to a track, without waiting for a sector.
    fn move_ns(&self, to: &Position, write: bool) -> u64 {
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

/// A run of sectors passing under the heads in order, track after track; it moves the arm as it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    write: bool,
    /// First sector of the part that lies on the present track, the instant its leading edge passes, and one past the
    /// track's last sector.
    from: u64,
    from_ns: u64,
    track_end: u64,
    sector_angle: u32,
}

impl Run {
    /// Starts on `first` once the arm, told at `at_ns`, is there.
    pub(crate) fn start(mechanism: &mut Mechanism, at_ns: u64, first: u64, write: bool) -> (Self, Reach, Position) {
        let position = mechanism.geometry.position(first);
        let reach = mechanism.reach(at_ns, &position, write);
        mechanism.arrive(&position);
        let run = Self {
            write,
            from: first,
            from_ns: at_ns + reach.total_ns(),
            track_end: first + u64::from(position.left_on_track),
            sector_angle: position.sector_angle,
        };
        (run, reach, position)
    }

    /// Delays a run that has not begun by whole turns until it begins at `at_ns` or later.
    pub(crate) fn not_before(&mut self, mechanism: &Mechanism, at_ns: u64) -> u64 {
        let late_ns = at_ns.saturating_sub(self.from_ns).div_ceil(mechanism.turn_ns()) * mechanism.turn_ns();
        self.from_ns += late_ns;
        late_ns
    }

    fn next_track(&mut self, mechanism: &mut Mechanism) {
        let end_ns = self.track_end_ns(mechanism);
        *self = Self::start(mechanism, end_ns, self.track_end, self.write).0;
    }

    fn track_end_ns(&self, mechanism: &Mechanism) -> u64 {
        self.from_ns + mechanism.sectors_ns(self.track_end - self.from, self.sector_angle)
    }

    /// The instant at which everything before `end` has passed, where `end` is behind what has been asked before.
    pub(crate) fn passed_ns(&mut self, mechanism: &mut Mechanism, end: u64) -> u64 {
        while end > self.track_end {
            self.next_track(mechanism);
        }
        self.from_ns + mechanism.sectors_ns(end.saturating_sub(self.from), self.sector_angle)
    }

    /// The first sector that has not passed completely at `at_ns`, at most `limit`.
    pub(crate) fn reached(&mut self, mechanism: &mut Mechanism, at_ns: u64, limit: u64) -> u64 {
        while self.track_end < limit && self.track_end_ns(mechanism) <= at_ns {
            self.next_track(mechanism);
        }
        let span_ns = at_ns.saturating_sub(self.from_ns).min(mechanism.turn_ns());
        let passed = mechanism.sectors_in(span_ns, self.sector_angle);
        (self.from + passed).min(self.track_end).min(limit)
    }
}
