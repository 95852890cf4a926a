//! An OVSDB client: a cache that follows the server, client indexes, validated transactions, typed models.
//!
//! # A first client
//! A [`Client`] connects to a server, keeps a copy of the tables that its [`Monitor`] names, and connects again whenever
//! the link breaks. Reading needs no server and no lock: a [`Snapshot`] is one version of the copy and never changes.
//! Writing is a [`Transaction`]: operations that are applied together or not at all.
//!
//! ```
//! use cowslip_ovsdb_client::{Client, Filter, IntoDatum, Monitor};
//!
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! # let schema = r#"{"name":"Net","tables":{
//! #     "Switch":{"isRoot":true,"columns":{"name":{"type":"string"},
//! #       "ports":{"type":{"key":{"type":"uuid","refTable":"Port"},"min":0,"max":"unlimited"}}}},
//! #     "Port":{"columns":{"name":{"type":"string"},
//! #       "ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}}"#;
//! # let server = cowslip_ovsdb_server::testing::TestServer::in_memory(schema).await?;
//! # let endpoint = server.address();
//! let client = Client::builder("Net")
//!     .endpoint(&endpoint) // such as "unix:/run/ovn/ovnnb_db.sock" or "tcp:192.0.2.1:6641"
//!     .monitor(Monitor::everything())
//!     .connect()
//!     .await?;
//!
//! // A row that refers to another one of the same transaction: the UUIDs of both are provisional.
//! let mut tx = client.transaction();
//! let port = tx.insert("Port", [("name", "p1".to_datum())]);
//! let switch = tx.insert("Switch", [("name", "s1".to_datum()), ("ports", port.to_datum())]);
//! let results = client.transact(tx).await?;
//!
//! // The client's own write is in the cache when `transact` returns.
//! let snapshot = client.snapshot();
//! let row = snapshot.row("Switch", results.uuid(switch)).expect("it was inserted");
//! assert_eq!(row.value::<String>("name")?, "s1");
//! assert_eq!(snapshot.list("Port", &Filter::all().equal("name", "p1"))?.len(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! # Indexes
//! The schema's indexes are always there. An [`Index`] adds one of the client's own: on a column, on several, or on one
//! key of a map column, where "no value" may count as a value. A *secondary* index makes look-ups fast
//! ([`Snapshot::find`], [`Snapshot::find_range`]); [`Snapshot::explain`] tells which one a filter uses. A *primary* index
//! is a promise besides: no two rows of the cache hold one key.
//!
//! # Validation
//! Before a transaction is sent it can be run on the cache, by the code that servers run: all operations in order, then
//! garbage collection, pruning of weak references, and the uniqueness of every key, those of primary client indexes too.
//! What would fail is refused, with nothing sent.
//!
//! ```
//! use cowslip_ovsdb_client::*;
//! # let runtime = tokio::runtime::Runtime::new().unwrap();
//! # runtime.block_on(async {
//! # let schema = r#"{"name":"Net","tables":{"Port":{"isRoot":true,"columns":{"name":{"type":"string"},
//! #       "ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}}"#;
//! # let server = cowslip_ovsdb_server::testing::TestServer::in_memory(schema).await?;
//! # let endpoint = server.address();
//! let client = Client::builder("Net")
//!     .endpoint(&endpoint)
//!     .monitor(Monitor::everything())
//!     .index(Index::primary("Port", "by_pod").map_key("ids", "pod"))
//!     .connect()
//!     .await?;
//! let pod = std::collections::BTreeMap::from([("pod".to_string(), "web-0".to_string())]);
//!
//! let mut tx = client.transaction();
//! tx.insert("Port", [("name", "a".to_datum()), ("ids", pod.to_datum())]);
//! client.transact(tx).await?;
//!
//! let mut tx = client.transaction();
//! tx.insert("Port", [("name", "b".to_datum()), ("ids", pod.to_datum())]);
//! match client.transact(tx).await {
//!     Err(TransactError::Refused(refusal)) => {
//!         let duplicate = refusal.duplicate.expect("a key is the reason");
//!         assert_eq!((duplicate.table.as_str(), duplicate.index.as_str()), ("Port", "by_pod"));
//!         assert_eq!(duplicate.rows.len(), 2);
//!     }
//!     other => panic!("{other:?}"),
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! * **What is not known is not refused.** The cache may hold a part of the tables, columns or rows; a rule is only taken
//!   as broken if what is here breaks it. A row that the server might collect for reasons that are not here holds its key
//!   neither for certain nor not.
//! * **The cache may lag behind the server**, which might have accepted what was refused. A [`Refusal`] names the cache's
//!   generation: wait for a later one ([`Client::generation`]) and try again.
//! * **Transactions need not go one at a time.** Where a verdict depends on something that other transactions of the same
//!   client have in flight, and only there, it waits for their replies and is made again.
//! * **Another client's race** for the same key is no matter of the cache. [`Index::guarded`] has the server checked as
//!   well, at the cost of one `wait` per key taken.
//!
//! # Events
//! [`Client::events`] gives what changes, transaction by transaction; [`Client::on_change`] calls a function on a thread
//! of its own, which may use the client. A consumer that falls too far behind is told so, and goes on from a snapshot.
//!
//! # Models
//! `#[derive(Model)]` makes a struct of a table's rows, or of a part of its columns; see [`model`]. `cowslip-ovsdb-codegen`
//! writes such structs from a schema.
//!
//! # Connections
//! Servers are tried in order, or shuffled ([`Options::shuffle`]), until one will do; the search goes on behind one that
//! fails, with a pause after each round that grows. [`Client::states`] tells what goes on, with reasons. `ssl:` endpoints
//! take the files that OVSDB's tools take ([`ClientBuilder::tls`]), and replaced certificates without a restart. A dead
//! server is noticed by the inactivity probe ([`Options::probe_interval`]), by TCP's keep-alive and user time-out
//! ([`Options::tcp`]); none of the time-outs cuts a dump that arrives. [`Client::database`] opens another database over
//! the same connection.
//!
//! # What is not here
//! Sending a transaction again whose outcome is unknown: choose the rows' UUIDs ([`Transaction::insert_with_uuid`]) or add
//! a `wait`, and decide.
#![forbid(unsafe_code)]

mod client;
mod connection;
mod driver;
mod encode;
mod error;
mod events;
mod filter;
mod link;
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
mod ticket;
mod transaction;
mod typed;
mod update;
mod validation;

pub use client::{Client, ClientBuilder, Counts, DryRun};
pub use connection::DATABASES_MAX;
pub use cowslip_engine::Uuid;
pub use cowslip_net::tcp::{KeepAlive, TcpOptions};
pub use cowslip_net::tls::{Identity, NameCheck, TlsError, TlsOptions};
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
