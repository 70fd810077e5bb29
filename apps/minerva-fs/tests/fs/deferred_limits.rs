//! Who may defer, from where, how much, and for how long a file waits.

use crate::deferred::{PATIENCE, assert_tidy, defer, files, flush, is_link, start, until_moved, until_told, write};
use crate::pool_folder::PoolFolder;
use minerva_api::cache::{Answer, Pool, Request, ask};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Asks as the SDK for Python does.
const ASK: &str = "import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect(sys.argv[1])\ns.sendall(sys.argv[2].encode())\n\
                   print(s.makefile().readline())";

/// A request for a file, as a line.
fn line(path: &Path) -> String {
    let parent = fs::metadata(path.parent().unwrap()).unwrap();
    format!(
        "{{\"ask\":\"defer\",\"path\":\"{}\",\"directory\":[{},{}],\"mode\":420}}\n",
        path.display(),
        parent.dev(),
        parent.ino()
    )
}

fn answer(mut command: Command) -> Answer {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The same of a program of somebody else's.
fn ask_as(place: &PoolFolder, user: u32, groups: &str, path: &Path) -> Answer {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={user}"), "--regid=65534", groups, "python3", "-c", ASK]);
    // A program of root's own may come first in the path.
    command.arg(place.socket()).arg(line(path)).env("PATH", "/usr/bin:/bin");
    answer(command)
}

#[test]
fn a_namespace_without_the_tenants_mount_is_refused_and_gets_no_link() {
    let (place, target) = start();
    let _service = place.serve();
    let path = target.join("file");
    // The destination is there, and the trees are not.
    let ask_without = |trees: &[&Path]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--propagation", "slave", "sh", "-ec"]);
        command.arg("for tree in $3; do umount --lazy $tree; done; exec python3 -c \"$0\" \"$1\" \"$2\"");
        let trees: Vec<_> = trees.iter().map(|tree| tree.display().to_string()).collect();
        command.arg(ASK).arg(place.socket()).arg(line(&path)).arg(trees.join(" "));
        answer(command)
    };
    let refused = ask_without(&[&place.stable()]);
    assert!(matches!(&refused, Answer::Refused { why } if why.contains("would lead nowhere")), "{refused:?}");
    assert!(!is_link(&path), "a link to nothing was placed");
    assert_tidy(&place, &target);
    // Another tree is not the one that the link leads to, and a namespace of its own is no fault.
    assert!(matches!(ask_without(&[&place.temporary()]), Answer::Deferring { .. }));
    assert!(matches!(ask_without(&[]), Answer::Deferring { .. }));
}

#[test]
fn members_of_a_tenants_group_defer_and_their_own_tenant_goes_first() {
    let place = PoolFolder::with("user = \"1\"\ngroup = \"12\"", "[tenants.other]\nuser = \"4321\"\ngroup = \"4321\"");
    let data = place.folder.path().join("data");
    fs::create_dir(&data).unwrap();
    for (folder, mode) in [(place.folder.path(), 0o755), (&*data, 0o777)] {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    }
    let _service = place.serve();
    let ask_as = |user, groups, path: &Path| ask_as(&place, user, groups, path);
    let path = data.join("member");
    let Answer::Deferring { data: at, .. } = ask_as(1234, "--groups=12", &path) else { panic!("members may defer") };
    assert!(at.starts_with(place.stable()));
    fs::write(&at, "text").unwrap();
    assert_eq!(fs::metadata(&at).unwrap().uid(), 1234, "the file is the member's own");
    until_moved(&place);
    assert_eq!(fs::metadata(&path).unwrap().uid(), 1234);
    let refused = ask_as(1234, "--clear-groups", &data.join("stranger"));
    assert!(matches!(&refused, Answer::Refused { why } if why.contains("has no tree in the pool")), "{refused:?}");
    // Who is a tenant by name is that one, whatever its groups open.
    let Answer::Deferring { data: at, .. } = ask_as(4321, "--groups=12", &data.join("own")) else { panic!("own tree") };
    assert!(at.starts_with(place.folder.path().join("mount/other")), "{}", at.display());
}

#[test]
fn a_member_of_the_group_whom_the_owner_shuts_out_of_a_tree_defers_nothing_by_it() {
    let place = PoolFolder::new("user = \"1\"\ngroup = \"12\"");
    let data = place.folder.path().join("data");
    fs::create_dir(&data).unwrap();
    for (folder, mode) in [(place.folder.path(), 0o755), (&*data, 0o777)] {
        fs::set_permissions(folder, fs::Permissions::from_mode(mode)).unwrap();
    }
    let _service = place.serve();
    let ask_as = |user, groups, name: &str| ask_as(&place, user, groups, &data.join(name));
    let set_mode = |mode| fs::set_permissions(place.stable(), fs::Permissions::from_mode(mode)).unwrap();
    for mode in [0o700, 0o750, 0o720] {
        set_mode(mode);
        let refused = ask_as(1234, "--groups=12", "member");
        assert!(matches!(&refused, Answer::Refused { why } if why.contains("is not open to you")), "{refused:?}");
        assert!(!is_link(&data.join("member")) && files(&place).is_empty());
    }
    assert!(matches!(ask_as(1, "--clear-groups", "own"), Answer::Deferring { .. }), "its owner has set it so");
    set_mode(0o770);
    assert!(matches!(ask_as(1234, "--groups=12", "member"), Answer::Deferring { .. }));
}

#[test]
fn what_waits_for_a_file_system_has_its_room_there_before_anything_more() {
    let place = PoolFolder::new("");
    let other = place.folder.path().join("other");
    fs::create_dir(&other).unwrap();
    let flags = rustix::mount::MountFlags::empty();
    rustix::mount::mount("minerva-test", &other, "tmpfs", flags, Some(c"size=4m")).unwrap();
    {
        let _service = place.serve();
        let (_, data) = defer(&place, &other.join("waits"), Pool::Stable).unwrap();
        let mut open = File::create(data).unwrap();
        open.write_all(&[1; 3 << 20]).unwrap();
        until_told(&place, "a program has it open");
        let request = |name: &str| {
            let parent = fs::metadata(&other).unwrap();
            let directory = (parent.dev(), parent.ino());
            let (path, bytes) = (other.join(name), 2 << 20);
            ask(
                &place.socket(),
                &Request::Defer { path, directory, mode: 0o644, pool: Pool::Stable, tenant: None, bytes },
            )
        };
        let refused = request("more").unwrap();
        assert!(matches!(&refused, Answer::Refused { why } if why.contains("beside 3 MiB that wait")), "{refused:?}");
        // What replaces it takes its room.
        assert!(matches!(request("waits").unwrap(), Answer::Deferring { .. }));
        drop(open);
        until_moved(&place);
    }
    rustix::mount::unmount(&other, rustix::mount::UnmountFlags::DETACH).unwrap();
}

#[test]
fn a_file_that_has_waited_too_long_moves_while_others_use_its_disk() {
    let place = PoolFolder::with("", "[migration]\nwait_max = \"1s\"");
    let target = place.folder.path().join("data");
    fs::create_dir(&target).unwrap();
    let _service = place.serve();
    let is_moved = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut other = File::create(target.join("other")).unwrap();
            while !is_moved.load(Ordering::Relaxed) {
                other.write_all(&[1; 4096]).unwrap();
                other.sync_all().unwrap();
            }
        });
        write(&place, &target.join("file"), b"text");
        let begun = Instant::now();
        while !files(&place).is_empty() && begun.elapsed() < PATIENCE {
            // Nobody asks for it.
            std::thread::sleep(Duration::from_millis(20));
        }
        is_moved.store(true, Ordering::Relaxed);
    });
    assert!(files(&place).is_empty(), "{:?}", files(&place));
    assert_eq!(fs::read(target.join("file")).unwrap(), b"text");
}

#[test]
fn what_no_link_leads_to_is_told_with_its_size_and_kept() {
    let (place, target) = start();
    let mut service = place.serve();
    write(&place, &target.join("file"), &[1; 100_000]);
    fs::remove_file(target.join("file")).unwrap();
    let left = || match ask(&place.socket(), &Request::Status).unwrap() {
        Answer::Status { migration, .. } => (migration.left_files, migration.left_bytes >= 100_000),
        other => panic!("{other:?}"),
    };
    let begun = Instant::now();
    while left() != (1, true) {
        flush(&place);
        assert!(begun.elapsed() < PATIENCE, "{:?}", files(&place));
        std::thread::sleep(Duration::from_millis(20));
    }
    let data = files(&place)[0].data.clone();
    service.kill();
    // It is told at each start, and kept.
    let _service = place.serve();
    assert_eq!(left(), (1, true));
    assert!(files(&place)[0].why.contains("was removed"), "{:?}", files(&place));
    assert_eq!(fs::read(data).unwrap(), [1; 100_000]);
}
