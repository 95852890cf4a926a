//! The programs of other projects that the tests run against our server, and how they get onto this machine.
//!
//! Invariants: when all is there, nothing is run and nothing is asked; what is going to be installed is said before it
//! is; no service is started by an installation; processes that run already are left alone.

mod debian;
mod python;

use std::path::PathBuf;

use crate::process::Failure;
use crate::workspace::Workspace;

/// Installs what is missing.
pub(crate) fn install(workspace: &Workspace) -> Result<(), Failure> {
    let packages = debian::missing();
    let venv = python::Venv::of(workspace)?;
    let venv_is_ready = venv.is_ready();
    if packages.is_empty() && venv_is_ready {
        eprintln!("peers: all there");
        return Ok(());
    }
    if !packages.is_empty() {
        eprintln!("peers: will install Debian packages, starting no service: {}", packages.join(" "));
    }
    if !venv_is_ready {
        eprintln!("peers: will make {} with the packages of xtask/peers.txt", venv.root().display());
    }
    if !packages.is_empty() {
        debian::install(&packages)?;
    }
    if !venv_is_ready {
        venv.make()?;
    }
    eprintln!("peers: all there");
    Ok(())
}

/// The Python interpreter that has the packages of `peers.txt`.
pub(crate) fn python(workspace: &Workspace) -> Result<PathBuf, Failure> {
    Ok(python::Venv::of(workspace)?.python())
}
