//! An OVSDB client: a cache that follows the server, client indexes, validated transactions, typed models.
#![forbid(unsafe_code)]

mod client;
mod driver;
mod encode;
mod error;
mod events;
mod filter;
mod locks;
pub mod model;
mod options;
mod plan;
mod results;
mod server_row;
mod session;
mod shared;
mod snapshot;
mod state;
mod transaction;
mod typed;
mod update;
mod validation;

pub use client::{Client, ClientBuilder, Counts, DryRun};
pub use cowslip_engine::Uuid;
pub use cowslip_ovsdb::atom::Atom;
pub use cowslip_ovsdb::condition::Function;
pub use cowslip_ovsdb::datum::Datum;
pub use cowslip_ovsdb::mutation::Mutator;
pub use error::{BuildError, ClientError, Duplicate, Failure, Mismatch, Refusal, TransactError};
pub use events::{Batch, Events, EventsError, RowEvent};
pub use filter::Filter;
pub use model::{ColumnSpec, Count, FromDatum, IntoDatum, Model, ModelError, Ref, Scalar, Shape};
pub use options::{EARLY_UPDATES_MAX, IN_FLIGHT_MAX_DEFAULT, Options};
pub use plan::{Index, Monitor};
pub use results::{OperationResult, Results};
pub use snapshot::{Explanation, RowView, Snapshot, SnapshotReader};
pub use state::State;
pub use transaction::{Position, Transaction};
pub use typed::{Argument, Assignment, Change, Collection, Column, FindError, Numeric, Where};
pub use validation::Validation;
