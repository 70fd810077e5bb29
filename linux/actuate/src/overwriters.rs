//! Names who else writes a knob, so that a finding says "process 812 (systemd)" and not "somebody".
//!
//! A knob that was overwritten once is marked with fanotify, and from then on the kernel tells the process id of each
//! writer. That works on cgroup files (measured on 6.18, v1 hierarchy): kernfs files report `FAN_MODIFY` like any other,
//! as long as the write comes through a system call. It needs `CAP_SYS_ADMIN`; without it [`Overwriters::open`] fails with
//! `EPERM`, and findings name only the manager that is likely ([`minerva_model::TenantKind::manager`]).
//!
//! Limits: the first overwrite has no witness, since marking everything would cost an inode for each knob; and a writer
//! that ends before [`Overwriters::culprits`] is called leaves a number without a name. The daemon can poll the group's
//! file descriptor, which is readable when there is news, and so be in time for most.

use crate::error::{ActuateError, KnobFailure};
use crate::open_beneath::{OpenTarget, Roots};
use crate::settings::WriterSettings;
use minerva_model::{DeviceId, KnobFile, KnobTarget, Outcome};
use nix::errno::Errno;
use nix::sys::fanotify::{EventFFlags, Fanotify, InitFlags, MarkFlags, MaskFlags};
use rustix::fs::{Mode, OFlags};
use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::{fmt, fs};

/// A mark pins an inode in memory. This many knobs under dispute are more than an operator can look into.
const MARKS_MAX: usize = 64;

/// One call never takes longer than so many readings of some hundred events; the rest waits for the next.
const READS_MAX: usize = 128;

/// A command line is told up to here.
const COMMAND_CHARS_MAX: usize = 160;

/// More is not read of a file of a process.
const COMMAND_BYTES_MAX: u64 = 4096;

/// Somebody who wrote a knob.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Culprit {
    /// The knob.
    pub path: PathBuf,
    /// The process, as this process's pid namespace numbers it; 0 if it is outside.
    pub pid: u32,
    /// Its name, or `None` if it had ended when it was looked at.
    pub name: Option<String>,
    /// Its command line, cut to a readable length.
    pub command_line: Option<String>,
    /// The systemd unit that it runs in, if its cgroup names one.
    pub unit: Option<String>,
}

impl fmt::Display for Culprit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {}", self.pid)?;
        match (&self.name, &self.command_line) {
            (Some(name), Some(line)) => write!(f, " ({name}: `{line}`)")?,
            (Some(name), None) => write!(f, " ({name})")?,
            (None, _) => write!(f, ", which has ended")?,
        }
        match &self.unit {
            Some(unit) => write!(f, " of {unit}"),
            None => Ok(()),
        }
    }
}

/// The marks, and where the kernel reports.
#[derive(Debug)]
pub struct Overwriters {
    group: Fanotify,
    roots: Roots,
    marks: VecDeque<(u64, KnobFile, OpenTarget)>,
}

impl Overwriters {
    /// Opens a fanotify group.
    pub fn open(settings: &WriterSettings) -> Result<Self, ActuateError> {
        let flags = InitFlags::FAN_CLASS_NOTIF | InitFlags::FAN_NONBLOCK | InitFlags::FAN_CLOEXEC;
        let group = Fanotify::init(flags, EventFFlags::O_RDONLY | EventFFlags::O_CLOEXEC)
            .map_err(ActuateError::io("watch for writers with", Path::new("fanotify")))?;
        Ok(Self { group, roots: Roots::open(settings), marks: VecDeque::new() })
    }

    /// Watches a knob from now on. Beyond 64 the one that has been watched longest is let go. `device` matters for a
    /// disk's own settings only. `None` if it is watched; else why not, as for a write.
    pub fn watch(&mut self, target: &KnobTarget, file: KnobFile, device: DeviceId) -> Option<Outcome> {
        self.try_watch(target, file, device).err().map(Outcome::from)
    }

    fn try_watch(&mut self, target: &KnobTarget, file: KnobFile, device: DeviceId) -> Result<(), KnobFailure> {
        let place = self.roots.place(target, file, device)?;
        if self.marks.iter().any(|(inode, marked, _)| (*inode, *marked) == (place.inode, file)) {
            return Ok(());
        }
        if self.marks.len() >= MARKS_MAX
            && let Some((_, marked, place)) = self.marks.pop_front()
        {
            // A knob that is gone took its mark along.
            let _ = self.mark(MarkFlags::FAN_MARK_REMOVE, &place, marked);
        }
        self.mark(MarkFlags::FAN_MARK_ADD, &place, file).map_err(|errno| {
            let errno = rustix::io::Errno::from_raw_os_error(errno as i32);
            KnobFailure::kernel("watching", &place.shown(file), file, errno)
        })?;
        self.marks.push_back((place.inode, file, place));
        Ok(())
    }

    /// Lets a knob go that is nobody's quarrel any more.
    pub fn unwatch(&mut self, target: &KnobTarget, file: KnobFile, device: DeviceId) {
        let Ok(place) = self.roots.place(target, file, device) else { return };
        let marked = self.marks.iter().position(|(inode, marked, _)| (*inode, *marked) == (place.inode, file));
        if let Some((_, marked, place)) = marked.and_then(|index| self.marks.remove(index)) {
            // A knob that is gone took its mark along.
            let _ = self.mark(MarkFlags::FAN_MARK_REMOVE, &place, marked);
        }
    }

    fn mark(&self, action: MarkFlags, place: &OpenTarget, file: KnobFile) -> nix::Result<()> {
        let flags = action | MarkFlags::FAN_MARK_DONT_FOLLOW;
        let dir = place.directory().map_err(|errno| Errno::from_raw(errno.raw_os_error()))?;
        self.group.mark(flags, MaskFlags::FAN_MODIFY, dir, Some(file.file_name()))
    }

    /// Who wrote watched knobs since the last call, each process once a knob, sorted. This process is not a culprit.
    pub fn culprits(&mut self) -> Vec<Culprit> {
        let own_pid = i32::try_from(std::process::id()).unwrap_or(0);
        let mut seen = BTreeSet::new();
        for _ in 0..READS_MAX {
            match self.group.read_events() {
                Ok(events) => {
                    for event in events.iter().filter(|event| event.pid() != own_pid) {
                        if let Some(path) = event.fd().and_then(path_of) {
                            seen.insert((path, u32::try_from(event.pid()).unwrap_or(0)));
                        }
                    }
                }
                Err(Errno::EAGAIN) => break,
                // The knob of this event went away before it could be opened for us; the next one may be there.
                Err(_) => {}
            }
        }
        seen.into_iter().map(|(path, pid)| describe(path, pid)).collect()
    }
}

impl AsFd for Overwriters {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.group.as_fd()
    }
}

fn path_of(fd: BorrowedFd<'_>) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
}

fn describe(path: PathBuf, pid: u32) -> Culprit {
    let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).ok();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Culprit {
        name: read("comm").map(|bytes| text(bytes).trim_end().to_owned()),
        command_line: command_line(pid),
        unit: read("cgroup").and_then(|bytes| unit_in(&text(bytes))),
        path,
        pid,
    }
}

/// The arguments of a process of root's. A process says itself where its arguments lie and how many they are, so that of others' none are read.
fn command_line(pid: u32) -> Option<String> {
    let process = File::open(format!("/proc/{pid}")).ok()?;
    let read = |name: &str| {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let mut bytes = Vec::new();
        // Of this process, though the number may be another's by now.
        let file = File::from(rustix::fs::openat(&process, name, flags, Mode::empty()).ok()?);
        file.take(COMMAND_BYTES_MAX).read_to_end(&mut bytes).ok().map(|_| bytes)
    };
    is_roots(&read("status")?)
        .then(|| read("cmdline"))?
        .map(|bytes| command_line_of(&bytes))
        .filter(|line| !line.is_empty())
}

/// Every user that `/proc/<pid>/status` names is root.
fn is_roots(status: &[u8]) -> bool {
    let text = String::from_utf8_lossy(status);
    let mut users =
        text.lines().find_map(|line| line.strip_prefix("Uid:")).unwrap_or_default().split_whitespace().peekable();
    users.peek().is_some() && users.all(|user| user == "0")
}

fn command_line_of(bytes: &[u8]) -> String {
    let spaced: Vec<u8> = bytes.iter().map(|byte| if *byte == 0 { b' ' } else { *byte }).collect();
    String::from_utf8_lossy(&spaced).trim().chars().take(COMMAND_CHARS_MAX).collect()
}

/// The innermost unit of `/proc/<pid>/cgroup`, from the v2 line or systemd's own v1 hierarchy.
fn unit_in(text: &str) -> Option<String> {
    let line =
        text.lines().find(|line| line.contains(":name=systemd:")).or(text.lines().find(|l| l.starts_with("0::")))?;
    let is_unit = |part: &&str| part.ends_with(".service") || part.ends_with(".scope");
    line.rsplit('/').find(is_unit).map(str::to_owned)
}

#[cfg(test)]
mod unit_tests {
    use super::{is_roots, unit_in};

    #[test]
    fn only_of_roots_processes_arguments_are_read() {
        let status = |users: &str| format!("Name:\tsh\nUid:\t{users}\nGid:\t0\t0\t0\t0\n").into_bytes();
        assert!(is_roots(&status("0\t0\t0\t0")));
        for users in ["1000\t0\t0\t0", "0\t1000\t0\t0", "1000\t1000\t1000\t1000", ""] {
            assert!(!is_roots(&status(users)), "{users}");
        }
        assert!(!is_roots(b"Name:\tUid: 0\n") && !is_roots(b""));
    }

    #[test]
    fn the_innermost_unit_is_named() {
        let table = [
            ("0::/system.slice/docker.service\n", Some("docker.service")),
            ("12:blkio:/\n1:name=systemd:/user.slice/user-1.slice/session-3.scope\n0::/x\n", Some("session-3.scope")),
            ("0::/machine.slice/machine-a.scope/libvirt/vcpu0\n", Some("machine-a.scope")),
            ("0::/\n", None),
            ("", None),
        ];
        for (text, unit) in table {
            assert_eq!(unit_in(text).as_deref(), unit, "{text:?}");
        }
    }
}
