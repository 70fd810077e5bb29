//! An image on a file system that answers nothing when the server starts, as after a failure of power whose file server comes back later.

use crate::hanging::{Hanging, can_hang};
use crate::server_folder::{IMAGE_BYTES, ServerFolder};
use minerva_vhost_client::{Client, ClientOptions, Request, kind};
use std::fs::File;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(90);

#[test]
fn an_image_whose_storage_does_not_answer_keeps_no_other_disk_from_being_served() {
    if !can_hang() {
        return;
    }
    let place = ServerFolder::new();
    let (image, socket) = (place.folder.path().join("vm0.raw"), place.folder.path().join("vm0.sock"));
    File::create(&image).unwrap().set_len(IMAGE_BYTES).unwrap();
    let silent = Hanging::mount(&image, IMAGE_BYTES);
    silent.hang();
    place.write("direct = false", &format!("[disks.vm0]\nimage = {image:?}\nsocket = {socket:?}\ndirect = false\n"));
    let serving = place.serve();
    let begun = Instant::now();
    while !place.socket().exists() {
        assert!(begun.elapsed() < PATIENCE, "nobody listens for the good one");
        std::thread::sleep(Duration::from_millis(20));
    }
    let mut client = Client::connect(&place.socket(), ClientOptions::default());
    assert_eq!(client.rings[0].ask(&Request::new(kind::OUT, 8, 4096)).status, 0, "the good one is served");
    let (is_content, said) = serving.terminate();
    assert!(is_content && said.contains("1 disks are served, 1 are refused"), "{said}");
    let line = said.lines().find(|line| line.contains("disk `vm0`: ")).unwrap_or_default();
    assert!(line.contains("its storage does not answer") && line.contains("minerva-ctl disk add vm0"), "{said}");
    drop(silent);
}
