//! The operator's tenant rules, compiled.

use crate::ObserveError;
use crate::classify::Class;
use globset::{GlobBuilder, GlobMatcher};
use minerva_model::{TenantRule, Terms};

/// Compiled rules. Every rule that matches applies, in the order of the file; what a later one says replaces what an earlier
/// one said.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    rules: Vec<(GlobMatcher, TenantRule)>,
}

/// What the rules make of one cgroup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ruling {
    pub(crate) name: String,
    pub(crate) group: Option<String>,
    pub(crate) weight_percent: u32,
    pub(crate) excluded: bool,
    pub(crate) terms: Terms,
}

impl Rules {
    pub(crate) fn new(rules: &[TenantRule]) -> Result<Self, ObserveError> {
        let mut compiled = Vec::with_capacity(rules.len());
        for (index, rule) in rules.iter().enumerate() {
            // A systemd path holds backslashes (`machine-qemu\x2d1`), so that they do not escape anything here.
            let glob = GlobBuilder::new(&rule.pattern).literal_separator(true).backslash_escape(false).build();
            let pattern = rule.pattern.clone();
            let glob = glob.map_err(|source| ObserveError::Pattern { number: index + 1, pattern, source })?;
            compiled.push((glob.compile_matcher(), rule.clone()));
        }
        Ok(Self { rules: compiled })
    }

    /// Applies them. In a name or a group, `{name}` stands for the derived name, `{leaf}` for the last component of the path
    /// and `{parent}` for the one above, so that one rule can give all containers of a pod one history.
    pub(crate) fn judge(&self, path: &str, class: &Class) -> Ruling {
        let mut ruling = Ruling {
            name: class.name.clone(),
            group: None,
            weight_percent: 100,
            excluded: false,
            terms: Terms::default(),
        };
        for (glob, rule) in self.rules.iter().filter(|(glob, _)| glob.is_match(path)) {
            debug_assert_eq!(glob.glob().glob(), rule.pattern, "each rule stands beside its own pattern");
            if let Some(name) = &rule.name {
                ruling.name = fill(name, path, class);
            }
            if let Some(group) = &rule.group {
                ruling.group = Some(fill(group, path, class));
            }
            ruling.weight_percent = rule.weight_percent.unwrap_or(ruling.weight_percent);
            ruling.excluded |= rule.exclude;
            let Terms { role, price_percent, quota_percent, credits_expiry } = ruling.terms;
            ruling.terms = Terms {
                role: rule.role.unwrap_or(role),
                price_percent: rule.price_percent.unwrap_or(price_percent),
                quota_percent: rule.quota_percent.unwrap_or(quota_percent),
                credits_expiry: rule.credits_expiry.or(credits_expiry),
            };
        }
        ruling
    }
}

fn fill(template: &str, path: &str, class: &Class) -> String {
    let mut components = path.rsplit('/');
    let leaf = components.next().unwrap_or_default();
    let parent = components.next().unwrap_or_default();
    template.replace("{leaf}", leaf).replace("{parent}", parent).replace("{name}", &class.name)
}

#[cfg(test)]
mod tests {
    use super::Rules;
    use crate::classify::{NAMED_PARENT_DEFAULT, classify};
    use minerva_model::TenantRule;

    fn rule(pattern: &str) -> TenantRule {
        TenantRule { pattern: pattern.to_owned(), ..TenantRule::default() }
    }

    #[test]
    fn later_rules_replace_what_earlier_ones_said() {
        let rules = Rules::new(&[
            TenantRule { weight_percent: Some(200), group: Some("vms".into()), ..rule("machine.slice/**") },
            TenantRule {
                name: Some("vm {name}".into()),
                weight_percent: Some(50),
                ..rule(r"machine.slice/*-web.scope")
            },
            TenantRule { exclude: true, ..rule(r"machine.slice/machine-qemu\x2d1\x2d*.scope") },
        ])
        .unwrap();
        let path = r"machine.slice/machine-qemu\x2d1\x2d-web.scope";
        let ruling = rules.judge(path, &classify(path, NAMED_PARENT_DEFAULT));
        assert_eq!(ruling.name, "vm -web");
        assert_eq!((ruling.group.as_deref(), ruling.weight_percent, ruling.excluded), (Some("vms"), 50, true));
    }

    #[test]
    fn a_star_stays_within_a_component() {
        let rules = Rules::new(&[TenantRule { exclude: true, ..rule("system.slice/*") }]).unwrap();
        assert!(
            rules.judge("system.slice/a.service", &classify("system.slice/a.service", NAMED_PARENT_DEFAULT)).excluded
        );
        assert!(!rules.judge("system.slice/a/b", &classify("system.slice/a/b", NAMED_PARENT_DEFAULT)).excluded);
    }

    #[test]
    fn a_group_may_be_the_parent() {
        let rules = Rules::new(&[TenantRule { group: Some("{parent}".into()), ..rule("kubepods/**") }]).unwrap();
        let path = "kubepods/burstable/podx/c";
        assert_eq!(rules.judge(path, &classify(path, NAMED_PARENT_DEFAULT)).group.as_deref(), Some("podx"));
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let error = Rules::new(&[rule("ok"), rule("a[")]).unwrap_err();
        assert_eq!(error.to_string(), r#"tenant rule 2 has the pattern "a[", which is not a glob"#);
    }
}
