//! The programs of OpenLDAP's ldap-utils, and Python's two LDAP libraries.
//!
//! `data/ldap_tools.json` lists commands in their order: `run` (program and arguments), `stdin` (LDIF), `exit` (the LDAP
//! result code, which is these programs' exit code; 0 if absent; 5 and 6 are false and true of a comparison), `as` (a
//! name and a password in place of root's), `has` and `hasnt` (texts of the output). The Python scripts assert by themselves.

use serde_json::Value;

use crate::support::{Server, data, run, scratch};

fn text<'a>(step: &'a Value, member: &str) -> &'a str {
    step[member].as_str().unwrap_or_default()
}

fn texts<'a>(step: &'a Value, member: &str) -> Vec<&'a str> {
    step[member].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// What is wrong with a step's outcome.
fn step(server: &Server, step: &Value) -> Result<(), String> {
    let words = texts(step, "run");
    let mut command = match &texts(step, "as")[..] {
        [dn, password] => server.tool_as(words[0], dn, password, &words[1..]),
        _ => server.tool(words[0], &words[1..]),
    };
    let outcome = run(&mut command, text(step, "stdin"));
    let said = format!("{}{}", outcome.stdout, outcome.stderr);
    let told = || format!("{words:?}: exit {:?}\n{said}", outcome.code);
    let wanted = step["exit"].as_i64().unwrap_or(0);
    if outcome.code.map(i64::from) != Some(wanted) {
        return Err(format!("want exit {wanted}, {}", told()));
    }
    if let Some(missing) = texts(step, "has").iter().find(|text| !said.contains(**text)) {
        return Err(format!("without {missing:?}, {}", told()));
    }
    if let Some(extra) = texts(step, "hasnt").iter().find(|text| said.contains(**text)) {
        return Err(format!("with {extra:?}, {}", told()));
    }
    Ok(())
}

#[test]
fn ldap_utils() {
    let path = data("ldap_tools.json");
    let content = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let steps: Vec<Value> = serde_json::from_str(&content).expect("an array of steps");
    let dir = scratch();
    let server = Server::start(&dir.path().join("data"));
    let failures: Vec<String> = steps.iter().filter_map(|one| step(&server, one).err()).collect();
    assert!(!steps.is_empty());
    assert!(failures.is_empty(), "{} of {} failed\n\n{}", failures.len(), steps.len(), failures.join("\n\n"));
}

/// A script that gets URL, name and password, asserts by itself, and says `done` at its end.
fn script(name: &str) {
    // Debian's own interpreter has both libraries; `cargo xtask peers` installs them for it.
    let python = std::path::Path::new("/usr/bin/python3");
    assert!(python.is_file(), "{} is missing: run `cargo xtask peers`", python.display());
    let dir = scratch();
    let server = Server::start(&dir.path().join("data"));
    let mut command = std::process::Command::new(python);
    command.arg(data(name)).args([&server.url(), &server.root.0, &server.root.1]);
    let said = run(&mut command, "").success(name);
    assert!(said.ends_with("done\n"), "{name}: {said}");
}

#[test]
fn python_ldap3() {
    script("python_ldap3.py");
}

#[test]
fn python_ldap() {
    script("python_ldap.py");
}
