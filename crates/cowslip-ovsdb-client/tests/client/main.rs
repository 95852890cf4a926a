//! The client against our server in this process, the real `ovsdb-server`, and servers that play a script.

mod basics;
mod pipelined;
mod property;
mod restarts;
mod script;
mod scripted;
mod support;
mod validation;
