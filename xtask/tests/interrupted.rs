//! `cargo xtask test` itself, ended by a signal.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// In place of cargo: it hangs, and so does what it starts in a session of its own. Nothing else can be asked of it.
const CARGO: &str = "#!/bin/sh
[ \"$1\" = build ] || exit 1
setsid sh -c 'echo $$ >> ids; exec sleep 1000' &
until [ -s ids ]; do sleep 0.01; done
echo $$ >> ids
exec sleep 1000
";

#[test]
fn a_signal_ends_all_that_the_tests_have_started_and_the_status_names_it() {
    for (signal, status) in [("TERM", 143), ("INT", 130), ("HUP", 129)] {
        let scratch = tempfile::tempdir().expect("a directory");
        let cargo = scratch.path().join("cargo");
        std::fs::write(&cargo, CARGO.replace("ids", &scratch.path().join("ids").display().to_string()))
            .expect("a script");
        std::fs::set_permissions(&cargo, std::fs::Permissions::from_mode(0o755)).expect("a program");
        // No `apt-get` among them: what this machine lacks is not for this test to install.
        let programs = scratch.path().join("programs");
        std::fs::create_dir(&programs).expect("a directory");
        for name in ["env", "sh", "sleep", "setsid"] {
            let path = std::env::split_paths(&std::env::var_os("PATH").expect("a path"))
                .map(|folder| folder.join(name))
                .find(|path| path.is_file());
            symlink(path.expect("a program"), programs.join(name)).expect("a link");
        }
        // Whoever runs this test may ignore some.
        let mut task = Command::new("env");
        task.arg("--default-signal=HUP,INT").arg(env!("CARGO_BIN_EXE_xtask")).args(["test", "--no-lint", "--no-fuzz"]);
        task.env("CARGO", &cargo).env("PATH", &programs).stdout(Stdio::null()).stderr(Stdio::null());
        let mut task = task.spawn().expect("the task starts");
        let ids = || std::fs::read_to_string(scratch.path().join("ids")).unwrap_or_default();
        while ids().lines().count() < 2 {
            assert!(task.try_wait().expect("known").is_none(), "it ended before it was told to");
            std::thread::sleep(Duration::from_millis(10));
        }
        let told = Command::new("kill").args(["-s", signal, &task.id().to_string()]).status();
        assert!(told.expect("kill(1)").success());
        assert_eq!(task.wait().expect("it ended").code(), Some(status), "{signal}");
        let running =
            |id: &&str| std::fs::read(Path::new("/proc").join(id).join("environ")).is_ok_and(|all| !all.is_empty());
        assert_eq!(ids().lines().filter(running).count(), 0, "{signal}");
    }
}
