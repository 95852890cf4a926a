//! `cowslip ovsdb-tool` against the reference tool: the same files, the same commands, the same output and status.
//!
//! The reference tool prints tables, rows and columns in the order of its hash tables, so the lines of a record's
//! details are compared sorted. A missing reference tool is a failure, never a skipped test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use cowslip_engine::storage::FileSystem;
use cowslip_ovsdb_server::file::{self, OpenOptions};
use tempfile::TempDir;

const SCHEMA: &str = r#"{"name":"Farm","version":"1.2.3","cksum":"12345 678","tables":{
    "Cow":{"isRoot":true,"indexes":[["name"]],"columns":{
        "name":{"type":"string"},
        "weight":{"type":"real"},
        "pair":{"type":{"key":"integer","min":1,"max":2}},
        "tags":{"type":{"key":"string","min":0,"max":"unlimited"}},
        "notes":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
        "mood":{"type":"string","ephemeral":true},
        "bells":{"type":{"key":{"type":"uuid","refTable":"Bell"},"min":0,"max":"unlimited"}},
        "friend":{"type":{"key":{"type":"uuid","refTable":"Cow","refType":"weak"},"min":0,"max":1}}}},
    "Bell":{"columns":{"tone":{"type":{"key":"integer","min":0,"max":1}}}}}}"#;

const COW: &str = "00000000-0000-4000-8000-0000000000c1";
const FRIEND: &str = "00000000-0000-4000-8000-0000000000c2";
const BELL: &str = "00000000-0000-4000-8000-0000000000b1";

/// The transactions, in which `$COW` and so on stand for UUIDs.
const TRANSACTIONS: [&str; 14] = [
    r#"["Farm",{"op":"insert","table":"Cow","uuid":"$COW","row":{"name":"Rosa","weight":512.5,"mood":"fine"}}]"#,
    r#"["Farm",{"op":"insert","table":"Bell","uuid":"$BELL","uuid-name":"b","row":{"tone":3}},
        {"op":"mutate","table":"Cow","where":[["name","==","Rosa"]],"mutations":[["bells","insert",["named-uuid","b"]]]},
        {"op":"comment","comment":"a bell"},{"op":"comment","comment":"for \"Rosa\""}]"#,
    r#"["Farm",{"op":"insert","table":"Cow","uuid":"$FRIEND",
        "row":{"name":"Bella","friend":["uuid","$COW"],"pair":["set",[7,8]],"notes":["map",[["a","1"],["b","é\n2"]]]}}]"#,
    r#"["Farm",{"op":"update","table":"Cow","where":[],"row":{"mood":"ephemeral only"}}]"#,
    r#"["Farm",{"op":"mutate","table":"Cow","where":[["name","==","Bella"]],
        "mutations":[["tags","insert",["set",["x","y","z"]]],["notes","delete",["set",["a"]]]]}]"#,
    r#"["Farm",{"op":"mutate","table":"Cow","where":[["name","==","Bella"]],
        "mutations":[["tags","delete","y"],["tags","insert","w"],["pair","delete",8]]}]"#,
    r#"["Farm",{"op":"update","table":"Cow","where":[["name","==","Bella"]],
        "row":{"notes":["map",[["b","3"],["c","4"]]],"weight":0.1}}]"#,
    r#"["Farm",{"op":"insert","table":"Cow","row":{"name":"Rosa"}}]"#,
    r#"["Farm",{"op":"delete","table":"Bell","where":[]}]"#,
    r#"["Farm",{"op":"comment","comment":"nothing else"}]"#,
    r#"["Farm",{"op":"update","table":"Cow","where":[["name","==","Rosa"]],"row":{"name":"Rosalie","bells":["set",[]]}}]"#,
    r#"["Farm",{"op":"delete","table":"Cow","where":[["name","==","Rosalie"]]}]"#,
    r#"["Farm",{"op":"wait","table":"Cow","where":[],"columns":["name"],"until":"==","rows":[{"name":"?"}]}]"#,
    r#"["Farm",{"op":"nonsense"}]"#,
];

const QUERY: &str = r#"["Farm",{"op":"select","table":"Cow","where":[],"sort":["name"],
    "columns":["_uuid","name","weight","pair","tags","notes","bells","friend"]},
    {"op":"select","table":"Bell","where":[],"columns":["_uuid","tone"]}]"#;

fn with_uuids(text: &str) -> String {
    text.replace("$COW", COW).replace("$FRIEND", FRIEND).replace("$BELL", BELL)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Tool {
    Reference,
    Ours,
}

const BOTH: [Tool; 2] = [Tool::Reference, Tool::Ours];

impl Tool {
    fn other(self) -> Self {
        if self == Tool::Ours { Tool::Reference } else { Tool::Ours }
    }

    fn run(self, dir: &Path, args: &[&str]) -> Output {
        let mut command = match self {
            Tool::Reference => Command::new(reference("ovsdb-tool")),
            Tool::Ours => {
                let mut command = Command::new(env!("CARGO_BIN_EXE_cowslip"));
                command.arg("ovsdb-tool");
                command
            }
        };
        command.current_dir(dir).args(args).output().expect("the tool starts")
    }

    /// What a command that must succeed prints.
    fn print(self, dir: &Path, args: &[&str]) -> String {
        let output = self.run(dir, args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{self:?} {args:?}: {error}");
        String::from_utf8(output.stdout).expect("it prints UTF-8")
    }
}

/// A program of Open vSwitch.
fn reference(name: &str) -> PathBuf {
    let places = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"];
    let found = places.iter().map(|place| Path::new(place).join(name)).find(|path| path.exists());
    found.unwrap_or_else(|| {
        panic!("the program {name} is missing: run `cargo xtask peers`, which installs it")
    })
}

/// A folder with a schema and an empty database of each tool: `Reference.db`, `Ours.db`.
fn farm() -> TempDir {
    let dir = tempfile::tempdir().expect("the temporary directory is writable");
    std::fs::write(dir.path().join("farm.ovsschema"), SCHEMA).expect("the temporary directory is writable");
    for tool in BOTH {
        tool.print(dir.path(), &["create", &database(tool), "farm.ovsschema"]);
    }
    dir
}

fn database(tool: Tool) -> String {
    format!("{tool:?}.db")
}

/// Runs all transactions on each tool's own file.
fn fill(dir: &Path) {
    for transaction in TRANSACTIONS {
        let transaction = with_uuids(transaction);
        let replies = BOTH.map(|tool| tool.print(dir, &["transact", &database(tool), &transaction]));
        if !transaction.contains("nonsense") && !replies[0].contains("\"error\"") {
            assert_eq!(replies[0], replies[1], "{transaction}");
        }
    }
}

#[test]
fn each_reads_what_the_other_wrote() {
    let dir = farm();
    fill(dir.path());
    let mut answers = Vec::new();
    for reader in BOTH {
        for writer in BOTH {
            answers.push(reader.print(dir.path(), &["query", &database(writer), QUERY]));
        }
    }
    assert!(answers[0].contains("Bella"), "{}", answers[0]);
    answers.iter().for_each(|answer| assert_eq!(*answer, answers[0]));
}

#[test]
fn each_goes_on_with_what_the_other_wrote() {
    let dir = farm();
    for (number, transaction) in TRANSACTIONS.iter().enumerate() {
        for file in BOTH {
            let tool = if number % 2 == 0 { file } else { file.other() };
            tool.print(dir.path(), &["transact", &database(file), &with_uuids(transaction)]);
        }
        if number % 5 == 4 {
            for file in BOTH {
                file.other().print(dir.path(), &["compact", &database(file)]);
            }
        }
        let answers =
            BOTH.map(|reader| BOTH.map(|file| reader.print(dir.path(), &["query", &database(file), QUERY])));
        for answer in answers.as_flattened() {
            assert_eq!(*answer, answers[0][0], "after {transaction}");
        }
    }
}

/// Open vSwitch 3.1 misreads a difference onto a default that is not empty, so our files hold none.
#[test]
fn the_reference_tool_reads_a_set_that_began_as_its_default() {
    let dir = farm();
    let file = database(Tool::Ours);
    let insert = r#"["Farm",{"op":"insert","table":"Cow","row":{"name":"Rosa"}}]"#;
    let mutate = r#"["Farm",{"op":"mutate","table":"Cow","where":[],"mutations":[["pair","insert",5]]}]"#;
    Tool::Ours.print(dir.path(), &["transact", &file, insert]);
    Tool::Ours.print(dir.path(), &["transact", &file, mutate]);
    let query = r#"["Farm",{"op":"select","table":"Cow","where":[],"columns":["pair"]}]"#;
    for tool in BOTH {
        let answer = tool.print(dir.path(), &["query", &file, query]);
        assert_eq!(answer.trim(), r#"[{"rows":[{"pair":["set",[0,5]]}]}]"#, "{tool:?}");
    }
    // The reference tool writes the difference; we read what it meant, although it doesn't itself.
    let file = database(Tool::Reference);
    Tool::Reference.print(dir.path(), &["transact", &file, insert]);
    Tool::Reference.print(dir.path(), &["transact", &file, mutate]);
    let answer = Tool::Ours.print(dir.path(), &["query", &file, query]);
    assert_eq!(answer.trim(), r#"[{"rows":[{"pair":["set",[0,5]]}]}]"#);
}

/// The largest double and all digits survive in our files.
#[test]
fn reals_survive_a_restart() {
    let dir = farm();
    let file = database(Tool::Ours);
    let weights = ["1.7976931348623157e+308", "0.30000000000000004", "0.1", "4.94065645841247e-324"];
    for (count, weight) in weights.iter().enumerate() {
        // The reference tool reads all of them but the last: it takes no double below the normal ones.
        let answer = Tool::Reference.print(dir.path(), &["query", &file, QUERY]);
        assert_eq!(answer.matches("weight").count(), count, "{answer}");
        let insert = format!(
            r#"["Farm",{{"op":"insert","table":"Cow","row":{{"name":"{weight}","weight":{weight}}}}}]"#
        );
        Tool::Ours.print(dir.path(), &["transact", &file, &insert]);
        let query = format!(
            r#"["Farm",{{"op":"select","table":"Cow","where":[["name","==","{weight}"]],"columns":["weight"]}}]"#
        );
        let answer = Tool::Ours.print(dir.path(), &["query", &file, &query]);
        assert_eq!(answer.trim(), format!(r#"[{{"rows":[{{"weight":{weight}}}]}}]"#));
    }
}

/// The lines between two records' first lines, sorted.
fn with_sorted_details(log: &str) -> Vec<Vec<&str>> {
    let mut records: Vec<Vec<&str>> = Vec::new();
    for line in log.lines() {
        if line.starts_with("record ") || records.is_empty() {
            records.push(Vec::new());
        }
        if let Some(record) = records.last_mut() {
            record.push(line);
        }
    }
    for record in &mut records {
        record[1..].sort_unstable();
    }
    records
}

#[test]
fn logs_read_the_same() {
    let dir = farm();
    fill(dir.path());
    for file in BOTH {
        for options in [&["show-log"][..], &["-m", "show-log"], &["show-log", "-m"], &["show-log", "-mm"]] {
            let name = database(file);
            let args: Vec<&str> = options.iter().copied().chain([&*name]).collect();
            let logs = BOTH.map(|tool| tool.print(dir.path(), &args));
            assert!(logs[0].contains("for \"Rosa\""), "{}", logs[0]);
            assert_eq!(with_sorted_details(&logs[0]), with_sorted_details(&logs[1]), "{args:?}");
        }
    }
}

#[test]
fn answers_and_statuses_are_the_same() {
    let dir = farm();
    let path = dir.path();
    fill(path);
    std::fs::write(path.join("empty.db"), "").expect("the temporary directory is writable");
    let whole = std::fs::read(path.join("Ours.db")).expect("the file is there");
    std::fs::write(path.join("torn.db"), &whole[..whole.len() - 7])
        .expect("the temporary directory is writable");
    let other = SCHEMA.replace("\"tone\"", "\"sound\"");
    std::fs::write(path.join("other.ovsschema"), other).expect("the temporary directory is writable");
    Tool::Reference.print(path, &["create-cluster", "cluster.db", "farm.ovsschema", "tcp:127.0.0.1:1"]);
    let cases: &[&[&str]] = &[
        &["db-name", "Ours.db"],
        &["db-version", "Ours.db"],
        &["db-cksum", "Ours.db"],
        &["-vconsole:off", "db-name", "Ours.db"],
        &["db-name", "missing.db"],
        &["db-name", "empty.db"],
        &["db-name", "farm.ovsschema"],
        &["db-name", "torn.db"],
        &["db-is-standalone", "Reference.db"],
        &["db-is-standalone", "cluster.db"],
        &["db-is-standalone", "missing.db"],
        &["db-is-standalone", "farm.ovsschema"],
        &["db-is-clustered", "Reference.db"],
        &["db-is-clustered", "cluster.db"],
        &["db-version", "cluster.db"],
        &["query", "cluster.db", QUERY],
        &["schema-name", "farm.ovsschema"],
        &["schema-version", "farm.ovsschema"],
        &["schema-cksum", "farm.ovsschema"],
        &["schema-name", "Ours.db"],
        &["schema-name", "missing.ovsschema"],
        &["compare-versions", "1.2.3", "<", "1.10.0"],
        &["compare-versions", "1.2.3", ">", "1.10.0"],
        &["compare-versions", "1.2.3", "=", "1.10.0"],
        &["compare-versions", "1.2", "==", "1.2.0"],
        &["needs-conversion", "Ours.db", "farm.ovsschema"],
        &["needs-conversion", "Ours.db", "other.ovsschema"],
        &["create", "Ours.db", "farm.ovsschema"],
        &["compact", "missing.db"],
        &["compact", "torn.db"],
        &["show-log", "torn.db"],
        &["show-log", "empty.db"],
        &["query", "torn.db", QUERY],
        &["query", "Ours.db", "no json"],
        &["query", "Ours.db", "{}"],
        &["query", "Ours.db", "[]"],
        &["query", "Ours.db", "[\"Other\"]"],
        &["query", "Ours.db", "[\"Farm\"]"],
        &["nonsense"],
        &["--nonsense"],
        &["create", "a", "b", "c"],
        &[],
    ];
    for args in cases {
        let [reference, ours] = BOTH.map(|tool| tool.run(path, args));
        let said = String::from_utf8_lossy(&ours.stderr);
        assert_eq!(ours.status.code(), reference.status.code(), "{args:?}: {said}");
        let output = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output(&ours), output(&reference), "{args:?}");
        assert_eq!(ours.stderr.is_empty(), reference.stderr.is_empty(), "{args:?}: {said}");
    }
}

#[test]
fn the_reference_tool_respects_our_lock() {
    let dir = farm();
    let path = dir.path().join("Ours.db");
    let storage = Arc::new(FileSystem::new());
    let opened = file::open(storage, &path, &OpenOptions::default()).expect("the file is good");
    let refused = Tool::Reference.run(dir.path(), &["transact", "Ours.db", &with_uuids(TRANSACTIONS[0])]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("lock"));
    assert!(!Tool::Ours.run(dir.path(), &["compact", "Ours.db"]).status.success());
    drop(opened);
    Tool::Reference.print(dir.path(), &["transact", "Ours.db", &with_uuids(TRANSACTIONS[0])]);
}

#[test]
fn our_tool_respects_the_reference_servers_lock() {
    let dir = farm();
    let child = Command::new(reference("ovsdb-server"))
        .current_dir(dir.path())
        .args(["--unixctl=none", "--remote=punix:s", "Reference.db"])
        .env("OVS_RUNDIR", dir.path())
        .env("OVS_DBDIR", dir.path())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let server = Running(child);
    let deadline = Instant::now() + Duration::from_secs(20);
    while !dir.path().join("s").exists() {
        assert!(Instant::now() < deadline, "the reference server does not answer");
        std::thread::sleep(Duration::from_millis(20));
    }
    let refused = Tool::Ours.run(dir.path(), &["transact", "Reference.db", &with_uuids(TRANSACTIONS[0])]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("is a server running on it?"), "{said}");
    // Reading takes no lock.
    Tool::Ours.print(dir.path(), &["query", "Reference.db", QUERY]);
    drop(server);
    Tool::Ours.print(dir.path(), &["transact", "Reference.db", &with_uuids(TRANSACTIONS[0])]);
}

/// A program that ends when the test does.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
