//! The shortest job first (Matteussi and Geyer 2018): how long each has left, as far as that is known, and what part of the disk that
//! they share each gets.
//!
//! The first job has all but a floor: after a minute, or as long as a job would need alone by what is known of it, every job keeps a quarter of
//! what equal parts would give it. So of jobs that are there from the beginning none takes more than that and four times as long as with
//! equal parts, however wrong the others' sizes are. (By induction: if that long after 4 t each has got what equal parts give it by t, no more
//! jobs are left than there, so a quarter of an equal part is enough from then on.) Before it is a tenth where sizes are known (docs/adr/0058,
//! 0061).
//!
//! Shares stand for a slice. What the first leaves of it, because it rests or will be done, would go to all others alike: so the next
//! is ahead with it, in order: the first has most, and the next most of the rest once the first is done (docs/adr/0049, 0061).

use minerva_model::Nanos;
use serde::{Deserialize, Serialize};

/// Of an equal part, that every job keeps.
pub(crate) const FLOOR: f64 = 0.25;
/// Of an equal part, that a job keeps which has waited for less than a minute where it is known when its turn comes.
const FLOOR_AT_FIRST: f64 = 0.1;
const AT_FIRST_SECONDS: f64 = 60.0;
/// Of those who are ahead one has so many times as much as the next.
const LESS: f64 = 8.0;
/// A size is known if it is this certain.
const KNOWN_CERTAINTY: f64 = 0.5;
/// A job that has waited so long counts as half as long: it is not overtaken for ever by jobs that come later.
const WAIT_SECONDS: f64 = 600.0;
/// The wait of a job that does not go first counts for so many times less. Long ones shorten by waiting faster than by being served, so that
/// two that come to count alike would else go first in turns, slice by slice, and both end as late as with equal parts.
const HEAD_START: f64 = 2.0;
/// A declared size is believed up to this many times itself.
const OVERRUN: f64 = 1.05;
/// Less is no rate to divide by.
const BYTES_PER_SECOND_MIN: f64 = 1.0;

/// How a job's remaining work is known, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Basis {
    /// By the size that was declared.
    Declared,
    /// By earlier runs of the same name.
    History,
    /// By the forecast of the session's size.
    Forecast,
    /// It is not: who has had least so far goes first (Nuyens and Wierman 2008).
    Attained,
}

impl Basis {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Declared => "its declared size",
            Self::History => "earlier runs",
            Self::Forecast => "its forecast",
            Self::Attained => "what it has had so far",
        }
    }
}

/// What is known of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Job {
    pub(crate) declared_bytes: Option<f64>,
    /// Mean of earlier runs, and how far that can be relied on, 0 to 1.
    pub(crate) history_bytes: Option<(f64, f64)>,
    /// What is left by the forecast, and its skill.
    pub(crate) forecast_bytes: Option<(f64, f64)>,
    pub(crate) attained_bytes: f64,
    /// What its tenant moved as other jobs before, so that nobody is new again and again.
    pub(crate) past_bytes: f64,
    /// The most that it has got in a slice.
    pub(crate) bytes_per_second: f64,
    /// Since it was first seen.
    pub(crate) age_seconds: f64,
    /// For how long it was held back, less how long it went first since.
    pub(crate) waited_seconds: f64,
    /// It did not use the disk in the last slice.
    pub(crate) rests: bool,
    /// It goes first up to now.
    pub(crate) leads: bool,
}

/// What is left of a job.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Remaining {
    pub(crate) seconds: f64,
    pub(crate) basis: Basis,
    /// 0 to 1.
    pub(crate) certainty: f64,
}

impl Job {
    pub(crate) fn remaining(&self) -> Remaining {
        let left = |total: f64| (total - self.attained_bytes).max(0.0);
        let declared = self.declared_bytes.filter(|bytes| self.attained_bytes <= OVERRUN * bytes);
        let history = self.history_bytes.filter(|(bytes, _)| self.attained_bytes <= *bytes);
        let forecast = self.forecast_bytes.filter(|(_, skill)| *skill > 0.0);
        let (bytes, basis, certainty) = match (declared, history, forecast) {
            (Some(bytes), _, _) => (left(bytes), Basis::Declared, 1.0),
            (None, Some((bytes, certainty)), _) => (left(bytes), Basis::History, certainty),
            (None, None, Some((bytes, skill))) => (bytes.max(0.0), Basis::Forecast, skill.min(1.0)),
            // As if it were half done: what has lasted long will last long.
            (None, None, None) => (self.attained_bytes + self.past_bytes, Basis::Attained, 0.0),
        };
        Remaining { seconds: bytes / self.bytes_per_second.max(BYTES_PER_SECOND_MIN), basis, certainty }
    }

    /// For how long it will keep the others from the disk if it goes first, as far as that is known.
    fn holds_up_seconds(&self) -> f64 {
        match self.remaining() {
            _ if self.rests => 0.0,
            Remaining { basis: Basis::Attained, .. } => f64::INFINITY,
            Remaining { seconds, .. } => seconds,
        }
    }

    /// It is known by bytes when it will be done.
    fn is_known(&self) -> bool {
        let Remaining { basis, certainty, .. } = self.remaining();
        matches!(basis, Basis::Declared | Basis::History) && certainty >= KNOWN_CERTAINTY
    }

    /// For how long it would be there alone, as far as its size is known.
    fn alone_seconds(&self) -> f64 {
        let Remaining { seconds, basis, .. } = self.remaining();
        match basis {
            Basis::Declared | Basis::History => {
                seconds + self.attained_bytes / self.bytes_per_second.max(BYTES_PER_SECOND_MIN)
            }
            Basis::Forecast | Basis::Attained => 0.0,
        }
    }

    /// It had all that it is known to need, and rests.
    pub(crate) fn is_done(&self) -> bool {
        self.rests && self.is_known() && self.remaining().seconds <= 0.0
    }

    /// By which jobs are sorted, beside one that goes first up to now or where none does. Who is shorter without having waited goes before that
    /// one at once.
    fn key(&self, is_led: bool) -> f64 {
        let shortens = 1.0 + self.waited_seconds.max(0.0) / WAIT_SECONDS;
        let shortens = if is_led && !self.leads { (shortens / HEAD_START).max(1.0) } else { shortens };
        self.remaining().seconds / shortens
    }
}

/// Each job's place, 0 for the first; the earlier in the list among equals.
pub(crate) fn places(jobs: &[Job]) -> Vec<usize> {
    let is_led = jobs.iter().any(|job| job.leads);
    let mut order: Vec<(f64, usize)> = jobs.iter().map(|job| job.key(is_led)).zip(0..).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let mut places = vec![0; jobs.len()];
    order.iter().enumerate().for_each(|(place, (_, job))| places[*job] = place);
    places
}

/// How many jobs at the head of the order are ahead of the others in a slice of so many seconds: those that rest or will be done within
/// it, and the next.
pub(crate) fn ahead(jobs: &[Job], places: &[usize], slice_seconds: f64) -> usize {
    let mut order: Vec<(usize, f64)> = places.iter().copied().zip(jobs.iter().map(Job::holds_up_seconds)).collect();
    order.sort_by_key(|(place, _)| *place);
    let mut held_up = 0.0;
    let within = order.iter().take_while(|(_, seconds)| {
        held_up += seconds;
        held_up < slice_seconds
    });
    (within.count() + 1).min(jobs.len())
}

/// The part of the disk of the job at a place among so many, of which so many are ahead, in units of an equal part. Those ahead share what
/// the first would have, so that the others keep their floor.
pub(crate) fn part(place: usize, jobs: usize, ahead: usize) -> f64 {
    if place < ahead { FLOOR + (1.0 - FLOOR) * jobs as f64 / ahead as f64 } else { FLOOR }
}

/// The same of all jobs, if those who wait for others whose sizes are known, and know their own, keep less at first: they are done no later
/// than with equal parts anyway unless sizes are wrong, and those who come later have not overtaken them for long.
pub(crate) fn parts(jobs: &[Job], places: &[usize], ahead: usize, in_order: bool) -> Vec<f64> {
    let are_known = jobs.iter().zip(places).all(|(job, place)| *place >= ahead || job.rests || job.is_known());
    let floor = |job: &Job| {
        let at_first = if in_order { job.alone_seconds().max(AT_FIRST_SECONDS) } else { AT_FIRST_SECONDS };
        let is_little = are_known && job.is_known() && job.age_seconds < at_first;
        if is_little { FLOOR_AT_FIRST } else { FLOOR }
    };
    let waiting = |(job, place): (&Job, &usize)| (*place >= ahead).then(|| floor(job));
    let kept: f64 = jobs.iter().zip(places).filter_map(waiting).sum();
    let all = jobs.len() as f64 - kept;
    let of_ahead = if in_order { shared(all, jobs, places, ahead) } else { vec![all / ahead.max(1) as f64; ahead] };
    jobs.iter().zip(places).map(|pair| waiting(pair).unwrap_or_else(|| of_ahead[*pair.1])).collect()
}

/// What those who are ahead have of what they have together, by place: each [`LESS`] times as much as the next, because that has its turn
/// within the slice as soon as the one before is done. Who rests or has nothing left holds up nobody: the next has as much.
fn shared(all: f64, jobs: &[Job], places: &[usize], ahead: usize) -> Vec<f64> {
    let mut in_order: Vec<&Job> = jobs.iter().collect();
    jobs.iter().zip(places).for_each(|(job, place)| in_order[*place] = job);
    let mut weight = 1.0;
    let mut weights: Vec<f64> = Vec::with_capacity(ahead);
    for job in &in_order[..ahead] {
        weights.push(weight);
        weight /= if job.holds_up_seconds() > 0.0 { LESS } else { 1.0 };
    }
    let floors = FLOOR * ahead as f64;
    let sum: f64 = weights.iter().sum();
    weights.into_iter().map(|weight| FLOOR + (all - floors) * weight / sum).collect()
}

/// How long a job has waited at the end of a slice. One that goes first has no more than that slice of it back: who is last again after a single
/// slice would be overtaken for ever.
pub(crate) fn waited_after(waited: Nanos, is_ahead: bool, slice: Nanos) -> Nanos {
    if is_ahead { waited - slice } else { waited + slice }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RATE: f64 = 100.0;

    /// Completion times of jobs that share a disk, each from when it came: by places, or in equal parts.
    fn completions(sizes: &[(f64, f64)], known: impl Fn(usize, f64) -> Job, shortest_first: bool) -> Vec<f64> {
        played(sizes, known, shortest_first).0
    }

    /// The same, and how often another job went first than before.
    fn played(sizes: &[(f64, f64)], known: impl Fn(usize, f64) -> Job, shortest_first: bool) -> (Vec<f64>, usize) {
        let (mut leader, mut changes) = (None, 0);
        let mut left: Vec<f64> = sizes.iter().map(|(_, size)| *size).collect();
        let mut done = vec![0.0; sizes.len()];
        let mut waited = vec![Nanos::ZERO; sizes.len()];
        let mut now = 0.0;
        loop {
            let present: Vec<usize> = (0..sizes.len()).filter(|job| left[*job] > 0.0 && sizes[*job].0 <= now).collect();
            let next = (0..sizes.len())
                .filter(|job| sizes[*job].0 > now)
                .map(|job| sizes[job].0)
                .fold(f64::INFINITY, f64::min);
            if present.is_empty() {
                if next.is_infinite() {
                    return (done, changes);
                }
                now = next;
                continue;
            }
            let jobs: Vec<Job> = present
                .iter()
                .map(|job| {
                    let known = known(*job, sizes[*job].1 - left[*job]);
                    let (age_seconds, waited_seconds) = (now - sizes[*job].0, waited[*job].as_secs_f64());
                    Job { age_seconds, waited_seconds, leads: leader == Some(*job), ..known }
                })
                .collect();
            let places = places(&jobs);
            let first = present.iter().zip(&places).find(|(_, place)| **place == 0).map(|(job, _)| *job);
            changes += usize::from(leader.is_some() && leader != first);
            leader = first;
            let ahead = ahead(&jobs, &places, 1.0);
            let parts = if shortest_first { parts(&jobs, &places, ahead, true) } else { vec![1.0; jobs.len()] };
            let rate = |index: usize| parts[index] * RATE / present.len() as f64;
            // A slice, or until the first is done or the next comes.
            let first = present.iter().enumerate().map(|(index, job)| left[*job] / rate(index)).fold(1.0, f64::min);
            let step = first.min(next - now).max(1e-9);
            for (index, job) in present.iter().enumerate() {
                left[*job] -= rate(index) * step;
                waited[*job] = waited_after(waited[*job], places[index] < ahead, Nanos((step * 1e9) as u64));
                if left[*job] <= 1e-6 {
                    (left[*job], done[*job]) = (0.0, now + step - sizes[*job].0);
                }
            }
            now += step;
        }
    }

    fn mean(times: &[f64]) -> f64 {
        times.iter().sum::<f64>() / times.len() as f64
    }

    fn batch(sizes: &[f64]) -> Vec<(f64, f64)> {
        sizes.iter().map(|size| (0.0, *size)).collect()
    }

    fn declared(bytes: f64, attained_bytes: f64) -> Job {
        Job { declared_bytes: Some(bytes), attained_bytes, bytes_per_second: RATE, ..Job::default() }
    }

    #[test]
    fn sizes_are_known_by_the_best_there_is_and_a_declaration_ends_with_itself() {
        let all = Job {
            declared_bytes: Some(900.0),
            history_bytes: Some((2000.0, 0.8)),
            forecast_bytes: Some((500.0, 0.4)),
            attained_bytes: 100.0,
            past_bytes: 0.0,
            bytes_per_second: 10.0,
            age_seconds: 0.0,
            waited_seconds: 0.0,
            rests: false,
            leads: false,
        };
        let said = |job: Job| {
            let Remaining { seconds, basis, certainty } = job.remaining();
            (seconds, basis, certainty)
        };
        assert_eq!(said(all), (80.0, Basis::Declared, 1.0));
        assert_eq!(said(Job { attained_bytes: 1000.0, ..all }), (100.0, Basis::History, 0.8));
        assert_eq!(said(Job { attained_bytes: 3000.0, ..all }), (50.0, Basis::Forecast, 0.4));
        assert_eq!(said(Job { past_bytes: 700.0, ..all }), (80.0, Basis::Declared, 1.0));
        let often = Job { past_bytes: 700.0, forecast_bytes: None, attained_bytes: 3000.0, ..all };
        assert_eq!(said(often), (370.0, Basis::Attained, 0.0));
        let unskilled = Job { attained_bytes: 3000.0, forecast_bytes: Some((1.0, -0.1)), ..all };
        assert_eq!(said(unskilled), (300.0, Basis::Attained, 0.0));
    }

    #[test]
    fn the_next_job_is_ahead_where_the_first_leaves_of_the_slice() {
        let count = |jobs: &[Job]| ahead(jobs, &places(jobs), 1.0);
        let [short, long, longer] = [10.0, 1_000.0, 2_000.0].map(|bytes| declared(bytes, 0.0));
        assert_eq!(count(&[longer, long]), 1);
        assert_eq!(count(&[longer, short, long]), 2, "a tenth of a second, and the next");
        assert_eq!(count(&[longer, Job { rests: true, ..long }]), 2, "it computes, or is done");
        assert_eq!(count(&[short, Job { rests: true, ..long }, longer]), 3);
        assert_eq!(count(&[declared(60.0, 0.0), declared(70.0, 0.0), longer]), 2, "the two fill it");
        let unknown = |attained_bytes| Job { attained_bytes, bytes_per_second: RATE, ..Job::default() };
        assert_eq!(count(&[unknown(1.0), unknown(500.0)]), 1, "nobody knows when it is done");
        assert_eq!((count(&[short]), count(&[])), (1, 0));
    }

    #[test]
    fn who_waits_keeps_less_than_a_quarter_only_while_all_know_when_its_turn_comes_and_for_a_minute_or_as_long_as_it_needs()
     {
        let of = |jobs: &[Job]| {
            let places = places(jobs);
            parts(jobs, &places, ahead(jobs, &places, 1.0), true)
        };
        let [short, long, longer] = [1_000.0, 2_000.0, 3_000.0].map(|bytes| declared(bytes, 0.0));
        let unknown = Job { attained_bytes: 1_500.0, bytes_per_second: RATE, ..Job::default() };
        let by_runs = |certainty| Job { history_bytes: Some((3_000.0, certainty)), declared_bytes: None, ..longer };
        let cases = [
            (vec![longer, short, long], vec![0.1, 2.8, 0.1], "all are known"),
            (vec![Job { age_seconds: 60.0, ..longer }, short, long], vec![0.25, 2.65, 0.1], "the minute is over"),
            (vec![longer, short, unknown], vec![0.1, 2.65, 0.25], "nobody knows how short it is"),
            (vec![longer, Job { attained_bytes: 10.0, ..unknown }, long], vec![0.25, 2.5, 0.25], "nor for how long"),
            (vec![by_runs(0.5), short], vec![0.1, 1.9], "runs were alike"),
            (vec![by_runs(0.4), short], vec![0.25, 1.75], "runs that differ tell little"),
            (
                vec![longer, declared(10.0, 0.0), short],
                vec![0.1, FLOOR + 2.4 * 8.0 / 9.0, FLOOR + 2.4 / 9.0],
                "in order",
            ),
            (vec![longer, Job { rests: true, ..short }, long], vec![0.1, 1.45, 1.45], "who rests holds up nobody"),
            (
                vec![Job { age_seconds: 79.0, ..declared(8_000.0, 0.0) }, short],
                vec![0.1, 1.9],
                "it needs longer itself",
            ),
            (vec![Job { age_seconds: 80.0, ..declared(8_000.0, 0.0) }, short], vec![0.25, 1.75], "no longer"),
        ];
        for (jobs, expected, what) in cases {
            let parts = of(&jobs);
            assert!(
                parts.iter().zip(&expected).all(|(part, wanted)| (part - wanted).abs() < 1e-9),
                "{what}: {parts:?}"
            );
        }
        assert_eq!((of(&[short]), of(&[])), (vec![1.0], vec![]));
    }

    #[test]
    fn a_job_that_declares_one_byte_and_reads_a_terabyte_is_last_after_that_byte() {
        let liar = |attained| declared(1.0, attained);
        let honest = |attained| declared(1e9, attained);
        assert_eq!(places(&[honest(0.0), liar(0.0)]), [1, 0]);
        assert_eq!(places(&[honest(0.0), liar(1e9 + 1.0)]), [0, 1]);
        // Until it has had as much as another has left it is the shorter: least attained first.
        let sizes = batch(&[1000.0, 1e6]);
        let with_lie = completions(
            &sizes,
            |job, attained| if job == 0 { declared(1000.0, attained) } else { liar(attained) },
            true,
        );
        let fair = completions(&sizes, |_, _| Job::default(), false);
        assert!(with_lie[0] <= fair[0] * 1.2, "{} {}", with_lie[0], fair[0]);
    }

    #[test]
    fn a_job_that_is_merely_old_is_not_before_one_that_is_known_to_be_short() {
        let old = Job {
            attained_bytes: 10_000.0 * RATE,
            bytes_per_second: RATE,
            age_seconds: 7.0 * 86_400.0,
            ..Job::default()
        };
        let new = declared(600.0 * RATE, 0.0);
        assert_eq!(places(&[old, new]), [1, 0]);
        let waited = Job { waited_seconds: 3.0 * 3_600.0, ..old };
        assert_eq!(places(&[waited, new]), [0, 1], "one that was held back for hours is");
    }

    /// Slices of a second until a job of 2,000 s is done beside jobs of 300 s, each of which comes when the one before is done.
    fn slices_beside_ever_new_ones(ages: bool) -> usize {
        let sizes = [2_000.0 * RATE, 300.0 * RATE];
        let (mut attained, mut since, mut waited) = ([0.0; 2], [0; 2], [Nanos::ZERO; 2]);
        let (mut slices, mut leader) = (0, None);
        while attained[0] < sizes[0] {
            let jobs = [0, 1].map(|job| Job {
                age_seconds: (slices - since[job]) as f64,
                waited_seconds: if ages { waited[job].as_secs_f64() } else { 0.0 },
                leads: leader == Some(job),
                ..declared(sizes[job], attained[job])
            });
            let places = places(&jobs);
            let ahead = ahead(&jobs, &places, 1.0);
            let parts = parts(&jobs, &places, ahead, true);
            leader = places.iter().position(|place| *place == 0);
            slices += 1;
            for job in 0..2 {
                attained[job] += parts[job] * RATE / 2.0;
                waited[job] = waited_after(waited[job], places[job] < ahead, Nanos::SECOND);
            }
            if attained[1] >= sizes[1] {
                (attained[1], since[1], waited[1]) = (0.0, slices, Nanos::ZERO);
            }
        }
        slices
    }

    #[test]
    fn long_jobs_go_one_after_the_other_and_not_in_turns() {
        let hours = [3_600.0, 7_200.0, 10_800.0];
        for (seconds, most_changes) in [(&[1_900.0, 2_000.0][..], 2), (&[3_000.0, 3_600.0], 2), (&hours, 6)] {
            let sizes: Vec<f64> = seconds.iter().map(|seconds| seconds * RATE).collect();
            let known = |job: usize, attained| declared(sizes[job], attained);
            let (ours, changes) = played(&batch(&sizes), known, true);
            let fair = completions(&batch(&sizes), known, false);
            assert!(mean(&ours) <= 0.8 * mean(&fair), "{seconds:?}: {} {}", mean(&ours), mean(&fair));
            assert!(changes <= most_changes, "{seconds:?}: {changes}");
        }
    }

    #[test]
    fn a_shorter_job_that_comes_later_goes_first_at_once_though_another_does() {
        let first = Job { leads: true, ..declared(1_000.0 * RATE, 0.0) };
        assert_eq!(places(&[first, declared(900.0 * RATE, 0.0)]), [1, 0]);
        let waited = |waited_seconds| Job { waited_seconds, ..declared(1_100.0 * RATE, 0.0) };
        assert_eq!(places(&[first, waited(600.0)]), [0, 1], "its wait counts for half");
        assert_eq!(places(&[first, waited(900.0)]), [1, 0]);
        assert_eq!(places(&[Job { leads: false, ..first }, waited(600.0)]), [1, 0], "nobody goes first up to now");
    }

    #[test]
    fn who_waits_long_is_not_overtaken_for_ever() {
        // A long job, and short ones that come as fast as the disk serves them.
        let sizes: Vec<(f64, f64)> =
            std::iter::once((0.0, 20_000.0)).chain((0..2000).map(|number| (f64::from(number), 99.0))).collect();
        let times = completions(&sizes, |job, attained| declared(sizes[job].1, attained), true);
        let fair = completions(&sizes, |_, _| Job::default(), false);
        assert!(times[0] <= fair[0] / FLOOR + AT_FIRST_SECONDS, "{} {}", times[0], fair[0]);
        // Where they last minutes its floor alone would be all that it has for hours.
        let [aged, never] = [true, false].map(slices_beside_ever_new_ones);
        assert!(2 * aged < never && aged > 4_000, "{aged} {never}");
    }

    proptest! {
        #[test]
        fn with_true_sizes_the_mean_is_never_above_equal_parts(sizes in prop::collection::vec(1.0..5e4, 1..10)) {
            let known = |job: usize, attained| declared(sizes[job], attained);
            let (ours, fair) =
                (completions(&batch(&sizes), known, true), completions(&batch(&sizes), known, false));
            prop_assert!(mean(&ours) <= mean(&fair) * (1.0 + 1e-6), "{} {}", mean(&ours), mean(&fair));
            let last = |times: &[f64]| times.iter().copied().fold(0.0, f64::max);
            prop_assert!((last(&ours) - last(&fair)).abs() <= 1e-6 * last(&fair), "the last is done when it was");
        }

        #[test]
        fn wrong_sizes_cost_no_job_more_than_a_minute_or_its_stated_time_and_four_times_what_equal_parts_take(
            sizes in prop::collection::vec((1.0..5e4, 1.0..5e4), 1..10),
        ) {
            let truth: Vec<f64> = sizes.iter().map(|(size, _)| *size).collect();
            let ours = completions(&batch(&truth), |job, attained| declared(sizes[job].1, attained), true);
            let fair = completions(&batch(&truth), |_, _| Job::default(), false);
            for ((ours, fair), (_, said)) in ours.iter().zip(&fair).zip(&sizes) {
                let at_first = AT_FIRST_SECONDS.max(said / RATE);
                prop_assert!(*ours <= (fair / FLOOR + at_first) * (1.0 + 1e-6), "{ours} {fair} {said}");
            }
        }
    }
}
