//! Programs that prepare a guest.

use super::error::GuestError;
use std::io;
use std::process::Command;

/// How long a program may use the network, in seconds: many times what it takes where the mirror answers. One that hangs has the lock of
/// the cache, for which all other guests wait.
const NETWORK_SECONDS_MAX: &str = "600";

/// apt's options: a mirror that does not answer is given up soon.
pub(super) const NETWORK_OPTIONS: [(&str, &str); 2] = [("Acquire::http::Timeout", "20"), ("Acquire::Retries", "1")];

/// A program that uses the network, and is ended when that takes far too long.
pub(super) fn with_network(program: &str) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--verbose", "--kill-after=10", NETWORK_SECONDS_MAX, program]);
    command
}

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
    // What `timeout` says of a program that is not there.
    if command.get_program() == "timeout" && output.status.code() == Some(127) {
        return Err(GuestError::MissingProgram { program, package });
    }
    if !output.status.success() {
        let detail = format!("{} ({})", text(&output.stderr), output.status);
        return Err(GuestError::Program { program, detail });
    }
    Ok(text(&output.stdout))
}
