//! Names with a number in them, and the random numbers and values that fill a load.
//!
//! Invariant: one seed gives one load, so that all servers get the same.

use std::ops::RangeInclusive;
use std::str::FromStr;

/// A name with the range of a number: `uid=user.[1-10000],ou=People,dc=example,dc=com`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NamePattern {
    before: String,
    numbers: RangeInclusive<u64>,
    after: String,
}

impl NamePattern {
    /// The pattern of entries of one kind below a parent.
    pub(crate) fn new(before: &str, numbers: RangeInclusive<u64>, after: &str) -> Self {
        Self { before: before.to_owned(), numbers, after: after.to_owned() }
    }

    /// How many names there are.
    pub(crate) fn len(&self) -> u64 {
        (self.numbers.end() - self.numbers.start()).saturating_add(1)
    }

    /// The number of the name at a place, counted from 0.
    pub(crate) fn number(&self, at: u64) -> u64 {
        self.numbers.start() + at % self.len()
    }

    /// Writes a name over what is in the buffer.
    pub(crate) fn name(&self, number: u64, out: &mut String) {
        out.clear();
        out.push_str(&self.before);
        push_number(out, number);
        out.push_str(&self.after);
    }

    /// The attribute of the name's first part, in which the number must be.
    pub(crate) fn attribute(&self) -> &str {
        self.before.split_once('=').map_or("", |(attribute, _)| attribute)
    }

    /// Writes the first part's value over what is in the buffer.
    pub(crate) fn value(&self, number: u64, out: &mut Vec<u8>) {
        out.clear();
        out.extend_from_slice(self.before.split_once('=').map_or("", |(_, value)| value).as_bytes());
        out.extend_from_slice(number.to_string().as_bytes());
        out.extend_from_slice(self.after.split(',').next().unwrap_or_default().as_bytes());
    }

    /// The name of the entry above all of them.
    pub(crate) fn parent(&self) -> &str {
        self.after.split_once(',').map_or("", |(_, parent)| parent)
    }
}

fn push_number(out: &mut String, number: u64) {
    use std::fmt::Write;
    // A String takes everything.
    let _ = write!(out, "{number}");
}

impl FromStr for NamePattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = || {
            let (before, rest) = text.split_once('[')?;
            let (range, after) = rest.split_once(']')?;
            let (first, last) = range.split_once('-')?;
            let numbers = first.parse::<u64>().ok()?..=last.parse::<u64>().ok()?;
            let is_first = before.contains('=') && !before.contains(',');
            (is_first && !numbers.is_empty() && !after.contains('[')).then_some((before, numbers, after))
        };
        let (before, numbers, after) = parts().ok_or(
            "a pattern is ATTRIBUTE=TEXT[FIRST-LAST],PARENT, such as uid=user.[1-100],ou=People,dc=example",
        )?;
        Ok(Self::new(before, numbers, after))
    }
}

/// Numbers without order (SplitMix64 by Sebastiano Vigna): quick, and the same each time.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Begins at a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below a bound, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Fills a buffer with letters and digits.
    pub(crate) fn letters(&mut self, out: &mut [u8]) {
        const LETTERS: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789xy";
        for chunk in out.chunks_mut(10) {
            let mut bits = self.next();
            for letter in chunk {
                *letter = LETTERS[(bits & 63) as usize];
                bits >>= 6;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_name_entries() {
        let pattern: NamePattern = "uid=user.[3-5]x,ou=People,dc=example".parse().unwrap();
        let (mut name, mut value) = (String::new(), Vec::new());
        pattern.name(pattern.number(4), &mut name);
        pattern.value(5, &mut value);
        assert_eq!(name, "uid=user.4x,ou=People,dc=example");
        assert_eq!((value.as_slice(), pattern.attribute()), (&b"user.5x"[..], "uid"));
        assert_eq!((pattern.parent(), pattern.len()), ("ou=People,dc=example", 3));
        for wrong in ["uid=user", "uid=[5-4],dc=x", "uid=a,ou=[1-2]", "[1-2],dc=x", "uid=[1-2],ou=[1-2]"] {
            assert!(wrong.parse::<NamePattern>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_are_letters_and_differ() {
        let mut random = Random::new(7);
        let (mut one, mut two) = ([0; 25], [0; 25]);
        random.letters(&mut one);
        random.letters(&mut two);
        assert!(one != two && one.iter().all(u8::is_ascii_alphanumeric), "{one:?} {two:?}");
        let again: Vec<u64> = (0..3).map(|_| Random::new(7).next()).collect();
        assert!(again.iter().all(|number| *number == again[0]));
    }
}
