//! How long programs that compute may delay the server.

use crate::server_folder::ServerFolder;
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fs;
use std::path::{Path, PathBuf};

/// The slice of each thread, in nanoseconds, with the thread's name; nothing where the kernel tells none.
fn slices(process: &Path) -> Option<Vec<(String, String)>> {
    let threads = fs::read_dir(process.join("task")).unwrap().map(|thread| thread.unwrap().path());
    let slice = |thread: PathBuf| {
        let name = fs::read_to_string(thread.join("comm")).unwrap().trim().to_owned();
        // Kernels that tell it (built with CONFIG_SCHED_DEBUG) give such slices too: it came after them.
        let told = fs::read_to_string(thread.join("sched")).unwrap_or_default();
        let line = told.lines().find(|line| line.starts_with("se.slice"))?;
        Some((name, line.split(':').nth(1).unwrap().trim().to_owned()))
    };
    threads.map(slice).collect()
}

/// Those that start later, for disks that are added, have it from one of these.
#[test]
fn every_thread_has_a_short_time_slice() {
    let place = ServerFolder::new();
    place.write("direct = false", "");
    let serving = place.serve();
    let mut client = Client::connect(&place.socket(), ClientOptions::default());
    assert_eq!(client.rings[0].ask(&Request::new(kind::OUT, 8, 4096)).status, 0);
    let process = Path::new("/proc").join(serving.0.id().to_string());
    let Some(found) = slices(&process) else {
        println!("skipped: needs Linux 6.12, which gives ordinary threads slices of their own");
        return;
    };
    assert!(found.iter().any(|(name, _)| name.starts_with("blk-")), "{found:?}");
    assert!(found.iter().all(|(_, slice)| slice == "100000"), "{found:?}");
}
