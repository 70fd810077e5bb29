//! Contracts beside the other processes of this host: only `minervad` can hold those back, and says here whether it does.

use anyhow::bail;
use minerva_model::{DiskSettings, DiskTerms, PROTECTION_LEASE, Protection};
use std::time::{Duration, Instant};

/// Others who have less of the disk's time than this are nobody to protect contracts from: a log, a mail.
const OTHERS_PERMILLE_MIN: u32 = 20;

/// What is known of it for one device.
#[derive(Default)]
pub(crate) struct DeviceProtection {
    /// The part of its time that the contracts on it take, in thousandths.
    pub(crate) reserved_permille: u32,
    said: Option<(Instant, Protection)>,
}

impl DeviceProtection {
    /// `minervad` says how contracts stand.
    pub(crate) fn said(&mut self, device: &str, now: Instant, protection: Protection) {
        let was_held = self.told(now).map(|before| before.held);
        if self.reserved_permille > 0 && was_held != Some(protection.held) {
            let Protection { held, why, .. } = &protection;
            match held {
                true => eprintln!("minerva-blk: the contracts on {device} hold beside other processes: {why}"),
                false => eprintln!(
                    "minerva-blk: the contracts on {device} are not protected from other processes of this host: {why}"
                ),
            }
        }
        self.said = Some((now, protection));
    }

    /// What `minervad` said, if that was not too long ago.
    pub(crate) fn told(&self, now: Instant) -> Option<Protection> {
        let lease = Duration::from_nanos(PROTECTION_LEASE.0);
        let (_, protection) = self.said.as_ref().filter(|(at, _)| now.saturating_duration_since(*at) < lease)?;
        Some(protection.clone())
    }

    /// Takes a contract that is new, or greater than `before`, or says why not: others use the disk, and nothing holds them back.
    pub(crate) fn judge(
        &self,
        device: &str,
        now: Instant,
        disk: &DiskSettings,
        before: Option<&DiskTerms>,
    ) -> anyhow::Result<()> {
        let rate = |terms: &DiskTerms| terms.rate_bytes_per_second.unwrap_or(0);
        if disk.terms.force || rate(&disk.terms) <= before.map_or(0, rate) {
            return Ok(());
        }
        let Some(protection) = self.told(now) else {
            eprintln!(
                "minerva-blk: disk `{}`: its contract is kept among the disks that are served here, but not beside other processes \
                 of this host that use {device}: minervad does not run, or does not look at {device}",
                disk.name
            );
            return Ok(());
        };
        let Protection { held: false, why, others_permille: others @ OTHERS_PERMILLE_MIN.., .. } = protection else {
            return Ok(());
        };
        bail!(
            "the contract of `{}` is refused: other processes of this host had {} % of the time of {device} lately, and nothing holds \
             them back: {why}. Let minervad steer {device}, or accept the contract all the same with `force`",
            disk.name,
            others / 10,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::DeviceProtection;
    use crate::disk::settings_of;
    use minerva_config::VmDiskSettings;
    use minerva_model::{DiskSettings, DiskTerms, Protection};
    use std::time::{Duration, Instant};

    #[test]
    fn a_contract_is_refused_where_others_use_the_disk_and_nothing_holds_them_back() {
        let rate_bytes_per_second = Some(1_000_000);
        let disk = settings_of("vm1", &VmDiskSettings { rate_bytes_per_second, ..VmDiskSettings::default() });
        let (mut device, now) = (DeviceProtection::default(), Instant::now());
        let mut judged = |held, others_permille, after: u64, disk: &DiskSettings, before: Option<&DiskTerms>| {
            let why = "minervad only watches".to_owned();
            device.said("sda", now, Protection { held, why, part_permille: 0, others_permille });
            device.judge("sda", now + Duration::from_secs(after), disk, before).map_err(|error| error.to_string())
        };
        let why = judged(false, 300, 1, &disk, None).unwrap_err();
        assert!(why.contains("had 30 % of the time of sda") && why.contains("minervad only watches"), "{why}");
        assert!(why.contains("`force`"), "{why}");
        assert_eq!(judged(false, 10, 1, &disk, None), Ok(()), "nobody else uses it");
        assert_eq!(judged(true, 300, 1, &disk, None), Ok(()), "they are held back");
        assert_eq!(judged(false, 300, 60, &disk, None), Ok(()), "minervad has gone");
        let forced = DiskSettings { terms: DiskTerms { force: true, ..disk.terms }, ..disk.clone() };
        assert_eq!(judged(false, 300, 1, &forced, None), Ok(()));
        assert_eq!(judged(false, 300, 1, &disk, Some(&disk.terms)), Ok(()), "it stands already");
        let less = DiskTerms { rate_bytes_per_second: Some(1), ..disk.terms };
        assert!(judged(false, 300, 1, &disk, Some(&less)).is_err(), "more is promised");
    }
}
