//! `blk-speed`: this server beside QEMU's, `qemu-storage-daemon`, with the same client, the same file and in the same run, by
//! turns. With `MINERVA_FIGURE` set it prints one JSON line a condition; without, nothing is measured.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a measurement that cannot go on says why by panicking")]

use minerva_blk::tag::TagBounds;
use minerva_blk::{Image, ImageOptions, PhysicalDisk, Server, VmDisk, VmTerms};
use minerva_blocksched::{BuildOptions, FlowParameters, SchedulerName};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const IMAGE_BYTES: u64 = 256 << 20;
const PAIRS: usize = 10;
const TIME: Duration = Duration::from_millis(1000);
const WARM_UP: Duration = Duration::from_millis(200);
/// Block, requests under way, and whether one follows the other on the disk.
const CONDITIONS: [(u32, usize, bool); 4] =
    [(4096, 1, false), (4096, 32, false), (4096, 128, false), (131_072, 8, true)];

enum Running {
    Ours(Option<Server>),
    Qemu(Child),
}

impl Drop for Running {
    fn drop(&mut self) {
        match self {
            Self::Ours(server) => server.take().into_iter().for_each(Server::stop),
            Self::Qemu(child) => {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

fn ours(image: &Path, socket: &Path, scheduler: SchedulerName) -> Running {
    let options = ImageOptions { is_read_only: false, is_direct: false };
    let build = BuildOptions::for_disk(false, 128);
    let physical =
        [PhysicalDisk { name: "speed".to_owned(), scheduler, build, is_pool_wanted: false, request_log: None }];
    let disk = VmDisk {
        name: "speed".to_owned(),
        image: Arc::new(Image::open(image, options).unwrap()),
        physical: 0,
        socket: socket.to_owned(),
        terms: VmTerms {
            parameters: FlowParameters::default(),
            tags: TagBounds { default: 64, max: 254 },
            contract: None,
        },
        queues: 1,
        tell_hang_up: |_, _| {},
    };
    Running::Ours(Some(Server::start(&physical, vec![disk]).unwrap()))
}

fn qemu(image: &Path, socket: &Path) -> Option<Running> {
    let mut command = Command::new("qemu-storage-daemon");
    command.args(["--object", "iothread,id=t"]);
    let file = format!("driver=file,node-name=f,filename={},aio=io_uring,locking=off", image.display());
    command.arg("--blockdev").arg(file).args(["--blockdev", "driver=raw,node-name=d,file=f"]);
    let socket = format!("addr.type=unix,addr.path={}", socket.display());
    command.arg("--export").arg(format!("type=vhost-user-blk,id=e,node-name=d,writable=on,iothread=t,{socket}"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    command.spawn().ok().map(Running::Qemu)
}

/// Requests a second and the 99th percentile of latency, in microseconds.
fn measure(socket: &Path, (block, depth, is_sequential): (u32, usize, bool), seed: u64) -> (f64, f64) {
    let mut client = Client::connect(
        socket,
        ClientOptions { data_bytes: block, has_inflight: false, queue_size: 256, ..ClientOptions::default() },
    );
    let ring = &mut client.rings[0];
    let (blocks, mut next) = (IMAGE_BYTES / u64::from(block), seed);
    let mut begun_at = vec![Instant::now(); 256];
    let (mut latencies, begun) = (Vec::with_capacity(1 << 20), Instant::now());
    while begun.elapsed() < WARM_UP + TIME {
        while ring.under_way() < depth {
            next = if is_sequential { next + 1 } else { next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1) };
            let at = if is_sequential { next } else { next >> 33 } % blocks;
            let slot = ring.next_slot().unwrap();
            begun_at[usize::from(slot)] = Instant::now();
            ring.submit(&Request::new(kind::IN, at * u64::from(block) / 512, block));
        }
        ring.kick();
        let mut answer = Some(ring.wait(Duration::from_secs(10)).expect("an answer"));
        while let Some(one) = answer {
            assert_eq!(one.status, 0);
            if begun.elapsed() > WARM_UP {
                latencies.push(begun_at[usize::from(one.slot)].elapsed().as_secs_f64() * 1e6);
            }
            answer = ring.poll();
        }
    }
    let rate = latencies.len() as f64 / TIME.as_secs_f64();
    latencies.sort_by(f64::total_cmp);
    (rate, latencies[latencies.len() * 99 / 100])
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    if std::env::var_os("MINERVA_FIGURE").is_none() {
        return;
    }
    // In memory, so that the server is what is measured.
    let folder = tempfile::Builder::new().prefix("minerva-test-speed-").tempdir_in("/dev/shm").unwrap();
    let (image, socket) = (folder.path().join("image"), folder.path().join("socket"));
    let file = File::create(&image).unwrap();
    (0..IMAGE_BYTES >> 20).for_each(|mib| file.write_all_at(&vec![0xA5; 1 << 20], mib << 20).unwrap());
    drop(file);
    for condition in CONDITIONS {
        let (mut ratios, mut late, mut rates) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
        for pair in 0..PAIRS {
            let mut found = [(0.0, 0.0); 2];
            // Now one goes first and now the other, so that a drift of the machine hits both.
            for turn in 0..2 {
                let which = (turn + pair * 7 / 3) % 2;
                let _ = std::fs::remove_file(&socket);
                let running =
                    if which == 0 { Some(ours(&image, &socket, SchedulerName::Noop)) } else { qemu(&image, &socket) };
                let Some(running) = running else {
                    let line = r#"{"id":"blk-speed","value":null,"unit":"","goal":1.0,"met":false,"detail":"not measured: there is no qemu-storage-daemon (package qemu-utils)"}"#;
                    return println!("{line}");
                };
                found[which] = measure(&socket, condition, pair as u64 + 1);
                drop(running);
            }
            ratios.push(found[0].0 / found[1].0);
            late.push(found[0].1 / found[1].1);
            rates.iter_mut().zip(found).for_each(|(rates, (rate, _))| rates.push(rate));
        }
        let (ratio, late_ratio) = (median(&mut ratios), median(&mut late));
        let (low, high) = (ratios[0], ratios[PAIRS - 1]);
        let (block, depth, _) = condition;
        println!(
            r#"{{"id":"blk-speed","value":{ratio:.3},"unit":"of qemu-storage-daemon's requests a second","goal":1.0,"met":{},"detail":"{block} bytes at depth {depth}, tmpfs: ours {:.0}, qemu {:.0} a second, medians of {PAIRS} pairs; ratio {low:.2} to {high:.2}; p99 {late_ratio:.2} of qemu's"}}"#,
            ratio >= 1.0 && late_ratio <= 1.0,
            median(&mut rates[0]),
            median(&mut rates[1]),
        );
    }
}
