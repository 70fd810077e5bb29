//! Requests that others than background work make of a disk, counted by the kernel when they are made: read every few milliseconds.
//!
//! On v1 that is what the root group counts for all groups, less what is ours, and less what the root group's own threads write: those
//! are journals and pages written back, which our own work causes too. On v2 it is what the groups below the root count, less ours.

use minerva_model::{CgroupVersion, DeviceId};
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// More than any of these files holds for a host with thousands of disks.
const TEXT_BYTES_MAX: usize = 1 << 20;
const TEXT_BYTES_FIRST: usize = 4 << 10;
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

/// Counters of one disk.
#[derive(Debug)]
pub(crate) struct Counters {
    version: CgroupVersion,
    device: DeviceId,
    root: PathBuf,
    /// Which of the two layers of v1 counts.
    layer: &'static str,
    all: Vec<Again>,
    root_alone: Option<Again>,
    /// Of the group that runs: its requests are ours.
    ours: Option<(PathBuf, Again)>,
    /// Nothing that the root group does counts.
    without_root: bool,
    /// The last reading, of this group.
    last: Option<u64>,
    buffer: Vec<u8>,
}

impl Counters {
    /// For a disk whose elevator is `elevator`.
    pub(crate) fn new(root: &Path, version: CgroupVersion, device: DeviceId, elevator: &str) -> Self {
        let layer = if elevator == "bfq" { "blkio.bfq" } else { "blkio.throttle" };
        let mut counters = Self {
            version,
            device,
            root: root.to_owned(),
            layer,
            all: Vec::new(),
            root_alone: None,
            ours: None,
            without_root: false,
            last: None,
            buffer: Vec::new(),
        };
        counters.open_all();
        counters
    }

    /// From now on the requests of this group are ours. A group that Minerva made gets what makes the throttle count; a tenant's is not
    /// touched.
    pub(crate) fn set_ours(&mut self, group: &Path, without_root: bool, is_made_by_us: bool) {
        if self.ours.as_ref().is_some_and(|(ours, _)| ours == group) && self.without_root == without_root {
            return;
        }
        let file = match self.version {
            CgroupVersion::V2 => group.join("io.stat"),
            _ => group.join(format!("{}.io_serviced_recursive", self.layer)),
        };
        if is_made_by_us && self.version == CgroupVersion::V1 && self.layer == "blkio.throttle" {
            // Where it cannot be set nothing is counted, and the group may not be there yet.
            let rule = format!("{} {NO_LIMIT}", self.device);
            let _ = fs::write(group.join("blkio.throttle.read_bps_device"), rule);
        }
        self.ours = Some((group.to_owned(), Again::new(file)));
        self.without_root = without_root;
        self.last = None;
    }

    /// Groups may have come since.
    pub(crate) fn open_all(&mut self) {
        self.all = match self.version {
            CgroupVersion::V2 => {
                let entries = fs::read_dir(&self.root).into_iter().flatten().flatten();
                let groups = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
                groups.map(|entry| Again::new(entry.path().join("io.stat"))).collect()
            }
            _ => vec![Again::new(self.root.join(format!("{}.io_serviced_recursive", self.layer)))],
        };
        self.root_alone = (self.version == CgroupVersion::V1)
            .then(|| Again::new(self.root.join(format!("{}.io_serviced", self.layer))));
        self.last = None;
    }

    /// Requests of others since the last call; nothing at the first.
    pub(crate) fn others(&mut self) -> Option<u64> {
        let now = self.read()?;
        // Groups that end take their counts along.
        self.last.replace(now).map(|last| now.saturating_sub(last))
    }

    fn read(&mut self) -> Option<u64> {
        let Self { version, device, all, root_alone, ours, without_root, buffer, .. } = self;
        let is_v2 = *version == CgroupVersion::V2;
        let prefix = format!("{}:{} ", device.major, device.minor);
        let count =
            |text: &str, what: &str| if is_v2 { of_io_stat(text, &prefix) } else { of_blkio(text, &prefix, what) };
        let mut sum: Option<u64> = None;
        for file in all {
            sum = count(file.read(buffer), "Total").map(|requests| sum.unwrap_or(0) + requests).or(sum);
        }
        let mut less = 0;
        if let Some((_, file)) = ours {
            less += count(file.read(buffer), "Total").unwrap_or(0);
        }
        if let Some(file) = root_alone {
            less += count(file.read(buffer), if *without_root { "Total" } else { "Write" }).unwrap_or(0);
        }
        // A disk that nobody has used since the boot is in no file.
        Some(sum.unwrap_or(0).saturating_sub(less))
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
mod tests {
    use super::{Counters, of_blkio, of_io_stat};
    use minerva_model::{CgroupVersion, DeviceId};
    use std::fs;

    #[test]
    fn the_kernels_texts_are_read_and_other_disks_are_not_taken_for_ours() {
        let text = "18:0 Read 7\n18:0 Total 7\n8:0 Read 3\n8:0 Write 2\n8:0 Discard 0\n8:0 Total 5\nTotal 12\n";
        assert_eq!((of_blkio(text, "8:0 ", "Total"), of_blkio(text, "8:0 ", "Write")), (Some(5), Some(2)));
        assert_eq!(of_blkio(text, "9:0 ", "Total"), None);
        let text = "7:0 rbytes=4096 wbytes=0 rios=1 wios=2 dbytes=0 dios=9\n";
        assert_eq!((of_io_stat(text, "7:0 "), of_io_stat(text, "7:1 ")), (Some(3), None));
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
        let mut counters = Counters::new(root.path(), CgroupVersion::V1, DeviceId { major: 8, minor: 0 }, "bfq");
        counters.set_ours(&ours, false, true);
        assert_eq!(counters.others(), None);
        write(130, 20, 70);
        assert_eq!(counters.others(), Some(0), "thirty more, twenty ours and ten the journal's");
        write(135, 20, 70);
        assert_eq!(counters.others(), Some(5));
        write(90, 20, 70);
        assert_eq!(counters.others(), Some(0), "a group has ended");
    }
}
