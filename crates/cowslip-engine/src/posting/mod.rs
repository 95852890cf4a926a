//! Sets of record numbers: what an index holds per key, and what a search computes with.
//!
//! A posting is a few numbers in place, then a short sorted list, then chunks of 2^16 numbers, each an array or a bitmap.
//! Clones share lists and chunks; a change copies the one it touches, or nothing if no clone has it. Combining two
//! postings works chunk by chunk and shares those that come out as they went in. Invariants: the form follows from the
//! length alone, but for the span in which a shrinking posting keeps the larger form; no chunk is empty.

use std::fmt;
use std::slice;
use std::sync::Arc;

use crate::id::RecordNumber;
use crate::number_map::{NumberMap, Range};

use chunk::{Chunk, Numbers};

mod chunk;

/// How many numbers are kept in place of a pointer: most keys of most indexes belong to one record.
const INLINE_MAX: usize = 3;

/// The longest list. Its numbers may be far apart, where chunks would hold one or two each.
const LIST_MAX: usize = 256;

/// Chunks with this many numbers in all become a list again; less than [`LIST_MAX`] for the same reason as in a chunk.
const CHUNKS_MIN: usize = 128;

/// A set of record numbers, compact where they are dense.
///
/// # Example
/// ```
/// use cowslip_engine::{Posting, RecordNumber};
///
/// let even: Posting = (0..100_000).step_by(2).map(RecordNumber).collect();
/// let small: Posting = [2, 3, 4].map(RecordNumber).into_iter().collect();
/// assert_eq!(even.and(&small).len(), 2);
/// assert_eq!(small.and_not(&even).iter().collect::<Vec<_>>(), [RecordNumber(3)]);
/// assert_eq!(even.or(&small).len(), 50_001);
/// ```
#[derive(Clone)]
pub struct Posting(Form);

#[derive(Clone)]
enum Form {
    /// The first `len` numbers count.
    Inline {
        len: u8,
        numbers: [u32; INLINE_MAX],
    },
    List(Arc<Vec<u32>>),
    Chunks(Arc<Chunks>),
}

/// By the numbers' upper halves.
#[derive(Clone, Default)]
struct Chunks {
    len: usize,
    chunks: NumberMap<Chunk>,
}

impl Posting {
    /// No numbers.
    pub const fn new() -> Self {
        Self(Form::Inline { len: 0, numbers: [0; INLINE_MAX] })
    }

    /// How many numbers there are. It is known without counting.
    pub fn len(&self) -> usize {
        match &self.0 {
            Form::Inline { len, .. } => usize::from(*len),
            Form::List(numbers) => numbers.len(),
            Form::Chunks(chunks) => chunks.len,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a number is there.
    pub fn contains(&self, number: RecordNumber) -> bool {
        match self.few() {
            Some(numbers) => numbers.binary_search(&number.0).is_ok(),
            None => self.chunks().is_some_and(|chunks| chunks.contains(number.0)),
        }
    }

    /// The numbers in ascending order.
    pub fn iter(&self) -> PostingIter<'_> {
        self.iter_from(RecordNumber(0))
    }

    /// The numbers from one on, in ascending order. Those before are not walked over.
    pub fn iter_from(&self, first: RecordNumber) -> PostingIter<'_> {
        match self.few() {
            Some(numbers) => {
                let at = numbers.partition_point(|number| *number < first.0);
                PostingIter(Walk::Few(numbers[at..].iter()))
            }
            None => PostingIter(Walk::Chunks(self.chunks().map(|chunks| chunks.walk(first.0)))),
        }
    }

    /// Adds a number; false if it was there already.
    pub fn insert(&mut self, number: RecordNumber) -> bool {
        let number = number.0;
        match &mut self.0 {
            Form::Chunks(chunks) => {
                // Asked first, so that nothing is copied in vain.
                !chunks.contains(number) && Arc::make_mut(chunks).insert(number)
            }
            Form::List(numbers) => match numbers.binary_search(&number) {
                Ok(_) => false,
                Err(at) if numbers.len() < LIST_MAX => {
                    Arc::make_mut(numbers).insert(at, number);
                    true
                }
                Err(_) => {
                    let mut chunks = Chunks::of(numbers);
                    chunks.insert(number);
                    self.0 = Form::Chunks(Arc::new(chunks));
                    true
                }
            },
            Form::Inline { len, numbers } => {
                let held = usize::from(*len);
                let Err(at) = numbers[..held].binary_search(&number) else { return false };
                if held < INLINE_MAX {
                    numbers.copy_within(at..held, at + 1);
                    numbers[at] = number;
                    *len += 1;
                } else {
                    let mut list = Vec::with_capacity(INLINE_MAX + 1);
                    list.extend_from_slice(numbers);
                    list.insert(at, number);
                    self.0 = Form::List(Arc::new(list));
                }
                true
            }
        }
    }

    /// Takes a number away; false if it was not there.
    pub fn remove(&mut self, number: RecordNumber) -> bool {
        let number = number.0;
        match &mut self.0 {
            Form::Inline { len, numbers } => {
                let held = usize::from(*len);
                let Ok(at) = numbers[..held].binary_search(&number) else { return false };
                numbers.copy_within(at + 1..held, at);
                *len -= 1;
            }
            Form::List(numbers) => {
                let Ok(at) = numbers.binary_search(&number) else { return false };
                Arc::make_mut(numbers).remove(at);
            }
            Form::Chunks(chunks) => {
                if !chunks.contains(number) {
                    return false;
                }
                Arc::make_mut(chunks).remove(number);
            }
        }
        self.settle();
        true
    }

    /// The numbers that are in both.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        match (self.few(), other.few()) {
            (Some(few), None) => Self::filtered(few, |number| other.contains(number)),
            (None, Some(few)) => Self::filtered(few, |number| self.contains(number)),
            (Some(few), Some(many)) if few.len() <= many.len() => {
                Self::filtered(few, |number| other.contains(number))
            }
            (Some(_), Some(few)) => Self::filtered(few, |number| self.contains(number)),
            (None, None) => self.by_chunks(other, |left, right| left.and(right?)),
        }
    }

    /// The numbers that are in either.
    #[must_use]
    pub fn or(&self, other: &Self) -> Self {
        let (mut most, least) =
            if self.len() >= other.len() { (self.clone(), other) } else { (other.clone(), self) };
        most.add(least);
        most
    }

    /// The numbers that are here and not in the other.
    #[must_use]
    pub fn and_not(&self, other: &Self) -> Self {
        if let Some(few) = self.few() {
            return Self::filtered(few, |number| !other.contains(number));
        }
        let Some(few) = other.few() else {
            return self.by_chunks(other, |left, right| match right {
                Some(right) => left.and_not(right),
                None => Some(left.clone()),
            });
        };
        let mut rest = self.clone();
        for number in few {
            rest.remove(RecordNumber(*number));
        }
        rest
    }

    /// Adds all numbers of another posting, in place where nothing is shared.
    pub fn add(&mut self, other: &Self) {
        if let Some(few) = other.few() {
            for number in few {
                self.insert(RecordNumber(*number));
            }
            return;
        }
        let Some(added) = other.chunks() else { return };
        if let Some(few) = self.few() {
            let mut sum = other.clone();
            for number in few {
                sum.insert(RecordNumber(*number));
            }
            *self = sum;
        } else if let Form::Chunks(chunks) = &mut self.0 {
            Arc::make_mut(chunks).add(added);
        }
    }

    /// A posting of sorted numbers without repeats.
    pub(crate) fn of_sorted(sorted: &[u32]) -> Self {
        let mut numbers = [0; INLINE_MAX];
        Self(match sorted.len() {
            held @ 0..=INLINE_MAX => {
                numbers[..held].copy_from_slice(sorted);
                Form::Inline { len: u8::try_from(held).unwrap_or(0), numbers }
            }
            // A list is rarely changed again at once, so it keeps no room to grow.
            ..=LIST_MAX => Form::List(Arc::new(sorted.to_vec())),
            _ => Form::Chunks(Arc::new(Chunks::of(sorted))),
        })
    }

    fn filtered(numbers: &[u32], keep: impl Fn(RecordNumber) -> bool) -> Self {
        let kept: Vec<u32> = numbers.iter().copied().filter(|number| keep(RecordNumber(*number))).collect();
        Self::of_sorted(&kept)
    }

    /// Combines the chunks of this posting with those of the other at the same place.
    fn by_chunks(&self, other: &Self, combine: impl Fn(&Chunk, Option<&Chunk>) -> Option<Chunk>) -> Self {
        let (Some(left), Some(right)) = (self.chunks(), other.chunks()) else { return Self::new() };
        let mut result = Chunks::default();
        for (place, chunk) in left.chunks.iter() {
            if let Some(combined) = combine(chunk, right.chunks.get(place)) {
                result.len += combined.len();
                result.chunks.insert(place, combined);
            }
        }
        let mut result = Self(Form::Chunks(Arc::new(result)));
        result.settle();
        result
    }

    /// The numbers, if they are not in chunks.
    fn few(&self) -> Option<&[u32]> {
        match &self.0 {
            Form::Inline { len, numbers } => Some(&numbers[..usize::from(*len)]),
            Form::List(numbers) => Some(numbers),
            Form::Chunks(_) => None,
        }
    }

    fn chunks(&self) -> Option<&Chunks> {
        match &self.0 {
            Form::Chunks(chunks) => Some(chunks),
            Form::Inline { .. } | Form::List(_) => None,
        }
    }

    /// Takes a smaller form if the length now asks for it.
    fn settle(&mut self) {
        let has_shrunk = match &self.0 {
            Form::Inline { .. } => false,
            Form::List(numbers) => numbers.len() <= INLINE_MAX,
            Form::Chunks(chunks) => chunks.len <= CHUNKS_MIN,
        };
        if has_shrunk {
            let left: Vec<u32> = self.iter().map(|number| number.0).collect();
            *self = Self::of_sorted(&left);
        }
    }
}

impl Chunks {
    fn of(sorted: &[u32]) -> Self {
        let chunks = sorted.chunk_by(|left, right| left >> 16 == right >> 16).filter_map(|numbers| {
            let chunk = Chunk::of(numbers.iter().map(|number| lower(*number)).collect())?;
            Some((upper(*numbers.first()?), chunk))
        });
        Self { len: sorted.len(), chunks: chunks.collect() }
    }

    fn contains(&self, number: u32) -> bool {
        self.chunks.get(upper(number)).is_some_and(|chunk| chunk.contains(lower(number)))
    }

    fn insert(&mut self, number: u32) -> bool {
        let is_new = match self.chunks.get_mut(upper(number)) {
            Some(chunk) => chunk.insert(lower(number)),
            None => {
                let chunk = Chunk::Array(Arc::new(vec![lower(number)]));
                self.chunks.insert(upper(number), chunk).is_none()
            }
        };
        self.len += usize::from(is_new);
        is_new
    }

    /// Takes away a number that is there.
    fn remove(&mut self, number: u32) {
        self.len -= 1;
        match self.chunks.get_mut(upper(number)) {
            Some(chunk) if chunk.len() > 1 => drop(chunk.remove(lower(number))),
            _ => drop(self.chunks.remove(upper(number))),
        }
    }

    fn add(&mut self, other: &Self) {
        for (place, added) in other.chunks.iter() {
            let both = match self.chunks.get(place) {
                Some(chunk) => {
                    self.len -= chunk.len();
                    chunk.or(added)
                }
                None => added.clone(),
            };
            self.len += both.len();
            self.chunks.insert(place, both);
        }
    }

    fn walk(&self, first: u32) -> ChunkWalk<'_> {
        ChunkWalk { chunks: self.chunks.range(upper(first)..=u32::MAX), first, front: None, back: None }
    }
}

fn upper(number: u32) -> u32 {
    number >> 16
}

/// The number within its chunk.
#[expect(clippy::cast_possible_truncation, reason = "the lower half is what is wanted")]
fn lower(number: u32) -> u16 {
    number as u16
}

impl Default for Posting {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Posting {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Posting {}

impl fmt::Debug for Posting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// How many numbers are written out.
        const SHOWN_MAX: usize = 16;
        f.debug_struct("Posting")
            .field("len", &self.len())
            .field("first", &self.iter().take(SHOWN_MAX).map(|number| number.0).collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}

impl FromIterator<RecordNumber> for Posting {
    /// A posting of numbers in any order; repeats count once.
    fn from_iter<T: IntoIterator<Item = RecordNumber>>(numbers: T) -> Self {
        let mut numbers: Vec<_> = numbers.into_iter().map(|number| number.0).collect();
        numbers.sort_unstable();
        numbers.dedup();
        Self::of_sorted(&numbers)
    }
}

impl<'a> IntoIterator for &'a Posting {
    type Item = RecordNumber;
    type IntoIter = PostingIter<'a>;

    fn into_iter(self) -> PostingIter<'a> {
        self.iter()
    }
}

/// The numbers of a [`Posting`] in ascending order, or from the back in descending order.
#[derive(Clone)]
pub struct PostingIter<'a>(Walk<'a>);

#[derive(Clone)]
enum Walk<'a> {
    Few(slice::Iter<'a, u32>),
    Chunks(Option<ChunkWalk<'a>>),
}

#[derive(Clone)]
struct ChunkWalk<'a> {
    chunks: Range<'a, Chunk>,
    /// Numbers before it are left out.
    first: u32,
    /// The chunks that are being walked, with where their numbers begin.
    front: Option<(u32, Numbers<'a>)>,
    back: Option<(u32, Numbers<'a>)>,
}

impl<'a> ChunkWalk<'a> {
    fn opened(first: u32, (place, chunk): (u32, &'a Chunk)) -> (u32, Numbers<'a>) {
        let from = if place == upper(first) { lower(first) } else { 0 };
        (place << 16, chunk.numbers(from))
    }

    fn next(&mut self) -> Option<u32> {
        loop {
            if let Some((base, numbers)) = &mut self.front
                && let Some(number) = numbers.next()
            {
                return Some(*base | u32::from(number));
            }
            self.front = match self.chunks.next() {
                Some(chunk) => Some(Self::opened(self.first, chunk)),
                // What is left is in the chunk that the other end has opened.
                None => {
                    let (base, numbers) = self.back.as_mut()?;
                    return numbers.next().map(|number| *base | u32::from(number));
                }
            };
        }
    }

    fn next_back(&mut self) -> Option<u32> {
        loop {
            if let Some((base, numbers)) = &mut self.back
                && let Some(number) = numbers.next_back()
            {
                return Some(*base | u32::from(number));
            }
            self.back = match self.chunks.next_back() {
                Some(chunk) => Some(Self::opened(self.first, chunk)),
                None => {
                    let (base, numbers) = self.front.as_mut()?;
                    return numbers.next_back().map(|number| *base | u32::from(number));
                }
            };
        }
    }
}

impl Iterator for PostingIter<'_> {
    type Item = RecordNumber;

    fn next(&mut self) -> Option<RecordNumber> {
        let number = match &mut self.0 {
            Walk::Few(numbers) => numbers.next().copied(),
            Walk::Chunks(walk) => walk.as_mut()?.next(),
        };
        number.map(RecordNumber)
    }
}

impl DoubleEndedIterator for PostingIter<'_> {
    fn next_back(&mut self) -> Option<RecordNumber> {
        let number = match &mut self.0 {
            Walk::Few(numbers) => numbers.next_back().copied(),
            Walk::Chunks(walk) => walk.as_mut()?.next_back(),
        };
        number.map(RecordNumber)
    }
}
