//! The operator's file: loaded at start, watched, and loaded again when it changes. What is wrong with a new one is said, and
//! the old one stays in force.

use crate::arguments::CONFIG_DEFAULT;
use minerva_config::{Config, ConfigError};
use minerva_model::Mode;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Tells one state of the files on disk from another without reading them.
type Stamp = Vec<(PathBuf, i64, i64, u64, u64)>;

/// The file, the settings that hold, and why a newer file does not.
#[derive(Debug)]
pub(crate) struct OperatorFile {
    path: PathBuf,
    /// The file was named on the command line, so that its absence is an error.
    named: bool,
    mode: Option<Mode>,
    seen: Stamp,
    pub(crate) config: Config,
    pub(crate) generation: u64,
    /// Why the file now on disk is not in force; empty when it is.
    pub(crate) error: String,
}

impl OperatorFile {
    /// Loads the file; `named` is what the command line said, `mode` the mode it insists on.
    pub(crate) fn load(named: Option<&Path>, mode: Option<Mode>) -> Result<Self, ConfigError> {
        let path = named.unwrap_or(Path::new(CONFIG_DEFAULT)).to_owned();
        let mut file = Self {
            seen: stamp(&path),
            path,
            named: named.is_some(),
            mode,
            config: Config::default(),
            generation: 1,
            error: String::new(),
        };
        file.config = file.read()?;
        Ok(file)
    }

    /// The path, or nothing when the defaults hold because there is no file.
    pub(crate) fn path_in_force(&self) -> String {
        if self.seen.is_empty() { String::new() } else { self.path.display().to_string() }
    }

    /// Some file changed since it was last read.
    pub(crate) fn has_changed(&self) -> bool {
        stamp(&self.path) != self.seen
    }

    /// Reads the files again. On success the new settings hold; else the old ones, and the sentence says why.
    pub(crate) fn reload(&mut self) -> Result<(), String> {
        // Taken first: a file that changes while it is read is read once more, not missed.
        self.seen = stamp(&self.path);
        match self.read() {
            Ok(config) => {
                self.config = config;
                self.generation += 1;
                self.error.clear();
                Ok(())
            }
            Err(error) => {
                self.error = in_full(&error);
                Err(self.error.clone())
            }
        }
    }

    fn read(&self) -> Result<Config, ConfigError> {
        let mut config = match minerva_config::load(&self.path) {
            Err(ConfigError::Read { source, .. }) if !self.named && source.kind() == std::io::ErrorKind::NotFound => {
                Config::default()
            }
            result => result?,
        };
        if let Some(mode) = self.mode {
            config.engine.mode = mode;
        }
        Ok(config)
    }
}

/// The message with its causes.
fn in_full(error: &ConfigError) -> String {
    match error {
        ConfigError::Read { source, .. } => format!("{error}: {source}"),
        _ => error.to_string(),
    }
}

/// What tells whether the file or a drop-in was replaced, written, added or removed.
fn stamp(path: &Path) -> Stamp {
    let mut directory = path.as_os_str().to_owned();
    directory.push(".d");
    let mut files = vec![path.to_owned()];
    if let Ok(entries) = fs::read_dir(PathBuf::from(directory)) {
        files.extend(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())));
    }
    files.sort();
    let look = |file: PathBuf| {
        let status = fs::metadata(&file).ok()?;
        Some((file, status.mtime(), status.mtime_nsec(), status.len(), status.ino()))
    };
    files.into_iter().filter_map(look).collect()
}

#[cfg(test)]
mod tests {
    use super::OperatorFile;
    use minerva_model::Mode;

    #[test]
    fn a_bad_new_file_leaves_the_old_one_in_force() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("minerva.toml");
        std::fs::write(&path, "mode = \"observe\"\n").expect("write");
        let mut file = OperatorFile::load(Some(&path), None).expect("a good file");
        assert_eq!(file.config.engine.mode, Mode::Observe);
        assert!(!file.has_changed());
        std::fs::write(&path, "mode = \"obsrve\" # longer\n").expect("write");
        assert!(file.has_changed());
        let message = file.reload().expect_err("a bad file");
        assert!(message.contains("minerva.toml:1"), "{message}");
        assert_eq!((file.config.engine.mode, file.generation), (Mode::Observe, 1));
        assert!(!file.has_changed());
        std::fs::write(&path, "mode = \"enforce\"\n").expect("write");
        file.reload().expect("a good file");
        assert_eq!((file.config.engine.mode, file.generation), (Mode::Enforce, 2));
    }

    #[test]
    fn a_named_file_must_be_there() {
        assert!(OperatorFile::load(Some(std::path::Path::new("/nowhere/minerva.toml")), None).is_err());
    }
}
