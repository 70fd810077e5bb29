//! How long files and functions are, tests left out.

use super::source::{Module, is_for_tests};
use std::collections::BTreeMap;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// A function of more lines is long.
pub(super) const FUNCTION_LINES: usize = 50;
/// A file of more lines is long.
pub(super) const FILE_LINES: usize = 300;

/// Files of more than [`FILE_LINES`] lines, with their lines.
pub(super) fn long_files(modules: &[Module]) -> BTreeMap<String, usize> {
    let lines = |module: &Module| module.items.iter().map(|item| item.span().end().line).max().unwrap_or_default();
    let all = modules.iter().map(|module| (module.file.clone(), lines(module)));
    all.filter(|(_, lines)| *lines > FILE_LINES).collect()
}

/// Functions of more than [`FUNCTION_LINES`] lines as `file::function`, with their lines.
pub(super) fn long_functions(modules: &[Module]) -> BTreeMap<String, usize> {
    let mut reader = Reader { file: "", found: BTreeMap::new() };
    for module in modules {
        reader.file = &module.file;
        module.items.iter().for_each(|item| reader.visit_item(item));
    }
    reader.found
}

struct Reader<'a> {
    file: &'a str,
    found: BTreeMap<String, usize>,
}

impl Reader<'_> {
    fn function(&mut self, name: &syn::Ident, block: &syn::Block) {
        let lines = block.span().end().line.saturating_sub(name.span().start().line) + 1;
        if lines > FUNCTION_LINES {
            self.found.insert(format!("{}::{name}", self.file), lines);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.function(&function.sig.ident, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.function(&function.sig.ident, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if !is_for_tests(&module.attrs) {
            visit::visit_item_mod(self, module);
        }
    }
}
