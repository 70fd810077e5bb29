//! A disk of a guest: what the operator says of it, and what that is for a scheduler.

use anyhow::bail;
use minerva_blk::tag::{TAG_MAX, TAG_MIN, TagBounds};
use minerva_blk::{ContractTerms, Failure, HangUp, VmTerms};
use minerva_blocksched::{Contract, FlowParameters, Promise, SchedulerName, UNIT_BYTES};
use minerva_config::VmDiskSettings;
use minerva_config::contract_ranges::{BURST_BYTES, DELAY, RATE_BYTES_PER_SECOND_MAX, REQUEST_BYTES};
use minerva_model::{DiskReport, DiskSettings, DiskTerms};

/// Neither set by `minervad` nor by the operator.
pub(crate) const NEUTRAL: u32 = 100;
const WEIGHT_MAX: u32 = 10_000;

/// As the file has it.
pub(crate) fn settings_of(name: &str, disk: &VmDiskSettings) -> DiskSettings {
    DiskSettings {
        name: name.to_owned(),
        image: disk.image.display().to_string(),
        socket: disk.socket_path(name).display().to_string(),
        read_only: disk.read_only,
        direct: disk.direct,
        queues: disk.queues,
        terms: DiskTerms {
            weight: disk.weight,
            rate_bytes_per_second: disk.rate_bytes_per_second,
            burst_bytes: disk.burst_bytes,
            delay: disk.delay,
            limit_bytes_per_second: disk.limit_bytes_per_second,
            tag_default: disk.tag_default,
            tag_max: disk.tag_max,
            is_random: disk.is_random,
            request_bytes: disk.request_bytes,
            force: disk.force,
        },
    }
}

/// Whether it divides a disk by the weights of disks on it. The others know contracts, priorities or nothing of a disk; `cfq` weighs
/// groups of flows, of which there are none here.
pub(crate) const fn heeds_weights(scheduler: SchedulerName) -> bool {
    match scheduler {
        SchedulerName::Bfq | SchedulerName::Sfq | SchedulerName::Mclock | SchedulerName::MclockAllow => true,
        SchedulerName::Noop
        | SchedulerName::MqDeadline
        | SchedulerName::Anticipatory
        | SchedulerName::Cfq
        | SchedulerName::Pclock
        | SchedulerName::Htbs
        | SchedulerName::HtbsOriginal
        | SchedulerName::Tag
        | SchedulerName::TagOriginal => false,
    }
}

/// Why a weight is refused on such a device, and what to do `for_what`.
pub(crate) fn ignores_weights(scheduler: SchedulerName, device: &str, for_what: &str) -> String {
    format!(
        "the scheduler `{scheduler}` of {device} ignores weights; set `scheduler` of `devices.{device}` to `bfq`, `sfq` or `mclock` {for_what}"
    )
}

/// What a server is told of a disk, whose weight `minervad` multiplies by `share` hundredths; an error where its scheduler would not keep it.
pub(crate) fn terms_of(terms: &DiskTerms, scheduler: SchedulerName, share: u32) -> anyhow::Result<VmTerms> {
    Ok(VmTerms {
        parameters: parameters_of(terms, scheduler, share)?,
        tags: TagBounds { default: terms.tag_default, max: terms.tag_max },
        contract: terms.rate_bytes_per_second.map(|bytes_per_second| ContractTerms {
            bytes_per_second,
            burst_bytes: terms.burst_bytes,
            // A reservation says nothing of single requests.
            delay: scheduler.keeps(Promise::Contract).then_some(terms.delay),
        }),
    })
}

fn parameters_of(terms: &DiskTerms, scheduler: SchedulerName, share: u32) -> anyhow::Result<FlowParameters> {
    check(terms)?;
    let weight = u64::from(terms.weight) * u64::from(share) / u64::from(NEUTRAL);
    let mut parameters = FlowParameters {
        weight: weight.clamp(1, u64::from(WEIGHT_MAX)) as u32,
        tag_default: terms.tag_default,
        tag_max: terms.tag_max,
        ..FlowParameters::default()
    };
    if terms.rate_bytes_per_second.is_some() {
        if !scheduler.keeps(Promise::Contract) && !scheduler.keeps(Promise::Reservation) {
            bail!("`rate` is set, but the scheduler `{scheduler}` of its device keeps no contracts; {}", keepers());
        }
        parameters.contract = contract_of(terms, scheduler);
        parameters.reservation_per_second = parameters.contract.map_or(0.0, |contract| contract.rate_per_second);
    }
    if let Some(limit) = terms.limit_bytes_per_second {
        if !scheduler.keeps(Promise::Limit) {
            bail!(
                "`limit` is set, but the scheduler `{scheduler}` of its device has no limits; set `scheduler = \
                 \"mclock\"`"
            );
        }
        // It holds for requests of any length, also where those that the reservation is for cost more than their bytes.
        parameters.limit_per_second = limit as f64 / f64::from(UNIT_BYTES);
        parameters.reservation_per_second = parameters.reservation_per_second.min(parameters.limit_per_second);
    }
    Ok(parameters)
}

/// Says why a front end of a disk was hung up on.
pub(crate) fn tell_hang_up(disk: &str, why: &HangUp) {
    eprintln!("minerva-blk: closed the connection of the front end of `{disk}`: {why}");
}

/// Says what the image of a disk failed.
pub(crate) fn tell_failure(disk: &str, failure: Failure) {
    eprintln!("minerva-blk: a request of `{disk}` failed: {failure}");
}

/// The contract in the scheduler's units, for requests of the length that the operator says.
pub(crate) fn contract_of(terms: &DiskTerms, scheduler: SchedulerName) -> Option<Contract> {
    let rate = terms.rate_bytes_per_second?;
    let request_bytes = u32::try_from(terms.request_bytes).unwrap_or(u32::MAX);
    Some(scheduler.contract(rate as f64, terms.burst_bytes as f64, terms.delay, request_bytes))
}

/// What the file's reader judges in a file, of terms that came over the control socket.
fn check(terms: &DiskTerms) -> anyhow::Result<()> {
    let DiskTerms { weight, tag_default, tag_max, burst_bytes, delay, request_bytes, .. } = *terms;
    if !(1..=WEIGHT_MAX).contains(&weight) {
        bail!("a weight is 1 to {WEIGHT_MAX}, not {weight}");
    }
    if tag_default < TAG_MIN || tag_max > TAG_MAX || tag_default > tag_max {
        bail!(
            "tags are {TAG_MIN} to {TAG_MAX}, and the default, {tag_default}, must not be above the greatest, {tag_max}"
        );
    }
    if let (Some(rate), Some(limit)) = (terms.rate_bytes_per_second, terms.limit_bytes_per_second)
        && limit < rate
    {
        bail!("the limit of {limit} bytes a second is below the rate of {rate} that is promised; raise it");
    }
    let rates = [terms.rate_bytes_per_second, terms.limit_bytes_per_second];
    if let Some(rate) = rates.into_iter().flatten().find(|rate| *rate > RATE_BYTES_PER_SECOND_MAX) {
        bail!("a rate or a limit is at most 1024TiB a second, and {rate} bytes are more");
    }
    let is_in_range =
        BURST_BYTES.contains(&burst_bytes) && DELAY.contains(&delay) && REQUEST_BYTES.contains(&request_bytes);
    if !is_in_range {
        bail!("a contract has a burst of 4KiB to 1TiB, a delay of 1ms to 1m, and requests of 512B to 8MiB");
    }
    Ok(())
}

fn keepers() -> String {
    let keeps = |name: &&SchedulerName| name.keeps(Promise::Contract) || name.keeps(Promise::Reservation);
    let names: Vec<String> = SchedulerName::ALL.iter().filter(keeps).map(|name| format!("`{name}`")).collect();
    format!("set its `scheduler` to one of {}", names.join(", "))
}

/// What became of a disk, in a line.
pub(crate) fn told(report: &DiskReport) -> String {
    let DiskReport { settings, io, other_ops, tagged_ops, failed_ops, refused_ops, .. } = report;
    let requests = io.read_ops + io.write_ops + other_ops;
    let bytes = io.read_bytes + io.write_bytes;
    format!(
        "{}: {requests} requests, {bytes} bytes, {tagged_ops} tagged, {failed_ops} failed, {refused_ops} refused",
        settings.name
    )
}

#[cfg(test)]
mod tests {
    use super::{parameters_of, settings_of};
    use minerva_blocksched::SchedulerName;
    use minerva_config::VmDiskSettings;
    use minerva_model::{DiskTerms, Nanos};

    #[test]
    fn what_minervad_sets_multiplies_the_operators_weight_within_bounds() {
        let terms = settings_of("vm1", &VmDiskSettings { weight: 300, ..VmDiskSettings::default() }).terms;
        let weight = |terms: &DiskTerms, share| parameters_of(terms, SchedulerName::Sfq, share).unwrap().weight;
        assert_eq!([100, 50, 1, 10_000].map(|share| weight(&terms, share)), [300, 150, 3, 10_000]);
        assert_eq!(weight(&DiskTerms { weight: 1, ..terms }, 1), 1, "nobody has nothing");
    }

    /// Each is charged in whole units of 4 KiB.
    #[test]
    fn a_contract_grants_what_requests_of_its_length_cost() {
        let terms = settings_of("vm1", &VmDiskSettings::default()).terms;
        for (request_bytes, units_per_second) in [(512, 2048.0), (4096, 256.0), (6144, 1024.0 / 3.0), (65_536, 256.0)] {
            let terms =
                DiskTerms { rate_bytes_per_second: Some(1 << 20), burst_bytes: 1 << 20, request_bytes, ..terms };
            let contract = parameters_of(&terms, SchedulerName::Htbs, 100).unwrap().contract.unwrap();
            let is_near = |granted: f64| (granted - units_per_second).abs() < 1e-6;
            assert!(is_near(contract.rate_per_second) && is_near(contract.burst), "{request_bytes}: {contract:?}");
            let reserved = parameters_of(&terms, SchedulerName::Mclock, 100).unwrap().reservation_per_second;
            assert!(is_near(reserved), "{request_bytes}: {reserved}");
        }
        let limited = DiskTerms {
            rate_bytes_per_second: Some(1 << 20),
            limit_bytes_per_second: Some(1 << 20),
            request_bytes: 512,
            ..terms
        };
        let limited = parameters_of(&limited, SchedulerName::Mclock, 100).unwrap();
        assert_eq!(
            (limited.reservation_per_second, limited.limit_per_second),
            (256.0, 256.0),
            "a limit is never passed"
        );
    }

    #[test]
    fn terms_that_no_file_could_have_are_refused() {
        let terms = settings_of("vm1", &VmDiskSettings::default()).terms;
        for (wrong, why) in [
            (DiskTerms { weight: 0, ..terms }, "a weight is 1"),
            (DiskTerms { tag_max: 255, ..terms }, "tags are 1 to 254"),
            (DiskTerms { tag_default: 200, ..terms }, "above the greatest, 128"),
            (DiskTerms { burst_bytes: 0, ..terms }, "a burst of 4KiB to 1TiB"),
            (DiskTerms { burst_bytes: (1 << 40) + 1, ..terms }, "a burst of 4KiB to 1TiB"),
            (DiskTerms { delay: Nanos::from_secs(61), ..terms }, "a delay of 1ms to 1m"),
            (DiskTerms { request_bytes: (8 << 20) + 1, ..terms }, "requests of 512B to 8MiB"),
            (DiskTerms { rate_bytes_per_second: Some(u64::MAX), ..terms }, "at most 1024TiB"),
            (DiskTerms { rate_bytes_per_second: Some(1), ..terms }, "keeps no contracts"),
            (DiskTerms { rate_bytes_per_second: Some(2), limit_bytes_per_second: Some(1), ..terms }, "below the rate"),
        ] {
            let said = parameters_of(&wrong, SchedulerName::Bfq, 100).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }
}
