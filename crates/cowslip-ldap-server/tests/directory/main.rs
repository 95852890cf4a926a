//! Writes on a directory, in memory and in a folder that is opened again.

mod crash;
mod filters;
mod random;
mod scan;
mod support;
#[path = "../support/watched.rs"]
mod watched;
mod writes;
