//! What was changed, kept for the next start: a drop-in for each disk beside the server's file, `blk.toml.d/disk-NAME.toml`, that this
//! program writes and nobody else.

use anyhow::{Context, bail};
use minerva_config::{VmDiskSettings, load_blk};
use minerva_model::{DiskChange, DiskSettings};
use std::fmt::Write;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

const HEADER: &str = "# Written by `minerva-ctl disk`, which writes it anew with each change of this disk.\n";

/// Keeps how a disk is served.
pub(crate) fn keep(config: &Path, disk: &DiskSettings) -> anyhow::Result<()> {
    rewrite(config, disk, |_| Ok(text(disk)), |_| true)
}

/// Keeps what was changed of how a disk is served; all else stays as the files have it, also where it is served otherwise for now.
pub(crate) fn keep_change(config: &Path, disk: &DiskSettings, change: &DiskChange) -> anyhow::Result<()> {
    if !load_blk(config)?.disks.contains_key(&disk.name) {
        bail!("of a disk that was added with --runtime nothing is kept");
    }
    let keys = keys_of(change);
    rewrite(config, disk, |before| merged(before, disk, &keys), |key| keys.contains(&key))
}

/// Writes a disk's drop-in, made of what it was before, and looks whether the next start reads the keys that are meant so.
fn rewrite(
    config: &Path,
    disk: &DiskSettings,
    make: impl FnOnce(Option<&str>) -> anyhow::Result<String>,
    is_meant: impl Fn(&str) -> bool,
) -> anyhow::Result<()> {
    let path = path_of(config, &disk.name);
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(|| format!("failed to make {}", folder.display()))?;
    }
    let before = read(&path)?;
    replace(&path, &make(before.as_deref()).with_context(|| format!("{} is damaged", path.display()))?)?;
    match load_blk(config) {
        Ok(read) => check_kept(disk, read.disks.get(&disk.name), &path, is_meant),
        Err(error) => Err(refused(error.into(), &path, before)),
    }
}

/// What the next start would refuse is not left there.
fn refused(error: anyhow::Error, path: &Path, before: Option<String>) -> anyhow::Error {
    let put_back = match before {
        Some(before) => replace(path, &before),
        None => remove(path),
    };
    let error = error.context(format!("{} does not go with the others", path.display()));
    put_back.err().map_or(error, |failed| failed.context("what it was before could not be put back"))
}

/// The keys of the file that a change is about.
fn keys_of(change: &DiskChange) -> Vec<&'static str> {
    let has_rate = change.rate_bytes_per_second.is_some();
    let keys = [
        ("weight", change.weight.is_some()),
        ("rate", has_rate),
        ("burst", has_rate || change.burst_bytes.is_some()),
        ("delay", has_rate || change.delay.is_some()),
        ("limit", change.limit_bytes_per_second.is_some()),
        ("tag_default", change.tag_default.is_some()),
        ("tag_max", change.tag_max.is_some()),
        ("access", change.is_random.is_some()),
        ("request", change.request_bytes.is_some()),
        ("force", change.force.is_some()),
    ];
    keys.iter().filter(|(_, is_named)| *is_named).map(|(key, _)| *key).collect()
}

/// The drop-in, with these keys as the disk has them now.
fn merged(before: Option<&str>, disk: &DiskSettings, keys: &[&str]) -> anyhow::Result<String> {
    let mut file: toml::Table = before.unwrap_or_default().parse()?;
    let whole: toml::Table = text(disk).parse()?;
    let now = whole["disks"][&disk.name].as_table().context("a disk's settings are a table")?;
    let table = |parent: &mut toml::Table, key: &str| -> anyhow::Result<toml::Table> {
        match parent.remove(key).unwrap_or_else(|| toml::Table::new().into()) {
            toml::Value::Table(table) => Ok(table),
            _ => bail!("`{key}` is no table"),
        }
    };
    let mut disks = table(&mut file, "disks")?;
    let mut kept = table(&mut disks, &disk.name)?;
    for key in keys {
        match now.get(*key) {
            Some(value) => drop(kept.insert((*key).to_owned(), value.clone())),
            None => drop(kept.remove(*key)),
        }
    }
    disks.insert(disk.name.clone(), kept.into());
    file.insert("disks".to_owned(), disks.into());
    Ok(format!("{HEADER}{}", toml::to_string(&file)?))
}

/// An error where the next start will read something else: a drop-in takes no key out of another file, and one that is read later wins.
fn check_kept(
    disk: &DiskSettings,
    read: Option<&VmDiskSettings>,
    path: &Path,
    is_meant: impl Fn(&str) -> bool,
) -> anyhow::Result<()> {
    let Some(read) = read else { bail!("{} is not read by the server", path.display()) };
    let terms = &disk.terms;
    let has_contract = terms.rate_bytes_per_second.is_some();
    let keys = [
        ("image", read.image == Path::new(&disk.image)),
        ("socket", read.socket.as_deref() == Some(Path::new(&disk.socket))),
        ("read_only", read.read_only == disk.read_only),
        ("direct", read.direct == disk.direct),
        ("queues", read.queues == disk.queues),
        ("weight", read.weight == terms.weight),
        ("rate", read.rate_bytes_per_second == terms.rate_bytes_per_second),
        ("burst", !has_contract || read.burst_bytes == terms.burst_bytes),
        // Kept in microseconds.
        ("delay", !has_contract || read.delay.0 / 1_000 == terms.delay.0 / 1_000),
        ("limit", read.limit_bytes_per_second == terms.limit_bytes_per_second),
        ("tag_default", read.tag_default == terms.tag_default),
        ("tag_max", read.tag_max == terms.tag_max),
        ("access", read.is_random == terms.is_random),
        ("request", read.request_bytes == terms.request_bytes),
        ("force", read.force == terms.force),
    ];
    let others = keys.iter().filter(|(key, same)| !same && is_meant(key));
    let others: Vec<String> = others.map(|(key, _)| format!("`{key}`")).collect();
    if !others.is_empty() {
        bail!(
            "another file says {} of `{}` ({} or a drop-in after disk-{}.toml); change it there",
            others.join(", "),
            disk.name,
            read.place,
            disk.name
        );
    }
    Ok(())
}

/// Forgets a disk; an error where it stands in a file of the operator's own.
pub(crate) fn forget(config: &Path, name: &str) -> anyhow::Result<()> {
    let path = path_of(config, name);
    let before = read(&path)?;
    remove(&path)?;
    match load_blk(config) {
        Ok(left) => match left.disks.get(name) {
            Some(disk) => bail!("`{name}` stands in {} too; take it out there", disk.place),
            None => Ok(()),
        },
        Err(error) if before.is_none() => {
            Err(anyhow::Error::new(error).context("what the next start serves is not known"))
        }
        Err(error) => {
            let error = refused(error.into(), &path, before);
            Err(error.context(format!(
                "another file has a `[disks.{name}]` of its own; take it out there, and remove {}",
                path.display()
            )))
        }
    }
}

fn path_of(config: &Path, name: &str) -> PathBuf {
    let mut folder = config.as_os_str().to_owned();
    folder.push(".d");
    Path::new(&folder).join(format!("disk-{name}.toml"))
}

fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("failed to read {}", path.display())),
    }
}

fn remove(path: &Path) -> anyhow::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(error).with_context(|| format!("failed to remove {}", path.display()))
        }
        _ => Ok(()),
    }
}

/// The whole of it, or what was there before.
fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("failed to write {}", path.display());
    let folder = path.parent().with_context(context)?;
    // Not a name that is read as a drop-in.
    let temporary = folder.join(format!(".{}.new", std::process::id()));
    std::fs::write(&temporary, text).with_context(context)?;
    std::fs::File::open(&temporary).and_then(|file| file.sync_all()).with_context(context)?;
    std::fs::rename(&temporary, path).with_context(context)
}

fn text(disk: &DiskSettings) -> String {
    let DiskSettings { name, image, socket, read_only, direct, queues, terms } = disk;
    let access = if terms.is_random { "random" } else { "sequential" };
    let mut text = format!(
        "{HEADER}[disks.\"{name}\"]\n\
         image = {image:?}\nsocket = {socket:?}\nread_only = {read_only}\ndirect = {direct}\nqueues = {queues}\n\
         weight = {}\ntag_default = {}\ntag_max = {}\naccess = \"{access}\"\nrequest = \"{}B\"\nforce = {}\n",
        terms.weight, terms.tag_default, terms.tag_max, terms.request_bytes, terms.force
    );
    // Writing into a string cannot fail.
    if let Some(rate) = terms.rate_bytes_per_second {
        let (burst, delay_us) = (terms.burst_bytes, terms.delay.0 / 1_000);
        let _ = write!(text, "rate = \"{rate}B\"\nburst = \"{burst}B\"\ndelay = \"{delay_us}us\"\n");
    }
    if let Some(limit) = terms.limit_bytes_per_second {
        let _ = writeln!(text, "limit = \"{limit}B\"");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{forget, keep, keep_change};
    use minerva_config::load_blk;
    use minerva_model::{DiskChange, DiskSettings, DiskTerms, Nanos};
    use std::fs;

    fn disk() -> DiskSettings {
        let terms = DiskTerms {
            weight: 300,
            rate_bytes_per_second: Some(8_800_000),
            burst_bytes: 262_144,
            delay: Nanos::from_millis(150),
            limit_bytes_per_second: Some(9_000_000),
            tag_default: 10,
            tag_max: 20,
            is_random: true,
            request_bytes: 4096,
            force: true,
        };
        let (image, socket) = ("/images/vm \"2\".raw".to_owned(), "/run/vm2.sock".to_owned());
        DiskSettings { name: "vm2".to_owned(), image, socket, read_only: true, direct: false, queues: 2, terms }
    }

    #[test]
    fn what_is_kept_is_read_at_the_next_start_and_forgotten_when_it_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("blk.toml");
        fs::write(&config, "[disks.vm1]\nimage = \"/images/vm1.raw\"\n").unwrap();
        keep(&config, &disk()).unwrap();
        let read = load_blk(&config).unwrap().disks["vm2"].clone();
        let DiskSettings { terms, .. } = disk();
        assert_eq!((read.image.to_str(), read.queues, read.read_only), (Some("/images/vm \"2\".raw"), 2, true));
        assert_eq!((read.rate_bytes_per_second, read.burst_bytes), (terms.rate_bytes_per_second, terms.burst_bytes));
        assert_eq!((read.delay, read.limit_bytes_per_second), (terms.delay, terms.limit_bytes_per_second));
        assert_eq!((read.weight, read.tag_default, read.tag_max), (300, 10, 20));
        assert!(read.is_random && read.force && !read.direct && read.request_bytes == 4096);
        forget(&config, "vm2").unwrap();
        assert!(!load_blk(&config).unwrap().disks.contains_key("vm2"));
        let why = forget(&config, "vm1").unwrap_err().to_string();
        assert!(why.contains("`vm1` stands in") && why.contains("blk.toml:1"), "{why}");
    }

    #[test]
    fn a_contract_that_another_file_has_is_told_and_not_thought_taken_back() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("blk.toml");
        fs::write(&config, "[disks.vm2]\nimage = \"/images/vm2.raw\"\nrate = \"5MB\"\ndelay = \"150ms\"\n").unwrap();
        let with = disk();
        keep(&config, &with).unwrap();
        let terms = DiskTerms { rate_bytes_per_second: None, limit_bytes_per_second: None, ..with.terms };
        let why = keep(&config, &DiskSettings { terms, ..with.clone() }).unwrap_err().to_string();
        assert!(why.contains("`rate`") && why.contains("blk.toml:1"), "{why}");
        assert!(!why.contains("`limit`"), "that stood in the drop-in alone: {why}");
        fs::write(folder.path().join("blk.toml.d/vm2.toml"), "[disks.vm2]\nweight = 7\n").unwrap();
        let why = keep(&config, &with).unwrap_err().to_string();
        assert!(why.contains("another file says `weight` of `vm2`"), "what is read later wins: {why}");
    }

    #[test]
    fn of_a_change_only_what_it_names_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("blk.toml");
        let main = |weight: u32| format!("[disks.vm2]\nimage = \"/images/vm2.raw\"\nweight = {weight}\n");
        fs::write(&config, main(100)).unwrap();
        // Its weight is another for now.
        let served = disk();
        let change = DiskChange { tag_default: Some(10), ..DiskChange::default() };
        keep_change(&config, &served, &change).unwrap();
        fs::write(&config, main(500)).unwrap();
        let rate = DiskChange { rate_bytes_per_second: Some(8_800_000), force: Some(true), ..DiskChange::default() };
        keep_change(&config, &served, &rate).unwrap();
        let read = load_blk(&config).unwrap().disks["vm2"].clone();
        assert_eq!((read.weight, read.tag_default, read.tag_max), (500, 10, 128), "what the file says by now stays");
        assert_eq!((read.rate_bytes_per_second, read.limit_bytes_per_second), (Some(8_800_000), None));
        let gone = DiskChange { rate_bytes_per_second: Some(0), ..DiskChange::default() };
        let terms = DiskTerms { rate_bytes_per_second: None, ..served.terms };
        keep_change(&config, &DiskSettings { terms, ..served.clone() }, &gone).unwrap();
        assert_eq!(load_blk(&config).unwrap().disks["vm2"].rate_bytes_per_second, None);
        let other = DiskSettings { name: "vm3".to_owned(), ..served };
        let why = format!("{:#}", keep_change(&config, &other, &change).unwrap_err());
        assert!(why.contains("added with --runtime"), "{why}");
        assert_eq!(load_blk(&config).unwrap().disks.len(), 1);
    }

    #[test]
    fn a_disk_of_which_another_file_says_something_is_not_forgotten_so_that_the_server_starts() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("blk.toml");
        fs::write(&config, "[disks.vm1]\nimage = \"/images/vm1.raw\"\n").unwrap();
        keep(&config, &disk()).unwrap();
        fs::write(folder.path().join("blk.toml.d/own.toml"), "[disks.vm2]\nrequest = \"4KiB\"\n").unwrap();
        let why = format!("{:#}", forget(&config, "vm2").unwrap_err());
        assert!(why.contains("take it out there"), "{why}");
        assert!(load_blk(&config).unwrap().disks.contains_key("vm2"));
    }

    #[test]
    fn what_does_not_go_with_the_others_is_not_left_there() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("blk.toml");
        fs::write(&config, "[disks.vm1]\nimage = \"/images/vm \\\"2\\\".raw\"\n").unwrap();
        let why = format!("{:#}", keep(&config, &disk()).unwrap_err());
        assert!(why.contains("have one image"), "{why}");
        assert_eq!(load_blk(&config).unwrap().disks.len(), 1);
    }
}
