//! A second account beside the service's own: a walk's, and of memory the kernel's. The kernel's of the disk is in `tests/machine/`, whose
//! kernel has project quotas.

use crate::pool_folder::PoolFolder;
use minerva_api::cache::{Request, ask};
use std::fs;

const WALK: &str = "[pools.temporary]\nwatermark = 100\n";

fn start(word: &str) -> PoolFolder {
    let place = PoolFolder::with("", WALK);
    let text = fs::read_to_string(place.config()).unwrap();
    fs::write(
        place.config(),
        text.replace("[pools.stable]\n", &format!("[pools.stable]\nsecond_account = \"{word}\"\n")),
    )
    .unwrap();
    place
}

fn said(place: &PoolFolder, arguments: &[&str]) -> String {
    let output = place.run(arguments);
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn what_something_else_puts_into_a_pool_is_found_by_memorys_size_and_by_a_walk_and_is_over_once_it_is_gone() {
    let place = start("walk");
    let service = place.serve();
    let mut open = Vec::new();
    for tree in [place.temporary(), place.stable()] {
        fs::write(tree.join("own"), vec![1; 3 << 20]).unwrap();
        // Without a name it is still used, and counted so.
        let mut file = fs::File::create(tree.join("gone")).unwrap();
        fs::remove_file(tree.join("gone")).unwrap();
        std::io::Write::write_all(&mut file, &vec![1; 4 << 20]).unwrap();
        open.push(file);
    }
    place.until("both are counted", |status| {
        [&status.temporary, &status.stable].iter().all(|tree| tree.second_account_bytes > 0)
    });
    let status = place.status();
    assert!(status.temporary.second_account.contains("size of its memory"), "{status:?}");
    assert!(
        status.stable.second_account.contains("a walk every 10 minutes; `second_account` is \"walk\""),
        "{status:?}"
    );
    assert!(status.temporary.difference.is_empty() && status.stable.difference.is_empty(), "{status:?}");
    // A program that had it open over a restart would keep what nobody counts any more.
    drop(open);
    // The first walk comes soon after a start.
    assert!(service.terminate());
    let service = place.serve();
    // Past the service, as nobody should.
    let strange =
        [place.folder.path().join("run/temporary/web/tree/strange"), place.pool().join("tenants/web/strange")];
    for path in &strange {
        fs::write(path, vec![1; 8 << 20]).unwrap();
    }
    place.until("both are told", |status| {
        [&status.temporary, &status.stable].iter().all(|tree| !tree.difference.is_empty())
    });
    let status = place.status();
    assert!(status.stable.difference.contains("8388608 bytes more"), "{status:?}");
    for told in [said(&place, &["status"]), said(&place, &["doctor"])] {
        assert!(told.contains("8388608 bytes more and 1 files more than the service's own account"), "{told}");
    }
    // A start counts what is there.
    assert!(service.terminate());
    let _service = place.serve();
    place.until("they are compared again", |status| {
        [&status.temporary, &status.stable].iter().all(|tree| tree.second_account_bytes > 0)
    });
    let status = place.status();
    assert!(status.temporary.difference.is_empty() && status.stable.difference.is_empty(), "{status:?}");
}

#[test]
fn where_nobody_is_to_count_as_well_nobody_does_and_a_word_that_is_none_is_told_with_its_line() {
    let place = PoolFolder::new("");
    let _service = place.serve();
    let status = place.status();
    assert_eq!((status.stable.second_account.as_str(), status.stable.second_account_bytes), ("", 0));
    assert!(ask(&place.socket(), &Request::Status).is_ok());
    let place = start("kernal");
    let told = said(&place, &["--check"]);
    assert!(told.contains("second_account = \"kernal\"") && told.contains("fs.toml:5"), "{told}");
    let place = start("kernel");
    let told = said(&place, &["--check"]);
    let is_offered = !told.contains("walks compare instead");
    assert!(is_offered || told.contains("tune2fs -O project -Q prjquota"), "{told}");
}
