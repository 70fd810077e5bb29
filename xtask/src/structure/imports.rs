//! What a module takes from other modules of its crate: its `use` lines and the paths that it writes out, also inside attributes
//! (`#[serde(with = "crate::form")]`) and what macros are given.

use super::source::{Module, is_for_tests};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::BTreeMap;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, LitStr, Macro, Meta, UseTree};

/// A path of names from the root of the crate, as in `a::b::Type`.
pub(super) type Names = Vec<String>;

/// Everything that a module names of its own crate.
pub(super) fn of(module: &Module) -> Vec<Names> {
    let children = module.items.iter().filter_map(|item| match item {
        Item::Mod(child) => Some(child.ident.to_string()),
        _ => None,
    });
    let mut known: BTreeMap<String, Names> =
        children.map(|child| (child.clone(), join(&module.path, &[child]))).collect();
    let mut reader = Reader { module: &module.path, known: BTreeMap::new(), found: Vec::new() };
    // Lines may stand in any order: `use a::b; use b::C;`.
    for (alias, path) in uses(module) {
        let path = absolute(&module.path, &known, &path);
        if let Some(path) = path {
            reader.found.push(path.clone());
            known.entry(alias).or_insert(path);
        }
    }
    reader.known = known;
    module.items.iter().filter(|item| !matches!(item, Item::Use(_))).for_each(|item| reader.visit_item(item));
    reader.found
}

/// The names that a module hands on with `pub use`, and what each stands for.
pub(super) fn handed_on(module: &Module) -> BTreeMap<String, Names> {
    let children: BTreeMap<String, Names> = module
        .items
        .iter()
        .filter_map(|item| match item {
            Item::Mod(child) => Some(child.ident.to_string()),
            _ => None,
        })
        .map(|child| (child.clone(), join(&module.path, &[child])))
        .collect();
    uses(module).filter_map(|(alias, path)| Some((alias, absolute(&module.path, &children, &path)?))).collect()
}

/// Each name that a `use` line brings in, and the path as written.
fn uses(module: &Module) -> impl Iterator<Item = (String, Names)> {
    let mut flat = Vec::new();
    for item in &module.items {
        if let Item::Use(line) = item {
            flatten(&line.tree, &mut Vec::new(), &mut flat);
        }
    }
    flat.into_iter()
}

fn flatten(tree: &UseTree, before: &mut Names, flat: &mut Vec<(String, Names)>) {
    match tree {
        UseTree::Path(path) => {
            before.push(path.ident.to_string());
            flatten(&path.tree, before, flat);
            before.pop();
        }
        UseTree::Name(name) if name.ident == "self" => {
            flat.push((before.last().cloned().unwrap_or_default(), before.clone()));
        }
        UseTree::Name(name) => flat.push((name.ident.to_string(), join(before, &[name.ident.to_string()]))),
        UseTree::Rename(name) => flat.push((name.rename.to_string(), join(before, &[name.ident.to_string()]))),
        UseTree::Glob(_) => flat.push(("*".to_owned(), before.clone())),
        UseTree::Group(group) => group.items.iter().for_each(|tree| flatten(tree, before, flat)),
    }
}

/// A path as a module writes it, from the root of the crate; nothing if it leads out of the crate.
fn absolute(module: &[String], known: &BTreeMap<String, Names>, path: &[String]) -> Option<Names> {
    let (first, rest) = path.split_first()?;
    match first.as_str() {
        "crate" => Some(rest.to_vec()),
        "self" => Some(join(module, rest)),
        "super" => absolute_above(module.split_last()?.1, rest),
        name => known.get(name).map(|known| join(known, rest)),
    }
}

fn absolute_above(module: &[String], path: &[String]) -> Option<Names> {
    match path.split_first() {
        Some((first, rest)) if first == "super" => absolute_above(module.split_last()?.1, rest),
        _ => Some(join(module, path)),
    }
}

fn join(one: &[String], other: &[String]) -> Names {
    one.iter().chain(other).cloned().collect()
}

/// Collects the paths written out in a module's code.
struct Reader<'a> {
    module: &'a [String],
    known: BTreeMap<String, Names>,
    found: Vec<Names>,
}

impl Reader<'_> {
    fn take(&mut self, names: &[String]) {
        // A single name is what a `use` line brought in, which has been counted, or the module's own.
        if names.len() > 1 {
            self.found.extend(absolute(self.module, &self.known, names));
        }
    }

    /// Takes the paths among tokens, which nobody has parsed; with `texts` also those that are written as text.
    fn take_tokens(&mut self, tokens: TokenStream, texts: bool) {
        let mut names = Names::new();
        let mut colons = 0;
        for token in tokens {
            match &token {
                TokenTree::Punct(mark) if mark.as_char() == ':' && !names.is_empty() => {
                    colons += 1;
                    continue;
                }
                TokenTree::Ident(name) if colons == 2 => names.push(name.to_string()),
                _ => {
                    self.take(&std::mem::take(&mut names));
                    match token {
                        TokenTree::Ident(name) => names.push(name.to_string()),
                        TokenTree::Group(group) => self.take_tokens(group.stream(), texts),
                        TokenTree::Literal(text) if texts => self.take_text(&text),
                        _ => {}
                    }
                }
            }
            colons = 0;
        }
        self.take(&names);
    }

    /// A path written as text, as serde wants it.
    fn take_text(&mut self, text: &proc_macro2::Literal) {
        let text = syn::parse_str::<LitStr>(&text.to_string());
        if let Ok(path) = text.and_then(|text| text.parse::<syn::Path>()) {
            self.take(&names_of(&path));
        }
    }
}

fn names_of(path: &syn::Path) -> Names {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.take(&names_of(path));
        visit::visit_path(self, path);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        if let Meta::List(list) = &attribute.meta {
            self.take_tokens(list.tokens.clone(), true);
        }
    }

    fn visit_macro(&mut self, invoked: &'ast Macro) {
        self.visit_path(&invoked.path);
        self.take_tokens(invoked.tokens.clone(), false);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }
}
