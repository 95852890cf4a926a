//! What Cowslip's servers and clients share of the network, whatever they speak: addresses in the form that OVSDB's
//! tools use, listeners, connections and their limits.
#![forbid(unsafe_code)]

pub mod address;
pub mod listener;
pub mod stream;
