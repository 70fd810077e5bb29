//! One file into the [`Config`] so far: every key found is judged, and reading goes on after an error, so that all errors of
//! a file are shown at once.

use crate::forms::check_disk_name;
use crate::identities::{Proofs, contradictions, unprovable};
use crate::judge::{Judge, Locations};
use crate::key::duration_text;
use crate::keys::{DEVICE, RULE, SECTIONS, belongs_elsewhere};
use crate::problem::{Problem, Source};
use crate::settings::Config;
use crate::value::did_you_mean;
use minerva_model::TenantRule;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Reads one file after another; later ones win.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) config: Config,
    pub(crate) problems: Vec<Problem>,
    places: Locations,
    /// Patterns of rules, with the file and line of the first.
    patterns: BTreeMap<String, String>,
    proofs: Proofs,
}

impl Reader {
    /// Reads a file.
    pub(crate) fn read(&mut self, source: &Arc<Source>) {
        let (root, errors) = DeTable::parse_recoverable(&source.text);
        let mut judge = Judge { source, problems: Vec::new(), places: &mut self.places };
        for error in errors {
            judge.error(error.span().unwrap_or(0..0), "not valid TOML", error.message(), None);
        }
        // What is left of a file with a syntax error is not what its author meant: judging it would only mislead.
        let readable = judge.problems.is_empty();
        for (name, value) in root.get_ref().iter().filter(|_| readable) {
            match name.get_ref().as_ref() {
                "devices" => judge.devices(value, &mut self.config),
                "rules" => judge.rules(value, &mut self.config, &mut self.patterns),
                "jobs" => judge.jobs(value, &mut self.config),
                "identities" => judge.identities(value, &mut self.config, &mut self.proofs),
                word => judge.section(word, name.span(), value, &mut self.config),
            }
        }
        let mut problems = judge.problems;
        problems.sort_by_key(|problem| problem.span.start);
        self.problems.append(&mut problems);
    }

    /// What only all files together can show.
    pub(crate) fn finish(&mut self) {
        if !self.places.contains_key("participation.socket") {
            // Beside the daemon's other things, so that two daemons with directories of their own have listeners of their own.
            self.config.participation.socket = Some(self.config.daemon.runtime_dir.join("tenant.sock"));
        }
        let fennel = &self.config.engine.fennel;
        let mut checks = Vec::new();
        if fennel.share_heavy > fennel.share_sparing {
            let (heavy, sparing) = (fennel.share_heavy, fennel.share_sparing);
            checks.push((
                ["fennel.share_heavy", "fennel.share_sparing"],
                format!("`share_heavy` is {heavy}, above `share_sparing`, which is {sparing}"),
                "heavy tenants would be favoured; lower `share_heavy` or raise `share_sparing`",
            ));
        }
        if fennel.long_term_half_life < fennel.recent_half_life {
            let (long, recent) = (duration_text(fennel.long_term_half_life), duration_text(fennel.recent_half_life));
            checks.push((
                ["fennel.long_term_half_life", "fennel.recent_half_life"],
                format!("`long_term_half_life` is {long}, shorter than `recent_half_life`, which is {recent}"),
                "the two averages would swap their meaning; change one of the two",
            ));
        }
        let (most, slice) = (self.config.engine.coordination.precedence_max, self.config.engine.observe.slice);
        if most < slice {
            let (most, slice) = (duration_text(most), duration_text(slice));
            checks.push((
                ["coordination.precedence_max", "observe.slice"],
                format!("`precedence_max` is {most}, shorter than `slice`, which is {slice}"),
                "no operation would ever go before others; raise `precedence_max` to a slice at least, or lower `slice`",
            ));
        }
        for (key, title, help) in contradictions(&self.config.participation) {
            checks.push(([key, key], title, help));
        }
        for (keys, title, help) in checks {
            // The defaults agree, so one of the two keys was set.
            if let Some((source, span)) = keys.iter().find_map(|key| self.places.get(*key)) {
                self.problems.push(Problem {
                    source: Arc::clone(source),
                    span: span.clone(),
                    is_error: true,
                    title,
                    label: "set here".to_owned(),
                    help: Some(help.to_owned()),
                });
            }
        }
        if let Some((key, why)) = unprovable(&self.config.participation)
            && let Some((source, span)) = self.places.get("identities")
        {
            self.problems.push(Problem {
                source: Arc::clone(source),
                span: span.clone(),
                is_error: false,
                title: "an identity that nobody can prove".to_owned(),
                label: why,
                help: Some(format!("set `{key}` in `[participation]`")),
            });
        }
    }
}

impl Judge<'_> {
    fn section(&mut self, word: &str, name_span: Range<usize>, value: &Spanned<DeValue<'_>>, config: &mut Config) {
        if let Some(section) = SECTIONS.iter().find(|section| section.name == word && !word.is_empty()) {
            if let Some(table) = self.table(value, word) {
                self.keys(word, table, section.keys, config);
            }
            return;
        }
        let top = SECTIONS[0].keys;
        match top.iter().find(|key| key.name == word) {
            Some(key) => self.key(key, word.to_owned(), value, config),
            None => {
                let known = SECTIONS.iter().map(|section| section.name).chain(top.iter().map(|key| key.name));
                let help = belongs_elsewhere("", word)
                    .or_else(|| did_you_mean(word, known.chain(["devices", "rules", "jobs", "identities"])));
                self.error(name_span, format!("unknown key `{word}`"), "nothing has this name", help);
            }
        }
    }

    fn devices(&mut self, value: &Spanned<DeValue<'_>>, config: &mut Config) {
        let Some(table) = self.table(value, "devices") else { return };
        for (name, settings) in table {
            let disk = name.get_ref().as_ref();
            if let Err(label) = check_disk_name(disk) {
                let help = "write `[devices.sda]`, with the name that `lsblk` shows".to_owned();
                self.error(name.span(), format!("invalid disk name `{disk}`"), label, Some(help));
                continue;
            }
            if let Some(table) = self.table(settings, &format!("devices.{disk}")) {
                let into = config.engine.devices.entry(disk.to_owned()).or_default();
                self.keys(&format!("devices.{disk}"), table, DEVICE, into);
            }
        }
    }

    fn rules(&mut self, value: &Spanned<DeValue<'_>>, config: &mut Config, patterns: &mut BTreeMap<String, String>) {
        let Some(rows) = self.rows(value, "rules", "rule") else { return };
        for row in rows.iter() {
            let Some(table) = self.table(row, "[rules]") else { continue };
            let mut rule = TenantRule::default();
            let wrong_before = self.problems.len();
            self.keys("rules", table, RULE, &mut rule);
            if self.problems.len() == wrong_before {
                self.rule(&rule, row.span(), table, patterns);
            }
            config.rules.push(rule);
        }
    }

    /// What a rule's keys together show.
    fn rule(
        &mut self,
        rule: &TenantRule,
        span: Range<usize>,
        table: &DeTable<'_>,
        patterns: &mut BTreeMap<String, String>,
    ) {
        let Some(pattern) = table.get("pattern") else {
            let help = "add `pattern = \"system.slice/NAME.service\"`".to_owned();
            self.error(span, "a rule without a pattern", "nothing can match this", Some(help));
            return;
        };
        if *rule == (TenantRule { pattern: rule.pattern.clone(), ..TenantRule::default() }) {
            let help = "set `name`, `group`, `exclude`, `weight_percent`, `role`, `price_percent`, `quota_percent`, \
                        `credits_expiry` or `forecast`, or remove the rule";
            let help = help.to_owned();
            self.problem(false, span, "a rule that changes nothing".into(), "no effect".into(), Some(help));
        }
        let place = self.place(pattern.span());
        if let Some(first) = patterns.insert(rule.pattern.clone(), place) {
            let title = format!("two rules with the pattern `{}`", rule.pattern);
            let help = format!("the first is at {first}; both apply, and what this one says wins");
            self.problem(false, pattern.span(), title, "the second".into(), Some(help));
        }
    }
}
