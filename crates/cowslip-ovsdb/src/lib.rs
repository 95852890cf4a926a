//! OVSDB (RFC 7047) without sockets: what servers, clients and tools of the protocol have in common.
//!
//! From the wire inwards: [`framing`] cuts a byte stream into messages, [`json`] parses them, [`message`] takes their
//! JSON-RPC envelope apart. [`schema`] and [`types`] say what a database may hold; [`atom`], [`datum`] and [`row`] are
//! what it holds. [`operation`] parses a transaction, with its [`condition`]s and [`mutation`]s; [`executor`] runs it on a
//! root of [`cowslip_engine`] and gives its results and its change set. [`monitor`] writes what changed as clients want
//! to hear it.
//!
//! Everything follows the RFC and, where that is silent or the field has gone on, Open vSwitch's `ovsdb-server`, error
//! texts included. `docs/conformance.md` in the repository lists where the two differ and why.
//!
//! # Example: a transaction in memory
//!
//! ```
//! use cowslip_engine::Root;
//! use cowslip_ovsdb::executor::{Circumstances, Everything, Execution, execute};
//! use cowslip_ovsdb::json::Json;
//! use cowslip_ovsdb::operation::Transaction;
//! use cowslip_ovsdb::row::Ovsdb;
//! use cowslip_ovsdb::schema::Schema;
//! use std::sync::Arc;
//!
//! let schema = Schema::parse(br#"{"name": "Net", "tables": {"Switch": {
//!     "columns": {"name": {"type": "string"}}, "indexes": [["name"]], "isRoot": true}}}"#)?;
//! let mut root = Root::<Ovsdb>::new(Arc::new(schema));
//!
//! let mut run = |text: &str| {
//!     let json = Json::parse(text.as_bytes()).expect("JSON");
//!     let transaction = Transaction::parse(root.meta(), json.as_array().expect("an array"));
//!     let alone = Circumstances { owns_lock: &|_| false, read_only: false, waited_ms: 0 };
//!     let Execution::Done(outcome) = execute(&root, &transaction, &Everything, &alone) else {
//!         panic!("there is no wait in it");
//!     };
//!     root.apply(&outcome.changes);
//!     outcome.error.map(|error| error.kind.tag())
//! };
//!
//! let insert = r#"[{"op": "insert", "table": "Switch", "row": {"name": "rack-a"}}]"#;
//! assert_eq!(run(insert), None);
//! assert_eq!(run(insert), Some("constraint violation"));
//! # Ok::<(), cowslip_ovsdb::error::Error>(())
//! ```
#![forbid(unsafe_code)]

pub mod atom;
pub mod condition;
pub mod datum;
pub mod error;
pub mod executor;
pub mod framing;
pub mod json;
mod key;
pub mod members;
pub mod message;
pub mod monitor;
pub mod mutation;
pub mod number;
pub mod operation;
pub mod row;
pub mod schema;
pub mod symbols;
pub mod types;
