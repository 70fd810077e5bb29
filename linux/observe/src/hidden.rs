//! Slices whose services cannot be told apart, which is how systemd leaves a host of cgroup v2.
//!
//! A group has I/O counters and weights only if the group above lists `io` in its `cgroup.subtree_control`. systemd lists it
//! where a unit asks for it, and by default none does: then `system.slice` is one tenant with all that runs in it. The root's
//! own list says nothing of that.

/// A slice with groups below it that the `io` controller does not reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenGroups {
    /// The slice's path below the root of the hierarchy.
    pub slice: String,
    /// How many groups right below it would be tenants of their own.
    pub groups: usize,
}

impl HiddenGroups {
    /// What it means, as a sentence for people.
    pub fn reason(&self) -> String {
        let Self { slice, groups } = self;
        let (noun, them) = if *groups == 1 { ("group", "it is") } else { ("groups", "they are") };
        format!(
            "{slice} holds {groups} {noun} that io does not reach, so {them} seen and steered as one tenant, {slice}, and \
             no weight acts inside it"
        )
    }

    /// What to do, as a sentence for people. Writing `+io` by hand is no remedy: it reaches one level, and systemd takes it back.
    pub fn remedy(&self) -> String {
        "set DefaultIOAccounting=yes in /etc/systemd/system.conf.d/minerva.conf, below [Manager], then: systemctl daemon-reexec; or \
         for this slice alone: systemctl set-property UNIT IOAccounting=yes, with one of its units, which makes io reach all beside it"
            .to_owned()
    }
}
