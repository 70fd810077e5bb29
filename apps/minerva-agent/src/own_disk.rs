//! What the disk on which a program works is like, for the server outside, to which the disk's number here says nothing.

use bytes::{Bytes, BytesMut};
use minerva_api::v1;
use minerva_client::DiskLooks;
use prost::Message;

/// The request with the size and serial of the disk that it is for, where the program did not say them and they are known here. Fields are
/// added at the end, as protocol buffers are merged, so that what a newer contract has in it stays.
pub(crate) fn told(request: Bytes) -> Bytes {
    told_as(request, DiskLooks::of)
}

fn told_as(request: Bytes, looks: impl Fn(&str) -> Option<DiskLooks>) -> Bytes {
    let Ok(asked) = v1::CoordinateRequest::decode(request.clone()) else { return request };
    if !asked.device.is_empty() || asked.working_disk_size_bytes != 0 || !asked.working_disk_serial.is_empty() {
        return request;
    }
    let Some(looks) = looks(&asked.working_device) else { return request };
    let added = v1::CoordinateRequest {
        working_disk_size_bytes: looks.size_bytes,
        working_disk_serial: looks.serial,
        ..v1::CoordinateRequest::default()
    };
    let mut told = BytesMut::from(&request[..]);
    told.extend_from_slice(&added.encode_to_vec());
    told.freeze()
}

#[cfg(test)]
mod tests {
    use super::told_as;
    use bytes::Bytes;
    use minerva_api::v1::CoordinateRequest;
    use minerva_client::DiskLooks;
    use prost::Message;

    #[test]
    fn a_request_is_told_of_the_disk_below_it_and_keeps_what_else_is_in_it() {
        let looks = |device: &str| {
            (device == "254:1").then(|| DiskLooks { size_bytes: 10 << 30, serial: "root-disk".to_owned() })
        };
        let asked = CoordinateRequest {
            request_id: "load".to_owned(),
            size_bytes: 7,
            working_device: "254:1".to_owned(),
            ..CoordinateRequest::default()
        };
        // Field 1,000 of a newer contract, three bytes long.
        let newer = [0xc2, 0x3e, 3, 1, 2, 3];
        let told = told_as(Bytes::from([&asked.encode_to_vec()[..], &newer].concat()), looks);
        assert!(told.windows(newer.len()).any(|part| part == newer));
        let expected = CoordinateRequest {
            working_disk_size_bytes: 10 << 30,
            working_disk_serial: "root-disk".to_owned(),
            ..asked.clone()
        };
        assert_eq!(CoordinateRequest::decode(told).expect("a message"), expected);
        let unchanged = [
            CoordinateRequest { device: "8:0".to_owned(), ..asked.clone() },
            CoordinateRequest { working_device: "1:1".to_owned(), ..asked.clone() },
            CoordinateRequest { working_disk_size_bytes: 5, ..asked },
        ];
        for request in unchanged {
            let bytes = Bytes::from(request.encode_to_vec());
            assert_eq!(told_as(bytes.clone(), looks), bytes);
        }
        assert_eq!(told_as(Bytes::from_static(b"\xff"), looks), Bytes::from_static(b"\xff"));
    }
}
