//! Tenants that the operator's file does not name any more at a start, though files of theirs wait to go elsewhere.

use crate::deferred::{defer, files, is_link, request, until_moved, until_told};
use crate::pool_folder::{PoolFolder, TENANT, is_mounted};
use minerva_api::cache::{Answer, Pool, Request, ask};
use std::fs;
use std::os::unix::fs::PermissionsExt;

#[test]
fn files_of_a_tenant_that_a_start_does_not_find_in_the_file_are_read_move_to_their_places_and_it_leaves() {
    let place = PoolFolder::with("user = \"65534\"\nstable = \"1MiB\"", "[tenants.other]");
    fs::set_permissions(place.folder.path(), fs::Permissions::from_mode(0o711)).unwrap();
    let mut service = place.serve();
    let path = place.folder.path().join("file");
    let Request::Defer { directory, mode, .. } = request(&path, Pool::Stable) else { unreachable!() };
    let of_web =
        |path| Request::Defer { path, directory, mode, pool: Pool::Stable, tenant: Some(TENANT.to_owned()), bytes: 0 };
    let Answer::Deferring { data, .. } = ask(&place.socket(), &of_web(path.clone())).unwrap() else { panic!() };
    let content = vec![7; 900_000];
    fs::write(&data, &content).unwrap();
    // It does not move as long as it has two names.
    fs::hard_link(&data, place.stable().join("second")).unwrap();
    until_told(&place, "it has 2 names");
    service.kill();
    place.write_tables("[tenants.other]");
    let service = place.serve();
    assert!(is_link(&path) && fs::read(&path).unwrap() == content);
    place.until("it is told why it is there", |web| web.leaving.contains("1 files in it wait for migration"));
    let stable = place.status().stable;
    assert!(stable.bytes * 2 <= stable.bytes_max, "its pool is not taken for a full one: {stable:?}");
    let Answer::Status { tenants, .. } = place.ask_as_nobody("{\"ask\":\"status\"}\n") else { panic!() };
    assert_eq!(tenants.iter().map(|tenant| &*tenant.name).collect::<Vec<_>>(), [TENANT], "it is whose it was");
    let refused = ask(&place.socket(), &of_web(place.folder.path().join("new"))).unwrap();
    assert!(matches!(&refused, Answer::Refused { why } if why.contains("takes nothing new")), "{refused:?}");
    // Others are served beside it.
    assert!(defer(&place, &place.folder.path().join("of-other"), Pool::Stable).is_ok());
    fs::remove_file(place.stable().join("second")).unwrap();
    until_moved(&place);
    assert!(!is_link(&path) && fs::read(&path).unwrap() == content);
    place.until_status("it has left", |tenants| tenants.iter().all(|tenant| tenant.name != TENANT));
    assert!(!is_mounted(&place.stable()) && !is_mounted(&place.temporary()));
    assert!(service.terminate());
}

#[test]
fn who_is_named_again_stays_with_its_files() {
    let place = PoolFolder::with("", "[tenants.other]");
    let mut service = place.serve();
    let path = place.folder.path().join("file");
    let Request::Defer { directory, mode, .. } = request(&path, Pool::Temporary) else { unreachable!() };
    let tenant = Some(TENANT.to_owned());
    let wish = Request::Defer { path: path.clone(), directory, mode, pool: Pool::Temporary, tenant, bytes: 0 };
    let Answer::Deferring { data, .. } = ask(&place.socket(), &wish).unwrap() else { panic!() };
    fs::write(&data, "text").unwrap();
    fs::hard_link(&data, place.temporary().join("second")).unwrap();
    service.kill();
    place.write_tables("[tenants.other]");
    let service = place.serve();
    place.write("stable = \"1MiB\"", "[tenants.other]");
    let said = place.run(&["reload"]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("web stays after all"), "{said:?}");
    assert_eq!(place.status().stable.bytes_max, 1 << 20, "by its quotas of now");
    assert_eq!((files(&place).len(), fs::read(&path).unwrap()), (1, b"text".to_vec()));
    fs::remove_file(place.temporary().join("second")).unwrap();
    until_moved(&place);
    assert!(place.status().leaving.is_empty() && fs::read(&path).unwrap() == b"text");
    assert!(service.terminate());
}
