//! Black-box tests of the directory: the client programs and libraries that people have, the files of other servers, and
//! what an answer promises, against the binary `cowslip`.
//!
//! `COWSLIP_TEST_BINARY` names another binary than the one cargo built. A missing peer program fails the test and names
//! the command that installs it.
#![forbid(unsafe_code)]

mod clients;
mod durability;
mod interchange;
mod peers;
mod support;
#[path = "../trace/mod.rs"]
mod trace;
