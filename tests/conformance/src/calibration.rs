//! How a [`Host`] is measured: by a reader of two disks that take a known time, on the way that the requests of jobs take too.

use crate::host::{CONSTANT_US, Host};
use crate::job::TenantJob;
use crate::log::Report;
use crate::way::Duration;

/// A disk that answers at once. What is measured above that, and above [`CONSTANT_US`], is the host's.
const INSTANT_US: f64 = 0.0;
/// Delays are kept at these parts of all requests: close together at the end, where they are far apart.
const PARTS: [f64; 17] = [0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 1.0];
/// Each of the three calibrations. The first requests of a process are slow, and there are too few others to hide them.
pub(crate) const TIME: Duration = Duration { ramp_ms: 300, counted_ms: 1500 };

/// Measures what the host adds to a request. `read` has a tenant read for [`TIME`] from a disk with this profile; `above_part` is
/// [`Host::above_part`] of that way.
pub(crate) fn measure(
    above_part: f64,
    read: impl Fn(&str, &TenantJob) -> anyhow::Result<Report>,
) -> anyhow::Result<Host> {
    let reader = |block_bytes, depth| TenantJob { weight: 100, random: true, write: false, block_bytes, depth };
    let period = |block_bytes, depth| -> anyhow::Result<f64> {
        Ok(1e9 / read(&constant_disk(INSTANT_US), &reader(block_bytes, depth))?.rate().max(1.0))
    };
    let (small_bytes, large_bytes) = (4096, 1 << 20);
    let (small_ns, large_ns) = (period(small_bytes, 32)?, period(large_bytes, 8)?);
    let station_ns_per_byte = ((large_ns - small_ns) / f64::from(large_bytes - small_bytes)).max(0.0);
    let station_ns = (small_ns - station_ns_per_byte * f64::from(small_bytes)).max(0.0);
    let constant = read(&constant_disk(CONSTANT_US), &reader(small_bytes, 1))?;
    let delay = |part| (constant.quantile_ns(part) - CONSTANT_US * 1e3 - small_ns).max(0.0);
    let delay_ns = PARTS.iter().map(|part| (*part, delay(*part))).collect();
    Ok(Host { station_ns, station_ns_per_byte, delay_ns, above_part })
}

/// The profile of a disk of 1 GiB that takes `constant_us` for each request of up to 1 MiB, whatever else it has to do.
fn constant_disk(constant_us: f64) -> String {
    let time = format!("first_page_us = {constant_us:.1}\nnext_page_us = 0.0\n");
    format!(
        "name = \"constant\"\nsource = \"none: it shows what the host adds\"\ncapacity_bytes = 1_073_741_824\n\
         queue_depth = 256\ninterface_mb_per_s = 1000000.0\n[media.ssd]\nchannels = 1024\npage_bytes = 4096\n\
         stripe_bytes = 1048576\ncommand_us = 0.0\n[media.ssd.read]\n{time}[media.ssd.write]\n{time}[media.ssd.discard]\n{time}\
         [media.ssd.flush]\n{time}"
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_calibration_disk_is_a_disk() {
        let profile = minerva_sim_device::Profile::parse(&super::constant_disk(1000.0)).unwrap();
        assert_eq!(profile.capacity_bytes, 1 << 30);
    }
}
