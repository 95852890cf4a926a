//! LDAPv3 (RFC 4510-4519) without sockets and without a store: what servers, clients and tools of the protocol share.
#![forbid(unsafe_code)]

pub mod ber;
pub mod description;
pub mod dn;
pub mod entry;
pub mod filter;
pub mod framing;
pub mod ldif;
pub mod matching;
pub mod message;
pub mod oids;
pub mod prep;
pub mod result;
pub mod schema;
pub mod session;
pub mod syntax;
pub mod time;
pub mod url;
