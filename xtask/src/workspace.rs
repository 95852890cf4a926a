//! Where the workspace is and what cargo says about it.
//!
//! Invariant: all chores find the workspace through the place where xtask was built, so they work from any folder.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::process::{self, Failure};

/// The workspace on disk.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace that this xtask belongs to.
    pub(crate) fn current() -> Workspace {
        let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = manifest_dir.parent().expect("xtask lives one folder below the workspace's root");
        Workspace { root: root.to_owned() }
    }

    /// The folder with the workspace's Cargo.toml.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// The cargo that started us, run in the workspace's root.
    pub(crate) fn cargo(&self) -> Command {
        let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        command.current_dir(&self.root);
        command
    }

    /// Where cargo puts what it builds; `CARGO_TARGET_DIR` and cargo's own settings move it.
    pub(crate) fn target_dir(&self) -> Result<PathBuf, Failure> {
        let mut command = self.cargo();
        let metadata = parsed(command.args(["metadata", "--format-version=1", "--no-deps"]))?;
        let dir = metadata["target_directory"].as_str();
        dir.map(PathBuf::from).ok_or_else(|| Failure::Output {
            command: process::shown(&command),
            problem: "no target_directory".to_owned(),
        })
    }

    /// `cargo metadata` with the resolved dependencies of this machine's own platform: without the filter cargo would
    /// have to download crates that only other systems use.
    pub(crate) fn metadata(&self) -> Result<Value, Failure> {
        let mut command = self.cargo();
        command.args(["metadata", "--format-version=1", "--filter-platform", &host_triple()?]);
        parsed(&mut command)
    }
}

fn parsed(command: &mut Command) -> Result<Value, Failure> {
    let text = process::output(command)?;
    serde_json::from_str(&text)
        .map_err(|error| Failure::Output { command: process::shown(command), problem: error.to_string() })
}

fn host_triple() -> Result<String, Failure> {
    let mut command = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    let text = process::output(command.arg("-vV"))?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::Output {
        command: process::shown(&command),
        problem: "no line `host: ...`".to_owned(),
    })
}
