//! The client against our server in this process, the real `ovsdb-server`, and servers that play a script.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod basics;
mod ovn;
mod pipelined;
mod property;
mod restarts;
mod script;
mod scripted;
mod support;
mod validation;
