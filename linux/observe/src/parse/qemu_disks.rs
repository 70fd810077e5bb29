//! Which file QEMU's arguments give a serial, from `/proc/<pid>/cmdline`.
//!
//! A device names its drive, and that names its file, perhaps by way of further nodes: `-drive id=d0,if=none,file=/a -device
//! virtio-blk-pci,drive=d0,serial=root`, or as libvirt writes it `-blockdev {"node-name":"s","driver":"file","filename":"/a"} -blockdev
//! {"node-name":"f","driver":"raw","file":"s"} -device {"driver":"virtio-blk-pci","drive":"f","serial":"root"}`.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// A virtio disk shows so much of its serial (`VIRTIO_BLK_ID_BYTES` of the virtio specification); volumes are often called by longer ones.
const SHOWN_BYTES_MAX: usize = 20;
/// Nodes that stand on others are followed so far.
const NODES_MAX: usize = 8;

/// One option's keys, those inside others with dots between.
type Keys = BTreeMap<String, String>;

/// The file behind the disk that has this serial, as a guest is shown it; none if the arguments do not say, or say it of several.
pub fn parse_file_of_serial(command_line: &[u8], serial: &str) -> Option<PathBuf> {
    if serial.is_empty() {
        return None;
    }
    let (mut devices, mut nodes) = (Vec::new(), Vec::new());
    let mut words = command_line.split(|byte| *byte == 0).filter_map(|word| std::str::from_utf8(word).ok());
    while let Some(word) = words.next() {
        let kind = word.strip_prefix("--").or(word.strip_prefix('-')).unwrap_or_default();
        if matches!(kind, "device" | "drive" | "blockdev") {
            let options = keys(words.next().unwrap_or_default());
            if kind == "device" { &mut devices } else { &mut nodes }.push(options);
        }
    }
    let of_serial = |is_it: &dyn Fn(&str) -> bool| {
        let has_it = |keys: &&Keys| keys.get("serial").is_some_and(|own| is_it(own));
        let drives = nodes.iter().filter(has_it);
        let of_devices = devices.iter().filter(has_it).filter_map(|keys| node(keys.get("drive")?, &nodes));
        let mut files: Vec<PathBuf> = drives.chain(of_devices).filter_map(|start| file(start, &nodes)).collect();
        files.dedup();
        files
    };
    let mut files = of_serial(&|own| own == serial);
    if files.is_empty() && serial.len() == SHOWN_BYTES_MAX {
        files = of_serial(&|own| own.starts_with(serial));
    }
    if files.len() == 1 { files.pop() } else { None }
}

fn node<'a>(name: &str, nodes: &'a [Keys]) -> Option<&'a Keys> {
    nodes.iter().find(|keys| ["id", "node-name"].iter().any(|key| keys.get(*key).is_some_and(|own| own == name)))
}

fn file(start: &Keys, nodes: &[Keys]) -> Option<PathBuf> {
    let mut keys = start;
    for _ in 0..NODES_MAX {
        if let Some(path) = ["filename", "file.filename"].iter().find_map(|key| keys.get(*key)) {
            return Some(PathBuf::from(path));
        }
        let file = keys.get("file")?;
        match node(file, nodes) {
            Some(below) => keys = below,
            None => return Some(PathBuf::from(file)),
        }
    }
    None
}

fn keys(option: &str) -> Keys {
    let mut keys = Keys::new();
    match serde_json::from_str(option) {
        Ok(value @ serde_json::Value::Object(_)) => flatten("", &value, &mut keys),
        _ => {
            // A comma in a value is written twice.
            let text = option.replace(",,", "\0");
            let pairs = text.split(',').filter_map(|part| part.split_once('='));
            keys.extend(pairs.map(|(key, value)| (key.to_owned(), value.replace('\0', ","))));
        }
    }
    keys
}

/// What is nested deeper than serde_json takes was refused before.
fn flatten(name: &str, value: &serde_json::Value, keys: &mut Keys) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                flatten(&name, value, keys);
            }
        }
        serde_json::Value::String(text) => drop(keys.insert(name.to_owned(), text.clone())),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::parse_file_of_serial;

    #[test]
    fn a_serial_leads_to_its_file() {
        let of = |line: &str| {
            let file = parse_file_of_serial(line.replace(' ', "\0").as_bytes(), "root");
            file.map(|file| file.display().to_string()).unwrap_or_default()
        };
        let table = [
            ("qemu -drive file=/a,if=none,id=d0 -device virtio-blk-pci,drive=d0,serial=root", "/a"),
            ("qemu -device virtio-blk-pci,drive=d0,serial=root --drive id=d0,file=/with,,comma", "/with,comma"),
            ("qemu -drive file=/a,serial=root,if=virtio", "/a"),
            (
                r#"qemu -blockdev {"node-name":"s","driver":"file","filename":"/b"} -blockdev {"node-name":"f","driver":"raw","file":"s"} -device {"driver":"virtio-blk-pci","drive":"f","serial":"root"}"#,
                "/b",
            ),
            (
                r#"qemu -blockdev {"node-name":"f","driver":"raw","file":{"filename":"/c"}} -device scsi-hd,drive=f,serial=root"#,
                "/c",
            ),
            (
                "qemu -blockdev node-name=f,driver=qcow2,file.driver=file,file.filename=/d -device x,drive=f,serial=root",
                "/d",
            ),
            ("qemu -drive file=/a,if=none,id=d0 -device virtio-blk-pci,drive=d0,serial=other", ""),
            ("qemu -device virtio-blk-pci,drive=d0,serial=root", ""),
            ("qemu -blockdev node-name=f,file=f -device x,drive=f,serial=root", ""),
            ("qemu -device", ""),
            ("sh -c serial=root,file=/a", ""),
        ];
        for (line, file) in table {
            assert_eq!(of(line), file, "{line}");
        }
        assert_eq!(parse_file_of_serial(b"qemu\0-drive\0file=/a,serial=\0", ""), None);
    }

    #[test]
    fn of_a_long_serial_a_guest_sees_twenty_bytes() {
        let line = |serials: [&str; 2]| {
            let [one, other] = serials;
            format!("qemu\0-drive\0file=/a,serial={one}\0-drive\0file=/b,serial={other}\0")
        };
        let of = |serials: [&str; 2], shown: &str| {
            let file = parse_file_of_serial(line(serials).as_bytes(), shown);
            file.map(|file| file.display().to_string()).unwrap_or_default()
        };
        let volume = "6b9de3f2-0a5c-4e1d-9c1b-2f4c1a7be8d0";
        assert_eq!(of([volume, "data"], &volume[..20]), "/a");
        assert_eq!(
            of([&volume[..20], volume], &volume[..20]),
            "/a",
            "one that is it goes before one that begins with it"
        );
        assert_eq!(of([volume, "data"], &volume[..19]), "", "nobody is shown less of it");
        assert_eq!(of([volume, &format!("{}x", &volume[..20])], &volume[..20]), "", "either may be meant");
    }
}
