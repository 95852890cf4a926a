//! Writes on a directory, in memory and in a folder that is opened again.

mod support;
mod writes;
