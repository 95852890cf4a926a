//! Keys of the directory's indexes: short byte strings, compared byte by byte.
//!
//! Most keys (a parent with a short RDN, a normalised uid, three characters of a name) fit into the key itself, so that
//! copying a node of an index copies bytes and touches no counts elsewhere. Invariant: two keys are equal exactly if
//! their bytes are, however they are held.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Up to this many bytes are held in the key itself.
const INLINE_BYTES_MAX: usize = 22;

/// How many bytes of a value take part in a key as they are; what is beyond goes into a hash. Candidates of an index are
/// supersets, so a collision costs a comparison and no more.
pub const KEY_BYTES_MAX: usize = 512;

/// A key in one of the directory's indexes.
#[derive(Clone)]
pub struct Key(Held);

#[derive(Clone)]
enum Held {
    Inline(u8, [u8; INLINE_BYTES_MAX]),
    Shared(Arc<[u8]>),
}

impl Key {
    /// A key of these bytes. Beyond [`KEY_BYTES_MAX`] it is cut and ends with a hash of the rest.
    pub fn new(bytes: &[u8]) -> Self {
        if let Some((head, rest)) = bytes.split_at_checked(KEY_BYTES_MAX).filter(|(_, rest)| !rest.is_empty())
        {
            let mut cut = head.to_vec();
            cut.extend_from_slice(&fnv(rest).to_be_bytes());
            return Self(Held::Shared(cut.into()));
        }
        Self::from_stored(bytes)
    }

    /// A key of the bytes that another one had.
    pub fn from_stored(bytes: &[u8]) -> Self {
        let mut inline = [0; INLINE_BYTES_MAX];
        match inline.get_mut(..bytes.len()) {
            Some(place) => {
                place.copy_from_slice(bytes);
                // It fits, so its length does.
                Self(Held::Inline(bytes.len() as u8, inline))
            }
            None => Self(Held::Shared(bytes.into())),
        }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.0 {
            Held::Inline(length, bytes) => &bytes[..usize::from(*length)],
            Held::Shared(bytes) => bytes,
        }
    }
}

impl From<&[u8]> for Key {
    fn from(bytes: &[u8]) -> Self {
        Self::new(bytes)
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.bytes() == other.bytes()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.bytes().hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.bytes().escape_ascii())
    }
}

/// A hash that is the same in every run and on every machine (FNV-1a).
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_that_of_the_bytes() {
        let texts: [&[u8]; 5] = [b"", b"a", b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"ab", b"b"];
        let keys: Vec<Key> = texts.into_iter().map(Key::new).collect();
        assert!(keys.is_sorted());
        assert!(keys.iter().zip(texts).all(|(key, bytes)| key.bytes() == bytes));
        assert_eq!(size_of::<Key>(), 24);
    }

    #[test]
    fn long_values_keep_their_beginning_and_differ_by_their_end() {
        let mut long = vec![b'x'; 2 * KEY_BYTES_MAX];
        let one = Key::new(&long);
        long.push(b'y');
        let other = Key::new(&long);
        assert_ne!(one, other);
        assert_eq!(one.bytes()[..KEY_BYTES_MAX], other.bytes()[..KEY_BYTES_MAX]);
    }
}
