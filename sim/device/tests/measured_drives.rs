//! The model against every measured drive in the data folder: the figure `disk-model`.

#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use minerva_sim_device::disksim::{self, Sources};
use minerva_sim_device::validate::{self, Agreement};
use std::fs;
use std::path::Path;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/disks");

fn agreement(folder: &Path, name: &str) -> Agreement {
    let read = |file: &str| fs::read_to_string(folder.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
    let diskspecs = read(&format!("{name}.diskspecs"));
    let model = disksim::model_file(&diskspecs).map(|file| read(&file)).unwrap_or_default();
    let seek = disksim::seek_file(&model).map(|file| read(&file));
    let parv = read(&format!("{name}.parv"));
    let sources = Sources { diskspecs: &diskspecs, model: &model, seek: seek.as_deref(), parv: Some(&parv) };
    let profile = disksim::import(name, &sources).expect(name);
    let trace = validate::parse_trace(&read(&format!("{name}.trace"))).expect(name);
    Agreement::measure(profile.build(None, 1).as_mut(), &trace)
}

#[test]
fn service_times_agree_with_every_measured_drive() {
    let folder = Path::new(FOLDER);
    let Ok(entries) = fs::read_dir(folder) else {
        println!("skipped: needs the measured drives in {FOLDER}");
        return;
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "trace"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    for name in names {
        let agreement = agreement(folder, &name);
        println!("{name:12} rms {:.3} ms, demerit {:.1} %", agreement.rms_ms, agreement.demerit() * 100.0);
        assert!(agreement.is_met(&name), "{name}: {agreement:?}");
    }
}

#[test]
fn a_measured_drive_is_a_profile_like_any_other() {
    let folder = Path::new(FOLDER);
    let Ok(diskspecs) = fs::read_to_string(folder.join("atlas10k.diskspecs")) else {
        println!("skipped: needs the measured drives in {FOLDER}");
        return;
    };
    let read = |file: &str| fs::read_to_string(folder.join(file)).expect(file);
    let (model, seek) = (read("atlas10k.model"), read("atlas10k.seek"));
    let sources = Sources { diskspecs: &diskspecs, model: &model, seek: Some(&seek), parv: None };
    let profile = disksim::import("atlas10k", &sources).unwrap();
    // `Block count` of the model file.
    assert_eq!(profile.capacity_bytes / 512, 17_938_986);
    let text = toml::to_string(&profile).unwrap();
    assert_eq!(minerva_sim_device::Profile::parse(&text).unwrap(), profile);
}

#[test]
fn a_broken_parameter_file_is_named_with_its_line() {
    let diskspecs = "disksim_disk X {\n Model = dm_disk M {\n  Number of data surfaces = 2,\n  Number of cylinders = 9,\n\
                     Mechanical Model = dm_mech_g1 {\n Seek type = drum,\n Rotation speed (in rpms) = 7200 },\n\
                     Layout Model = dm_layout_g1 { Zones = [] } } }";
    let sources = Sources { diskspecs, ..Sources::default() };
    let error = disksim::import("x", &sources).unwrap_err();
    assert_eq!((error.file, error.line), ("model", 6), "{error}");
    let empty = disksim::import("x", &Sources::default()).unwrap_err();
    assert!(empty.to_string().contains("diskspecs"), "{empty}");
}

#[test]
fn a_drive_without_a_whole_surface_is_refused() {
    let files = include_str!("../../../fuzz/corpus/disksim/drive")
        .replace("surfaces = 4,", "surfaces = 0.4,")
        .replace("scheme = 0,", "scheme = 3,");
    let mut parts = files.split("\n---\n");
    let mut part = || parts.next().expect("a part");
    let sources = Sources { diskspecs: part(), model: part(), seek: Some(part()), parv: Some(part()) };
    let error = disksim::import("drive", &sources).expect_err("no surface");
    assert!(error.to_string().contains("0 data surfaces are not within 1 and 256"), "{error}");
}
