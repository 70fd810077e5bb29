//! What a hostile tenant does, in processes of its own.

use crate::clock::boottime;
use crate::error::{At, LabError, Result};
use crate::lifetime::die_with_this_thread;
use crate::workload::WorkerProgram;
use minerva_model::Nanos;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// So many processes work at once: no single one may have as many files open.
const PROCESSES: u64 = 8;
/// So many files all of them hold open.
pub const HOSTILE_OPENED: u64 = 100_000;
/// Who holds what it wanted looks again after so long, and so does who is refused.
const PAUSE: Duration = Duration::from_millis(1);
/// What a process says once it is.
const AT_WORK: &str = "at work";
/// So often it is asked whether who waits for that was interrupted.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// What a hostile tenant does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Hostility {
    /// Fills its tree, empties it, and fills it again.
    Fills,
    /// Holds 100,000 files open.
    Opens,
    /// Renames files and directories in circles.
    Renames,
    /// Makes, looks at and removes files.
    Makes,
}

impl Hostility {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Fills, Self::Opens, Self::Renames, Self::Makes];

    /// After so many acts a process is what a neighbour is to have beside it.
    const fn acts_until_at_work(self) -> u64 {
        match self {
            Self::Opens => HOSTILE_OPENED / PROCESSES,
            Self::Fills | Self::Renames | Self::Makes => 1,
        }
    }
}

/// What one process did since it was told that the neighbour is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) acts: u64,
    pub(super) refused: u64,
    /// Files that it held open at its end.
    pub(super) held: u64,
}

impl Done {
    const fn count(&mut self, act: &io::Result<()>) {
        *(if act.is_ok() { &mut self.acts } else { &mut self.refused }) += 1;
    }

    /// It did nothing that a neighbour could have felt. Who is to hold more files than there are asks for them still.
    pub(super) const fn is_idle(&self, hostility: Hostility) -> bool {
        self.acts == 0 && !(matches!(hostility, Hostility::Opens) && self.refused > 0)
    }
}

/// What `minerva-lab hostile` does: it acts in a directory of its own until its standard input ends, and says how often since a line came
/// there, or in all if none did. Before that it says when it is at work, or the first time that it is refused something.
pub fn hostile_main(hostility: Hostility, directory: &Path) -> Result<()> {
    let told = Arc::new([AtomicBool::new(false), AtomicBool::new(false)]);
    let of_thread = Arc::clone(&told);
    std::thread::spawn(move || {
        let [begins, ends] = &*of_thread;
        while io::stdin().lock().read_line(&mut String::new()).is_ok_and(|bytes| bytes > 0) {
            begins.store(true, Ordering::Relaxed);
        }
        ends.store(true, Ordering::Release);
    });
    let [begins, ends] = &*told;
    // Nobody else is to refuse it a file.
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, rustix::process::Rlimit { current: limit.maximum, ..limit });
    let (mut done, mut all, mut is_at_work) = (Done::default(), Done::default(), false);
    // Where this is refused all else is, and counted.
    let _ = fs::create_dir_all(directory);
    let held = hostility.go_on(directory, &mut |act| {
        // Looked at first: once it is over, it has also begun.
        let is_over = ends.load(Ordering::Acquire);
        // This act may have begun before, but ends in what is counted.
        if begins.swap(false, Ordering::Relaxed) {
            done = Done::default();
        }
        done.count(&act);
        all.count(&act);
        if !is_at_work && (all.refused > 0 || all.acts >= hostility.acts_until_at_work()) {
            is_at_work = true;
            let _ = writeln!(io::stdout(), "{AT_WORK}");
        }
        !is_over
    });
    done.held = held as u64;
    let _ = fs::remove_dir_all(directory);
    let text = serde_json::to_string(&done).unwrap_or_default();
    writeln!(io::stdout(), "{text}").at("report to", "the parent")
}

/// One process; killed when dropped.
pub(super) struct HostileProcess {
    child: Child,
    said: BufReader<ChildStdout>,
}

impl HostileProcess {
    /// All of a tenant's, each in a directory of its own.
    pub(super) fn start_all(program: &WorkerProgram, hostility: Hostility, directory: &Path) -> Result<Vec<Self>> {
        let start = |number| {
            let mut command = Command::new(&program.0);
            let act = serde_json::to_string(&hostility).unwrap_or_default();
            command.arg("hostile").arg("--act").arg(act.trim_matches('"'));
            command.arg("--directory").arg(directory.join(format!("h{number}")));
            // What a terminal sends is for whoever conducts.
            command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
            die_with_this_thread(&mut command);
            let mut child = command.spawn().at("start", &program.0)?;
            let said = child.stdout.take().ok_or_else(ended_early)?;
            Ok(Self { child, said: BufReader::new(said) })
        };
        (0..PROCESSES).map(start).collect()
    }

    /// Waits until it is at work or was refused something, or until then.
    pub(super) fn wait_until_at_work(&mut self, until: Nanos, interrupted: &AtomicBool) -> Result<()> {
        while boottime() < until {
            if interrupted.load(Ordering::Relaxed) {
                return Err(LabError::Interrupted);
            }
            let mut polled = [PollFd::new(self.said.get_ref(), PollFlags::IN)];
            if poll(&mut polled, Some(&LOOK)).is_ok_and(|ready| ready > 0) {
                // Of one that has ended its end tells.
                self.said.read_line(&mut String::new()).at("listen to", "a hostile process")?;
                break;
            }
        }
        Ok(())
    }

    /// Tells it to count from here on.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.child.stdin.as_mut().map_or(Ok(()), |stdin| writeln!(stdin)).at("tell", "a hostile process")
    }

    /// Ends them; what each did. All are told before one is waited for, which would be held up by those that go on.
    pub(super) fn end_all(mut processes: Vec<Self>) -> Result<Vec<Done>> {
        processes.iter_mut().for_each(|process| drop(process.child.stdin.take()));
        processes.into_iter().map(Self::done).collect()
    }

    fn done(mut self) -> Result<Done> {
        let mut said = String::new();
        self.said.read_to_string(&mut said).at("listen to", "a hostile process")?;
        let last = said.lines().last().unwrap_or_default();
        serde_json::from_str(last).map_err(|_| ended_early())
    }
}

fn ended_early() -> LabError {
    LabError::BadPlan("a hostile process ended early".to_owned())
}

impl Drop for HostileProcess {
    fn drop(&mut self) {
        // One that has ended is fine.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Hostility {
    /// Goes on until `told`, which hears of each act, says that it is enough; how many files it held open then.
    fn go_on(self, directory: &Path, told: &mut dyn FnMut(io::Result<()>) -> bool) -> usize {
        match self {
            Self::Fills => fill(directory, told),
            Self::Opens => return open(directory, told),
            Self::Renames => rename(directory, told),
            Self::Makes => while told(make(&directory.join("made"))) {},
        }
        0
    }
}

fn fill(directory: &Path, told: &mut dyn FnMut(io::Result<()>) -> bool) {
    let block = vec![0x5a; 1 << 20];
    loop {
        let mut file = match File::create(directory.join("full")) {
            Ok(file) => file,
            Err(refused) => {
                std::thread::sleep(PAUSE);
                if told(Err(refused)) {
                    continue;
                }
                return;
            }
        };
        loop {
            let written = file.write_all(&block);
            let is_full = written.is_err();
            if !told(written) {
                return;
            }
            if is_full {
                break;
            }
        }
    }
}

fn open(directory: &Path, told: &mut dyn FnMut(io::Result<()>) -> bool) -> usize {
    let mut held = Vec::new();
    let mut number = 0_u64;
    loop {
        let done = if held.len() as u64 >= HOSTILE_OPENED / PROCESSES {
            // All are open: now the same ones are looked at again.
            std::thread::sleep(PAUSE);
            fs::metadata(directory.join("0")).map(drop)
        } else {
            File::create(directory.join(number.to_string())).map(|file| held.push(file))
        };
        if done.is_err() {
            std::thread::sleep(PAUSE);
        }
        if !told(done) {
            return held.len();
        }
        number += 1;
    }
}

fn rename(directory: &Path, told: &mut dyn FnMut(io::Result<()>) -> bool) {
    let paths = ["a", "b", "c"].map(|name| directory.join(name));
    let _ = fs::create_dir_all(paths[0].join("deep/deeper"));
    let _ = File::create(paths[0].join("deep/deeper/file"));
    for step in 0.. {
        if !told(fs::rename(&paths[step % 3], &paths[(step + 1) % 3])) {
            return;
        }
    }
}

fn make(path: &Path) -> io::Result<()> {
    drop(File::create(path)?);
    fs::metadata(path)?;
    fs::remove_file(path)
}

#[cfg(test)]
mod tests {
    use super::{Done, Hostility};

    #[test]
    fn who_may_make_no_file_is_refused_and_goes_on_asking() {
        let folder = tempfile::tempdir().expect("a folder");
        let missing = folder.path().join("missing");
        for hostility in [Hostility::Fills, Hostility::Makes, Hostility::Renames, Hostility::Opens] {
            let mut done = Done::default();
            hostility.go_on(&missing.join("deeper"), &mut |act| {
                // Nobody made its directory.
                std::fs::remove_dir_all(&missing).ok();
                done.count(&act);
                done.acts + done.refused < 5
            });
            assert!(done.refused >= 4, "{hostility:?}: {done:?}");
        }
    }

    #[test]
    fn who_is_refused_all_is_idle_unless_it_is_to_hold_more_than_there_is() {
        let idle = |hostility, acts, refused| Done { acts, refused, held: 0 }.is_idle(hostility);
        assert_eq!([idle(Hostility::Fills, 0, 9), idle(Hostility::Opens, 0, 9)], [true, false]);
        assert_eq!([idle(Hostility::Makes, 1, 9), idle(Hostility::Opens, 0, 0)], [false, true]);
    }
}
