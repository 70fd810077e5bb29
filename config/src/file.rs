//! One file into the [`Config`] so far: every key found is judged, and reading goes on after an error, so that all errors of
//! a file are shown at once.

use crate::identities::{Proofs, contradictions, unprovable};
use crate::key::{Key, Kind, duration_text, size_text};
use crate::keys::{DEVICE, RULE, SECTIONS, check_disk_name};
use crate::problem::{Problem, Source};
use crate::settings::Config;
use minerva_model::{Nanos, TenantRule};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Where a key was set, as "table.key".
pub(crate) type Places = BTreeMap<String, (Arc<Source>, Range<usize>)>;

/// Reads one file after another; later ones win.
#[derive(Default)]
pub(crate) struct Reader {
    pub(crate) config: Config,
    pub(crate) problems: Vec<Problem>,
    places: Places,
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
            // Beside the daemon's other things, so that two daemons with directories of their own have doors of their own.
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

/// Judges the values of one file.
pub(crate) struct Judge<'a> {
    source: &'a Arc<Source>,
    pub(crate) problems: Vec<Problem>,
    places: &'a mut Places,
}

impl Judge<'_> {
    pub(crate) fn error(
        &mut self,
        span: Range<usize>,
        title: impl Into<String>,
        label: impl Into<String>,
        help: Option<String>,
    ) {
        self.problem(true, span, title.into(), label.into(), help);
    }

    fn problem(&mut self, is_error: bool, span: Range<usize>, title: String, label: String, help: Option<String>) {
        // A parser's span may end past the text or inside a character; the renderer must not be given such a one.
        let text = &self.source.text;
        let whole = |at: &usize| text.is_char_boundary(*at);
        let start = (0..=span.start.min(text.len())).rev().find(whole).unwrap_or(0);
        let end = (span.end.clamp(start, text.len())..=text.len()).find(whole).unwrap_or(text.len());
        self.problems.push(Problem { source: Arc::clone(self.source), span: start..end, is_error, title, label, help });
    }

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
                    .or_else(|| did_you_mean(word, known.chain(["devices", "rules", "identities"])));
                self.error(name_span, format!("unknown key `{word}`"), "nothing has this name", help);
            }
        }
    }

    pub(crate) fn table<'v>(&mut self, value: &'v Spanned<DeValue<'v>>, name: &str) -> Option<&'v DeTable<'v>> {
        let table = value.get_ref().as_table();
        if table.is_none() {
            let help = format!("write `[{name}]` on a line of its own, and its keys below it");
            self.error(value.span(), format!("`{name}` is not a table"), found(value.get_ref()), Some(help));
        }
        table
    }

    pub(crate) fn keys<T>(&mut self, prefix: &str, table: &DeTable<'_>, keys: &'static [Key<T>], into: &mut T) {
        for (name, value) in table {
            let word = name.get_ref().as_ref();
            match keys.iter().find(|key| key.name == word) {
                Some(key) => self.key(key, format!("{prefix}.{word}"), value, into),
                None => {
                    let help = belongs_elsewhere(prefix, word)
                        .or_else(|| did_you_mean(word, keys.iter().map(|key| key.name)))
                        .unwrap_or_else(|| format!("known here: {}", list(keys.iter().map(|key| key.name))));
                    let label = format!("`{prefix}` has no key of this name");
                    self.error(name.span(), format!("unknown key `{word}`"), label, Some(help));
                }
            }
        }
    }

    fn key<T>(&mut self, key: &Key<T>, path: String, value: &Spanned<DeValue<'_>>, into: &mut T) {
        match judge_value(&key.kind, value, into) {
            Ok(()) => {
                self.places.insert(path, (Arc::clone(self.source), value.span()));
            }
            Err(Wrong { span, label, help }) => {
                self.error(span, format!("invalid value of `{}`", key.name), label, help)
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

    /// The tables of a list such as `[[rules]]`.
    pub(crate) fn rows<'v>(
        &mut self,
        value: &'v Spanned<DeValue<'v>>,
        name: &str,
        one: &str,
    ) -> Option<&'v DeArray<'v>> {
        let rows = value.get_ref().as_array();
        if rows.is_none() {
            let help = format!("write `[[{name}]]`, with two brackets, above each {one}");
            self.error(value.span(), format!("`{name}` is not a list of tables"), found(value.get_ref()), Some(help));
        }
        // Where the list begins, for what all files together show.
        self.places.entry(name.to_owned()).or_insert_with(|| (Arc::clone(self.source), value.span()));
        rows
    }

    /// A place of this file, as people write it.
    pub(crate) fn place(&self, span: Range<usize>) -> String {
        let line = self.source.text[..span.start.min(self.source.text.len())].matches('\n').count() + 1;
        format!("{}:{line}", self.source.path.display())
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
            let help = "set `name`, `group`, `exclude`, `weight_percent`, `role`, `price_percent`, `quota_percent` or \
                        `credits_expiry`, or remove the rule";
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

/// What is wrong with one value.
struct Wrong {
    span: Range<usize>,
    label: String,
    help: Option<String>,
}

fn judge_value<T>(kind: &Kind<T>, spanned: &Spanned<DeValue<'_>>, into: &mut T) -> Result<(), Wrong> {
    let value = spanned.get_ref();
    let wrong = |label: String, help: Option<String>| Wrong { span: spanned.span(), label, help };
    let expected = |what: &str| wrong(format!("expected {what}, found {}", found(value)), None);
    match kind {
        Kind::Duration { least, most, set } => {
            let form = "a duration such as \"500ms\", \"1s\" or \"6h\"";
            let text = value.as_str().ok_or_else(|| expected(form))?;
            let parsed =
                humantime::parse_duration(text).map_err(|e| wrong(e.to_string(), Some(format!("write {form}"))))?;
            let nanos = Nanos(u64::try_from(parsed.as_nanos()).unwrap_or(u64::MAX));
            let range = || wrong(format!("not in {} to {}", duration_text(*least), duration_text(*most)), None);
            (*least..=*most).contains(&nanos).then(|| set(into, nanos)).ok_or_else(range)
        }
        Kind::Whole { least, most, set } => {
            let integer = value.as_integer().ok_or_else(|| expected("a whole number"))?;
            let number = i128::from_str_radix(integer.as_str(), integer.radix()).unwrap_or(i128::MAX);
            let inside = u64::try_from(number).ok().filter(|number| (*least..=*most).contains(number));
            inside.map(|number| set(into, number)).ok_or_else(|| wrong(format!("not in {least} to {most}"), None))
        }
        Kind::Size { least, most, set } => {
            let form = "a size such as \"64KiB\" or \"150MB\"";
            let parsed = match (value.as_str(), value.as_integer()) {
                (Some(text), _) => text.parse::<bytesize::ByteSize>().ok().map(|size| size.as_u64()),
                (None, Some(number)) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
                (None, None) => None,
            };
            let not_a_size = || match value.as_str() {
                Some(_) => wrong("not a size".to_owned(), Some(format!("write {form}"))),
                None => expected(form),
            };
            let bytes = parsed.ok_or_else(not_a_size)?;
            let range = || wrong(format!("not in {} to {}", size_text(*least), size_text(*most)), None);
            (*least..=*most).contains(&bytes).then(|| set(into, bytes)).ok_or_else(range)
        }
        Kind::Fraction { least, most, set } => {
            let text = value.as_float().map(|f| f.as_str()).or_else(|| value.as_integer().map(|i| i.as_str()));
            let number = text.and_then(|text| text.parse::<f64>().ok()).ok_or_else(|| expected("a number"))?;
            let range = || wrong(format!("not in {least} to {most}"), None);
            (*least..=*most).contains(&number).then(|| set(into, number)).ok_or_else(range)
        }
        Kind::Flag { set } => value.as_bool().map(|v| set(into, v)).ok_or_else(|| expected("`true` or `false`")),
        Kind::Choice { words, set } => {
            let choices = || format!("valid: {}", list(words.iter().copied()));
            let text = value.as_str().ok_or_else(|| expected("a word in quotes"))?;
            let help =
                || did_you_mean(text, words.iter().copied()).map_or_else(choices, |h| format!("{h} {}", choices()));
            let at = words.iter().position(|word| *word == text);
            at.map(|at| set(into, at)).ok_or_else(|| wrong(format!("`{text}` is not known"), Some(help())))
        }
        Kind::Text { form, set } => {
            let text = value.as_str().ok_or_else(|| expected(form))?;
            set(into, text).map_err(|label| wrong(label, Some(format!("write {form}"))))
        }
        Kind::Texts { form, check, set } => {
            let rows = value.as_array().ok_or_else(|| expected("a list in `[` and `]`"))?;
            let mut texts = Vec::new();
            for row in rows {
                let judged = match row.get_ref().as_str() {
                    Some(text) => check(text).map(|()| texts.push(text.to_owned())),
                    None => Err(format!("expected {form}, found {}", found(row.get_ref()))),
                };
                judged.map_err(|label| Wrong { span: row.span(), label, help: Some(format!("write {form}")) })?;
            }
            set(into, texts);
            Ok(())
        }
    }
}

fn found(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number with a fraction",
        DeValue::Boolean(_) => "`true` or `false`",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
    .to_owned()
}

fn list<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}

/// The nearest known word, if it is near enough that a slip of the hand explains the difference.
fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    // A hostile word of megabytes would make the distance costly; no key is half as long as this.
    if word.len() > 100 {
        return None;
    }
    let near = known
        .filter(|candidate| !candidate.is_empty())
        .map(|candidate| (strsim::damerau_levenshtein(&word.to_lowercase(), candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().div_ceil(3))
        .min();
    near.map(|(_, candidate)| format!("did you mean `{candidate}`?"))
}

/// The table in which a key of exactly this name exists.
fn belongs_elsewhere(prefix: &str, word: &str) -> Option<String> {
    let section = SECTIONS.iter().find(|s| s.name != prefix && s.keys.iter().any(|key| key.name == word))?;
    Some(match section.name {
        "" => format!("`{word}` belongs above the first table"),
        name => format!("`{word}` belongs below `[{name}]`"),
    })
}
