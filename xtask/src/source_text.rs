//! What checks have in common that read sources as text.

/// A source text up to the tests at its end. Tests in a file of their own, or a module for tests only, do not end it.
pub(crate) fn without_tests(text: &str) -> &str {
    let inline = text
        .match_indices("#[cfg(test)]\nmod ")
        .find(|(at, _)| text[*at..].lines().nth(1).is_some_and(|line| line.trim_end().ends_with('{')));
    inline.map_or(text, |(at, _)| &text[..at])
}
