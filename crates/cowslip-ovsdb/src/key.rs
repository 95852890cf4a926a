//! Keys of indexes: the values of an index's columns as one string of bytes in their order.
//!
//! A look-up is little more than a dozen comparisons of keys. As values these would lie two or three pointers away;
//! as bytes most keys are in place. A set's elements are part of the key, so an index on a column with large sets is a
//! costly one.
//!
//! Invariants: two keys are equal if and only if their values are; keys of one index are in the order of their values
//! part by part, where "no value" comes first, then texts in the order of their bytes and numbers in their own.

use crate::atom::{Atom, Real};
use crate::datum::Datum;
use cowslip_engine::{KeyBytes, Uuid};
use std::fmt;
use std::sync::Arc;

/// The values of an index's columns. Cloning copies no values.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IndexKey(KeyBytes);

/// What a part begins with, if it is not a single atom.
const EMPTY: u8 = 0;
const SET: u8 = 6;
const MAP: u8 = 7;

/// What an atom begins with.
const INTEGER: u8 = 1;
const REAL: u8 = 2;
const BOOLEAN: u8 = 3;
const STRING: u8 = 4;
const UUID: u8 = 5;

/// Ends a set or map, before whose end each member begins with an atom.
const END: u8 = 0;

/// Follows the zero byte that ends a text, and the one that is part of it.
const TEXT_END: u8 = 1;
const TEXT_ZERO: u8 = 2;

/// Room for most keys.
const CAPACITY_BYTES: usize = 64;

impl IndexKey {
    /// The values, part by part.
    pub fn values(&self) -> Arc<[Datum]> {
        let mut reader = Reader(&self.0);
        std::iter::from_fn(|| reader.datum()).collect()
    }
}

impl fmt::Debug for IndexKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("IndexKey").field(&self.values()).finish()
    }
}

impl From<&[Datum]> for IndexKey {
    fn from(values: &[Datum]) -> Self {
        values.iter().collect()
    }
}

impl<'d> FromIterator<&'d Datum> for IndexKey {
    fn from_iter<I: IntoIterator<Item = &'d Datum>>(values: I) -> Self {
        let mut key = KeyWriter::default();
        values.into_iter().for_each(|value| key.datum(value));
        key.finish()
    }
}

/// A key being put together.
#[derive(Default)]
pub(crate) struct KeyWriter {
    bytes: Vec<u8>,
    /// Whether the last part is a text.
    ends_with_text: bool,
}

impl KeyWriter {
    /// Begins a part. Room is only taken here, because many keys turn out not to be wanted before they begin.
    fn part(&mut self) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve(CAPACITY_BYTES);
        }
        self.ends_with_text = false;
    }

    /// A column's value.
    pub(crate) fn datum(&mut self, value: &Datum) {
        self.part();
        match value {
            Datum::Empty => self.bytes.push(EMPTY),
            Datum::One(atom) => self.one(atom),
            Datum::Set(_) | Datum::LargeSet(_) | Datum::Map(_) | Datum::LargeMap(_) => {
                let is_map = matches!(value, Datum::Map(_) | Datum::LargeMap(_));
                self.bytes.push(if is_map { MAP } else { SET });
                for (key, value) in value.members() {
                    self.atom(key);
                    if let Some(value) = value {
                        self.atom(value);
                    }
                }
                self.bytes.push(END);
            }
        }
    }

    /// A scalar, or the value of a map's key.
    pub(crate) fn one(&mut self, atom: &Atom) {
        self.part();
        self.atom(atom);
        self.ends_with_text = matches!(atom, Atom::String(_));
    }

    pub(crate) fn finish(self) -> IndexKey {
        // Nothing follows that the end of the last text would have to be told from.
        let unneeded = if self.ends_with_text { [0, TEXT_END].len() } else { 0 };
        IndexKey(KeyBytes::from(&self.bytes[..self.bytes.len() - unneeded]))
    }

    fn atom(&mut self, atom: &Atom) {
        match atom {
            Atom::Integer(number) => {
                self.bytes.push(INTEGER);
                // With the sign turned round, numbers sort as their bytes do.
                self.bytes.extend_from_slice(&(number ^ i64::MIN).to_be_bytes());
            }
            Atom::Real(real) => {
                self.bytes.push(REAL);
                let bits = real.get().to_bits();
                let is_negative = bits >> 63 == 1;
                let ordered = if is_negative { !bits } else { bits | 1 << 63 };
                self.bytes.extend_from_slice(&ordered.to_be_bytes());
            }
            Atom::Boolean(value) => self.bytes.extend_from_slice(&[BOOLEAN, u8::from(*value)]),
            Atom::String(text) => {
                self.bytes.push(STRING);
                let mut pieces = text.as_bytes().split(|byte| *byte == 0);
                self.bytes.extend_from_slice(pieces.next().unwrap_or_default());
                for piece in pieces {
                    self.bytes.extend_from_slice(&[0, TEXT_ZERO]);
                    self.bytes.extend_from_slice(piece);
                }
                self.bytes.extend_from_slice(&[0, TEXT_END]);
            }
            Atom::Uuid(uuid) => {
                self.bytes.push(UUID);
                self.bytes.extend_from_slice(uuid.as_bytes());
            }
        }
    }
}

/// Reads what [`KeyWriter`] wrote.
struct Reader<'k>(&'k [u8]);

impl Reader<'_> {
    fn datum(&mut self) -> Option<Datum> {
        match self.byte()? {
            EMPTY => Some(Datum::EMPTY),
            SET => {
                let mut atoms = Vec::new();
                while let Some(kind) = self.byte().filter(|kind| *kind != END) {
                    atoms.push(self.atom(kind)?);
                }
                Some(Datum::from_atoms(atoms))
            }
            MAP => {
                let mut pairs = Vec::new();
                while let Some(kind) = self.byte().filter(|kind| *kind != END) {
                    let key = self.atom(kind)?;
                    let kind = self.byte()?;
                    pairs.push((key, self.atom(kind)?));
                }
                Some(Datum::from_pairs(pairs))
            }
            kind => self.atom(kind).map(Datum::One),
        }
    }

    fn atom(&mut self, kind: u8) -> Option<Atom> {
        match kind {
            INTEGER => Some(Atom::Integer(i64::from_be_bytes(self.array()?) ^ i64::MIN)),
            REAL => {
                let ordered = u64::from_be_bytes(self.array()?);
                let is_negative = ordered >> 63 == 0;
                let bits = if is_negative { !ordered } else { ordered ^ 1 << 63 };
                Real::new(f64::from_bits(bits)).map(Atom::Real)
            }
            BOOLEAN => Some(Atom::Boolean(self.byte()? == 1)),
            STRING => self.text(),
            _ => self.array().map(|bytes| Atom::Uuid(Uuid::from_bytes(bytes))),
        }
    }

    fn text(&mut self) -> Option<Atom> {
        let mut text = Vec::new();
        loop {
            let zero = self.0.iter().position(|byte| *byte == 0);
            let (piece, rest) = self.0.split_at(zero.unwrap_or(self.0.len()));
            text.extend_from_slice(piece);
            self.0 = rest.get(1..).unwrap_or_default();
            if self.byte().is_none_or(|byte| byte == TEXT_END) {
                return String::from_utf8(text).ok().map(Atom::string);
            }
            text.push(0);
        }
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Datum {
        Datum::from_atoms(texts.iter().map(|text| Atom::string(*text)).collect())
    }

    fn number(value: i64) -> Datum {
        Datum::One(Atom::Integer(value))
    }

    fn real(value: f64) -> Datum {
        Datum::One(Atom::Real(Real::new(value).expect("a finite number")))
    }

    /// Keys of several kinds of index, each kind in ascending order.
    fn ascending() -> Vec<Vec<Vec<Datum>>> {
        let pairs = |pairs: &[(&str, i64)]| {
            let pairs = pairs.iter().map(|(key, value)| (Atom::string(*key), Atom::Integer(*value)));
            Datum::from_pairs(pairs.collect())
        };
        let many: Vec<Atom> = (0..200).map(Atom::Integer).collect();
        let uuid = |n| Datum::One(Atom::Uuid(Uuid::from_u128(n)));
        vec![
            [i64::MIN, -2, -1, 0, 1, 256, i64::MAX].map(|n| vec![number(n)]).to_vec(),
            [f64::MIN, -1.5, -f64::MIN_POSITIVE, 0.0, 1e-300, 2.5, f64::MAX].map(|r| vec![real(r)]).to_vec(),
            [false, true].map(|b| vec![Datum::One(Atom::Boolean(b))]).to_vec(),
            vec![vec![uuid(0)], vec![uuid(1)], vec![uuid(1 << 64)], vec![uuid(u128::MAX)]],
            vec![
                vec![Datum::EMPTY, texts(&["z"])],
                vec![texts(&[""]), texts(&["a"])],
                vec![texts(&["a"]), Datum::EMPTY],
                vec![texts(&["a"]), texts(&["b"])],
                vec![texts(&["a\0"]), texts(&[""])],
                vec![texts(&["a\0b"]), texts(&[""])],
                vec![texts(&["a\u{1}"]), texts(&[""])],
                vec![texts(&["ab"]), texts(&["a"])],
                vec![texts(&["ä"]), Datum::EMPTY],
            ],
            vec![vec![texts(&["a", "b"])], vec![texts(&["a", "b", "c"])], vec![texts(&["a", "c"])]],
            vec![vec![pairs(&[("a", 1)])], vec![pairs(&[("a", 1), ("b", 0)])], vec![pairs(&[("a", 2)])]],
            vec![vec![Datum::from_atoms(many)]],
        ]
    }

    #[test]
    fn keys_give_their_values_back_and_sort_as_these_do() {
        for index in ascending() {
            let keys: Vec<IndexKey> = index.iter().map(|values| IndexKey::from(&values[..])).collect();
            for (key, values) in keys.iter().zip(&index) {
                assert_eq!(&key.values()[..], &values[..]);
            }
            assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
        }
    }
}
