//! Random schemas, and random transactions on them, from a seed.
//!
//! What is made is mostly legal: a schema always is, a transaction as often as not. A few things are left out because the
//! real server has defects there (`docs/conformance.md` lists them): maps whose keys and values both refer to rows, uses of
//! a row's name before the insert that gives the row its UUID, and one UUID in two tables.

mod schema;
mod transaction;

pub(crate) use schema::{Base, ColumnPlan, Kind, SchemaPlan, TablePlan};
pub(crate) use transaction::{Generator, Rows};

/// A small generator, so that a seed is all that is needed to see a failure again.
#[derive(Clone, Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64: every seed is a good one.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    pub(crate) fn one_in(&mut self, times: u64) -> bool {
        self.below(times) == 0
    }

    pub(crate) fn of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len() as u64) as usize]
    }
}
