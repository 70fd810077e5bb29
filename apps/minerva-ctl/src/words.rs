//! Arguments that are one word of a few: a shell completes them, and whoever takes a wrong one refuses it in a sentence of its own.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::{Arg, Command};
use std::error::Error;
use std::ffi::OsStr;
use std::marker::PhantomData;
use std::str::FromStr;

/// Reads a `T`; only completions know the words.
#[derive(Clone)]
pub(crate) struct Words<T> {
    known: Vec<&'static str>,
    read: PhantomData<T>,
}

/// Reads one of these words.
pub(crate) fn words<T>(known: impl IntoIterator<Item = &'static str>) -> Words<T> {
    Words { known: known.into_iter().collect(), read: PhantomData }
}

impl<T> TypedValueParser for Words<T>
where
    T: FromStr + Clone + Send + Sync + 'static,
    T::Err: Into<Box<dyn Error + Send + Sync + 'static>>,
{
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, clap::Error> {
        StringValueParser::new().try_map(|word| word.parse()).parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.known.iter().map(|word| PossibleValue::new(*word))))
    }
}
