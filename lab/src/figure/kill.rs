//! `kill -9` of the daemon at random moments under load: `minerva-ctl restore` must undo every knob and its effect, no row that the
//! store had acknowledged may be lost, and the next start must be clean.

use super::store_rows::{StoreRows, lost_rows};
use super::undo::race as race_of_readers;
use super::weight_files::{weigh, weight_files};
use crate::daemon::{Daemon, DaemonConfig};
use crate::disk::{Disk, DiskSpec, RUNTIME_DIRECTORY};
use crate::error::{At, LabError, Result};
use crate::scene::Directory;
use crate::workload::{Access, CgroupParent, Compute, TenantCgroup, Worker, WorkerProgram, WorkloadSpec};
use minerva_model::Nanos;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const TENANTS: usize = 8;
/// Every so many-th tenant has a weight of the operator's.
const WEIGHED_EVERY: usize = 3;
/// The shortest slice there is: the more is written, the more a kill can hit.
const SLICE_MS: u64 = 100;
/// A kill comes at most this long after the start, so that starts are hit too.
const LIFE_MS_MAX: u64 = 900;
/// How often load moves to another tenant, or a tenant comes or goes.
const CHURN: Duration = Duration::from_millis(120);
/// A daemon that did not steer after this long does not.
const STEER_PATIENCE: Duration = Duration::from_secs(20);
/// How long tenants of equal weight are compared, and how far one may be from their mean.
const EFFECT_WINDOW: Nanos = Nanos::from_secs(3);
const EFFECT_ERROR_MAX: f64 = 0.1;
/// Changes of use are followed at once.
const QUICK: &str = "\n[fennel]\nrecent_half_life = \"1s\"\nlong_term_half_life = \"2s\"\nverdicts_needed = 1\n\
                     \n[actuation]\nverify_every_slices = 3\n";
const QUEUE_FILES: [&str; 2] = ["scheduler", "iosched/low_latency"];

/// What to do.
#[derive(Clone, Debug)]
pub struct KillPlan {
    /// How many kills.
    pub kills: u32,
    /// After so many of them, spread evenly, it is measured what equal tenants get.
    pub effect_checks: u32,
    /// Seed of the moments.
    pub seed: u64,
    /// `minervad`.
    pub daemon: PathBuf,
    /// `minerva-ctl`.
    pub tool: PathBuf,
}

/// What came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct KillResult {
    /// Kills after which everything was right.
    pub passed: u32,
    /// Kills that met a daemon which held at least one knob.
    pub held: u32,
    /// Kills before the daemon was ready.
    pub during_start: u32,
    /// Kills after which it was measured that tenants of equal weight get equal parts.
    pub effects_checked: u32,
    /// The largest deviation from the mean that was measured, as a part of it.
    pub effect_error_max: f64,
    /// Rows that were committed before the last kill.
    pub rows: usize,
    /// What was wrong, a line a kill.
    pub failures: Vec<String>,
}

/// Reads what a store has committed, without changing it.
pub type ReadStore<'a> = &'a dyn Fn(&Path) -> std::result::Result<StoreRows, String>;

/// Kills and restores. `watch` hears of progress.
pub fn kill_restore(
    plan: &KillPlan,
    program: &WorkerProgram,
    read_store: ReadStore<'_>,
    interrupted: &AtomicBool,
    watch: &mut dyn FnMut(&str),
) -> Result<KillResult> {
    let bed = Bed::new(program)?;
    let mut random = fastrand::Rng::with_seed(plan.seed);
    let mut result = KillResult::default();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| bed.churn(&over));
        let outcome = (1..=plan.kills).try_for_each(|number| {
            if interrupted.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let life = Duration::from_millis(random.u64(..LIFE_MS_MAX));
            let every = plan.kills.checked_div(plan.effect_checks).map_or(u32::MAX, |every| every.max(1));
            let race = (number % every == 0).then_some(Race { program, interrupted });
            let wrong = kill_once(plan, &bed, life, read_store, race, &mut result)?;
            if wrong.is_empty() {
                result.passed += 1;
            } else {
                result.failures.push(format!("kill {number} after {life:?}: {}", wrong.join("; ")));
            }
            if number % 10 == 0 {
                watch(&format!("{} of {number} kills restored, {} held knobs", result.passed, result.held));
            }
            Ok(())
        });
        over.store(true, Ordering::Relaxed);
        outcome
    })?;
    Ok(result)
}

struct Race<'a> {
    program: &'a WorkerProgram,
    interrupted: &'a AtomicBool,
}

/// One kill and all that follows; the answer is what was wrong.
fn kill_once(
    plan: &KillPlan,
    bed: &Bed,
    life: Duration,
    read_store: ReadStore<'_>,
    race: Option<Race<'_>>,
    result: &mut KillResult,
) -> Result<Vec<String>> {
    let store = DaemonConfig::store(bed.directory.path());
    let rows = || if store.exists() { read_store(&store) } else { Ok(StoreRows::default()) };
    let before = live_and_die(plan, bed, life, rows, result)?;
    let mut wrong = restore_and_compare(plan, bed, race, result)?;
    match (before, rows()) {
        (Ok(before), Ok(after)) => {
            result.rows = before.histories.len() + before.audit_rows as usize;
            wrong.extend(lost_rows(&before, &after));
        }
        // A kill may come before the first daemon has made the tables.
        (Err(_), Ok(_)) => {}
        (_, Err(error)) => wrong.push(format!("the store cannot be read: {error}")),
    }
    wrong.extend(clean_run(plan, bed)?);
    Ok(wrong)
}

/// Runs a daemon for `life` and kills it; the answer is what `rows` said just before.
fn live_and_die<T>(
    plan: &KillPlan,
    bed: &Bed,
    life: Duration,
    rows: impl Fn() -> T,
    result: &mut KillResult,
) -> Result<T> {
    let mut daemon = Daemon::launch(&plan.daemon, bed.directory.path())?;
    let begin = Instant::now();
    let mut ready = false;
    if life > Duration::from_millis(LIFE_MS_MAX / 4) {
        daemon.wait_until_ready()?;
        ready = true;
    }
    std::thread::sleep(life.saturating_sub(begin.elapsed()));
    let before = rows();
    daemon.kill()?;
    result.during_start += u32::from(!ready);
    Ok(before)
}

/// Restores, with the load standing still, and says what differs from before the daemon.
fn restore_and_compare(
    plan: &KillPlan,
    bed: &Bed,
    race: Option<Race<'_>>,
    result: &mut KillResult,
) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let still = bed.still();
    result.held += u32::from(bed.differences(&still) > 0);
    let mut restore = Command::new(&plan.tool);
    restore.arg("--config").arg(bed.directory.path().join("minervad.toml")).arg("restore");
    if let Some(said) = failed_output(&mut restore)? {
        wrong.push(format!("restore said: {said}"));
    }
    let left = bed.differences(&still);
    if left > 0 {
        wrong.push(format!("{left} knobs were not put back: {}", bed.describe(&still)));
    }
    if let Some(race) = race {
        let error = bed.effect_error(&still, race)?;
        result.effects_checked += 1;
        result.effect_error_max = result.effect_error_max.max(error);
        if error > EFFECT_ERROR_MAX {
            wrong.push(format!("tenants of equal weight were {:.0} % apart after the restore", error * 100.0));
        }
    }
    Ok(wrong)
}

fn failed_output(command: &mut Command) -> Result<Option<String>> {
    let output = command.output().at("start", command.get_program())?;
    let said = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    Ok((!output.status.success()).then(|| String::from_utf8_lossy(&said).trim().to_owned()))
}

/// The next start: ready, steers, ends with status 0, leaves nothing, and finds its store whole.
fn clean_run(plan: &KillPlan, bed: &Bed) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    let mut daemon = Daemon::start(&plan.daemon, bed.directory.path())?;
    let begin = Instant::now();
    while bed.differences(&bed.still()) == 0 {
        daemon.check()?;
        if begin.elapsed() > STEER_PATIENCE {
            wrong.push("the next daemon did not steer".to_owned());
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let status = daemon.end()?;
    if !status.success() {
        wrong.push(format!("the next daemon ended with {status}"));
    }
    let still = bed.still();
    if bed.differences(&still) > 0 {
        wrong.push(format!("the next daemon left behind: {}", bed.describe(&still)));
    }
    let state = DaemonConfig::store(bed.directory.path());
    let names = state.parent().and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten().flatten();
    if names.filter(|entry| entry.file_name().to_string_lossy().contains("corrupt")).count() > 0 {
        wrong.push("the store was found corrupt".to_owned());
    }
    Ok(wrong)
}

/// The tenants' groups, while nobody changes them.
type Still<'a> = MutexGuard<'a, Option<TenantCgroup>>;

/// A disk, tenants and load. The heaviest reader goes from tenant to tenant, and one tenant comes and goes.
struct Bed {
    /// What every knob held before the first daemon. Tenants that come later hold what [`fresh`](Self::fresh) does.
    knobs: BTreeMap<PathBuf, String>,
    /// What a group that nobody touched holds, by file name.
    fresh: BTreeMap<&'static str, String>,
    /// The tenant that comes and goes. Whoever holds the lock finds all groups still.
    guest: Mutex<Option<TenantCgroup>>,
    readers: Vec<Worker>,
    groups: Vec<TenantCgroup>,
    directory: Directory,
    parent: CgroupParent,
    disk: Disk,
}

impl Bed {
    fn new(program: &WorkerProgram) -> Result<Self> {
        let disk = Disk::create(&DiskSpec::new(format!("kill-{}", std::process::id()), "sata-ssd"))?;
        // So that there is something to change in the queue as well.
        disk.queue().write("iosched/low_latency", "1")?;
        let parent = CgroupParent::create("minerva-lab-kill")?;
        let untouched = parent.tenant("untouched")?;
        let fresh = weight_files(untouched.path()).map(|(name, _, text)| (name, text)).collect();
        drop(untouched);
        let groups = (0..TENANTS).map(|index| parent.tenant(&format!("tenant-{index}")));
        let groups = groups.collect::<Result<Vec<_>>>()?;
        for (index, group) in groups.iter().enumerate().step_by(WEIGHED_EVERY) {
            weigh(group, &disk, 100 + 50 * index as u32)?;
        }
        let directory = Directory::create(Path::new(RUNTIME_DIRECTORY).join(format!("kill-{}", std::process::id())))?;
        let disk_info = disk.info();
        let config = DaemonConfig {
            directory: directory.path(),
            slice_ms: SLICE_MS,
            parent: &parent,
            disk: disk_info,
            guard: false,
            // The daemon may turn off low_latency, which is one more knob to put back.
            further: format!("{QUICK}\n[devices.{}]\nelevator = \"bfq\"\n", disk_info.kernel_name),
        };
        config.write()?;
        let mut readers = Vec::new();
        for (index, think_ms) in [2, 20, 60].into_iter().enumerate() {
            let mut reader = Worker::spawn(program, &job(&disk, index as u64, think_ms), Some(&groups[index]))?;
            reader.start()?;
            readers.push(reader);
        }
        let guest = Mutex::default();
        let mut bed = Self { knobs: BTreeMap::new(), fresh, guest, readers, groups, directory, parent, disk };
        bed.knobs = bed.read_knobs();
        Ok(bed)
    }

    fn still(&self) -> Still<'_> {
        self.guest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves load about until `over`.
    fn churn(&self, over: &AtomicBool) {
        for turn in 0.. {
            if over.load(Ordering::Relaxed) {
                return;
            }
            let mut guest = self.still();
            // Whatever fails here is load that is not there, which the daemon's next start would show.
            self.join(0, &self.groups[turn / 3 % TENANTS]);
            match guest.take() {
                Some(group) => {
                    self.join(1, &self.groups[1]);
                    drop(group);
                }
                None => {
                    *guest = self.parent.tenant("guest").ok();
                    if let Some(group) = guest.as_ref() {
                        self.join(1, group);
                    }
                }
            }
            drop(guest);
            std::thread::sleep(CHURN);
        }
    }

    fn join(&self, reader: usize, group: &TenantCgroup) {
        let _ = fs::write(group.processes_file(), self.readers[reader].pid().to_string());
    }

    /// Every knob that the daemon might touch: of all groups, their parent and its parent, and the disk.
    fn read_knobs(&self) -> BTreeMap<PathBuf, String> {
        let mut groups = vec![self.parent.path().to_owned()];
        groups.extend(self.parent.path().parent().map(Path::to_owned));
        let children = fs::read_dir(self.parent.path()).into_iter().flatten().flatten();
        groups.extend(children.map(|entry| entry.path()).filter(|path| path.is_dir()));
        let mut knobs = BTreeMap::new();
        for group in groups {
            knobs.extend(weight_files(&group).map(|(_, path, text)| (path, text)));
        }
        let queue = PathBuf::from(format!("/sys/block/{}/queue", self.disk.info().kernel_name));
        for file in QUEUE_FILES {
            let path = queue.join(file);
            knobs.insert(path.clone(), fs::read_to_string(&path).unwrap_or_default());
        }
        knobs
    }

    fn changed(&self) -> Vec<(PathBuf, String)> {
        let meant = |path: &Path| {
            let fresh = || self.fresh.get(path.file_name()?.to_str()?);
            self.knobs.get(path).or_else(fresh).cloned().unwrap_or_default()
        };
        let changed = |(path, text): &(PathBuf, String)| meant(path) != *text;
        self.read_knobs().into_iter().filter(changed).collect()
    }

    /// How many knobs hold something else than before.
    fn differences(&self, _: &Still<'_>) -> usize {
        self.changed().len()
    }

    /// How far the tenants that the operator gave no weight are from an equal part each, the worst of them.
    fn effect_error(&self, _: &Still<'_>, race: Race<'_>) -> Result<f64> {
        (0..self.readers.len()).for_each(|reader| self.join(reader, &self.groups[0]));
        let plain = self.groups.iter().enumerate().filter(|(index, _)| index % WEIGHED_EVERY != 0);
        let plain: Vec<&TenantCgroup> = plain.map(|(_, group)| group).collect();
        let bytes = race_of_readers(&self.disk, &plain, EFFECT_WINDOW, race.program, race.interrupted)?;
        for (index, group) in self.groups.iter().enumerate().take(self.readers.len()) {
            self.join(index, group);
        }
        let mean = bytes.iter().sum::<f64>() / bytes.len().max(1) as f64;
        Ok(bytes.iter().map(|bytes| (bytes / mean.max(1.0) - 1.0).abs()).fold(0.0, f64::max))
    }

    fn describe(&self, _: &Still<'_>) -> String {
        let line = |(path, text): (PathBuf, String)| format!("{} holds {text:?}", path.display());
        self.changed().into_iter().map(line).collect::<Vec<_>>().join(", ")
    }
}

fn job(disk: &Disk, index: u64, think_ms: u64) -> WorkloadSpec {
    WorkloadSpec {
        tenant: format!("reader-{index}"),
        path: disk.device().to_owned(),
        access: Access::RandomRead,
        bytes: None,
        block_bytes: 64 << 10,
        region_start: 0,
        region_bytes: disk.info().size_bytes / 65536 * 65536,
        depth: 1,
        compute: Compute::Nothing,
        think: Nanos::from_millis(think_ms),
        part: None,
        seed: index,
    }
}
