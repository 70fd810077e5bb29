//! Job files in the form of fio's, as far as a simulated disk can follow them.
//!
//! | file | what |
//! |---|---|
//! | `ini` | lines into sections and settings with their places |
//! | `value` | sizes, times, rates, as fio(1) writes them |
//! | `keys` | one row a key |
//! | `options` | what a job's settings add up to |
//! | `bind` | jobs onto a disk: regions, processes, instants |
//! | `problem` | what is wrong, with the line and a mark under it |
//!
//! A file is judged as a whole: all its errors are shown at once. Sizes are fio's: `4k` is 4,096 bytes (`kb_base=1024`).
//! There is no page cache, as with `direct=1`; `direct=0` is an error. Keys that mean nothing to a simulated disk, such as
//! `filename`, are taken and listed in [`JobFile::ignored`]. Keys of our own begin with `minerva_`.
//!
//! Limits: a file is at most [`FILE_BYTES_MAX`] long, and describes at most [`PROCESSES_MAX`] processes.

mod bind;
mod ini;
mod keys;
mod options;
mod problem;
#[cfg(test)]
mod tests;
mod value;

pub use bind::{BoundJob, BoundTenant, Terms};
pub use problem::{JobErrors, Problem};
pub use value::{Amount, time};

use ini::Setting;
use keys::{Effect, key};
use minerva_blocksched::Class;
use options::Options;
use problem::{PROBLEMS_MAX, SourceLocation};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A longer file is refused: nobody wrote it by hand.
pub const FILE_BYTES_MAX: usize = 1 << 20;
/// More processes than a simulation can hold.
pub const PROCESSES_MAX: u64 = 100_000;

/// Keys that say what a scheduler is to do for a process.
const HOST_KEYS: [&str; 5] =
    ["minerva_contract", "minerva_reservation", "minerva_limit", "minerva_tag_default", "minerva_tag_max"];

/// A job file, understood.
#[derive(Clone, Debug)]
pub struct JobFile {
    origin: Arc<str>,
    jobs: Vec<Job>,
    ignored: Vec<Problem>,
}

#[derive(Clone, Debug)]
struct Job {
    name: String,
    place: SourceLocation,
    options: Options,
}

impl JobFile {
    /// The jobs' names, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.jobs.iter().map(|job| job.name.as_str())
    }

    /// Processes of all jobs together.
    pub fn processes(&self) -> u64 {
        self.jobs.iter().map(|job| u64::from(job.options.processes)).sum()
    }

    /// Names of guests' schedulers that are none of `known`, which only the caller has; upper and lower case are the same.
    pub fn judge_guest_schedulers<'a>(&self, known: impl Iterator<Item = &'a str>) -> Result<(), JobErrors> {
        let known: Vec<&str> = known.collect();
        let mut problems = Vec::new();
        for job in &self.jobs {
            let Some(name) = &job.options.guest_scheduler else { continue };
            if !known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
                let place = job.options.places.get("minerva_guest_scheduler").unwrap_or(&job.place);
                let help = Some(format!("there are {}", known.join(", ")));
                problems.push(Problem::at(&self.origin, place, format!("there is no scheduler `{name}`"), help));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(JobErrors { problems }) }
    }

    /// Settings that nobody would keep: a guest's scheduler stands between a process and the host, and the host sees the guest
    /// as one flow. `keeps` says whether a guest's scheduler, by its name, keeps a key.
    pub fn judge_guest_keys(&self, keeps: impl Fn(&str, &str) -> bool) -> Result<(), JobErrors> {
        let guests = self.tenants().into_iter().filter_map(|tenant| Some((tenant.name, tenant.guest_scheduler?)));
        let guests: BTreeMap<String, String> = guests.collect();
        let mut problems = Vec::new();
        for job in &self.jobs {
            let Some(guest) = guests.get(job.tenant()) else { continue };
            for key in HOST_KEYS.into_iter().filter(|key| !keeps(guest, key)) {
                let Some(place) = job.options.places.get(key) else { continue };
                let what = format!(
                    "job `{}`: nobody keeps `{key}`: {guest} in its guest does not, and the host sees the guest as one flow",
                    job.name
                );
                let help =
                    Some("take noop in the guest, which leaves the order to the host, or leave the key out".to_owned());
                problems.push(Problem::at(&self.origin, place, what, help));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(JobErrors { problems }) }
    }

    /// Priorities of processes that are the only one of their tenant, for people to see: a scheduler that shares between tenants first
    /// compares them with nobody's. The idle class is more than a priority: no disk is kept idle for it.
    pub fn lone_priorities(&self) -> Vec<Problem> {
        let mut processes = BTreeMap::<&str, u64>::new();
        for job in &self.jobs {
            *processes.entry(job.tenant()).or_default() += u64::from(job.options.processes);
        }
        let mut said = BTreeSet::new();
        let mut problems = Vec::new();
        for job in self.jobs.iter().filter(|job| processes.get(job.tenant()) == Some(&1)) {
            let is_idle = job.options.class == Some(Class::Idle);
            for key in ["prio", "prioclass", "nice"].into_iter().filter(|key| !(is_idle && *key == "prioclass")) {
                // One of [global] is said once.
                let Some(place) = job.options.places.get(key).filter(|place| said.insert((key, place.line))) else {
                    continue;
                };
                let what = format!(
                    "`{key}` changes nothing under bfq and cfq: job `{}` is alone in its tenant, and they share between tenants first",
                    job.name
                );
                let help = "give jobs the same `minerva_tenant`, or the tenant a `minerva_tenant_weight`";
                problems.push(Problem::at(&self.origin, place, what, Some(help.to_owned())));
            }
        }
        problems
    }

    /// Levels of tenants, which mean something to Minerva's engine alone, for people to see where there is none.
    pub fn levels(&self) -> Vec<Problem> {
        let of_job = |job: &Job| {
            let place = job.options.places.get("minerva_tenant_level")?;
            let what = "`minerva_tenant_level` changes nothing without --engine".to_owned();
            Some(Problem::at(&self.origin, place, what, None))
        };
        let mut problems: Vec<Problem> = self.jobs.iter().filter_map(of_job).collect();
        // One of [global] is said once.
        problems.dedup();
        problems
    }

    /// The name that errors show.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Settings that were taken and change nothing in a simulation, for people to see.
    pub fn ignored(&self) -> &[Problem] {
        &self.ignored
    }
}

/// Understands a job file; `origin` is the name that errors show.
pub fn parse(text: &str, origin: &str) -> Result<JobFile, JobErrors> {
    let origin: Arc<str> = Arc::from(origin);
    let mut problems = Vec::new();
    if text.len() > FILE_BYTES_MAX {
        let what = format!("longer than {FILE_BYTES_MAX} bytes, so it is not a job file");
        return Err(JobErrors::one(Problem::of_file(&origin, what)));
    }
    let (mut jobs, mut ignored) = (Vec::<Job>::new(), Vec::new());
    let mut global = Options::default();
    for section in ini::sections(text, &origin, &mut problems) {
        let is_global = section.name == "global";
        let mut options = if is_global { std::mem::take(&mut global) } else { global.clone() };
        for setting in &section.settings {
            if problems.len() < PROBLEMS_MAX {
                apply(setting, &origin, &mut options, &mut problems, &mut ignored);
            }
        }
        if is_global {
            global = options;
        } else {
            jobs.push(Job { name: section.name, place: section.place, options });
        }
    }
    if problems.len() >= PROBLEMS_MAX {
        problems.push(Problem::of_file(&origin, "too many errors: the rest of the file was not judged".to_owned()));
    }
    if jobs.is_empty() && problems.is_empty() {
        let what = if text.trim().is_empty() {
            "the job file is empty"
        } else {
            "no job in it: add a section such as [reader]"
        };
        problems.push(Problem::of_file(&origin, what.to_owned()));
    }
    if problems.is_empty() { Ok(JobFile { origin, jobs, ignored }) } else { Err(JobErrors { problems }) }
}

fn apply(
    setting: &Setting,
    origin: &Arc<str>,
    options: &mut Options,
    problems: &mut Vec<Problem>,
    ignored: &mut Vec<Problem>,
) {
    let Some(key) = key(&setting.key) else {
        let near = keys::nearest(&setting.key);
        let help = near.map_or_else(
            || "keys of fio's that are not simulated cannot be used here".to_owned(),
            |near| format!("did you mean `{near}`?"),
        );
        problems.push(Problem::at(origin, &setting.key_location, format!("unknown key `{}`", setting.key), Some(help)));
        return;
    };
    match key.effect {
        Effect::Set(set) => {
            options.places.insert(key.name, setting.value_location.clone());
            if let Err(what) = set(options, setting.value.as_deref()) {
                problems.push(Problem::at(origin, &setting.value_location, format!("`{}`: {what}", key.name), None));
            }
        }
        Effect::Nothing(why) => {
            ignored.push(Problem::at(
                origin,
                &setting.key_location,
                format!("`{}` changes nothing: {why}", key.name),
                None,
            ));
        }
    }
}
