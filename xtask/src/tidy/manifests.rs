//! Rules about crates as wholes: every crate takes the workspace's lints, and no root allows `unsafe`.

use std::path::Path;

use serde_json::Value;

use super::{Finding, files::Files};

/// The lint that may not be relaxed further down, which is why it stands in each root and not only in the workspace.
const FORBID: &str = "#![forbid(unsafe_code)]";
/// Targets with a root of their own that reaches users; tests, benches and examples have the workspace's lints.
const ROOT_KINDS: [&str; 3] = ["lib", "bin", "proc-macro"];

/// Checks each workspace member.
pub(super) fn check(metadata: &Value, files: &Files, root: &Path) -> Vec<Finding> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let members = list(&metadata["workspace_members"]);
    let relative = |value: &Value| {
        let path = Path::new(value.as_str().unwrap_or_default());
        path.strip_prefix(root).unwrap_or(path).to_string_lossy().into_owned()
    };
    let mut findings = Vec::new();
    for package in list(&metadata["packages"]).iter().filter(|package| members.contains(&package["id"])) {
        let manifest = relative(&package["manifest_path"]);
        if !files.text_of(&manifest).is_some_and(takes_workspace_lints) {
            findings.push(Finding::new(manifest, 0, "lacks `[lints]` with `workspace = true`"));
        }
        for target in list(&package["targets"]) {
            let is_root = list(&target["kind"])
                .iter()
                .any(|kind| kind.as_str().is_some_and(|kind| ROOT_KINDS.contains(&kind)));
            let source = relative(&target["src_path"]);
            let forbids =
                files.text_of(&source).is_some_and(|text| text.lines().any(|line| line.trim() == FORBID));
            if is_root && !forbids {
                findings.push(Finding::new(source, 0, format!("a crate root without `{FORBID}`")));
            }
        }
    }
    findings
}

fn takes_workspace_lints(manifest: &str) -> bool {
    let mut lines = manifest.lines().map(str::trim).skip_while(|line| *line != "[lints]").skip(1);
    lines.find(|line| !line.is_empty() && !line.starts_with('#')) == Some("workspace = true")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_root_that_allows_unsafe_and_a_manifest_without_lints_are_found() {
        let metadata = json!({
            "workspace_members": ["a"],
            "packages": [{
                "id": "a",
                "manifest_path": "/w/a/Cargo.toml",
                "targets": [
                    {"kind": ["lib"], "src_path": "/w/a/src/lib.rs"},
                    {"kind": ["test"], "src_path": "/w/a/tests/t.rs"},
                ],
            }],
        });
        let bad = Files::made_of(&[("a/Cargo.toml", "[package]\n"), ("a/src/lib.rs", "//! A.\n")]);
        let findings = check(&metadata, &bad, Path::new("/w"));
        let places: Vec<&str> = findings.iter().map(|finding| finding.place.as_str()).collect();
        assert_eq!(places, ["a/Cargo.toml", "a/src/lib.rs"]);
        let lib = format!("//! A.\n{FORBID}\n");
        let good = Files::made_of(&[("a/Cargo.toml", "[lints]\nworkspace = true\n"), ("a/src/lib.rs", &lib)]);
        assert_eq!(check(&metadata, &good, Path::new("/w")), []);
    }
}
