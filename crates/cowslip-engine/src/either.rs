//! One of two iterators, where a function has two ways to walk.

/// One of two iterators of the same items.
pub(crate) enum Either<A, B> {
    /// The first way.
    Left(A),
    /// The other way.
    Right(B),
}

impl<T, A: Iterator<Item = T>, B: Iterator<Item = T>> Iterator for Either<A, B> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        match self {
            Self::Left(items) => items.next(),
            Self::Right(items) => items.next(),
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        match self {
            Self::Left(items) => items.size_hint(),
            Self::Right(items) => items.size_hint(),
        }
    }
}

impl<T, A: DoubleEndedIterator<Item = T>, B: DoubleEndedIterator<Item = T>> DoubleEndedIterator
    for Either<A, B>
{
    fn next_back(&mut self) -> Option<T> {
        match self {
            Self::Left(items) => items.next_back(),
            Self::Right(items) => items.next_back(),
        }
    }
}
