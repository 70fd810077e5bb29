//! Profiles: every parameter of a disk, as TOML text or as one of the built-in ones.
//!
//! Units are in the names. A megabyte is 10^6 bytes. Angles and skews are in sectors of the zone they belong to.

mod hdd;
mod hdd_check;
mod ssd;

use crate::device::{RequestError, SECTOR_BYTES};
use crate::{Request, check_request};
use serde::{Deserialize, Serialize};

pub use hdd::{CacheProfile, HddProfile, Layout, Overhead, ReadAhead, Serpentine, Sparing, WriteBack, Zone};
pub use ssd::{Collection, PageTime, SsdProfile};

/// One disk: its name, its size, and how its medium behaves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Short name, as given on a command line.
    pub name: String,
    /// Where the numbers come from.
    pub source: String,
    /// Size of the disk.
    pub capacity_bytes: u64,
    /// Requests the disk takes at once. 1 means first come, first served.
    pub queue_depth: u32,
    /// Speed of the cable between the host and the disk's buffer.
    pub interface_mb_per_s: f64,
    /// The same for writes, where it differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_write_mb_per_s: Option<f64>,
    /// What the bytes are stored on.
    pub media: Media,
}

/// What the bytes are stored on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Media {
    /// Turning platters and an arm.
    Hdd(HddProfile),
    /// Flash behind a translation layer.
    Ssd(SsdProfile),
}

/// Text that is not a profile.
#[derive(Debug, thiserror::Error)]
#[error("disk profile, line {line}: {message}")]
pub struct ProfileError {
    /// Line of the text, from 1.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl Profile {
    /// Reads a profile from TOML text.
    pub fn parse(text: &str) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start).min(text.len());
            let line = 1 + text.as_bytes()[..offset].iter().filter(|byte| **byte == b'\n').count();
            ProfileError { line, message: error.message().trim().to_owned() }
        })?;
        match profile.problem() {
            None => Ok(profile),
            Some(message) => Err(ProfileError { line: line_of(text, &message), message }),
        }
    }

    /// As TOML text, which [`Profile::parse`] reads back.
    #[expect(clippy::expect_used, reason = "the profile's own types are all such that TOML can hold")]
    pub fn to_text(&self) -> String {
        toml::to_string(self).expect("a profile is TOML")
    }

    /// Whether this disk can serve `request` as it stands.
    pub fn check(&self, request: &Request) -> Result<(), RequestError> {
        check_request(self.capacity_bytes, request)
    }

    /// What makes the numbers impossible, if anything. The text starts with the key at fault.
    pub fn problem(&self) -> Option<String> {
        if self.capacity_bytes < SECTOR_BYTES {
            return Some(format!("capacity_bytes: {} is less than one sector of 512 bytes", self.capacity_bytes));
        }
        if !(1..=256).contains(&self.queue_depth) {
            return Some(format!("queue_depth: {} is not within 1 and 256", self.queue_depth));
        }
        let write_speed = self.interface_write_mb_per_s.unwrap_or(self.interface_mb_per_s);
        let speeds = [("interface_mb_per_s", self.interface_mb_per_s), ("interface_write_mb_per_s", write_speed)];
        if let Some((key, speed)) = speeds.into_iter().find(|(_, speed)| !(1e-3..=1e6).contains(speed)) {
            return Some(format!("{key}: {speed} is not within 0.001 and 1000000"));
        }
        match &self.media {
            Media::Hdd(hdd) => hdd.problem(self.capacity_bytes / SECTOR_BYTES),
            Media::Ssd(ssd) => ssd.problem(),
        }
    }
}

/// The line that sets the key with which `message` starts; 1 when there is none.
fn line_of(text: &str, message: &str) -> usize {
    let key = message.split([':', '.', ' ']).next().unwrap_or_default();
    text.lines().position(|line| line.trim_start().starts_with(key)).map_or(1, |index| index + 1)
}

/// Profiles by name, each in a file of its name.
macro_rules! built_in {
    ($($name:literal,)+) => {
        const BUILT_IN: &[(&str, &str)] = &[$(($name, include_str!(concat!("../profiles/", $name, ".toml")))),+];

        /// The names that [`profile`] knows.
        pub fn profile_names() -> &'static [&'static str] {
            &[$($name),+]
        }
    };
}

built_in! {
    "sata7200-80g",
    "sas10k-300g",
    "sata-ssd",
    "slow-ssd",
}

/// A built-in profile by name.
pub fn profile(name: &str) -> Option<Profile> {
    let (_, text) = BUILT_IN.iter().find(|(built_in, _)| *built_in == name)?;
    Profile::parse(text).ok()
}

#[cfg(test)]
mod tests {
    use super::{Profile, profile, profile_names};

    #[test]
    fn every_built_in_profile_parses_and_survives_a_round_trip() {
        for name in profile_names() {
            let built_in = profile(name).expect(name);
            assert_eq!(built_in.name, *name);
            assert_eq!(Profile::parse(&built_in.to_text()).unwrap(), built_in);
        }
        assert!(profile("drum").is_none());
    }

    proptest::proptest! {
        /// Any numbers either are refused or make a disk that serves requests.
        #[test]
        fn no_number_makes_a_disk_fall(which in 0usize..super::BUILT_IN.len(), place in 0usize..40, number in proptest::prop_oneof![
            proptest::prelude::Just("nan".to_owned()), proptest::prelude::Just("inf".to_owned()),
            proptest::prelude::Just("-1".to_owned()), proptest::prelude::Just("0".to_owned()),
            proptest::prelude::Just("1e300".to_owned()), proptest::prelude::Just("4294967295".to_owned()),
            proptest::prelude::Just("9223372036854775807".to_owned()), proptest::prelude::Just("1e-9".to_owned()),
        ]) {
            let (_, text) = super::BUILT_IN[which];
            let is_number = |line: &str| line.split(" = ").nth(1).is_some_and(|value| value.starts_with(|c: char| c.is_ascii_digit()));
            let places: Vec<usize> = text.lines().enumerate().filter(|(_, line)| is_number(line)).map(|(i, _)| i).collect();
            let at = places[place % places.len()];
            let changed: Vec<String> = text.lines().enumerate().map(|(index, line)| match line.split_once(" = ") {
                Some((key, _)) if index == at => format!("{key} = {number}"),
                _ => line.to_owned(),
            }).collect();
            if let Ok(profile) = Profile::parse(&changed.join("\n")) {
                let mut device = profile.build(None, 1);
                for tag in 0..8u64 {
                    let kind = if tag % 3 == 1 { crate::Kind::Write } else { crate::Kind::Read };
                    let offset_bytes = tag.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                    let now = device.next_completion().unwrap_or_default();
                    device.submit(now, crate::Request { tag, kind, offset_bytes, length_bytes: 65536 });
                }
                let mut done = 0;
                while let Some(at) = device.next_completion() {
                    done += usize::from(device.complete(at).is_some());
                }
                proptest::prop_assert_eq!(done, 8);
            }
        }
    }

    /// So many reads from the start on that some have a track of their own.
    fn reads_served(profile: &Profile) -> usize {
        let mut device = profile.build(None, 1);
        for tag in 0..8u64 {
            let now = device.next_completion().unwrap_or_default();
            let offset_bytes = tag * 65_536;
            device.submit(now, crate::Request { tag, kind: crate::Kind::Read, offset_bytes, length_bytes: 65_536 });
        }
        let mut done = 0;
        while let Some(at) = device.next_completion() {
            done += usize::from(device.complete(at).is_some());
        }
        done
    }

    #[test]
    fn a_track_holds_two_sectors_however_slow_the_disk_is_said_to_be() {
        let good = include_str!("../profiles/sata7200-80g.toml");
        let slow = good.replace("mb_per_s = 61.0", "mb_per_s = 0.02").replace("mb_per_s = 29.0", "mb_per_s = 0.02");
        assert_eq!(reads_served(&Profile::parse(&slow).unwrap()), 8);
        // As many cylinders as have a number, of all zones together.
        let large = slow.replace("= 80_026_361_856", "= 80_000_000_000_000");
        assert_eq!(reads_served(&Profile::parse(&large).unwrap()), 8);
        let (linear, rest) = good.split_once("[media.hdd.layout.linear]").unwrap();
        let after = &rest[rest.find("[media.hdd.seek").unwrap()..];
        for (sectors_per_track, is_taken) in [(1, false), (2, true)] {
            let table = format!(
                "{linear}[media.hdd.layout.table]
sparing = \"none\"
[[media.hdd.layout.table.zones]]
first_cylinder = 0
last_cylinder = 99_999_999
sectors_per_track = {sectors_per_track}
track_skew_sectors = 0
cylinder_skew_sectors = 0

{after}"
            );
            match Profile::parse(&table) {
                Ok(profile) => assert_eq!((is_taken, reads_served(&profile)), (true, 8)),
                Err(error) => assert!(!is_taken && error.message.contains("1 sectors per track"), "{error}"),
            }
        }
    }

    #[test]
    fn a_wrong_profile_is_refused_with_its_line() {
        let good = include_str!("../profiles/sata7200-80g.toml");
        for (from, to, message) in [
            ("rotation_rpm = 7200", "rotation_rpm = 0", "rotation_rpm"),
            ("rotation_rpm", "rotation_rpn", "rotation_rpn"),
            ("heads = 2", "heads = 0", "heads"),
            ("queue_depth = 32", "queue_depth = 1000", "queue_depth"),
            ("average_ms = 8.9", "average_ms = 0.1", "average 0.1"),
        ] {
            assert!(good.contains(from), "{from}");
            let error = Profile::parse(&good.replace(from, to)).unwrap_err();
            let line = 1 + good.lines().position(|line| line.contains(from)).unwrap();
            assert!(error.to_string().contains(message), "{error}");
            assert!(error.line == line || message.starts_with("average"), "{error}, expected line {line}");
        }
    }
}
