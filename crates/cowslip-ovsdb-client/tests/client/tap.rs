//! A wire that is listened to: between a client and a server, with every message of the client written down.
//!
//! A message is written down before it goes on to the server. So once a client has the reply to a request, all that it
//! sent before is in the record.

use crate::support::{Peer, builder};
use cowslip_ovsdb_client::ClientBuilder;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

pub(crate) struct Tap {
    directory: TempDir,
    record: Record,
}

/// What clients said, message by message.
type Record = Arc<Mutex<Vec<Value>>>;

impl Tap {
    /// Listens, and passes on what it hears to the server and back.
    pub(crate) fn new(peer: &Peer) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("sock")).unwrap();
        let record = Record::default();
        tokio::spawn(serve(listener, peer.socket(), record.clone()));
        Tap { directory, record }
    }

    pub(crate) fn builder(&self) -> ClientBuilder {
        builder(&format!("unix:{}", self.directory.path().join("sock").display()))
    }

    /// The parameters of each request of this method so far.
    pub(crate) fn requests(&self, method: &str) -> Vec<Value> {
        let record = lock(&self.record);
        record.iter().filter(|m| m["method"] == method).map(|m| m["params"].clone()).collect()
    }

    /// The operations of each `transact` so far, without the database's name.
    pub(crate) fn transactions(&self) -> Vec<Vec<Value>> {
        let operations = |params: &Value| params.as_array().unwrap()[1..].to_vec();
        self.requests("transact").iter().map(operations).collect()
    }
}

fn lock(record: &Record) -> MutexGuard<'_, Vec<Value>> {
    record.lock().unwrap()
}

async fn serve(listener: UnixListener, server: PathBuf, record: Record) {
    while let Ok((client, _)) = listener.accept().await {
        tokio::spawn(pass_on(client, server.clone(), record.clone()));
    }
}

async fn pass_on(client: UnixStream, server: impl AsRef<Path>, record: Record) -> std::io::Result<()> {
    let (mut from_client, mut to_client) = client.into_split();
    let (mut from_server, mut to_server) = UnixStream::connect(server).await?.into_split();
    tokio::spawn(async move { tokio::io::copy(&mut from_server, &mut to_client).await });
    let (mut unread, mut piece) = (Vec::new(), Vec::new());
    while from_client.read_buf(&mut piece).await? > 0 {
        unread.extend_from_slice(&piece);
        let mut messages = serde_json::Deserializer::from_slice(&unread).into_iter();
        let mut taken = 0;
        while let Some(Ok(message)) = messages.next() {
            lock(&record).push(message);
            taken = messages.byte_offset();
        }
        unread.drain(..taken);
        to_server.write_all(&piece).await?;
        piece.clear();
    }
    Ok(())
}
