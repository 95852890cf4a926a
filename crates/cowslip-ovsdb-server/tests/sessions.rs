//! What a session bears: clients that read slowly or not at all, and many replies that are ready at once.

use cowslip_net::address::{Endpoint, Remote};
use cowslip_ovsdb::framing::Framer;
use cowslip_ovsdb::json::Json;
use cowslip_ovsdb::schema::Schema;
use cowslip_ovsdb_server::testing::TestServer;
use cowslip_ovsdb_server::{Server, ServerOptions};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

const SCHEMA: &[u8] = br#"{"name":"D","tables":{"T":{"columns":{"text":{"type":"string"}},"isRoot":true}}}"#;

/// How long the server waits before it asks a silent client.
const PROBE_MS: u64 = 1_000;

struct Lab {
    server: Server,
    socket: PathBuf,
    _dir: tempfile::TempDir,
}

impl Lab {
    /// A server with one table of `rows` rows of `bytes` bytes each.
    async fn new(rows: usize, bytes: usize) -> Lab {
        let dir = tempfile::tempdir().expect("a folder");
        let socket = dir.path().join("s");
        let options = ServerOptions { probe_interval_ms: Some(PROBE_MS), ..ServerOptions::default() };
        let server = Server::start(options).await.expect("threads");
        server.add_memory(Schema::parse(SCHEMA).expect("a schema")).await.expect("a free name");
        let row = format!(r#"{{"op":"insert","table":"T","row":{{"text":"{}"}}}}"#, "x".repeat(bytes));
        let operations = format!("[{}]", vec![row; rows].join(","));
        let operations = Json::parse(operations.as_bytes()).expect("JSON");
        server.transact("D", operations.as_array().expect("an array")).await.expect("rows");
        server.add_remote(&Remote::Listen(Endpoint::Unix(socket.clone()))).await.expect("a socket");
        Lab { server, socket, _dir: dir }
    }

    async fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).await.expect("the server listens")
    }
}

async fn ask(stream: &mut UnixStream, request: &str) {
    stream.write_all(request.as_bytes()).await.expect("the server reads");
}

/// Reads up to the end of the stream or up to a message that `is_last` names, with a pause before each piece.
async fn read_until(stream: &mut UnixStream, pause: Duration, is_last: impl Fn(&str) -> bool) -> Vec<String> {
    let mut framer = Framer::new(usize::MAX);
    let mut messages = Vec::new();
    loop {
        while let Some(message) = framer.message().expect("the server's messages are well formed") {
            let message = String::from_utf8_lossy(message).into_owned();
            let last = is_last(&message);
            messages.push(message);
            if last {
                return messages;
            }
        }
        tokio::time::sleep(pause).await;
        let mut piece = vec![0; 64 << 10];
        match stream.read(&mut piece).await {
            Ok(count) if count > 0 => framer.push(&piece[..count]),
            _ => return messages,
        }
    }
}

async fn wait_for_sessions(server: &Server, count: usize) {
    let begun = Instant::now();
    while server.session_count() != count {
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "not {count} sessions but {}",
            server.session_count()
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const DUMP: &str = r#"{"id":"dump","method":"monitor","params":["D","m",{"T":{}}]}"#;

fn is_dump(message: &str) -> bool {
    message.contains("\"id\":\"dump\"")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_that_reads_is_not_taken_for_dead() {
    let lab = Lab::new(250, 100_000).await;
    let mut client = lab.connect().await;
    let begun = Instant::now();
    ask(&mut client, DUMP).await;
    let messages = read_until(&mut client, Duration::from_millis(10), is_dump).await;
    assert!(begun.elapsed() > Duration::from_millis(2 * PROBE_MS), "too fast to show anything");
    assert_eq!(messages.len(), 1, "the dump, whole");
    lab.server.stop().await.expect("nothing to write");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_nothing_is_dropped() {
    let lab = Lab::new(80, 100_000).await;
    let mut client = lab.connect().await;
    ask(&mut client, DUMP).await;
    wait_for_sessions(&lab.server, 1).await;
    wait_for_sessions(&lab.server, 0).await;
    let messages = read_until(&mut client, Duration::ZERO, is_dump).await;
    assert!(!messages.iter().any(|message| is_dump(message)), "not all fits into a socket");
    lab.server.stop().await.expect("nothing to write");
}

/// Replies that are ready together, behind a transaction that waits, are made as the client takes them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_wait_for_room_and_keep_their_order() {
    const SELECTS: usize = 60;
    let lab = Lab::new(5, 100_000).await;
    let mut client = lab.connect().await;
    let wait = r#"{"id":"wait","method":"transact","params":["D",{"op":"wait","table":"T","where":[],
        "columns":["text"],"until":"==","rows":[]}]}"#;
    ask(&mut client, wait).await;
    for number in 0..SELECTS {
        let select = r#"{"op":"select","table":"T","where":[]}"#;
        let request = format!(r#"{{"id":{number},"method":"transact","params":["D",{select}]}}"#);
        ask(&mut client, &request).await;
    }
    let mut numbers = Vec::new();
    let last = format!("\"id\":{}", SELECTS - 1);
    let pause = Duration::from_millis(1);
    for message in read_until(&mut client, pause, |message| message.contains(&last)).await {
        let id = message.split("\"id\":").nth(1).and_then(|rest| rest.split([',', '}']).next());
        numbers.extend(id.and_then(|id| id.parse::<usize>().ok()));
    }
    assert!(numbers.into_iter().eq(0..SELECTS), "each select once, in order");
    ask(&mut client, r#"{"id":null,"method":"cancel","params":["wait"]}"#).await;
    let messages = read_until(&mut client, Duration::ZERO, |message| message.contains("canceled")).await;
    assert!(messages.last().is_some_and(|message| message.contains("\"id\":\"wait\"")), "{messages:?}");
    lab.server.stop().await.expect("nothing to write");
}

/// What a test server in a folder was told is there after a restart; one in memory leaves nothing behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn test_servers_start_and_stop() {
    let schema = std::str::from_utf8(SCHEMA).expect("text");
    let dir = tempfile::tempdir().expect("a folder");
    let insert = Json::parse(br#"[{"op":"insert","table":"T","row":{"text":"kept"}}]"#).expect("JSON");
    let select =
        r#"{"id":"select","method":"transact","params":["D",{"op":"select","table":"T","where":[]}]}"#;
    for round in 1..=2 {
        let server = TestServer::in_folder(dir.path(), schema).await.expect("a server");
        server.server().transact("D", insert.as_array().expect("an array")).await.expect("a row");
        let mut client = UnixStream::connect(server.socket()).await.expect("it listens");
        ask(&mut client, select).await;
        let reply = read_until(&mut client, Duration::ZERO, |message| message.contains("select")).await;
        assert_eq!(reply.concat().matches("kept").count(), round);
        server.stop().await.expect("a good disk");
    }
    let server = TestServer::in_memory(schema).await.expect("a server");
    let socket = server.socket().to_path_buf();
    assert!(UnixStream::connect(&socket).await.is_ok());
    drop(server);
    assert!(!socket.exists());
}

/// A database that goes away: clients that know of such changes are told, the others are disconnected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_is_removed_under_its_clients() {
    let server = TestServer::in_memory(std::str::from_utf8(SCHEMA).expect("text")).await.expect("a server");
    let wait = r#"{"id":"wait","method":"transact","params":["D",{"op":"wait","table":"T","where":[],
        "columns":["text"],"until":"!=","rows":[]}]}"#;
    let mut aware = UnixStream::connect(server.socket()).await.expect("it listens");
    ask(&mut aware, r#"{"id":"aware","method":"set_db_change_aware","params":[true]}"#).await;
    let mut unaware = UnixStream::connect(server.socket()).await.expect("it listens");
    for client in [&mut aware, &mut unaware] {
        ask(client, DUMP).await;
        ask(client, wait).await;
        ask(client, r#"{"id":"ready","method":"list_dbs","params":[]}"#).await;
        read_until(client, Duration::ZERO, |message| message.contains("\"ready\"")).await;
    }

    server.server().remove_database("D").await.expect("it was there");
    let told = read_until(&mut aware, Duration::ZERO, |message| message.contains("\"wait\"")).await.concat();
    assert!(told.contains(r#""method":"monitor_canceled","params":["m"]"#), "{told}");
    assert!(told.contains(r#"{"id":"wait","error":"canceled"}"#), "{told}");
    ask(&mut aware, r#"{"id":"gone","method":"get_schema","params":["D"]}"#).await;
    let reply = read_until(&mut aware, Duration::ZERO, |message| message.contains("\"gone\"")).await.concat();
    assert!(reply.contains("unknown database"), "{reply}");

    // The connection ends; what was on its way may still come.
    read_until(&mut unaware, Duration::ZERO, |_| false).await;
    wait_for_sessions(server.server(), 1).await;
    assert_eq!(server.server().database_names(), ["_Server"]);
    assert!(server.server().remove_database("_Server").await.is_err());
}
