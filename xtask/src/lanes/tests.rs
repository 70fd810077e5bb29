use super::{Plan, Show, Step, run};
use crate::skips::Skips;
use crate::test_programs::TestProgram;
use crate::test_programs::tests::program;
use anyhow::bail;
use std::sync::Mutex;
use std::time::Duration;

/// Steps that share the machine, and steps that compile.
type Steps<'a> = (Vec<Step<'a>>, Vec<Step<'a>>);

fn run_with(
    programs: &[TestProgram],
    (sharing, compiling): Steps<'_>,
    tools: Box<dyn FnOnce() + Send + '_>,
    skips: &mut Skips,
    show: Show<'_>,
) -> Vec<&'static str> {
    let path = std::env::var_os("PATH").expect("a path");
    run(Plan { programs, sharing, compiling, tools, path: &path, show }, skips)
}

fn run_all(programs: &[TestProgram], compiling: Vec<Step<'_>>, skips: &mut Skips, show: Show<'_>) -> Vec<&'static str> {
    run_with(programs, (Vec::new(), compiling), Box::new(|| ()), skips, show)
}

#[test]
fn those_that_share_the_machine_never_run_at_once_and_each_failure_and_skip_counts() {
    let scratch = tempfile::tempdir().expect("a directory");
    let alone = format!("mkdir {0}/held && sleep 0.05 && rmdir {0}/held", scratch.path().display());
    let sharing = |name| program(scratch.path(), "lab", name, &alone);
    let (one, two, other) = (sharing("one"), sharing("two"), program(scratch.path(), "store", "other", "exit 0"));
    let mut skips = Skips::default();
    assert!(run_all(&[one, two, other], Vec::new(), &mut skips, &|_| ()).is_empty());
    let skipping = program(scratch.path(), "apps/minervad", "skipping", "echo 'skipped: needs X'");
    let steps: Vec<Step<'_>> = vec![("failing", Box::new(|_| Ok(false))), ("passing", Box::new(|_| Ok(true)))];
    assert_eq!(run_all(&[skipping], steps, &mut skips, &|_| ()), ["failing"]);
    assert_eq!(skips.refused(), 1);
}

#[test]
fn who_has_done_what_shares_the_machine_helps_with_the_rest() {
    let scratch = tempfile::tempdir().expect("a directory");
    // Each waits a minute for the other to begin, so that one thread alone would wait in vain.
    let meet = |own: &str, other: &str| {
        let folder = scratch.path().display();
        let wait =
            format!("for i in $(seq 6000); do test -e {folder}/{other}.begun && exit 0; sleep 0.01; done; exit 1");
        program(scratch.path(), "store", own, &format!("touch {folder}/{own}.begun; {wait}"))
    };
    let programs = [meet("one", "two"), meet("two", "one"), program(scratch.path(), "lab", "sharing", "exit 0")];
    let said = Mutex::new(String::new());
    let show = |text: &str| said.lock().expect("no panic").push_str(text);
    assert!(run_all(&programs, Vec::new(), &mut Skips::default(), &show).is_empty());
    let said = said.lock().expect("no panic");
    assert!(!said.contains("FAILED"), "{said}");
}

#[test]
fn one_that_fails_beside_others_is_run_again_alone_and_named() {
    let scratch = tempfile::tempdir().expect("a directory");
    let said = Mutex::new(String::new());
    let show = |text: &str| said.lock().expect("no panic").push_str(text);
    let run_all = |programs: &[TestProgram]| run_all(programs, Vec::new(), &mut Skips::default(), &show);
    let once = |name| format!("mkdir {}/{name}.begun && exit 1; exit 0", scratch.path().display());
    assert!(run_all(&[program(scratch.path(), "lab", "once", &once("once"))]).is_empty());
    assert!(said.lock().expect("no panic").ends_with("> lab: once: failed beside others, passed alone\n"));
    assert_eq!(run_all(&[program(scratch.path(), "lab", "always", "exit 1")]), ["programs of tests"]);
    assert!(said.lock().expect("no panic").ends_with("> lab: always: FAILED\n"));
    // Of one that names its tests, those that failed are all that is run again.
    let path = scratch.path().display();
    let script =
        format!("echo $* >> {path}/named.said; mkdir {path}/named.begun || {{ cat {path}/named.again; exit 0; }}");
    let script = format!(
        "{script}; printf '\\nfailures:\\n\\n---- a::b stdout ----\\n\\nfailures:\\n    a::b\\n    c\\n\\nend\\n'; exit 1"
    );
    std::fs::write(scratch.path().join("named.again"), "running 2 tests\n").expect("what it says then");
    assert!(run_all(&[program(scratch.path(), "lab", "named", &script)]).is_empty());
    let said_twice = std::fs::read_to_string(scratch.path().join("named.said")).expect("what it was told");
    assert_eq!(said_twice, "--quiet --show-output\n--quiet --show-output a::b c --exact\n");
    // Names that it does not know prove nothing.
    std::fs::write(scratch.path().join("named.again"), "running 0 tests\n").expect("what it says then");
    std::fs::remove_dir(scratch.path().join("named.begun")).expect("begun");
    assert_eq!(run_all(&[program(scratch.path(), "lab", "named", &script)]), ["programs of tests"]);
    let many = ["a", "b", "c", "d"].map(|name| program(scratch.path(), "lab", name, &once(name)));
    assert_eq!(run_all(&many), ["programs of tests"], "more than a few: not by chance");
}

#[test]
fn what_is_skipped_when_it_is_run_again_has_not_passed() {
    let scratch = tempfile::tempdir().expect("a directory");
    let said = Mutex::new(String::new());
    let show = |text: &str| said.lock().expect("no panic").push_str(text);
    let allowed = "skipped: a loop device that was never throttled";
    // As a test fails, and leaves the machine so that it is skipped the next time.
    let script = |name: &str, again: &str| {
        format!(
            "mkdir {}/{name}.begun && {{ printf '\\nfailures:\\n    a::b\\n'; exit 1; }}; echo 'running 1 test'; {again}",
            scratch.path().display()
        )
    };
    let mut skips = Skips::default();
    let once = program(scratch.path(), "lab", "once", &script("once", "exit 0"));
    assert!(run_all(&[once], Vec::new(), &mut skips, &show).is_empty());
    let skipping = program(scratch.path(), "lab", "skipping", &script("skipping", &format!("echo '{allowed}'")));
    assert_eq!(run_all(&[skipping], Vec::new(), &mut skips, &show), ["programs of tests"]);
    assert_eq!((skips.count(), skips.refused()), (1, 0));
    let said = said.lock().expect("no panic");
    assert!(said.ends_with("> lab: skipping: FAILED: skipped when it was run alone\n"), "{said}");
}

#[test]
fn what_crashes_has_failed_whatever_a_second_run_would_say() {
    let scratch = tempfile::tempdir().expect("a directory");
    let said = Mutex::new(String::new());
    let show = |text: &str| said.lock().expect("no panic").push_str(text);
    let once = |name: &str, end: &str| {
        let script =
            format!("echo {name} >> {0}/begun; mkdir {0}/{name}.begun && {end}; exit 0", scratch.path().display());
        program(scratch.path(), "lab", name, &script)
    };
    let run = |programs: &[TestProgram]| run_all(programs, Vec::new(), &mut Skips::default(), &show);
    assert_eq!(run(&[once("crash", "kill -SEGV $$")]), ["programs of tests"]);
    assert!(said.lock().expect("no panic").ends_with("> lab: crash: FAILED: crashed by signal 11\n"));
    // Where memory is short the kernel kills whom it likes.
    assert!(run(&[once("killed", "kill -KILL $$")]).is_empty());
    let begun = std::fs::read_to_string(scratch.path().join("begun")).expect("names");
    assert_eq!(begun, "crash\nkilled\nkilled\n");
}

#[test]
fn what_cannot_be_started_fails_and_all_else_is_done() {
    let scratch = tempfile::tempdir().expect("a directory");
    let said = Mutex::new(String::new());
    let show = |text: &str| said.lock().expect("no panic").push_str(text);
    let broken = || -> Step<'_> { ("broken", Box::new(|_| bail!("no such thing"))) };
    let after = || -> Step<'_> { ("after", Box::new(|_| Ok(true))) };
    let touch = |name: &str| format!("touch {}/{name}.done", scratch.path().display());
    let lost = scratch.path().join("lost");
    std::fs::create_dir(&lost).expect("a directory");
    let missing = program(&lost, "lab", "missing", "exit 0");
    let programs = [missing, program(scratch.path(), "lab", "there", &touch("there"))];
    std::fs::remove_dir_all(&lost).expect("removed");
    let steps = (vec![broken(), after()], vec![broken(), after()]);
    let failed = run_with(&programs, steps, Box::new(|| ()), &mut Skips::default(), &show);
    assert_eq!(failed, ["broken", "broken", "programs of tests"]);
    assert!(scratch.path().join("there.done").exists());
    let said = said.lock().expect("no panic");
    assert_eq!(said.matches("> after: passed").count(), 2, "{said}");
    assert_eq!(said.matches(" s\nno such thing\n").count(), 2, "{said}");
}

#[test]
fn programs_that_need_tools_wait_for_them_and_go_last() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().display();
    let note = |folder: &str, name: &str, needed: &str| {
        program(scratch.path(), folder, name, &format!("test -e {path}/{needed} && touch {path}/{name}.done"))
    };
    // By name the first would go first.
    let programs =
        [note("apps/minerva-fs", "fs", "tools"), note("apps/minerva-agent", "guest", "tools"), note("lab", "a", ".")];
    let tools = || {
        // Until one that needs none is done.
        while !scratch.path().join("a.done").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        std::fs::write(scratch.path().join("tools"), "").expect("written");
    };
    let steps = (Vec::new(), Vec::new());
    assert!(run_with(&programs, steps, Box::new(tools), &mut Skips::default(), &|_| ()).is_empty());
}

#[test]
fn what_hangs_is_not_run_again_and_after_two_the_rest_is_named_and_counts_as_failed() {
    let scratch = tempfile::tempdir().expect("a directory");
    let path = scratch.path().display();
    let short = |folder: &str, name: &str, script: &str| {
        let mut program = program(scratch.path(), folder, name, script);
        program.limit = Duration::from_secs(3);
        program
    };
    let hangs =
        |folder: &str, name: &str| short(folder, name, &format!("echo {name} >> {path}/begun; exec sleep 1000"));
    let said = Mutex::new(String::new());
    let show = |text: &str| said.lock().expect("no panic").push_str(text);
    assert_eq!(run_all(&[hangs("lab", "a")], Vec::new(), &mut Skips::default(), &show), ["programs of tests"]);
    assert!(said.lock().expect("no panic").ends_with("> lab: a: FAILED: ended after 3 s\n"));
    assert_eq!(std::fs::read_to_string(scratch.path().join("begun")).expect("names"), "a\n", "it is run once");

    // Also of those that fail beside others and hang alone.
    let later = ["x", "y", "z"].map(|name| {
        let script = format!("echo {name} >> {path}/again; mkdir {path}/{name}.begun && exit 1; exec sleep 1000");
        short("lab", name, &script)
    });
    assert_eq!(run_all(&later, Vec::new(), &mut Skips::default(), &show), ["programs of tests"]);
    assert_eq!(std::fs::read_to_string(scratch.path().join("again")).expect("names"), "x\ny\nz\nx\ny\n");

    let lab = [hangs("lab", "a"), hangs("lab", "b"), hangs("lab", "c")];
    let store: Vec<_> = ["d", "e", "f"].map(|name| hangs("store", name)).into();
    let programs: Vec<_> = lab.into_iter().chain(store).collect();
    let mut is_taken = false;
    let libraries: Step<'_> = ("libraries", Box::new(|_| Ok(std::mem::replace(&mut is_taken, true))));
    let clippy: Step<'_> = ("clippy", Box::new(|_| Ok(true)));
    let failed = run_with(&programs, (vec![libraries], vec![clippy]), Box::new(|| ()), &mut Skips::default(), &show);
    assert_eq!(failed, ["libraries", "programs of tests"]);
    assert!(!is_taken, "a step of a lane that has ended");
    let begun = std::fs::read_to_string(scratch.path().join("begun")).expect("names");
    assert!(!begun.contains('c') && !begun.contains('f'), "{begun}");
    let said = said.lock().expect("no panic");
    for last in ["lab: c", "store: f"] {
        assert!(said.contains(&format!("> {last}: FAILED: not run, as others hung before it\n")), "{said}");
    }
    assert!(said.contains("> libraries: FAILED: not run"), "{said}");
    assert!(said.contains("> lab: a: FAILED: ended after 3 s\n"), "{said}");
}
