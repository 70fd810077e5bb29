//! Fitted models as files: three generations of each kind, because one may be damaged by a power cut, a full disk or a fault.
//!
//! Files, and not rows of the database: losing one costs minutes of learning, and nothing else depends on it. What is in them is
//! checked by whoever fitted them; here they are bytes.

use minerva_model::{FittedModel, ModelKind};
use std::fs::{File, create_dir_all, rename};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Generations that are kept, the newest being the first.
pub const MODEL_GENERATIONS: u32 = 3;
/// A longer file is none of ours.
const BYTES_MAX: u64 = 64 << 20;

/// A file of a model that could not be used, or written.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {}: {why}", path.display())]
pub struct ModelFileError {
    /// The file.
    pub path: PathBuf,
    /// What was tried: `read`, `write`.
    pub operation: &'static str,
    /// What happened.
    pub why: String,
}

impl ModelFileError {
    fn new(path: &Path, operation: &'static str, why: impl ToString) -> Self {
        Self { path: path.to_owned(), operation, why: why.to_string() }
    }
}

/// The directory that holds them.
#[derive(Clone, Debug)]
pub struct ModelFiles {
    directory: PathBuf,
}

impl ModelFiles {
    /// In a directory, which is made with the first model.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Keeps a model as the newest generation of its kind; the oldest is dropped.
    ///
    /// # Errors
    /// What the system said. The generations before are then still there, but one of them may be missing.
    pub fn keep(&self, model: &FittedModel) -> Result<(), ModelFileError> {
        let new = self.directory.join(format!("{}.new", model.kind.as_str()));
        self.write(&new, model).map_err(|error| ModelFileError::new(&new, "write", error))
    }

    fn write(&self, new: &Path, model: &FittedModel) -> io::Result<()> {
        create_dir_all(&self.directory)?;
        let mut file = File::create(new)?;
        file.write_all(&model.bytes)?;
        file.sync_all()?;
        for generation in (1..MODEL_GENERATIONS).rev() {
            match rename(self.path(model.kind, generation), self.path(model.kind, generation + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        rename(new, self.path(model.kind, 1))?;
        File::open(&self.directory)?.sync_all()
    }

    /// The newest model of a kind that `check` lets pass, and every newer file that could not be used.
    pub fn recall(
        &self,
        kind: ModelKind,
        check: impl Fn(&FittedModel) -> Result<(), String>,
    ) -> (Option<FittedModel>, Vec<ModelFileError>) {
        let mut unusable = Vec::new();
        for generation in 1..=MODEL_GENERATIONS {
            let path = self.path(kind, generation);
            let read = match read(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(|error| error.to_string()),
            };
            let checked = read.and_then(|bytes| {
                let model = FittedModel { kind, bytes };
                check(&model).map(|()| model)
            });
            match checked {
                Ok(model) => return (Some(model), unusable),
                Err(why) => unusable.push(ModelFileError::new(&path, "read", why)),
            }
        }
        (None, unusable)
    }

    fn path(&self, kind: ModelKind, generation: u32) -> PathBuf {
        self.directory.join(format!("{}.{generation}", kind.as_str()))
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(io::Error::other("longer than any model"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::{MODEL_GENERATIONS, ModelFiles};
    use minerva_model::{FittedModel, ModelKind};
    use std::fs;

    fn model(byte: u8) -> FittedModel {
        FittedModel { kind: ModelKind::Sessions, bytes: vec![byte; 3] }
    }

    /// Every byte must be the same.
    fn check(model: &FittedModel) -> Result<(), String> {
        let whole = model.bytes.len() == 3 && model.bytes.iter().all(|byte| *byte == model.bytes[0]);
        if whole { Ok(()) } else { Err("damaged".to_owned()) }
    }

    #[test]
    fn the_newest_whole_generation_is_recalled_and_damaged_ones_are_named() {
        let directory = tempfile::tempdir().unwrap();
        let files = ModelFiles::new(directory.path().join("models"));
        assert_eq!(files.recall(ModelKind::Sessions, check).0, None);
        (1..=5).for_each(|byte| files.keep(&model(byte)).unwrap());
        let path = |generation| directory.path().join(format!("models/sessions.{generation}"));
        assert!((1..=MODEL_GENERATIONS).all(|generation| path(generation).exists()) && !path(4).exists());
        let recalled = |expected: Option<u8>, unusable: usize| {
            let (found, errors) = files.recall(ModelKind::Sessions, check);
            assert_eq!((found, errors.len()), (expected.map(model), unusable), "{errors:?}");
            errors.first().map(ToString::to_string).unwrap_or_default()
        };
        recalled(Some(5), 0);
        fs::write(path(1), [5, 5]).unwrap();
        assert!(recalled(Some(4), 1).ends_with("sessions.1: damaged"));
        fs::remove_file(path(2)).unwrap();
        recalled(Some(3), 1);
        fs::write(path(3), [3, 4, 3]).unwrap();
        recalled(None, 2);
        // A directory where a file is expected is an error that is named, too.
        fs::remove_file(path(1)).unwrap();
        fs::create_dir(path(1)).unwrap();
        recalled(None, 2);
        assert!(files.recall(ModelKind::NextSlice, check).1.is_empty(), "other kinds are other files");
    }

    #[test]
    fn what_cannot_be_written_says_where() {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("models"), "a file").unwrap();
        let error = ModelFiles::new(directory.path().join("models")).keep(&model(1)).unwrap_err().to_string();
        assert!(error.starts_with("write ") && error.contains("models/sessions.new"), "{error}");
    }
}
