//! The client against our server in this process, the real `ovsdb-server`, and servers that play a script.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

mod basics;
mod cases;
mod conditions;
mod databases;
mod flood;
mod life;
mod limits;
mod metrics;
mod ovn;
mod parked;
mod pipelined;
mod process;
mod property;
mod random;
mod replies;
mod restarts;
mod schema_fit;
mod schemas;
mod script;
mod scripted;
mod support;
mod tap;
mod tls;
mod validation;
mod wire;
