//! Tenants that rest, users that make groups, and what is read only when it is wanted.

use crate::fake_host::{FakeHost, rows, seen};
use crate::v1::BFQ;
use minerva_model::{CgroupVersion, Event, Sample, Skipped, TenantKind, TenantRule};
use std::fs;

#[test]
fn ten_thousand_groups_cost_one_file_each_while_idle() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    for index in 0..10_000 {
        let group = format!("g{}/t{index}", index % 10);
        host.write_group(&group, "blkio.bfq.io_service_bytes_recursive", "Total 0\n");
    }
    let mut observer = host.observer(&[]);
    observer.want_usage(false);
    assert_eq!(seen(&observer.discover()).len(), 10_000);
    observer.sample();
    let mut cost = || {
        let before = observer.read_counts().files;
        observer.discover();
        let discovered = observer.read_counts().files - before;
        observer.sample();
        (discovered, observer.read_counts().files - before - discovered)
    };
    let (discovered, sampled) = cost();
    // Ten inner groups and one disk to look at; then one file a group, and what is read of a few tenants' processes.
    assert!(discovered <= 40, "{discovered} files to find nothing new");
    assert!((10_000..10_000 + 100).contains(&sampled), "{sampled} files for a sample");
    // With counters of the groups above, those that rest cost a file each for all that is below.
    for index in 0..10 {
        host.write_group(&format!("g{index}"), "blkio.bfq.io_service_bytes_recursive", "Total 0\n");
    }
    cost();
    let (_, sampled) = cost();
    assert!(sampled < 100, "{sampled} files while nobody moves");
    host.write_group("g3", "blkio.bfq.io_service_bytes_recursive", "8:0 Read 1\n8:0 Write 0\nTotal 1\n");
    let (_, sampled) = cost();
    assert!((1_000..1_100).contains(&sampled), "{sampled} files when somebody below one of ten moves");
}

#[test]
fn whoever_starts_below_a_parent_that_rested_is_seen_at_once() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.disk("sda", "8:0", BFQ, &[]);
    let total = |read: u64| host.blkio("p", "bfq", "_recursive", "8:0", [read, 0], [read, 0]);
    host.group("p", "");
    (0..10).for_each(|index| host.group(&format!("p/t{index}"), ""));
    let mut observer = host.observer(&[]);
    observer.discover();
    total(0);
    let mut expected: Vec<String> = Vec::new();
    for step in 0..40_u64 {
        // Nobody moves in two of three slices, and then one that rested, or never was there before.
        if step % 3 == 2 {
            let number = step / 3 % 12;
            if number >= 10 {
                host.group(&format!("p/t{number}"), "");
            }
            host.blkio(&format!("p/t{number}"), "bfq", "_recursive", "8:0", [step, 0], [step, 0]);
            total((0..=step).sum());
            expected.retain(|row| !row.starts_with(&format!("t{} ", number + 1)));
            expected.push(format!("t{} 8:0 {step}+0 {step}+0", number + 1));
            expected.sort_by_key(|row| row[1..].split(' ').next().unwrap().parse::<u64>().unwrap());
        }
        observer.discover();
        assert_eq!(rows(&observer.sample()), expected, "slice {step}");
    }
}

/// Forty tenants below one group, whose own processes are one on v1 too, and what they read so far.
struct Crowd {
    host: FakeHost,
    read: [u64; 40],
    own: u64,
    /// By groups that are gone.
    removed: u64,
}

impl Crowd {
    fn new(version: CgroupVersion) -> Self {
        let host = FakeHost::new(version);
        host.disk("sda", "8:0", BFQ, &[]);
        host.group("p", if version == CgroupVersion::V1 { "1\n" } else { "" });
        if version == CgroupVersion::V2 {
            host.enable_io("p");
        }
        (0..40).for_each(|index| host.group(&format!("p/t{index:02}"), ""));
        Self { host, read: [0; 40], own: 0, removed: 4096 }
    }

    /// Writes the counters as the kernel would, with one operation a kilobyte.
    fn write(&self, version: CgroupVersion) {
        let write = |group: &str, suffix: &str, read: u64| match version {
            CgroupVersion::V1 => self.host.blkio(group, "bfq", suffix, "8:0", [read, 0], [read / 1_000, 0]),
            _ => {
                let text = format!("8:0 rbytes={read} wbytes=0 rios={} wios=0 dbytes=0 dios=0\n", read / 1_000);
                self.host.write_group(group, "io.stat", &text);
            }
        };
        self.read.iter().enumerate().for_each(|(index, read)| write(&format!("p/t{index:02}"), "_recursive", *read));
        if version == CgroupVersion::V1 {
            write("p", "", self.own);
        }
        write("p", "_recursive", self.read.iter().sum::<u64>() + self.own + self.removed);
    }
}

#[test]
fn beside_tenants_that_move_others_rest_and_are_not_read() {
    for version in [CgroupVersion::V1, CgroupVersion::V2] {
        let mut crowd = Crowd::new(version);
        let mut observer = crowd.host.observer(&[]);
        observer.want_usage(false);
        let ids: Vec<_> = seen(&observer.discover());
        let id = |name: &str| ids.iter().find(|tenant| tenant.cgroup.path == name).map(|tenant| tenant.id);
        let mut slice = |crowd: &Crowd| {
            crowd.write(version);
            observer.discover();
            let before = observer.read_counts().files;
            let sample = observer.sample();
            let files = observer.read_counts().files - before;
            for (index, read) in crowd.read.iter().enumerate() {
                let told = sample.io.iter().find(|row| Some(row.tenant) == id(&format!("p/t{index:02}")));
                let counters = told.map(|row| (row.counters.read_bytes, row.counters.read_ops)).unwrap_or_default();
                assert_eq!(counters, (*read, read / 1_000), "{version:?}, tenant {index}");
            }
            let own = sample.io.iter().find(|row| id("p") == Some(row.tenant)).map(|row| row.counters.read_bytes);
            assert_eq!(own.unwrap_or_default(), crowd.own);
            files
        };
        // What is read beside counters is the same in all slices.
        (0..3).for_each(|_| _ = slice(&crowd));
        let resting = slice(&crowd);
        let files = |slices: &mut dyn FnMut(&Crowd) -> u64, crowd: &Crowd| slices(crowd) - resting;
        let all = 40;
        for step in 0..50 {
            [3, 4, 39].into_iter().for_each(|index| crowd.read[index] += 1_000 * (1 + step));
            if step == 20 {
                crowd.read[17] += 1_000;
            }
            if version == CgroupVersion::V1 && step % 2 == 1 {
                crowd.own += 5_000;
            }
            if step == 30 {
                crowd.removed += 9_000;
            }
            let files = files(&mut slice, &crowd);
            match step {
                0 | 1 | 20 | 30 => assert!(files >= all || step == 1, "{version:?}, step {step}: {files}"),
                // Bytes, and operations of those that moved, of at most five tenants, their parent once more, and what is read of the
                // processes of those that moved.
                _ => assert!(files <= 2 * 5 + 1 + 5, "{version:?}, step {step}: {files}"),
            }
        }
    }
}

#[test]
fn another_disk_of_the_same_number_is_not_taken_for_the_one_before() {
    let mut crowd = Crowd::new(CgroupVersion::V2);
    crowd.removed = 0;
    let mut observer = crowd.host.observer(&[]);
    observer.discover();
    crowd.read[5] = 7_000;
    crowd.write(CgroupVersion::V2);
    assert_eq!(rows(&observer.sample()), ["t6 8:0 7000+0 7+0"]);
    // The group above says what it said, of what somebody else read from the new one.
    crowd.host.write("sys/devices/virtual/block/sda/diskseq", "2\n");
    (crowd.read[5], crowd.read[6]) = (0, 7_000);
    crowd.write(CgroupVersion::V2);
    crowd.host.write_group("p/t05", "io.stat", "");
    observer.discover();
    assert_eq!(rows(&observer.sample()), ["t7 8:0 7000+0 7+0"]);
}

#[test]
fn what_tenants_use_besides_the_disk_is_read_only_when_it_is_wanted() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.group("a", "50\n");
    host.process(50, "x", 5, 10, 4096);
    let mut observer = host.observer(&[]);
    observer.discover();
    assert_eq!(observer.sample().usage.len(), 1);
    let mut files = |wanted| {
        observer.want_usage(wanted);
        let before = observer.read_counts().files;
        let sample = observer.sample();
        (sample.usage.len(), observer.read_counts().files - before)
    };
    let ((some, more), (none, fewer)) = (files(true), files(false));
    assert_eq!((some, none), (1, 0));
    assert!(fewer < more, "{fewer} and {more} files");
}

#[test]
fn what_a_process_calls_itself_is_for_people_only_and_its_command_line_is_not_read() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.group("vm1", "41\n");
    host.process(41, "qemu-kvm", 5, 0, 0);
    host.write("proc/41/cmdline", "qemu-kvm\0-name\0victim\0");
    let group = TenantRule {
        pattern: "*".into(),
        name: Some("vm {name}".into()),
        group: Some("{name}".into()),
        ..TenantRule::default()
    };
    for (rules, name, group) in [(vec![], "vm1", None), (vec![group], "vm vm1", Some("vm1"))] {
        let tenant = seen(&host.observer(&rules).discover()).remove(0);
        assert_eq!((tenant.name.as_str(), tenant.group.as_deref()), (name, group));
        assert_eq!((tenant.kind, tenant.origin.guest_name.as_deref()), (TenantKind::VirtualMachine, Some("qemu-41")));
        assert!(!tenant.history_key().contains("qemu-41"));
    }
}

#[test]
fn what_was_delegated_to_a_user_is_one_account_from_when_it_was() {
    let host = FakeHost::new(CgroupVersion::V1);
    for group in ["user", "user/run", "user/run/a.scope", "user/run/b.scope", "other.scope"] {
        host.group(group, "");
    }
    let mut observer = host.observer(&[]);
    let before = seen(&observer.discover());
    assert!(before.iter().all(|tenant| tenant.origin.is_plain()), "{before:?}");

    if std::os::unix::fs::chown(host.group_path("user/run"), Some(1_000), None).is_err() {
        return println!("skipped: needs the right to give a directory away");
    }
    let after = seen(&observer.discover());
    let names: Vec<&str> = after.iter().map(|tenant| tenant.name.as_str()).collect();
    assert_eq!(names, ["run/a.scope", "run/b.scope"]);
    let run = after[0].origin.delegated_from.clone().unwrap();
    assert_eq!(run.path, "user/run");
    assert_eq!(
        [after[0].history_key(), after[1].history_key()],
        [0; 2].map(|_| format!("cgroup:user/run#{}", run.inode))
    );
    // Whatever it makes from now on.
    host.group("user/run/machine/qemu-1-other.scope.libvirt-qemu", "");
    let late = seen(&observer.discover()).remove(0);
    assert_eq!((late.name.as_str(), late.history_key()), ("run/other.scope", after[0].history_key()));
}

#[test]
fn what_was_delegated_to_a_user_is_read_as_a_whole_and_is_of_the_account_of_its_tenants() {
    let host = FakeHost::new(CgroupVersion::V2);
    for group in ["user", "user/deep", "user/deep/a", "other"] {
        host.group(group, "");
    }
    host.enable_io("user");
    host.enable_io("user/deep");
    host.disk("sda", "8:0", BFQ, &[]);
    let is_given = ["user", "user/deep"]
        .iter()
        .all(|group| std::os::unix::fs::chown(host.group_path(group), Some(1_000), None).is_ok());
    if !is_given {
        return println!("skipped: needs the right to give a directory away");
    }
    host.write_group("user", "io.stat", "8:0 rbytes=8192 wbytes=0 rios=2 wios=0 dbytes=0 dios=0\n");
    let rule = TenantRule {
        pattern: "user/**".into(),
        group: Some("students".into()),
        weight_percent: Some(50),
        ..TenantRule::default()
    };
    for rules in [vec![], vec![rule]] {
        let mut observer = host.observer(&rules);
        let tenant = seen(&observer.discover()).into_iter().find(|tenant| tenant.name.ends_with('a')).unwrap();
        let sample = observer.sample();
        let [row] = &sample.subtrees[..] else { panic!("the topmost delegated group and no other: {sample:?}") };
        assert_eq!(Some(&row.group), tenant.origin.delegated_from.as_ref());
        assert_eq!((&row.history_key, row.weight_percent), (&tenant.history_key(), tenant.weight_percent));
        assert_eq!((row.counters.read_bytes, row.counters.read_ops, row.own), (8192, 2, None));
    }
    // Its owner is root again.
    let mut observer = host.observer(&[]);
    observer.discover();
    std::os::unix::fs::chown(host.group_path("user"), Some(0), None).unwrap();
    std::os::unix::fs::chown(host.group_path("user/deep"), Some(0), None).unwrap();
    observer.discover();
    assert_eq!(observer.sample().subtrees, []);
}

#[test]
fn one_user_cannot_make_so_many_groups_that_others_are_not_seen() {
    let host = FakeHost::new(CgroupVersion::V1);
    host.group("user", "");
    if std::os::unix::fs::chown(host.group_path("user"), Some(1_000), None).is_err() {
        return println!("skipped: needs the right to give a directory away");
    }
    (0..2_010).for_each(|number| fs::create_dir(host.group_path(&format!("user/{number}"))).unwrap());
    host.group("zebra", "");
    host.disk("sda", "8:0", BFQ, &[]);
    // What is done in any of them is in the counters of all of them together.
    host.blkio("user", "bfq", "_recursive", "8:0", [4096, 0], [1, 0]);
    let mut observer = host.observer(&[]);
    let named = |events: &[Event]| seen(events).into_iter().map(|tenant| tenant.name).collect::<Vec<_>>();
    let events = observer.discover();
    assert_eq!(named(&events), ["user", "zebra"], "one tenant, and nobody is out of sight");
    let (user, key) = seen(&events).first().map(|tenant| (tenant.id, tenant.history_key())).unwrap();
    let sample = observer.sample();
    let told = |row: &Skipped| row.count == 10 && row.why.contains("more than 2000 groups below user");
    assert!(sample.skipped.iter().any(told), "{:?}", sample.skipped);
    let read = |sample: &Sample| sample.io.iter().find(|row| row.tenant == user).map(|row| row.counters.read_bytes);
    assert_eq!(read(&sample), Some(4096));
    // Once there are far fewer each is a tenant again, in time, and of the same account.
    (3..2_010).for_each(|number| fs::remove_dir(host.group_path(&format!("user/{number}"))).unwrap());
    let later: Vec<Event> = (0..60).flat_map(|_| observer.discover()).collect();
    assert_eq!(named(&later), ["user/0", "user/1", "user/2"]);
    assert!(seen(&later).iter().all(|tenant| tenant.history_key() == key));
}

#[test]
fn a_group_whose_name_is_no_text_is_not_out_of_sight() {
    use std::os::unix::ffi::OsStrExt;
    let host = FakeHost::new(CgroupVersion::V1);
    for group in ["user", "user/a", "zebra"] {
        host.group(group, "");
    }
    if std::os::unix::fs::chown(host.group_path("user"), Some(1_000), None).is_err() {
        return println!("skipped: needs the right to give a directory away");
    }
    let nameless = host.group_path("user/a").join(std::ffi::OsStr::from_bytes(b"\xff"));
    fs::create_dir(&nameless).unwrap();
    let mut observer = host.observer(&[]);
    let named = |events: &[Event]| seen(events).into_iter().map(|tenant| tenant.name).collect::<Vec<_>>();
    assert_eq!(named(&observer.discover()), ["user", "zebra"]);
    fs::remove_dir(&nameless).unwrap();
    let later: Vec<Event> = (0..60).flat_map(|_| observer.discover()).collect();
    assert_eq!(named(&later), ["user/a"]);
}
