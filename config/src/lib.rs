//! The operator's TOML files: parse, validate, point at the line. `minerva.toml` is the daemon's, `blk.toml` (module `blk`) that of the
//! server for VM disks, `fs.toml` (module `fs`) that of the cache.
//!
//! Every key is one row of `keys`; from these rows come the parser, the commented default file ([`default_file`]) and the
//! JSON schema ([`json_schema`]). A file is judged as a whole: all its errors are shown, each with its line, and nothing of
//! it is used while one remains. Drop-ins are read onto the same settings, so a later file replaces single keys.
//!
//! Limits: a file is at most [`FILE_BYTES_MAX`] long.

mod actuation_keys;
mod blk;
mod fennel_keys;
mod file;
mod forecast_keys;
mod forms;
mod fs;
mod identities;
mod jobs;
mod judge;
mod key;
mod keys;
mod layered;
mod listener_keys;
mod missing;
mod part_keys;
mod participation;
mod problem;
mod settings;
mod template;
mod value;

pub use blk::{
    BlkConfig, BlkDeviceSettings, BlkServerSettings, CpuSet, DEVICE_OTHER, VM_DISK_NAME_FORM, VmDiskSettings,
    attach_lines, blk_default_file, contract_ranges, is_vm_disk_name, load_blk, parse_blk,
};
pub use fs::{
    FsConfig, FsServerSettings, FsTenantSettings, MACHINE_IDS, MigrationSettings, PoolUnit, SecondAccount,
    StablePoolSettings, TemporaryPoolSettings, fs_default_file, load_fs, machine_attach_lines, machine_mistakes,
    parse_fs,
};
pub use missing::how_to_start;
pub use participation::{Identity, KnownBy, PORT_DEFAULT, ParticipationSettings, TenantLimits};
pub use problem::{ConfigError, ConfigErrors, Problem};
pub use settings::{Config, DaemonSettings, LogFormat, LogLevel, LogSettings, Metrics, NamedSettings};
pub use template::{default_file, json_schema};

use problem::Source;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A longer file is refused: nobody wrote it by hand.
pub const FILE_BYTES_MAX: u64 = 1 << 20;

/// Judges one text; `origin` is the name that errors show.
pub fn parse(text: &str, origin: &Path) -> Result<Config, ConfigErrors> {
    parse_all([(origin.to_owned(), text.to_owned())])
}

/// Judges the file at `path` and its drop-ins, `path` + `.d/*.toml`, in the order of their names.
pub fn load(path: &Path) -> Result<Config, ConfigError> {
    Ok(parse_all(read_with_drop_ins(path)?)?)
}

/// As [`load`], where nobody named the file: it may be absent, and its drop-ins hold all the same.
pub fn load_default(path: &Path) -> Result<Config, ConfigError> {
    let mut files = Vec::new();
    match read(path) {
        Ok(text) => files.push((path.to_owned(), text)),
        Err(ConfigError::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    files.extend(read_drop_ins(path)?);
    Ok(parse_all(files)?)
}

/// The file, and its drop-ins in the order of their names.
fn read_with_drop_ins(path: &Path) -> Result<Vec<(PathBuf, String)>, ConfigError> {
    let mut files = vec![(path.to_owned(), read(path)?)];
    files.extend(read_drop_ins(path)?);
    Ok(files)
}

fn read_drop_ins(path: &Path) -> Result<Vec<(PathBuf, String)>, ConfigError> {
    drop_ins(path)?.into_iter().map(|drop_in| Ok((drop_in.clone(), read(&drop_in)?))).collect()
}

fn parse_all(files: impl IntoIterator<Item = (PathBuf, String)>) -> Result<Config, ConfigErrors> {
    let mut reader = file::Reader::default();
    for (path, text) in files {
        reader.read(&Arc::new(Source { path, text }));
    }
    reader.finish();
    if reader.problems.iter().any(|problem| problem.is_error) {
        return Err(ConfigErrors { problems: reader.problems });
    }
    reader.config.warnings = reader.problems;
    Ok(reader.config)
}

fn drop_ins(path: &Path) -> Result<Vec<PathBuf>, ConfigError> {
    let mut directory = path.as_os_str().to_owned();
    directory.push(".d");
    let directory = PathBuf::from(directory);
    let failed = |source| ConfigError::Read { path: directory.clone(), source };
    let entries = match std::fs::read_dir(&directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let file = entry.map_err(failed)?.path();
        let hidden = file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && file.extension().is_some_and(|extension| extension == "toml") {
            found.push(file);
        }
    }
    found.sort();
    Ok(found)
}

fn read(path: &Path) -> Result<String, ConfigError> {
    let failed = |source| ConfigError::Read { path: path.to_owned(), source };
    let refused = |detail| ConfigError::NotConfig { path: path.to_owned(), detail };
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(failed)?;
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(refused(format!("longer than {FILE_BYTES_MAX} bytes, so it is not a settings file")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|byte| **byte == b'\n').count() + 1;
        refused(format!("line {line} is not UTF-8 text; save the file as UTF-8"))
    })
}
