//! An operator's shell beside a server: the real `minerva-ctl`, with a daemon's file of the test's own.

use crate::server_folder::{IMAGE_BYTES, ServerFolder, Serving, program};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(20);

/// An operator's shell beside a server.
pub(crate) struct Operator {
    pub(crate) folder: ServerFolder,
    pub(crate) tool: PathBuf,
    /// None between two of them.
    pub(crate) serving: Option<Serving>,
}

impl Operator {
    /// With the disk `vm1`; none without `minerva-ctl`, with a word.
    pub(crate) fn new(disk: &str, rest: &str) -> Option<Self> {
        let tool = program().with_file_name("minerva-ctl");
        if !tool.exists() {
            println!("skipped: needs minerva-ctl beside minerva-blk (cargo build -p minerva-ctl)");
            return None;
        }
        let folder = ServerFolder::new();
        folder.write(disk, rest);
        let daemon = folder.folder.path().join("minerva.toml");
        std::fs::write(daemon, format!("[daemon]\nruntime_dir = {:?}\n", folder.runtime_dir())).unwrap();
        let serving = Some(folder.serve());
        let operator = Self { folder, tool, serving };
        operator.until_served();
        Some(operator)
    }

    pub(crate) fn until_served(&self) {
        let begun = Instant::now();
        while !self.disk(&["list"]).status.success() {
            assert!(begun.elapsed() < PATIENCE, "it does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.tool);
        command.arg("--config").arg(self.folder.folder.path().join("minerva.toml")).arg("disk").args(arguments);
        command
    }

    pub(crate) fn disk(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// What it prints.
    pub(crate) fn good(&self, arguments: &[&str]) -> String {
        let output = self.disk(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text(&output.stderr));
        text(&output.stdout)
    }

    /// Why it refuses: what the server refuses is a finding, what the tool does not even ask for a failure.
    pub(crate) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.disk(arguments);
        let said = text(&output.stderr);
        let status = if said.starts_with("minerva-ctl: refused: ") { 1 } else { 2 };
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}{}", text(&output.stdout));
        said
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.folder.path().join(name).display().to_string()
    }

    /// An image of 4 MiB.
    pub(crate) fn image(&self, name: &str) -> String {
        let path = self.path(name);
        std::fs::File::create(&path).unwrap().set_len(IMAGE_BYTES).unwrap();
        path
    }
}

/// On which disk of this machine the tests' images lie, as the server calls it.
pub(crate) fn device_of_tests() -> Option<String> {
    let operator = Operator::new("direct = false", "")?;
    let list: serde_json::Value = serde_json::from_str(&operator.good(&["list", "--json"])).unwrap();
    Some(list["devices"][0]["name"].as_str().unwrap().to_owned())
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
