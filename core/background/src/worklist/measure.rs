//! What a slice tells of a disk and of what its work costs.

use super::{STEAL_AHEAD, Worklist};
use crate::ahead::{Forecast, Foreground};
use minerva_model::{BackgroundPace, DeviceId, Effect, Nanos};

impl Worklist {
    pub(super) fn measure(
        &mut self,
        now: Nanos,
        device: DeviceId,
        (foreground, seconds): (Foreground, f64),
        forecast: Forecast<'_>,
    ) {
        let disk = self.disks.entry(device).or_default();
        let works = self.works.values_mut().filter(|work| work.queue.device == device);
        let (mut ran_all, mut taken) = (0.0, 0.0);
        let (mut may_use_gaps, mut ran_in_gaps) = (false, false);
        for work in works {
            let ran = std::mem::take(&mut work.ran).as_secs_f64();
            ran_all += ran;
            let beside = std::mem::take(&mut work.ran_beside).as_secs_f64();
            if matches!(work.order.pace, BackgroundPace::Share(_)) || work.is_beside_others {
                taken += beside * work.learnt.slow_down();
            }
            match work.order.pace {
                // Beside others it uses no gap: a chunk that would be lost is ended so.
                BackgroundPace::Gaps if work.is_beside_others => {}
                BackgroundPace::Gaps if work.is_ready() => {
                    (may_use_gaps, ran_in_gaps) = (true, ran_in_gaps || ran > 0.0)
                }
                BackgroundPace::Share(_) if foreground.requests_per_second > 0.0 && seconds > 0.0 => {
                    let alone = disk.alone.get().unwrap_or(0.0);
                    work.learnt.slowed(foreground.requests_per_second, alone, ran / seconds);
                }
                _ => {}
            }
        }
        if seconds <= 0.0 {
            return;
        }
        let foreground = foreground.without_work(taken / seconds);
        disk.foreground(&foreground, seconds, forecast);
        if let Some(in_force) = self.plans.get_mut(&device) {
            in_force.left_by_foreground(now, disk.free_cores(foreground.busy), seconds);
        }
        let is_alone = ran_all <= 0.0 && !(self.settings.calibrates_alone && foreground.is_beside_work);
        if let Some(calibrating) = self.calibrating.get_mut(&device).filter(|_| is_alone) {
            calibrating.slice(&foreground, seconds);
        }
        if may_use_gaps {
            disk.gaps((1.0 - foreground.busy).clamp(0.0, 1.0), ran_all / seconds, seconds);
        }
        if ran_all <= 0.0 && foreground.requests_per_second > 0.0 {
            disk.alone.add(foreground.requests_per_second, seconds, STEAL_AHEAD.as_secs_f64());
        }
    }

    pub(super) fn learn(&mut self, device: DeviceId) -> Vec<Effect> {
        let works = self.works.values_mut().filter(|work| work.queue.device == device);
        let news = works.filter_map(|work| Some((work.queue.id, work.learnt.take_news()?)));
        let effects: Vec<Effect> = news.map(|(id, cost)| Effect::BackgroundLearnt { id, cost }).collect();
        if let Some(in_force) = self.plans.get_mut(&device).filter(|_| !effects.is_empty()) {
            in_force.is_stale = true;
        }
        effects
    }
}
