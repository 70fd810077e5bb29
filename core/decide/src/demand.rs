//! How much of the disk a tenant that steps back would have used, by which it earns (docs/adr/0005).

use minerva_model::IoSignals;

/// How much of what it was due a tenant used, or for which part of the slice it had a request waiting, whichever is more: in
/// millionths. A tenant that is held back uses all that it is due and waits all the time; one that touches the disk now and
/// then, to earn, does neither.
pub(crate) fn demand_ppm(row: &IoSignals, due_bytes: u128) -> u32 {
    let used = u128::from(used_ppm(row.transferred.bytes(), due_bytes));
    let waited = row.latency.map_or(0, |mean| {
        let waited = u128::from(mean.0).saturating_mul(u128::from(row.transferred.ops()));
        waited.saturating_mul(1_000_000) / u128::from(row.elapsed.0.max(1))
    });
    used.max(waited).min(1_000_000) as u32
}

/// How much of what it was due a tenant used, in millionths; who used more had nothing to ask for.
pub(crate) fn used_ppm(bytes: u64, due_bytes: u128) -> u32 {
    (u128::from(bytes) * 1_000_000 / due_bytes.max(1)).min(1_000_000) as u32
}

#[cfg(test)]
mod tests {
    use super::demand_ppm;
    use minerva_model::{DeviceId, IoCounters, IoSignals, Nanos, TenantId};

    /// One tenant at `idle` beside two others on a disk of 40 MB/s: it is due 200 kB a slice.
    const DUE_BYTES: u128 = 200_000;

    fn reads(ops: u64, bytes_each: u64, latency: Option<Nanos>) -> IoSignals {
        IoSignals {
            tenant: TenantId(1),
            device: DeviceId { major: 8, minor: 0 },
            elapsed: Nanos::SECOND,
            transferred: IoCounters { read_bytes: ops * bytes_each, read_ops: ops, ..IoCounters::default() },
            latency,
            active: ops > 0,
            served: None,
            disk_time: Nanos::ZERO,
        }
    }

    #[test]
    fn an_idle_an_occasional_and_a_heavy_reader_beside_others() {
        let ms = |count| Some(Nanos::from_millis(count));
        let table = [
            ("idle, and the kernel measured nothing", reads(0, 0, None), 0),
            ("idle, with the latency of long ago", reads(0, 0, ms(50)), 0),
            ("a block a slice, latency unknown", reads(1, 4096, None), 20_480),
            ("a block a slice that waited behind the others", reads(1, 4096, ms(50)), 50_000),
            ("five blocks a slice", reads(5, 4096, ms(10)), 102_400),
            ("heavy, with what it was due", reads(4, 50_000, None), 1_000_000),
            (
                "heavy, and got half of what it was due while it waited all the time",
                reads(10, 10_000, ms(100)),
                1_000_000,
            ),
            ("heavy, and got one block of a disk that others keep", reads(1, 4096, ms(1_000)), 1_000_000),
            ("heavy, with a deep queue", reads(32, 4096, ms(900)), 1_000_000),
            ("heavy, on a disk that others left alone", reads(300, 131_072, ms(3)), 1_000_000),
        ];
        for (what, row, expected) in table {
            assert_eq!(demand_ppm(&row, DUE_BYTES), expected, "{what}");
        }
    }

    #[test]
    fn numbers_that_cannot_be_earn_no_more_than_a_slice() {
        let broken = IoSignals { elapsed: Nanos::ZERO, ..reads(u64::MAX, 1, Some(Nanos(u64::MAX))) };
        assert_eq!(demand_ppm(&broken, 0), 1_000_000);
        assert_eq!(demand_ppm(&IoSignals { elapsed: Nanos::ZERO, ..reads(0, 0, None) }, 0), 0);
    }
}
