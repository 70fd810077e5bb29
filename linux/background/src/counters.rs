//! Requests that others than background work make of a disk, counted by the kernel when they are made: read every few milliseconds.
//!
//! On v1 that is what the root group counts for all groups, less what is ours, and less what the root group's own threads write: those
//! are journals and pages written back, which our own work causes too. On v2 it is what the groups below the root count, less ours.
//!
//! Of a disk below another one nothing counts that the root group's threads do: an array reads by a thread of its own what it must to write
//! what our work does. Who is in no group at all is not seen there.

use minerva_model::{CgroupVersion, DeviceId};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// More than any of these files holds for a host with thousands of disks.
const TEXT_BYTES_MAX: usize = 1 << 20;
const TEXT_BYTES_FIRST: usize = 4 << 10;
/// How often files are read anew when requests of ours came while they were read.
const TRIES: u32 = 3;
/// A limit that never takes effect, in bytes a second: the throttle counts for a disk once it has a rule.
const NO_LIMIT: &str = "1125899906842624";

/// A file that is read again and again.
#[derive(Debug)]
struct Again {
    path: PathBuf,
    file: Option<File>,
}

impl Again {
    fn new(path: PathBuf) -> Self {
        Self { path, file: None }
    }

    /// Its text; nothing where it cannot be read.
    fn read<'a>(&mut self, buffer: &'a mut Vec<u8>) -> &'a str {
        if self.file.is_none() {
            self.file = File::open(&self.path).ok();
        }
        let Some(file) = &self.file else { return "" };
        let mut length = 0;
        loop {
            if buffer.len() < length + TEXT_BYTES_FIRST {
                buffer.resize(length + TEXT_BYTES_FIRST, 0);
            }
            match file.read_at(&mut buffer[length..], length as u64) {
                Ok(0) => break,
                Ok(read) if length + read <= TEXT_BYTES_MAX => length += read,
                // A group that is gone may be back under its name.
                _ => {
                    self.file = None;
                    return "";
                }
            }
        }
        std::str::from_utf8(&buffer[..length]).unwrap_or_default()
    }
}

/// The files that count, of a disk with this elevator: on v1 one of two layers does.
pub(crate) fn layer(version: CgroupVersion, elevator: &str) -> &'static str {
    match version {
        CgroupVersion::V2 => "",
        _ if elevator == "bfq" => "blkio.bfq",
        _ => "blkio.throttle",
    }
}

/// A disk that is counted.
#[derive(Debug)]
struct Disk {
    device: DeviceId,
    /// As the files begin its lines.
    prefix: String,
    /// The work is not on it by itself, but on what lies on it.
    is_below: bool,
}

/// Counters of a disk and of those that it lies on, as far as the same files count them.
#[derive(Debug)]
pub(crate) struct Counters {
    version: CgroupVersion,
    disks: Vec<Disk>,
    root: PathBuf,
    /// Which of the two layers of v1 counts.
    layer: &'static str,
    all: Vec<Again>,
    root_alone: Option<Again>,
    /// Of the group that runs: its requests are ours.
    ours: Option<(PathBuf, Again)>,
    /// It still needs what makes the throttle count.
    is_to_arm: bool,
    /// Nothing that the root group does counts.
    without_root: bool,
    /// The last reading, of this group.
    last: Option<u64>,
    buffer: Vec<u8>,
}

impl Counters {
    /// For disks of one [`layer`], of which each is said to be below another one or not.
    pub(crate) fn new(root: &Path, version: CgroupVersion, disks: Vec<(DeviceId, bool)>, layer: &'static str) -> Self {
        let disk = |(device, is_below): (DeviceId, bool)| {
            let prefix = format!("{}:{} ", device.major, device.minor);
            Disk { device, prefix, is_below }
        };
        let mut counters = Self {
            version,
            disks: disks.into_iter().map(disk).collect(),
            root: root.to_owned(),
            layer,
            all: Vec::new(),
            root_alone: None,
            ours: None,
            is_to_arm: false,
            without_root: false,
            last: None,
            buffer: Vec::new(),
        };
        counters.open_all();
        counters
    }

    /// From now on the requests of this group are ours. A group that Minerva made gets what makes the throttle count, once it is there; a
    /// tenant's is not touched.
    pub(crate) fn set_ours(&mut self, group: &Path, without_root: bool, is_made_by_us: bool) {
        if self.ours.as_ref().is_none_or(|(ours, _)| ours != group) || self.without_root != without_root {
            let file = match self.version {
                CgroupVersion::V2 => group.join("io.stat"),
                _ => group.join(format!("{}.io_serviced_recursive", self.layer)),
            };
            self.is_to_arm = is_made_by_us && self.version == CgroupVersion::V1 && self.layer == "blkio.throttle";
            self.ours = Some((group.to_owned(), Again::new(file)));
            self.without_root = without_root;
            self.last = None;
            self.open_all();
        }
        if self.is_to_arm {
            self.is_to_arm = !self.arm(group);
        }
    }

    /// Gives a group a rule for each disk; false while there is no such group. Where it cannot be set for another reason nothing is counted.
    fn arm(&self, group: &Path) -> bool {
        let knob = group.join("blkio.throttle.read_bps_device");
        let is_gone = |error: std::io::Error| error.kind() == ErrorKind::NotFound;
        let arm = |disk: &Disk| fs::write(&knob, format!("{} {NO_LIMIT}", disk.device));
        !self.disks.iter().any(|disk| arm(disk).is_err_and(is_gone))
    }

    /// The file below the root that counts what this group does. The group comes with its worker: what it does would be taken off what others
    /// do, without having been counted with it, until it is next looked for groups.
    fn above_ours(&self) -> Option<PathBuf> {
        let (group, _) = self.ours.as_ref().filter(|_| self.version == CgroupVersion::V2)?;
        let top = group.strip_prefix(&self.root).ok()?.components().next()?;
        Some(self.root.join(top).join("io.stat"))
    }

    /// Groups may have come since. Where none has, what was counted stays: beside work that makes requests all the time others are seen only
    /// by several readings.
    pub(crate) fn open_all(&mut self) {
        let mut paths: Vec<PathBuf> = match self.version {
            CgroupVersion::V2 => {
                let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
                let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
                groups.map(|entry| entry.path().join("io.stat")).collect()
            }
            _ => vec![self.root.join(format!("{}.io_serviced_recursive", self.layer))],
        };
        paths.extend(self.above_ours());
        paths.sort_unstable();
        paths.dedup();
        if !paths.is_empty() && paths.iter().eq(self.all.iter().map(|file| &file.path)) {
            return;
        }
        self.all = paths.into_iter().map(Again::new).collect();
        self.root_alone = (self.version == CgroupVersion::V1)
            .then(|| Again::new(self.root.join(format!("{}.io_serviced", self.layer))));
        self.last = None;
    }

    /// What was counted until now is nobody's.
    pub(crate) fn forget(&mut self) {
        self.last = None;
    }

    /// Requests of others since the last call; nothing at the first.
    pub(crate) fn others(&mut self) -> Option<u64> {
        let mut reading = self.read();
        for _ in 1..TRIES {
            if reading.is_exact() {
                break;
            }
            reading = self.read();
        }
        let (last, others) = reading.since(self.last);
        self.last = Some(last);
        others
    }

    fn read(&mut self) -> Reading {
        let Self { version, disks, all, root_alone, ours, without_root, buffer, .. } = self;
        let is_v2 = *version == CgroupVersion::V2;
        // A disk that nobody has used since the boot is in no file.
        let count = |text: &str, disk: &Disk, what: &str| {
            let counted = if is_v2 { of_io_stat(text, &disk.prefix) } else { of_blkio(text, &disk.prefix, what) };
            counted.unwrap_or(0)
        };
        let all_of = |text: &str| disks.iter().map(|disk| count(text, disk, "Total")).sum::<u64>();
        let of_root = |text: &str| {
            let what = |disk: &Disk| if *without_root || disk.is_below { "Total" } else { "Write" };
            disks.iter().map(|disk| count(text, disk, what(disk))).sum::<u64>()
        };
        let mut less = |buffer: &mut Vec<u8>| {
            let ours = ours.as_mut().map_or(0, |(_, file)| all_of(file.read(buffer)));
            ours + root_alone.as_mut().map_or(0, |file| of_root(file.read(buffer)))
        };
        let before = less(buffer);
        let sum: u64 = all.iter_mut().map(|file| all_of(file.read(buffer))).sum();
        let after = less(buffer);
        Reading { others_min: sum.saturating_sub(after), others_max: sum.saturating_sub(before) }
    }
}

/// Requests of others since the counters began, from files that were read one after the other: between these, by as many as ours were
/// meanwhile.
#[derive(Clone, Copy, Debug)]
struct Reading {
    others_min: u64,
    others_max: u64,
}

impl Reading {
    const fn is_exact(self) -> bool {
        self.others_min == self.others_max
    }

    /// What the next reading is compared with, and what others made since `last` at least. Were less than `last` kept though it may be
    /// right, requests of ours would be taken for others' at the next, and our work would stop for itself. More than there can be, as
    /// when a group has ended with its counts, would hide others.
    fn since(self, last: Option<u64>) -> (u64, Option<u64>) {
        let kept = last.unwrap_or(self.others_max).clamp(self.others_min, self.others_max);
        (kept, last.map(|last| self.others_min.saturating_sub(last)))
    }
}

/// Of "8:0 Read 1\n8:0 Write 2\n…\n8:0 Total 3" one.
fn of_blkio(text: &str, prefix: &str, what: &str) -> Option<u64> {
    let rest = |line: &'_ str| -> Option<u64> { line.strip_prefix(prefix)?.strip_prefix(what)?.trim().parse().ok() };
    text.lines().find_map(rest)
}

/// Of "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0" requests both ways.
fn of_io_stat(text: &str, prefix: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(prefix))?;
    let value = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)?.parse::<u64>().ok());
    Some(value("rios=")? + value("wios=")?)
}

#[cfg(test)]
mod coming_tests;

#[cfg(test)]
mod tests {
    use super::{Counters, Reading, of_blkio, of_io_stat};
    use minerva_model::{CgroupVersion, DeviceId};
    use std::fs;
    use std::path::Path;

    /// A group of the unified hierarchy that made so many requests of a disk.
    pub(super) fn write_io_stat(root: &Path, group: &str, requests: u64) {
        fs::create_dir_all(root.join(group)).unwrap();
        let text = format!("8:0 rbytes=0 wbytes=0 rios={requests} wios=0 dbytes=0 dios=0\n");
        fs::write(root.join(group).join("io.stat"), text).unwrap();
    }

    #[test]
    fn the_kernels_texts_are_read_and_other_disks_are_not_taken_for_ours() {
        let text = "18:0 Read 7\n18:0 Total 7\n8:0 Read 3\n8:0 Write 2\n8:0 Discard 0\n8:0 Total 5\nTotal 12\n";
        assert_eq!((of_blkio(text, "8:0 ", "Total"), of_blkio(text, "8:0 ", "Write")), (Some(5), Some(2)));
        assert_eq!(of_blkio(text, "9:0 ", "Total"), None);
        let text = "7:0 rbytes=4096 wbytes=0 rios=1 wios=2 dbytes=0 dios=9\n";
        assert_eq!((of_io_stat(text, "7:0 "), of_io_stat(text, "7:1 ")), (Some(3), None));
    }

    #[test]
    fn requests_of_ours_that_come_while_files_are_read_are_never_taken_for_others() {
        let mut last = None;
        let mut others = |others_min, others_max| {
            let (kept, since) = Reading { others_min, others_max }.since(last);
            last = Some(kept);
            since
        };
        assert_eq!(others(10, 10), None);
        // Two of ours came in between.
        assert_eq!([others(8, 10), others(10, 10)], [Some(0), Some(0)]);
        assert_eq!([others(13, 14), others(12, 14), others(13, 13)], [Some(3), Some(0), Some(0)]);
        // A group has ended, also while ours go on.
        assert_eq!([others(5, 5), others(6, 6)], [Some(0), Some(1)]);
        assert_eq!([others(3, 5), others(6, 7)], [Some(0), Some(1)]);
    }

    #[test]
    fn our_own_requests_and_what_the_roots_threads_write_are_not_the_others() {
        let root = tempfile::tempdir().unwrap();
        let ours = root.path().join("ours");
        fs::create_dir(&ours).unwrap();
        let write = |all: u32, of_root: u32, of_ours: u32| {
            let text =
                |read: u32, write: u32| format!("8:0 Read {read}\n8:0 Write {write}\n8:0 Total {}\n", read + write);
            fs::write(root.path().join("blkio.bfq.io_serviced_recursive"), text(all, 0)).unwrap();
            fs::write(root.path().join("blkio.bfq.io_serviced"), text(0, of_root)).unwrap();
            fs::write(ours.join("blkio.bfq.io_serviced_recursive"), text(of_ours, 0)).unwrap();
        };
        write(100, 10, 50);
        let disks = vec![(DeviceId { major: 8, minor: 0 }, false)];
        let mut counters = Counters::new(root.path(), CgroupVersion::V1, disks, "blkio.bfq");
        counters.set_ours(&ours, false, true);
        assert_eq!(counters.others(), None);
        write(130, 20, 70);
        assert_eq!(counters.others(), Some(0), "thirty more, twenty ours and ten the journal's");
        write(135, 20, 70);
        assert_eq!(counters.others(), Some(5));
        write(90, 20, 70);
        assert_eq!(counters.others(), Some(0), "a group has ended");
    }

    #[test]
    fn what_others_do_while_it_is_looked_for_groups_is_seen() {
        let root = tempfile::tempdir().unwrap();
        let write = |group: &str, requests: u64| write_io_stat(root.path(), group, requests);
        write("ours", 50);
        write("machine", 100);
        let disks = vec![(DeviceId { major: 8, minor: 0 }, false)];
        let mut counters = Counters::new(root.path(), CgroupVersion::V2, disks, "");
        counters.set_ours(&root.path().join("ours"), false, true);
        assert_eq!(counters.others(), None);
        let mut seen = 0;
        for look in 1..=20 {
            counters.open_all();
            write("machine", 100 + look);
            write("ours", 50 + 100 * look);
            seen += counters.others().unwrap_or(0);
        }
        assert_eq!(seen, 20);
        write("another", 1_000);
        counters.open_all();
        assert_eq!(counters.others(), None, "what a group had made before it was known is nobody's");
    }

    #[test]
    fn of_a_disk_below_what_the_roots_threads_read_is_not_the_others_either() {
        let root = tempfile::tempdir().unwrap();
        let write = |of_volume: (u32, u32), of_disk: (u32, u32), of_root: u32| {
            let lines = |name: &str, (read, write): (u32, u32)| {
                format!("{name} Read {read}\n{name} Write {write}\n{name} Total {}\n", read + write)
            };
            let text = |of_volume, of_disk| lines("253:0", of_volume) + &lines("8:0", of_disk);
            let file = |name: &str| root.path().join(name);
            fs::write(file("blkio.throttle.io_serviced_recursive"), text(of_volume, of_disk)).unwrap();
            fs::write(file("blkio.throttle.io_serviced"), text((0, 0), (of_root, 0))).unwrap();
        };
        write((10, 0), (10, 0), 0);
        let [volume, disk] = [(253, 0), (8, 0)].map(|(major, minor)| DeviceId { major, minor });
        let disks = vec![(volume, false), (disk, true)];
        let mut counters = Counters::new(root.path(), CgroupVersion::V1, disks, "blkio.throttle");
        counters.set_ours(&root.path().join("ours"), false, false);
        assert_eq!(counters.others(), None);
        write((10, 0), (15, 0), 5);
        assert_eq!(counters.others(), Some(0), "an array reads what it needs to write");
        write((10, 0), (18, 0), 5);
        assert_eq!(counters.others(), Some(3), "of another volume on that disk");
    }
}
