//! A folder with images, a file that names them, and a server that ends with the test.

use minerva_lab::disk::{Disk, DiskInfo, DiskSpec};
use minerva_linux_actuate::ask_server;
use minerva_model::{ControlRequest, ServerAnswer, ServerReport};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) const IMAGE_BYTES: u64 = 4 << 20;

pub(crate) struct ServerFolder {
    pub(crate) folder: tempfile::TempDir,
}

impl ServerFolder {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("minerva-test-blk-").tempdir_in(env!("CARGO_TARGET_TMPDIR"));
        let place = Self { folder: folder.unwrap() };
        std::fs::File::create(place.image()).unwrap().set_len(IMAGE_BYTES).unwrap();
        place
    }

    pub(crate) fn image(&self) -> PathBuf {
        self.folder.path().join("vm1.raw")
    }

    /// What `sha256sum` says of so many bytes of the image.
    pub(crate) fn sum_of_first(&self, bytes: u64) -> String {
        let sum = format!("head -c {bytes} {:?} | sha256sum", self.image());
        let output = Command::new("sh").arg("-c").arg(sum).output().unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join("vm1.sock")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.folder.path().join("blk.toml")
    }

    /// Writes the file: `disk` are the keys of `vm1` besides its paths, `rest` other tables.
    pub(crate) fn write(&self, disk: &str, rest: &str) {
        let (image, socket) = (self.image(), self.socket());
        // Not every file system that tests run on has direct I/O.
        self.write_text(&format!("[disks.vm1]\nimage = {image:?}\nsocket = {socket:?}\n{disk}\n{rest}\n"));
    }

    /// Writes the file, with a control socket of the test's own.
    pub(crate) fn write_text(&self, text: &str) {
        let control = format!("[server]\ncontrol = {:?}\n", self.runtime_dir().join("servers/blk"));
        let text = match text.contains("[server]\n") {
            true => text.replacen("[server]\n", &control, 1),
            false => format!("{text}{control}"),
        };
        std::fs::write(self.config(), text).unwrap();
    }

    /// What is the daemon's runtime directory in the test.
    pub(crate) fn runtime_dir(&self) -> PathBuf {
        self.folder.path().join("run")
    }

    /// Where the server is asked.
    pub(crate) fn control(&self) -> PathBuf {
        self.runtime_dir().join("servers/blk")
    }

    /// Waits until the server listens for the front end of its disk.
    pub(crate) fn until_listening(&self) {
        let begun = Instant::now();
        while std::os::unix::net::UnixStream::connect(self.socket()).is_err() {
            assert!(begun.elapsed() < Duration::from_secs(60), "nobody listens at {}", self.socket().display());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        Command::new(program()).arg("--config").arg(self.config()).args(arguments).output().unwrap()
    }

    pub(crate) fn socket_of(&self, number: usize) -> PathBuf {
        self.folder.path().join(format!("vm{number}.sock"))
    }

    /// Serves one device as several disks that are only read, ordered by one scheduler; each has a text for the rest of its table.
    pub(crate) fn serve_device(&self, device: &DiskInfo, scheduler: &str, disks: &[String]) -> Serving {
        let mut text = format!("[devices.{}]\nscheduler = \"{scheduler}\"\n", device.kernel_name);
        for (number, rest) in disks.iter().enumerate() {
            let socket = self.socket_of(number);
            text += &format!("[disks.vm{number}]\nimage = {:?}\nsocket = {socket:?}\n", device.device);
            text += &format!("read_only = true\n{rest}\n");
        }
        self.write_text(&text);
        self.serve()
    }

    /// What the server says of itself and its disks.
    pub(crate) fn report(&self) -> ServerReport {
        let answer = ask_server(&self.control(), &ControlRequest::List, &[], Duration::from_secs(60)).unwrap();
        let ServerAnswer::Holds(text) = answer else { panic!("{answer}") };
        serde_json::from_str(&text).unwrap()
    }

    pub(crate) fn serve(&self) -> Serving {
        self.serve_with(&[])
    }

    pub(crate) fn serve_with(&self, arguments: &[&str]) -> Serving {
        let mut command = Command::new(program());
        command.arg("--config").arg(self.config()).args(arguments).stderr(Stdio::piped()).stdin(Stdio::null());
        Serving(command.spawn().unwrap())
    }
}

/// An emulated disk with real seek times; none where this machine cannot have one, with a word why.
pub(crate) fn emulated(name: &str) -> Option<Disk> {
    let spec = DiskSpec { elevator: "none".to_owned(), ..DiskSpec::new(name, "sata7200-80g") };
    Disk::create(&spec).map_err(|error| println!("skipped: {error}")).ok()
}

pub(crate) fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_minerva-blk"))
}

/// A server, killed when dropped.
pub(crate) struct Serving(pub(crate) Child);

impl Serving {
    /// Ends it as systemd does; what it said, and whether it was content.
    pub(crate) fn terminate(mut self) -> (bool, String) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let begun = Instant::now();
        let status = loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                break status;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        let mut said = String::new();
        std::io::Read::read_to_string(&mut self.0.stderr.take().unwrap(), &mut said).unwrap();
        (status.success(), said)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
