//! The checks that neither the compiler nor clippy makes, as one command and one test.
//!
//! Invariants: a rule looks at the whole workspace and answers all it finds, in a stable order; it changes nothing; it
//! needs no network once the dependencies are there.

mod dependencies;
mod files;
mod links;
mod manifests;
mod sources;

use std::fmt;

use crate::process::Failure;
use crate::workspace::Workspace;
use files::Files;

/// Something to put right.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Finding {
    /// A path in the workspace or the name of a crate.
    place: String,
    /// The line, where there is one; 0 for a whole file or crate.
    line: usize,
    /// What is wrong, and where it is not plain, what to do.
    problem: String,
}

impl Finding {
    fn new(place: impl Into<String>, line: usize, problem: impl Into<String>) -> Finding {
        Finding { place: place.into(), line, problem: problem.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.place, self.problem),
            line => write!(f, "{}:{line}: {}", self.place, self.problem),
        }
    }
}

/// Prints what is found; anything found is a failure.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    let findings = findings(workspace)?;
    for finding in &findings {
        eprintln!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => Err(Failure::Checks(vec!["tidy (1 finding)".to_owned()])),
        count => Err(Failure::Checks(vec![format!("tidy ({count} findings)")])),
    }
}

fn findings(workspace: &Workspace) -> Result<Vec<Finding>, Failure> {
    let metadata = workspace.metadata()?;
    let files = Files::read(workspace.root())?;
    let mut findings = dependencies::check(&metadata);
    findings.extend(manifests::check(&metadata, &files, workspace.root()));
    findings.extend(sources::check(&files));
    findings.extend(links::check(&files));
    findings.sort();
    findings.dedup();
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        let findings = findings(&Workspace::current()).expect("cargo metadata and the files can be read");
        let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
        assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
    }
}
