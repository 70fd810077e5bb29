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
    /// The mode that the files say, whatever the command line insists on.
    mode_of_file: Mode,
    seen: Stamp,
    pub(crate) config: Config,
    /// The settings of the start. What takes a restart is still as it is here.
    pub(crate) started: Config,
    pub(crate) generation: u64,
    /// Why the file now on disk is not in force; empty when it is.
    pub(crate) error: String,
}

impl OperatorFile {
    /// Loads the file; `named` is what the command line said, `mode` the mode it insists on.
    pub(crate) fn load(named: Option<&Path>, mode: Option<Mode>) -> Result<Self, ConfigError> {
        Self::load_at(named.unwrap_or(Path::new(CONFIG_DEFAULT)), named.is_some(), mode)
    }

    fn load_at(path: &Path, named: bool, mode: Option<Mode>) -> Result<Self, ConfigError> {
        let mut file = Self {
            seen: stamp(path),
            path: path.to_owned(),
            named,
            mode,
            mode_of_file: Mode::default(),
            config: Config::default(),
            started: Config::default(),
            generation: 1,
            error: String::new(),
        };
        file.take(file.read()?);
        file.started = file.config.clone();
        Ok(file)
    }

    /// The path; without that file the folder of its drop-ins, or nothing when the defaults hold because there are none either.
    pub(crate) fn path_in_force(&self) -> String {
        let is_drop_in = |path: &Path| path.extension().is_some_and(|extension| extension == "toml");
        if self.seen.iter().any(|(path, ..)| *path == self.path) {
            self.path.display().to_string()
        } else if self.seen.iter().any(|(path, ..)| is_drop_in(path)) {
            drop_ins(&self.path).display().to_string()
        } else {
            String::new()
        }
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
                self.take(config);
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
        let load = if self.named { minerva_config::load } else { minerva_config::load_default };
        load(&self.path)
    }

    fn take(&mut self, config: Config) {
        self.mode_of_file = config.engine.mode;
        self.config = config;
        if let Some(mode) = self.mode {
            self.config.engine.mode = mode;
        }
    }

    /// The mode that the command line insists on and the one that the files say, where they differ.
    pub(crate) fn outweighed_mode(&self) -> Option<(Mode, Mode)> {
        let mode = self.mode.filter(|mode| *mode != self.mode_of_file)?;
        Some((mode, self.mode_of_file))
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
    let mut files = vec![path.to_owned()];
    if let Ok(entries) = fs::read_dir(drop_ins(path)) {
        files.extend(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())));
    }
    files.sort();
    let look = |file: PathBuf| {
        let status = fs::metadata(&file).ok()?;
        Some((file, status.mtime(), status.mtime_nsec(), status.len(), status.ino()))
    };
    files.into_iter().filter_map(look).collect()
}

/// The folder of the file's drop-ins.
fn drop_ins(path: &Path) -> PathBuf {
    let mut folder = path.as_os_str().to_owned();
    folder.push(".d");
    PathBuf::from(folder)
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
    fn drop_ins_hold_where_the_file_at_the_default_place_is_absent() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("minerva.toml");
        let mut file = OperatorFile::load_at(&path, false, None).expect("the defaults");
        assert_eq!((file.config.engine.mode, file.path_in_force().as_str()), (Mode::Shadow, ""));
        let folder = directory.path().join("minerva.toml.d");
        std::fs::create_dir(&folder).expect("a folder");
        std::fs::write(folder.join("mode.toml"), "mode = \"enforce\"\n").expect("write");
        assert!(file.has_changed());
        file.reload().expect("a good drop-in");
        assert_eq!(file.config.engine.mode, Mode::Enforce);
        assert_eq!(file.path_in_force(), folder.display().to_string());
        std::fs::write(folder.join("mode.toml"), "mode = \"observed\"\n").expect("write");
        assert!(file.reload().expect_err("a bad drop-in").contains("mode.toml:1"));
        assert_eq!(file.config.engine.mode, Mode::Enforce);
        assert!(OperatorFile::load_at(&path, true, None).is_err(), "one that was named must be there");
        std::fs::write(&path, "").expect("write");
        std::fs::remove_file(folder.join("mode.toml")).expect("removed");
        file.reload().expect("an empty file");
        assert_eq!((file.config.engine.mode, file.path_in_force()), (Mode::Shadow, path.display().to_string()));
    }

    #[test]
    fn the_command_lines_mode_outweighs_the_files_and_what_it_started_with_is_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("minerva.toml");
        std::fs::write(&path, "mode = \"enforce\"\n").expect("write");
        let mut file = OperatorFile::load(Some(&path), Some(Mode::Enforce)).expect("a good file");
        assert_eq!(file.outweighed_mode(), None);
        std::fs::write(&path, "mode = \"observe\"\n[daemon]\nruntime_dir = \"/run/other\"\n").expect("write");
        file.reload().expect("a good file");
        assert_eq!(
            (file.config.engine.mode, file.outweighed_mode()),
            (Mode::Enforce, Some((Mode::Enforce, Mode::Observe)))
        );
        assert_ne!(file.config.daemon.runtime_dir, file.started.daemon.runtime_dir);
    }

    #[test]
    fn a_named_file_must_be_there() {
        assert!(OperatorFile::load(Some(std::path::Path::new("/nowhere/minerva.toml")), None).is_err());
    }
}
