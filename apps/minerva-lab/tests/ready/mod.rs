//! Whether this machine can run figures that need a real disk and the daemon, and what they print.

use minerva_lab::disk::check_machine;
use minerva_lab::workload::blkio_version;
use minerva_model::CgroupVersion;
use std::path::Path;

pub(crate) const LAB: &str = env!("CARGO_BIN_EXE_minerva-lab");

/// It can, with these programs beside `minerva-lab`; else the reason is printed.
pub(crate) fn is_ready(programs: &[&str]) -> bool {
    if let Err(error) = check_machine() {
        println!("skipped: {error}");
        return false;
    }
    if blkio_version() == CgroupVersion::Absent {
        println!("skipped: needs a blkio or io cgroup controller");
        return false;
    }
    // Other packages' programs are built with the workspace only.
    let missing = programs.iter().find(|name| !Path::new(LAB).with_file_name(name).exists());
    if let Some(name) = missing {
        println!("skipped: needs {name} beside minerva-lab: `cargo build --workspace --bins`");
    }
    missing.is_none()
}

/// The lines of a figure, of what it printed with `--json`.
pub(crate) fn lines(printed: Vec<u8>) -> Vec<serde_json::Value> {
    let lines = String::from_utf8(printed).unwrap();
    lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
