//! The operator's tenant rules, compiled.
//!
//! Below a group that was delegated to somebody besides root, that user names the groups: there a rule applies if its pattern
//! matches the delegated group itself, or spells the path down to it component by component. So `**/db.service` gives nothing to
//! whoever makes a group of that name, while `user.slice/**` and `user.slice/user-1000.slice/*/app.slice/db.service` hold.

use crate::ObserveError;
use crate::classify::Class;
use globset::{GlobBuilder, GlobMatcher};
use minerva_model::{JobSettings, TenantRule, Terms};

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
    pub(crate) job: Option<JobSettings>,
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
    ///
    /// Below a `delegated` group they stand for that group's in a group, and what they come to in a name is preceded by the
    /// delegated group's name, so that nobody can take another's.
    pub(crate) fn judge(&self, path: &str, class: &Class, delegated: Option<&str>) -> Ruling {
        let mut ruling = Ruling {
            name: below(delegated, &class.name),
            group: None,
            weight_percent: 100,
            excluded: false,
            job: None,
            terms: Terms::default(),
        };
        let applies = |glob: &GlobMatcher| {
            let holds = |delegated| glob.is_match(delegated) || spells(glob.glob().glob(), delegated);
            glob.is_match(path) && delegated.is_none_or(holds)
        };
        for (glob, rule) in self.rules.iter().filter(|(glob, _)| applies(glob)) {
            debug_assert_eq!(glob.glob().glob(), rule.pattern, "each rule stands beside its own pattern");
            if let Some(name) = &rule.name {
                let filled = fill(name, path, &class.name);
                // What the operator wrote out is the operator's choice, wherever the group is.
                ruling.name = if filled == *name { filled } else { below(delegated, &filled) };
            }
            if let Some(group) = &rule.group {
                ruling.group = Some(match delegated {
                    None => fill(group, path, &class.name),
                    Some(delegated) => fill(group, delegated, delegated),
                });
            }
            ruling.weight_percent = rule.weight_percent.unwrap_or(ruling.weight_percent);
            ruling.excluded |= rule.exclude;
            if let Some(job) = &rule.job {
                ruling.job = Some(job.clone());
            }
            let Terms { role, price_percent, quota_percent, credits_expiry, forecast } = ruling.terms;
            ruling.terms = Terms {
                role: rule.role.unwrap_or(role),
                price_percent: rule.price_percent.unwrap_or(price_percent),
                quota_percent: rule.quota_percent.unwrap_or(quota_percent),
                credits_expiry: rule.credits_expiry.or(credits_expiry),
                forecast: rule.forecast.or(forecast),
            };
        }
        ruling
    }
}

/// A name that the owner of a delegated group chose, as people see it.
fn below(delegated: Option<&str>, name: &str) -> String {
    match delegated {
        // Groups that are no unit of anybody's are named by their whole path, which says it already.
        Some(delegated) if !name.strip_prefix(delegated).is_some_and(|rest| rest.starts_with('/')) => {
            format!("{}/{name}", delegated.rsplit('/').next().unwrap_or(delegated))
        }
        _ => name.to_owned(),
    }
}

/// The pattern spells the path down to the delegated group: none of its components up to there stands for more than one. An
/// alternative may hide one that does.
fn spells(pattern: &str, delegated: &str) -> bool {
    let depth = delegated.split('/').count();
    let above = pattern.split('/').take(depth);
    !pattern.contains('{') && above.clone().count() == depth && above.into_iter().all(|part| !part.contains("**"))
}

fn fill(template: &str, path: &str, name: &str) -> String {
    let mut components = path.rsplit('/');
    let leaf = components.next().unwrap_or_default();
    let parent = components.next().unwrap_or_default();
    template.replace("{leaf}", leaf).replace("{parent}", parent).replace("{name}", name)
}

#[cfg(test)]
mod tests {
    use super::Rules;
    use crate::classify::{NAMED_PARENTS_DEFAULT, classify};
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
        let ruling = rules.judge(path, &classify(path, &NAMED_PARENTS_DEFAULT), None);
        assert_eq!(ruling.name, "vm -web");
        assert_eq!((ruling.group.as_deref(), ruling.weight_percent, ruling.excluded), (Some("vms"), 50, true));
    }

    #[test]
    fn a_star_stays_within_a_component() {
        let rules = Rules::new(&[TenantRule { exclude: true, ..rule("system.slice/*") }]).unwrap();
        assert!(
            rules
                .judge("system.slice/a.service", &classify("system.slice/a.service", &NAMED_PARENTS_DEFAULT), None)
                .excluded
        );
        assert!(!rules.judge("system.slice/a/b", &classify("system.slice/a/b", &NAMED_PARENTS_DEFAULT), None).excluded);
    }

    #[test]
    fn a_group_may_be_the_parent() {
        let rules = Rules::new(&[TenantRule { group: Some("{parent}".into()), ..rule("kubepods/**") }]).unwrap();
        let path = "kubepods/burstable/podx/c";
        assert_eq!(rules.judge(path, &classify(path, &NAMED_PARENTS_DEFAULT), None).group.as_deref(), Some("podx"));
    }

    #[test]
    fn whoever_makes_groups_chooses_neither_rule_nor_group_nor_anothers_name() {
        let rule = |pattern: &str, name: &str| TenantRule {
            name: Some(name.into()),
            group: Some("of {leaf}".into()),
            ..rule(pattern)
        };
        let user = "user.slice/user-7.slice/user@7.service";
        let judge = |rules: &[TenantRule], path: &str| {
            let class = classify(path, &NAMED_PARENTS_DEFAULT);
            let ruling = Rules::new(rules).unwrap().judge(path, &class, Some(user));
            (ruling.name, ruling.group)
        };
        let victim = format!("{user}/machine.slice/machine-qemu\\x2d1\\x2dvictim.scope");
        let own = ("user@7.service/victim".to_owned(), None);
        assert_eq!(judge(&[], &victim), own);
        // Patterns that only the part of the user's choosing makes match.
        for pattern in ["**/machine.slice/*", "user.slice/**/machine.slice/*", "{user.slice/**,x}/machine.slice/*"] {
            assert_eq!(judge(&[rule(pattern, "vm")], &victim), own, "{pattern}");
        }
        // Those that mean this user, or all of them.
        let group = Some("of user@7.service".to_owned());
        for pattern in ["user.slice/*/user@*.service/**", "user.slice/**", "user.slice/*/*/machine.slice/*"] {
            assert_eq!(judge(&[rule(pattern, "vm")], &victim), ("vm".to_owned(), group.clone()), "{pattern}");
            let named = judge(&[rule(pattern, "{name}")], &victim);
            assert_eq!(named, ("user@7.service/victim".to_owned(), group.clone()), "{pattern}");
        }
        assert_eq!(judge(&[], &format!("{user}/x")).0, format!("{user}/x"), "a path says whose it is");
    }

    #[test]
    fn a_bad_pattern_is_named() {
        let error = Rules::new(&[rule("ok"), rule("a[")]).unwrap_err();
        assert_eq!(error.to_string(), r#"tenant rule 2 has the pattern "a[", which is not a glob"#);
    }
}
