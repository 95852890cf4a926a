//! Keys of the directory's indexes: byte strings of bounded length, compared byte by byte.
//!
//! Invariant: two keys are equal exactly if their bytes are.

use std::fmt;

use cowslip_engine::KeyBytes;
use sha2::{Digest, Sha256};

/// How many bytes of a value take part in a key as they are; what is beyond goes into a hash. Candidates of an index are
/// supersets, so a collision costs a comparison and no more.
pub const KEY_BYTES_MAX: usize = 512;

/// How many bytes the hash of the rest has.
const HASH_BYTES: usize = 16;

/// A key in one of the directory's indexes.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(KeyBytes);

impl Key {
    /// A key of these bytes. Beyond [`KEY_BYTES_MAX`] it is cut and ends with a hash of the rest.
    pub fn new(bytes: &[u8]) -> Self {
        match bytes.split_at_checked(KEY_BYTES_MAX) {
            Some((head, rest)) if !rest.is_empty() => {
                let mut cut = head.to_vec();
                // Nobody finds two values with this in common, so that one is never taken for another.
                cut.extend_from_slice(&Sha256::digest(rest)[..HASH_BYTES]);
                Self::from_stored(&cut)
            }
            _ => Self::from_stored(bytes),
        }
    }

    /// The least of all keys whose values begin with these bytes.
    pub fn least(prefix: &[u8]) -> Self {
        Self::from_stored(&prefix[..prefix.len().min(KEY_BYTES_MAX)])
    }

    /// Not less than the keys of these bytes and of all that are less.
    pub fn most(bytes: &[u8]) -> Self {
        match bytes.split_at_checked(KEY_BYTES_MAX) {
            Some((head, rest)) if !rest.is_empty() => {
                Self::from_stored(&[head, &[0xff; HASH_BYTES]].concat())
            }
            _ => Self::from_stored(bytes),
        }
    }

    /// A key of the bytes that another one had.
    pub fn from_stored(bytes: &[u8]) -> Self {
        Self(KeyBytes::from(bytes))
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Key {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_keep_their_beginning_and_differ_by_their_end() {
        let mut long = vec![b'x'; 2 * KEY_BYTES_MAX];
        let one = Key::new(&long);
        long.push(b'y');
        let other = Key::new(&long);
        assert_ne!(one, other);
        assert_eq!(one.bytes()[..KEY_BYTES_MAX], other.bytes()[..KEY_BYTES_MAX]);
        assert_eq!(Key::from_stored(one.bytes()), one);
    }
}
