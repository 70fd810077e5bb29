//! SQLite store and event recorder.
