//! What happened in a world so far.

use crate::account::{Report, ReportedTenant, Until, jain_index};
use crate::world::{Process, Tenant, World};

impl World {
    /// By process: requests within what it was promised that are under way and late.
    fn overdue(&self) -> Vec<u64> {
        let mut under_way = vec![true; self.travels.len()];
        self.free.iter().for_each(|travel| under_way[*travel] = false);
        let mut overdue = vec![0; self.processes.len()];
        let within = self.travels.iter().zip(under_way).filter(|(travel, under_way)| *under_way && travel.within);
        for (travel, _) in within {
            let account = &self.processes[travel.process].account;
            overdue[travel.process] += u64::from(account.is_overdue(self.now, travel.issued));
        }
        overdue
    }

    /// What happened so far.
    pub fn report(&self) -> Report {
        let bin = self.processes.iter().map(|process| process.account.bin()).max().unwrap_or(self.bin);
        let overdue = self.overdue();
        let reported = |(process, overdue): (&Process, u64)| {
            let until = Until { finished: process.finished, end: self.now, overdue };
            process.account.report(&process.name, &self.tenants[process.tenant].name, until, bin)
        };
        let processes: Vec<_> = self.processes.iter().zip(overdue).map(reported).collect();
        let total: u64 = processes.iter().map(|process| process.bytes).sum();
        let mut bytes_of = vec![0; self.tenants.len()];
        for (process, reported) in self.processes.iter().zip(&processes) {
            bytes_of[process.tenant] += reported.bytes;
        }
        let in_all = |(tenant, bytes): (&Tenant, u64)| {
            let (name, share) = (tenant.name.clone(), bytes as f64 / total.max(1) as f64);
            ReportedTenant { name, bytes, share }
        };
        let tenants = self.tenants.iter().zip(bytes_of).map(in_all).collect::<Vec<_>>();
        let seconds = self.now.as_secs_f64();
        Report {
            scheduler: self.host.name().to_owned(),
            seconds,
            bytes_per_second: if seconds > 0.0 { total as f64 / seconds } else { 0.0 },
            requests: self.requests(),
            jain_index: jain_index(tenants.iter().map(|tenant| tenant.bytes as f64)),
            bin_s: bin.as_secs_f64(),
            tenants,
            processes,
            device: self.device.statistics(),
            weights: self.weights.clone(),
        }
    }
}
