//! The operator's file, read again while programs use what it named before.

use crate::deferred::{defer, is_link, until_moved};
use crate::pool_folder::{PoolFolder, Service, is_mounted};
use minerva_api::cache::{Answer, Pool, Request, TenantStatus, ask};
use rustix::process::{Signal, kill_process};
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(60);
const OTHER: &str = "[tenants.other]";

/// A pool with a second tenant.
fn with_other() -> (PoolFolder, Service, PathBuf) {
    let place = PoolFolder::with("", OTHER);
    let service = place.serve();
    let other = place.folder.path().join("mount/other");
    (place, service, other)
}

/// `minerva-fs reload`: what it said, or why not.
fn reload(place: &PoolFolder) -> Result<String, String> {
    let output = place.run(&["reload"]);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn tenants(place: &PoolFolder) -> Vec<TenantStatus> {
    match ask(&place.socket(), &Request::Status).unwrap() {
        Answer::Status { tenants, .. } => tenants,
        other => panic!("{other:?}"),
    }
}

/// Waits until something is so of the second tenant; none where it is not served.
fn until_other(place: &PoolFolder, what: &str, is_so: impl Fn(Option<&TenantStatus>) -> bool) {
    let begun = Instant::now();
    loop {
        let tenants = tenants(place);
        let other = tenants.iter().find(|tenant| tenant.name == "other");
        if is_so(other) {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{what}: {other:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn is_gone(other: &Path) -> bool {
    !is_mounted(&other.join("temporary")) && !is_mounted(&other.join("stable"))
}

#[test]
fn a_tenant_that_was_renamed_is_not_two_to_its_user_while_the_old_one_leaves() {
    let place = PoolFolder::new("");
    let _service = place.serve();
    let _open = File::create(place.stable().join("file")).unwrap();
    place.write_tables(OTHER);
    reload(&place).unwrap();
    assert_eq!(tenants(&place).len(), 2, "the old one is served as long as it is used, and shown");
    let data = place.folder.path().join("data");
    assert!(defer(&place, &data, Pool::Stable).unwrap().1.starts_with(place.folder.path().join("mount/other")));
}

#[test]
fn new_tenants_are_mounted_and_quotas_change_under_open_files() {
    let place = PoolFolder::new("temporary = \"8MiB\"\nstable = \"8MiB\"");
    let _service = place.serve();
    let files = [place.temporary(), place.stable()].map(|tree| File::create(tree.join("file")).unwrap());
    files.iter().for_each(|file| file.write_all_at(&[1; 4096], 0).unwrap());
    place.write("temporary = \"1MiB\"\nstable = \"1MiB\"\nstable_files = 1", OTHER);
    let said = reload(&place).unwrap();
    assert!(said.contains("other is served") && said.contains("web has new settings"), "{said}");
    fs::write(place.folder.path().join("mount/other/stable/new"), "text").unwrap();
    for file in &files {
        file.write_all_at(&[2; 4096], 4096).unwrap();
        let error = file.write_all_at(&vec![3; 2 << 20], 8192).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
    }
    assert!(fs::write(place.stable().join("second"), "").is_err(), "files have a quota too");
    place.write("temporary = \"8MiB\"\nstable = \"8MiB\"", OTHER);
    reload(&place).unwrap();
    files.iter().for_each(|file| file.write_all_at(&vec![4; 4 << 20], 0).unwrap());
    fs::write(place.stable().join("second"), "").unwrap();
    assert_eq!(reload(&place).unwrap(), "the file says nothing new\n");
}

#[test]
fn a_mistake_changes_nothing_and_is_told_with_its_line_and_what_to_do() {
    let place = PoolFolder::new("");
    let service = place.serve();
    let quota = place.status().temporary.bytes_max;
    let refused = |tenant: &str, tables: &str, says: &[&str]| {
        place.write(tenant, tables);
        let said = reload(&place).unwrap_err();
        for part in says {
            assert!(said.contains(part), "{part}: {said}");
        }
        let now = tenants(&place);
        assert_eq!((now.len(), now[0].temporary.bytes_max), (1, quota), "{said}");
    };
    let smaller = "temporary = \"1MiB\"";
    refused("temporray = 5", OTHER, &["fs.toml:7:1", "did you mean `temporary`"]);
    let unknown = "[tenants.other]\nuser = \"minerva-nobody-has-this\"";
    refused(smaller, unknown, &["fs.toml:8: tenant `other`", "useradd --system minerva-nobody-has-this"]);
    // What only shows when it is tried: two can be mounted and the third cannot.
    let mount = place.folder.path().join("mount");
    fs::write(mount.join("third"), "in the way").unwrap();
    refused(smaller, "[tenants.other]\n[tenants.third]", &["fs.toml:9: tenant `third`"]);
    assert!(is_gone(&mount.join("other")) && !mount.join("other").exists(), "nothing of it stays");
    // The signal tells nobody but the log, and goes on serving.
    kill_process(service.pid(), Signal::HUP).unwrap();
    fs::remove_file(mount.join("third")).unwrap();
    reload(&place).unwrap();
    assert_eq!(tenants(&place).len(), 3);
    fs::write(mount.join("third/stable/file"), "text").unwrap();
    assert!(service.terminate());
    for kind in ["temporary", "stable"] {
        assert!(!is_mounted(&mount.join("third").join(kind)));
    }
    let memory = |tenant: &str| is_mounted(&place.folder.path().join("run/temporary").join(tenant));
    assert_eq!(["other", "third"].map(memory), [false; 2], "empty memory is given back");
}

#[test]
fn a_signal_puts_the_file_in_force() {
    let place = PoolFolder::new("");
    let service = place.serve();
    place.write("", OTHER);
    kill_process(service.pid(), Signal::HUP).unwrap();
    until_other(&place, "it is served", |other| other.is_some_and(|other| other.stable.is_served));
    place.write("", "");
    kill_process(service.pid(), Signal::HUP).unwrap();
    until_other(&place, "it has left", |other| other.is_none());
    assert!(service.terminate());
}

#[test]
fn who_is_taken_out_stays_until_nobody_uses_it_and_finds_its_files_when_it_is_named_again() {
    let (place, service, other) = with_other();
    fs::write(other.join("temporary/kept"), "in memory").unwrap();
    let file = File::create(other.join("stable/file")).unwrap();
    place.write("", "");
    assert!(reload(&place).unwrap().contains("other leaves"));
    until_other(&place, "it is said what for", |other| other.unwrap().leaving.contains("other/stable is used: `fuser"));
    file.write_all_at(b"still served", 0).unwrap();
    let shown = String::from_utf8_lossy(&place.run(&["status"]).stdout).into_owned();
    assert!(shown.contains("other is no longer in the file but is still served"), "{shown}");
    let refused = ask(&place.socket(), &request(&place.folder.path().join("out"), "other")).unwrap();
    assert!(matches!(&refused, Answer::Refused { why } if why.contains("takes nothing new")), "{refused:?}");
    drop(file);
    until_other(&place, "it has left", |other| other.is_none());
    assert!(is_gone(&other) && !other.exists());
    place.write("", OTHER);
    reload(&place).unwrap();
    assert_eq!(fs::read(other.join("stable/file")).unwrap(), b"still served");
    assert_eq!(fs::read(other.join("temporary/kept")).unwrap(), b"in memory");
    assert!(service.terminate());
}

#[test]
fn who_is_named_again_before_it_has_left_is_served_as_before() {
    let (place, _service, other) = with_other();
    let file = File::create(other.join("temporary/file")).unwrap();
    place.write("", "");
    reload(&place).unwrap();
    until_other(&place, "it stays", |other| other.unwrap().leaving.contains("other/temporary is used"));
    // Looked at again and again, and never the half that nobody has open goes.
    for number in 0..5 {
        std::thread::sleep(Duration::from_millis(500));
        fs::write(other.join("stable").join(number.to_string()), "text").unwrap();
    }
    assert!(tenants(&place).iter().all(|tenant| tenant.stable.is_served && tenant.temporary.is_served));
    place.write("", "[tenants.other]\nstable = \"1MiB\"");
    assert!(reload(&place).unwrap().contains("other stays after all"));
    fs::write(other.join("stable/new"), "text").unwrap();
    assert!(fs::write(other.join("stable/new"), vec![0; 2 << 20]).is_err(), "by its new quota");
    file.write_all_at(b"still served", 0).unwrap();
    until_other(&place, "it stays", |other| other.unwrap().leaving.is_empty());
}

#[test]
fn who_has_files_that_wait_stays_until_they_are_at_their_place() {
    let (place, _service, other) = with_other();
    let path = place.folder.path().join("out");
    let Answer::Deferring { data, .. } = ask(&place.socket(), &request(&path, "other")).unwrap() else { panic!() };
    fs::write(&data, "text").unwrap();
    // With a second name it cannot move.
    fs::hard_link(&data, other.join("stable/second")).unwrap();
    place.write("", "");
    reload(&place).unwrap();
    until_other(&place, "it is said", |other| other.unwrap().leaving.contains("1 files in it wait for migration"));
    assert!(is_link(&path) && fs::read(&path).unwrap() == b"text");
    fs::remove_file(other.join("stable/second")).unwrap();
    until_moved(&place);
    until_other(&place, "it has left", |other| other.is_none());
    assert!(!is_link(&path) && fs::read(&path).unwrap() == b"text");
    assert!(is_gone(&other));
}

#[test]
fn watermarks_change_and_what_takes_a_restart_is_said() {
    let place = PoolFolder::new("temporary = \"8MiB\"");
    let _service = place.serve();
    fs::write(place.temporary().join("file"), vec![1; 4 << 20]).unwrap();
    // Below the watermark nothing goes to the disk.
    place.let_it_look();
    assert_eq!(place.status().temporary.spilled_files, 0);
    place.write(
        "temporary = \"8MiB\"",
        "[pools.temporary]\nwatermark = 10\nspill_to = 5\n[migration]\ndefer_up_to = 0\nwait_max = \"2h\"",
    );
    let said = reload(&place).unwrap();
    assert!(said.contains("above 10 % of a tenant's memory closed files go to the disk, down to 5 %"), "{said}");
    assert!(said.contains("up to 0 % of a pool, and wait for a quiet disk for 7200 s at most"), "{said}");
    place.until("it went to the disk", |status| status.temporary.spilled_files == 1);
    let refused = ask(&place.socket(), &request(&place.folder.path().join("out"), "web")).unwrap();
    assert!(matches!(&refused, Answer::Refused { why } if why.contains("defer_up_to")), "{refused:?}");
    let text = fs::read_to_string(place.config()).unwrap();
    fs::write(place.config(), text.replace("[server]\n", "[server]\nthreads = 7\n")).unwrap();
    assert_eq!(reload(&place).unwrap(), "`server.threads` takes a restart: systemctl restart minerva-fs\n");
}

#[test]
fn whether_a_tenant_is_a_machine_and_which_numbers_it_has_is_decided_by_a_start() {
    const MACHINE: &str = "machine = \"vm\"\nids = 1800000";
    let takes_a_restart = |key: &str| format!("`tenants.web.{key}` takes a restart: systemctl restart minerva-fs");
    let place = PoolFolder::new(MACHINE);
    let service = place.serve();
    let deferred = place.pool().join("tenants/web/.deferred");
    let owner = || deferred.metadata().unwrap().uid();
    let (folder, root) = (place.folder.path().join("mount/web"), place.pool().join("tenants/web"));
    let group_and_mode = |path: &Path| path.metadata().map(|about| (about.gid(), about.mode() & 0o7777)).unwrap();
    assert_eq!(group_and_mode(&folder), (1_800_000, 0o750));
    let refused = |says: &str| {
        let answer = ask(&place.socket(), &request(&place.folder.path().join("out"), "web")).unwrap();
        assert!(matches!(&answer, Answer::Refused { why } if why.contains(says)), "{answer:?}");
    };
    for (settings, key) in [("machine = \"vm\"\nids = 1900000", "ids"), ("stable = \"1MiB\"", "machine")] {
        place.write(settings, "");
        let said = reload(&place).unwrap();
        assert!(said.contains(&takes_a_restart(key)), "{said}");
        assert!(reload(&place).unwrap().contains(&takes_a_restart(key)), "each time");
        refused("is a virtual machine");
        assert_eq!(owner(), 1_800_000);
    }
    assert_eq!(place.status().stable.bytes_max, 1 << 20, "the rest is in force");
    assert!(service.terminate());
    fs::create_dir(&deferred).unwrap();
    std::os::unix::fs::chown(&deferred, Some(1_800_000), Some(1_800_000)).unwrap();
    let _service = place.serve();
    assert_eq!(owner(), 0, "no machine can change it any more");
    assert_eq!(group_and_mode(&folder), (0, 0o751), "its users come in, and it does not pass for a machine's");
    assert_eq!(group_and_mode(&root), (0, 0o770), "nobody else comes to its trees");
    // And the other way round.
    place.write(MACHINE, "");
    assert!(reload(&place).unwrap().contains(&takes_a_restart("machine")));
    let data = place.folder.path().join("data");
    assert!(defer(&place, &data, Pool::Stable).is_ok(), "it is none yet");
}

/// The file gives a machine other numbers, and the old ones, or the machine itself, to another tenant: until a restart both would have them.
#[test]
fn what_a_machine_keeps_until_a_restart_no_other_tenant_gets() {
    let place = PoolFolder::new("machine = \"vm\"\nids = 1800000");
    let _service = place.serve();
    let deferred = place.pool().join("tenants/web/.deferred");
    let refused = |web: &str, db: &str, says: &str| {
        place.write(web, db);
        let said = reload(&place).unwrap_err();
        assert!(said.contains(says) && said.contains("systemctl restart minerva-fs"), "{said}");
        assert_eq!((tenants(&place).len(), deferred.metadata().unwrap().uid()), (1, 1_800_000), "{said}");
    };
    let db = "[tenants.db]\nmachine = \"db\"\nids = 1800000";
    refused("machine = \"vm\"\nids = 1900000", db, "the machines of `db` and `web` share users");
    refused("", "[tenants.db]\nmachine = \"vm\"\nids = 1900000", "`db` is the machine `vm` too");
    // Also where it is to leave.
    place.write_tables(db);
    assert!(reload(&place).unwrap_err().contains("the machines of `db` and `web` share users"));
    // And where another tenant is the machine, with other numbers.
    place.write_tables("[tenants.db]\nmachine = \"vm\"\nids = 1900000\n[tenants.x]\nmachine = \"x\"\nids = 1800000");
    let said = reload(&place).unwrap_err();
    assert!(said.contains("the machines of `web` and `x` share users"), "{said}");
    assert!(said.contains("`db` is the machine `vm` too"), "{said}");
    assert!(!place.pool().join("tenants/db").exists() && !place.pool().join("tenants/x").exists());
}

#[test]
fn a_machine_gets_another_name_while_the_old_one_leaves() {
    let place = PoolFolder::new("machine = \"vm\"\nids = 1800000");
    let _service = place.serve();
    let _open = File::create(place.stable().join("file")).unwrap();
    place.write_tables("[tenants.other]\nmachine = \"vm\"\nids = 1800000");
    let said = reload(&place).unwrap();
    assert!(said.contains("other is served") && said.contains("web leaves"), "{said}");
    let _open_too = File::create(place.folder.path().join("mount/other/stable/file")).unwrap();
    // Two that leave and are one machine are in nobody's way.
    place.write_tables("");
    assert!(reload(&place).unwrap().contains("other leaves"));
    // One of them may stay after all.
    place.write("machine = \"vm\"\nids = 1800000", "");
    assert!(reload(&place).unwrap().contains("web stays after all"));
}

#[test]
fn others_than_root_put_no_file_in_force() {
    let place = PoolFolder::new("");
    let _service = place.serve();
    place.write("", OTHER);
    // The socket lets everybody in; the folder of the test does not.
    fs::set_permissions(place.folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let refused = place.ask_as_nobody("{\"ask\":\"reload\"}\n");
    assert!(matches!(&refused, Answer::Refused { why } if why.contains("only root may")), "{refused:?}");
    assert_eq!(tenants(&place).len(), 1);
}

#[test]
fn tenants_that_come_and_go_under_load_leave_nothing_behind() {
    let place = PoolFolder::new("");
    let service = place.serve();
    let mount = place.folder.path().join("mount");
    let used = place.stable().join("used");
    let file = File::create(&used).unwrap();
    for round in 0..5 {
        place.write("", "[tenants.other]\n[tenants.third]");
        reload(&place).unwrap();
        for tenant in ["other", "third"] {
            fs::write(mount.join(tenant).join("stable/file"), round.to_string()).unwrap();
        }
        file.write_all_at(&[round; 4096], 0).unwrap();
        place.write("", "");
        reload(&place).unwrap();
        until_other(&place, "it has left", |other| other.is_none());
        let begun = Instant::now();
        while tenants(&place).len() > 1 {
            assert!(begun.elapsed() < PATIENCE);
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(!mount.join("other").exists() && !mount.join("third").exists());
        for tenant in ["other", "third"] {
            let memory = place.folder.path().join("run/temporary").join(tenant);
            assert!(!is_mounted(&memory), "empty memory is given back: {}", memory.display());
        }
    }
    drop(file);
    assert!(service.terminate());
    assert_eq!(fs::read(place.pool().join("tenants/third/file")).unwrap(), b"4");
}

fn request(path: &Path, tenant: &str) -> Request {
    let parent = fs::metadata(path.parent().unwrap()).unwrap();
    Request::Defer {
        path: path.to_owned(),
        directory: (parent.dev(), parent.ino()),
        mode: 0o644,
        pool: Pool::Stable,
        tenant: Some(tenant.to_owned()),
        bytes: 0,
    }
}
