//! Disks that come, go and change while guests run, as an operator does it: the real `minerva-ctl` at the real server.

use crate::operator::{Operator, device_of_tests, text};
use crate::server_folder::{IMAGE_BYTES, ServerFolder, Serving, program};
use minerva_linux_actuate::ask_server;
use minerva_model::{ControlRequest, Protection, ServerAnswer};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use vhost::VhostBackend;

const PATIENCE: Duration = Duration::from_secs(20);

fn write_at(client: &mut Client, sector: u64) -> u8 {
    client.rings[0].ask(&Request::new(kind::OUT, sector, 4096)).status
}

#[test]
fn a_disk_is_added_beside_one_in_use_by_a_server_without_root_and_kept_for_the_next() {
    let is_root = rustix::process::geteuid().is_root();
    let rest = if is_root { "[server]\nuser = \"nobody\"\n" } else { "" };
    let Some(mut operator) = Operator::new("direct = false", rest) else { return };
    let mut first = Client::connect(&operator.folder.socket(), ClientOptions::default());
    assert_eq!(write_at(&mut first, 0), 0);
    let (image, socket) = (operator.image("vm2.raw"), operator.path("vm2.sock"));
    // Nobody but root can open it: what the server gets is open.
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&image, private).unwrap();
    let add =
        ["add", "vm2", "--image", &image, "--disk-socket", &socket, "--no-direct", "--weight", "300", "--queues", "2"];
    let said = operator.good(&add);
    assert!(said.contains("vm2: weight 300"), "{said}");
    assert!(operator.refused(&add).contains("there is a disk `vm2` already"));
    let mut second = Client::connect(socket.as_ref(), ClientOptions { queues: 2, ..ClientOptions::default() });
    assert_eq!((write_at(&mut second, 8), write_at(&mut first, 8)), (0, 0), "both are served");
    let list: serde_json::Value = serde_json::from_str(&operator.good(&["list", "--json"])).unwrap();
    let disks = list["disks"].as_array().unwrap();
    let named = |name: &str| disks.iter().find(|disk| disk["settings"]["name"] == name).unwrap().clone();
    assert_eq!(
        (named("vm1")["io"]["write_ops"].as_u64(), named("vm2")["io"]["write_ops"].as_u64()),
        (Some(2), Some(1))
    );
    assert_eq!(named("vm2")["front_end"], std::process::id(), "who is connected is told");
    assert!(operator.good(&["list"]).contains("weight 300"));
    assert!(operator.good(&["attach-line", "vm2"]).contains("num-queues=2"));
    // The next server has it from its drop-in.
    let (is_content, said) = operator.serving.take().unwrap().terminate();
    assert!(is_content && said.contains("vm2: 1 requests"), "{said}");
    operator.serving = Some(operator.folder.serve());
    second.reconnect(socket.as_ref());
    assert_eq!(write_at(&mut second, 16), 0);
}

#[test]
fn a_live_view_that_is_ended_by_a_signal_gives_the_terminal_back() {
    let Some(operator) = Operator::new("direct = false", "") else { return };
    if Command::new("script").arg("--version").output().is_err() {
        return println!("skipped: needs script(1)");
    }
    let top = operator.command(&["top"]);
    let arguments: Vec<_> = top.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let script = format!(
        "stty rows 40 cols 120; stty -a > before; sh -c 'echo $$ > pid; exec {} {}'; echo $? > code; stty -a > after; echo > ended",
        operator.tool.display(),
        arguments.join(" ")
    );
    let folder = operator.folder.folder.path();
    let screen = std::fs::File::create(folder.join("screen")).unwrap();
    let mut terminal = Command::new("script");
    terminal.args(["-qfec", &script, "/dev/null"]).env("SHELL", "/bin/sh").env("TERM", "xterm").current_dir(folder);
    let mut terminal = terminal.stdin(Stdio::piped()).stdout(screen).spawn().unwrap();
    let until = |what: &str, holds: &dyn Fn() -> bool| {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < PATIENCE, "{what}");
            std::thread::sleep(Duration::from_millis(20));
        }
    };
    let read = |file: &str| std::fs::read(folder.join(file)).map(|bytes| text(&bytes)).unwrap_or_default();
    until("it is shown", &|| read("screen").contains("vm1"));
    assert!(Command::new("kill").args(["-TERM", read("pid").trim()]).status().unwrap().success());
    until("it ends", &|| folder.join("ended").exists());
    assert_eq!((read("code").trim(), read("after")), ("143", read("before")));
    drop(terminal.stdin.take());
    terminal.wait().unwrap();
}

#[test]
fn a_disk_in_use_is_not_removed_but_by_force_and_gives_its_image_back() {
    let Some(operator) = Operator::new("direct = false", "") else { return };
    let (image, socket) = (operator.image("vm2.raw"), operator.path("vm2.sock"));
    let add = ["add", "vm2", "--image", &image, "--disk-socket", &socket, "--no-direct", "--runtime"];
    operator.good(&add);
    let mut guest = Client::connect(socket.as_ref(), ClientOptions::default());
    assert_eq!(write_at(&mut guest, 0), 0);
    let said = operator.refused(&["remove", "vm2"]);
    assert!(said.contains(&format!("a guest is connected to `vm2` (process {})", std::process::id())), "{said}");
    assert_eq!(write_at(&mut guest, 8), 0, "nothing happened to it");
    operator.good(&["remove", "vm2", "--force"]);
    assert!(!std::path::Path::new(&socket).exists(), "nobody connects to what is not served");
    assert!(guest.frontend().get_features().is_err(), "it was hung up on");
    assert!(operator.refused(&["remove", "vm2"]).contains("it serves no disk of this name"));
    // Its lock is free, and its number is used again.
    operator.good(&add);
    let mut guest = Client::connect(socket.as_ref(), ClientOptions::default());
    assert_eq!(write_at(&mut guest, 0), 0);
    let said = operator.disk(&["remove", "vm1"]);
    let why = text(&said.stderr);
    assert!(
        said.status.code() == Some(1) && why.contains("`vm1` stands in") && why.contains("take it out there"),
        "{why}"
    );
}

#[test]
fn a_guest_sees_at_once_that_its_disk_grew() {
    let Some(operator) = Operator::new("direct = false", "") else { return };
    let mut guest =
        Client::connect(&operator.folder.socket(), ClientOptions { has_channel: true, ..ClientOptions::default() });
    let sectors = |guest: &mut Client| u64::from_le_bytes(guest.config(8).try_into().unwrap());
    let (before, after) = (IMAGE_BYTES / 512, 2 * IMAGE_BYTES / 512);
    assert_eq!((sectors(&mut guest), write_at(&mut guest, before)), (before, 1), "beyond its end there is nothing");
    operator.good(&["resize", "vm1", &(2 * IMAGE_BYTES).to_string()]);
    assert!(guest.wait_for_change(PATIENCE), "the guest is told");
    assert_eq!((sectors(&mut guest), write_at(&mut guest, before)), (after, 0));
    assert_eq!(std::fs::metadata(operator.folder.image()).unwrap().len(), 2 * IMAGE_BYTES);
    assert!(operator.refused(&["resize", "vm1", "1MiB"]).contains("disks only grow"));
    assert!(operator.refused(&["resize", "vm1", "9000001"]).contains("not a whole number of blocks"));
    // Somebody else made it longer, as `lvextend` does.
    std::fs::File::options().write(true).open(operator.folder.image()).unwrap().set_len(3 * IMAGE_BYTES).unwrap();
    operator.good(&["resize", "vm1"]);
    assert!(guest.wait_for_change(PATIENCE));
    assert_eq!(sectors(&mut guest), 3 * IMAGE_BYTES / 512);
}

#[test]
fn a_contract_that_the_disk_cannot_keep_is_refused_at_the_start_and_later_or_taken_by_force() {
    let rest = "[devices.other]\nscheduler = \"htbs\"\nrotational = true\n";
    let names = |device: &str| rest.replace("other", device);
    let Some(device) = device_of_tests() else { return };
    // A disk that seeks has no 400 MB/s.
    let folder = ServerFolder::new();
    folder.write("direct = false\nrate = \"400MB\"", &names(&device));
    let output = folder.run(&["--check"]);
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("impossible under any scheduler"), "{said}");
    assert!(said.contains(&format!("`devices.{device}.model`")) && said.contains("`force` for `vm1`"), "{said}");
    folder.write("direct = false\nrate = \"400MB\"\nforce = true", &names(&device));
    let output = folder.run(&["--check"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let Some(operator) = Operator::new("direct = false\nrate = \"4MB\"", &names(&device)) else { return };
    let said = operator.refused(&["set", "vm1", "--rate", "400MB"]);
    assert!(said.starts_with("minerva-ctl: refused: the contracts on") && said.contains("impossible"), "{said}");
    let told = operator.disk(&["set", "vm1", "--rate", "400MB", "--json"]);
    let line: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!((told.status.code(), line["refusal"].is_string()), (Some(1), true), "{line}");
    assert!(operator.good(&["list"]).contains("4.0 MB/s"), "what was refused changed nothing");
    let said = operator.good(&["set", "vm1", "--rate", "400MB", "--force"]);
    assert!(said.contains("400.0 MB/s") && said.contains("by force"), "{said}");
    let output = operator.disk(&["set", "vm1", "--no-contract"]);
    assert!(!text(&output.stdout).contains("MB/s"), "{output:?}");
    // The operator's own file has it, and a drop-in takes no key out of it.
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains("only until the server ends") && said.contains("another file says `rate`"), "{said}");
    assert!(operator.refused(&["set", "vm1", "--limit", "1MB"]).contains("set `scheduler = \"mclock\"`"));
    assert!(operator.refused(&["set", "vm1"]).contains("nothing to change"));
}

#[test]
fn what_cannot_be_kept_is_refused_before_a_socket_is_made() {
    let Some(operator) = Operator::new("direct = false", "") else { return };
    let image = operator.image("vm2.raw");
    let above = operator.path("above");
    for (name, more, says) in [
        ("", "--no-direct", "cannot be a disk's name: 1 to 20 letters"),
        (&*above, "--no-direct", "cannot be a disk's name"),
        ("a\nb", "--no-direct", "cannot be a disk's name"),
        ("twenty-one-letters-xx", "--no-direct", "cannot be a disk's name"),
        ("vm2", "--delay=1s", "--delay without --rate promises nothing"),
    ] {
        let said = operator.refused(&["add", name, "--image", &image, more]);
        assert!(said.contains(says), "{name}: {said}");
    }
    assert!(!std::path::Path::new(&format!("{above}.sock")).exists());
    // To connect to a file that is no socket fails as at a socket that was left behind.
    let said = operator.refused(&["add", "vm2", "--image", &image, "--disk-socket", &image, "--no-direct"]);
    assert!(said.contains("is a file and no socket; it was left alone"), "{said}");
    assert!(std::path::Path::new(&image).exists());
    let said = operator.refused(&["set", "vm1", "--burst", "1MiB"]);
    assert!(said.contains("`burst` without `rate` promises nothing"), "{said}");
    let said = operator.refused(&["set", "vm1", "--request", "9MiB"]);
    assert!(said.contains("requests of 512B to 8MiB"), "{said}");
}

/// Whoever changes a disk stands in another folder than who started its server.
#[test]
fn what_is_changed_is_kept_beside_the_file_however_that_was_named() {
    let Some(mut operator) = Operator::new("direct = false", "") else { return };
    drop(operator.serving.take());
    let mut server = Command::new(program());
    server.args(["--config", "blk.toml"]).current_dir(operator.folder.folder.path()).stderr(Stdio::piped());
    operator.serving = Some(Serving(server.spawn().unwrap()));
    operator.until_served();
    let output = operator.command(&["set", "vm1", "--weight", "7"]).current_dir("/").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(std::path::Path::new(&operator.path("blk.toml.d/disk-vm1.toml")).exists());
}

/// A processor that is not there is refused as what it is, and where a disk's threads run is told.
#[test]
fn where_the_threads_of_a_disk_run_is_told_and_a_processor_that_is_not_there_is_refused() {
    let Some(device) = device_of_tests() else { return };
    let folder = ServerFolder::new();
    folder.write("direct = false", &format!("[devices.{device}]\ncpus = \"0,1000\"\n"));
    let output = folder.run(&["--check"]);
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains(&format!("processor 1000 of `devices.{device}.cpus`")), "{said}");
    let Some(operator) = Operator::new("direct = false", &format!("[devices.{device}]\ncpus = \"0\"\n")) else {
        return;
    };
    let list: serde_json::Value = serde_json::from_str(&operator.good(&["list", "--json"])).unwrap();
    assert_eq!(list["devices"][0]["cpus"], serde_json::json!([0]));
}

/// What `minervad` would say; without it nothing is refused, and it is told that nobody protects the contract.
#[test]
fn a_contract_beside_others_whom_nothing_holds_back_is_refused_or_taken_by_force() {
    let Some(device) = device_of_tests() else { return };
    if device == "other" {
        return println!("skipped: the tests' images lie on no disk of this machine");
    }
    let rest = format!("[devices.{device}]\nscheduler = \"htbs\"\nrotational = true\n");
    let Some(operator) = Operator::new("direct = false\nrate = \"1MB\"", &rest) else { return };
    let list = operator.good(&["list"]);
    assert!(list.contains("not protected from other processes of this host: minervad does not run"), "{list}");
    let says = |held, why: &str| {
        let protection = Protection { held, why: why.to_owned(), part_permille: 0, others_permille: 300 };
        let devices = [(device.clone(), protection)].into();
        let socket = operator.folder.runtime_dir().join("servers/blk");
        let answer = ask_server(&socket, &ControlRequest::Protect { devices }, &[], PATIENCE).unwrap();
        assert_eq!(answer, ServerAnswer::Holds(String::new()));
    };
    says(false, "minervad only watches");
    let said = operator.refused(&["set", "vm1", "--rate", "2MB"]);
    assert!(said.contains("had 30 % of the time of") && said.contains("minervad only watches"), "{said}");
    let list = operator.good(&["list"]);
    assert!(list.contains("1.0 MB/s") && list.contains("which had 30 % lately: minervad only watches"), "{list}");
    let (image, socket) = (operator.image("vm2.raw"), operator.path("vm2.sock"));
    let add = ["add", "vm2", "--image", &image, "--disk-socket", &socket, "--rate", "1MB", "--no-direct"];
    let said = operator.refused(&add);
    assert!(said.contains("the contract of `vm2` is refused: other processes"), "{said}");
    operator.good(&["set", "vm1", "--delay", "300ms"]);
    operator.good(&["set", "vm1", "--rate", "2MB", "--force"]);
    // Another contract is judged, although the one before was taken by force.
    let said = operator.refused(&["set", "vm1", "--rate", "3MB"]);
    assert!(said.contains("minervad only watches"), "{said}");
    says(true, "minervad holds others back through bfq");
    let list: serde_json::Value = serde_json::from_str(&operator.good(&["list", "--json"])).unwrap();
    assert_eq!(list["devices"][0]["protection"]["held"], true);
    assert!(list["devices"][0]["reserved_permille"].as_u64().unwrap() > 0, "{list}");
}

#[test]
fn only_root_and_operators_may_ask() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: only root can be somebody else");
    }
    let Some(operator) = Operator::new("direct = false", "[server]\noperator_group = \"daemon\"\n") else { return };
    // The folder of a test is for its owner only; a runtime directory may be looked into.
    let readable = |path: &std::path::Path| {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    };
    readable(operator.folder.folder.path());
    let reachable = operator.command(&["list"]).uid(65_534).gid(65_534).output();
    let Ok(nobody) = reachable else { return println!("skipped: nobody may not run programs here") };
    assert_eq!(nobody.status.code(), Some(2));
    assert!(text(&nobody.stderr).contains("is for root and the members"), "{}", text(&nobody.stderr));
    // Also when the file's permissions are loosened.
    let socket = operator.folder.runtime_dir().join("servers/blk");
    std::fs::set_permissions(&socket, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
    let nobody = operator.command(&["list"]).uid(65_534).gid(65_534).output().unwrap();
    assert!(text(&nobody.stderr).contains("only root and the members of `server.operator_group`"));
    let member = operator.command(&["list"]).uid(65_534).gid(1).output().unwrap();
    assert!(member.status.success(), "group 1 is `daemon`: {}", text(&member.stderr));
}

#[test]
fn what_became_of_a_contract_and_which_tags_came_is_told() {
    let promise = "direct = false\nrate = \"4MB\"\nburst = \"64KiB\"\ndelay = \"1ms\"\ntag_max = 200\nforce = true";
    let htbs = |name: &str| format!("[devices.{name}]\nscheduler = \"htbs\"\nrotational = true\n");
    let Some(device) = device_of_tests() else { return };
    let Some(operator) = Operator::new(promise, &htbs(&device)) else { return };
    let mut guest = Client::connect(&operator.folder.socket(), ClientOptions::default());
    let top = operator.disk(&["top", "--once"]);
    assert!(top.status.success() && text(&top.stdout).contains("kept: 0 requests"), "{}", text(&top.stdout));
    let ioprio = u32::from(minerva_blk::tag::Priority::encode(2, 150).unwrap());
    for number in 0..128 {
        guest.rings[0].submit(&Request { ioprio, ..Request::new(kind::IN, number % 64 * 8, 4096) });
        if number % 64 == 63 {
            guest.rings[0].kick();
            while guest.rings[0].under_way() > 0 {
                assert_eq!(guest.rings[0].wait(PATIENCE).expect("an answer").status, 0);
            }
        }
    }
    let list: serde_json::Value = serde_json::from_str(&operator.good(&["list", "--json"])).unwrap();
    let figures = &list["disks"][0]["figures"];
    assert_eq!((figures["tags_seen"].to_string(), &figures["tags"][0]["ops"]), ("[150]".to_owned(), &128.into()));
    assert_eq!(figures["contract"]["requests"], 128);
    // More than rate and burst allow was asked for at once: the first sixteen requests were within the burst.
    assert!(figures["contract"]["early"].as_u64().unwrap() > 0, "{figures}");
    let text_of = |arguments: &[&str]| text(&operator.disk(arguments).stdout);
    assert!(text_of(&["top", "--once"]).contains("tag 150"), "{}", text_of(&["top", "--once"]));
    let config = operator.folder.folder.path().join("minerva.toml");
    let doctor = Command::new(&operator.tool).arg("--config").arg(config).args(["doctor", "--json"]).output().unwrap();
    let lines = text(&doctor.stdout);
    let seen = lines.lines().find(|line| line.contains("tags-seen")).unwrap_or_else(|| panic!("{lines}"));
    assert!(seen.contains("\"tags\":[150]") && seen.contains("\"disk\":\"vm1\""), "{seen}");
    let levels = lines.lines().find(|line| line.contains("tag-levels")).unwrap_or_else(|| panic!("{lines}"));
    assert!(levels.contains("\"levels\":254") || levels.contains("\"levels\":8"), "{levels}");
}

/// Memory that a front end could make shorter would kill the server; it is told with the remedy, once.
#[test]
fn why_a_front_end_is_hung_up_on_is_told_with_the_remedy() {
    use vhost::vhost_user::{Frontend, VhostUserFrontend};
    let Some(mut operator) = Operator::new("direct = false", "") else { return };
    for _ in 0..3 {
        let memory = tempfile::tempfile().unwrap();
        memory.set_len(4096).unwrap();
        let mut frontend = Frontend::connect(operator.folder.socket(), 1).unwrap();
        frontend.set_owner().unwrap();
        let features = frontend.get_features().unwrap();
        frontend.get_protocol_features().unwrap();
        frontend.set_protocol_features(vhost::vhost_user::message::VhostUserProtocolFeatures::REPLY_ACK).unwrap();
        frontend.set_features(features).unwrap();
        frontend.set_hdr_flags(vhost::vhost_user::message::VhostUserHeaderFlag::NEED_REPLY);
        let region = vhost::VhostUserMemoryRegionInfo {
            guest_phys_addr: 0,
            memory_size: 4096,
            userspace_addr: 0x1000,
            mmap_offset: 0,
            mmap_handle: std::os::fd::AsRawFd::as_raw_fd(&memory),
        };
        assert!(frontend.set_mem_table(&[region]).is_err());
    }
    let begun = Instant::now();
    while !operator.good(&["list"]).contains("not served: it could make the guest's memory shorter") {
        assert!(begun.elapsed() < PATIENCE, "{}", operator.good(&["list"]));
        std::thread::sleep(Duration::from_millis(10));
    }
    let (_, said) = operator.serving.take().unwrap().terminate();
    let lines: Vec<&str> = said.lines().filter(|line| line.contains("front end of `vm1`")).collect();
    assert!(lines.len() == 1 && lines[0].contains("share=on,seal=on"), "{said}");
}
