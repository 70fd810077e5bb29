//! What a slice costs: `discover` and `sample` on real groups where the hierarchy may be written, else on files that look
//! like them. `cargo bench -p minerva-linux-observe`.

use criterion::{Criterion, criterion_group, criterion_main};
use minerva_linux_observe::{Observer, Roots};
use minerva_model::CgroupVersion;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Groups made for one measurement, removed at the end.
struct Groups {
    folder: PathBuf,
    count: usize,
}

impl Groups {
    fn make(folder: PathBuf, count: usize) -> std::io::Result<Self> {
        fs::create_dir(&folder)?;
        let groups = Self { folder, count };
        for index in 0..count {
            fs::create_dir(groups.group(index))?;
        }
        Ok(groups)
    }

    fn group(&self, index: usize) -> PathBuf {
        self.folder.join(format!("t{index}"))
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for index in 0..self.count {
            let _gone_already = fs::remove_dir(self.group(index));
        }
        let _gone_already = fs::remove_dir(&self.folder);
    }
}

fn slice(criterion: &mut Criterion) {
    let roots = match Roots::detect() {
        Ok(roots) if roots.version == CgroupVersion::V1 => roots,
        _ => {
            println!("skipped: needs blkio mounted as cgroup v1");
            return;
        }
    };
    let mut group = criterion.benchmark_group("slice");
    group.sample_size(10).warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    for count in [10, 1_200, 10_000] {
        let folder = roots.cgroup.join(format!("minerva-test-bench-{}-{count}", std::process::id()));
        let groups = match Groups::make(folder, count) {
            Ok(groups) => groups,
            Err(error) => {
                println!("skipped: needs the right to make groups: {error}");
                return;
            }
        };
        let mut observer = match Observer::new(roots.clone(), &[]) {
            Ok(observer) => observer,
            Err(error) => {
                println!("skipped: {error}");
                return;
            }
        };
        observer.discover();
        report_files(&mut observer, count);
        group.bench_function(format!("discover/{count}"), |bencher| bencher.iter(|| observer.discover()));
        group.bench_function(format!("sample/{count}"), |bencher| bencher.iter(|| observer.sample()));
        drop(groups);
    }
    group.finish();
}

fn report_files(observer: &mut Observer, count: usize) {
    let before = observer.read_counts().files;
    observer.discover();
    let discovered = observer.read_counts().files - before;
    observer.sample();
    let sampled = observer.read_counts().files - before - discovered;
    println!("{count} groups: {discovered} files to discover, {sampled} to sample");
}

criterion_group!(benches, slice);
criterion_main!(benches);
