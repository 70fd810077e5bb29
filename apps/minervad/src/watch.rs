//! What the host shows: its tenants and disks, as far as the operator wants them looked at, and what they transfer.

use crate::clock::local_seconds;
use crate::free_space::FreeSpace;
use crate::named_tenants::NamedTenants;
use crate::scope::Scope;
use anyhow::Context;
use minerva_config::Config;
use minerva_linux_actuate::{NamedError, NamedGroups, WriterSettings};
use minerva_linux_observe::{Observer, Roots};
use minerva_model::{DeviceId, Event, Finding, Sample};

/// Looks at the host.
pub(crate) struct Watch {
    /// Answers what else is asked of the host; it has all, whatever the scope.
    pub(crate) observer: Observer,
    scope: Scope,
    free_space: FreeSpace,
    named: NamedTenants,
}

impl Watch {
    /// Begins to look.
    pub(crate) fn begin(config: &Config, settings: &WriterSettings, roots: Roots) -> anyhow::Result<Self> {
        let named = NamedTenants::new(NamedGroups::new(settings, &config.named.parent));
        let free_space = FreeSpace::watch(roots.clone());
        let observer = Observer::new(roots, &named.rules(config)).context("failed to begin watching")?;
        Ok(Self {
            observer: observer.named_below(vec![config.named.parent.clone(), config.named.background_parent()]),
            scope: Scope::new(&config.daemon, &config.named).context("failed to read daemon.include")?,
            free_space,
            named,
        })
    }

    /// What came and went, of what is looked at.
    pub(crate) fn discover(&mut self) -> Vec<Event> {
        let mut events = self.observer.discover();
        events.retain(|event| self.scope.admits(event));
        events
    }

    /// Groups that nobody can look at, told once.
    pub(crate) fn hidden(&mut self) -> Vec<Finding> {
        self.scope.hidden(self.observer.hidden())
    }

    /// What is hidden still is told once more.
    pub(crate) fn tell_hidden_again(&mut self) {
        self.scope.tell_hidden_again();
    }

    /// File systems that do not answer, told once each time.
    pub(crate) fn silent(&self) -> Vec<Finding> {
        self.free_space.silent()
    }

    /// Disks whose file systems all answer again.
    pub(crate) fn answering(&self) -> Vec<DeviceId> {
        self.free_space.answering()
    }

    /// Reads the counters; with `usage` also what tenants use besides the disk.
    pub(crate) fn sample(&mut self, usage: bool) -> Sample {
        self.observer.want_usage(usage);
        let mut sample = self.observer.sample();
        sample.wall_seconds = local_seconds();
        self.free_space.add_to(&mut sample);
        self.scope.narrow(&mut sample);
        sample
    }

    /// Gives the observer the rules anew, those of named tenants among them.
    pub(crate) fn apply_rules(&mut self, config: &Config) {
        if let Err(error) = self.observer.set_rules(&self.named.rules(config)) {
            // The file was judged before; this is a pattern that only the observer refuses.
            tracing::error!(error = format!("{:#}", anyhow::Error::new(error)), "the tenant rules were not taken");
        }
    }

    /// Puts a process into a named tenant; its cgroup. The rules are to be applied after that.
    pub(crate) fn register(&mut self, name: &str, pid: u32, weight: Option<u32>) -> Result<String, NamedError> {
        self.named.register(name, pid, weight)
    }

    /// Removes named tenants whose processes have ended.
    pub(crate) fn sweep(&self) {
        self.named.sweep();
    }

    /// A finding for each disk that the operator's file speaks of and this host does not have.
    pub(crate) fn unknown_disks(&self, config: &Config) -> Vec<Finding> {
        self.scope.unknown_disks(config)
    }
}
