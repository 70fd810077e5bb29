//! What a hostile tenant does, in processes of its own.

use crate::error::{At, LabError, Result};
use crate::lifetime::die_with_this_thread;
use crate::workload::WorkerProgram;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// So many processes work at once: no single one may have as many files open.
const PROCESSES: u64 = 8;
/// So many files all of them hold open.
pub const HOSTILE_OPENED: u64 = 100_000;
/// Who holds what it wanted looks again after so long, and so does who is refused.
const PAUSE: Duration = Duration::from_millis(1);

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
}

/// What one process did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) acts: u64,
    pub(super) refused: u64,
    /// Files that it held open at its end.
    pub(super) held: u64,
}

/// What `minerva-lab hostile` does: it acts in a directory of its own until its standard input ends, and says how often.
pub fn hostile_main(hostility: Hostility, directory: &Path) -> Result<()> {
    let ends = Arc::new(AtomicBool::new(false));
    let of_thread = Arc::clone(&ends);
    std::thread::spawn(move || {
        let _ = io::stdin().lock().read_line(&mut String::new());
        of_thread.store(true, Ordering::Relaxed);
    });
    let mut done = Done::default();
    // Where this is refused all else is, and counted.
    let _ = fs::create_dir_all(directory);
    let held = hostility.go_on(directory, &mut |act| {
        *(if act.is_ok() { &mut done.acts } else { &mut done.refused }) += 1;
        !ends.load(Ordering::Relaxed)
    });
    done.held = held as u64;
    let _ = fs::remove_dir_all(directory);
    let text = serde_json::to_string(&done).unwrap_or_default();
    writeln!(io::stdout(), "{text}").at("report to", "the parent")
}

/// One process; killed when dropped.
pub(super) struct HostileProcess(Child);

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
            Ok(Self(command.spawn().at("start", &program.0)?))
        };
        (0..PROCESSES).map(start).collect()
    }

    /// Ends it; what it did.
    pub(super) fn end(mut self) -> Result<Done> {
        drop(self.0.stdin.take());
        let mut line = String::new();
        if let Some(output) = self.0.stdout.take() {
            BufReader::new(output).read_line(&mut line).at("listen to", "a hostile process")?;
        }
        serde_json::from_str(&line).map_err(|_| LabError::BadPlan("a hostile process ended early".to_owned()))
    }
}

impl Drop for HostileProcess {
    fn drop(&mut self) {
        // One that has ended is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
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
        let Ok(mut file) = File::create(directory.join("full")) else { return };
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
