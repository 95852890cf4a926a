//! Searching and comparing (RFC 4511, sections 4.5 and 4.10).
//!
//! A search holds one root to its end, so it sees one version of everything. The [`planner`] takes candidates from the
//! indexes, always more than enough; each is then tested as it is, in [`view`]. Invariant: what a search finds does not
//! depend on which indexes there are.

pub use compare::compare;
pub use computed::{RootDse, root_dse, subschema};
pub use execute::{Limits, Progress, Search};
pub use planner::{Explanation, candidates};
pub use select::Selection;
pub(crate) use select::described;
pub use view::{Context, View};

mod compare;
mod computed;
mod execute;
pub mod planner;
mod select;
pub mod view;
