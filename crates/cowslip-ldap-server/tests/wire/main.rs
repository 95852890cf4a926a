//! The server as a client sees it, byte by byte.

mod cases;
mod client;
mod fixture;
mod load;
mod protocol;
#[path = "../directory/support.rs"]
#[allow(dead_code, reason = "only a part of it is needed here")]
mod support;
