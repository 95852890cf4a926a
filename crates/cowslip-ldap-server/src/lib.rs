//! An LDAP directory (RFC 4511) on Cowslip's engine.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod codec;
pub mod config;
pub mod connection;
pub mod entry;
pub mod export;
pub mod host;
pub mod import;
pub mod indexing;
pub mod journal;
pub mod key;
pub mod meta;
pub mod model;
pub mod offline;
pub mod operations;
pub mod password;
pub mod schema_entry;
pub mod search;
pub mod server;
pub mod service;
pub mod testing;
pub mod tree;
