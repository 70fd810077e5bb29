//! How fields serialise that are part of the engine's snapshot and for which serde has no form: long arrays, and long vectors of
//! numbers, which as bytes take a fifth of the time.

/// Arrays of any length, as sequences.
pub(crate) mod array {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer, const N: usize>(
        array: &[T; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(array)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<[T; N], D::Error> {
        let values = Vec::deserialize(deserializer)?;
        let found = values.len();
        values.try_into().map_err(|_| D::Error::custom(format_args!("{found} values in place of {N}")))
    }
}

/// The same in a box.
pub(crate) mod boxed_array {
    use super::array;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<T: Serialize, S: Serializer, const N: usize>(
        array: &[T; N],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        array::serialize(array, serializer)
    }

    pub(crate) fn deserialize<'de, T: Deserialize<'de>, D: Deserializer<'de>, const N: usize>(
        deserializer: D,
    ) -> Result<Box<[T; N]>, D::Error> {
        array::deserialize(deserializer).map(Box::new)
    }
}

/// Vectors of numbers as bytes, little-endian.
pub(crate) mod packed {
    use serde::de::{Error, Visitor};
    use serde::{Deserializer, Serializer};
    use std::fmt;

    /// A number of fixed length.
    pub(crate) trait Packed: Copy {
        const LENGTH: usize;
        fn write(self, bytes: &mut Vec<u8>);
        fn read(bytes: &[u8]) -> Option<Self>;
    }

    macro_rules! packed {
        ($($number:ty),+) => {
            $(impl Packed for $number {
                const LENGTH: usize = size_of::<Self>();

                fn write(self, bytes: &mut Vec<u8>) {
                    bytes.extend(self.to_le_bytes());
                }

                fn read(bytes: &[u8]) -> Option<Self> {
                    Some(Self::from_le_bytes(bytes.try_into().ok()?))
                }
            })+
        };
    }

    packed!(u8, u32, f32);

    pub(crate) fn serialize<T: Packed, S: Serializer>(numbers: &[T], serializer: S) -> Result<S::Ok, S::Error> {
        let mut bytes = Vec::with_capacity(numbers.len() * T::LENGTH);
        numbers.iter().for_each(|number| number.write(&mut bytes));
        serializer.serialize_bytes(&bytes)
    }

    struct Bytes;

    impl Visitor<'_> for Bytes {
        type Value = Vec<u8>;

        fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("bytes")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }

        fn visit_byte_buf<E: Error>(self, bytes: Vec<u8>) -> Result<Vec<u8>, E> {
            Ok(bytes)
        }
    }

    pub(crate) fn deserialize<'de, T: Packed, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
        let bytes = deserializer.deserialize_byte_buf(Bytes)?;
        let numbers: Option<Vec<T>> = bytes.chunks(T::LENGTH).map(T::read).collect();
        numbers.ok_or_else(|| D::Error::custom("a number is cut off"))
    }
}
