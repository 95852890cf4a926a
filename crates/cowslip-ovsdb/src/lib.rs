//! OVSDB (RFC 7047) without sockets.
#![forbid(unsafe_code)]
pub mod atom;
pub mod condition;
pub mod datum;
pub mod error;
pub mod executor;
pub mod framing;
pub mod json;
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
