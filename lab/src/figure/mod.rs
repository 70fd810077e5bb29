//! Measurements behind the figures: one file a figure, or a group of them that one run answers.

mod bite;
mod cache;
mod characterise;
mod clients;
mod crowd;
mod gaps;
mod idle;
mod kill;
mod knob_files;
mod makespan;
mod race;
mod rise;
mod store_rows;
mod undo;
mod vm;

pub use bite::{BitePlan, BiteResult, SHARES, weights_bite};
pub use cache::{
    CacheCrowdPlan, CacheCrowdResult, HOSTILE_OPENED, HostilePlan, HostileResult, HostileWindow, Hostility,
    MigrationArm, MigrationPlan, MigrationRun, NEIGHBOURS, NeighbourRun, ThroughputPlan, ThroughputResult, Transfer,
    cache_crowd, cache_hostile, cache_migration, cache_throughput, hostile_main,
};
pub use characterise::{BatchProgram, CharacterisePlan, Characterised, Does, TruePhase, batch_programs, characterise};
pub use clients::{CallersReport, CallersSpec, ClientsPlan, ClientsResult, clients};
pub use crowd::{CrowdPlan, CrowdResult, crowd};
pub use gaps::{Bursts, GAPS_DEADLINE_S, GapsPlan, GapsReader, GapsResult, GapsWork, gaps};
pub use idle::{Alone, Beside, IdlePlan, IdleResult, Window, idle};
pub use kill::{Bounds, EffectResult, KillPlan, KillResult, ReadStore, kill_restore};
pub use makespan::{MakespanJob, MakespanPlan, MakespanRound, MakespanRun, alike_jobs, makespan, mixed_jobs};
pub use rise::{RisePlan, RiseResult, rise};
pub use store_rows::StoreRows;
pub use undo::{UndoBy, UndoPlan, UndoResult, undo_bites};
pub use vm::{
    Record, VmArm, VmGuest, VmKept, VmPlan, VmProgress, VmPromise, VmReader, VmRun, VmSceneArm, VmScenePlan,
    VmSceneRun, VmTagged, VmWaited, inversions, judge_contract, judge_tags, proportion_error, run_vm_scene, run_vms,
};
