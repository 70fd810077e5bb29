//! Parsers under arbitrary bytes and under texts that are almost right, and rows that survive being printed and read.

use minerva_linux_observe::parse;
use minerva_model::{DeviceId, IoCounters};
use proptest::prelude::{Strategy, any, prop_assert, prop_assert_eq, proptest};

/// Pieces of all the texts, so that arbitrary sequences of them come close to each.
fn almost() -> impl Strategy<Value = Vec<u8>> {
    let piece = "(8:0|7:12|254:0| |\n|rbytes=|wbytes=|rios=|wios=|dios=|cost.usage=|enable=1|Read|Write|Total|some|full|total=|avg10=0.00|\\(|\\)| - |:|-|\\\\040|\\[bfq\\]|none|read_bytes: |write_bytes: |eth0:|[0-9]{1,21}|\\PC)";
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat().into_bytes())
}

fn parse_all(text: &[u8]) -> usize {
    let rows = [
        parse::parse_io_stat(text).rows.len(),
        parse::parse_blkio(text).rows.len(),
        parse::parse_diskstats(text).rows.len(),
        parse::parse_io_cost_qos(text).rows.len(),
        parse::parse_io_cost_model(text).rows.len(),
        parse::parse_mountinfo(text).rows.len(),
        parse::parse_cgroup_membership(text).rows.len(),
        parse::parse_pids(text).rows.len(),
        parse::parse_elevators(text).available.len(),
    ];
    parse::parse_network_bytes(text);
    parse::parse_pressure(text);
    parse::parse_process_stat(text);
    parse::parse_process_io(text);
    parse::parse_guest_cids(text);
    parse::parse_file_of_serial(text, "root");
    rows.into_iter().max().unwrap_or(0)
}

proptest! {
    #[test]
    fn arbitrary_bytes(text in any::<Vec<u8>>()) {
        prop_assert!(parse_all(&text) <= text.len());
    }

    #[test]
    fn almost_right_texts(text in almost()) {
        prop_assert!(parse_all(&text) <= text.len());
    }

    #[test]
    fn io_stat_rows_survive(rows in proptest::collection::vec((any::<(u32, u32)>(), any::<[u64; 4]>()), 0..5)) {
        let text: String = rows
            .iter()
            .map(|((major, minor), [r, w, ri, wi])| format!("{major}:{minor} rbytes={r} wbytes={w} rios={ri} wios={wi} dbytes=0 dios=0\n"))
            .collect();
        let parsed = parse::parse_io_stat(text.as_bytes());
        prop_assert_eq!(parsed.malformed.count, 0);
        prop_assert_eq!(parsed.rows.len(), rows.len());
        for (row, ((major, minor), [read_bytes, write_bytes, read_ops, write_ops])) in parsed.rows.iter().zip(rows) {
            prop_assert_eq!(row.device, DeviceId { major, minor });
            prop_assert_eq!(row.counters, IoCounters { read_bytes, write_bytes, read_ops, write_ops });
        }
    }

    #[test]
    fn a_process_name_never_moves_the_fields(name in "\\PC{0,15}", ticks in any::<u32>(), start in any::<u64>()) {
        let text = format!("7 ({name}) S 1 7 7 0 -1 0 0 0 0 0 {ticks} 1 0 0 20 0 1 0 {start} 9 8 7\n");
        let stat = parse::parse_process_stat(text.as_bytes()).unwrap();
        prop_assert_eq!(stat.name, name);
        prop_assert_eq!((stat.cpu_ticks, stat.start_ticks), (u64::from(ticks) + 1, start));
    }
}
