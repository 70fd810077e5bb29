//! Messages as they are, unread. What a newer contract adds to them passes through an older agent.

use bytes::{Buf, BufMut, Bytes};
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::metadata::{KeyRef, MetadataMap};

/// Takes messages for bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Unread;

impl Codec for Unread {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Unread {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put(message);
        Ok(())
    }
}

impl Decoder for Unread {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        let length = from.remaining();
        Ok(Some(from.copy_to_bytes(length)))
    }
}

/// Metadata that concerns one connection and not the message: whose it is, how it is encoded, how long this side waits.
const OF_A_CONNECTION: [&str; 6] = ["authorization", "user-agent", "te", "content-type", "content-length", "date"];

/// What goes along with a message from one connection to the next.
pub(crate) fn carried(mut metadata: MetadataMap) -> MetadataMap {
    let stays: Vec<String> = metadata
        .keys()
        .map(|key| match key {
            KeyRef::Ascii(key) => key.as_str().to_owned(),
            KeyRef::Binary(key) => key.as_str().to_owned(),
        })
        .filter(|key| OF_A_CONNECTION.contains(&key.as_str()) || key.starts_with("grpc-"))
        .collect();
    for key in stays {
        metadata.remove(key.as_str());
        metadata.remove_bin(key.as_str());
    }
    metadata
}

/// A refusal, as the server gave it.
pub(crate) fn carried_status(status: &Status) -> Status {
    let metadata = carried(status.metadata().clone());
    let details = Bytes::copy_from_slice(status.details());
    Status::with_details_and_metadata(status.code(), status.message(), details, metadata)
}

#[cfg(test)]
mod tests {
    use super::{carried, carried_status};
    use tonic::metadata::MetadataMap;
    use tonic::{Code, Status};

    #[test]
    fn what_concerns_a_connection_stays_behind() {
        let mut metadata = MetadataMap::new();
        for key in ["authorization", "grpc-timeout", "user-agent", "minerva-trace"] {
            metadata.insert(key, "1".parse().expect("a value"));
        }
        let carried = carried(metadata);
        assert_eq!(carried.len(), 1);
        assert!(carried.contains_key("minerva-trace"));
    }

    #[test]
    fn a_refusal_keeps_its_word_and_loses_the_date() {
        let mut metadata = MetadataMap::new();
        metadata.insert("minerva-refusal", "not-enough-credits".parse().expect("a value"));
        metadata.insert("date", "today".parse().expect("a value"));
        let status = carried_status(&Status::with_metadata(Code::FailedPrecondition, "a sentence", metadata));
        assert_eq!((status.code(), status.message()), (Code::FailedPrecondition, "a sentence"));
        assert_eq!(status.metadata().len(), 1);
    }
}
