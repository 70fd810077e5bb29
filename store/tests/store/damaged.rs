//! Damage that is found when a file of an earlier version is brought to this one.

use super::{DISK, Fixture, StoreNote, execute, history};

#[test]
fn a_large_file_whose_damage_a_migration_comes_upon_is_moved_aside() {
    let fixture = Fixture::new();
    execute(&fixture.path(), include_str!("../schema_1.sql"));
    let many = "INSERT INTO audit (at_unix_ms, tenant, cgroup, device, decision, text)
        WITH RECURSIVE row (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM row WHERE number < 4500)
        SELECT 1800000000000, 'web', 'a', 'sda', '{}', printf('%04000d', number) FROM row";
    execute(&fixture.path(), many);
    let page: u32 = rusqlite::Connection::open(fixture.path())
        .expect("opens")
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'history'", [], |row| row.get(0))
        .expect("read");
    let mut bytes = std::fs::read(fixture.path()).expect("read");
    let page = page as usize;
    bytes[(page - 1) * 4096..page * 4096].fill(0);
    std::fs::write(fixture.path(), bytes).expect("written");
    let (mut store, notes) = fixture.try_open("boot-a").expect("opens");
    assert!(matches!(&notes[..], [StoreNote::MovedAside { .. }]), "{notes:?}");
    store.remember(&[history("group:g", 1.0)]).expect("written");
    assert_eq!(store.recall("group:g").expect("read")[0].device, DISK);
}
