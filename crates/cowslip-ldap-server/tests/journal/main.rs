//! The directory's journal, with a small model in place of the directory.
#![allow(missing_docs, unreachable_pub)]

mod crash;
mod damage;
mod files;
mod long;
mod pipeline;
mod property;
mod toy;
#[path = "../support/watched.rs"]
mod watched;
