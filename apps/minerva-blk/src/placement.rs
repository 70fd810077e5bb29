//! Processors on which the threads of a disk run.

use anyhow::{Context, bail};
use minerva_config::CpuSet;
use std::path::Path;

/// Processors that run now, as the kernel lists them.
const ONLINE: &str = "/sys/devices/system/cpu/online";

/// All of them must be there: on a processor that is not the threads would run anywhere.
pub(crate) fn check(device: &str, cpus: &[u16]) -> anyhow::Result<()> {
    if cpus.is_empty() {
        return Ok(());
    }
    let text = std::fs::read_to_string(Path::new(ONLINE)).with_context(|| format!("failed to read {ONLINE}"))?;
    judge(device, cpus, text.trim())
}

fn judge(device: &str, cpus: &[u16], online: &str) -> anyhow::Result<()> {
    let there: CpuSet = online.parse().map_err(|why| anyhow::anyhow!("{ONLINE} holds `{online}`: {why}"))?;
    if let Some(missing) = cpus.iter().find(|cpu| !there.numbers().any(|number| number == **cpu)) {
        bail!("processor {missing} of `devices.{device}.cpus` is not there; there are {online}. Name some of these");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::judge;

    #[test]
    fn a_processor_that_is_not_there_is_refused_by_its_number() {
        assert!(judge("sda", &[0, 3], "0-1,3").is_ok());
        let why = judge("sda", &[0, 2], "0-1,3").unwrap_err().to_string();
        assert!(why.contains("processor 2 of `devices.sda.cpus`") && why.contains("there are 0-1,3"), "{why}");
    }
}
