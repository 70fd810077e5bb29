//! What a client says of work that can wait.

use super::{Judged, SIZE_BYTES_MAX, SPAN_MAX, guest_disk, out_of_range, span, wanted_disk};
use crate::request::{Debt, WantedDisk};
use minerva_api::v1;
use minerva_linux_observe::GuestDisk;
use minerva_model::{JobSettings, Nanos};

/// Work that can wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PutOff {
    pub(crate) debt: Debt,
    pub(crate) within: Option<Nanos>,
    pub(crate) disk: WantedDisk,
    /// What the disk below the client's is like, where the client is in a guest.
    pub(crate) guest_disk: GuestDisk,
}

/// What a tenant owes, by when, and on which disk.
pub(crate) fn debt(request: v1::HoldDebtRequest) -> Judged<PutOff> {
    let v1::HoldDebtRequest { name, service_ns, done_ns, tied_bytes, done_within_ns, .. } = request;
    let debt = debt_terms(name, (service_ns, done_ns), tied_bytes)?;
    let within = done_within_ns.map(|nanos| span(nanos, "done_within_ns")).transpose()?;
    let guest_disk = guest_disk(request.working_disk_size_bytes, request.working_disk_serial);
    let disk = wanted_disk(&request.device, &request.working_device, &guest_disk)?;
    Ok(PutOff { debt, within, disk, guest_disk })
}

/// How far a debt is.
pub(crate) fn debt_report(request: v1::ReportDebtRequest) -> Judged<Debt> {
    let v1::ReportDebtRequest { name, service_ns, done_ns, tied_bytes, .. } = request;
    debt_terms(name, (service_ns, done_ns), tied_bytes)
}

fn debt_terms(name: String, (service_ns, done_ns): (u64, u64), tied_bytes: u64) -> Judged<Debt> {
    // Names are judged as those of jobs.
    if let Some(why) = JobSettings::refusal_of_name(&name) {
        return out_of_range(format!("{why}."));
    }
    let (service, done) = (Nanos(service_ns), Nanos(done_ns));
    if service == Nanos::ZERO || service > SPAN_MAX {
        return out_of_range(format!(
            "service_ns is {service_ns}: what is owed takes more than 0 and at most ten years, in nanoseconds; a negative number looks \
             like more. Measure a part of it and declare that."
        ));
    }
    if done > service {
        return out_of_range(format!(
            "done_ns is {done_ns}, more than the {service_ns} ns that there are to do; where more was put off, raise service_ns."
        ));
    }
    if tied_bytes > SIZE_BYTES_MAX {
        return out_of_range(format!("No debt ties {tied_bytes} bytes; {SIZE_BYTES_MAX} are the most."));
    }
    Ok(Debt { name, service, done, tied_bytes })
}

#[cfg(test)]
mod tests {
    use super::debt;
    use crate::decode::NAME_LENGTH_MAX;
    use crate::request::WantedDisk;
    use minerva_api::v1;
    use minerva_linux_observe::GuestDisk;

    #[test]
    fn a_debt_has_what_the_disk_of_a_guest_is_like() {
        let asked = v1::HoldDebtRequest {
            name: "rebuild".to_owned(),
            service_ns: 1,
            working_device: "254:1".to_owned(),
            working_disk_size_bytes: 10 << 30,
            working_disk_serial: "data".to_owned(),
            ..v1::HoldDebtRequest::default()
        };
        let like = GuestDisk { size_bytes: 10 << 30, serial: "data".to_owned() };
        let told = debt(asked.clone()).expect("good");
        assert_eq!(told.guest_disk, like);
        assert!(matches!(told.disk, WantedDisk::Below(_)));
        let nowhere = v1::HoldDebtRequest { working_device: String::new(), ..asked.clone() };
        assert_eq!(debt(nowhere).expect("good").disk, WantedDisk::Usual(like));
        let long = v1::HoldDebtRequest { working_disk_serial: "x".repeat(NAME_LENGTH_MAX + 1), ..asked };
        assert_eq!(debt(long).expect("good").guest_disk.serial, "");
    }
}
