//! Disks of guests that servers of ours serve, and what is said to such a server.
//!
//! A server listens on a Unix socket. Each connection carries one request, a line, and one answer, a line; then the server closes
//! it. A name of a disk has no spaces.
//!
//! ```text
//! get weight vm-1          ok 100
//! set weight vm-1 400      ok 400
//! get weight vm-9          gone
//! set weight vm-1 0        refused weights go from 1 to 10000
//! ```
//!
//! A weight is relative to the other disks of the server on the same device: a hundredth of it is what the operator's own weight of the
//! disk is multiplied by. It lasts as long as the server serves the disk, and is 100 until it is set.
//!
//! What else a server is asked for is in `served_report`.

use crate::{DeviceId, KnobFile, TenantId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The longest name of a server or of one of its disks, in bytes.
pub const SERVED_NAME_BYTES_MAX: usize = 128;

/// A disk of a guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedDisk {
    /// Its name at the server.
    pub name: String,
    /// Whose it is.
    pub tenant: TenantId,
}

/// What a server serves that lies on one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedDisks {
    /// The server's name: that of its socket.
    pub server: String,
    /// The device on which the disks lie.
    pub device: DeviceId,
    /// All of them.
    pub disks: Vec<ServedDisk>,
}

/// What the contracts of a server on one device need there beside the other processes of the host, and how they fare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServedContracts {
    /// The server's name: that of its socket.
    pub server: String,
    /// The device.
    pub device: DeviceId,
    /// In whose group the server runs: the kernel counts and weighs there what it does for its guests. None if it runs in no tenant's.
    pub tenant: Option<TenantId>,
    /// Whose the disks are that it serves on the device, sorted. What they transfer goes to the device through the server.
    pub guests: Vec<TenantId>,
    /// The part of the device's time that the contracts take in the long run, by the test that admitted them, in thousandths; 0 without
    /// contracts.
    pub reserved_permille: u32,
    /// Requests that were late, and seconds with less than was promised, of all contracts since the server began.
    pub missed: u64,
}

/// How a device's contracts stand beside the other processes of the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    /// The others are held back as far as the contracts need it.
    pub held: bool,
    /// By what, or why not: a sentence without its full stop.
    pub why: String,
    /// The part of the device's time that the server is given beside others, in thousandths; 0 where nothing is.
    pub part_permille: u32,
    /// The part of its time that others had lately, in thousandths.
    pub others_permille: u32,
}

/// It can stand in a message and in the name of a socket.
pub fn is_served_name(name: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.:@+".contains(letter);
    !name.is_empty() && name.len() <= SERVED_NAME_BYTES_MAX && !name.starts_with('.') && name.chars().all(plain)
}

/// What a server is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerRequest {
    /// Which knob of the disk; [`KnobFile::ServerWeight`] is the only one.
    pub knob: KnobFile,
    /// The disk.
    pub disk: String,
    /// What to set; absent: tell what is set.
    pub text: Option<String>,
}

impl fmt::Display for ServerRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { knob, disk, text } = self;
        match text {
            None => write!(f, "get {} {disk}", knob.file_name()),
            Some(text) => write!(f, "set {} {disk} {text}", knob.file_name()),
        }
    }
}

impl FromStr for ServerRequest {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let unknown = || format!("`{line}` is neither `get weight DISK` nor `set weight DISK WEIGHT`");
        let mut words = line.splitn(4, ' ');
        let (verb, knob, disk, text) = (words.next(), words.next(), words.next(), words.next());
        let text = match verb {
            Some("get") if text.is_none() => None,
            Some("set") => Some(text.ok_or_else(unknown)?.to_owned()),
            _ => return Err(unknown()),
        };
        let disk = disk.filter(|name| is_served_name(name)).ok_or_else(unknown)?.to_owned();
        let weight = knob.filter(|name| *name == KnobFile::ServerWeight.file_name());
        weight.map(|_| Self { knob: KnobFile::ServerWeight, disk, text }).ok_or_else(unknown)
    }
}

/// What it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerAnswer {
    /// What the knob holds now.
    Holds(String),
    /// There is no such disk.
    Gone,
    /// It will not, and why: a sentence.
    Refused(String),
}

impl fmt::Display for ServerAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holds(text) => write!(f, "ok {text}"),
            Self::Gone => f.write_str("gone"),
            Self::Refused(why) => write!(f, "refused {why}"),
        }
    }
}

impl FromStr for ServerAnswer {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        match line.split_once(' ') {
            Some(("ok", text)) => Ok(Self::Holds(text.to_owned())),
            Some(("refused", why)) => Ok(Self::Refused(why.to_owned())),
            None if line == "gone" => Ok(Self::Gone),
            _ => Err(format!("{:?} is no answer of a server of ours", line.chars().take(80).collect::<String>())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ServerAnswer, ServerRequest, is_served_name};
    use crate::KnobFile;

    #[test]
    fn what_is_said_is_understood_and_nothing_else_is() {
        for line in ["get weight vm-1", "set weight vm-1 400", "set weight a:b@c.d_e+f 1 2  3"] {
            let request: ServerRequest = line.parse().unwrap();
            assert_eq!((request.to_string().as_str(), request.knob), (line, KnobFile::ServerWeight));
        }
        for line in
            ["", "get", "get weight", "get weight ", "get weight a b", "set weight a", "put weight a 1", "get io.max a"]
        {
            assert!(line.parse::<ServerRequest>().unwrap_err().contains("`get weight DISK`"), "{line}");
        }
        for line in ["ok 100", "ok ", "gone", "refused weights go from 1 to 10000"] {
            assert_eq!(line.parse::<ServerAnswer>().unwrap().to_string(), line);
        }
        for line in ["", "ok", "OK 1", "gone away", "refused"] {
            assert!(line.parse::<ServerAnswer>().is_err(), "{line}");
        }
    }

    #[test]
    fn a_name_is_one_plain_word() {
        assert!(["vm-1", "libvirt:web_2.vda"].into_iter().all(is_served_name));
        let long = "a".repeat(129);
        assert!(!["", ".", "..", ".a", "a/b", "a b", "ä", "a\n", &long].into_iter().any(is_served_name));
    }
}
