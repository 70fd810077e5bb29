//! What an operator of a virtual machine is told, without one: as in `guest_role`.

use crate::deferred::{files, write};
use crate::guest_role::start;
use crate::pool_folder::PoolFolder;
use minerva_api::cache::{Answer, Request, ask};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// Each finding as the doctor prints it, and whether nothing keeps the service from its work.
fn doctor(place: &PoolFolder) -> (Vec<String>, bool) {
    let output = place.run(&["doctor"]);
    let lines = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
    (lines, output.status.success())
}

fn has(found: &(Vec<String>, bool), start: &str, part: &str) -> bool {
    found.0.iter().any(|line| line.starts_with(start) && line.contains(part))
}

#[test]
fn the_doctor_of_a_machine_tells_of_its_hosts_trees_its_agent_leases_and_what_waits() {
    let (host, mut service, guest, target) = start();
    let found = doctor(&guest);
    assert!(found.1, "{found:?}");
    assert!(has(&found, "ok   tree", "stable is the host's, 0 of 10240 MiB"), "{found:?}");
    assert!(has(&found, "ok   tree", "temporary is the host's"), "{found:?}");
    assert!(has(&found, "ok   service", "none answers"), "{found:?}");
    assert!(has(&found, "ok   leases", "this kernel says who has a file open"), "{found:?}");
    let unheard = "nobody says when files may move, so they wait for `minerva-ctl cache flush`";
    assert!(has(&found, "ok   agent", unheard) && has(&found, "ok   agent", "nobody.sock"), "{found:?}");
    assert!(!found.0.iter().any(|line| line.contains("passthrough") || line.contains("quota")), "{found:?}");
    let mut mover = guest.serve();
    write(&guest, &target.join("file"), b"content");
    let found = doctor(&guest);
    let waits = format!("1 files of 0 MiB wait for migration; longest {}", target.join("file").display());
    assert!(has(&found, "ok   deferred", &waits) && has(&found, "ok   service", "it answers"), "{found:?}");
    mover.kill();
    assert!(has(&doctor(&guest), "ok   deferred", "1 files wait for migration until the service runs"), "{found:?}");
    // A host that is away is no tree.
    service.kill();
    let found = doctor(&guest);
    assert!(!found.1 && has(&found, "BAD  tree", "is it mounted?"), "{found:?}");
    drop(host);
}

#[test]
fn a_machines_files_are_explained_to_who_may_see_them_and_counted_in_metrics() {
    let (host, _service, guest, target) = start();
    let socket = guest.folder.path().join("metrics.sock");
    let text = fs::read_to_string(guest.config()).unwrap();
    fs::write(
        guest.config(),
        text.replace("[server]\n", &format!("[server]\nmetrics = \"unix:{}\"\n", socket.display())),
    )
    .unwrap();
    let _mover = guest.serve();
    let explain = |path: &Path| match ask(&guest.socket(), &Request::Explain { path: path.to_owned() }).unwrap() {
        Answer::Explained { lines } => lines.join("; "),
        other => panic!("{other:?}"),
    };
    write(&guest, &target.join("file"), b"content");
    assert!(
        explain(&target.join("file")).contains("once the host says, through the agent"),
        "{}",
        explain(&target.join("file"))
    );
    for (tree, says) in [(host.temporary(), "in the host's memory"), (host.stable(), "on the disk of the host's pool")]
    {
        let folder = tree.join("closed");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("file"), "text").unwrap();
        fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        let said = explain(&folder.join("file"));
        assert!(said.contains(says) && !said.contains("quota"), "{said}");
        // Another user of the machine is told of what they may look at.
        let line = |path: &Path| format!("{{\"ask\":\"explain\",\"path\":\"{}\"}}\n", path.display());
        for path in [guest.folder.path(), host.folder.path(), &host.folder.path().join("run")] {
            let _ = fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755));
        }
        let refused = guest.ask_as_nobody(&line(&folder.join("file")));
        assert!(matches!(&refused, Answer::Refused { why } if why.contains("Permission denied")), "{refused:?}");
        let answer = guest.ask_as_nobody(&line(&folder));
        assert!(matches!(answer, Answer::Explained { .. }), "{answer:?}");
    }
    let mut stream = UnixStream::connect(&socket).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    for line in [
        "minerva_cache_waiting_files{tenant=\"guest\",pool=\"stable\"} 1",
        "minerva_cache_served{tenant=\"guest\",pool=\"stable\"} 1",
    ] {
        assert!(text.contains(line), "{line}: {text}");
    }
    assert_eq!(files(&guest).len(), 1);
}
