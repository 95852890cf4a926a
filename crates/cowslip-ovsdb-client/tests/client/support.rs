//! Servers for tests: ours in this process, and the real `ovsdb-server`, behind one type.

use cowslip_ovsdb_client::{Client, ClientBuilder, Datum, IntoDatum};
use cowslip_ovsdb_server::testing::TestServer;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

pub(crate) const SCHEMA: &str = r#"{"name":"T","version":"1.0.0","tables":{
 "Bridge":{"isRoot":true,"indexes":[["name"]],"columns":{
   "name":{"type":"string"},
   "ports":{"type":{"key":{"type":"uuid","refTable":"Port"},"min":0,"max":"unlimited"}},
   "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
   "flood":{"type":{"key":{"type":"integer","minInteger":0,"maxInteger":4095},"min":0,"max":4096}},
   "n":{"type":"integer"},
   "tag":{"type":{"key":"integer","min":0,"max":1}}}},
 "Port":{"columns":{
   "name":{"type":"string"},
   "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}},
 "Plain":{"isRoot":true,"columns":{
   "name":{"type":"string"},
   "v":{"type":"integer"},
   "m":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
   "o":{"type":{"key":"string","min":0,"max":1}},
   "two":{"type":{"key":"integer","min":0,"max":2}}}}}}"#;

/// A server and its directory, in which it listens at `sock`.
pub(crate) struct Peer {
    kind: Running,
    schema: String,
    directory: TempDir,
}

enum Running {
    /// None only while it is restarted.
    Ours(Option<TestServer>),
    Real(Child),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Ours,
    Real,
}

pub(crate) const BOTH: [Kind; 2] = [Kind::Ours, Kind::Real];

impl Drop for Peer {
    fn drop(&mut self) {
        if let Running::Real(child) = &mut self.kind {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Peer {
    pub(crate) async fn start(kind: Kind, schema: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let kind = match kind {
            Kind::Ours => Running::Ours(Some(TestServer::in_folder(directory.path(), schema).await.unwrap())),
            Kind::Real => {
                std::fs::write(directory.path().join("schema"), schema).unwrap();
                let made = Command::new("ovsdb-tool")
                    .arg("create")
                    .args([directory.path().join("db"), directory.path().join("schema")])
                    .status();
                assert!(made.expect(MISSING).success());
                Running::Real(real(directory.path().into()))
            }
        };
        Peer { directory, schema: schema.to_string(), kind }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.path().join("sock")
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("unix:{}", self.socket().display())
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        builder(&self.endpoint())
    }

    /// Kills and restarts the real server; stops and restarts ours.
    pub(crate) async fn restart(&mut self) {
        match &mut self.kind {
            Running::Real(child) => {
                child.kill().unwrap();
                child.wait().unwrap();
                *child = real(self.directory.path().into());
            }
            Running::Ours(server) => {
                server.take().unwrap().stop().await.unwrap();
                *server = Some(TestServer::in_folder(self.directory.path(), &self.schema).await.unwrap());
            }
        }
    }

    /// A client of another database than the one that tests usually make.
    pub(crate) fn builder_of(&self, database: &str) -> ClientBuilder {
        Client::builder(database).endpoint(&self.endpoint())
    }
}

/// A client of the database `T` that does not wait long before it connects again.
pub(crate) fn builder(endpoint: &str) -> ClientBuilder {
    Client::builder("T").endpoint(endpoint).with(|o| {
        o.backoff_min = Duration::from_millis(5);
        o.backoff_max = Duration::from_millis(50);
    })
}

const MISSING: &str = "ovsdb-server and ovsdb-tool are missing: run `cargo xtask peers`";

fn real(directory: PathBuf) -> Child {
    let socket = directory.join("sock");
    let _ = std::fs::remove_file(&socket);
    let child = Command::new("ovsdb-server")
        .arg(directory.join("db"))
        .arg(format!("--remote=punix:{}", socket.display()))
        .arg("--no-chdir")
        .arg(format!("--unixctl={}", directory.join("ctl").display()))
        .arg("--log-file=/dev/null")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect(MISSING);
    for _ in 0..1000 {
        if socket.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child
}

pub(crate) fn text(text: &str) -> Datum {
    text.to_datum()
}

pub(crate) fn map(pairs: &[(&str, &str)]) -> Datum {
    let pairs: BTreeMap<String, String> = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
    pairs.to_datum()
}
