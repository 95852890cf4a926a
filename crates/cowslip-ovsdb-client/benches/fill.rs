//! Connecting and filling the cache with rows of OVN's northbound database, against a reader that takes the same bytes
//! and decodes nothing. The real server answers; ours runs in this process, so that only its time is of use.

#![allow(clippy::unwrap_used, reason = "a bench fails by panicking")]

use cowslip_engine::storage::FileSystem;
use cowslip_net::address::{Endpoint, Remote};
use cowslip_ovsdb::framing::Framer;
use cowslip_ovsdb::schema::Schema;
use cowslip_ovsdb_client::{Client, IntoDatum, Monitor, Uuid};
use cowslip_ovsdb_server::{Server, ServerOptions, file};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const SCHEMA: &str = "/usr/share/ovn/ovn-nb.ovsschema";
const PORTS_PER_SWITCH: usize = 100;

/// The kernel's unit of processor time in `/proc/self/stat`.
const TICKS_PER_SECOND: f64 = 100.0;

fn main() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    println!("| server | ports | bytes | reader | client | ratio | client's CPU | memory |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for ports in [10_000, 50_000] {
        let directory = tempfile::tempdir().unwrap();
        let schema = Schema::parse(&std::fs::read(SCHEMA).expect("run `cargo xtask peers`")).unwrap();
        file::create(&FileSystem::new(), &directory.path().join("db"), &schema).unwrap();
        let socket = directory.path().join("sock");
        let mut real = Command::new("ovsdb-server")
            .arg(directory.path().join("db"))
            .arg(format!("--remote=punix:{}", socket.display()))
            .arg(format!("--unixctl={}", directory.path().join("ctl").display()))
            .args(["--no-chdir", "--log-file=/dev/null"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("run `cargo xtask peers`");
        while !socket.exists() {
            std::thread::sleep(Duration::from_millis(5));
        }
        runtime.block_on(load(&socket, ports));
        row("real", &runtime, &socket, ports);
        real.kill().unwrap();
        real.wait().unwrap();
        let server = runtime.block_on(async {
            let server = Server::start(ServerOptions::default()).await.unwrap();
            server.add_file(Arc::new(FileSystem::new()), &directory.path().join("db")).await.unwrap();
            server.add_remote(&Remote::Listen(Endpoint::Unix(socket.clone()))).await.unwrap();
            server
        });
        row("ours", &runtime, &socket, ports);
        runtime.block_on(server.stop()).unwrap();
    }
}

fn row(name: &str, runtime: &tokio::runtime::Runtime, socket: &Path, ports: usize) {
    let (bytes, reader) = read_only(socket);
    let (cpu, memory, begun) = (cpu_seconds(), resident_bytes(), Instant::now());
    let client = runtime.block_on(connect(socket, Monitor::everything()));
    let time = begun.elapsed();
    assert_eq!(client.snapshot().len("Logical_Switch_Port"), ports);
    let (cpu, memory) = (cpu_seconds() - cpu, resident_bytes().saturating_sub(memory));
    println!(
        "| {name} | {ports} | {:.1} MB | {:.2} s | {:.2} s | {:.2} | {cpu:.2} s | {:.0} MB |",
        bytes as f64 / 1e6,
        reader.as_secs_f64(),
        time.as_secs_f64(),
        time.as_secs_f64() / reader.as_secs_f64(),
        memory as f64 / 1e6
    );
}

async fn connect(socket: &Path, monitor: Monitor) -> Client {
    let endpoint = format!("unix:{}", socket.display());
    Client::builder("OVN_Northbound").endpoint(&endpoint).monitor(monitor).connect().await.unwrap()
}

/// Takes the whole database off the wire, and cuts it into messages.
fn read_only(socket: &Path) -> (usize, Duration) {
    let begun = Instant::now();
    let mut stream = UnixStream::connect(socket).unwrap();
    let schema = Schema::parse(&std::fs::read(SCHEMA).unwrap()).unwrap();
    let tables: Vec<String> =
        schema.tables.iter().map(|table| format!("\"{}\":[{{}}]", table.name)).collect();
    let zero = Uuid::nil();
    let request = format!(
        r#"{{"id":1,"method":"monitor_cond_since","params":["OVN_Northbound",1,{{{}}},"{zero}"]}}"#,
        tables.join(",")
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut framer = Framer::new(1 << 30);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "the server goes on");
        framer.push(&buffer[..count]);
        if let Some(message) = framer.message().unwrap() {
            return (message.len(), begun.elapsed());
        }
    }
}

async fn load(socket: &Path, ports: usize) {
    let client = connect(socket, Monitor::nothing()).await;
    for first in (0..ports).step_by(PORTS_PER_SWITCH) {
        let mut tx = client.transaction();
        let members: Vec<Uuid> = (first..first + PORTS_PER_SWITCH)
            .map(|n| {
                let text = |pairs: &[(&str, String)]| {
                    let map: BTreeMap<String, String> =
                        pairs.iter().map(|(k, v)| ((*k).to_string(), v.clone())).collect();
                    map.to_datum()
                };
                let address = format!(
                    "0a:58:0a:{:02x}:{:02x}:{:02x} 10.{}.{}.{}",
                    n >> 16,
                    n >> 8 & 255,
                    n & 255,
                    n >> 16,
                    n >> 8 & 255,
                    n & 255
                );
                let row = [
                    ("name", format!("namespace-{}_pod-{n}", n % 97).to_datum()),
                    ("addresses", address.to_datum()),
                    ("port_security", address.to_datum()),
                    (
                        "external_ids",
                        text(&[("namespace", format!("namespace-{}", n % 97)), ("pod", "true".to_string())]),
                    ),
                    (
                        "options",
                        text(&[
                            ("requested-chassis", format!("node-{}", n % 250)),
                            ("iface-id-ver", Uuid::new_v4().to_string()),
                        ]),
                    ),
                ];
                tx.insert("Logical_Switch_Port", row)
            })
            .collect();
        let name = format!("switch-{first}");
        tx.insert("Logical_Switch", [("name", name.to_datum()), ("ports", members.to_datum())]);
        client.transact(tx).await.unwrap();
    }
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / TICKS_PER_SECOND
}

fn resident_bytes() -> usize {
    const PAGE_BYTES: usize = 4096;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * PAGE_BYTES
}
