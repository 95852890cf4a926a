//! Black-box tests: the installed programs of Open vSwitch and OVN, and raw sessions, against the binary `cowslip`.
//!
//! One module per subject. Where it is possible the same test runs against the real server, which shows that the
//! test asks for what is so. Environment: `COWSLIP_TEST_SERVER=real` puts the real server in our server's place,
//! `COWSLIP_TEST_BINARY` names another binary than the one cargo built, `COWSLIP_TEST_CASE=VAL-14` runs one case.
#![forbid(unsafe_code)]

mod cases;
mod cli;
mod clients;
mod differential;
mod durability;
mod files;
mod malformed;
mod northd;
mod sessions;
mod support;
#[path = "../trace/mod.rs"]
mod trace;
mod wire;
