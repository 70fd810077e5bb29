//! The level that holds until a process ends, written down, so that it outlives the agent: one small file beside the socket, or in a directory of the agent's own. There
//! it ends with the boot, as the process does, and only the agent's own user can have put it there.

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// A process whose end is waited for.
#[derive(Debug)]
pub(crate) struct Watched {
    pub(crate) number: i32,
    /// In clock ticks since boot: a later process of the same number started later.
    pub(crate) start_ticks: u64,
    /// A pidfd.
    pub(crate) descriptor: OwnedFd,
}

impl Watched {
    /// The process that has this number now, if one does.
    pub(crate) fn open(pid: Pid) -> Option<Self> {
        let number = pid.as_raw_nonzero().get();
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        let start_ticks = procfs::process::Process::new(number).and_then(|process| process.stat()).ok()?.starttime;
        let watched = Self { number, start_ticks, descriptor };
        // What the number stands for was read after the descriptor was opened: if that lives still, both are of one process.
        (!watched.has_ended()).then_some(watched)
    }

    /// A pidfd is readable when its process has ended.
    pub(crate) fn has_ended(&self) -> bool {
        let mut polled = [PollFd::new(&self.descriptor, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        !matches!(poll(&mut polled, Some(&at_once)), Ok(0))
    }
}

/// Where the level is written down.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    path: PathBuf,
}

impl Record {
    /// In the directory that a service manager made for the agent (`$RUNTIME_DIRECTORY`), else beside its socket.
    pub(crate) fn of_agent(socket: &Path, own_directory: Option<OsString>) -> Self {
        let path = match own_directory.filter(|directory| !directory.is_empty()) {
            Some(directory) => Path::new(&directory).join("agent.level"),
            None => socket.with_extension("level"),
        };
        Self { path }
    }

    /// Writes down a level and the process that it lasts as long as: whole, or not at all.
    pub(crate) fn write(&self, level: i32, process: &Watched) -> io::Result<()> {
        let kept = serde_json::json!({
            "level": level,
            "process": process.number,
            "start_ticks": process.start_ticks,
            "boot": boot()?,
        });
        let new = self.path.with_extension("level-new");
        fs::write(&new, kept.to_string())?;
        fs::rename(&new, &self.path)
    }

    /// There is no such level any more.
    pub(crate) fn remove(&self) {
        // One that stays names a process that has ended, and is not taken for another when it is read.
        let _ = fs::remove_file(&self.path);
    }

    /// What an agent before this one wrote down, if the process lives.
    pub(crate) fn read(&self) -> anyhow::Result<Option<(i32, Watched)>> {
        let text = match fs::read_to_string(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.with_context(|| format!("failed to read {}", self.path.display()))?,
        };
        let kept: serde_json::Value =
            serde_json::from_str(&text).with_context(|| format!("{} is no JSON", self.path.display()))?;
        let number = |key: &str| kept[key].as_i64().and_then(|number| i32::try_from(number).ok());
        let same = |process: &Watched| kept["start_ticks"].as_u64() == Some(process.start_ticks);
        if kept["boot"].as_str() != Some(&boot()?) {
            return Ok(None);
        }
        let process = number("process").and_then(Pid::from_raw).and_then(Watched::open).filter(same);
        Ok(number("level").zip(process))
    }
}

fn boot() -> io::Result<String> {
    Ok(fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Record, Watched};
    use rustix::process::Pid;
    use std::process::Command;

    #[test]
    fn a_level_is_read_back_while_its_process_lives_and_of_no_other() {
        let directory = tempfile::tempdir().expect("a directory");
        let record = Record::of_agent(&directory.path().join("agent.sock"), None);
        assert!(record.read().expect("nothing there").is_none());
        let mut child = Command::new("sleep").arg("600").spawn().expect("a process");
        let pid = Pid::from_raw(i32::try_from(child.id()).expect("a number")).expect("a number");
        let mut process = Watched::open(pid).expect("it lives");
        record.write(3, &process).expect("written");
        let (level, again) = record.read().expect("readable").expect("it lives");
        assert_eq!((level, again.number, again.start_ticks), (3, process.number, process.start_ticks));
        // One that had the number before.
        process.start_ticks -= 1;
        record.write(3, &process).expect("written");
        assert!(record.read().expect("readable").is_none());
        process.start_ticks += 1;
        record.write(3, &process).expect("written");
        child.kill().and_then(|()| child.wait()).expect("an end");
        assert!(process.has_ended() && record.read().expect("readable").is_none());
        std::fs::write(directory.path().join("agent.level"), "{").expect("written");
        assert!(record.read().is_err(), "half a file is no file");
        record.remove();
        assert!(record.read().expect("nothing there").is_none());
    }
}
