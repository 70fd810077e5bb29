//! Whether a disk of this host can keep the contracts of all VM disks on it: the test of `minerva-sim admit`, with the times of the
//! disk's model.
//!
//! What a guest will do is not known. Its contract is judged for what the operator says of it: requests of one length, in rows or here
//! and there, anywhere on the disk.

use crate::disk::contract_of;
use anyhow::{Context, bail};
use minerva_blk::request::PART_BYTES_MAX;
use minerva_blocksched::{Admission, Applicant, Capacity, Feasibility, SchedulerName, ServiceTimes, UNIT_BYTES, admit};
use minerva_model::{DiskSettings, Nanos};
use minerva_sim_device::{Kind, Profile, Site, measure, profile, profile_names};

/// What places on the disk are drawn from: the same answer each time.
const SEED: u64 = 1;
/// A model's text is no longer.
const MODEL_BYTES_MAX: u64 = 1 << 20;

/// As what a disk is judged.
pub(crate) fn model(name: Option<&str>, is_rotational: bool) -> anyhow::Result<Profile> {
    let usual = if is_rotational { "sata7200-80g" } else { "sata-ssd" };
    let name = name.unwrap_or(usual);
    if let Some(found) = profile(name) {
        return Ok(found);
    }
    if !name.contains('/') {
        bail!("there is no disk model `{name}`; name the path of one, or one of {}", profile_names().join(", "));
    }
    let length = std::fs::metadata(name).with_context(|| format!("failed to read the disk model {name}"))?.len();
    if length > MODEL_BYTES_MAX {
        bail!("{name} is not a disk model: it is {length} bytes long");
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("failed to read the disk model {name}"))?;
    Profile::parse(&text).with_context(|| format!("failed to use the disk model {name}"))
}

/// Takes the contracts of all VM disks on a disk, or says why not, naming the last of those that are not taken by force. `device` is
/// what people call it, and `depth` how many requests its scheduler gives it at once.
pub(crate) fn judge(
    device: &str,
    (scheduler, depth): (SchedulerName, u32),
    profile: &Profile,
    disks: &[&DiskSettings],
) -> anyhow::Result<()> {
    let Some((admission, names)) = admission(scheduler, depth, profile, disks) else { return Ok(()) };
    if admission.feasibility <= Feasibility::Likely {
        return Ok(());
    }
    let sentence = admission.sentence(|contract| names[contract].to_owned());
    let held = disks.iter().rfind(|disk| disk.terms.rate_bytes_per_second.is_some() && !disk.terms.force);
    let Some(held) = held else {
        eprintln!("minerva-blk: the contracts on {device} are accepted by force, as a {}: {sentence}", profile.name);
        return Ok(());
    };
    bail!(
        "the contracts on {device} are refused, as a {} under {scheduler}: {sentence}. Promise less, name the disk's own model \
         (`devices.{device}.model`), or accept them all the same with `force` for `{}`",
        profile.name,
        held.name
    )
}

/// The part of the disk's time that the contracts take in the long run by the mean times; 0 without contracts, and where the test does
/// not know the scheduler.
pub(crate) fn utilisation((scheduler, depth): (SchedulerName, u32), profile: &Profile, disks: &[&DiskSettings]) -> f64 {
    admission(scheduler, depth, profile, disks).map_or(0.0, |(admission, _)| admission.utilisation)
}

/// How the contracts stand, and whose they are; none where there is none, or the scheduler is not one that the test knows.
fn admission<'a>(
    scheduler: SchedulerName,
    depth: u32,
    profile: &Profile,
    disks: &[&'a DiskSettings],
) -> Option<(Admission, Vec<&'a str>)> {
    let discipline = scheduler.entry().discipline?;
    let with: Vec<&DiskSettings> =
        disks.iter().copied().filter(|disk| disk.terms.rate_bytes_per_second.is_some()).collect();
    if with.is_empty() {
        return None;
    }
    let site = |(seed, disk): (u64, &&DiskSettings)| {
        // How many requests a guest has under way is not known: one that asks for the next after the last has the disk to itself
        // under HTBS, and one at a time there. Nobody is kept off by one that is alone.
        let row_depth = if keeps(disk, scheduler) && disks.len() > 1 { 1 } else { u32::MAX };
        Site { row_depth, ..Site::anywhere(profile.capacity_bytes, block_bytes(disk), Kind::Read, seed) }
    };
    let sites: Vec<Site> = (SEED..).zip(disks).map(site).collect();
    let measured = measure(profile, &sites, UNIT_BYTES, depth.min(profile.queue_depth), SEED);
    let times = |unit_ns, seek| ServiceTimes { unit_ns, request: Nanos::ZERO, seek };
    let capacity = Capacity {
        greatest: times(measured.unit_ns_max, measured.seek_max),
        mean: times(measured.unit_ns_mean, measured.seek_mean),
        // Whatever is said of others, a guest may send longer requests, of which the disk gets a part at a time.
        background_units_max: if disks.len() > 1 { u64::from(PART_BYTES_MAX / UNIT_BYTES) } else { 0 },
    };
    let applicants = disks.iter().zip(measured.unit_ns_least.into_iter().zip(measured.unit_ns_own));
    let applicants: Vec<Applicant> =
        applicants.filter_map(|(disk, units_ns)| applicant(disk, scheduler, units_ns)).collect();
    Some((admit(&applicants, &capacity, discipline), with.iter().map(|disk| disk.name.as_str()).collect()))
}

/// Whether the disk is kept for one that is served, and has its requests only: under HTBS for whoever reads on.
fn keeps(disk: &DiskSettings, scheduler: SchedulerName) -> bool {
    scheduler == SchedulerName::Htbs && !disk.terms.is_random
}

fn applicant(
    disk: &DiskSettings,
    scheduler: SchedulerName,
    (unit_least_ns, unit_alone_ns): (f64, f64),
) -> Option<Applicant> {
    let contract = contract_of(&disk.terms, scheduler)?;
    let units = units(disk);
    // It is kept for what the contract earns in a delay.
    let earned = contract.rate_per_second * contract.delay.as_secs_f64();
    let row_units = if keeps(disk, scheduler) { earned.max(units as f64) } else { units as f64 };
    Some(Applicant {
        contract,
        request_units_min: units,
        request_units_max: units,
        row_units,
        wait: Nanos::ZERO,
        unit_least_ns,
        unit_alone_ns,
    })
}

fn block_bytes(disk: &DiskSettings) -> u32 {
    u32::try_from(disk.terms.request_bytes).unwrap_or(u32::MAX).next_multiple_of(512)
}

fn units(disk: &DiskSettings) -> u64 {
    disk.terms.request_bytes.div_ceil(u64::from(UNIT_BYTES)).max(1)
}

#[cfg(test)]
mod tests {
    use super::{judge, model};
    use crate::disk::settings_of;
    use minerva_blocksched::SchedulerName;
    use minerva_config::VmDiskSettings;
    use minerva_model::{DiskSettings, Nanos};

    fn disk(number: usize, rate: u64) -> DiskSettings {
        let settings = VmDiskSettings {
            rate_bytes_per_second: Some(rate),
            burst_bytes: 256 << 10,
            delay: Nanos::from_millis(200),
            read_only: true,
            ..VmDiskSettings::default()
        };
        settings_of(&format!("vm{number}"), &settings)
    }

    fn judged(scheduler: SchedulerName, disks: &[DiskSettings]) -> Result<(), String> {
        let profile = model(None, true).unwrap();
        let disks: Vec<&DiskSettings> = disks.iter().collect();
        judge("sda", (scheduler, 1), &profile, &disks).map_err(|error| error.to_string())
    }

    /// Of the scene of Rocha and Bona: what HTBS keeps and pClock, who seeks with each request, does not.
    #[test]
    fn contracts_are_taken_or_refused_with_the_reason() {
        let disks: Vec<DiskSettings> =
            [8_800_000, 4_000_000, 2_000_000, 800_000].into_iter().enumerate().map(|(n, rate)| disk(n, rate)).collect();
        assert_eq!(judged(SchedulerName::Htbs, &disks), Ok(()));
        let why = judged(SchedulerName::Pclock, &disks).unwrap_err();
        assert!(why.contains("on sda are refused, as a sata7200-80g under pclock: doubtful"), "{why}");
        let mut random = disks.clone();
        random[0].terms.is_random = true;
        random[0].terms.request_bytes = 4096;
        assert!(judged(SchedulerName::Htbs, &random).is_err(), "2000 seeks a second");
        let mut small = vec![disk(0, 100_000)];
        (small[0].terms.is_random, small[0].terms.request_bytes) = (true, 4096);
        small[0].terms.burst_bytes = 4096;
        assert_eq!(judged(SchedulerName::Htbs, &small), Ok(()), "24 seeks a second");
        small[0].terms.request_bytes = 512;
        assert!(judged(SchedulerName::Htbs, &small).is_err(), "195 seeks a second");
        let mut greedy = vec![disk(0, 400_000_000)];
        let why = judged(SchedulerName::Htbs, &greedy).unwrap_err();
        assert!(why.contains("impossible under any scheduler") && why.contains("`force` for `vm0`"), "{why}");
        greedy[0].terms.force = true;
        assert_eq!(judged(SchedulerName::Htbs, &greedy), Ok(()));
        assert_eq!(judged(SchedulerName::Bfq, &greedy), Ok(()), "which keeps none");
    }

    /// Whatever the operator says of another guest's requests, that guest may send longer ones, of which the disk gets a part at a time.
    #[test]
    fn others_are_reckoned_with_the_longest_that_the_disk_gets_of_them() {
        let mut promised = disk(0, 1_000_000);
        (promised.terms.burst_bytes, promised.terms.delay) = (64 << 10, Nanos::from_millis(32));
        assert_eq!(judged(SchedulerName::Pclock, std::slice::from_ref(&promised)), Ok(()));
        let mut other = disk(1, 1);
        (other.terms.rate_bytes_per_second, other.terms.request_bytes) = (None, 4096);
        let why = judged(SchedulerName::Pclock, &[promised, other]).unwrap_err();
        assert!(why.contains("doubtful"), "{why}");
    }

    /// An SSD does ten times as much with all the requests that it takes as with one after the other.
    #[test]
    fn an_ssd_is_taken_for_what_it_does_with_all_that_it_has_at_once() {
        let disks: Vec<DiskSettings> = (0..8)
            .map(|number| {
                let mut disk = disk(number, 20_000_000);
                (disk.terms.is_random, disk.terms.request_bytes) = (true, 4096);
                disk
            })
            .collect();
        let disks: Vec<&DiskSettings> = disks.iter().collect();
        let profile = model(None, false).unwrap();
        let judged = |depth| judge("sdb", (SchedulerName::Htbs, depth), &profile, &disks);
        assert!(judged(32).is_ok());
        assert!(judged(1).unwrap_err().to_string().contains("impossible"));
        let utilisation = super::utilisation((SchedulerName::Htbs, 32), &profile, &disks);
        assert!((0.3..0.7).contains(&utilisation), "{utilisation}");
    }

    /// HTBS gives the SSD to no other flow while one that reads on has a request there, so that it does half of what it could.
    #[test]
    fn readers_in_a_row_are_taken_for_what_an_ssd_does_for_one_after_the_other() {
        let profile = model(None, false).unwrap();
        let judged = |scheduler, rate| {
            let disks = [disk(0, rate), disk(1, rate)];
            let disks: Vec<&DiskSettings> = disks.iter().collect();
            let given = (scheduler, 32);
            (judge("sdb", given, &profile, &disks).is_ok(), super::utilisation(given, &profile, &disks))
        };
        assert!(!judged(SchedulerName::Htbs, 150_000_000).0);
        assert!(judged(SchedulerName::Pclock, 150_000_000).0, "which gives it the requests of both");
        let (is_taken, utilisation) = judged(SchedulerName::Htbs, 75_000_000);
        assert!(is_taken && (0.55..0.75).contains(&utilisation), "{utilisation}");
    }

    #[test]
    fn a_model_that_is_not_there_is_named() {
        let why = model(Some("drum"), true).unwrap_err().to_string();
        assert!(why.contains("`drum`") && why.contains("sata-ssd"), "{why}");
        assert!(format!("{:#}", model(Some("/nowhere/x.toml"), true).unwrap_err()).contains("/nowhere/x.toml"));
    }
}
