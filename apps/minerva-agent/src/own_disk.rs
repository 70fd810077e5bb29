//! What the disk on which a program works is like, for the server outside, to which the disk's number here says nothing.

use bytes::{Bytes, BytesMut};
use minerva_api::v1::{CoordinateRequest, HoldDebtRequest};
use minerva_client::DiskLooks;
use prost::Message;

/// A request that names a disk.
pub(crate) trait NamesDisk: Message + Default {
    /// The number of the disk here; nothing where the program said which of the host's it means, or what its own is like.
    fn asks_about(&self) -> Option<&str>;

    /// A request in which nothing else stands.
    fn of_looks(looks: DiskLooks) -> Self;
}

impl NamesDisk for CoordinateRequest {
    fn asks_about(&self) -> Option<&str> {
        let is_told = self.working_disk_size_bytes != 0 || !self.working_disk_serial.is_empty();
        (self.device.is_empty() && !is_told).then_some(&self.working_device)
    }

    fn of_looks(DiskLooks { size_bytes, serial }: DiskLooks) -> Self {
        Self { working_disk_size_bytes: size_bytes, working_disk_serial: serial, ..Self::default() }
    }
}

impl NamesDisk for HoldDebtRequest {
    fn asks_about(&self) -> Option<&str> {
        let is_told = self.working_disk_size_bytes != 0 || !self.working_disk_serial.is_empty();
        (self.device.is_empty() && !is_told).then_some(&self.working_device)
    }

    fn of_looks(DiskLooks { size_bytes, serial }: DiskLooks) -> Self {
        Self { working_disk_size_bytes: size_bytes, working_disk_serial: serial, ..Self::default() }
    }
}

/// The request with the size and serial of the disk that it is for, where the program did not say them and they are known here. Fields are
/// added at the end, as protocol buffers are merged, so that what a newer contract has in it stays.
pub(crate) fn told<T: NamesDisk>(request: Bytes) -> Bytes {
    told_as::<T>(request, DiskLooks::of)
}

fn told_as<T: NamesDisk>(request: Bytes, looks: impl Fn(&str) -> Option<DiskLooks>) -> Bytes {
    let Ok(asked) = T::decode(request.clone()) else { return request };
    let Some(looks) = asked.asks_about().and_then(looks) else { return request };
    let mut told = BytesMut::from(&request[..]);
    told.extend_from_slice(&T::of_looks(looks).encode_to_vec());
    told.freeze()
}

#[cfg(test)]
mod tests {
    use super::{NamesDisk, told_as};
    use bytes::Bytes;
    use minerva_api::v1::{CoordinateRequest, HoldDebtRequest};
    use minerva_client::DiskLooks;

    fn looks(device: &str) -> Option<DiskLooks> {
        (device == "254:1").then(|| DiskLooks { size_bytes: 10 << 30, serial: "root-disk".to_owned() })
    }

    /// Field 1,000 of a newer contract, three bytes long.
    const NEWER: [u8; 6] = [0xc2, 0x3e, 3, 1, 2, 3];

    fn told_of<T: NamesDisk>(asked: &T) -> T {
        let told = told_as::<T>(Bytes::from([&asked.encode_to_vec()[..], &NEWER].concat()), looks);
        assert!(told.windows(NEWER.len()).any(|part| part == NEWER));
        T::decode(told).expect("a message")
    }

    fn assert_unchanged<T: NamesDisk>(request: &T) {
        let bytes = Bytes::from(request.encode_to_vec());
        assert_eq!(told_as::<T>(bytes.clone(), looks), bytes);
    }

    #[test]
    fn a_request_is_told_of_the_disk_below_it_and_keeps_what_else_is_in_it() {
        let asked = CoordinateRequest {
            request_id: "load".to_owned(),
            size_bytes: 7,
            working_device: "254:1".to_owned(),
            ..CoordinateRequest::default()
        };
        let expected = CoordinateRequest {
            working_disk_size_bytes: 10 << 30,
            working_disk_serial: "root-disk".to_owned(),
            ..asked.clone()
        };
        assert_eq!(told_of(&asked), expected);
        assert_unchanged(&CoordinateRequest { device: "8:0".to_owned(), ..asked.clone() });
        assert_unchanged(&CoordinateRequest { working_device: "1:1".to_owned(), ..asked.clone() });
        assert_unchanged(&CoordinateRequest { working_disk_size_bytes: 5, ..asked });
        assert_eq!(told_as::<CoordinateRequest>(Bytes::from_static(b"\xff"), looks), Bytes::from_static(b"\xff"));
    }

    #[test]
    fn so_is_a_debt() {
        let asked = HoldDebtRequest {
            name: "rebuild".to_owned(),
            service_ns: 7,
            done_within_ns: Some(9),
            working_device: "254:1".to_owned(),
            ..HoldDebtRequest::default()
        };
        let expected = HoldDebtRequest {
            working_disk_size_bytes: 10 << 30,
            working_disk_serial: "root-disk".to_owned(),
            ..asked.clone()
        };
        assert_eq!(told_of(&asked), expected);
        assert_unchanged(&HoldDebtRequest { device: "8:0".to_owned(), ..asked.clone() });
        assert_unchanged(&HoldDebtRequest { working_disk_serial: "other".to_owned(), ..asked });
    }
}
