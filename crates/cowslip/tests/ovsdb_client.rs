//! `cowslip ovsdb-client` against the reference tool: both on one server, with the same arguments, the same output and
//! exit code. Run against the reference server and against ours.
//!
//! The reference tool lists tables, columns and the rows of monitors in the order of its hash tables, so that output is
//! compared line by line, sorted. Messages on standard error are our own and are not compared. A missing reference
//! program is a failure, never a skipped test.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::fs::{self, File};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

const SCHEMA: &str = r#"{"name":"Farm","version":"1.2.3","cksum":"12345 678","tables":{
    "Cow":{"isRoot":true,"indexes":[["name"]],"columns":{
        "name":{"type":{"key":"string"},"mutable":false},
        "weight":{"type":{"key":{"type":"real","minReal":-0.5}}},
        "kind":{"type":{"key":{"type":"string","enum":["set",["brown","white"]]},"min":0}},
        "pair":{"type":{"key":"integer","min":1,"max":2}},
        "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "notes":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "rank":{"type":{"key":"string","value":{"type":"integer","maxInteger":9},"min":0,"max":1}},
        "mood":{"type":"string","ephemeral":true},
        "bells":{"type":{"key":{"type":"uuid","refTable":"Bell"},"min":0,"max":"unlimited"}},
        "friend":{"type":{"key":{"type":"uuid","refTable":"Cow","refType":"weak"},"min":0,"max":1}}}},
    "Bell":{"maxRows":7,"columns":{"tone":{"type":{"key":"integer","min":0,"max":1}}}}}}"#;

const FILL: &str = r#"["Farm",
    {"op":"insert","table":"Bell","uuid-name":"b","row":{"tone":3}},
    {"op":"insert","table":"Cow","uuid-name":"r","row":{"name":"Rosa","weight":512.25,"kind":"brown","mood":"fine",
        "bells":["named-uuid","b"],"notes":["map",[["a","1"],["b<&>","é\n\"2\","],["t","true"]]],"rank":["map",[["x",1]]]}},
    {"op":"insert","table":"Cow","row":{"name":"Bella","friend":["named-uuid","r"],"pair":["set",[7,8]],
        "tags":["set",["","x y","00000000-0000-4000-8000-000000000001","_z.-9"]]}}]"#;

/// How two outputs are compared.
#[derive(Clone, Copy, PartialEq)]
enum How {
    Exactly,
    Sorted,
}

use How::{Exactly, Sorted};

/// The arguments; `$U` stands for the server's address.
const CASES: &[(How, &[&str])] = &[
    (Exactly, &["list-dbs", "$U"]),
    (Exactly, &["get-schema", "$U"]),
    (Exactly, &["--pretty", "get-schema", "$U", "Farm"]),
    (Exactly, &["get-schema-version", "$U"]),
    (Exactly, &["get-schema-version", "$U", "Nowhere"]),
    (Exactly, &["get-schema-cksum", "$U", "Farm"]),
    (Sorted, &["list-tables", "$U"]),
    (Sorted, &["list-columns", "$U"]),
    (Sorted, &["list-columns", "$U", "Farm", "Cow", "--format=csv"]),
    (Exactly, &["list-columns", "$U", "Nowhere"]),
    (
        Exactly,
        &["transact", "$U", r#"["Farm",{"op":"select","table":"Bell","where":[],"columns":["tone"]}]"#],
    ),
    (Exactly, &["--pretty", "transact", "$U", r#"["Farm",{"op":"select","table":"Bell","where":[]}]"#]),
    (Exactly, &["transact", "$U", r#"["Farm",{"op":"select","table":"Nowhere","where":[]}]"#]),
    (Exactly, &["transact", "$U", r#"["Nowhere",{"op":"select","table":"Bell","where":[]}]"#]),
    (Exactly, &["transact", "$U", "{}"]),
    (Exactly, &["transact", "$U", "[1"]),
    (Exactly, &["transact", "$U", "[]", "[]"]),
    (Exactly, &["transact"]),
    (Exactly, &["query", "$U", r#"["Farm",{"op":"delete","table":"Cow","where":[["name","==","Rosa"]]}]"#]),
    (Exactly, &["query", "$U", r#"["Farm",{"op":"nonsense"}]"#]),
    (Exactly, &["query", "$U", r#"["Farm",{"op":"abort"}]"#]),
    (Exactly, &["query", "$U", "{}"]),
    (Exactly, &["dump", "$U"]),
    (Exactly, &["dump", "$U", "Farm", "Cow"]),
    (Exactly, &["dump", "$U", "Cow", "name", "_uuid", "_version"]),
    (Exactly, &["--max-column-width=4", "dump", "$U", "Cow", "tags", "name"]),
    (Exactly, &["--max-column-width=4", "--no-headings", "dump", "$U", "Cow", "tags", "name"]),
    (Exactly, &["dump", "$U", "Nowhere"]),
    (Exactly, &["dump", "$U", "Cow", "nothing"]),
    (Exactly, &["--bare", "dump", "$U"]),
    (Exactly, &["--pretty", "--format=json", "dump", "$U"]),
    (Exactly, &["wait", "$U", "Farm", "added"]),
    (Exactly, &["wait", "$U", "Farm", "connected"]),
    (Exactly, &["wait", "$U", "Nowhere", "removed"]),
    (Exactly, &["wait", "$U", "Farm", "nonsense"]),
    (Exactly, &["-t", "1", "wait", "$U", "Nowhere", "added"]),
    (Exactly, &["needs-conversion", "$U", "schema"]),
    (Exactly, &["needs-conversion", "$U", "other-schema"]),
    (Exactly, &["needs-conversion", "$U", "no-such-file"]),
    (Exactly, &["list-dbs", "unix:/no/such/socket"]),
    (Exactly, &["list-dbs", "tcp:127.0.0.1:1"]),
    (Exactly, &["list-dbs", "nonsense:1"]),
    (Exactly, &["list-dbs", "unix:/no/such/socket,$U"]),
    (Exactly, &["get-schema-version", "unix:/no/such/socket,$U"]),
    (Exactly, &["get-schema-version", "unix:/no/such/socket,$U", "Farm"]),
    (Exactly, &["list-dbs", "$U", "more"]),
    (Exactly, &["-vconsole:off", "list-dbs", "$U", "-v", "--verbose=dbg", "--log-file=/dev/null"]),
    (Exactly, &["--timeout=0", "list-dbs", "$U"]),
    (Exactly, &["--format=nonsense", "list-dbs", "$U"]),
    (Exactly, &["--data=nonsense", "list-dbs", "$U"]),
    (Exactly, &["--nonsense", "list-dbs", "$U"]),
    (Exactly, &["nonsense"]),
    (Exactly, &[]),
    (Exactly, &["monitor", "$U", "Nowhere"]),
    (Exactly, &["monitor", "$U", "Cow", "name,name"]),
    (Exactly, &["monitor", "$U", "Cow", "nothing"]),
    (Exactly, &["monitor-cond", "$U", "true", "Cow"]),
    (Exactly, &["monitor-cond", "$U", r#"[["nothing","==",1]]"#, "Cow"]),
    (Exactly, &["monitor-cond", "$U", "[]", "ALL"]),
    (Exactly, &["monitor-cond", "$U", "[]"]),
];

const FORMATS: [&str; 5] = ["table", "list", "html", "csv", "json"];

/// The path of a program that must be installed.
fn reference(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = places.map(|directory| directory.join(name)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{name} is not installed: run `cargo xtask peers`, which installs it"))
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Maker {
    Reference,
    Ours,
}

impl Maker {
    fn program(self, name: &str, dir: &Path) -> Command {
        let mut command = match self {
            Maker::Reference => Command::new(reference(name)),
            Maker::Ours => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_cowslip"));
                command.arg(name);
                command
            }
        };
        for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
            command.env(variable, dir);
        }
        command.env("OVS_SYSLOG_METHOD", "null").current_dir(dir).stdin(Stdio::null());
        command
    }
}

/// A server on a fresh database, ended with its owner.
struct Server {
    dir: TempDir,
    child: Child,
}

impl Server {
    fn start(maker: Maker) -> Server {
        let dir = tempfile::Builder::new().prefix("cow").tempdir_in("/tmp").unwrap();
        let path = dir.path();
        fs::write(path.join("schema"), SCHEMA).unwrap();
        fs::write(path.join("other-schema"), SCHEMA.replace("\"maxRows\":7", "\"maxRows\":8")).unwrap();
        let created =
            Maker::Reference.program("ovsdb-tool", path).args(["create", "db", "schema"]).output().unwrap();
        assert!(created.status.success(), "{created:?}");
        let log = File::create(path.join("log")).unwrap();
        let mut command = maker.program("ovsdb-server", path);
        command.arg(format!("--remote=punix:{}", path.join("s").display()));
        command.arg(format!("--unixctl={}", path.join("ctl").display())).args(["--no-chdir", "db"]);
        let child = command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        let server = Server { dir, child };
        let end = Instant::now() + Duration::from_secs(20);
        while UnixStream::connect(server.dir.path().join("s")).is_err() {
            let log = || fs::read_to_string(server.dir.path().join("log")).unwrap_or_default();
            assert!(Instant::now() < end, "the server does not listen: {}", log());
            std::thread::sleep(Duration::from_millis(10));
        }
        server
    }

    fn address(&self) -> String {
        format!("unix:{}", self.dir.path().join("s").display())
    }

    fn client(&self, maker: Maker, args: &[&str]) -> Command {
        let mut command = maker.program("ovsdb-client", self.dir.path());
        command.args(args.iter().map(|arg| arg.replace("$U", &self.address())));
        command
    }

    /// Runs a client to its end: its exit code or signal, and its output.
    fn run(&self, maker: Maker, args: &[&str], how: How) -> (Option<i32>, Option<i32>, String) {
        let output = self.client(maker, args).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), output.status.signal(), if how == Sorted { sorted(&text) } else { text })
    }

    /// Runs a transaction in which nothing may fail.
    fn transact(&self, transaction: &str) {
        let (code, _, text) = self.run(Maker::Reference, &["transact", "$U", transaction], Exactly);
        assert!(code == Some(0) && !text.contains("\"error\""), "{transaction}: {text}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The lines in order; of a table in JSON, which is one line, the rows.
fn sorted(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        match serde_json::from_str::<serde_json::Value>(line) {
            Ok(mut table) if table["data"].is_array() => {
                let rows = table["data"].take();
                lines.extend(rows.as_array().into_iter().flatten().map(ToString::to_string));
                lines.push(table.to_string());
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.sort_unstable();
    lines.join("\n")
}

fn check_commands(maker: Maker) {
    let server = Server::start(maker);
    server.transact(FILL);
    let mut cases: Vec<(How, Vec<&str>)> = CASES.iter().map(|(how, args)| (*how, args.to_vec())).collect();
    for format in FORMATS {
        for data in ["string", "bare", "json"] {
            cases.push((Exactly, vec!["-f", format, "-d", data, "dump", "$U"]));
            cases.push((
                Exactly,
                vec!["-f", format, "-d", data, "--no-headings", "dump", "$U", "Farm", "Cow", "tags"],
            ));
        }
    }
    let mut differences = Vec::new();
    for (how, args) in &cases {
        let want = server.run(Maker::Reference, args, *how);
        let got = server.run(Maker::Ours, args, *how);
        if want != got {
            differences.push(format!("{args:?}\nwant {want:?}\ngot  {got:?}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {}:\n{}",
        differences.len(),
        cases.len(),
        differences.join("\n\n")
    );
}

#[test]
fn commands_on_the_reference_server() {
    check_commands(Maker::Reference);
}

#[test]
fn commands_on_our_server() {
    check_commands(Maker::Ours);
}

/// A client that runs until it is killed.
struct Follower {
    child: Child,
    out: PathBuf,
}

impl Follower {
    fn start(server: &Server, maker: Maker, number: usize, args: &[&str]) -> Follower {
        let out = server.dir.path().join(format!("{maker:?}-{number}"));
        let child = server
            .client(maker, args)
            .stdout(File::create(&out).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Follower { child, out }
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.out).unwrap()
    }

    fn wait_for(&self, text: &str) {
        let end = Instant::now() + Duration::from_secs(20);
        while !self.text().contains(text) {
            assert!(Instant::now() < end, "no {text:?} came: {}", self.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The monitors with the formats in which they are compared. (The reference tool breaks no line after a transaction id in
/// those that are left out.)
const MONITORS: &[(&[&str], &[&str])] = &[
    (&["monitor", "$U", "Cow", "name,tags,notes,kind,pair"], &FORMATS),
    (&["monitor", "$U", "Farm", "Cow", "name,!initial", "tags,kind"], &["table"]),
    (&["monitor", "$U", "ALL"], &["table", "csv"]),
    (&["--no-headings", "monitor", "$U", "Cow", "name,!modify,!insert"], &["table", "html"]),
    (&["monitor-cond", "$U", "[]", "Cow", "name,tags,notes,kind,pair"], &FORMATS),
    (&["monitor-cond", "$U", "Farm", r#"[["name","!=","Bella"]]"#, "Cow"], &["table"]),
    (&["monitor-cond-since", "$U", "[]", "Cow", "name,tags"], &["table", "csv"]),
    (&["monitor-cond-since", "$U", "00000000-0000-0000-0000-000000000000", "[]", "Cow", "name"], &["table"]),
];

const CHANGES: [&str; 4] = [
    r#"["Farm",{"op":"update","table":"Cow","where":[["name","==","Rosa"]],"row":{"kind":"white","tags":["set",["p","q"]]}}]"#,
    r#"["Farm",{"op":"update","table":"Cow","where":[["name","==","Rosa"]],"row":{"kind":["set",[]],"tags":"q"}},
        {"op":"mutate","table":"Cow","where":[],"mutations":[["notes","insert",["map",[["n","1"]]]]]},
        {"op":"update","table":"Cow","where":[["name","==","Rosa"]],"row":{"pair":["set",[0,5]]}}]"#,
    r#"["Farm",{"op":"insert","table":"Cow","row":{"name":"Lotte"}},
        {"op":"delete","table":"Cow","where":[["name","==","Bella"]]}]"#,
    r#"["Farm",{"op":"delete","table":"Cow","where":[["name","==","Lotte"]]},
        {"op":"insert","table":"Cow","row":{"name":"TheEnd"}}]"#,
];

fn check_monitors(maker: Maker) {
    let server = Server::start(maker);
    server.transact(FILL);
    let mut pairs = Vec::new();
    for (args, formats) in MONITORS {
        for format in *formats {
            let mut args = args.to_vec();
            args.splice(0..0, ["-f", format]);
            let number = pairs.len();
            let follow = |maker| Follower::start(&server, maker, number, &args);
            let (want, got) = (follow(Maker::Reference), follow(Maker::Ours));
            // Only the first print shows that the monitor is there; one without it gets a moment.
            if args.iter().any(|arg| arg.contains("!initial")) {
                std::thread::sleep(Duration::from_millis(500));
            } else {
                want.wait_for("Rosa");
                got.wait_for("Rosa");
            }
            pairs.push((args.join(" "), want, got));
        }
    }
    for change in CHANGES {
        server.transact(change);
        // Without a pause the server may merge updates, for one client and not for the other.
        std::thread::sleep(Duration::from_millis(150));
    }
    let mut differences = Vec::new();
    for (args, want, got) in &pairs {
        if args.contains("!insert") {
            std::thread::sleep(Duration::from_millis(200));
        } else {
            want.wait_for("TheEnd");
            got.wait_for("TheEnd");
        }
        let (want, got) = (sorted(&want.text()), sorted(&got.text()));
        if want != got {
            differences.push(format!("{args}\nwant:\n{want}\ngot:\n{got}"));
        }
    }
    assert!(
        differences.is_empty(),
        "{} of {}:\n{}",
        differences.len(),
        pairs.len(),
        differences.join("\n\n")
    );
}

#[test]
fn monitors_on_the_reference_server() {
    check_monitors(Maker::Reference);
}

#[test]
fn monitors_on_our_server() {
    check_monitors(Maker::Ours);
}

/// What the clients print of locks that they take from one another.
#[test]
fn locks() {
    let server = Server::start(Maker::Reference);
    for (number, maker) in [Maker::Reference, Maker::Ours].into_iter().enumerate() {
        let first = Follower::start(&server, maker, number * 2, &["lock", "$U", "gate"]);
        first.wait_for("true");
        let second = Follower::start(&server, maker, number * 2 + 1, &["steal", "$U", "gate"]);
        first.wait_for("[\"gate\"]");
        drop(second);
        first.wait_for("locked\n[\"gate\"]");
        assert_eq!(first.text(), "{\"locked\":true}\nstolen\n[\"gate\"]\nlocked\n[\"gate\"]\n", "{maker:?}");
    }
}

/// A backup by either tool, restored by the other one, is the content again.
#[test]
fn backup_and_restore() {
    let server = Server::start(Maker::Reference);
    server.transact(FILL);
    let columns = ["name", "weight", "kind", "pair", "tags", "notes", "rank"];
    let dump = |table: &str| {
        let mut args = vec!["dump", "$U", "Farm", table];
        args.extend(if table == "Cow" { &columns[..] } else { &["tone"] });
        server.run(Maker::Reference, &args, Exactly).2
    };
    let content = || format!("{}{}", dump("Cow"), dump("Bell"));
    let before = content();
    for (saver, restorer) in [(Maker::Ours, Maker::Reference), (Maker::Reference, Maker::Ours)] {
        let file = server.dir.path().join(format!("{saver:?}.backup"));
        let saved =
            server.client(saver, &["backup", "$U"]).stdout(File::create(&file).unwrap()).status().unwrap();
        assert!(saved.success());
        server.transact(r#"["Farm",{"op":"delete","table":"Cow","where":[]}]"#);
        assert_ne!(content(), before);
        let restored =
            server.client(restorer, &["restore", "$U"]).stdin(File::open(&file).unwrap()).status().unwrap();
        assert!(restored.success());
        assert_eq!(content(), before, "saved by {saver:?}");
        let log = Maker::Reference
            .program("ovsdb-tool", server.dir.path())
            .arg("show-log")
            .arg(&file)
            .output()
            .unwrap();
        assert!(String::from_utf8_lossy(&log.stdout).contains("ovsdb-client backup"));
    }
    // A backup of another schema is refused, unless forced.
    let text = fs::read_to_string(server.dir.path().join("db")).unwrap();
    let damaged = server.dir.path().join("damaged");
    fs::write(&damaged, text.replace("\"Rosa\"", "\"Rose\"")).unwrap();
    let refused =
        server.client(Maker::Ours, &["restore", "$U"]).stdin(File::open(&damaged).unwrap()).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("damaged"), "{refused:?}");
    assert_eq!(content(), before);
}

/// `wait` is there before its server is.
#[test]
fn wait_for_a_server_to_come() {
    let dir = tempfile::Builder::new().prefix("cow").tempdir_in("/tmp").unwrap();
    let link = dir.path().join("s");
    let args = [format!("unix:{}", link.display()), "Farm".to_owned(), "connected".to_owned()];
    let mut client = Maker::Ours
        .program("ovsdb-client", dir.path())
        .args(["-t", "30", "wait"])
        .args(args)
        .spawn()
        .unwrap();
    let server = Server::start(Maker::Reference);
    assert!(client.try_wait().unwrap().is_none());
    std::os::unix::fs::symlink(server.dir.path().join("s"), &link).unwrap();
    assert!(client.wait().unwrap().success());
}
