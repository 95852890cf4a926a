//! The chores that are a few cargo commands each: tests, benches, documentation.
//!
//! Invariant: what a test needs to know about its surroundings goes to it in environment variables named here.

use std::path::PathBuf;

use crate::peers;
use crate::process::{self, Failure};
use crate::workspace::Workspace;

/// Tells the tests which Python has the packages of `peers.txt`.
const PEERS_PYTHON_VARIABLE: &str = "COWSLIP_PEERS_PYTHON";
/// Tells the black-box tests which binary to run. They run the one that people get: built for release, so that what is
/// traced and killed is what runs in the field, and the servers under load answer in reasonable time.
const TEST_BINARY_VARIABLE: &str = "COWSLIP_TEST_BINARY";

/// Installs the peers, builds the release binary and runs every test, doc tests included.
pub(crate) fn test(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    peers::install(workspace)?;
    let binary = release_binary(workspace)?;
    let mut command = workspace.cargo();
    // One run tells all that fails.
    command.args(["test", "--no-fail-fast"]);
    if !selects_packages(arguments) {
        command.arg("--workspace");
    }
    command.args(arguments);
    // Absolute, because cargo starts each test in its own crate's folder.
    command.env(PEERS_PYTHON_VARIABLE, peers::python(workspace)?);
    command.env(TEST_BINARY_VARIABLE, binary);
    process::run(&mut command)?;
    if arguments.is_empty() { counted(workspace) } else { Ok(()) }
}

/// Runs the test that counts what the others don't need counted.
fn counted(workspace: &Workspace) -> Result<(), Failure> {
    let mut command = workspace.cargo();
    command.args([
        "test",
        "--package",
        "cowslip-ldap-server",
        "--features",
        "count-owners",
        "--test",
        "owners",
    ]);
    process::run(&mut command)
}

/// Feeds every decoder of the directory with mutated input, all at once, each for so many seconds. Without this command the
/// same tests run with a fixed number of inputs.
pub(crate) fn fuzz(workspace: &Workspace, seconds: u64) -> Result<(), Failure> {
    let mut command = workspace.cargo();
    command.args(["test", "--package", "cowslip-ldap-server", "--test", "fuzz", "--"]);
    command.args(["--nocapture", "--test-threads", "16"]);
    command.env("COWSLIP_FUZZ_SECONDS", seconds.to_string());
    process::run(&mut command)
}

/// Whether arguments of `cargo test` say which packages; `--workspace` beside them would overrule them.
fn selects_packages(arguments: &[String]) -> bool {
    let mut for_cargo = arguments.iter().take_while(|word| *word != "--");
    for_cargo.any(|word| word.starts_with("-p") || word.starts_with("--package"))
}

/// Builds the API documentation of our own crates; a broken link or a missing comment is an error.
pub(crate) fn docs(workspace: &Workspace) -> Result<(), Failure> {
    let mut command = workspace.cargo();
    command.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
    process::run(&mut command)
}

/// Runs the benches of every crate, then the comparison with the real servers; with filters only the former.
pub(crate) fn bench(workspace: &Workspace, filters: &[String]) -> Result<(), Failure> {
    let mut benches = workspace.cargo();
    // Only the bench targets: a library's unit tests would not understand a bench's arguments.
    benches.args(["bench", "--workspace", "--bench", "*"]);
    if !filters.is_empty() {
        benches.arg("--").args(filters);
        return process::run(&mut benches);
    }
    process::run(&mut benches)?;
    peers::install(workspace)?;
    let binary = release_binary(workspace)?;
    for what in ["transact", "dump"] {
        let mut command = std::process::Command::new(&binary);
        process::run(command.args(["bench", "ovsdb", what]).current_dir(workspace.root()))?;
    }
    for what in ["modrate", "searchrate", "bindrate", "addrate", "deleterate"] {
        let mut command = std::process::Command::new(&binary);
        let servers = ["--against", "slapd,389ds,cowslip"];
        process::run(command.args(["bench", "ldap", what]).args(servers).current_dir(workspace.root()))?;
    }
    Ok(())
}

fn release_binary(workspace: &Workspace) -> Result<PathBuf, Failure> {
    process::run(workspace.cargo().args(["build", "--release", "--package", "cowslip"]))?;
    Ok(workspace.target_dir()?.join("release").join("cowslip"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_chosen_in_front_of_the_dashes() {
        let selects = |line: &str| selects_packages(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        assert!(selects("-p xtask") && selects("--doc --package=xtask") && selects("-pxtask"));
        assert!(!selects("") && !selects("--doc name") && !selects("name -- -p"));
    }
}
