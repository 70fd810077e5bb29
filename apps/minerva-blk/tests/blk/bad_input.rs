//! What cannot be served: each disk is refused with what to do about it, and the one beside it is served.

use crate::server_folder::{IMAGE_BYTES, ServerFolder};
use minerva_blk::{Image, ImageOptions};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fs::File;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(90);

/// In a file where a socket is to be.
const PRECIOUS: &str = "somebody's image";

/// A disk that cannot be served.
struct Case {
    name: &'static str,
    /// What is at the path of its image, and what else stands in its way; what has to stay until the test ends.
    prepare: fn(&Path, &Path) -> Box<dyn std::any::Any>,
    /// The rest of its table.
    rest: &'static str,
    /// What the operator reads.
    says: &'static [&'static str],
}

/// An image as it should be.
fn good(image: &Path, _: &Path) -> Box<dyn std::any::Any> {
    File::create(image).unwrap().set_len(IMAGE_BYTES).unwrap();
    Box::new(())
}

fn of_length(image: &Path, bytes: u64) -> Box<dyn std::any::Any> {
    File::create(image).unwrap().set_len(bytes).unwrap();
    Box::new(())
}

const CASES: &[Case] = &[
    Case {
        name: "missing",
        prepare: |_, _| Box::new(()),
        rest: "",
        says: &["there is no such file", "truncate --size"],
    },
    Case {
        name: "folder",
        prepare: |image, _| {
            std::fs::create_dir(image).unwrap();
            Box::new(())
        },
        rest: "",
        says: &["neither a file nor a block device", "name a raw image"],
    },
    Case {
        name: "empty",
        prepare: |image, _| of_length(image, 0),
        rest: "",
        says: &["0 bytes long, which is not a whole number of sectors", "truncate --size"],
    },
    Case {
        name: "odd",
        prepare: |image, _| of_length(image, IMAGE_BYTES + 100),
        rest: "",
        says: &["4194404 bytes long, which is not a whole number of sectors", "a multiple of 512"],
    },
    Case {
        name: "qcow2",
        prepare: |image, socket| {
            good(image, socket);
            std::os::unix::fs::FileExt::write_all_at(&File::options().write(true).open(image).unwrap(), b"QFI\xfb", 0)
                .unwrap();
            Box::new(())
        },
        rest: "",
        says: &["a qcow2 image", "qemu-img convert -O raw"],
    },
    Case {
        name: "locked",
        prepare: |image, socket| {
            good(image, socket);
            Box::new(Image::open(image, ImageOptions { is_read_only: false, is_direct: false }).unwrap())
        },
        rest: "",
        says: &["locked by another process", "`lslocks` shows it"],
    },
    Case {
        name: "listened",
        prepare: |image, socket| {
            good(image, socket);
            Box::new(UnixListener::bind(socket).unwrap())
        },
        rest: "",
        says: &["is in use: another server listens there", "choose another `socket`"],
    },
    Case {
        name: "occupied",
        prepare: |image, socket| {
            std::fs::write(socket, PRECIOUS).unwrap();
            good(image, socket)
        },
        rest: "",
        says: &["is a file and no socket; it was left alone", "choose another `socket`"],
    },
    Case {
        name: "limited",
        prepare: good,
        rest: "limit = \"1MB\"",
        says: &["`limit` is set", "set `scheduler = \"mclock\"`"],
    },
    Case {
        name: "promised",
        prepare: good,
        rest: "rate = \"400MB\"",
        says: &["impossible under any scheduler", "`force` for `promised`"],
    },
];

#[test]
fn each_disk_that_cannot_be_served_is_refused_with_what_to_do_and_the_others_are_served() {
    let place = ServerFolder::new();
    let path = |name: &str, kind: &str| place.folder.path().join(format!("{name}.{kind}"));
    let mut text = format!(
        "[disks.vm1]\nimage = {:?}\nsocket = {:?}\ndirect = false\nrate = \"1MB\"\n",
        place.image(),
        place.socket()
    );
    let mut kept = Vec::new();
    for case in CASES {
        let (image, socket) = (path(case.name, "raw"), path(case.name, "sock"));
        kept.push((case.prepare)(&image, &socket));
        text += &format!("[disks.{}]\nimage = {image:?}\nsocket = {socket:?}\n", case.name);
        text += &format!("direct = false\n{}\n", case.rest);
    }
    for device in devices() {
        text += &format!("[devices.{device}]\nscheduler = \"htbs\"\nrotational = true\n");
    }
    place.write_text(&text);
    let check = place.run(&["--check"]);
    assert_eq!(check.status.code(), Some(1));
    let (said, served) = (String::from_utf8_lossy(&check.stderr), String::from_utf8_lossy(&check.stdout));
    assert!(served.contains(&format!("vm1: {IMAGE_BYTES} bytes on ")), "{served}");
    // A socket is looked at only by who serves.
    assert!(said.contains(&format!("{} of {} disks cannot be served", CASES.len() - 2, CASES.len() + 1)), "{said}");

    let serving = place.serve();
    let begun = Instant::now();
    // The lock of another process is waited for: it may be that of a killed server.
    while !place.socket().exists() {
        assert!(begun.elapsed() < PATIENCE, "nobody listens for the good one");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut client = Client::connect(&place.socket(), ClientOptions::default());
    assert_eq!(client.rings[0].ask(&Request::new(kind::OUT, 8, 4096)).status, 0, "the good one is served");
    let (is_content, said) = serving.terminate();
    assert!(is_content, "{said}");
    for Case { name, says, .. } in CASES {
        let line = said.lines().find(|line| line.contains(&format!("disk `{name}`: ")));
        let line = line.unwrap_or_else(|| panic!("nothing is said of `{name}`: {said}"));
        assert!(line.contains("blk.toml:"), "where it stands: {line}");
        says.iter().for_each(|part| assert!(line.contains(part), "{name}: {line}"));
    }
    assert_eq!(std::fs::read_to_string(path("occupied", "sock")).unwrap(), PRECIOUS);
    assert!(said.contains(&format!("1 disks are served, {} are refused", CASES.len())), "{said}");
}

/// The names by which the server may know the disk of the tests' folder: all of this machine's, and the one for what lies on none.
fn devices() -> Vec<String> {
    let blocks = std::fs::read_dir("/sys/block").into_iter().flatten();
    let names = blocks.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.chain(["other".to_owned()]).collect()
}

#[test]
fn where_nothing_can_be_served_the_server_ends() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    std::fs::remove_file(place.image()).unwrap();
    let output = place.run(&[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("there is no such file") && said.contains("none of 1 disks can be served"), "{said}");
}

/// What is wrong with the file itself refuses all of it: nobody knows what else was meant.
#[test]
fn counts_out_of_range_are_shown_with_their_line() {
    let place = ServerFolder::new();
    for (keys, says) in [
        ("queues = 0", "not in 1 to 64"),
        ("queues = 65", "not in 1 to 64"),
        ("weight = 0", "not in 1 to 10000"),
        ("tag_max = 255", "not in 1 to 254"),
        ("delay = \"2m\"\nrate = \"1MB\"", "not in 1ms to 1m"),
    ] {
        place.write(keys, "");
        let output = place.run(&["--check"]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(says) && said.contains("blk.toml:4:"), "{keys}: {said}");
    }
}
