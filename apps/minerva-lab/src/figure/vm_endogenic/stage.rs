//! Plays one run of the scene in guests.

use super::remembered::Remembered;
use crate::binaries;
use crate::figure::in_guest;
use crate::vm_cli::VmEndogenicArguments;
use anyhow::Context as _;
use minerva_lab::figure::{VmSceneArm, VmScenePlan, VmSceneRun, run_vm_scene};
use minerva_lab::guest::guest_directory;
use minerva_lab::scene::{Live, Scene, TenantPlan, endogenic_slice_ms};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Between two lines of progress.
const LINE_EVERY_S: f64 = 10.0;

/// Who steers in a run. The number is that of the way in which tenants take part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Arm {
    Shipped,
    Equal,
    Minerva(usize),
}

/// What all runs have in common.
pub(super) struct Stage<'a> {
    arguments: &'a VmEndogenicArguments,
    interrupted: Arc<AtomicBool>,
    minervad: PathBuf,
    worker: PathBuf,
    agent: PathBuf,
    directory: tempfile::TempDir,
}

impl<'a> Stage<'a> {
    /// Finds the programs, and makes the guests' ones small.
    pub(super) fn prepare(arguments: &'a VmEndogenicArguments, interrupted: Arc<AtomicBool>) -> anyhow::Result<Self> {
        let output = &arguments.output;
        let (minervad, agent) = (binaries::minervad(output)?, binaries::minerva_agent(output)?);
        let own = std::env::current_exe().context("failed to find this program")?;
        let directory = guest_directory()?;
        let [worker, agent] = [own, agent].map(|program| in_guest::stripped(&program, directory.path()));
        Ok(Self { arguments, interrupted, minervad, worker: worker?, agent: agent?, directory })
    }

    pub(super) fn play(&self, arm: Arm, scenes: &[Scene]) -> anyhow::Result<(VmSceneRun, Remembered)> {
        let keeps = self.directory.path().join("kept");
        let (scene, steered) = match arm {
            Arm::Shipped => (&scenes[0], VmSceneArm::Shipped),
            Arm::Equal => (&scenes[0], VmSceneArm::Equal),
            Arm::Minerva(way) => {
                let (program, slice_ms) = (self.minervad.clone(), endogenic_slice_ms(self.arguments.scale));
                (&scenes[way], VmSceneArm::Minerva { program, slice_ms, keeps: keeps.clone() })
            }
        };
        let (profile, worker, agent) = (self.arguments.profile.as_str(), &self.worker, &self.agent);
        let plan = VmScenePlan { scene, profile, arm: steered, worker, agent };
        let run = run_vm_scene(&plan, &self.interrupted, &mut progress(scene))?;
        let remembered = match arm {
            Arm::Minerva(_) => Remembered::read(&keeps.join("minerva.db"), scene)?,
            Arm::Shipped | Arm::Equal => Remembered::default(),
        };
        // The next daemon of this figure begins without it.
        if keeps.exists() {
            std::fs::remove_dir_all(&keeps).with_context(|| format!("failed to remove {}", keeps.display()))?;
        }
        Ok((run, remembered))
    }
}

/// Says now and then how far everyone is.
fn progress(scene: &Scene) -> impl FnMut(&Live) + Send {
    let mut line_at_s = LINE_EVERY_S;
    move |live: &Live| {
        if live.elapsed_s < line_at_s {
            return;
        }
        line_at_s += LINE_EVERY_S;
        let part = |((done, all), tenant): (&(u64, u64), &TenantPlan)| {
            format!("{} {} %", tenant.name, done.saturating_mul(100) / (*all).max(1))
        };
        let parts: Vec<String> = live.bytes.iter().zip(&scene.tenants).map(part).collect();
        eprintln!("  {:5.1} s: {}", live.elapsed_s, parts.join(", "));
    }
}
