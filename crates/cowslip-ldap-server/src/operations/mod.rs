//! What a client may ask for, and how it is done.
//!
//! A worker turns a request into a `plan`; the committer runs it ([`mod@write`]) on a draft, which ends with the checks of
//! `check`, `integrity` and [`uniqueness`]. A [`Refusal`] leaves nothing behind.

pub use check::{check_stored, structural_class};
pub use plan::{
    AddPlan, Brought, ChangeKind, ModifyPlan, Plan, PlannedAttribute, PlannedValue, RenamePlan, SchemaPlan,
};
pub use refusal::Refusal;

mod check;
mod integrity;
mod plan;
pub mod prepare;
mod refusal;
pub mod request;
pub mod uniqueness;
pub mod write;
