//! A systemd unit that writes a directory's files to the pool, as `fs.toml` has it: `UNIT:DIRECTORY`, or `UNIT:DIRECTORY:temporary`.

use crate::forms::absolute;
use std::path::PathBuf;

pub(super) const FORM: &str = "UNIT:DIRECTORY or UNIT:DIRECTORY:temporary";
/// Only services have steps before and after them.
const KIND: &str = ".service";
/// The longest name of a unit; see `systemd.unit(5)`.
const UNIT_BYTES_MAX: usize = 255;

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PoolUnit {
    /// The unit, such as `dump.service`.
    pub unit: String,
    /// The directory, as the unit and everybody else names it.
    pub directory: PathBuf,
    /// It goes to memory in place of the disk set aside.
    pub is_temporary: bool,
}

impl PoolUnit {
    /// Of its text; the error is a label.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = text.split(':');
        let (Some(unit), Some(directory), pool, None) = (parts.next(), parts.next(), parts.next(), parts.next()) else {
            return Err(format!("expected {FORM}"));
        };
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.@-\\".contains(&byte);
        let is_unit = unit.len() <= UNIT_BYTES_MAX && unit.bytes().all(is_plain) && !unit.starts_with('.');
        if !is_unit || !unit.ends_with(KIND) {
            return Err(format!("`{unit}` is no name of a service"));
        }
        // What a unit file would have to quote.
        let is_path = |byte: u8| byte.is_ascii_graphic() && !b"\"'\\%$;#".contains(&byte);
        if !directory.bytes().all(is_path) || directory == "/" {
            return Err("a directory of letters, digits and `/._-+=@,~` is needed".to_owned());
        }
        let is_temporary = match pool {
            None | Some("stable") => false,
            Some("temporary") => true,
            Some(other) => return Err(format!("`{other}` is no pool: there are temporary and stable")),
        };
        Ok(Self { unit: unit.to_owned(), directory: absolute(directory)?, is_temporary })
    }

    /// As it is written.
    pub(super) fn text(&self) -> String {
        let pool = if self.is_temporary { ":temporary" } else { "" };
        format!("{}:{}{pool}", self.unit, self.directory.display())
    }
}

#[cfg(test)]
mod tests {
    use super::PoolUnit;

    #[test]
    fn a_unit_and_its_directory_are_read_as_they_are_written() {
        for text in ["dump.service:/srv/dump", "a@b-c.service:/srv/x.y/z:temporary"] {
            assert_eq!(PoolUnit::parse(text).map(|unit| unit.text()).as_deref(), Ok(text));
        }
        assert_eq!(PoolUnit::parse("a.service:/b:stable").map(|unit| unit.is_temporary), Ok(false));
        for text in [
            "",
            "a.service",
            "a:/b",
            "a.timer:/b",
            "../a.service:/b",
            "a.service:b",
            "a.service:/",
            "a.service:/b/../c",
            "a.service:/b c",
            "a.service:/b%h",
            "a.service:/b:ram",
            "a.service:/b:stable:x",
        ] {
            assert!(PoolUnit::parse(text).is_err(), "{text}");
        }
    }
}
