//! Which crate may depend on which, and which outside crates a crate must never see.
//!
//! Invariants: both tables name every rule in full, nothing is derived from them; dev-dependencies are free. The tables
//! are the ones of ARCHITECTURE.md, "Code map".

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Finding;

/// A crate of ours and those of ours that it may depend on. Crates that are planned have their line already, so that
/// their direction is settled before they are.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("cowslip-engine", &[]),
    ("cowslip-net", &[]),
    ("cowslip-ovsdb", &["cowslip-engine"]),
    ("cowslip-ovsdb-derive", &[]),
    ("cowslip-ovsdb-codegen", &["cowslip-engine", "cowslip-ovsdb"]),
    ("cowslip-ovsdb-client", &["cowslip-engine", "cowslip-net", "cowslip-ovsdb", "cowslip-ovsdb-derive"]),
    ("cowslip-ovsdb-server", &["cowslip-engine", "cowslip-net", "cowslip-ovsdb"]),
    ("cowslip-ldap", &[]),
    ("cowslip-ldap-server", &["cowslip-engine", "cowslip-ldap", "cowslip-net"]),
    (
        "cowslip",
        &[
            "cowslip-engine",
            "cowslip-ldap",
            "cowslip-ldap-server",
            "cowslip-net",
            "cowslip-ovsdb",
            "cowslip-ovsdb-client",
            "cowslip-ovsdb-codegen",
            "cowslip-ovsdb-server",
        ],
    ),
    ("xtask", &[]),
];

/// A crate of ours and the outside crates that may not be below it, at any depth: with them it would know sockets, an
/// async runtime or a wire format that it must not know.
const MUST_NOT_SEE: &[(&str, &[&str])] = &[
    ("cowslip-engine", &["tokio", "mio", "socket2", "futures-core", "serde", "serde_json", "tracing"]),
    ("cowslip-ovsdb", &["tokio", "mio", "socket2", "futures-core"]),
    ("cowslip-ldap", &["tokio", "mio", "socket2", "futures-core", "serde_json"]),
    ("cowslip-net", &["serde", "serde_json"]),
];

/// What `cargo metadata` says, reduced to names and to dependencies that end up in the built crate.
struct Graph {
    ours: BTreeSet<String>,
    /// A package's id to its name.
    names: BTreeMap<String, String>,
    /// A package's id to the ids of what it depends on.
    edges: BTreeMap<String, Vec<String>>,
}

/// Compares the workspace's dependencies with the tables.
pub(super) fn check(metadata: &Value) -> Vec<Finding> {
    let graph = Graph::of(metadata);
    let mut findings = Vec::new();
    for (id, targets) in &graph.edges {
        let name = &graph.names[id];
        if !graph.ours.contains(id) {
            continue;
        }
        let Some((_, allowed)) = MAY_DEPEND_ON.iter().find(|(known, _)| known == name) else {
            findings.push(Finding::new(name, 0, "not in the table of xtask/src/tidy/dependencies.rs"));
            continue;
        };
        for target in targets.iter().filter(|target| graph.ours.contains(*target)) {
            let target = &graph.names[target];
            if !allowed.contains(&target.as_str()) {
                findings.push(Finding::new(name, 0, format!("must not depend on {target}")));
            }
        }
    }
    for (name, hidden) in MUST_NOT_SEE {
        for (seen, through) in graph.below(name) {
            if hidden.contains(&seen.as_str()) {
                findings.push(Finding::new(
                    *name,
                    0,
                    format!("must not see {seen}, which comes with {through}"),
                ));
            }
        }
    }
    findings
}

impl Graph {
    fn of(metadata: &Value) -> Graph {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let is_built_in = |dependency: &Value| {
            // A kind of null is a normal dependency; the others are "dev" and "build".
            list(&dependency["dep_kinds"]).iter().any(|kind| kind["kind"].as_str() != Some("dev"))
        };
        let mut edges = BTreeMap::new();
        for node in list(&metadata["resolve"]["nodes"]) {
            let dependencies = list(&node["deps"]);
            let targets = dependencies.iter().filter(|one| is_built_in(one)).map(|one| text(&one["pkg"]));
            edges.insert(text(&node["id"]), targets.collect());
        }
        let packages = list(&metadata["packages"]);
        Graph {
            ours: list(&metadata["workspace_members"]).iter().map(text).collect(),
            names: packages.iter().map(|package| (text(&package["id"]), text(&package["name"]))).collect(),
            edges,
        }
    }

    /// Everything below one of our crates, each with the name of the one that brings it.
    fn below(&self, name: &str) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut seen = BTreeSet::new();
        let mut waiting: Vec<&String> = self.ours.iter().filter(|id| self.names[*id] == name).collect();
        while let Some(id) = waiting.pop() {
            for target in self.edges.get(id).into_iter().flatten() {
                if seen.insert(target) {
                    found.insert(self.names[target].clone(), self.names[id].clone());
                    waiting.push(target);
                }
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Metadata with an edge per triple: from, to, kind.
    fn metadata(ours: &[&str], edges: &[(&str, &str, Option<&str>)]) -> Value {
        let names: BTreeSet<&str> =
            ours.iter().copied().chain(edges.iter().flat_map(|(from, to, _)| [*from, *to])).collect();
        let node = |name: &&str| {
            let deps = edges.iter().filter(|(from, _, _)| from == name);
            let deps: Vec<Value> =
                deps.map(|(_, to, kind)| json!({"pkg": to, "dep_kinds": [{"kind": kind}]})).collect();
            json!({"id": name, "deps": deps})
        };
        json!({
            "workspace_members": ours,
            "packages": names.iter().map(|name| json!({"id": name, "name": name})).collect::<Vec<_>>(),
            "resolve": {"nodes": names.iter().map(node).collect::<Vec<_>>()},
        })
    }

    fn problems(metadata: &Value) -> Vec<String> {
        check(metadata).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_forbidden_edge_is_found_and_a_dev_edge_is_free() {
        let ours = ["cowslip-engine", "cowslip-ovsdb"];
        let free = metadata(&ours, &[("cowslip-engine", "cowslip-ovsdb", Some("dev"))]);
        assert!(problems(&free).is_empty());
        let forbidden = metadata(&ours, &[("cowslip-engine", "cowslip-ovsdb", None)]);
        assert_eq!(problems(&forbidden), ["cowslip-engine: must not depend on cowslip-ovsdb"]);
    }

    #[test]
    fn what_a_crate_must_not_see_is_found_at_any_depth() {
        let deep =
            metadata(&["cowslip-engine"], &[("cowslip-engine", "helper", None), ("helper", "tokio", None)]);
        assert_eq!(problems(&deep), ["cowslip-engine: must not see tokio, which comes with helper"]);
    }

    #[test]
    fn a_crate_that_the_table_does_not_know_is_found() {
        assert_eq!(
            problems(&metadata(&["cowslip-surprise"], &[])),
            ["cowslip-surprise: not in the table of xtask/src/tidy/dependencies.rs"]
        );
    }
}
