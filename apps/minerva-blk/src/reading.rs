//! Which files the process may open once it serves, by Landlock where the kernel has it: `/sys`, which says what disk an image lies on, and
//! the disk models that the operator's file names. Nothing is opened to be written, and nothing is made.
//!
//! The filter of system calls (`confinement`) sees flags and no paths, and nothing of what io_uring is told to open; this rule goes by the
//! file, however it is opened. It binds the thread that sets it and those that it starts, so it is set before there are others.

use anyhow::Context;
use landlock::{
    ABI, Access, AccessFs, BitFlags, PathBeneath, PathFd, PathFdError, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetStatus,
};
use std::path::Path;

/// Sockets are removed at the end.
fn handled() -> BitFlags<AccessFs> {
    AccessFs::from_all(ABI::V1) & !BitFlags::from(AccessFs::RemoveFile)
}

/// From now on, for this thread and those that it starts; whether the kernel sees to it.
pub(crate) fn limit<'a>(models: impl Iterator<Item = &'a str>) -> anyhow::Result<bool> {
    let rules = rules(models).context("failed to make the rules of files")?;
    let status = rules.restrict_self().context("failed to set the rules of files")?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

fn rules<'a>(models: impl Iterator<Item = &'a str>) -> anyhow::Result<RulesetCreated> {
    let mut rules = Ruleset::default().handle_access(handled())?.create()?;
    let mut allow = |path: &Path, access: BitFlags<AccessFs>| -> anyhow::Result<()> {
        match PathFd::new(path) {
            Ok(opened) => {
                (&mut rules).add_rule(PathBeneath::new(opened, access))?;
            }
            // What is not there needs no rule: a model that is named wrongly is told where it is used.
            Err(PathFdError::OpenCall { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    };
    allow(Path::new("/sys"), AccessFs::ReadFile | AccessFs::ReadDir)?;
    for model in models.filter(|model| model.contains('/')) {
        allow(Path::new(model), AccessFs::ReadFile.into())?;
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::limit;
    use std::fs::File;
    use std::io::ErrorKind;
    use std::path::Path;

    /// Names the case that a process of its own runs: what a rule forbids stays forbidden.
    const CASE: &str = "MINERVA_TEST_READING";

    fn is_refused(path: &Path) -> bool {
        File::open(path).is_err_and(|error| error.kind() == ErrorKind::PermissionDenied)
    }

    #[test]
    fn only_what_serving_needs_is_opened() {
        if let Some(folder) = std::env::var_os(CASE) {
            let folder = Path::new(&folder);
            let [model, image] = ["model.toml", "image.raw"].map(|name| folder.join(name));
            let models = [model.to_str().unwrap(), "sata-ssd", "/nowhere/model.toml"];
            if !limit(models.into_iter()).unwrap() {
                return println!("limited\nskipped: needs a kernel with Landlock");
            }
            let judge = move || {
                assert!(File::open("/sys/devices/system/cpu/online").is_ok() && File::open(&model).is_ok());
                assert!(is_refused(&image) && is_refused(Path::new("/proc/self/maps")), "other files");
                assert!(std::fs::read_dir(image.parent().unwrap()).is_err(), "a folder");
                assert!(File::create(image.with_file_name("new")).is_err(), "a new file");
            };
            std::thread::spawn(judge).join().unwrap();
            return println!("limited");
        }
        let folder = tempfile::tempdir().unwrap();
        for name in ["model.toml", "image.raw"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let name = "reading::tests::only_what_serving_needs_is_opened";
        let mut own = std::process::Command::new(std::env::current_exe().unwrap());
        let output = own.args(["--exact", name, "--nocapture"]).env(CASE, folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
        println!("{said}");
        assert!(output.status.success() && said.contains("limited"), "{said}");
    }
}
