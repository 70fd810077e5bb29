//! I/O sessions: cut at a new open file, a sharp rise in memory or new connections (Malensek et al.
//! 2016, section 4.1).

use super::features::{Reading, Usage};
use crate::number::quantity;
use serde::{Deserialize, Serialize};

/// A session ends when the tenant did no I/O for so long.
const IDLE_SECONDS: f64 = 10.0;
/// Memory rose sharply: by this factor and by so many bytes.
const MEMORY_FACTOR: f64 = 1.25;
const MEMORY_BYTES: f64 = 16.0 * 1024.0 * 1024.0;
/// New connections: so many more sockets than before.
const SOCKETS: f64 = 1.0;
/// A cut may follow another only after so long: a program that opens a thousand files is one session, not a thousand.
const CUT_SECONDS: f64 = 5.0;
/// Upper limits of the classes, in bytes that a session transfers. Fixed before any figure was measured.
const CLASS_LIMITS: [f64; 3] = [1024.0 * 1024.0, 64.0 * 1024.0 * 1024.0, 1024.0 * 1024.0 * 1024.0];

/// How many classes there are.
pub const SESSION_CLASSES: usize = CLASS_LIMITS.len() + 1;

/// How much a session transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum SessionClass {
    /// Up to 1 MiB.
    Idle,
    /// Up to 64 MiB.
    Light,
    /// Up to 1 GiB.
    Moderate,
    /// More.
    Heavy,
}

impl SessionClass {
    /// The word people see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Light => "light",
            Self::Moderate => "moderate",
            Self::Heavy => "heavy",
        }
    }

    /// The class of a session that transfers so many bytes in all.
    pub fn of(bytes: f64) -> Self {
        match CLASS_LIMITS.iter().filter(|limit| bytes > **limit).count() {
            0 => Self::Idle,
            1 => Self::Light,
            2 => Self::Moderate,
            _ => Self::Heavy,
        }
    }
}

/// Tells where a tenant's sessions begin and what the one under way has transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cutter {
    before: Option<Usage>,
    attained: f64,
    age: f64,
    idle: f64,
    is_open: bool,
}

impl Cutter {
    /// Takes a slice; the bytes that the session transferred which has just ended, if one has: 0 of one that did not come to anything. The
    /// slice itself belongs to the new session.
    pub fn observe(&mut self, reading: &Reading) -> Option<f64> {
        let bytes = quantity(reading.read_bytes) + quantity(reading.write_bytes);
        let seconds = quantity(reading.elapsed_seconds);
        let begins = reading.usage.is_some_and(|usage| self.before.is_some_and(|before| is_new(&before, &usage)));
        self.before = reading.usage.or(self.before);
        self.idle = if bytes > 0.0 { 0.0 } else { self.idle + seconds };
        let cut = begins && self.age >= CUT_SECONDS;
        let ends = self.is_open && (cut || self.idle >= IDLE_SECONDS);
        let ended = ends.then_some(self.attained);
        if ends {
            (self.attained, self.age, self.is_open) = (0.0, 0.0, false);
        }
        if bytes > 0.0 || begins {
            self.is_open = true;
        }
        if self.is_open {
            self.attained += bytes;
            self.age += seconds;
        }
        ended
    }

    /// Bytes transferred and seconds passed since the session began; zeros between sessions.
    pub fn progress(&self) -> (f64, f64) {
        (self.attained, self.age)
    }

    /// Whether a session is under way.
    pub fn is_open(&self) -> bool {
        self.is_open
    }
}

fn is_new(before: &Usage, now: &Usage) -> bool {
    let files = |usage: &Usage| usage.open_files - usage.open_sockets;
    files(now) > files(before) && now.open_file_bytes > before.open_file_bytes
        || now.open_sockets >= before.open_sockets + SOCKETS
        || now.memory_bytes > (before.memory_bytes * MEMORY_FACTOR).max(before.memory_bytes + MEMORY_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(bytes: f64, usage: Usage) -> Reading {
        Reading { elapsed_seconds: 1.0, read_bytes: bytes, usage: Some(usage), ..Reading::default() }
    }

    #[test]
    fn sessions_are_cut_at_files_memory_connections_and_silence() {
        let calm =
            Usage { open_files: 5.0, open_sockets: 1.0, memory_bytes: 1e8, open_file_bytes: 10.0, ..Usage::default() };
        let changes = [
            Usage { open_files: 6.0, open_file_bytes: 1e9, ..calm },
            Usage { memory_bytes: 2e8, ..calm },
            Usage { open_files: 6.0, open_sockets: 2.0, ..calm },
        ];
        for change in changes {
            let mut cutter = Cutter::default();
            for _ in 0..8 {
                assert_eq!(cutter.observe(&slice(100.0, calm)), None);
            }
            assert_eq!(cutter.observe(&slice(7.0, change)), Some(800.0), "{change:?}");
            assert_eq!(cutter.progress(), (7.0, 1.0));
            let ends: Vec<f64> = (0..30).filter_map(|_| cutter.observe(&slice(0.0, change))).collect();
            assert_eq!((ends, cutter.is_open()), (vec![7.0], false), "silence ends it once");
        }
    }

    #[test]
    fn a_session_without_bytes_ends_too() {
        let mut cutter = Cutter::default();
        let sockets = |open_sockets| Usage { open_files: 9.0, open_sockets, ..Usage::default() };
        assert_eq!(cutter.observe(&slice(0.0, sockets(1.0))), None);
        assert_eq!((cutter.observe(&slice(0.0, sockets(2.0))), cutter.is_open()), (None, true));
        let ends: Vec<f64> = (0..30).filter_map(|_| cutter.observe(&slice(0.0, sockets(2.0)))).collect();
        assert_eq!((ends, cutter.is_open()), (vec![0.0], false));
    }

    #[test]
    fn a_thousand_files_are_one_session() {
        let mut cutter = Cutter::default();
        let ends = (0..4).filter_map(|second| {
            let files = f64::from(second) * 1000.0;
            cutter.observe(&slice(50.0, Usage { open_files: files, open_file_bytes: files, ..Usage::default() }))
        });
        assert_eq!(ends.count(), 0);
    }

    #[test]
    fn classes_have_fixed_limits() {
        let classes = [0.0, 2e6, 1e8, 1e10].map(SessionClass::of);
        assert_eq!(classes, [SessionClass::Idle, SessionClass::Light, SessionClass::Moderate, SessionClass::Heavy]);
        assert_eq!(SessionClass::of(f64::NAN), SessionClass::Idle);
    }
}
