//! The cache's pool for Rust programs: files that are at their place at once and are moved there later, and files of the tenant's own tree.
//!
//! ```no_run
//! use minerva_client::cache::{Deferral, Pool, open};
//! use std::io::Write;
//!
//! # fn main() -> std::io::Result<()> {
//! let mut file = Deferral::new("/data/out.bin").create()?; // at the pool's speed; it is moved once nobody has it open
//! file.write_all(b"result")?;
//! let scratch = open("scratch.bin", Pool::Temporary, std::fs::File::options().create(true).write(true))?;
//! # drop((file, scratch));
//! # Ok(())
//! # }
//! ```
//!
//! A program is unharmed by the cache's absence: where no service answers, or it refuses, a deferred file is written to its place itself,
//! and one of the tree to a directory of the user's own below the directory of temporary files.

pub use minerva_api::cache::Pool;

use crate::working_device::leads_to_pool;
use minerva_api::cache::{Answer, Request, ask, ask_within, socket};
use minerva_api::v1;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// How long a pool is asked what it takes.
const OFFER_MAX: Duration = Duration::from_secs(10);
/// Permissions of new files, before the mask.
const MODE: u32 = 0o666;

/// A file that is to be written at the pool's speed.
#[derive(Clone, Debug)]
pub struct Deferral {
    path: PathBuf,
    pool: Pool,
    tenant: Option<String>,
    bytes: u64,
    mode: u32,
    socket: PathBuf,
}

impl Deferral {
    /// The file at `path`, by way of `stable`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), pool: Pool::Stable, tenant: None, bytes: 0, mode: MODE, socket: socket() }
    }

    /// By way of this pool. What waits in [`Pool::Temporary`] is lost by a restart of the machine.
    #[must_use]
    pub fn pool(self, pool: Pool) -> Self {
        Self { pool, ..self }
    }

    /// As this tenant, for users who are several.
    #[must_use]
    pub fn tenant(self, tenant: impl Into<String>) -> Self {
        Self { tenant: Some(tenant.into()), ..self }
    }

    /// How long it is expected to become, in bytes: it is not deferred where that has no room.
    #[must_use]
    pub fn bytes(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }

    /// Permissions, before the mask.
    #[must_use]
    pub fn mode(self, mode: u32) -> Self {
        Self { mode, ..self }
    }

    /// Asks at this socket.
    #[must_use]
    pub fn socket(self, socket: impl Into<PathBuf>) -> Self {
        Self { socket: socket.into(), ..self }
    }

    /// Makes it, empty, in place of what was there, and opens it for reading and writing. It is moved once it is closed everywhere. Not
    /// deferred is what others would find changed: a pipe, a device, a link, another user's file, or one with further names.
    pub fn create(&self) -> io::Result<File> {
        let straight =
            || File::options().read(true).write(true).create(true).truncate(true).mode(self.mode).open(&self.path);
        match self.ask() {
            Some(data) => File::options().read(true).write(true).open(data).or_else(|_| straight()),
            None => straight(),
        }
    }

    /// What is to be written in place of the file; nothing where it is not deferred.
    fn ask(&self) -> Option<PathBuf> {
        // Links on the way are followed as the kernel does, which `..` behind one would not be by the path's text.
        let directory = std::path::absolute(&self.path).ok()?.parent()?.canonicalize().ok()?;
        let path = directory.join(self.path.file_name()?);
        let parent = fs::metadata(&directory).ok()?;
        let mode = self.permissions(&path)?;
        let request = Request::Defer {
            path,
            directory: (parent.dev(), parent.ino()),
            mode,
            pool: self.pool,
            tenant: self.tenant.clone(),
            bytes: self.bytes,
        };
        match ask(&self.socket, &request) {
            Ok(Answer::Deferring { data, .. }) => Some(data),
            _ => None,
        }
    }
}

impl Deferral {
    /// Of the new file, which are those of the one that it replaces, also where that still waits; nothing where a link in place of what is
    /// there would be something else to others: what is no file of this user's alone, or a link that leads elsewhere than to what waits in
    /// a pool.
    fn permissions(&self, path: &Path) -> Option<u32> {
        let new = || self.mode & !mask();
        match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(new()),
            Err(_) => None,
            Ok(shown) if !shown.is_symlink() => of_own_file(&shown),
            Ok(_) if !leads_to_pool(path) => None,
            // What waits there is the file, and has its permissions.
            Ok(_) => match path.metadata() {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Some(new()),
                Err(_) => None,
                Ok(shown) => of_own_file(&shown),
            },
        }
    }
}

/// What a file that is this user's alone has; nothing of any other.
fn of_own_file(shown: &Metadata) -> Option<u32> {
    let user = rustix::process::geteuid().as_raw();
    let is_own = shown.is_file() && shown.nlink() == 1 && shown.uid() == user;
    is_own.then(|| shown.mode() & 0o777)
}

/// The mask of new files. The system tells it by a file, and by setting another only, which other threads would see.
fn mask() -> u32 {
    let status = fs::read_to_string(crate::working_device::OWN_STATUS).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok()).unwrap_or(0o022)
}

/// Opens a file of the tenant's own tree, by its path in it.
pub fn open(path: impl AsRef<Path>, pool: Pool, options: &OpenOptions) -> io::Result<File> {
    let path = path.as_ref();
    if path.components().any(|part| !matches!(part, Component::Normal(_) | Component::CurDir)) {
        let why = format!("{} leads out of the tree: it has to be a path in it", path.display());
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    options.open(tree(pool)?.join(path))
}

/// What a pool says of itself to who would write there in place of a disk; nothing where no service answers, or not in time, or the user is
/// several tenants or none.
pub(crate) fn offer(pool: Pool, socket: &Path, at_most: Duration) -> Option<v1::PoolOffer> {
    let patience = Some(at_most.min(OFFER_MAX));
    let Ok(Answer::Status { tenants, .. }) = ask_within(socket, &Request::Status, patience) else { return None };
    let [tenant] = &tenants[..] else { return None };
    let tree = match pool {
        Pool::Temporary => &tenant.temporary,
        Pool::Stable => &tenant.stable,
    };
    let is_open = tree.is_served && tenant.leaving.is_empty();
    is_open.then(|| v1::PoolOffer { left_bytes: tree.deferrable_bytes, device: tree.device.clone() })
}

/// The root of the tenant's own tree in a pool.
pub fn tree(pool: Pool) -> io::Result<PathBuf> {
    if let Ok(Answer::Status { tenants, .. }) = ask(&socket(), &Request::Status)
        && let [tenant] = &tenants[..]
    {
        return Ok(match pool {
            Pool::Temporary => tenant.temporary.path.clone(),
            Pool::Stable => tenant.stable.path.clone(),
        });
    }
    let user = rustix::process::getuid().as_raw();
    let own = std::env::temp_dir().join(format!("minerva-cache-{user}"));
    let made = DirBuilder::new().mode(0o700).create(&own);
    made.or_else(|error| if error.kind() == io::ErrorKind::AlreadyExists { Ok(()) } else { Err(error) })?;
    let shown = own.symlink_metadata()?;
    if !shown.is_dir() || shown.uid() != user || shown.mode() & 0o077 != 0 {
        let why = format!("{} is not a directory of this user alone: remove it", own.display());
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::{Deferral, Pool, open};
    use std::fs;
    use std::io::{BufRead, BufReader, Read, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn without_a_service_a_file_is_written_to_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "of before").unwrap();
        let mut file = Deferral::new(&path).socket(folder.path().join("nobody")).create().unwrap();
        file.write_all(b"text").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"text");
    }

    #[test]
    fn what_the_service_names_is_written_and_a_refusal_is_none_to_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let (socket, data) = (folder.path().join("socket"), folder.path().join("data"));
        fs::write(&data, "").unwrap();
        let listener = UnixListener::bind(&socket).unwrap();
        let answers = [
            format!(r#"{{"answer":"deferring","id":1,"data":"{}"}}"#, data.display()),
            r#"{"answer":"refused","why":"the pool is full"}"#.to_owned(),
        ];
        let server = std::thread::spawn(move || {
            answers.map(|answer| {
                let (stream, _) = listener.accept().unwrap();
                let mut asked = String::new();
                BufReader::new(&stream).read_line(&mut asked).unwrap();
                writeln!(&stream, "{answer}").unwrap();
                asked
            })
        });
        let path = folder.path().join("file");
        for _ in 0..2 {
            Deferral::new(&path).pool(Pool::Temporary).socket(&socket).create().unwrap().write_all(b"text").unwrap();
        }
        let asked = server.join().unwrap();
        assert!(asked[0].contains(r#""ask":"defer""#) && asked[0].contains(r#""pool":"temporary""#), "{}", asked[0]);
        assert_eq!((fs::read(&data).unwrap(), fs::read(&path).unwrap()), (b"text".to_vec(), b"text".to_vec()));
        let mut read = String::new();
        fs::File::open(&path).unwrap().read_to_string(&mut read).unwrap();
    }

    /// A service would answer; it is not asked, and what is there is written as any program writes it.
    #[test]
    fn what_others_would_find_changed_is_not_deferred() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let _listener = UnixListener::bind(at("socket")).unwrap();
        fs::write(at("other"), "").unwrap();
        std::os::unix::fs::symlink(at("other"), at("link")).unwrap();
        fs::write(at("first"), "").unwrap();
        fs::hard_link(at("first"), at("second")).unwrap();
        for (name, written) in [("link", "other"), ("first", "second")] {
            let mut file = Deferral::new(at(name)).socket(at("socket")).create().unwrap();
            file.write_all(b"text").unwrap();
            assert_eq!(fs::read(at(written)).unwrap(), b"text", "{name}");
        }
        assert!(at("link").is_symlink());
    }

    #[test]
    fn a_deferred_file_keeps_its_permissions_and_its_directory() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir_all(at("far/inner")).unwrap();
        std::os::unix::fs::symlink(at("far/inner"), at("link")).unwrap();
        fs::write(at("far/private"), "").unwrap();
        fs::set_permissions(at("far/private"), fs::Permissions::from_mode(0o600)).unwrap();
        let listener = UnixListener::bind(at("socket")).unwrap();
        let server = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            let mut asked = String::new();
            BufReader::new(&stream).read_line(&mut asked).unwrap();
            writeln!(&stream, r#"{{"answer":"refused","why":"the pool is full"}}"#).unwrap();
            asked
        });
        // The kernel goes up from where the link leads.
        Deferral::new(at("link/../private")).socket(at("socket")).create().unwrap();
        let asked = server.join().unwrap();
        assert!(asked.contains(&format!("{:?}", at("far/private"))) && asked.contains(r#""mode":384"#), "{asked}");
    }

    #[test]
    fn a_file_that_replaces_one_that_still_waits_keeps_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let waiting = at("tree/.deferred/waiting");
        fs::create_dir_all(waiting.parent().unwrap()).unwrap();
        fs::write(&waiting, "of before").unwrap();
        fs::set_permissions(&waiting, fs::Permissions::from_mode(0o600)).unwrap();
        std::os::unix::fs::symlink(&waiting, at("file")).unwrap();
        let deferral = Deferral::new(at("file"));
        assert_eq!(deferral.permissions(&at("file")), Some(0o600));
        // Of what others share the next would be another.
        fs::hard_link(&waiting, at("tree/second")).unwrap();
        assert_eq!(deferral.permissions(&at("file")), None);
        // Nothing waits there any more.
        fs::remove_file(&waiting).unwrap();
        assert_eq!(deferral.mode(0o400).permissions(&at("file")), Some(0o400));
    }

    #[test]
    fn a_path_that_leads_out_of_the_tree_is_refused() {
        for path in ["/etc/passwd", "../other", "a/../../b"] {
            assert!(open(path, Pool::Temporary, fs::File::options().read(true)).is_err(), "{path}");
        }
    }
}
