//! Who transferred what: the kernel counts what a server does for its guests as the server's own. Here it is the guests', and of the
//! server's own is left what nobody asked it for, so that nothing is counted twice.

use minerva_model::{DeviceId, DiskReport, IoCounters, Nanos, Sample, ServerReport, TenantId, TenantIo, WaitCounters};
use std::collections::BTreeMap;

/// Cumulative, and never going back, whatever servers do.
#[derive(Debug, Default)]
pub(crate) struct Account {
    /// Of each disk, by server and name: what it had told last.
    last: BTreeMap<(String, String), Told>,
    guests: BTreeMap<(TenantId, DeviceId), Sum>,
    /// What each server did for its guests since the last sample, and longer while it is not known whose it is.
    fresh: BTreeMap<(String, DeviceId), IoCounters>,
    /// What a tenant's servers did for their guests. A service that starts anew is another tenant, of which the kernel counts from zero.
    served: BTreeMap<(TenantId, DeviceId), IoCounters>,
    /// What was left of the servers' own at the last sample.
    own: BTreeMap<(TenantId, DeviceId), IoCounters>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sum {
    io: IoCounters,
    wait: WaitCounters,
}

#[derive(Clone, Copy, Debug)]
struct Told {
    /// Another one counts from zero.
    server: (u32, Nanos),
    sum: Sum,
}

impl Account {
    /// Takes what a server tells of its disks; a disk without an owner is counted for nobody, and not for the server either.
    pub(crate) fn take<'a>(
        &mut self,
        name: &str,
        report: &ServerReport,
        disks: impl Iterator<Item = (&'a DiskReport, DeviceId, Option<TenantId>)>,
    ) {
        let server = (report.process, report.began);
        for (disk, device, owner) in disks {
            let now = Sum { io: disk.io, wait: disk.wait };
            let key = (name.to_owned(), disk.settings.name.clone());
            let before = self.last.insert(key, Told { server, sum: now });
            // A disk that was removed and added again counts from zero too.
            let before = before.filter(|told| told.server == server && !goes_back(&told.sum, &now));
            let added = before.map_or(now, |told| now.less(&told.sum));
            if let Some(owner) = owner {
                self.guests.entry((owner, device)).or_default().add(&added);
            }
            add(self.fresh.entry((name.to_owned(), device)).or_default(), &added.io);
        }
    }

    /// A server has ended.
    pub(crate) fn forget(&mut self, name: &str) {
        self.last.retain(|(server, _), _| server != name);
        self.fresh.retain(|(server, _), _| server != name);
    }

    /// Puts guests' transfers into the sample, and takes them off those of the servers. `tenant_of` says whose a server's process is.
    pub(crate) fn add_to(&mut self, sample: &mut Sample, tenant_of: impl Fn(&str) -> Option<TenantId>) {
        let is_there = |device| sample.devices.iter().any(|row| row.device == device);
        self.guests.retain(|(_, device), _| is_there(*device));
        let served = &mut self.served;
        self.fresh.retain(|(name, device), io| {
            let tenant = tenant_of(name);
            if let Some(tenant) = tenant {
                add(served.entry((tenant, *device)).or_default(), io);
            }
            tenant.is_none()
        });
        for (&(tenant, device), served) in &self.served {
            let row = sample.io.iter_mut().find(|row| (row.tenant, row.device) == (tenant, device));
            let Some(row) = row else { continue };
            // The kernel counts a request when it begins and the server when it ends, so that the rest may shrink.
            let own = self.own.entry((tenant, device)).or_default();
            *own = largest(own, &rest(&row.counters, served));
            row.counters = *own;
        }
        for ((tenant, device), sum) in &self.guests {
            match sample.io.iter_mut().find(|row| (row.tenant, row.device) == (*tenant, *device)) {
                Some(row) => {
                    add(&mut row.counters, &sum.io);
                    if let Some(wait) = &mut row.wait {
                        wait.read_ns += sum.wait.read_ns;
                        wait.write_ns += sum.wait.write_ns;
                    }
                }
                None => sample.io.push(TenantIo {
                    tenant: *tenant,
                    device: *device,
                    counters: sum.io,
                    wait: Some(sum.wait),
                    served_ns: None,
                }),
            }
        }
        sample.io.sort_by_key(|row| (row.tenant, row.device));
    }

    /// A tenant is gone, and nobody asks for it any more.
    pub(crate) fn tenant_gone(&mut self, id: TenantId) {
        self.guests.retain(|(tenant, _), _| *tenant != id);
        self.served.retain(|(tenant, _), _| *tenant != id);
        self.own.retain(|(tenant, _), _| *tenant != id);
    }
}

impl Sum {
    fn add(&mut self, other: &Self) {
        add(&mut self.io, &other.io);
        self.wait.read_ns += other.wait.read_ns;
        self.wait.write_ns += other.wait.write_ns;
    }

    fn less(&self, other: &Self) -> Self {
        Self {
            io: rest(&self.io, &other.io),
            wait: WaitCounters {
                read_ns: self.wait.read_ns.saturating_sub(other.wait.read_ns),
                write_ns: self.wait.write_ns.saturating_sub(other.wait.write_ns),
            },
        }
    }
}

fn goes_back(before: &Sum, now: &Sum) -> bool {
    now.io.read_ops < before.io.read_ops || now.io.write_ops < before.io.write_ops
}

fn add(to: &mut IoCounters, more: &IoCounters) {
    *to = combine(to, more, u64::wrapping_add);
}

fn rest(whole: &IoCounters, part: &IoCounters) -> IoCounters {
    combine(whole, part, u64::saturating_sub)
}

fn largest(one: &IoCounters, other: &IoCounters) -> IoCounters {
    combine(one, other, u64::max)
}

fn combine(one: &IoCounters, other: &IoCounters, with: fn(u64, u64) -> u64) -> IoCounters {
    IoCounters {
        read_bytes: with(one.read_bytes, other.read_bytes),
        write_bytes: with(one.write_bytes, other.write_bytes),
        read_ops: with(one.read_ops, other.read_ops),
        write_ops: with(one.write_ops, other.write_ops),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::Account;
    use minerva_model::{
        DeviceId, DeviceSample, DiskFigures, DiskReport, DiskSettings, DiskTerms, IoCounters, Nanos, Sample,
        ServerReport, TenantId, TenantIo, WaitCounters,
    };

    const DISK: DeviceId = DeviceId { major: 8, minor: 0 };
    const GUEST: TenantId = TenantId(1);
    const SERVER: TenantId = TenantId(2);

    fn reads(ops: u64) -> IoCounters {
        IoCounters { read_bytes: ops * 4096, read_ops: ops, ..IoCounters::default() }
    }

    pub(crate) fn disk(ops: u64) -> DiskReport {
        let terms = DiskTerms {
            weight: 100,
            rate_bytes_per_second: None,
            burst_bytes: 4096,
            delay: Nanos::SECOND,
            limit_bytes_per_second: None,
            tag_default: 64,
            tag_max: 128,
            is_random: false,
            request_bytes: 4096,
            force: false,
        };
        let (name, image, socket) = ("vm1".to_owned(), String::new(), String::new());
        let settings = DiskSettings { name, image, socket, read_only: false, direct: true, queues: 1, terms };
        DiskReport {
            settings,
            device: "sda".to_owned(),
            length_bytes: 0,
            share: 100,
            front_end: None,
            under_way: 0,
            io: reads(ops),
            wait: WaitCounters::default(),
            other_ops: 0,
            tagged_ops: 0,
            failed_ops: 0,
            refused_ops: 0,
            figures: DiskFigures::default(),
        }
    }

    pub(crate) fn server(began: Nanos) -> ServerReport {
        let (program, config) = (String::new(), String::new());
        let (devices, disks) = (Vec::new(), Vec::new());
        let refused = Vec::new();
        ServerReport { program, process: 7, began, config, user: 0, socket_group: None, devices, disks, refused }
    }

    /// What guest and server have in a sample in which the kernel counted so much for the server.
    fn sampled(account: &mut Account, kernel: u64) -> [u64; 2] {
        sampled_of(account, SERVER, Some(SERVER), kernel)
    }

    /// The same of a server that is this tenant's, as is known or not yet.
    fn sampled_of(account: &mut Account, tenant: TenantId, known: Option<TenantId>, kernel: u64) -> [u64; 2] {
        let device = DeviceSample {
            device: DISK,
            counters: IoCounters::default(),
            wait: WaitCounters::default(),
            busy_ns: 0,
            in_flight: 0,
            flushes: 0,
        };
        let row = TenantIo { tenant, device: DISK, counters: reads(kernel), wait: None, served_ns: None };
        let mut sample = Sample { devices: vec![device], io: vec![row], ..Sample::default() };
        account.add_to(&mut sample, |_| known);
        let of = |tenant| {
            let row = sample.io.iter().find(|row| row.tenant == tenant);
            row.map_or(0, |row| row.counters.read_ops)
        };
        assert!(sample.io.is_sorted_by_key(|row| (row.tenant, row.device)));
        [of(GUEST), of(tenant)]
    }

    #[test]
    fn what_a_guest_transfers_is_counted_once_and_never_goes_back() {
        let mut account = Account::default();
        let mut told = |ops, began, kernel| {
            account.take("blk", &server(began), [(&disk(ops), DISK, Some(GUEST))].into_iter());
            sampled(&mut account, kernel)
        };
        // Twelve of the server's own, which it did before it served.
        assert_eq!(told(0, Nanos(1), 12), [0, 12]);
        assert_eq!(told(100, Nanos(1), 112), [100, 12]);
        // The kernel counted three that have not come back yet, and then is found to have counted fewer.
        assert_eq!(told(150, Nanos(1), 165), [150, 15]);
        assert_eq!(told(160, Nanos(1), 172), [160, 15]);
        // The disk is removed and added again, and then the whole server starts anew.
        assert_eq!(told(5, Nanos(1), 177), [165, 15]);
        assert_eq!(told(7, Nanos(2), 184), [172, 15]);
        account.tenant_gone(GUEST);
        assert_eq!(sampled(&mut account, 184), [0, 15]);
    }

    #[test]
    fn of_a_server_that_starts_anew_as_another_tenant_its_own_counts_from_the_first() {
        const ANOTHER: TenantId = TenantId(3);
        let mut account = Account::default();
        let take = |account: &mut Account, ops, began| {
            account.take("blk", &server(began), [(&disk(ops), DISK, Some(GUEST))].into_iter());
        };
        take(&mut account, 100, Nanos(1));
        assert_eq!(sampled(&mut account, 112), [100, 12]);
        account.forget("blk");
        account.tenant_gone(SERVER);
        // It serves before it is known whose it is.
        take(&mut account, 4, Nanos(2));
        assert_eq!(sampled_of(&mut account, ANOTHER, None, 4)[0], 104);
        take(&mut account, 7, Nanos(2));
        assert_eq!(sampled_of(&mut account, ANOTHER, Some(ANOTHER), 20), [107, 13]);
    }

    #[test]
    fn what_two_servers_of_one_tenant_do_for_guests_is_both_taken_off_its_own() {
        let mut account = Account::default();
        for name in ["one", "two"] {
            account.take(name, &server(Nanos(1)), [(&disk(10), DISK, Some(GUEST))].into_iter());
        }
        assert_eq!(sampled(&mut account, 25), [20, 5]);
    }
}
