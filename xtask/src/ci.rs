//! All checks of continuous integration, in the order in which they fail fastest.
//!
//! Invariant: one failing check does not hide the next; the run ends with a line per check and its time.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use crate::chores;
use crate::process::{self, Failure};
use crate::tidy;
use crate::workspace::Workspace;

/// Pinned, so that a new release of the checker cannot turn an unchanged commit red.
const CARGO_DENY_VERSION: &str = "0.20.2";

/// Whether the tests are part of the run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tests {
    /// Run them last.
    Run,
    /// Leave them out: the caller runs them.
    Omit,
}

type Check = fn(&Workspace) -> Result<(), Failure>;

const CHECKS: [(&str, Check); 5] =
    [("fmt", fmt), ("clippy", clippy), ("tidy", tidy::run), ("docs", chores::docs), ("deny", deny)];

/// Runs every check and says at the end which ones failed.
pub(crate) fn run(workspace: &Workspace, tests: Tests) -> Result<(), Failure> {
    let all_tests: Check = |workspace| chores::test(workspace, &[]);
    let last = (tests == Tests::Run).then_some(("test", all_tests));
    let mut failed = Vec::new();
    let mut summary = String::new();
    for (name, check) in CHECKS.into_iter().chain(last) {
        eprintln!("== {name}");
        let start = Instant::now();
        let verdict = match check(workspace) {
            Ok(()) => "ok",
            Err(failure) => {
                eprintln!("{name}: {failure}");
                failed.push(name.to_owned());
                "FAILED"
            }
        };
        summary.push_str(&format!("{verdict:>8}  {name:<8} {:>6.1} s\n", start.elapsed().as_secs_f64()));
    }
    eprint!("== summary\n{summary}");
    if failed.is_empty() { Ok(()) } else { Err(Failure::Checks(failed)) }
}

fn fmt(workspace: &Workspace) -> Result<(), Failure> {
    process::run(workspace.cargo().args(["fmt", "--all", "--check"]))
}

fn clippy(workspace: &Workspace) -> Result<(), Failure> {
    let mut command = workspace.cargo();
    command.args(["clippy", "--workspace", "--all-targets", "--keep-going", "--", "-D", "warnings"]);
    // The bound itself (70 lines) stands in clippy.toml; the lint is one that clippy leaves off unless asked.
    command.args(["-D", "clippy::too_many_lines"]);
    process::run(&mut command)
}

/// Licences, duplicate and unwanted crates, and where crates come from, by the rules in deny.toml. Advisories are left
/// out: their list is not on a package registry, and a run must not depend on a second service.
fn deny(workspace: &Workspace) -> Result<(), Failure> {
    let program = cargo_deny(workspace)?;
    let mut command = Command::new(program);
    command.current_dir(workspace.root()).args(["check", "bans", "licenses", "sources"]);
    process::run(&mut command)
}

/// The cargo-deny on the search path, or one built into the target folder (about two minutes, once).
fn cargo_deny(workspace: &Workspace) -> Result<PathBuf, Failure> {
    if process::succeeds(Command::new("cargo-deny").arg("--version")) {
        return Ok(PathBuf::from("cargo-deny"));
    }
    let root = workspace.target_dir()?.join("tools");
    let program = root.join("bin").join("cargo-deny");
    if !process::succeeds(Command::new(&program).arg("--version")) {
        let mut command = workspace.cargo();
        command.args(["install", "cargo-deny", "--locked", "--version", CARGO_DENY_VERSION, "--root"]);
        // It runs for a second; what counts is how long it builds.
        command.env("CARGO_PROFILE_RELEASE_LTO", "off").env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0");
        command.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16");
        process::run(command.arg(&root))?;
    }
    Ok(program)
}
