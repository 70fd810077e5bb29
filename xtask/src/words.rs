//! Words that the glossary replaced, and papers that are named by a number of their own: neither may come back.
//!
//! No part of a type's name may be one of these metaphors. Common English words ("its place", "standing still") are free in text,
//! and so are former names that recordings and operators' files still have, where the code reads them.

use std::path::Path;

/// What no type is named, in any part of its name. The right words are in docs/glossary.md.
const NOT_IN_TYPES: &[&str] = &[
    "Asking", "Door", "Doors", "Gate", "Gates", "Lobby", "Peerage", "Place", "Places", "Porter", "Seat", "Seats",
    "Standing", "Verdict", "Verdicts",
];

/// What no text says, in any case.
const NOT_IN_TEXT: &[&str] = &[
    "dawdle", "dawdles", "door", "doors", "gate", "gates", "knock", "knocks", "lobby", "peerage", "porter", "verdict",
    "verdicts",
];

/// Files that are read.
const ENDINGS: &[&str] = &[".c", ".h", ".md", ".proto", ".py", ".rs", ".toml"];

/// Files that name the words in order to replace them.
const EXCEPTED: &[&str] = &["docs/glossary.md", "xtask/src/words.rs"];

/// Where the files use such words, as `file:line: what`.
pub(crate) fn banned(root: &Path, files: &[String]) -> Vec<String> {
    let is_read =
        |file: &&String| ENDINGS.iter().any(|ending| file.ends_with(ending)) && !EXCEPTED.contains(&file.as_str());
    let problems = files.iter().filter(is_read).flat_map(|file| {
        let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let lines = text.lines().enumerate();
        lines
            .filter_map(|(index, line)| Some(format!("{file}:{}: {}", index + 1, banned_in(line)?)))
            .collect::<Vec<_>>()
    });
    problems.collect()
}

/// What is wrong with a line's words.
fn banned_in(line: &str) -> Option<String> {
    // A former name that is still read.
    if ["alias = \"", "rename = \""].iter().any(|key| line.contains(key)) {
        return None;
    }
    let words = || line.split(|character: char| !(character.is_alphanumeric() || character == '_'));
    let text = words().find(|word| NOT_IN_TEXT.iter().any(|banned| word.eq_ignore_ascii_case(banned)));
    let names =
        words().zip(words().skip(1)).filter(|(before, _)| matches!(*before, "enum" | "struct" | "trait" | "type"));
    let name = names.map(|(_, name)| name).find(|name| parts(name).any(|part| NOT_IN_TYPES.contains(&part)));
    if let Some(word) = text.or(name) {
        return Some(format!("`{word}`: docs/glossary.md has the word for it"));
    }
    let numbered = words().zip(words().skip(1)).find(|(before, number)| {
        let is_number =
            number.len() == 3 && number.starts_with('0') && number.bytes().all(|byte| byte.is_ascii_digit());
        before.eq_ignore_ascii_case("seed") && is_number
    });
    numbered.map(|(_, number)| format!("paper {number}: papers are cited by author and year"))
}

/// The words of a type's name.
fn parts(name: &str) -> impl Iterator<Item = &str> {
    let starts: Vec<usize> =
        name.char_indices().filter(|(_, letter)| letter.is_uppercase()).map(|(at, _)| at).collect();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([name.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| &name[start..end])
}

#[cfg(test)]
mod tests {
    use super::banned_in;

    #[test]
    fn words_that_were_replaced_are_found_and_common_ones_are_not() {
        for line in [
            "pub(crate) struct ProbePlace {",
            "enum Standing {",
            "type Places = Vec<u32>;",
            "/// Waits for the gate.",
            "let verdict = judge();",
            "// The Lobby.",
            "//! As in seed 004, section 2.",
        ] {
            assert!(banned_in(line).is_some(), "{line}");
        }
        for line in [
            "/// At its place, standing still; asking again.",
            "struct Placement;",
            "fn aggregate(gateway: u32) {}",
            "    #[serde(alias = \"verdict\")]",
            "    (\"fennel\", \"verdicts_needed\", \"group_change_slices\"),",
            "println!(\"seed 17\");",
        ] {
            assert_eq!(banned_in(line), None, "{line}");
        }
    }
}
