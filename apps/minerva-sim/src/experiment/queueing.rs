//! The simulator against the closed forms of queueing theory.

use minerva_blocksched::{FlowParameters, Noop};
use minerva_model::Nanos;
use minerva_sim_workload::{Generator, Loop, Pattern, Plan};
use minerva_sim_world::{Ideal, ProcessSetup, Service, TenantSetup, World, WorldSetup};

const MEAN: Nanos = Nanos::from_millis(1);

/// One queue and its mean time in the system by the book.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queue {
    pub(crate) name: &'static str,
    pub(crate) service: Service,
    pub(crate) servers: u32,
    /// Part of the servers' time that is asked for.
    pub(crate) utilisation: f64,
}

/// The queues that are compared.
pub(crate) fn queues() -> Vec<Queue> {
    let either = Service::Either { first: Nanos::from_micros(500), second: Nanos::from_micros(3000), probability: 0.8 };
    let queue = |name, service, servers, utilisation| Queue { name, service, servers, utilisation };
    vec![
        queue("M/M/1", Service::Exponential(MEAN), 1, 0.5),
        queue("M/M/1", Service::Exponential(MEAN), 1, 0.8),
        queue("M/D/1", Service::Constant(MEAN), 1, 0.5),
        queue("M/D/1", Service::Constant(MEAN), 1, 0.8),
        queue("M/G/1", either, 1, 0.5),
        queue("M/G/1", either, 1, 0.8),
        queue("M/M/4", Service::Exponential(MEAN), 4, 0.5),
        queue("M/M/4", Service::Exponential(MEAN), 4, 0.8),
    ]
}

impl Queue {
    /// Mean time in the system: Pollaczek and Khinchine for one server, Erlang C for several.
    pub(crate) fn closed_form_s(&self) -> f64 {
        let mean = MEAN.as_secs_f64();
        let second_moment = match self.service {
            Service::Constant(_) | Service::PerByte(_) => mean * mean,
            Service::Exponential(_) => 2.0 * mean * mean,
            Service::Either { first, second, probability } => {
                probability * first.as_secs_f64().powi(2) + (1.0 - probability) * second.as_secs_f64().powi(2)
            }
        };
        let rate = self.rate_per_second();
        if self.servers == 1 {
            return mean + rate * second_moment / (2.0 * (1.0 - self.utilisation));
        }
        let offered = self.utilisation * f64::from(self.servers);
        let mut term = 1.0;
        let mut sum = 1.0;
        for k in 1..self.servers {
            term *= offered / f64::from(k);
            sum += term;
        }
        let last = term * offered / f64::from(self.servers) / (1.0 - self.utilisation);
        mean + last / (sum + last) / (f64::from(self.servers) / mean - rate)
    }

    fn rate_per_second(&self) -> f64 {
        self.utilisation * f64::from(self.servers) / MEAN.as_secs_f64()
    }

    /// Mean time in the system as simulated.
    pub(crate) fn simulated_s(&self, seed: u64, requests: u64) -> f64 {
        let plan = Plan {
            pattern: Pattern::Random,
            when: Loop::Open { rate_per_second: self.rate_per_second() },
            total_bytes: Some(requests * 4096),
            ..Plan::default()
        };
        let process = ProcessSetup {
            name: "arrivals".to_owned(),
            tenant: 0,
            source: Box::new(Generator::new(plan, seed)),
            starts_at: Nanos::ZERO,
            parameters: FlowParameters::default(),
            promise: None,
        };
        let mut world = World::new(WorldSetup {
            device: Box::new(Ideal::new(self.service, self.servers, !seed)),
            host: Box::new(Noop::new()),
            depth: self.servers,
            tenants: vec![TenantSetup { name: "all".to_owned(), weight: 100, guest: None }],
            processes: vec![process],
            engine: None,
            bin: Nanos::from_secs(60),
        });
        world.run(Nanos(u64::MAX));
        world.report().processes.first().map_or(0.0, |process| process.latency_mean_ms / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::queues;

    #[test]
    fn means_agree_with_the_closed_forms() {
        for queue in queues().into_iter().filter(|queue| queue.utilisation < 0.6) {
            let (book, simulated) = (queue.closed_form_s(), queue.simulated_s(1, 300_000));
            assert!((simulated / book - 1.0).abs() < 0.02, "{}: {simulated} against {book}", queue.name);
        }
    }
}
