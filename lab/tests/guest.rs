//! Guests boot, and the files of the unified hierarchy's io controller are as `core/actuate` takes them to be.
//!
//! What a guest's kernel prints is kept in `src/guest/testdata`, for the tables of `core/actuate`.

use expect_test::expect_file;
use minerva_lab::guest::{Architecture, Guest, GuestBuilder, GuestError, GuestKernel, GuestOutput};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Generous: the machine may be busy. A healthy guest ends within ten seconds.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Runs a script, or says why that cannot be done here.
fn run(builder: GuestBuilder<'_>, script: &str) -> Option<GuestOutput> {
    match builder.progress(|line| println!("{line}")).run(script, TIMEOUT) {
        Ok(output) => Some(output),
        Err(error) if error.is_missing() => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_guest_runs_a_script_with_programs_and_files_of_the_host() {
    let program = std::env::current_exe().expect("this program has a path");
    let name = program.file_name().expect("a name").to_string_lossy().into_owned();
    let builder = Guest::builder().cpus(2).with_binary(&program).with_file("/etc/greeting", "hello, guest\n");
    let script = format!(
        "cat /etc/greeting; echo complaint >&2; grep -c processor /proc/cpuinfo; \
         cat /sys/fs/cgroup/cgroup.subtree_control; {name} --list | tail -1; exit 7"
    );
    let Some(output) = run(builder, &script) else { return };
    let lines: Vec<&str> = output.stdout.lines().collect();
    assert_eq!(lines[..3], ["hello, guest", "2", "cpu io memory pids"], "{output:?}");
    assert!(lines[3].ends_with("0 benchmarks"), "{output:?}");
    assert_eq!((output.stderr.as_str(), output.status), ("complaint\n", 7));
}

#[test]
fn debians_kernel_is_unpacked_once_on_the_host() {
    let kernel = match GuestKernel::obtain(Architecture::HOST, &mut |line| println!("{line}")) {
        Ok(kernel) => kernel,
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        Err(error) => panic!("{error}"),
    };
    let mut magic = [0; 4];
    File::open(kernel.image()).and_then(|mut image| image.read_exact(&mut magic)).expect("readable");
    assert_eq!(&magic, b"\x7fELF", "{}", kernel.image().display());
}

/// Prints each write, what came of it and how the file reads afterwards.
const TRANSCRIPT: &str = r#"
cd /sys/fs/cgroup
mkdir -p minerva-test-a
try() {
    if message=$(echo "$2" 2>&1 > "$1"); then outcome=written; else outcome="${message##*: }"; fi
    echo "echo '$2' > $1"
    echo "  $outcome"
    sed 's/^/  | /' "$1"
}
show() {
    echo "cat $1"
    sed 's/^/  | /' "$1"
}
"#;

/// One section a golden file. They share a guest, as each boot takes seconds.
const SECTIONS: [(&str, &str); 3] = [
    (
        "io.bfq.weight",
        r#"
show minerva-test-a/io.bfq.weight
echo bfq > /sys/block/vda/queue/scheduler
show minerva-test-a/io.bfq.weight
try minerva-test-a/io.bfq.weight '254:0 800'
try minerva-test-a/io.bfq.weight '254:16 300'
try minerva-test-a/io.bfq.weight '254:0 1'
try minerva-test-a/io.bfq.weight '254:0 1000'
try minerva-test-a/io.bfq.weight '254:0 0'
try minerva-test-a/io.bfq.weight '254:0 1001'
try minerva-test-a/io.bfq.weight '254:0 default'
try minerva-test-a/io.bfq.weight '254:0 700'
try minerva-test-a/io.bfq.weight 'default 200'
try minerva-test-a/io.bfq.weight '254:0 700'
try minerva-test-a/io.bfq.weight '50'
try minerva-test-a/io.bfq.weight '254:0 800'
echo mq-deadline > /sys/block/vda/queue/scheduler
show minerva-test-a/io.bfq.weight
echo bfq > /sys/block/vda/queue/scheduler
show minerva-test-a/io.bfq.weight
show /sys/block/vda/queue/scheduler
show /sys/block/vda/queue/iosched/low_latency
echo mq-deadline > /sys/block/vda/queue/scheduler
"#,
    ),
    (
        "io.max",
        r#"
show minerva-test-a/io.max
try minerva-test-a/io.max '254:0 rbps=1048576 wbps=2097152'
try minerva-test-a/io.max '254:0 riops=100'
try minerva-test-a/io.max '254:0 rbps=max'
try minerva-test-a/io.max '254:0 wbps=0'
try minerva-test-a/io.max '254:0 rbps=1'
try minerva-test-a/io.max '254:0 rbps=2'
try minerva-test-a/io.max '254:0 rbps=18446744073709551615'
try minerva-test-a/io.max '254:16 rbps=1048576'
try minerva-test-a/io.max '9:9 rbps=1048576'
try minerva-test-a/io.max '254:0 rbps=max wbps=max riops=max wiops=max'
"#,
    ),
    (
        "io.cost",
        r#"
show io.cost.qos
show io.cost.model
show minerva-test-a/io.weight
try minerva-test-a/io.weight '254:0 500'
try io.cost.qos '254:0 enable=1'
show io.cost.model
try minerva-test-a/io.weight '254:0 500'
try minerva-test-a/io.weight '254:16 500'
try minerva-test-a/io.weight '254:0 10000'
try minerva-test-a/io.weight '254:0 10001'
try minerva-test-a/io.weight '254:0 0'
try minerva-test-a/io.weight 'default 200'
try minerva-test-a/io.weight '50'
try minerva-test-a/io.weight '254:0 default'
try io.cost.qos '254:0 ctrl=user rpct=95.00 rlat=5000 wpct=95.00 wlat=5000 min=50.00 max=150.00'
try io.cost.qos '254:0 enable=0'
try minerva-test-a/io.weight '254:0 300'
try io.cost.qos '254:0 ctrl=auto'
try io.cost.qos '1:1 enable=1'
"#,
    ),
];

#[test]
fn the_knobs_of_the_unified_hierarchy_read_and_write_as_recorded() {
    let steps: String = SECTIONS.iter().map(|(name, steps)| format!("echo '=== {name}'\n{steps}")).collect();
    let guest = Guest::builder().disk_mib(64).disk_mib(64);
    let Some(output) = run(guest, &format!("{TRANSCRIPT}{steps}")) else { return };
    assert_eq!((output.stderr.as_str(), output.status), ("", 0), "{}", output.stdout);
    let texts: Vec<&str> =
        output.stdout.split("=== ").skip(1).filter_map(|part| part.split_once('\n')).map(|p| p.1).collect();
    expect_file!["../src/guest/testdata/io.bfq.weight.txt"].assert_eq(texts[0]);
    expect_file!["../src/guest/testdata/io.max.txt"].assert_eq(texts[1]);
    expect_file!["../src/guest/testdata/io.cost.txt"].assert_eq(texts[2]);
}

#[test]
fn a_guest_that_does_not_end_is_killed() {
    let error = match Guest::builder().run("sleep 1000", Duration::from_secs(2)) {
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        other => other.expect_err("it never ends"),
    };
    assert!(matches!(error, GuestError::TimedOut { .. }), "{error}");
}

#[test]
fn a_guest_that_dies_says_so() {
    let error = match Guest::builder().run("echo c > /proc/sysrq-trigger; sleep 1000", TIMEOUT) {
        Err(error) if error.is_missing() => return println!("skipped: {error}"),
        other => other.expect_err("it panics"),
    };
    assert!(matches!(&error, GuestError::Died { console } if console.contains("sysrq")), "{error}");
}

#[test]
fn a_module_that_is_not_there_is_named() {
    match Guest::builder().with_module("warp_drive", "").run("true", TIMEOUT) {
        Err(error) if error.is_missing() => println!("skipped: {error}"),
        Err(GuestError::NoSuchModule { module, .. }) => assert_eq!(module, "warp_drive"),
        other => panic!("{other:?}"),
    }
}

/// Tells the next test's other half, which is this same program, to run a guest until it is killed.
const OWNER: &str = "MINERVA_TEST_GUEST_OWNER";

#[test]
fn owner() {
    if std::env::var_os(OWNER).is_some() {
        let shown = |line: &str| println!("\n{line}");
        if let Err(error) = Guest::builder().progress(shown).run("sleep 1000", TIMEOUT) {
            println!("\nskipped: {error}");
        }
    }
}

#[test]
fn a_guest_dies_with_its_owner() {
    // The killed owner cannot remove its guest's directory; it lies in this one.
    let directory = tempfile::tempdir().expect("a directory");
    let mut owner = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", "owner", "--nocapture"])
        .env(OWNER, "1")
        .env("TMPDIR", directory.path())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut lines = BufReader::new(owner.stdout.take().expect("piped")).lines().map_while(Result::ok);
    let told =
        lines.find(|line| line.contains(" runs for ") || line.starts_with("skipped")).expect("it says something");
    let number = told.split(' ').nth(1).and_then(|word| word.parse().ok()).and_then(Pid::from_raw);
    let guest = number.map(|number| pidfd_open(number, PidfdFlags::empty()).expect("it runs"));
    owner.kill().expect("killed");
    owner.wait().expect("reaped");
    let Some(guest) = guest else { return println!("{told}") };
    let limit = Timespec { tv_sec: 60, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(&guest, PollFlags::IN)], Some(&limit)), Ok(1), "the guest outlived its owner");
}
