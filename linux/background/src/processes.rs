//! What the processes of a group do, by what the kernel says of each (proc(5)): also where nobody counts for the group.

use minerva_model::Nanos;
use std::fs;
use std::path::Path;

/// `USER_HZ` of every Linux architecture: the unit of times in `/proc/PID/stat` (proc(5)).
const TICK: Nanos = Nanos::from_millis(10);
/// Processes and threads that are looked at: a command with more of them is busy with that alone.
const LOOKED_AT_MAX: usize = 256;

/// The processes of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Processes {
    pids: Vec<u32>,
}

/// What they used since each began, with those of their children that have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) processor: Nanos,
    /// Read from disks and dirtied to be written there.
    pub(crate) bytes: u64,
    /// Some thread runs, or waits for a processor only.
    pub(crate) is_runnable: bool,
}

/// Of `/proc/PID/stat`.
struct Stat {
    state: char,
    ticks: u64,
    threads: u64,
}

impl Processes {
    /// Those of a group of either hierarchy; nothing where there is no such group.
    pub(crate) fn of_group(group: &Path) -> Option<Self> {
        let text = fs::read_to_string(group.join("cgroup.procs")).ok()?;
        Some(Self { pids: text.lines().filter_map(|line| line.trim().parse().ok()).take(LOOKED_AT_MAX).collect() })
    }

    /// What they used. Of one that ends meanwhile nothing.
    pub(crate) fn used(&self, proc: &Path) -> Used {
        let (mut used, mut left) = (Used::default(), LOOKED_AT_MAX);
        for pid in &self.pids {
            let folder = proc.join(pid.to_string());
            let Some(stat) = stat(&folder) else { continue };
            used.processor += Nanos(TICK.0.saturating_mul(stat.ticks));
            used.bytes = used.bytes.saturating_add(bytes(&folder));
            used.is_runnable |= stat.state == 'R';
            if !used.is_runnable && stat.threads > 1 {
                let threads = fs::read_dir(folder.join("task")).into_iter().flatten().flatten().take(left);
                let states = threads.map(|thread| self::stat(&thread.path()).is_some_and(|stat| stat.state == 'R'));
                let states: Vec<bool> = states.collect();
                left -= states.len();
                used.is_runnable = states.contains(&true);
            }
        }
        used
    }
}

fn stat(folder: &Path) -> Option<Stat> {
    let text = fs::read_to_string(folder.join("stat")).ok()?;
    // The name stands in parentheses and may hold some itself. What follows are the fields from the third on.
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_whitespace().collect();
    let number = |index: usize| fields.get(index).and_then(|field| field.parse::<i64>().ok()).unwrap_or(0).max(0);
    // utime, stime, and both of children that were waited for.
    let ticks = (11..15).map(|index| number(index).unsigned_abs()).fold(0, u64::saturating_add);
    Some(Stat { state: fields.first()?.chars().next()?, ticks, threads: number(17).unsigned_abs() })
}

/// Of `/proc/PID/io`, which only its owner and root may read.
fn bytes(folder: &Path) -> u64 {
    let text = fs::read_to_string(folder.join("io")).unwrap_or_default();
    let of = |name: &str| {
        let found = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    of("read_bytes").saturating_add(of("write_bytes"))
}

#[cfg(test)]
mod tests {
    use super::{Processes, stat};
    use std::fs;
    use std::path::Path;

    #[test]
    fn this_process_is_read_as_the_kernel_shows_it() {
        let group = tempfile::tempdir().unwrap();
        assert_eq!(Processes::of_group(&group.path().join("gone")), None);
        fs::write(group.path().join("cgroup.procs"), format!("{}\n4194305\n", std::process::id())).unwrap();
        let processes = Processes::of_group(group.path()).unwrap();
        let own = stat(Path::new("/proc/self")).unwrap();
        assert!(own.threads >= 1 && own.state.is_ascii_uppercase());
        // The thread that looks runs, whatever the others do.
        assert!(processes.used(Path::new("/proc")).is_runnable);
    }

    #[test]
    fn a_name_with_parentheses_and_a_line_that_is_cut_off_are_no_matter() {
        let folder = tempfile::tempdir().unwrap();
        let read = |text: &str| {
            fs::write(folder.path().join("stat"), text).unwrap();
            stat(folder.path()).map(|stat| (stat.state, stat.ticks, stat.threads))
        };
        let whole = "7 (x) R (y) S 1 7 7 0 -1 0 0 0 0 0 3 4 5 6 20 0 9 0 5";
        assert_eq!(read(whole), Some(('S', 18, 9)));
        assert_eq!(read("7 (x) D 1 7"), Some(('D', 0, 0)));
        assert_eq!(read("7 (x"), None);
        assert_eq!(read("7 (x) Z 1 7 7 0 -1 0 0 0 0 0 -3 4 18446744073709551615"), Some(('Z', 4, 0)));
    }
}
