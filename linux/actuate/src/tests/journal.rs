use crate::journal::Journal;
use crate::journal_lines::encode;
use crate::runtime_dir::RuntimeDir;
use crate::{JournalEntry, parse_journal, parse_lease};
use minerva_model::{CgroupRef, DeviceId, KnobFile, KnobTarget, Nanos, TenantId};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};
use proptest::{collection, sample};
use std::path::Path;

fn entries() -> impl Strategy<Value = Vec<JournalEntry>> {
    let cgroup = (".*", any::<u64>(), any::<Option<u64>>()).prop_map(|(path, inode, tenant)| KnobTarget::Cgroup {
        tenant: tenant.map(TenantId),
        cgroup: CgroupRef { path, inode },
    });
    let server = (".*", ".*").prop_map(|(server, disk)| KnobTarget::Server { server, disk });
    let target = prop_oneof![cgroup, ".*".prop_map(|name| KnobTarget::Disk { name }), server];
    let numbers = (any::<u64>(), any::<u64>(), any::<u32>(), any::<u32>());
    let texts = ("(?s).*", "(?s).*");
    let entry = (numbers, target, sample::select(KnobFile::ALL.to_vec()), texts).prop_map(
        |((sequence, inode, major, minor), target, file, (undo, before))| {
            let device = DeviceId { major, minor };
            JournalEntry { sequence, target, inode, file, device, undo, before, cleared: Vec::new(), queue: Vec::new() }
        },
    );
    collection::vec(entry, 0..8)
}

proptest! {
    #[test]
    fn what_is_journalled_is_read_back(entries in entries(), boot in ".*") {
        let bytes = encode(&boot, &entries, Path::new("journal")).unwrap();
        let content = parse_journal(&bytes);
        assert_eq!((content.boot.as_deref(), content.problem_count, content.torn), (Some(&*boot), 0, false));
        assert_eq!(&content.entries, &entries);
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), entries.len() + 1);
    }

    #[test]
    fn a_cut_journal_keeps_what_is_whole(entries in entries(), cut in any::<sample::Index>()) {
        let bytes = encode("b", &entries, Path::new("journal")).unwrap();
        let length = cut.index(bytes.len() + 1);
        let whole = bytes[..length].iter().filter(|byte| **byte == b'\n').count().saturating_sub(1);
        let content = parse_journal(&bytes[..length]);
        assert_eq!(content.problem_count, 0);
        // The line that is cut counts as whole where only its newline is missing.
        assert!(content.entries.len() == whole || content.entries.len() == whole + 1);
        assert_eq!(content.entries[..], entries[..content.entries.len()]);
    }

    #[test]
    fn garbage_is_told_and_survived(bytes in prop_oneof![
        collection::vec(any::<u8>(), 0..400),
        Just(b"x\n".repeat(1000)),
        Just(b"[".repeat(100_000)),
    ]) {
        let content = parse_journal(&bytes);
        assert!(content.problems.len() <= 16 && content.problem_count >= content.problems.len());
        parse_lease(&bytes);
    }
}

#[test]
fn a_lease_is_understood_only_whole() {
    let table: [(&[u8], Option<Nanos>); 6] = [
        (b"00000000000000000017 00000000000000000017\n", Some(Nanos(17))),
        (b"17 18\n", None),
        (b"17 17", None),
        (b"17\n", None),
        (b"x x\n", None),
        (b"\xff", None),
    ];
    for (text, lease) in table {
        assert_eq!(parse_lease(text), lease);
    }
}

#[test]
fn a_journal_of_an_earlier_version_is_read_and_an_addition_takes_its_entrys_place() {
    let line = |cleared: &str| {
        let target = r#"{"cgroup":{"tenant":1,"cgroup":{"path":"a","inode":9}}}"#;
        let knob =
            r#""file":"bfq-weight","device":{"major":7,"minor":0},"undo":"7:0 default","before":"default 100\n""#;
        format!(r#"{{"held":{{"sequence":3,"target":{target},"inode":9,{knob}{cleared}}}}}"#)
    };
    let header = r#"{"minerva_undo_journal":1,"boot":"b"}"#;
    let earlier = parse_journal(format!("{header}\n{}\n", line("")).as_bytes());
    assert_eq!((earlier.problem_count, earlier.entries.len()), (0, 1), "{earlier:?}");
    assert!(earlier.entries[0].cleared.is_empty());
    let added = line(r#","cleared":["7:1 300"]"#);
    let content = parse_journal(format!("{header}\n{}\n{added}\n", line("")).as_bytes());
    assert_eq!((content.problem_count, content.entries.len()), (0, 1), "{content:?}");
    assert_eq!(content.entries[0].cleared, ["7:1 300"]);
    let released = parse_journal(format!("{header}\n{}\n{added}\n{{\"released\":3}}\n", line("")).as_bytes());
    assert!(released.entries.is_empty());
}

/// Each tenant that comes is held, and gone soon after. Counted are entries: each is some hundred bytes of memory and of the file.
#[test]
fn tenants_that_are_gone_do_not_stay_in_the_journal() {
    const BATCH: u64 = 100;
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let dir = RuntimeDir::create(&folder.path().join("run")).unwrap();
    let mut journal = Journal::open(&dir).unwrap();
    let (mut most, mut largest) = (0, 0);
    for batch in 0..1_000 {
        let there = batch * BATCH;
        journal.compact(&dir, |entry| entry.inode >= there).unwrap();
        let entry = |inode: u64| JournalEntry {
            sequence: 0,
            target: KnobTarget::Cgroup {
                tenant: Some(TenantId(inode)),
                cgroup: CgroupRef { path: format!("some.slice/tenant-{inode}.scope"), inode },
            },
            inode,
            file: KnobFile::BfqWeight,
            device: DeviceId { major: 8, minor: 0 },
            undo: "8:0 default".to_owned(),
            before: "default 100\n".to_owned(),
            cleared: Vec::new(),
            queue: Vec::new(),
        };
        journal.add(&dir, (there..there + BATCH).map(entry).collect()).unwrap();
        most = most.max(journal.len());
        largest = largest.max(std::fs::metadata(folder.path().join("run/undo.journal")).unwrap().len());
    }
    assert!(most <= 1024 + 2 * BATCH as usize, "{most} entries of {BATCH} that are there at once");
    assert!(largest < 1 << 20, "{largest} bytes");
}
