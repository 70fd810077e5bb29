//! Programs that prepare a guest.

use super::error::GuestError;
use std::io;
use std::process::Command;

/// Runs a program to its end and returns what it printed.
pub(crate) fn run(command: &mut Command, program: &'static str) -> Result<String, GuestError> {
    let package = match program {
        "apt-cache" | "apt-get" => "apt",
        "xz" => "xz-utils",
        "dpkg-deb" => "dpkg",
        "mke2fs" => "e2fsprogs",
        other => other,
    };
    let output = command.output().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => GuestError::MissingProgram { program, package },
        _ => GuestError::at("start", program)(source),
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if !output.status.success() {
        let detail = format!("{} ({})", text(&output.stderr), output.status);
        return Err(GuestError::Program { program, detail });
    }
    Ok(text(&output.stdout))
}
