//! When VMs do what, and how much, drawn.

use super::cluster::{
    BEFORE_S, BETWEEN_S, CHUNK_BYTES, COUNTING_SPREAD, Cluster, INTERMEDIATE, LAUNCH_S, RESULT, TASK_BYTES,
};
use super::vm::{Ingest, Step, Worker};
use rand::RngExt as _;
use rand_pcg::Pcg64Mcg;

/// Small jobs before the launch, the map tasks of the experiment, and its reduce.
pub(super) fn worker(cluster: &Cluster, random: &mut Pcg64Mcg) -> Worker {
    let mut worker = Worker::default();
    let mut begins_s = random.random_range(0.0..200.0);
    while begins_s < BEFORE_S {
        let tasks = random.random_range(1..=4);
        worker.steps.push_back(Step::Wait(begins_s));
        (0..tasks).for_each(|_| map_task(&mut worker, random, false));
        begins_s += random.random_range(100.0..300.0);
    }
    let launch_s = LAUNCH_S + random.random_range(0.0..5.0);
    worker.steps.push_back(Step::Wait(launch_s));
    for _ in 0..cluster.map_tasks {
        map_task(&mut worker, random, true);
    }
    let input = cluster.map_tasks as f64 * TASK_BYTES;
    let reduced = input * INTERMEDIATE;
    worker.steps.extend([Step::Barrier, Step::Read(reduced), Step::Count(reduced), Step::Write(input * RESULT)]);
    worker.steps.push_back(Step::JobEnds);
    worker
}

fn map_task(worker: &mut Worker, random: &mut Pcg64Mcg, is_of_experiment: bool) {
    // The logarithm's distribution by the sum of twelve uniform values, which no table of a library changes.
    let normal = (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0;
    let slower = (COUNTING_SPREAD * normal).exp();
    if is_of_experiment {
        worker.steps.push_back(Step::TaskBegins);
    }
    for _ in 0..(TASK_BYTES / CHUNK_BYTES) as usize {
        worker.steps.extend([Step::Read(CHUNK_BYTES), Step::Count(CHUNK_BYTES * slower)]);
    }
    worker.steps.push_back(Step::Write(TASK_BYTES * INTERMEDIATE));
    if is_of_experiment {
        worker.steps.push_back(Step::TaskEnds);
    }
    worker.steps.push_back(Step::Rest(BETWEEN_S));
}

/// Small sessions before the launch, and that of the experiment.
pub(super) fn ingest(cluster: &Cluster, random: &mut Pcg64Mcg) -> Ingest {
    let mut ingest = Ingest::default();
    let mut begins_s = random.random_range(0.0..250.0);
    while begins_s < BEFORE_S {
        ingest.sessions.push_back((begins_s, random.random_range(0.5e9..3e9)));
        begins_s += random.random_range(150.0..350.0);
    }
    ingest.sessions.push_back((LAUNCH_S + random.random_range(0.0..2.0), cluster.ingest_bytes));
    ingest
}
