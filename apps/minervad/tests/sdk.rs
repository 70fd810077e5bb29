//! The Python package and libminerva against the real daemon: both step back, ask when to begin, and see their account. Run by
//! `cargo xtask sdk check`, which says where the two are.

#![expect(clippy::expect_used, reason = "a test bed that cannot be made is a failed test")]

#[expect(dead_code, reason = "the daemon's own tests need more of it")]
mod bed;

use bed::{Bed, Daemon};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A daemon in `enforce` with a socket for tenants, and where that is.
fn daemon() -> Option<(Bed, Daemon, PathBuf)> {
    let bed = Bed::new()?;
    let socket = bed.directory.path().join("run/tenant.sock");
    bed.write_config(&format!("mode = \"enforce\"\n[participation]\nsocket = \"{}\"\n", socket.display()));
    let daemon = bed.start();
    Some((bed, daemon, socket))
}

/// A command as the tenant `sparing`.
fn as_tenant(bed: &Bed, socket: &Path, command: &str) -> Command {
    let script = format!("echo $$ > {} && exec {command}", bed.cgroup("sparing").join("cgroup.procs").display());
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).env("MINERVA_ADDRESS", format!("unix:{}", socket.display()));
    shell
}

/// Runs it; what the daemon logged is shown when it fails.
fn good(mut command: Command, daemon: &Daemon) -> Output {
    let output = command.output().expect("a shell");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}\nthe daemon's log:\n{}", daemon.log());
    output
}

fn from_environment(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os(name).map(PathBuf::from);
    if path.is_none() {
        eprintln!("skipped: needs {name}, as `cargo xtask sdk check` sets it");
    }
    path
}

const PROGRAM: &str = r#"
import asyncio, sys, warnings
import minerva, minerva.aio

warnings.simplefilter("error")
device = sys.argv[1]
assert minerva.describe().tenant.endswith("sparing"), minerva.describe()
assert minerva.describe().mode == "enforce" and minerva.describe().level is minerva.Level.NORMAL
with minerva.deprioritized("idle") as held:
    assert held.level is minerva.Level.IDLE and minerva.describe().level is minerva.Level.IDLE
with minerva.coordinated(bytes=1 << 20, deadline=20, device=device) as operation:
    assert operation.begun is minerva.Begun.TOLD, operation.begun
    assert [one.request_id for one in minerva.describe().operations] == [operation.request_id]
assert minerva.describe().operations == ()
try:
    minerva.boost(slices=3600)
    raise SystemExit("bought without credit")
except minerva.NotEnoughCredits as refusal:
    assert "credit" in str(refusal), refusal
try:
    with minerva.coordinated(bytes=1, device="0:0"):
        raise SystemExit("begun on a disk that is not there")
except minerva.UnknownDevice:
    pass
assert minerva.credits(5).slice_seconds > 0

async def work():
    async with minerva.aio.deprioritized("low") as held:
        assert held.level is minerva.Level.LOW
        async with minerva.aio.coordinated(bytes=1 << 20, begin_by=5, device=device) as operation:
            assert operation.begun is minerva.Begun.TOLD
    await (await minerva.aio._default()).close()

asyncio.run(work())
print("good")
"#;

#[test]
fn python_takes_part() {
    let Some(python) = from_environment("MINERVA_PYTHON") else { return };
    let Some((bed, daemon, socket)) = daemon() else { return };
    let program = bed.directory.path().join("program.py");
    std::fs::write(&program, PROGRAM).expect("a program");
    let number = std::fs::read_to_string(format!("/sys/block/{}/dev", bed.device)).expect("the disk's number");
    let command = format!("{} {} {}", python.display(), program.display(), number.trim());
    assert_eq!(good(as_tenant(&bed, &socket, &command), &daemon).stdout, b"good\n");
}

const HOLDER: &str = r#"
import time
import minerva

with minerva.deprioritized("idle") as held:
    print("held", flush=True)
    while held.level is not None:
        time.sleep(0.01)
    print("away", flush=True)
    while held.level is not minerva.Level.IDLE:
        time.sleep(0.01)
    with minerva.coordinated(bytes=1 << 20, deadline=20, device="DEVICE") as operation:
        print("again", operation.begun.value, flush=True)
"#;

#[test]
fn what_python_holds_outlives_a_killed_daemon() {
    let Some(python) = from_environment("MINERVA_PYTHON") else { return };
    let Some((bed, mut daemon, socket)) = daemon() else { return };
    let program = bed.directory.path().join("holder.py");
    let number = std::fs::read_to_string(format!("/sys/block/{}/dev", bed.device)).expect("the disk's number");
    std::fs::write(&program, HOLDER.replace("DEVICE", number.trim())).expect("a program");
    let mut command = as_tenant(&bed, &socket, &format!("{} {}", python.display(), program.display()));
    let mut holder = command.stdout(Stdio::piped()).spawn().expect("a shell");
    let mut lines = BufReader::new(holder.stdout.take().expect("a pipe")).lines();
    let mut says = || lines.next().and_then(Result::ok);
    assert_eq!(says().as_deref(), Some("held"));
    daemon.child.kill().and_then(|()| daemon.child.wait().map(drop)).expect("a kill");
    assert_eq!(says().as_deref(), Some("away"));
    let _daemon = bed.start();
    assert_eq!(says().as_deref(), Some("again told"));
    assert!(holder.wait().expect("the holder").success());
}

const STARTER: &str = r#"
import os
import minerva

client = minerva.connect()
assert client.address == "unix:" + os.environ["XDG_RUNTIME_DIR"] + "/minerva/agent.sock", (client.address, client.absence)
with client.deprioritized("low") as held, client.coordinated(bytes=1 << 20, deadline=20, device="DEVICE") as operation:
    print(client.describe().tenant.split("/")[-1], held.level.value, operation.begun.value)
"#;

#[test]
fn python_starts_the_agent_and_is_heard_through_it() {
    let Some(python) = from_environment("MINERVA_PYTHON") else { return };
    let agent = Path::new(env!("CARGO_BIN_EXE_minervad")).with_file_name("minerva-agent");
    if !agent.exists() || Path::new("/run/minerva/tenant.sock").exists() {
        eprintln!("skipped: needs minerva-agent beside minervad, and no server of the machine's own");
        return;
    }
    let Some((bed, daemon, socket)) = daemon() else { return };
    let program = bed.directory.path().join("starter.py");
    let number = std::fs::read_to_string(format!("/sys/block/{}/dev", bed.device)).expect("the disk's number");
    std::fs::write(&program, STARTER.replace("DEVICE", number.trim())).expect("a program");
    let mut command = as_tenant(&bed, &socket, &format!("{} {}", python.display(), program.display()));
    command.env_remove("MINERVA_ADDRESS").env("MINERVA_UPSTREAM", format!("unix:{}", socket.display()));
    command.env("MINERVA_AGENT", agent).env("XDG_RUNTIME_DIR", bed.directory.path());
    let said = good(command, &daemon).stdout;
    // It would wait a minute for another program.
    let left = std::fs::read_to_string(bed.cgroup("sparing").join("cgroup.procs")).expect("the agent's group");
    for process in left.split_whitespace() {
        assert!(Command::new("kill").arg(process).status().expect("kill").success());
    }
    assert_eq!(String::from_utf8_lossy(&said), "sparing low told\n");
}

#[test]
fn a_c_program_takes_part() {
    let Some(prefix) = from_environment("MINERVA_C_PREFIX") else { return };
    let Some((mut bed, daemon, socket)) = daemon() else { return };
    // The disk that a tenant uses most is the one that its operation is about.
    bed.start_readers();
    daemon.pass_slices(5);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk/c/examples/backup.c");
    let program = bed.directory.path().join("backup");
    let (include, lib) = (prefix.join("include"), prefix.join("lib"));
    let mut compiler = Command::new("cc");
    compiler.arg(source).arg("-I").arg(&include).arg("-L").arg(&lib).arg("-lminerva").arg("-o").arg(&program);
    assert!(compiler.status().expect("cc").success());
    let (from, to) = (bed.directory.path().join("from"), bed.directory.path().join("to"));
    std::fs::write(&from, "worth keeping").expect("a file");
    let command = format!("{} {} {}", program.display(), from.display(), to.display());
    let mut command = as_tenant(&bed, &socket, &command);
    command.env("LD_LIBRARY_PATH", &lib);
    let output = good(command, &daemon);
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with("copied; ") && errors.is_empty(), "{said}{errors}");
    assert_eq!(std::fs::read(to).expect("the copy"), b"worth keeping");
}
