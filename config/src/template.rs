//! What is generated from the keys: the commented default file and the JSON schema for editors.

use crate::jobs::{JOB, JobRule};
use crate::key::{Key, Kind, size_text};
use crate::keys::{DEVICE, RULE, SECTIONS};
use crate::listener_keys::IDENTITY;
use crate::participation::Identity;
use crate::settings::Config;
use minerva_model::{DeviceSettings, TenantRule};
use serde_json::{Map, Value, json};
use std::fmt::Write;

const HEAD: &str = "\
# Minerva's settings. Every key stands here with its default; a file that says nothing is complete.
# Drop-ins, minerva.toml.d/*.toml beside this file, are read after it in the order of their names, and what they say wins.
# `minerva-ctl config check` judges it all without changing anything.
";

/// The default file, with every key and its meaning.
pub fn default_file() -> String {
    let mut out = HEAD.to_owned();
    let config = Config::default();
    for section in SECTIONS {
        if !section.name.is_empty() {
            // Writing to a String cannot fail; the same holds below.
            let _ = write!(out, "\n# {}\n[{}]", section.doc, section.name);
        }
        out.push('\n');
        write_keys(&mut out, section.keys, &config, false);
    }
    out.push_str("\n# One table a disk, by kernel name.\n# [devices.sda]\n");
    write_keys(&mut out, DEVICE, &DeviceSettings::default(), true);
    out.push_str(
        "\n# Rules for tenants. All that match apply, in this order; what a later one says wins.\n# [[rules]]\n",
    );
    write_keys(&mut out, RULE, &TenantRule::default(), true);
    out.push_str("\n# Batch jobs: of those that use one disk the shortest goes first. Tenants may say so themselves too.\n# [[jobs]]\n");
    write_keys(&mut out, JOB, &JobRule::default(), true);
    out.push_str("\n# Who asks where the kernel does not say it: over TCP, and virtual machines. One proof each.\n");
    if let Some((tenant, ways)) = IDENTITY.split_first() {
        for way in ways {
            out.push_str("# [[identities]]\n");
            write_keys(&mut out, std::slice::from_ref(tenant), &Identity::default(), true);
            write_keys(&mut out, std::slice::from_ref(way), &Identity::default(), true);
        }
    }
    out
}

pub(crate) fn write_keys<T>(out: &mut String, keys: &[Key<T>], value: &T, commented: bool) {
    for key in keys {
        let shown = (key.show)(value);
        let mark = if commented || shown.is_none() { "# " } else { "" };
        let _ = writeln!(out, "# {}{}", key.doc, range(&key.kind));
        let _ = writeln!(out, "{mark}{} = {}", key.name, shown.as_deref().unwrap_or(key.example));
    }
}

fn range<T>(kind: &Kind<T>) -> String {
    match kind {
        Kind::Duration { least, most, .. } => {
            format!(" {} to {}.", crate::key::duration_text(*least), crate::key::duration_text(*most))
        }
        Kind::Whole { least, most, .. } => format!(" {least} to {most}."),
        Kind::Size { least, most, .. } => format!(" {} to {}.", size_text(*least), size_text(*most)),
        Kind::Fraction { least, most, .. } => format!(" {least} to {most}."),
        Kind::Choice { words, .. } => format!(" One of {}.", words.join(", ")),
        Kind::Flag { .. } | Kind::Text { .. } | Kind::Texts { .. } => String::new(),
    }
}

/// A JSON schema of the file, for editors.
pub fn json_schema() -> Value {
    let mut properties = Map::new();
    for section in SECTIONS {
        if section.name.is_empty() {
            properties.extend(schema_keys(section.keys));
        } else {
            properties.insert(section.name.to_owned(), schema_table(section.doc, section.keys));
        }
    }
    let device = schema_table("One disk's settings.", DEVICE);
    properties.insert("devices".to_owned(), json!({ "type": "object", "additionalProperties": device }));
    let mut rule = schema_table("One rule.", RULE);
    rule["required"] = json!(["pattern"]);
    properties.insert("rules".to_owned(), json!({ "type": "array", "items": rule }));
    let mut job = schema_table("One batch job.", JOB);
    job["required"] = json!(["pattern", "name"]);
    properties.insert("jobs".to_owned(), json!({ "type": "array", "items": job }));
    let mut identity = schema_table("One proof of who asks.", IDENTITY);
    identity["required"] = json!(["tenant"]);
    properties.insert("identities".to_owned(), json!({ "type": "array", "items": identity }));
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Minerva's settings",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    })
}

fn schema_table<T>(doc: &str, keys: &[Key<T>]) -> Value {
    json!({ "type": "object", "description": doc, "additionalProperties": false, "properties": schema_keys(keys) })
}

fn schema_keys<T>(keys: &[Key<T>]) -> Map<String, Value> {
    let schema = |key: &Key<T>| {
        let mut schema = match &key.kind {
            Kind::Duration { .. } | Kind::Text { .. } => json!({ "type": "string" }),
            Kind::Whole { least, most, .. } => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Kind::Size { .. } => json!({ "type": ["string", "integer"] }),
            Kind::Fraction { least, most, .. } => json!({ "type": "number", "minimum": least, "maximum": most }),
            Kind::Flag { .. } => json!({ "type": "boolean" }),
            Kind::Choice { words, .. } => json!({ "enum": words }),
            Kind::Texts { .. } => json!({ "type": "array", "items": { "type": "string" } }),
        };
        schema["description"] = json!(format!("{}{}", key.doc, range(&key.kind)));
        (key.name.to_owned(), schema)
    };
    keys.iter().map(schema).collect()
}
