//! Options that all measurements have.

use clap::Args;
use std::path::PathBuf;

/// What all runs have in common.
#[derive(Clone, Debug, Args)]
pub(crate) struct Output {
    /// Print JSON, one object per line.
    #[arg(long)]
    pub(crate) json: bool,
    /// Folder of minervad and minerva-ctl; by default they are searched for beside this program, then in PATH.
    #[arg(long)]
    pub(crate) binaries: Option<PathBuf>,
    /// Path of the daemon, if it is not beside the other programs.
    #[arg(long)]
    pub(crate) minervad: Option<PathBuf>,
}

/// Bytes, more than none.
pub(crate) fn parse_size(text: &str) -> Result<u64, String> {
    match minerva_quantity::parse_size(text) {
        Ok(0) => Err(format!("`{text}` is no bytes: give a size above 0")),
        size => size.map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_are_those_of_the_settings() {
        assert_eq!(parse_size("8G"), Ok(8_000_000_000));
        assert_eq!(parse_size("8GiB"), Ok(8 << 30));
        assert_eq!(parse_size("64KiB"), Ok(64 << 10));
        assert_eq!(parse_size("4096"), Ok(4096));
        for bad in ["", "G", "0", "-1", "8X", "99999999999T"] {
            assert!(parse_size(bad).is_err(), "{bad}");
        }
    }
}
