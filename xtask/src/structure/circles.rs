//! Modules that import each other, directly or by way of others.

use super::imports::{self, Names};
use super::source::Module;
use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;
use std::collections::BTreeMap;

/// The circles among a target's modules, each as sorted file names.
///
/// A name that a module only hands on (`pub use`) counts as taken from where it is defined.
pub(super) fn find(modules: &[Module]) -> Vec<Vec<String>> {
    let by_path: BTreeMap<&[String], usize> =
        modules.iter().enumerate().map(|(index, module)| (module.path.as_slice(), index)).collect();
    let handed_on: Vec<_> = modules.iter().map(imports::handed_on).collect();
    let mut graph = DiGraphMap::<usize, ()>::new();
    for (index, module) in modules.iter().enumerate() {
        for names in imports::of(module) {
            let owner = owner(&by_path, &handed_on, names);
            if let Some(owner) = owner.filter(|owner| !is_above(&modules[*owner], module)) {
                graph.add_edge(index, owner, ());
            }
        }
    }
    let circles = tarjan_scc(&graph).into_iter().filter(|group| group.len() > 1);
    circles.map(|group| files(modules, &group)).collect()
}

/// Whether a module is `module` itself or one that encloses it. What a folder's files share stands in the folder's own
/// module, which they see whole by Rust's rules of privacy, so taking something from there makes no circle.
fn is_above(above: &Module, module: &Module) -> bool {
    module.path.starts_with(&above.path)
}

fn files(modules: &[Module], group: &[usize]) -> Vec<String> {
    let mut files: Vec<String> = group.iter().map(|index| modules[*index].file.clone()).collect();
    files.sort();
    files
}

/// The module in which what `names` leads to is defined; nothing if the path is a module alone.
fn owner(
    by_path: &BTreeMap<&[String], usize>,
    handed_on: &[BTreeMap<String, Names>],
    mut names: Names,
) -> Option<usize> {
    // A name can be handed on several times, but never more often than there are modules.
    for _ in 0..=by_path.len() {
        let depth = (0..=names.len()).rev().find(|depth| by_path.contains_key(&names[..*depth]))?;
        let index = by_path[&names[..depth]];
        let name = names.get(depth)?;
        match handed_on[index].get(name) {
            Some(origin) => names = origin.iter().chain(&names[depth + 1..]).cloned().collect(),
            None => return Some(index),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Module, find};

    fn module(path: &str, text: &str) -> Module {
        Module {
            path: path.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect(),
            file: format!("{}.rs", if path.is_empty() { "lib" } else { path }),
            items: syn::parse_file(text).expect("the text is Rust").items,
        }
    }

    #[test]
    fn modules_that_import_each_other_are_a_circle() {
        let circles = find(&[
            module("", "mod a; mod b; mod c;"),
            module("a", "use crate::b::B; pub(crate) struct A;"),
            module("b", "pub(crate) struct B; fn f() -> crate::c::C { todo() }"),
            module("c", "use super::a; pub(crate) struct C; fn f(_: a::A) {}"),
        ]);
        assert_eq!(circles, [["a.rs", "b.rs", "c.rs"]]);
    }

    #[test]
    fn paths_in_attributes_and_macros_count() {
        let with = |field: &str| {
            find(&[
                module("", "mod a; mod b;"),
                module("a", &format!("pub(crate) struct A {{\n{field}\nx: u32 }}")),
                module("b", "use crate::a::A; pub(crate) fn one(_: A) -> u32 { 1 }"),
            ])
        };
        for field in ["#[serde(default = \"crate::b::one\")]", "#[arg(value_parser = super::b::one, long)]"] {
            assert_eq!(with(field), [["a.rs", "b.rs"]], "{field}");
        }
        for field in ["#[serde(default = \"one\")]", "/// As `crate::b::one` does.", "#[arg(long = \"b::one\")]"] {
            assert!(with(field).is_empty(), "{field}");
        }
        let circles = find(&[
            module("", "mod a; mod b;"),
            module("a", "pub(crate) struct A; fn f() -> String { format!(\"{}\", crate::b::one()) }"),
            module("b", "use crate::a::A; pub(crate) fn one(_: A) -> u32 { 1 }"),
        ]);
        assert_eq!(circles, [["a.rs", "b.rs"]]);
    }

    #[test]
    fn what_is_handed_on_counts_where_it_is_defined() {
        let circles = find(&[
            module("", "mod a; mod b; pub use a::A;"),
            module("a", "use crate::b::B; pub struct A;"),
            module("b", "pub(crate) struct B;"),
        ]);
        assert!(circles.is_empty(), "{circles:?}");
        let circles = find(&[
            module("", "mod a; mod b; pub use a::A;"),
            module("a", "use crate::b::B; pub struct A;"),
            module("b", "use crate::A; pub(crate) struct B(A);"),
        ]);
        assert_eq!(circles, [["a.rs", "b.rs"]]);
    }

    #[test]
    fn a_child_may_take_what_the_module_around_it_defines() {
        let parent = "mod child; use child::work; pub(crate) const LIMIT: u32 = 1; fn f() { work() }";
        let child = "use super::LIMIT; pub(super) fn work() -> u32 { LIMIT }";
        assert!(find(&[module("", parent), module("child", child)]).is_empty());
    }
}
