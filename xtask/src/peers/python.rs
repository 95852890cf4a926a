//! The Python side of the peers: a virtual environment in the target folder with the packages of `peers.txt`.
//!
//! Invariant: the environment holds a copy of the list it was made from, written last. Only an environment whose copy
//! equals today's list is used; any other is made anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process::{self, Failure};
use crate::workspace::Workspace;

const PACKAGES: &str = include_str!("../../peers.txt");
/// The copy of the list inside the environment.
const STAMP: &str = "peers.txt";
/// A Python from the person's own version manager first, the distribution's second.
const CANDIDATES: [&str; 2] = ["python3", "/usr/bin/python3"];

/// A Python that can make virtual environments. Debian's can not without its package python3-venv.
pub(super) fn base_interpreter() -> Option<&'static str> {
    let can_make_one =
        |python: &&str| process::succeeds(Command::new(python).args(["-c", "import ensurepip, venv"]));
    CANDIDATES.into_iter().find(can_make_one)
}

/// The virtual environment, made or not.
pub(super) struct Venv {
    root: PathBuf,
}

impl Venv {
    /// The environment of a workspace.
    pub(super) fn of(workspace: &Workspace) -> Result<Venv, Failure> {
        Ok(Venv { root: workspace.target_dir()?.join("peers").join("venv") })
    }

    /// Its folder.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Its interpreter.
    pub(super) fn python(&self) -> PathBuf {
        self.root.join("bin").join("python")
    }

    /// Whether it was made from today's list and its interpreter still runs (the one it links to may be gone).
    pub(super) fn is_ready(&self) -> bool {
        fs::read_to_string(self.root.join(STAMP)).is_ok_and(|list| list == PACKAGES)
            && process::succeeds(Command::new(self.python()).args(["-c", "import ovs, ovsdbapp"]))
    }

    /// Makes it from nothing.
    pub(super) fn make(&self) -> Result<(), Failure> {
        let python = base_interpreter().ok_or_else(|| {
            Failure::Missing(
                "no python3 here can make a virtual environment; install python3-venv".to_owned(),
            )
        })?;
        process::run(Command::new(python).args(["-m", "venv", "--clear"]).arg(&self.root))?;
        let list = self.root.join("wanted.txt");
        self.write(&list)?;
        let mut pip = Command::new(self.python());
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement"]);
        process::run(pip.arg(&list))?;
        self.write(&self.root.join(STAMP))
    }

    fn write(&self, path: &Path) -> Result<(), Failure> {
        fs::write(path, PACKAGES).map_err(|source| Failure::File { path: path.to_owned(), source })
    }
}
