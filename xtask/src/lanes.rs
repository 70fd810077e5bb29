//! What of the tests runs beside what, so that neither a processor nor a disk waits for the other.
//!
//! One thread runs the programs that share the machine's disks, cgroups and mounts, one after the other: they mostly wait. A second
//! one runs those that need only a processor, and gives way to the first, which helps it at the end. A third one has what only
//! compiles, such as clippy; it gets the processors when nothing else wants them. A fourth one builds the tools that the last programs
//! of the first need.

mod lane;
#[cfg(test)]
mod tests;

use crate::interrupts;
use crate::shell::is_installed;
use crate::skips::Skips;
use crate::test_programs::TestProgram;
use lane::{Failure, Lane, RunsWith};
pub(crate) use lane::{Show, Step};
use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::ScopedJoinHandle;

/// What is run.
pub(crate) struct Plan<'a> {
    /// Every program of tests.
    pub(crate) programs: &'a [TestProgram],
    /// Steps that share the machine too, after the programs that do.
    pub(crate) sharing: Vec<Step<'a>>,
    /// Steps that wait for nothing but a processor.
    pub(crate) compiling: Vec<Step<'a>>,
    /// Builds what some programs need, and says itself what cannot be had.
    pub(crate) tools: Box<dyn FnOnce() + Send + 'a>,
    /// The `PATH` for the programs.
    pub(crate) path: &'a OsStr,
    /// What gets the output.
    pub(crate) show: Show<'a>,
}

/// Runs all of it, even when something fails or cannot be started; titles of the steps that failed, with one for all programs.
///
/// Of a few programs that fail while something else runs the tests that failed are run once more, alone: on a loaded machine a test
/// of the kernel can miss what it waits for. What fails then, or is skipped, has failed; what passes then is named at the end, so that
/// it is not forgotten. A program that hung has failed at once: to wait for it again would take the time of all others. So has one that crashed.
pub(crate) fn run(plan: Plan<'_>, skips: &mut Skips) -> Vec<&'static str> {
    let Plan { programs, sharing: sharing_steps, compiling, tools, path, show } = plan;
    let (mut sharing, mut alone): (Vec<_>, Vec<_>) = programs.iter().partition(|program| program.is_sharing());
    sharing.sort_by_key(|program| program.needs_tools());
    // What takes longest begins first, so that no thread is left with it at the end.
    alone.sort_by_key(|program| program.place_among_long().unwrap_or(usize::MAX));
    let waiting = Mutex::new(alone.into_iter());
    // Who needs them first waits for them.
    let tools = LazyLock::new(tools);
    let wait_for_tools = || *tools;
    let with = RunsWith { path, show, wait_for_tools: &wait_for_tools };
    std::thread::scope(|scope| {
        scope.spawn(wait_for_tools);
        let beside = scope.spawn(|| {
            let mut lane = Lane::new(with);
            lane.run_waiting(&waiting);
            lane
        });
        let compiler = scope.spawn(|| {
            yield_to_all();
            let mut lane = Lane::new(with);
            lane.take_steps(compiling);
            lane
        });
        let mut lane = Lane::new(with);
        lane.run_all(&sharing);
        lane.take_steps(sharing_steps);
        lane.run_waiting(&waiting);
        let mut lanes = [lane, joined(beside), joined(compiler)];
        // Both threads have stopped where any are left.
        let left = waiting.lock().unwrap_or_else(PoisonError::into_inner).by_ref().collect::<Vec<_>>();
        lanes[0].failed.extend(left.into_iter().map(|program| (program, Failure::NotRun)));
        judged(lanes, with, skips)
    })
}

/// What failed for good.
fn judged<'a>(lanes: [Lane<'a>; 3], with: RunsWith<'a>, skips: &mut Skips) -> Vec<&'static str> {
    let mut failed: Vec<_> = lanes.iter().flat_map(|lane| lane.failed_steps.iter().copied()).collect();
    let programs: Vec<_> = lanes.iter().flat_map(|lane| lane.failed.iter()).collect();
    let mut again = Lane::new(with);
    // What was interrupted has failed, and would be a long list.
    let passed = if interrupts::came() { programs.is_empty() } else { again.passed_alone(&programs) };
    failed.extend((!passed).then_some("programs of tests"));
    for lane in lanes.into_iter().chain([again]) {
        skips.join(lane.skips);
    }
    failed
}

/// A thread that panicked has said so, and so does this one then.
fn joined<'a>(thread: ScopedJoinHandle<'_, Lane<'a>>) -> Lane<'a> {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// From now on this thread, and all that it starts, runs only when a processor would otherwise be idle. Where that cannot be it
/// runs like the others, which costs time and nothing else.
fn yield_to_all() {
    let thread = std::fs::read_link("/proc/thread-self").unwrap_or_default();
    let Some(number) = thread.file_name().filter(|_| is_installed("chrt")) else { return };
    let mut policy = Command::new("chrt");
    let _ = policy.args(["--idle", "--pid", "0"]).arg(number).stdout(Stdio::null()).stderr(Stdio::null()).status();
}
