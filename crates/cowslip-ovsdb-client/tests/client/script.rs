//! A server that plays a script: the test reads what the client sends and says what it gets.

use cowslip_ovsdb_client::{Client, ClientBuilder};
use serde_json::{Value, json};
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

pub(crate) struct Script {
    directory: TempDir,
    listener: UnixListener,
}

pub(crate) struct Link {
    stream: UnixStream,
    buffer: Vec<u8>,
}

/// How long a test waits for the client to say something.
const PATIENCE: Duration = Duration::from_secs(10);

impl Script {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("sock")).unwrap();
        Script { directory, listener }
    }

    pub(crate) fn endpoint(&self) -> String {
        format!("unix:{}", self.directory.path().join("sock").display())
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        Client::builder("T").endpoint(&self.endpoint()).with(|o| {
            o.backoff_min = Duration::from_millis(5);
            o.backoff_max = Duration::from_millis(20);
            o.probe_interval = Duration::ZERO;
        })
    }

    /// The next connection, before anything was said.
    pub(crate) async fn accept(&self) -> Link {
        let (stream, _) = tokio::time::timeout(PATIENCE, self.listener.accept()).await.unwrap().unwrap();
        Link { stream, buffer: Vec::new() }
    }

    /// The next connection, up to the request for the content, which is given with its id.
    pub(crate) async fn accept_monitor(&self, schema: &str) -> (Link, Value, Value) {
        let mut link = self.accept().await;
        link.begin(schema, json!({"model": "standalone"})).await;
        let (id, params) = link.expect("monitor_cond_since").await;
        (link, id, params)
    }
}

impl Link {
    /// Answers everything up to the schema.
    pub(crate) async fn begin(&mut self, schema: &str, mut row: Value) {
        let (id, _) = self.expect("set_db_change_aware").await;
        self.reply(&id, json!({})).await;
        let (id, _) = self.expect("monitor_cond").await;
        row["name"] = json!("T");
        let uuid = "00000000-0000-4000-8000-000000000001";
        self.reply(&id, json!({"Database": {uuid: {"initial": row}}})).await;
        let (id, _) = self.expect("get_schema").await;
        self.reply(&id, serde_json::from_str(schema).unwrap()).await;
    }

    /// The next message; none if the client closed the connection.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let mut messages = serde_json::Deserializer::from_slice(&self.buffer).into_iter::<Value>();
            if let Some(Ok(message)) = messages.next() {
                let taken = messages.byte_offset();
                self.buffer.drain(..taken);
                return Some(message);
            }
            let read = tokio::time::timeout(PATIENCE, self.stream.read_buf(&mut self.buffer));
            if read.await.expect("the client says something").unwrap_or(0) == 0 {
                return None;
            }
        }
    }

    /// The next request, which must be this one: its id and parameters.
    pub(crate) async fn expect(&mut self, method: &str) -> (Value, Value) {
        let message = self.next().await.expect("the connection is open");
        assert_eq!(message["method"], method, "{message}");
        (message["id"].clone(), message["params"].clone())
    }

    /// Fails if the client says something within a moment.
    pub(crate) async fn expect_silence(&mut self) {
        const MOMENT: Duration = Duration::from_millis(60);
        if let Ok(message) = tokio::time::timeout(MOMENT, self.next()).await {
            panic!("nothing was to be sent: {message:?}");
        }
    }

    pub(crate) async fn say(&mut self, message: Value) {
        self.stream.write_all(message.to_string().as_bytes()).await.unwrap();
    }

    pub(crate) async fn reply(&mut self, id: &Value, result: Value) {
        self.say(json!({"id": id, "result": result, "error": null})).await;
    }

    pub(crate) async fn notify(&mut self, method: &str, params: Value) {
        self.say(json!({"id": null, "method": method, "params": params})).await;
    }
}

impl Link {
    pub(crate) async fn say_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }
}
