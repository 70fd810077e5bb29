//! From a target to its directory, in such a way that it cannot be another one: a cgroup is opened strictly beneath the
//! root of the hierarchy, following no link, and its inode is compared; a disk is looked up by name, the kernel's own
//! link is followed by hand into `devices`, and its number is compared. Then a knob is read or written relative to that
//! directory, by a file name from the closed list. What a server of ours holds is asked and told over its socket (`served`).

use crate::error::{KnobFailure, name_of};
use crate::opening::{open_dir_beneath, open_file_beneath, open_root, open2, read_relative, read_whole};
use crate::served::{ServedKnob, Servers};
use crate::settings::WriterSettings;
use minerva_model::{CgroupRef, DeviceId, KnobFile, KnobTarget};
use rustix::fs::{AtFlags, Dir, FileType, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The trees in which knobs are. A root that cannot be opened is an error of the knobs below it only.
#[derive(Debug)]
pub(crate) struct Roots {
    cgroup: Result<OwnedFd, Errno>,
    block: Result<OwnedFd, Errno>,
    devices: Result<OwnedFd, Errno>,
    cgroup_root: PathBuf,
    servers: Arc<Servers>,
    cgroup_shown: String,
    sys_shown: String,
}

/// Where knobs are: a cgroup's or disk's directory, open, or a disk at a server of ours.
#[derive(Debug)]
pub(crate) struct OpenTarget {
    way: Way,
    /// Tells this directory or server from every other one of this boot.
    pub(crate) inode: u64,
    shown: String,
}

#[derive(Debug)]
enum Way {
    Directory {
        dir: OwnedFd,
        /// A file that such a directory has for as long as it is in the tree.
        sentinel: &'static str,
    },
    Server(Arc<Servers>, ServedKnob),
}

impl Roots {
    pub(crate) fn open(settings: &WriterSettings) -> Self {
        Self {
            cgroup: open_root(&settings.cgroup_root),
            block: open_root(&settings.sys_root.join("block")),
            devices: open_root(&settings.sys_root.join("devices")),
            cgroup_root: settings.cgroup_root.clone(),
            servers: Arc::new(Servers::open(&settings.runtime_dir)),
            cgroup_shown: settings.cgroup_root.display().to_string(),
            sys_shown: settings.sys_root.display().to_string(),
        }
    }

    /// Where the hierarchy is mounted.
    pub(crate) fn cgroup_root(&self) -> &Path {
        &self.cgroup_root
    }

    /// Finds the place in which `file` of `target` is.
    pub(crate) fn place(
        &self,
        target: &KnobTarget,
        file: KnobFile,
        device: DeviceId,
    ) -> Result<OpenTarget, KnobFailure> {
        match target {
            KnobTarget::Server { server, disk } if is_of_server(file) => self.served(server, disk),
            KnobTarget::Cgroup { cgroup, .. } if !is_disk_setting(file) && !is_of_server(file) => self.cgroup(cgroup),
            KnobTarget::Disk { name } if is_disk_setting(file) => self.disk(name, device),
            KnobTarget::Cgroup { .. } => Err(not_its(file, "a cgroup")),
            KnobTarget::Disk { .. } => Err(not_its(file, "a disk")),
            KnobTarget::Server { .. } => Err(not_its(file, "a server")),
        }
    }

    fn served(&self, server: &str, disk: &str) -> Result<OpenTarget, KnobFailure> {
        let (knob, inode, shown) = self.servers.find(server, disk)?;
        Ok(OpenTarget { way: Way::Server(Arc::clone(&self.servers), knob), inode, shown })
    }

    fn cgroup(&self, cgroup: &CgroupRef) -> Result<OpenTarget, KnobFailure> {
        let shown = format!("{}/{}", self.cgroup_shown, cgroup.path);
        let root = root(&self.cgroup, &self.cgroup_shown)?;
        if cgroup.path.starts_with('/') || cgroup.path.split('/').any(|part| part == "..") {
            return Err(KnobFailure::guard(format!("{shown} would lead out of the cgroup hierarchy")));
        }
        let relative = if cgroup.path.is_empty() { "." } else { &*cgroup.path };
        let dir = open_dir_beneath(root, relative).map_err(|errno| not_a_directory(&shown, errno))?;
        let inode = inode_of(&dir, &shown)?;
        // Zero stands for "whichever it is": groups that only stand above tenants are known by path.
        if cgroup.inode != 0 && cgroup.inode != inode {
            let why = format!("{shown} is another cgroup now (inode {inode}, not {})", cgroup.inode);
            return Err(KnobFailure::Vanished { why });
        }
        Ok(OpenTarget { way: Way::Directory { dir, sentinel: "cgroup.procs" }, inode, shown })
    }

    fn disk(&self, name: &str, device: DeviceId) -> Result<OpenTarget, KnobFailure> {
        let shown = format!("{}/block/{name}", self.sys_shown);
        if name.is_empty() || name.contains('/') || name == "." || name == ".." {
            return Err(KnobFailure::guard(format!("`{name}` is not a disk's name")));
        }
        let block = root(&self.block, &self.sys_shown)?;
        let devices = root(&self.devices, &self.sys_shown)?;
        let link = rustix::fs::readlinkat(block, name, Vec::new()).map_err(|errno| not_a_directory(&shown, errno))?;
        let link = link.to_string_lossy();
        let Some(relative) = link.strip_prefix("../devices/") else {
            return Err(KnobFailure::guard(format!("{shown} leads to {link}, which is not below devices")));
        };
        let dir = open_dir_beneath(devices, relative).map_err(|errno| not_a_directory(&shown, errno))?;
        let inode = inode_of(&dir, &shown)?;
        let number = read_relative(&dir, "dev");
        let place = OpenTarget { way: Way::Directory { dir, sentinel: "dev" }, inode, shown };
        match number {
            Ok(text) if text.trim().parse() == Ok(device) => Ok(place),
            Ok(text) => {
                let why = format!("{} is device {} now, not {device}", place.shown, text.trim());
                Err(KnobFailure::Vanished { why })
            }
            Err(errno) => Err(not_a_directory(&place.shown, errno)),
        }
    }
}

impl OpenTarget {
    /// The knob's path, for messages.
    pub(crate) fn shown(&self, file: KnobFile) -> String {
        format!("{}/{}", self.shown.trim_end_matches('/'), file.file_name())
    }

    /// The directory, for calls that take one. A server of ours has none.
    pub(crate) fn directory(&self) -> Result<&OwnedFd, Errno> {
        match &self.way {
            Way::Directory { dir, .. } => Ok(dir),
            Way::Server(..) => Err(Errno::OPNOTSUPP),
        }
    }

    /// The whole text of a knob.
    pub(crate) fn read(&self, file: KnobFile) -> Result<String, KnobFailure> {
        match &self.way {
            Way::Directory { dir, .. } => {
                read_relative(dir, file.file_name()).map_err(|errno| self.failure("reading", file, errno))
            }
            Way::Server(servers, knob) => servers.say(knob, file, None),
        }
    }

    /// Writes a knob with one `write(2)` or one message, which is taken or refused as a whole, and reads what it holds then.
    pub(crate) fn write_and_read_back(&self, file: KnobFile, text: &str) -> Result<String, KnobFailure> {
        let dir = match &self.way {
            Way::Directory { dir, .. } => dir,
            Way::Server(servers, knob) => return servers.say(knob, file, Some(text)),
        };
        let action = format!("writing `{text}` to");
        let refused = |errno| self.failure(&action, file, errno);
        let fd = open_file_beneath(dir, file.file_name(), OFlags::RDWR).map_err(refused)?;
        let line = format!("{text}\n");
        let count = rustix::io::retry_on_intr(|| rustix::io::write(&fd, line.as_bytes())).map_err(refused)?;
        if count != line.len() {
            let shown = self.shown(file);
            return Err(KnobFailure::guard(format!(
                "{action} {shown}: the kernel took {count} of {} bytes",
                line.len()
            )));
        }
        #[cfg(test)]
        crate::failpoint::reach();
        read_whole(&fd).map_err(|errno| self.failure("reading back", file, errno))
    }

    /// The whole text of another file of this directory.
    pub(crate) fn read_relative(&self, name: &str) -> Result<String, Errno> {
        read_relative(self.directory()?, name)
    }

    /// Writes another file of this directory with one `write(2)`.
    pub(crate) fn write_relative(&self, name: &str, text: &str) -> Result<(), Errno> {
        let fd = open_file_beneath(self.directory()?, name, OFlags::WRONLY)?;
        rustix::io::retry_on_intr(|| rustix::io::write(&fd, text.as_bytes())).map(drop)
    }

    /// The files of a directory in this one, in order; none if it is not there.
    pub(crate) fn names_in(&self, directory: &str) -> Vec<String> {
        let opened = self.directory().and_then(|dir| open2(dir, directory, OFlags::RDONLY | OFlags::DIRECTORY));
        let entries = opened.and_then(Dir::new).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.file_type() == FileType::RegularFile);
        let mut names: Vec<String> = files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    fn failure(&self, action: &str, file: KnobFile, errno: Errno) -> KnobFailure {
        let shown = self.shown(file);
        // A directory that was removed while it was held open has no files any more; one that lacks only the knob has.
        let is_there = |(dir, sentinel)| rustix::fs::statat(dir, sentinel, AtFlags::empty()).is_ok();
        let directory = match &self.way {
            Way::Directory { dir, sentinel } => Some((dir, *sentinel)),
            Way::Server(..) => None,
        };
        if errno == Errno::NOENT && !directory.is_some_and(is_there) {
            return KnobFailure::Vanished { why: format!("{shown} was removed just now") };
        }
        if errno == Errno::NOENT {
            return KnobFailure::Refused {
                errno: Some(errno),
                detail: format!(
                    "{action} {shown}: the kernel has no such file here; its controller or elevator is not in force \
                     (`minerva-ctl doctor` says what is missing)"
                ),
            };
        }
        KnobFailure::kernel(action, &shown, file, errno)
    }
}

/// Whether it is no file but a knob of a server of ours.
const fn is_of_server(file: KnobFile) -> bool {
    matches!(file, KnobFile::ServerWeight)
}

fn not_its(file: KnobFile, whose: &str) -> KnobFailure {
    let owner = match file {
        _ if is_of_server(file) => "knob of a server",
        _ if is_disk_setting(file) => "setting of a disk",
        _ => "file of a cgroup",
    };
    KnobFailure::guard(format!("{} is a {owner}, not of {whose}", file.file_name()))
}

/// Whether the file is below a disk's directory in sysfs.
pub(crate) const fn is_disk_setting(file: KnobFile) -> bool {
    matches!(file, KnobFile::Elevator | KnobFile::BfqLowLatency | KnobFile::BfqStrictGuarantees)
}

fn root<'a>(root: &'a Result<OwnedFd, Errno>, shown: &str) -> Result<&'a OwnedFd, KnobFailure> {
    root.as_ref().map_err(|errno| KnobFailure::Refused {
        errno: Some(*errno),
        detail: format!("opening {shown}: {}; is it mounted, and where the settings say?", name_of(*errno)),
    })
}

fn inode_of(dir: &OwnedFd, shown: &str) -> Result<u64, KnobFailure> {
    rustix::fs::fstat(dir).map(|status| status.st_ino).map_err(|errno| not_a_directory(shown, errno))
}

fn not_a_directory(shown: &str, errno: Errno) -> KnobFailure {
    match errno {
        Errno::NOENT | Errno::NODEV => KnobFailure::Vanished { why: format!("{shown} is gone") },
        Errno::LOOP | Errno::XDEV => KnobFailure::Refused {
            errno: Some(errno),
            detail: format!(
                "{shown} leads through a symbolic link or out of its tree, which no cgroup or disk does; it was not \
                 followed: find out who put it there"
            ),
        },
        _ => KnobFailure::Refused { errno: Some(errno), detail: format!("opening {shown}: {}", name_of(errno)) },
    }
}
