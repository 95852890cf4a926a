//! The numbers of one posting that share their upper 16 bits.
//!
//! Invariants: no chunk is empty; an array is sorted, without repeats, and no longer than [`ARRAY_MAX`]; a bitmap knows
//! how many bits are set, and has more than [`BITMAP_MIN`] of them.

use std::cmp::Ordering;
use std::slice;
use std::sync::Arc;

/// The longest array: from here on a bitmap is smaller.
const ARRAY_MAX: usize = 4096;

/// A bitmap with this many numbers becomes an array again. It is less than [`ARRAY_MAX`], so that a posting that changes
/// around that length is not converted each time.
const BITMAP_MIN: usize = 3072;

const WORDS: usize = 1 << 16 >> 6;

/// Numbers below 2^16. Clones share them.
#[derive(Clone)]
pub(super) enum Chunk {
    Array(Arc<Vec<u16>>),
    Bitmap(Arc<Bitmap>),
}

#[derive(Clone)]
pub(super) struct Bitmap {
    len: usize,
    words: [u64; WORDS],
}

impl Bitmap {
    fn empty() -> Self {
        Self { len: 0, words: [0; WORDS] }
    }

    fn of(numbers: &[u16]) -> Self {
        let mut bitmap = Self::empty();
        for number in numbers {
            bitmap.insert(*number);
        }
        bitmap
    }

    fn contains(&self, number: u16) -> bool {
        let (word, bit) = place(number);
        self.words[word] & bit != 0
    }

    fn insert(&mut self, number: u16) -> bool {
        let (word, bit) = place(number);
        let is_new = self.words[word] & bit == 0;
        self.words[word] |= bit;
        self.len += usize::from(is_new);
        is_new
    }

    fn remove(&mut self, number: u16) -> bool {
        let (word, bit) = place(number);
        let was_there = self.words[word] & bit != 0;
        self.words[word] &= !bit;
        self.len -= usize::from(was_there);
        was_there
    }

    /// Both bitmaps, word by word.
    fn combined(&self, other: &Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        let mut result = Self::empty();
        let words = result.words.iter_mut().zip(self.words.iter().zip(&other.words));
        for (word, (left, right)) in words {
            *word = combine(*left, *right);
        }
        result.len = result.words.iter().map(|word| word.count_ones() as usize).sum();
        result
    }

    fn bits(&self) -> Bits<'_> {
        Bits { words: &self.words, next: 0, end: 1 << 16 }
    }
}

fn place(number: u16) -> (usize, u64) {
    (usize::from(number >> 6), 1 << (number & 63))
}

impl Chunk {
    /// A chunk of sorted numbers without repeats; none if there are none.
    pub(super) fn of(numbers: Vec<u16>) -> Option<Self> {
        match numbers.len() {
            0 => None,
            1..=ARRAY_MAX => Some(Self::Array(Arc::new(numbers))),
            _ => Some(Self::Bitmap(Arc::new(Bitmap::of(&numbers)))),
        }
    }

    fn of_bitmap(bitmap: Bitmap) -> Option<Self> {
        if bitmap.len > BITMAP_MIN {
            Some(Self::Bitmap(Arc::new(bitmap)))
        } else {
            Self::of(bitmap.bits().collect())
        }
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Self::Array(numbers) => numbers.len(),
            Self::Bitmap(bitmap) => bitmap.len,
        }
    }

    pub(super) fn contains(&self, number: u16) -> bool {
        match self {
            Self::Array(numbers) => numbers.binary_search(&number).is_ok(),
            Self::Bitmap(bitmap) => bitmap.contains(number),
        }
    }

    /// False if it was there already.
    pub(super) fn insert(&mut self, number: u16) -> bool {
        match self {
            Self::Array(numbers) => match numbers.binary_search(&number) {
                Ok(_) => false,
                Err(_) if numbers.len() == ARRAY_MAX => {
                    let mut bitmap = Bitmap::of(numbers);
                    bitmap.insert(number);
                    *self = Self::Bitmap(Arc::new(bitmap));
                    true
                }
                Err(at) => {
                    Arc::make_mut(numbers).insert(at, number);
                    true
                }
            },
            Self::Bitmap(bitmap) => !bitmap.contains(number) && Arc::make_mut(bitmap).insert(number),
        }
    }

    /// False if it was not there. Whoever removes from a chunk of one number drops the chunk instead.
    pub(super) fn remove(&mut self, number: u16) -> bool {
        match self {
            Self::Array(numbers) => match numbers.binary_search(&number) {
                Ok(at) => {
                    Arc::make_mut(numbers).remove(at);
                    true
                }
                Err(_) => false,
            },
            Self::Bitmap(bitmap) => {
                if !bitmap.contains(number) {
                    return false;
                }
                let own = Arc::make_mut(bitmap);
                own.remove(number);
                if own.len <= BITMAP_MIN {
                    *self = Self::Array(Arc::new(own.bits().collect()));
                }
                true
            }
        }
    }

    pub(super) fn and(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Array(left), Self::Array(right)) => Self::of(common(left, right)),
            (Self::Array(few), Self::Bitmap(many)) | (Self::Bitmap(many), Self::Array(few)) => {
                Self::of(few.iter().copied().filter(|number| many.contains(*number)).collect())
            }
            (Self::Bitmap(left), Self::Bitmap(right)) => Self::of_bitmap(left.combined(right, |l, r| l & r)),
        }
    }

    pub(super) fn or(&self, other: &Self) -> Self {
        let mut result;
        let both = match (self, other) {
            (Self::Array(left), Self::Array(right)) => return Self::merged(left, right),
            (Self::Array(few), Self::Bitmap(many)) | (Self::Bitmap(many), Self::Array(few)) => {
                result = Bitmap::clone(many);
                for number in few.iter() {
                    result.insert(*number);
                }
                result
            }
            (Self::Bitmap(left), Self::Bitmap(right)) => left.combined(right, |l, r| l | r),
        };
        Self::Bitmap(Arc::new(both))
    }

    pub(super) fn and_not(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Array(numbers), _) => {
                Self::of(numbers.iter().copied().filter(|number| !other.contains(*number)).collect())
            }
            (Self::Bitmap(many), Self::Array(few)) => {
                let mut result = Bitmap::clone(many);
                for number in few.iter() {
                    result.remove(*number);
                }
                Self::of_bitmap(result)
            }
            (Self::Bitmap(left), Self::Bitmap(right)) => Self::of_bitmap(left.combined(right, |l, r| l & !r)),
        }
    }

    fn merged(left: &[u16], right: &[u16]) -> Self {
        if left.len() + right.len() > ARRAY_MAX {
            let mut bitmap = Bitmap::of(left);
            for number in right {
                bitmap.insert(*number);
            }
            if bitmap.len > ARRAY_MAX {
                return Self::Bitmap(Arc::new(bitmap));
            }
            return Self::Array(Arc::new(bitmap.bits().collect()));
        }
        let mut merged = [left, right].concat();
        // Two sorted runs, which this sort finds and merges.
        merged.sort();
        merged.dedup();
        Self::Array(Arc::new(merged))
    }

    /// The numbers from one on, in their order.
    pub(super) fn numbers(&self, from: u16) -> Numbers<'_> {
        match self {
            Self::Array(numbers) => {
                let first = numbers.partition_point(|number| *number < from);
                Numbers::Array(numbers[first..].iter())
            }
            Self::Bitmap(bitmap) => Numbers::Bitmap(Bits { next: from.into(), ..bitmap.bits() }),
        }
    }
}

/// The numbers that are in both.
fn common(left: &[u16], right: &[u16]) -> Vec<u16> {
    let (few, many) = if left.len() <= right.len() { (left, right) } else { (right, left) };
    // Searching for each of few beats walking along many when these are many more.
    if few.len() * 16 < many.len() {
        return few.iter().copied().filter(|number| many.binary_search(number).is_ok()).collect();
    }
    let mut found = Vec::with_capacity(few.len());
    let (mut left, mut right) = (few.iter().peekable(), many.iter().peekable());
    while let (Some(l), Some(r)) = (left.peek(), right.peek()) {
        match l.cmp(r) {
            Ordering::Less => drop(left.next()),
            Ordering::Greater => drop(right.next()),
            Ordering::Equal => {
                found.push(**l);
                left.next();
                right.next();
            }
        }
    }
    found
}

/// The numbers of a chunk in their order.
#[derive(Clone)]
pub(super) enum Numbers<'a> {
    Array(slice::Iter<'a, u16>),
    Bitmap(Bits<'a>),
}

impl Iterator for Numbers<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        match self {
            Self::Array(numbers) => numbers.next().copied(),
            Self::Bitmap(bits) => bits.next(),
        }
    }
}

impl DoubleEndedIterator for Numbers<'_> {
    fn next_back(&mut self) -> Option<u16> {
        match self {
            Self::Array(numbers) => numbers.next_back().copied(),
            Self::Bitmap(bits) => bits.next_back(),
        }
    }
}

/// The bits set from `next` up to, and without, `end`.
#[derive(Clone)]
pub(super) struct Bits<'a> {
    words: &'a [u64; WORDS],
    next: u32,
    end: u32,
}

impl Iterator for Bits<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        while self.next < self.end {
            let rest = self.words[(self.next >> 6) as usize] >> (self.next & 63);
            if rest == 0 {
                self.next = (self.next | 63) + 1;
                continue;
            }
            let found = self.next + rest.trailing_zeros();
            self.next = found + 1;
            return u16::try_from(found).ok().filter(|_| found < self.end);
        }
        None
    }
}

impl DoubleEndedIterator for Bits<'_> {
    fn next_back(&mut self) -> Option<u16> {
        while self.next < self.end {
            let last = self.end - 1;
            let rest = self.words[(last >> 6) as usize] << (63 - (last & 63));
            if rest == 0 {
                self.end = last & !63;
                continue;
            }
            let found = last - rest.leading_zeros();
            self.end = found;
            return u16::try_from(found).ok().filter(|_| found >= self.next);
        }
        None
    }
}
