//! OVN's northd works between a northbound and a southbound database, and computes the same logical flows on both
//! servers.
//!
//! The northbound content is the same to the UUID, so that what northd derives from names and hashes is the same, too.
//! Flows are compared without UUIDs: a flow of a group of datapaths counts once for each datapath's name.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::clients::{NB_SCHEMA, SB_SCHEMA, schema};
use crate::support::process::{self, Background};
use crate::support::rpc::Session;
use crate::support::scratch;
use crate::support::server::{Peer, Server};

const ROUTERS: usize = 10;
const SWITCHES_PER_ROUTER: usize = 20;
const PORTS_PER_SWITCH: usize = 10;
/// What the test must have shown at least.
const FLOWS_MIN: usize = 20_000;
/// How long northd may take for all of it, on the slowest build.
const SYNC_LIMIT: Duration = Duration::from_secs(90);

const NB: &str = "OVN_Northbound";
const SB: &str = "OVN_Southbound";

/// The UUID of the n-th row of a kind.
fn id(kind: u16, n: usize) -> String {
    format!("b{kind:07x}-0000-4000-8000-{n:012x}")
}

fn reference(kind: u16, n: usize) -> Value {
    json!(["uuid", id(kind, n)])
}

fn set(items: impl IntoIterator<Item = Value>) -> Value {
    json!(["set", items.into_iter().collect::<Vec<_>>()])
}

fn map(pairs: &[(&str, &str)]) -> Value {
    json!(["map", pairs.iter().map(|(k, v)| json!([k, v])).collect::<Vec<_>>()])
}

const SWITCH: u16 = 1;
const PORT: u16 = 2;
const ROUTER: u16 = 3;
const ROUTER_PORT: u16 = 4;
const UPLINK: u16 = 5;
const BALANCER: u16 = 6;
const ACL: u16 = 7;
const ROUTE: u16 = 8;
const NAT: u16 = 9;
const ADDRESS_SET: u16 = 10;
const PORT_GROUP: u16 = 11;

/// Collects the operations of a transaction.
#[derive(Default)]
struct Operations(Vec<Value>);

impl Operations {
    fn insert(&mut self, table: &str, kind: u16, n: usize, row: Value) {
        self.0.push(json!({"op": "insert", "table": table, "uuid": id(kind, n), "row": row}));
    }

    fn acl(&mut self, n: usize, direction: &str, priority: usize, text: &str, action: &str) {
        let row = json!({"direction": direction, "priority": priority, "match": text, "action": action});
        self.insert("ACL", ACL, n, row);
    }

    fn switch(&mut self, router: usize, switch: usize) {
        let mut ports = vec![reference(UPLINK, switch)];
        for at in 0..PORTS_PER_SWITCH {
            let n = switch * PORTS_PER_SWITCH + at;
            ports.push(reference(PORT, n));
            let address = format!(
                "00:00:00:{:02x}:{:02x}:{:02x} 10.{router}.{switch}.{}",
                n >> 16,
                n >> 8 & 255,
                n & 255,
                at + 10
            );
            let row = json!({"name": format!("lp{n}"), "addresses": address, "port_security": address});
            self.insert("Logical_Switch_Port", PORT, n, row);
        }
        let uplink = json!({"name": format!("sw{switch}-r{router}"), "type": "router", "addresses": "router",
            "options": map(&[("router-port", &format!("r{router}-sw{switch}"))])});
        self.insert("Logical_Switch_Port", UPLINK, switch, uplink);
        let router_port = json!({"name": format!("r{router}-sw{switch}"), "mac": format!("00:00:01:00:{router:02x}:{switch:02x}"),
            "networks": format!("10.{router}.{switch}.1/24")});
        self.insert("Logical_Router_Port", ROUTER_PORT, switch, router_port);
        self.acl(3 * switch, "from-lport", 1000, "ip4 && tcp.dst == 22", "allow-related");
        self.acl(3 * switch + 1, "to-lport", 1000 + switch % 7, "ip4.src == $as0 && udp", "allow");
        self.acl(3 * switch + 2, "to-lport", 10, "ip", "drop");
        let row = json!({"name": format!("sw{switch}"), "ports": set(ports),
            "acls": set((0..3).map(|at| reference(ACL, 3 * switch + at))), "load_balancer": reference(BALANCER, router)});
        self.insert("Logical_Switch", SWITCH, switch, row);
    }

    fn router(&mut self, router: usize) {
        let switches = router * SWITCHES_PER_ROUTER..(router + 1) * SWITCHES_PER_ROUTER;
        for switch in switches.clone() {
            self.switch(router, switch);
        }
        let vip = format!("172.16.{router}.1:80");
        let backends = format!("10.{router}.{0}.10:8080,10.{router}.{0}.11:8080", switches.start);
        let row =
            json!({"name": format!("lb{router}"), "protocol": "tcp", "vips": map(&[(&vip, &backends)])});
        self.insert("Load_Balancer", BALANCER, router, row);
        let next_hop = format!("10.{router}.{}.254", switches.start);
        let row = json!({"ip_prefix": "0.0.0.0/0", "nexthop": next_hop});
        self.insert("Logical_Router_Static_Route", ROUTE, router, row);
        let row = json!({"type": "snat", "external_ip": format!("192.0.2.{router}"), "logical_ip": format!("10.{router}.0.0/16")});
        self.insert("NAT", NAT, router, row);
        let row = json!({"name": format!("r{router}"), "ports": set(switches.map(|s| reference(ROUTER_PORT, s))),
            "static_routes": reference(ROUTE, router), "nat": reference(NAT, router),
            "load_balancer": reference(BALANCER, router), "options": map(&[("chassis", "ch0")])});
        self.insert("Logical_Router", ROUTER, router, row);
    }

    fn shared(&mut self) {
        let addresses = set((0..50).map(|n| json!(format!("10.200.0.{n}"))));
        self.insert("Address_Set", ADDRESS_SET, 0, json!({"name": "as0", "addresses": addresses}));
        let acl = 3 * ROUTERS * SWITCHES_PER_ROUTER;
        self.acl(acl, "to-lport", 500, "inport == @pg0 && ip4.src == $pg0_ip4", "allow-related");
        let ports = set((0..ROUTERS * SWITCHES_PER_ROUTER).map(|s| reference(PORT, s * PORTS_PER_SWITCH)));
        self.insert(
            "Port_Group",
            PORT_GROUP,
            0,
            json!({"name": "pg0", "ports": ports, "acls": reference(ACL, acl)}),
        );
    }
}

fn fill(session: &mut Session) {
    session.must(NB, &[json!({"op": "insert", "table": "NB_Global", "row": {}})]);
    for router in 0..ROUTERS {
        let mut operations = Operations::default();
        operations.router(router);
        session.must(NB, &operations.0);
    }
    let mut operations = Operations::default();
    operations.shared();
    session.must(NB, &operations.0);
}

fn rows(session: &mut Session, table: &str, columns: &[&str]) -> Vec<Value> {
    let operation = json!({"op": "select", "table": table, "where": [], "columns": columns});
    let mut results = session.must(SB, &[operation]);
    match results[0]["rows"].take() {
        Value::Array(rows) => rows,
        other => panic!("select gave {other}"),
    }
}

/// The value of a key in a map.
fn in_map<'v>(value: &'v Value, key: &str) -> &'v str {
    let pairs = value[1].as_array().into_iter().flatten();
    pairs.filter(|pair| pair[0] == key).find_map(|pair| pair[1].as_str()).unwrap_or("")
}

/// The UUIDs in a set, which a single member is, too.
fn members(value: &Value) -> Vec<&str> {
    match (value[0].as_str(), &value[1]) {
        (Some("uuid"), Value::String(one)) => vec![one],
        (Some("set"), Value::Array(items)) => items.iter().filter_map(|item| item[1].as_str()).collect(),
        _ => Vec::new(),
    }
}

/// What northd wrote, as lines with their number of occurrences.
fn derived(session: &mut Session) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for row in rows(session, "Datapath_Binding", &["_uuid", "external_ids"]) {
        names.insert(members(&row["_uuid"])[0].to_owned(), in_map(&row["external_ids"], "name").to_owned());
    }
    let mut groups = BTreeMap::new();
    for row in rows(session, "Logical_DP_Group", &["_uuid", "datapaths"]) {
        // The real server can leave a weak reference to a deleted datapath behind (case REF-15).
        let datapaths: Vec<String> =
            members(&row["datapaths"]).iter().filter_map(|d| names.get(*d).cloned()).collect();
        groups.insert(members(&row["_uuid"])[0].to_owned(), datapaths);
    }
    let mut lines = BTreeMap::new();
    let columns = [
        "_uuid",
        "logical_datapath",
        "logical_dp_group",
        "pipeline",
        "table_id",
        "priority",
        "match",
        "actions",
    ];
    for row in rows(session, "Logical_Flow", &columns) {
        let single = members(&row["logical_datapath"]).into_iter().map(|d| names[d].clone());
        let group = members(&row["logical_dp_group"]).into_iter().flat_map(|g| groups[g].clone());
        for datapath in single.chain(group) {
            let rest: Vec<String> = columns[3..].iter().map(|c| row[*c].to_string()).collect();
            *lines.entry(format!("flow {datapath} {}", rest.join(" "))).or_default() += 1;
        }
    }
    for row in rows(session, "Port_Binding", &["_uuid", "logical_port", "type", "datapath", "mac", "options"])
    {
        let datapath = &names[members(&row["datapath"])[0]];
        let line = format!(
            "port {datapath} {} {} {} {}",
            row["logical_port"], row["type"], row["mac"], row["options"]
        );
        *lines.entry(line).or_default() += 1;
    }
    lines
}

/// One server with both databases and a northd between them.
struct Stage {
    dir: tempfile::TempDir,
    server: Server,
    _northd: Background,
}

impl Stage {
    fn new(peer: Peer) -> Stage {
        let dir = scratch();
        let (server, _) = Server::fresh(peer, dir.path(), &[schema(NB_SCHEMA), schema(SB_SCHEMA)]);
        fill(&mut server.connect());
        let remote = server.remote();
        let arguments = [
            format!("--ovnnb-db={remote}"),
            format!("--ovnsb-db={remote}"),
            format!("--unixctl={}", dir.path().join("nd").display()),
        ];
        let mut command = process::command("ovn-northd", dir.path(), arguments);
        let northd = Background::start(&mut command, &dir.path().join("northd.log"));
        Stage { dir, server, _northd: northd }
    }

    fn nbctl(&self, arguments: &str) {
        let remote = format!("--db={}", self.server.remote());
        let limit = format!("--timeout={}", SYNC_LIMIT.as_secs());
        let words = [remote.as_str(), &limit, "--no-leader-only", "--wait=sb"].into_iter();
        let dir: &Path = self.dir.path();
        let mut command = process::command("ovn-nbctl", dir, words.chain(arguments.split(' ')));
        let done = process::run(&mut command, SYNC_LIMIT);
        let log = std::fs::read_to_string(dir.join("northd.log")).unwrap_or_default();
        assert!(
            done.code == Some(0),
            "ovn-nbctl {arguments}: {done:?}\nnorthd: {log}\n{}",
            self.server.log_tail()
        );
    }

    fn run(peer: Peer) -> Vec<BTreeMap<String, usize>> {
        let stage = Stage::new(peer);
        let mut session = stage.server.connect();
        let mut stages = Vec::new();
        for change in [
            "sync",
            "ls-del sw3 -- lsp-del lp100 -- acl-del sw5 to-lport 10 ip",
            "lsp-set-addresses lp101 unknown -- lb-add lb0 172.16.0.9:53 10.0.0.10:53 udp -- lr-nat-del r1 snat",
            "set address_set as0 addresses=10.9.9.9 -- clear port_group pg0 ports -- lr-del r2",
        ] {
            stage.nbctl(change);
            stages.push(derived(&mut session));
        }
        stages
    }
}

#[test]
fn same_flows_as_on_the_real_server() {
    let real = std::thread::spawn(|| Stage::run(Peer::Real));
    let ours = Stage::run(Peer::under_test());
    let real = real.join().unwrap_or_else(|e| std::panic::resume_unwind(e));
    let flows: usize = real[0].iter().filter(|(line, _)| line.starts_with("flow")).map(|(_, n)| n).sum();
    assert!(flows >= FLOWS_MIN, "the real server has only {flows} flows");
    for (stage, (want, got)) in real.iter().zip(&ours).enumerate() {
        let missing: Vec<_> = want.iter().filter(|(line, n)| got.get(*line) != Some(n)).take(5).collect();
        let extra: Vec<_> = got.iter().filter(|(line, n)| want.get(*line) != Some(n)).take(5).collect();
        assert!(
            missing.is_empty() && extra.is_empty(),
            "stage {stage}: {} lines on the real server, {} on ours\nonly there: {missing:#?}\nonly here: {extra:#?}",
            want.len(),
            got.len()
        );
    }
    eprintln!("{flows} flows, {} lines at the end", real.last().map_or(0, BTreeMap::len));
}
