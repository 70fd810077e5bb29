//! What the program says, and what it leaves.

use crate::pool_folder::{PoolFolder, is_mounted};
use minerva_api::cache::Answer;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::{Signal, kill_process};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_good_file_is_judged_and_nothing_is_mounted() {
    let place = PoolFolder::new("user = \"nobody\"");
    let output = place.run(&["--check"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(said.contains("web: 268435456 bytes temporary, 10737418240 stable, for user 65534"), "{said}");
    assert!(said.contains("1 tenants can be served"), "{said}");
    assert!(!place.temporary().exists());
}

#[test]
fn mistakes_are_told_with_the_file_the_line_and_what_to_do() {
    let refused = |tenant: &str, says: &[&str]| {
        let output = PoolFolder::new(tenant).run(&["--check"]);
        let said = text(&output.stderr);
        assert!(!output.status.success());
        for part in says {
            assert!(said.contains(part), "{said}");
        }
    };
    refused(
        "user = \"minerva-nobody-has-this\"",
        &["fs.toml:6: tenant `web`", "useradd --system minerva-nobody-has-this"],
    );
    refused("temporray = 5", &["fs.toml:7:1", "unknown key `temporray`", "did you mean `temporary`"]);
    refused("when_full = \"wait\"", &["fs.toml:7:13", "valid: `refuse`, `spill`"]);
}

#[test]
fn a_second_daemon_on_one_pool_is_told_who_has_it_and_disturbs_nothing() {
    let place = PoolFolder::new("");
    let service = place.serve();
    fs::write(place.stable().join("file"), "text").unwrap();
    let output = place.run(&[]);
    let said = text(&output.stderr);
    assert!(!output.status.success());
    assert!(
        said.contains(&format!("is used by another minerva-fs, process {}; stop it first", service.0.id())),
        "{said}"
    );
    assert_eq!(fs::read(place.stable().join("file")).unwrap(), b"text");
    assert!(service.terminate());
}

#[test]
fn what_somebody_else_mounted_is_left_alone() {
    let place = PoolFolder::new("");
    fs::create_dir_all(place.stable()).unwrap();
    rustix::mount::mount("minerva-test", place.stable(), "tmpfs", rustix::mount::MountFlags::empty(), None).unwrap();
    let output = place.run(&[]);
    unmount(place.stable(), UnmountFlags::empty()).unwrap();
    let said = text(&output.stderr);
    assert!(said.contains("is mounted already, by somebody else; unmount it: umount"), "{said}");
    assert!(!is_mounted(&place.temporary()), "of a failed start nothing stays");
}

#[test]
fn sigterm_unmounts_and_gives_empty_memory_back() {
    let place = PoolFolder::new("");
    for signal in [Signal::TERM, Signal::INT] {
        let mut service = place.serve();
        assert!(is_mounted(&place.temporary()) && is_mounted(&place.stable()));
        fs::write(place.temporary().join("file"), "text").unwrap();
        fs::remove_file(place.temporary().join("file")).unwrap();
        kill_process(service.pid(), signal).unwrap();
        assert!(service.0.wait().unwrap().success());
        let memory = place.folder.path().join("run/temporary/web");
        for at in [place.temporary(), place.stable(), memory] {
            assert!(!is_mounted(&at), "{}", at.display());
        }
    }
}

#[test]
fn what_is_in_memory_outlives_a_stop() {
    let place = PoolFolder::new("");
    let service = place.serve();
    fs::write(place.temporary().join("file"), "text").unwrap();
    assert!(service.terminate());
    assert!(!is_mounted(&place.temporary()));
    let _service = place.serve();
    assert_eq!(fs::read(place.temporary().join("file")).unwrap(), b"text");
}

#[test]
fn a_stop_waits_for_who_has_a_file_open() {
    let place = PoolFolder::new("");
    let mut service = place.serve();
    let file = File::create(place.stable().join("file")).unwrap();
    kill_process(service.pid(), Signal::TERM).unwrap();
    for _ in 0..20 {
        std::thread::sleep(std::time::Duration::from_millis(10));
        std::os::unix::fs::FileExt::write_all_at(&file, b"still served", 0).unwrap();
    }
    assert!(service.0.try_wait().unwrap().is_none());
    drop(file);
    assert!(service.0.wait().unwrap().success());
    assert!(!is_mounted(&place.stable()));
}

#[test]
fn a_second_signal_takes_a_used_tree_out_of_sight_and_ends() {
    let place = PoolFolder::new("");
    let mut service = place.serve();
    let file = File::create(place.stable().join("file")).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"acknowledged", 0).unwrap();
    kill_process(service.pid(), Signal::INT).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    kill_process(service.pid(), Signal::INT).unwrap();
    assert!(service.0.wait().unwrap().success());
    assert!(!is_mounted(&place.stable()));
    let _service = place.serve();
    assert_eq!(fs::read(place.stable().join("file")).unwrap(), b"acknowledged");
}

#[test]
fn the_doctor_tries_passthrough_and_finds_what_was_left() {
    let place = PoolFolder::new("");
    let mut service = place.serve();
    fs::write(place.stable().join("file"), "text").unwrap();
    service.kill();
    fs::create_dir_all(place.pool().join("tenants/old/folder")).unwrap();
    let output = place.run(&["doctor"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for part in
        ["passthrough:", "stable pool:", "the next start mounts it again", "belongs to no tenant in the file: 1 files"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn status_shows_each_tree() {
    let place = PoolFolder::new("");
    let service = place.serve();
    fs::write(place.stable().join("file"), vec![0; 3 << 20]).unwrap();
    let output = place.run(&["status"]);
    let said = text(&output.stdout);
    assert!(said.contains("web") && said.lines().count() == 3, "{said}");
    let json = text(&place.run(&["status", "--json"]).stdout);
    assert!(json.contains("\"bytes\":3145728"), "{json}");
    assert!(service.terminate());
    let output = place.run(&["status"]);
    assert!(text(&output.stderr).contains("start it: systemctl start minerva-fs"), "{}", text(&output.stderr));
}

/// A user holds as many connections as it gets, and says nothing by any; how many were answered that there are too many. It waits for a
/// line before it lets go of them.
const HOLD: &str = "
import select, socket, sys
held, refused = [], 0
for _ in range(200):
    one = socket.socket(socket.AF_UNIX)
    one.connect(sys.argv[1])
    held.append(one)
for one in held:
    if select.select([one], [], [], 0.02)[0]:
        refused += b'refused' in one.recv(4096)
print(refused, flush=True)
sys.stdin.readline()
";

#[test]
fn silent_connections_of_a_user_keep_neither_root_nor_others_from_the_socket() {
    let place = PoolFolder::new("user = \"nobody\"");
    let folder = place.folder.path();
    fs::set_permissions(folder, std::os::unix::fs::PermissionsExt::from_mode(0o711)).unwrap();
    let service = place.serve();
    let mut command = Command::new("python3");
    command.arg("-c").arg(HOLD).arg(place.socket()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut hostile = command.uid(1234).gid(1234).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(hostile.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let refused: u32 = line.trim().parse().unwrap();
    assert!(refused >= 100, "{refused} of 200 were told that they are too many");
    place.status();
    assert!(
        matches!(place.ask_as_nobody("{\"ask\":\"status\"}\n"), Answer::Status { tenants, .. } if tenants.len() == 1)
    );
    hostile.kill().unwrap();
    hostile.wait().unwrap();
    assert!(service.terminate());
}
