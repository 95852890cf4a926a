//! The client programs of Open vSwitch and OVN do the same things against both servers and must say the same.
//!
//! `data/clients.json` holds groups of commands; each group is run from its first command to its last against the real
//! server and against ours, on fresh databases. Compared are exit codes and outputs, with UUIDs replaced and lines
//! sorted, because rows have no order. Members of a step: `run` (where `$U` is the server), `exit` (0 if absent, `null`
//! for a command that its time limit ends), `stdin` and `stdout` (files that pass a text from one step to a later one;
//! such output is not compared); `start` runs in the background, waiting for the text `until` in its output, `stop`
//! ends it after that, `join` waits until it has ended by itself.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::compare::sorted_text;
use crate::support::process::{self, Background};
use crate::support::server::{Peer, Server};
use crate::support::{case_folder, data_folder, json_file, report, scratch};

/// How long one command may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(30);

/// How long a background command may take to say what is waited for.
const UNTIL_LIMIT: Duration = Duration::from_secs(10);

/// Where Debian's packages put the schemas.
pub(crate) const VSWITCH_SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
/// The schema of OVN's northbound database.
pub(crate) const NB_SCHEMA: &str = "/usr/share/ovn/ovn-nb.ovsschema";
/// The schema of OVN's southbound database.
pub(crate) const SB_SCHEMA: &str = "/usr/share/ovn/ovn-sb.ovsschema";

/// A schema file of a package; a missing one fails the test.
pub(crate) fn schema(path: &'static str) -> &'static Path {
    let path = Path::new(path);
    assert!(path.exists(), "{} is missing: run `cargo xtask peers`", path.display());
    path
}

struct Stage {
    dir: tempfile::TempDir,
    server: Server,
    background: BTreeMap<String, Background>,
}

/// What one step led to, comparable between servers.
#[derive(Debug, PartialEq)]
struct Observed {
    code: Option<i32>,
    output: String,
}

impl Stage {
    fn new(peer: Peer) -> Stage {
        let dir = scratch();
        let lab = case_folder().join("lab.ovsschema");
        let schemas = [schema(VSWITCH_SCHEMA), schema(NB_SCHEMA), schema(SB_SCHEMA), &lab];
        let (server, _) = Server::fresh(peer, dir.path(), &schemas);
        Stage { dir, server, background: BTreeMap::new() }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, step: &Value) -> Command {
        let words = step["run"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let mut words = words.map(|word| {
            let lab = case_folder().join("lab.ovsschema");
            word.replace("$U", &self.server.remote())
                .replace("$NBSCHEMA", NB_SCHEMA)
                .replace("$LABSCHEMA", &lab.display().to_string())
        });
        let program = words.next().expect("a command has a name");
        process::command(&program, self.dir.path(), words)
    }

    fn step(&mut self, step: &Value) -> Observed {
        if let Some(name) = step["start"].as_str() {
            let log = self.file(name);
            self.background.insert(name.to_owned(), Background::start(&mut self.command(step), &log));
            return self.wait_for(name, step["until"].as_str());
        }
        if let Some(name) = step["stop"].as_str() {
            let mut observed = self.wait_for(name, step["until"].as_str());
            self.background.remove(name);
            observed.output = self.normal(&self.text(name));
            return observed;
        }
        if let Some(name) = step["join"].as_str() {
            let mut process = self.background.remove(name).expect("a step started it");
            let code = process.wait(COMMAND_LIMIT).unwrap_or(Some(-1));
            return Observed { code, output: self.normal(&self.text(name)) };
        }
        let input = step["stdin"].as_str().map(|name| std::fs::read(self.file(name)).unwrap_or_default());
        let mut command = self.command(step);
        let done = process::run_with_input(&mut command, &input.unwrap_or_default(), COMMAND_LIMIT);
        if let Some(name) = step["stdout"].as_str() {
            std::fs::write(self.file(name), &done.stdout).expect("a file can be written");
            return Observed { code: done.code, output: done.stderr };
        }
        let log = if done.code == Some(0) { String::new() } else { without_times(&done.stderr) };
        Observed { code: done.code, output: self.normal(&format!("{}{log}", done.stdout)) }
    }

    fn normal(&self, text: &str) -> String {
        normal(&text.replace(&self.dir.path().display().to_string(), "$DIR"))
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap_or_default()
    }

    /// Waits until a background command has said `until`; what it says is compared when it is stopped.
    fn wait_for(&mut self, name: &str, until: Option<&str>) -> Observed {
        let end = Instant::now() + UNTIL_LIMIT;
        while until.is_some_and(|text| !self.text(name).contains(text)) {
            if Instant::now() > end {
                return Observed { code: None, output: format!("never said {until:?}: {}", self.text(name)) };
            }
            std::thread::sleep(process::POLL);
        }
        Observed { code: Some(0), output: String::new() }
    }
}

/// Log lines begin with a time and a serial number, which say nothing.
fn without_times(log: &str) -> String {
    log.lines().map(|line| line.splitn(3, '|').last().unwrap_or(line).to_owned() + "\n").collect()
}

/// Output with UUIDs replaced and lines sorted. What is JSON has its members sorted, too.
fn normal(text: &str) -> String {
    let mut out = Vec::new();
    for line in text.lines() {
        let line = match serde_json::from_str::<Value>(line) {
            Ok(value) if !value.is_number() => sorted_text(&value),
            _ => line.trim_end().to_owned(),
        };
        out.push(hide_uuids(&line));
    }
    out.sort();
    out.join("\n")
}

fn hide_uuids(line: &str) -> String {
    let uuid_at = |at: usize| {
        line.get(at..at + 36).is_some_and(|text| {
            text.bytes().enumerate().all(|(i, b)| match i {
                8 | 13 | 18 | 23 => b == b'-',
                _ => b.is_ascii_hexdigit(),
            })
        })
    };
    let (mut out, mut at) = (String::new(), 0);
    while let Some(c) = line.get(at..).and_then(|rest| rest.chars().next()) {
        if uuid_at(at) {
            out.push_str("<uuid>");
            at += 36;
        } else {
            out.push(c);
            at += c.len_utf8();
        }
    }
    // Which of two equal rows is named first is left to the server.
    if let Some((before, _)) = out.split_once("  First row, with UUID") { before.to_owned() } else { out }
}

fn run_group(name: &str) {
    let data = json_file(&data_folder().join("clients.json"));
    let steps = data["groups"][name].as_array().expect("the group exists");
    let (mut real, mut ours) = (Stage::new(Peer::Real), Stage::new(Peer::under_test()));
    let mut failures = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let want = real.step(step);
        let got = ours.step(step);
        let exit = step.get("exit").map_or(Some(0), |code| code.as_i64().map(|c| c as i32));
        let what = format!("step {at} {step}");
        if want.code != exit {
            failures.push(format!("{what}: the real server: want exit {exit:?}, got {want:?}"));
        }
        if want != got {
            failures.push(format!("{what}\n  real: {want:?}\n  ours: {got:?}"));
        }
    }
    report(name, steps.len(), &failures);
}

#[test]
fn ovs_vsctl() {
    run_group("vsctl");
}

#[test]
fn ovn_nbctl() {
    run_group("nbctl");
}

#[test]
fn ovn_sbctl() {
    run_group("sbctl");
}

#[test]
fn ovsdb_client() {
    run_group("client");
}

/// A Python script that prints facts, on both servers.
fn run_script(name: &str, arguments: impl Fn(&Server) -> Vec<String>) {
    let outputs = [Peer::Real, Peer::under_test()].map(|peer| {
        let stage = Stage::new(peer);
        let mut command = Command::new(process::python());
        command.arg(data_folder().join(name)).args(arguments(&stage.server)).current_dir(stage.dir.path());
        process::isolate(&mut command, stage.dir.path());
        process::run(&mut command, 3 * COMMAND_LIMIT).success(&format!("{name} on {peer:?}"))
    });
    assert_eq!(outputs[0], outputs[1], "the real server's facts on the left, ours on the right");
}

#[test]
fn python_idl() {
    let lab = case_folder().join("lab.ovsschema").display().to_string();
    run_script("python_idl.py", |server| vec![server.remote(), lab.clone()]);
}

#[test]
fn python_ovsdbapp() {
    run_script("python_ovsdbapp.py", |server| vec![server.remote()]);
}
