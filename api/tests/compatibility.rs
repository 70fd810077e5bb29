//! Today's contract against the first version that was committed (`v1-first`): an old client works with a new server and the
//! reverse. Whoever changes a `.proto` file runs into this; the copy is never changed.

#![expect(clippy::expect_used, reason = "a test that cannot go on says why by panicking")]

use prost::Message;
use prost_reflect::{
    Cardinality, DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor, ReflectMessage,
    Value,
};
use std::path::Path;

const FILES: [&str; 2] = ["minerva/v1/operator.proto", "minerva/v1/participation.proto"];

fn pool(directory: &Path) -> DescriptorPool {
    let files = protox::compile(FILES, [directory]).expect("a contract");
    DescriptorPool::from_file_descriptor_set(files).expect("whole")
}

fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// What of a field goes over the wire or into a program.
fn shape(field: &FieldDescriptor) -> String {
    let kind = match field.kind() {
        Kind::Message(message) => message.full_name().to_owned(),
        Kind::Enum(number) => number.full_name().to_owned(),
        scalar => format!("{scalar:?}"),
    };
    let oneof = field.containing_oneof().map(|oneof| oneof.name().to_owned());
    format!("{} {:?} {kind} presence {} in {oneof:?}", field.name(), field.cardinality(), field.supports_presence())
}

/// Everything of `old` that is not the same in `new`.
fn breaches(old: &DescriptorPool, new: &DescriptorPool) -> Vec<String> {
    let mut found = Vec::new();
    for message in old.all_messages().filter(|message| message.full_name().starts_with("minerva.")) {
        let name = message.full_name();
        let Some(today) = new.get_message_by_name(name) else {
            found.push(format!("{name} is gone"));
            continue;
        };
        for field in message.fields() {
            let (number, before) = (field.number(), shape(&field));
            match today.get_field(number).map(|field| shape(&field)) {
                Some(after) if after == before => {}
                after => found.push(format!("{name} = {number} was `{before}` and is {after:?}")),
            }
        }
    }
    for words in old.all_enums() {
        let name = words.full_name();
        for value in words.values() {
            let today = new.get_enum_by_name(name).and_then(|words| words.get_value(value.number()));
            if today.is_none_or(|today| today.name() != value.name()) {
                found.push(format!("{name}: {} = {} is gone", value.name(), value.number()));
            }
        }
    }
    for service in old.services() {
        let today = new.get_service_by_name(service.full_name());
        for method in service.methods() {
            let today = today.as_ref().and_then(|today| today.methods().find(|one| one.name() == method.name()));
            let shape = |method: &prost_reflect::MethodDescriptor| {
                let (input, output) = (method.input(), method.output());
                let streaming = (method.is_client_streaming(), method.is_server_streaming());
                (input.full_name().to_owned(), output.full_name().to_owned(), streaming)
            };
            if today.as_ref().map(shape) != Some(shape(&method)) {
                found.push(format!("{} is gone or another", method.full_name()));
            }
        }
    }
    found
}

#[test]
fn todays_contract_has_all_of_the_first_one() {
    let found = breaches(&pool(&folder("tests/v1-first")), &pool(&folder("proto")));
    assert!(found.is_empty(), "an old client would not be understood any more:\n{}", found.join("\n"));
}

#[test]
fn what_would_break_an_old_client_is_found() {
    let first = folder("tests/v1-first");
    let changed = |from: &str, to: &str| {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(directory.path().join("minerva/v1")).expect("a directory");
        for file in FILES {
            let text = std::fs::read_to_string(first.join(file)).expect("a contract");
            std::fs::write(directory.path().join(file), text.replace(from, to)).expect("written");
        }
        breaches(&pool(&first), &pool(directory.path()))
    };
    assert!(changed("nothing has this", "").is_empty());
    for (from, to) in [
        ("uint64 size_bytes = 2;\n  Access access", "uint64 size_bytes = 12;\n  Access access"),
        ("uint64 begin_within_ns = 4;", "int64 begin_within_ns = 4;"),
        ("optional uint64 level_left_ns", "uint64 level_left_ns"),
        ("string tenant = 2;\n  // How the caller", "// How the caller"),
        ("bool begun = 3;", "bool started = 3;"),
        ("LEVEL_IDLE = 4;", "LEVEL_IDLEST = 4;"),
        ("returns (stream HoldLevelResponse)", "returns (HoldLevelResponse)"),
        ("rpc Begin(", "rpc Start("),
        ("repeated BoostUnderWay boosts", "BoostUnderWay boosts"),
    ] {
        assert!(!changed(from, to).is_empty(), "`{from}` to `{to}` went unnoticed");
    }
}

/// A value that is not the default.
fn sample(kind: &Kind, depth: u32) -> Value {
    match kind {
        Kind::Double => Value::F64(1.5),
        Kind::Float => Value::F32(1.5),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(-7),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(-7),
        Kind::Uint32 | Kind::Fixed32 => Value::U32(7),
        Kind::Uint64 | Kind::Fixed64 => Value::U64(u64::MAX),
        Kind::Bool => Value::Bool(true),
        Kind::String => Value::String("text".to_owned()),
        Kind::Bytes => Value::Bytes(vec![0, 255].into()),
        Kind::Enum(words) => Value::EnumNumber(words.values().last().map_or(0, |value| value.number())),
        Kind::Message(message) => Value::Message(full(message, depth + 1)),
    }
}

/// A message in which everything is set; of alternatives, the last.
fn full(descriptor: &MessageDescriptor, depth: u32) -> DynamicMessage {
    let mut message = DynamicMessage::new(descriptor.clone());
    for field in descriptor.fields().filter(|_| depth < 4) {
        let value = sample(&field.kind(), depth);
        let value = match field.cardinality() {
            Cardinality::Repeated if field.is_map() => Value::Map([(MapKey::Bool(true), value)].into()),
            Cardinality::Repeated => Value::List(vec![value.clone(), value]),
            _ => value,
        };
        message.set_field(&field, value);
    }
    message
}

#[test]
fn bytes_of_either_version_are_read_by_the_other() {
    let (old, new) = (pool(&folder("tests/v1-first")), pool(&folder("proto")));
    let mut count = 0;
    for first in old.all_messages().filter(|message| message.full_name().starts_with("minerva.")) {
        let today = new.get_message_by_name(first.full_name()).expect("nothing is gone");
        let said = full(&first, 0);
        let heard = DynamicMessage::decode(today.clone(), said.encode_to_vec().as_slice()).expect("an old message");
        for field in first.fields() {
            let same = today.get_field(field.number()).expect("nothing is gone");
            // A message inside has fields of today that were not said: their bytes are the same nevertheless.
            assert_eq!(bytes_of(&said, &field), bytes_of(&heard, &same), "{}", field.full_name());
        }
        let said = full(&today, 0);
        let heard = DynamicMessage::decode(first.clone(), said.encode_to_vec().as_slice()).expect("a new message");
        assert_eq!(heard.descriptor(), first);
        count += 1;
    }
    assert!(count > 40, "{count} messages");
}

/// The field alone, as it goes over the wire.
fn bytes_of(message: &DynamicMessage, field: &FieldDescriptor) -> Vec<u8> {
    let mut only = DynamicMessage::new(message.descriptor());
    if message.has_field(field) {
        only.set_field(field, message.get_field(field).into_owned());
    }
    only.encode_to_vec()
}

#[test]
fn a_field_of_the_future_is_passed_over() {
    let request = minerva_api::v1::CoordinateRequest {
        request_id: "key".to_owned(),
        size_bytes: 7,
        ..minerva_api::v1::CoordinateRequest::default()
    };
    let mut bytes = request.encode_to_vec();
    // Field 1,000, three bytes long.
    bytes.extend([0xc2, 0x3e, 3, 1, 2, 3]);
    let heard = minerva_api::v1::CoordinateRequest::decode(bytes.as_slice()).expect("understood");
    assert_eq!(heard, request);
}
