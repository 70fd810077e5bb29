//! The grammar of DiskSim's parameter files: `TYPE NAME { key = value, ... }`, where a value is a number, words, a list
//! in brackets or a block. `#` starts a comment. Keys are words with spaces between them.

/// A line number and what is wrong there.
type Fault = (usize, String);

/// A value, with what it takes to understand it.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    List(Vec<Value>),
    Block(Block),
}

/// `kind { key = value, ... }`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Block {
    pub(super) kind: String,
    pub(super) line: usize,
    entries: Vec<(String, usize, Value)>,
}

impl Value {
    pub(super) fn as_word(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Block {
    pub(super) fn get(&self, key: &str) -> Option<(usize, &Value)> {
        // The last one holds, as when a file overrides what it included.
        let (_, line, value) = self.entries.iter().rev().find(|(name, _, _)| name.eq_ignore_ascii_case(key))?;
        Some((*line, value))
    }

    pub(super) fn word(&self, key: &str) -> Option<&str> {
        self.get(key)?.1.as_word()
    }

    pub(super) fn block(&self, key: &str) -> Option<&Block> {
        match self.get(key)?.1 {
            Value::Block(block) => Some(block),
            _ => None,
        }
    }

    /// A number; `absent` when the key is not there.
    pub(super) fn number(&self, key: &str, absent: f64) -> Result<f64, Fault> {
        let Some((line, value)) = self.get(key) else { return Ok(absent) };
        number_of(value).ok_or_else(|| (line, format!("`{key}` must be a number")))
    }

    /// A number above zero that must be there.
    pub(super) fn positive(&self, key: &str) -> Result<f64, Fault> {
        let number = self.number(key, f64::NAN)?;
        if number > 0.0 {
            return Ok(number);
        }
        let line = self.get(key).map_or(self.line, |(line, _)| line);
        Err((line, format!("`{key}` must be there, and positive")))
    }

    pub(super) fn flag(&self, key: &str) -> Result<bool, Fault> {
        Ok(self.number(key, 0.0)? != 0.0)
    }

    /// The elements of a list that must be there.
    pub(super) fn list(&self, key: &str) -> Result<&[Value], Fault> {
        match self.get(key) {
            Some((_, Value::List(values))) => Ok(values),
            Some((line, _)) => Err((line, format!("`{key}` must be a list in brackets"))),
            None => Err((self.line, format!("`{key}` is missing"))),
        }
    }

    /// A list of numbers; empty when the key is not there.
    pub(super) fn numbers(&self, key: &str) -> Result<Vec<f64>, Fault> {
        let Some((line, _)) = self.get(key) else { return Ok(Vec::new()) };
        let fault = || (line, format!("`{key}` must hold numbers only"));
        self.list(key)?.iter().map(|value| number_of(value).ok_or_else(fault)).collect()
    }
}

fn number_of(value: &Value) -> Option<f64> {
    value.as_word()?.parse::<f64>().ok().filter(|number| number.is_finite())
}

/// The first block of a type, wherever it stands at the top of the text.
pub(super) fn find(text: &str, kind: &str) -> Result<Option<Block>, Fault> {
    Ok(find_all(text, kind)?.into_iter().next())
}

/// All blocks of a type at the top of the text.
pub(super) fn find_all(text: &str, kind: &str) -> Result<Vec<Block>, Fault> {
    let mut reader = Reader { tokens: tokens(text), next: 0 };
    let mut found = Vec::new();
    while let Some((line, token)) = reader.take() {
        match token {
            // Statements between blocks (`source`, `instantiate`, `topology`) run into the next block's type: its own
            // words are the last two.
            Token::Text(words) if reader.peek() == Some(&Token::Open) => {
                reader.take();
                let mut last_two = words.split_whitespace().rev().take(2);
                let is_kind = last_two.any(|word| word == kind);
                let block = reader.block(if is_kind { kind.to_owned() } else { words }, line, 0)?;
                if is_kind {
                    found.push(block);
                }
            }
            Token::ListOpen => {
                reader.list(line, 0)?;
            }
            _ => {}
        }
    }
    Ok(found)
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Text(String),
    Open,
    Close,
    ListOpen,
    ListClose,
    Comma,
    Equals,
}

fn tokens(text: &str) -> Vec<(usize, Token)> {
    let mut all = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    let mut words_line = 1;
    for (index, whole) in text.lines().enumerate() {
        let line = index + 1;
        let mut rest = whole.split('#').next().unwrap_or_default();
        while !rest.is_empty() {
            let stop = rest.find(['{', '}', '[', ']', ',', '=']).unwrap_or(rest.len());
            let (before, after) = rest.split_at(stop);
            if words.is_empty() {
                words_line = line;
            }
            words.extend(before.split_whitespace());
            let Some(delimiter) = after.chars().next() else { break };
            if !words.is_empty() {
                all.push((words_line, Token::Text(words.join(" "))));
                words.clear();
            }
            all.push((
                line,
                match delimiter {
                    '{' => Token::Open,
                    '}' => Token::Close,
                    '[' => Token::ListOpen,
                    ']' => Token::ListClose,
                    ',' => Token::Comma,
                    _ => Token::Equals,
                },
            ));
            rest = &after[1..];
        }
    }
    if !words.is_empty() {
        all.push((words_line, Token::Text(words.join(" "))));
    }
    all
}

struct Reader {
    tokens: Vec<(usize, Token)>,
    next: usize,
}

/// Blocks and lists within each other, at most; a hostile file must not exhaust the stack.
const DEPTH_MAX: usize = 32;

impl Reader {
    fn take(&mut self) -> Option<(usize, Token)> {
        let token = self.tokens.get(self.next).cloned();
        self.next += 1;
        token
    }

    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.next).map(|(_, token)| token)
    }

    fn end_of_text(&self, line: usize, what: &str) -> Fault {
        (self.tokens.last().map_or(1, |(last, _)| *last), format!("the {what} that starts in line {line} has no end"))
    }

    /// The rest of a block whose `{` has been taken.
    fn block(&mut self, kind: String, line: usize, depth: usize) -> Result<Block, Fault> {
        if depth > DEPTH_MAX {
            return Err((line, format!("blocks are nested more than {DEPTH_MAX} deep")));
        }
        let mut entries = Vec::new();
        loop {
            match self.take() {
                Some((_, Token::Close)) => return Ok(Block { kind, line, entries }),
                Some((_, Token::Comma)) => {}
                Some((key_line, Token::Text(key))) => match self.peek() {
                    Some(Token::Equals) => {
                        self.take();
                        let value = self.value(key_line, depth)?;
                        entries.push((key, key_line, value));
                    }
                    _ => return Err((key_line, format!("`{key}` is not followed by `=`"))),
                },
                Some((at, _)) => return Err((at, "expected `key = value`".to_owned())),
                None => return Err(self.end_of_text(line, "block")),
            }
        }
    }

    fn value(&mut self, key_line: usize, depth: usize) -> Result<Value, Fault> {
        match self.take() {
            Some((line, Token::ListOpen)) => Ok(Value::List(self.list(line, depth + 1)?)),
            Some((line, Token::Text(text))) if self.peek() == Some(&Token::Open) => {
                self.take();
                let kind = text.split_whitespace().next().unwrap_or_default().to_owned();
                Ok(Value::Block(self.block(kind, line, depth + 1)?))
            }
            Some((_, Token::Text(text))) => Ok(Value::Text(text)),
            _ => Err((key_line, "there is no value behind `=`".to_owned())),
        }
    }

    /// The rest of a list whose `[` has been taken.
    fn list(&mut self, line: usize, depth: usize) -> Result<Vec<Value>, Fault> {
        if depth > DEPTH_MAX {
            return Err((line, format!("lists are nested more than {DEPTH_MAX} deep")));
        }
        let mut values = Vec::new();
        loop {
            match self.peek() {
                Some(Token::ListClose) => {
                    self.take();
                    return Ok(values);
                }
                Some(Token::Comma) => {
                    self.take();
                }
                Some(Token::Text(_) | Token::ListOpen) => values.push(self.value(line, depth)?),
                Some(_) => return Err((line, "the list that starts here holds something else than values".to_owned())),
                None => return Err(self.end_of_text(line, "list")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{find, find_all};
    use proptest::prelude::*;

    const TEXT: &str = "source other.file\ntype thing A { # comment = {\n a b = 1.5,\n c = source x.y,\n d = [ 1, 2,\n 3 ], \
                        e = sub Name { f (g) = 2 }\n}\ninstantiate [ a ] as A\ntopology t [ b [ c [] ] ]\nthing B { x = 3 }";

    #[test]
    fn blocks_lists_and_words() {
        let all = find_all(TEXT, "thing").unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].number("a b", 0.0), Ok(1.5));
        assert_eq!(all[0].word("c"), Some("source x.y"));
        assert_eq!(all[0].numbers("d"), Ok(vec![1.0, 2.0, 3.0]));
        assert_eq!(
            all[0].block("e").map(|block| (block.kind.as_str(), block.number("f (g)", 0.0))),
            Some(("sub", Ok(2.0)))
        );
        assert_eq!(all[1].number("x", 0.0), Ok(3.0));
    }

    #[test]
    fn faults_name_their_line() {
        assert_eq!(find("a b {\n x 1,\n}", "a").unwrap_err().0, 2);
        assert!(find("a b {\n x = [ 1,\n", "a").unwrap_err().1.contains("line 2 has no end"));
        assert!(find(&"a { x = ".repeat(5000), "a").unwrap_err().1.contains("nested"));
        assert_eq!(find("a b {\n\n x = y }", "a").unwrap().unwrap().number("x", 0.0).unwrap_err().0, 3);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_fall(text in "[a{}=\\[\\], #\n0-9]{0,80}") {
            let _ = find_all(&text, "a");
        }
    }
}
