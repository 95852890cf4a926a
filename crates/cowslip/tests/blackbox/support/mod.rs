//! What every black-box test needs: the two servers as peers, connections, comparison of replies, and commands
//! with a deadline.
//!
//! Invariants: nothing a test started outlives it; every wait has a deadline; every path lies in the test's own
//! temporary directory, whose name is short because a unix socket's path is limited to 108 bytes; a missing peer
//! program is a failure that names the command which installs it, never a skipped test.

pub(crate) mod compare;
pub(crate) mod content;
pub(crate) mod process;
pub(crate) mod rpc;
pub(crate) mod server;

use std::path::{Path, PathBuf};

/// A directory of one test, removed when the test ends.
pub(crate) fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("cow").tempdir_in("/tmp").expect("a directory in /tmp can be made")
}

/// The root of the source tree.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder that holds the cases which an executor in the same process runs as well.
pub(crate) fn case_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../cowslip-ovsdb/tests/cases")
}

/// The folder of the data that only black-box tests use.
pub(crate) fn data_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data")
}

/// A JSON file of test data.
pub(crate) fn json_file(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Fails the test with all that went wrong in it, one finding per paragraph.
pub(crate) fn report(what: &str, ran: usize, failures: &[String]) {
    assert!(ran > 0, "{what}: nothing was run");
    assert!(failures.is_empty(), "{what}: {} of {ran} failed\n\n{}\n", failures.len(), failures.join("\n\n"));
}
