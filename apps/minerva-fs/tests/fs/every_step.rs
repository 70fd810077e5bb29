//! A service is killed at every step of placing a file and of moving it, on a host and as in a guest, and another one finds what it left.

use crate::deferred::{PATIENCE, assert_tidy, is_link, start as start_host, try_files, until, until_moved, write};
use crate::guest_role::start as start_guest;
use crate::pool_folder::{PoolFolder, Service};
use minerva_api::cache::{Request, ask};
use minerva_store::{DeferralStep, RedoLog};
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// No file takes so many steps.
const STEPS_MAX: u32 = 40;

/// Whose service is killed, and where its file is to go.
struct Scene {
    mover: PoolFolder,
    /// Its redo log.
    log: PathBuf,
    /// Of a guest, whose service serves the trees.
    host: Option<(Service, PoolFolder)>,
    target: PathBuf,
}

impl Scene {
    fn of_host() -> Self {
        let (mover, target) = start_host();
        let log = mover.pool().join("deferred.db");
        Self { mover, log, host: None, target }
    }

    fn of_guest() -> Self {
        let (host, service, mover, target) = start_guest();
        let log = mover.folder.path().join("log/deferred.db");
        Self { mover, log, host: Some((service, host)), target }
    }

    /// Whose trees hold what waits.
    fn trees(&self) -> &PoolFolder {
        self.host.as_ref().map_or(&self.mover, |(_, host)| host)
    }

    /// Puts a file and has it moved, by a service that ends at a step; whether the file was acknowledged, and whether the service came to
    /// that step.
    fn die_at(&self, step: u32, path: &Path, content: &[u8]) -> (bool, bool) {
        let mut service = self.mover.serve_dying(step);
        let is_put = catch_unwind(AssertUnwindSafe(|| write(&self.mover, path, content))).is_ok();
        let begun = Instant::now();
        while is_put && service.0.try_wait().unwrap().is_none() && begun.elapsed() < PATIENCE {
            // It may end between any two of these.
            let _ = ask(&self.mover.socket(), &Request::Flush { directory: None });
            if try_files(&self.mover).is_some_and(|files| files.is_empty()) {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        // Who got no answer has seen it die, a moment before its parent does.
        while !is_put && service.0.try_wait().unwrap().is_none() && begun.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        let has_died = service.0.try_wait().unwrap().is_some();
        service.kill();
        (is_put, has_died)
    }
}

/// Each step, and one more, so that the last kill comes after the end.
fn kill_at_every_step(start: impl Fn() -> Scene) {
    let (mut died, content) = (0, vec![9; 2_500_000]);
    for step in 1..STEPS_MAX {
        let scene = start();
        let path = scene.target.join("file");
        let (is_put, has_died) = scene.die_at(step, &path, &content);
        died += u32::from(has_died);
        let (log, _) = RedoLog::open(&scene.log).unwrap();
        let rows = log.all().unwrap();
        assert!(
            rows.iter().all(|row| row.step != DeferralStep::Copying),
            "step {step}: the log was written for nothing"
        );
        drop(log);
        let service = scene.mover.serve();
        until_moved(&scene.mover);
        assert!(!is_link(&path), "step {step}: a link was left");
        if is_put {
            assert!(fs::read(&path).unwrap() == content, "step {step}");
        } else {
            // It was not acknowledged: there is nothing, or an empty file.
            assert!(fs::read(&path).is_ok_and(|data| data.is_empty()) || !path.exists(), "step {step}");
        }
        assert_tidy(scene.trees(), &scene.target);
        assert!(service.terminate());
        if is_put && !has_died {
            break;
        }
    }
    println!("killed at {died} steps");
    assert!(died > 10, "only {died} steps were met");
}

#[test]
fn at_every_step_a_kill_loses_nothing_and_leaves_nothing_half() {
    kill_at_every_step(Scene::of_host);
}

#[test]
fn at_every_step_a_kill_of_a_guests_service_loses_nothing_and_leaves_nothing_half() {
    kill_at_every_step(Scene::of_guest);
}

#[test]
fn a_part_of_a_copy_that_no_log_knows_of_goes_though_its_link_is_gone_too() {
    let parts = |folder: &Path| {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with(".minerva-")).count()
    };
    for start in [Scene::of_host, Scene::of_guest] {
        let mut met = 0;
        for step in 1..STEPS_MAX {
            let scene = start();
            let path = scene.target.join("file");
            let (is_put, has_died) = scene.die_at(step, &path, &vec![9; 2_500_000]);
            if !has_died {
                break;
            }
            if !is_put || parts(&scene.target) == 0 || !is_link(&path) {
                continue;
            }
            met += 1;
            fs::remove_file(&path).unwrap();
            let _service = scene.mover.serve();
            until(&scene.mover, "it is left", |files| files.iter().all(|file| file.step == "left"));
            assert_eq!(parts(&scene.target), 0, "step {step}");
        }
        assert!(met > 2, "a part of a copy was met {met} times only");
    }
}
