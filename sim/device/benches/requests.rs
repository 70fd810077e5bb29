//! Requests a second, one core: the budget is 5 million FIFO on the hard disk.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use minerva_model::Nanos;
use minerva_sim_device::{DeviceModel, Kind, Request, profile};
use std::hint::black_box;

const BATCH: u64 = 100_000;

/// Keeps `depth` requests at the disk until `BATCH` are done.
fn run(device: &mut dyn DeviceModel, depth: u64, mut offset: impl FnMut(u64) -> u64) -> Nanos {
    let mut now = Nanos::ZERO;
    let mut submit = |device: &mut dyn DeviceModel, now, tag| {
        let kind = if tag % 4 == 0 { Kind::Write } else { Kind::Read };
        device.submit(now, Request { tag, kind, offset_bytes: offset(tag), length_bytes: 4096 });
    };
    for tag in 0..depth {
        submit(device, now, tag);
    }
    let mut tag = depth;
    while let Some(at) = device.next_completion() {
        now = at;
        while device.complete(now).is_some() {
            if tag < BATCH {
                submit(device, now, tag);
                tag += 1;
            }
        }
    }
    now
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("requests");
    group.throughput(Throughput::Elements(BATCH)).sample_size(10);
    for (name, depth) in [("sata7200-80g", 1), ("sata7200-80g", 32), ("sata-ssd", 32)] {
        let disk = profile(name).unwrap_or_else(|| unreachable!());
        let pages = disk.capacity_bytes / 4096;
        group.bench_function(format!("{name}/random/depth-{depth}"), |bencher| {
            bencher.iter(|| {
                let mut device = disk.build(None, 1);
                run(device.as_mut(), depth, |tag| black_box(tag.wrapping_mul(0x9e37_79b9_7f4a_7c15)) % pages * 4096)
            });
        });
        group.bench_function(format!("{name}/sequential/depth-{depth}"), |bencher| {
            bencher.iter(|| run(disk.build(None, 1).as_mut(), depth, |tag| black_box(tag) * 4096));
        });
    }
    group.finish();
}

criterion_group!(benches, requests);
criterion_main!(benches);
