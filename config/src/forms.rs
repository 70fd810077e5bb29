//! Forms of text that keys hold: what they are called in messages, and whether a text is one.

use crate::key::show_text;
use crate::settings::Metrics;
use globset::GlobBuilder;
use std::path::{Component, Path, PathBuf};

pub(crate) const PATH_FORM: &str = "an absolute path";
pub(crate) const GLOB_FORM: &str = "a glob over cgroup paths";
pub(crate) const DISK_FORM: &str = "the kernel name of a disk";
pub(crate) const NAME_FORM: &str = "a name of 1 to 128 printable characters";

pub(crate) fn show_path(path: &Path) -> Option<String> {
    show_text(&path.to_string_lossy())
}

pub(crate) fn absolute(text: &str) -> Result<PathBuf, String> {
    let path = Path::new(text);
    if !path.is_absolute() {
        return Err("not an absolute path".to_owned());
    }
    if path.components().any(|part| part == Component::ParentDir) || text.contains('\0') {
        return Err("`..` is not allowed here".to_owned());
    }
    Ok(path.to_owned())
}

/// Whether there is such a group is known where the daemon runs.
pub(crate) fn group_name(text: &str) -> Result<String, String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'$');
    if !text.is_empty() && text.len() <= 64 && text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    Err("a group's name or number is needed".to_owned())
}

/// Where metrics are read.
pub(crate) const METRICS_FORM: &str = "\"none\", \"unix:PATH\" or \"loopback:PORT\"";

pub(crate) fn parse_metrics(text: &str) -> Result<Metrics, String> {
    match text.split_once(':') {
        None if text == "none" => Ok(Metrics::None),
        Some(("unix", path)) => absolute(path).map(Metrics::Unix),
        Some(("loopback", port)) => match port.parse() {
            Ok(port) if port > 0 => Ok(Metrics::Loopback(port)),
            _ => Err("the port is not in 1 to 65535".to_owned()),
        },
        _ => Err("expected \"none\", \"unix:PATH\" or \"loopback:PORT\"".to_owned()),
    }
}

pub(crate) fn check_glob(text: &str) -> Result<(), String> {
    if text.is_empty() {
        return Err("empty".to_owned());
    }
    if text.starts_with('/') {
        return Err("cgroup paths have no leading slash here".to_owned());
    }
    let glob = GlobBuilder::new(text).literal_separator(true).build();
    glob.map(drop).map_err(|error| error.kind().to_string())
}

pub(crate) fn check_cgroup_path(text: &str) -> Result<(), String> {
    let normal = |part: Component<'_>| matches!(part, Component::Normal(_));
    if text.is_empty() || text.contains(['\0', '\n']) || !Path::new(text).components().all(normal) {
        return Err("not a plain path below the root of the hierarchy".to_owned());
    }
    Ok(())
}

pub(crate) fn check_disk_name(text: &str) -> Result<(), String> {
    if text.starts_with("/dev/") {
        return Err("write the kernel name, without `/dev/`".to_owned());
    }
    if text.is_empty() || text == "." || text == ".." || text.len() > 31 || text.contains(['/', '\0', '\n', ' ']) {
        return Err("no disk can have this name".to_owned());
    }
    Ok(())
}

pub(crate) fn check_name(text: &str) -> Result<(), String> {
    match text.chars().count() {
        1..=128 if !text.chars().any(char::is_control) => Ok(()),
        _ => Err("not 1 to 128 printable characters".to_owned()),
    }
}
