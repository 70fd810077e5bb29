//! A figure measured in a guest, whose kernel has the io controller of cgroup v2.

use crate::binaries;
use crate::cli::Output;
use anyhow::Context as _;
use minerva_lab::guest::{Guest, guest_directory};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const MEMORY_MIB: u32 = 768;
/// For scenes with files; where Debian has it.
const MAKE_FILE_SYSTEM: [&str; 2] = ["/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4"];

/// Runs `minerva-lab figure ARGUMENTS --json` with the daemon in a guest. The answer is the lines it printed, or why there can be
/// no guest here.
pub(super) fn figure(arguments: &str, output: &Output, patience: Duration) -> anyhow::Result<Result<String, String>> {
    prepared_figure("true", arguments, output, patience)
}

/// The same after a shell command, `prepare`.
pub(super) fn prepared_figure(
    prepare: &str,
    arguments: &str,
    output: &Output,
    patience: Duration,
) -> anyhow::Result<Result<String, String>> {
    let directory = guest_directory()?;
    let own = std::env::current_exe().context("failed to find this program")?;
    let mut guest = Guest::builder().memory_mib(MEMORY_MIB).cpus(2).progress(|said| eprintln!("{said}"));
    for module in ["fuse", "loop", "crc32c_generic", "ext4", "kyber-iosched"] {
        guest = guest.with_module(module, "");
    }
    for program in [own, binaries::minervad(output)?] {
        guest = guest.with_binary(stripped(&program, directory.path())?);
    }
    if let Some(program) = MAKE_FILE_SYSTEM.iter().find(|path| Path::new(path).is_file()) {
        guest = guest.with_binary(program);
    }
    match guest.run(&format!("{prepare}; minerva-lab figure {arguments} --json --binaries /usr/bin"), patience) {
        Ok(output) if output.status == 0 => {
            eprint!("{}", output.stderr);
            Ok(Ok(output.stdout.trim_end().to_owned()))
        }
        Ok(output) => anyhow::bail!("the figure failed in the guest: {}", output.stderr.trim()),
        Err(error) if error.is_missing() => Ok(Err(error.to_string())),
        Err(error) => Err(error.into()),
    }
}

/// A copy without what debuggers need, which would fill the guest's memory.
pub(crate) fn stripped(program: &Path, directory: &Path) -> anyhow::Result<PathBuf> {
    let copy = directory.join(program.file_name().context("the program has no name")?);
    let strip = Command::new("strip").arg("-o").arg(&copy).arg(program).status();
    let strip = strip.context("failed to start `strip`: install it with `apt-get install binutils`")?;
    anyhow::ensure!(strip.success(), "`strip {}` failed", program.display());
    Ok(copy)
}
