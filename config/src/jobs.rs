//! `[[jobs]]`: tenants that are batch jobs. Each becomes a rule for tenants after those of `[[rules]]`.

use crate::forms::{GLOB_FORM, check_glob};
use crate::judge::Judge;
use crate::key::{Key, Kind};
use crate::settings::Config;
use minerva_model::{JobSettings, TenantRule};
use toml::Spanned;
use toml::de::DeValue;

/// No disk is larger.
const BYTES_MAX: u64 = 1 << 60;

/// A table of `[[jobs]]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobRule {
    pattern: String,
    job: JobSettings,
}

pub(crate) const JOB: &[Key<JobRule>] = &[
    Key {
        name: "pattern",
        doc: "Glob over the cgroup's path, as of a rule: who matches is a batch job for as long as it is there.",
        kind: Kind::Text { form: GLOB_FORM, set: |j, v| check_glob(v).map(|()| v.clone_into(&mut j.pattern)) },
        show: |_| None,
        example: "\"system.slice/nightly-sort.service\"",
    },
    Key {
        name: "name",
        doc: "What runs: runs of one name are taken to be alike, and what they moved tells what the next will move.",
        kind: Kind::Text {
            form: "a word such as \"sort\"",
            set: |j, v| match JobSettings::refusal_of_name(v) {
                Some(why) => Err(why),
                None => {
                    v.clone_into(&mut j.job.name);
                    Ok(())
                }
            },
        },
        show: |_| None,
        example: "\"sort\"",
    },
    Key {
        name: "bytes",
        doc: "What it reads and writes in all, if that is known.",
        kind: Kind::Size { least: 1, most: BYTES_MAX, set: |j, v| j.job.bytes = Some(v) },
        show: |_| None,
        example: "\"40GB\"",
    },
];

impl Judge<'_> {
    pub(crate) fn jobs(&mut self, value: &Spanned<DeValue<'_>>, config: &mut Config) {
        let Some(rows) = self.rows(value, "jobs", "job") else { return };
        for row in rows.iter() {
            let Some(table) = self.table(row, "[jobs]") else { continue };
            let mut job = JobRule::default();
            let wrong_before = self.problems.len();
            self.keys("jobs", table, JOB, &mut job);
            for (key, help) in [("pattern", "system.slice/NAME.service"), ("name", "sort")] {
                if self.problems.len() == wrong_before && !table.contains_key(key) {
                    let help = format!("add `{key} = \"{help}\"`");
                    self.error(row.span(), format!("a job without a {key}"), "which one is it?", Some(help));
                }
            }
            config.jobs.push(TenantRule { pattern: job.pattern, job: Some(job.job), ..TenantRule::default() });
        }
    }
}
