//! Tables of one's own: what is read of them, and what of them cannot be used.

use super::*;

#[test]
fn what_cannot_be_used_is_named_with_its_line_and_the_rest_is_judged() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("broken.csv");
    let mut text = "time,rate\n".to_owned();
    for second in 0..200 {
        let row = match second {
            3 => "3,NaN".to_owned(),
            4 => "4,-7".to_owned(),
            5 => "5,inf".to_owned(),
            6 => "6,many".to_owned(),
            7 => "7".to_owned(),
            8 => "2,1".to_owned(),
            9 => "yesterday,1".to_owned(),
            10 => "7,5".to_owned(),
            50..60 => continue,
            _ => format!("{second},5"),
        };
        text.push_str(&row);
        text.push('\n');
    }
    std::fs::write(&file, text).unwrap();
    let output = evaluate(&file, &["--json"]);
    assert_eq!(output.status.code(), Some(1), "something was found");
    let told = String::from_utf8(output.stderr.clone()).unwrap();
    for (line, what) in [
        (5, "rate: not a finite number; taken as a gap"),
        (6, "rate: a negative number; taken as a gap"),
        (8, "rate: no number; taken as a gap"),
        (9, "rate: too few cells; taken as a gap"),
        (10, "an earlier time than in a row above; the row is passed over"),
        (11, "the time cannot be read; the row is passed over"),
        (12, "the time of the row above again; the row is passed over"),
        (13, "rate: a gap before this row; 2 such lines, also 52"),
    ] {
        assert!(told.contains(&format!("broken.csv:{line}: {what}")), "{line}: {what}\n{told}");
    }
    assert_eq!(find(&scores(&output), "next step", "last value")["mae"].as_f64(), Some(0.0));
}

#[test]
fn a_column_with_few_numbers_is_named_and_can_be_used() {
    let rows = |last: &str| -> String {
        let row = |second: u64| format!("{second},{},{last}\n", if second % 5 < 3 { "N/A" } else { "7" });
        (0..100).map(row).collect()
    };
    let why = "rate: 60 of 100 cells are no number; give --column rate to use it";
    let (code, shown, told) = judged("few.csv", &format!("time,rate,load\n{}", rows("5")), &[]);
    assert!(code == Some(1) && told.contains(&format!("few.csv:2: {why}")), "{told}");
    assert!(shown.starts_with("load: 100 steps"), "{shown}");
    let words = format!("time,rate,vm\n{}", rows("a"));
    let (code, _, told) = judged("few.csv", &words, &[]);
    assert!(code == Some(2) && told.contains(&format!("besides the time; there are time, rate, vm; {why}")), "{told}");
    let (_, shown, _) = judged("few.csv", &words, &["--column", "rate"]);
    assert!(shown.starts_with("rate: 100 steps of 1.00 s, 60 without a value"), "{shown}");
}

#[test]
fn a_first_line_that_is_a_row_names_no_columns_and_dates_are_the_time() {
    let of = |names: &str, row: &dyn Fn(u64) -> String| {
        judged("rows.csv", &format!("{names}{}", (0..100).map(row).collect::<String>()), &[])
    };
    let dated = |row: u64| format!("2024-01-01T00:{:02}:{:02}Z,5\n", row / 6, row % 6 * 10);
    let (code, shown, told) = of("", &dated);
    assert!(code == Some(0) && shown.starts_with("column 2: 100 steps of 10.00 s\n") && told.is_empty(), "{told}");
    let (code, shown, told) = of("when,rate\n", &dated);
    assert!(code == Some(0) && shown.starts_with("rate: 100 steps of 10.00 s\n") && told.is_empty(), "{told}");
    let (code, shown, told) = of("", &|row| format!("a,{row}\n"));
    let expected = "rows.csv:1: taken as the names of the columns, though it has numbers; if it is a row";
    assert!(code == Some(1) && shown.starts_with("0: 99 steps") && told.contains(expected), "{told}");
    // Numbers beside the name of the time are names too, such as those of processors.
    let (code, shown, told) = of("time,0\n", &|row| format!("{row},5\n"));
    assert!(code == Some(0) && shown.starts_with("0: 100 steps of 1.00 s") && told.is_empty(), "{told}");
}

#[test]
fn all_numeric_times_have_one_unit_and_a_step_that_is_far_too_short_is_refused() {
    let of = |seconds: &dyn Fn(u64) -> u64, options: &[&str]| {
        let rows: String = (0..200).map(|row| format!("{},{}\n", seconds(row), cycle(row))).collect();
        judged("uptime.csv", &format!("time,rate\n{rows}"), options)
    };
    // CLOCK_MONOTONIC in nanoseconds from the first minute on: the first could be seconds.
    let uptime = |row: u64| (60 + row) * 1_000_000_000;
    let (code, shown, told) = of(&uptime, &[]);
    assert!(code == Some(0) && shown.starts_with("rate: 200 steps of "), "{shown} {told}");
    assert!(told.contains("uptime.csv: the times in time are taken as milliseconds; --time-unit changes"), "{told}");
    let (code, shown, told) = of(&uptime, &["--time-unit", "ns"]);
    assert!(code == Some(0) && shown.starts_with("rate: 200 steps of 1.00 s\n") && told.is_empty(), "{shown} {told}");
    // A second and two days in turns.
    let turns = |row: u64| row / 2 * 150_001 + row % 2;
    let (code, _, told) = of(&turns, &[]);
    assert!(code == Some(2) && told.contains("line 16: ") && told.contains("a longer step with --step"), "{told}");
    assert!(of(&turns, &["--step", "150001s"]).1.starts_with("rate: 100 steps of "));
}

#[test]
fn several_series_one_after_the_other_are_told_from_a_clock_that_went_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("three.csv");
    let row = |number: u64| format!("vm{},{},{}\n", number / 100, number % 100, cycle(number));
    std::fs::write(&file, "vm,time,load\n".to_owned() + &(0..300).map(row).collect::<String>()).unwrap();
    let told = String::from_utf8(evaluate(&file, &[]).stderr).unwrap();
    assert!(told.contains(" such lines") && told.contains("--by COLUMN"), "{told}");
    let output = evaluate(&file, &["--by", "vm"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains("MASE: the MAE in units of"));
}

#[test]
fn a_parquet_file_is_a_table_too() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("cycle.parquet");
    let schema =
        "message rows { required int64 time_ms; required int32 day (DATE); required int32 rate (DECIMAL(9, 2)); }";
    let schema = parse_message_type(schema).unwrap();
    let properties = Arc::new(WriterProperties::builder().build());
    let mut writer =
        SerializedFileWriter::new(std::fs::File::create(&file).unwrap(), Arc::new(schema), properties).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let times: Vec<i64> = (0..400).map(|second| (1_700_000_000 + second) * 1000).collect();
    let days: Vec<i32> = (19_700..20_100).collect();
    let rates: Vec<i32> = (0..400).map(|second| cycle(second) as i32).collect();
    let mut column = group.next_column().unwrap().unwrap();
    column.typed::<Int64Type>().write_batch(&times, None, None).unwrap();
    column.close().unwrap();
    for numbers in [&days, &rates] {
        let mut column = group.next_column().unwrap().unwrap();
        column.typed::<Int32Type>().write_batch(numbers, None, None).unwrap();
        column.close().unwrap();
    }
    group.close().unwrap();
    writer.close().unwrap();
    let output = evaluate(&file, &["--json", "--time", "time_ms"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let scores = scores(&output);
    assert!(scores.iter().all(|score| score["series"] == "rate"), "{scores:?}");
    assert!(find(&scores, "next step", "autoregression, Burg")["forecasts"].as_u64().unwrap() > 300);
    let by_day = evaluate(&file, &["--column", "rate"]);
    assert!(String::from_utf8_lossy(&by_day.stdout).contains("rate: 400 steps of 86400 s"));
}
