//! What a comparison found, in a drop-in of the operator's file: `disk-NAME.toml` beside the others. One that somebody else wrote, or
//! changed, stays as it is.

use anyhow::{Context, bail, ensure};
use rustix::fs::{CWD, RenameFlags, renameat_with};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

const HEADER: &str =
    "# Written by `minerva-ctl doctor --compare --write`, which leaves it alone once somebody else has changed it.\n";

/// A key of a disk's table, and its value as it stands in a file.
pub(super) type Line = (&'static str, String);

/// The drop-in of a disk.
#[derive(Debug)]
pub(super) struct DropIn {
    pub(super) path: PathBuf,
    disk: String,
    /// What an earlier comparison wrote; nothing where there is no such file.
    before: Option<Written>,
}

/// What this program wrote.
#[derive(Debug)]
struct Written {
    text: String,
    lines: BTreeMap<String, String>,
}

impl DropIn {
    /// Of this disk, beside this file of the operator's. Errors: there is one that this program did not write.
    pub(super) fn of(disk: &str, file: &Path) -> anyhow::Result<Self> {
        let mut folder = file.as_os_str().to_owned();
        folder.push(".d");
        let path = PathBuf::from(folder).join(format!("disk-{disk}.toml"));
        let before = Written::read(disk, &path)?;
        Ok(Self { path, disk: disk.to_owned(), before })
    }

    /// Adds these lines, or changes what an earlier comparison wrote to them. The file is there whole or as it was.
    pub(super) fn write(&self, lines: &[Line]) -> anyhow::Result<()> {
        let mut all = self.before.as_ref().map(|before| before.lines.clone()).unwrap_or_default();
        all.extend(lines.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        let text = text(&self.disk, &all);
        let failed = || format!("failed to write {}", self.path.display());
        // An elevator that the file has no word for.
        minerva_config::parse(&text, &self.path).with_context(failed)?;
        let folder = self.path.parent().with_context(failed)?;
        fs::create_dir_all(folder).with_context(failed)?;
        // Not a name that is read as a drop-in.
        let new = folder.join(format!(".{}.new", std::process::id()));
        let put = self.put(&new, &text);
        if put.is_err() {
            let _ = fs::remove_file(&new);
        }
        put.with_context(failed)?;
        // That it is there outlives a power cut.
        File::open(folder).and_then(|folder| folder.sync_all()).with_context(failed)
    }

    fn put(&self, new: &Path, text: &str) -> anyhow::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(new)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        match &self.before {
            // One that somebody makes meanwhile is not overwritten either.
            None => renameat_with(CWD, new, CWD, &self.path, RenameFlags::NOREPLACE)?,
            Some(before) => {
                let is_ours = fs::read_to_string(&self.path).is_ok_and(|text| text == before.text);
                ensure!(is_ours, "somebody changed it meanwhile");
                fs::rename(new, &self.path)?;
            }
        }
        Ok(())
    }
}

impl Written {
    /// What is at this path, if it is this program's.
    fn read(disk: &str, path: &Path) -> anyhow::Result<Option<Self>> {
        let found = match path.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            found => found.with_context(|| format!("failed to look at {}", path.display()))?,
        };
        // A link leads to a file that somebody else made.
        if found.is_file()
            && let Ok(text) = fs::read_to_string(path)
            && let Some(lines) = lines(disk, &text)
            && self::text(disk, &lines) == text
        {
            return Ok(Some(Self { text, lines }));
        }
        bail!(
            "{0} was not written by `doctor --compare --write`, or was changed since, and is left alone: compare without --write and \
             add the lines yourself, or move it away",
            path.display()
        )
    }
}

/// The head of a disk's table. Names that the kernel makes of slashes need quotes.
pub(super) fn table(disk: &str) -> String {
    let is_bare = disk.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_');
    if is_bare { format!("[devices.{disk}]") } else { format!("[devices.\"{disk}\"]") }
}

fn text(disk: &str, lines: &BTreeMap<String, String>) -> String {
    let lines: String = lines.iter().map(|(key, value)| format!("{key} = {value}\n")).collect();
    format!("{HEADER}{}\n{lines}", table(disk))
}

/// What a drop-in says of a disk.
fn lines(disk: &str, text: &str) -> Option<BTreeMap<String, String>> {
    let file: toml::Table = text.parse().ok()?;
    let table = file.get("devices")?.get(disk)?.as_table()?;
    Some(table.iter().map(|(key, value)| (key.clone(), value.to_string())).collect())
}

#[cfg(test)]
mod tests {
    use super::{DropIn, HEADER, Line, table};
    use minerva_model::BackEnd;
    use std::fs;
    use std::path::Path;

    fn line(key: &'static str, value: &str) -> Line {
        (key, value.to_owned())
    }

    fn write(disk: &str, file: &Path, lines: &[Line]) -> anyhow::Result<()> {
        DropIn::of(disk, file)?.write(lines)
    }

    #[test]
    fn lines_are_written_whole_and_joined_with_those_of_an_earlier_comparison() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("minerva.toml");
        fs::write(&file, "[devices.sda]\nback_end = \"max\"\n").expect("written");
        write("sda", &file, &[line("elevator", "\"bfq\""), line("back_end", "\"bfq\"")]).expect("written");
        write("sda", &file, &[line("strict_guarantees", "true"), line("back_end", "\"observe\"")]).expect("written");
        let path = place.path().join("minerva.toml.d/disk-sda.toml");
        let text = fs::read_to_string(&path).expect("a drop-in");
        let expected = "[devices.sda]\nback_end = \"observe\"\nelevator = \"bfq\"\nstrict_guarantees = true\n";
        assert_eq!(text, format!("{HEADER}{expected}"));
        let read = minerva_config::load(&file).expect("good").engine.devices.remove("sda").expect("a disk");
        assert_eq!((read.back_end, read.elevator.as_deref()), (Some(BackEnd::Observe), Some("bfq")));
        write("cciss!c0d0", &file, &[line("elevator", "\"none\"")]).expect("written");
        assert_eq!(table("cciss!c0d0"), "[devices.\"cciss!c0d0\"]");
        assert!(minerva_config::load(&file).expect("good").engine.devices.contains_key("cciss!c0d0"));
        // Nothing half is left beside them, and nothing is written that the file has no word for.
        assert!(write("sdb", &file, &[line("elevator", "\"unheard-of\"")]).is_err());
        assert_eq!(fs::read_dir(path.parent().expect("a folder")).expect("files").count(), 2);
    }

    #[test]
    fn what_somebody_else_wrote_changed_or_made_meanwhile_is_left_as_it_is() {
        let place = tempfile::tempdir().expect("a directory");
        let file = place.path().join("minerva.toml");
        let path = place.path().join("minerva.toml.d/disk-sda.toml");
        let strict = [line("strict_guarantees", "true")];
        let is_refused_and_left = |text: &str| {
            fs::write(&path, text).expect("written");
            let why = write("sda", &file, &strict).expect_err("it is somebody else's").to_string();
            assert!(why.contains("is left alone"), "{why}");
            assert_eq!(fs::read_to_string(&path).expect("a file"), text);
        };
        write("sda", &file, &strict).expect("written");
        let ours = fs::read_to_string(&path).expect("a drop-in");
        is_refused_and_left(&format!("{ours}# mine\n"));
        is_refused_and_left(&ours.replace("true", "false # for now"));
        is_refused_and_left("[devices.sda]\nstrict_guarantees = true\n");
        is_refused_and_left(&format!("{HEADER}[devices.sdb]\nstrict_guarantees = true\n"));
        is_refused_and_left("");
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink("elsewhere", &path).expect("a link");
        assert!(DropIn::of("sda", &file).is_err(), "a link that leads nowhere is somebody's, too");
        fs::remove_file(&path).expect("removed");

        // Between the look and the writing.
        for before in [None, Some(ours)] {
            if let Some(before) = &before {
                fs::write(&path, before).expect("written");
            }
            let looked = DropIn::of("sda", &file).expect("nobody's, or ours");
            fs::write(&path, "# mine\n").expect("written");
            looked.write(&strict).expect_err("somebody was there");
            assert_eq!(fs::read_to_string(&path).expect("a file"), "# mine\n");
            assert_eq!(fs::read_dir(path.parent().expect("a folder")).expect("files").count(), 1);
            fs::remove_file(&path).expect("removed");
        }
    }
}
