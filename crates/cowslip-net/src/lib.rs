//! What Cowslip's servers and clients share of the network, whatever they speak: addresses in the form that OVSDB's
//! tools use, listeners, connectors, TLS, and the limits of connections.
//!
//! A client connects through a [`connector::Connector`], which has the TLS files and the TCP settings. Invariant: no part
//! of this crate knows what is said over a connection.
#![forbid(unsafe_code)]

pub mod address;
pub mod connector;
pub mod listener;
pub mod stream;
pub mod tcp;
pub mod tls;
