//! Process groups that the operator names while the daemon runs. Their weights are rules after those of the operator's file,
//! and are kept in the runtime directory so that a restarted daemon knows them.

use minerva_config::Config;
use minerva_linux_actuate::{NamedError, NamedGroups};
use minerva_model::TenantRule;

/// The groups, and where they are.
#[derive(Debug)]
pub(crate) struct NamedTenants {
    groups: NamedGroups,
}

impl NamedTenants {
    pub(crate) const fn new(groups: NamedGroups) -> Self {
        Self { groups }
    }

    /// Moves a process into a group of that name, and notes its weight. The answer is the group's path.
    pub(crate) fn register(&mut self, name: &str, pid: u32, weight_percent: Option<u32>) -> Result<String, NamedError> {
        self.groups.place(name, pid, weight_percent)
    }

    /// Removes groups whose processes have all ended.
    pub(crate) fn sweep(&self) {
        for name in self.groups.sweep() {
            tracing::info!(name, "the named tenant's processes have ended, its group is removed");
        }
    }

    /// All rules: the operator's, those of jobs among them, after them what was asked for named tenants, and at last that the probe's tenants
    /// (`minerva-ctl doctor --probe`) weigh themselves.
    pub(crate) fn rules(&self, of_file: &Config) -> Vec<TenantRule> {
        let named = |(name, weight_percent): (String, u32)| TenantRule {
            pattern: format!("{}/{name}", self.groups.parent()),
            weight_percent: Some(weight_percent),
            ..TenantRule::default()
        };
        let probe = TenantRule { pattern: "minerva-probe-*/**".to_owned(), exclude: true, ..TenantRule::default() };
        let named = self.groups.weights().into_iter().map(named);
        of_file.rules.iter().chain(&of_file.jobs).cloned().chain(named).chain([probe]).collect()
    }
}
