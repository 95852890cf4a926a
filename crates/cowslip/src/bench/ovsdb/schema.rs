//! The database that the OVSDB measurements work on: a network with the shapes that virtual networks have (switches with
//! large sets of ports, ports with maps and a name index, wide rows of flows), and the requests on it.
//!
//! Requests are texts with fields of fixed width: `##########` stands for the request's number, 36 `@` for the UUID of a
//! row that was there from the start. So the generator copies and patches bytes and builds nothing.

/// The database's name.
pub(crate) const DATABASE: &str = "Network";

/// The schema.
pub(crate) const SCHEMA: &str = r#"{"name":"Network","version":"1.0.0","tables":{
"Switch":{"isRoot":true,"columns":{
  "name":{"type":"string"},
  "ports":{"type":{"key":{"type":"uuid","refTable":"Port"},"min":0,"max":"unlimited"}},
  "other_config":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
  "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}},
"Port":{"indexes":[["name"]],"columns":{
  "name":{"type":"string"},
  "kind":{"type":"string"},
  "tag":{"type":{"key":{"type":"integer","minInteger":0,"maxInteger":4095},"min":0,"max":1}},
  "enabled":{"type":{"key":"boolean","min":0,"max":1}},
  "addresses":{"type":{"key":"string","min":0,"max":"unlimited"}},
  "options":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}},
  "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}},
"Flow":{"isRoot":true,"columns":{
  "stage":{"type":{"key":{"type":"string","enum":["set",["ingress","egress"]]}}},
  "level":{"type":{"key":{"type":"integer","minInteger":0,"maxInteger":64}}},
  "priority":{"type":"integer"},
  "match":{"type":"string"},
  "actions":{"type":"string"},
  "external_ids":{"type":{"key":"string","value":"string","min":0,"max":"unlimited"}}}}}}"#;

/// The switches there from the start.
pub(crate) const SWITCHES: u64 = 200;
/// The ports of each of them.
pub(crate) const PORTS_EACH: u64 = 50;
/// The operations of one transaction that fills the database.
const FILL_OPERATIONS: u64 = 500;

/// The field for a request's number.
pub(crate) const NUMBER_FIELD: &str = "##########";
/// The field for the UUID of a row.
pub(crate) const ROW_FIELD: &str = "@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@";

/// The rows that are there from the start get UUIDs that are known beforehand, and spread as random ones are: a server
/// may hash no more than their first 32 bits.
fn uuid(table: u64, row: u64) -> String {
    let mut state = (table << 32 | row).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = || {
        state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        state ^= state >> 31;
        state
    };
    uuid::Builder::from_random_bytes((u128::from(next()) << 64 | u128::from(next())).to_be_bytes())
        .into_uuid()
        .hyphenated()
        .to_string()
}

fn switch_uuid(row: u64) -> String {
    uuid(1, row)
}

fn port_uuid(row: u64) -> String {
    uuid(2, row)
}

/// What a transaction of the measurement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Operation {
    /// Inserts one switch.
    Insert,
    /// Updates two columns of a port that is named by its UUID.
    Update,
    /// Deletes and inserts one key of a port's map.
    Mutate,
    /// Inserts a port and adds it to the set of one of the switches.
    PortAdd,
}

impl Operation {
    /// The name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Operation::Insert => "insert",
            Operation::Update => "update by _uuid",
            Operation::Mutate => "mutate a map",
            Operation::PortAdd => "add a port",
        }
    }

    /// The UUIDs of the rows that the request picks one of.
    pub(crate) fn rows(self) -> Vec<String> {
        match self {
            Operation::Insert => Vec::new(),
            Operation::Update | Operation::Mutate => (0..SWITCHES * PORTS_EACH).map(port_uuid).collect(),
            Operation::PortAdd => (0..SWITCHES).map(switch_uuid).collect(),
        }
    }

    /// The request with its fields.
    pub(crate) fn request(self, durable: bool) -> String {
        let this_row = format!(r#"[["_uuid","==",["uuid","{ROW_FIELD}"]]]"#);
        let operations = match self {
            Operation::Insert => format!(
                r#"{{"op":"insert","table":"Switch","row":{{"name":"new-{NUMBER_FIELD}","external_ids":["map",[["owner","bench"]]]}}}}"#
            ),
            Operation::Update => format!(
                r#"{{"op":"update","table":"Port","where":{this_row},"row":{{"addresses":"02:00:00:00:00:01 {NUMBER_FIELD}","options":["map",[["mtu","{NUMBER_FIELD}"]]]}}}}"#
            ),
            Operation::Mutate => format!(
                r#"{{"op":"mutate","table":"Port","where":{this_row},"mutations":[["external_ids","delete",["set",["seen"]]],["external_ids","insert",["map",[["seen","{NUMBER_FIELD}"]]]]]}}"#
            ),
            Operation::PortAdd => format!(
                r#"{{"op":"insert","table":"Port","uuid-name":"new","row":{{"name":"new-{NUMBER_FIELD}","addresses":"02:00:00:00:00:02 10.0.0.2","external_ids":["map",[["owner","bench"]]]}}}},{{"op":"mutate","table":"Switch","where":{this_row},"mutations":[["ports","insert",["set",[["named-uuid","new"]]]]]}}"#
            ),
        };
        let commit = if durable { r#",{"op":"commit","durable":true}"# } else { "" };
        format!(
            r#"{{"id":"{NUMBER_FIELD}","method":"transact","params":["{DATABASE}",{operations}{commit}]}}"#
        )
    }
}

fn transaction(operations: &[String]) -> String {
    format!(r#"{{"id":"fill","method":"transact","params":["{DATABASE}",{}]}}"#, operations.join(","))
}

/// Empties the database of what an earlier run left.
pub(crate) fn clear() -> String {
    let delete = |table| format!(r#"{{"op":"delete","table":"{table}","where":[]}}"#);
    transaction(&[delete("Switch"), delete("Flow")])
}

/// Changes the database without touching the flows, so that no server can answer with what it kept from before.
pub(crate) fn touch() -> String {
    transaction(&[r#"{"op":"insert","table":"Switch","row":{"name":"touched"}}"#.to_owned()])
}

/// The transactions that make the switches and their ports.
pub(crate) fn fill_network() -> Vec<String> {
    let mut operations = Vec::new();
    for switch in 0..SWITCHES {
        let mut members = Vec::new();
        for port in switch * PORTS_EACH..(switch + 1) * PORTS_EACH {
            operations.push(format!(
                r#"{{"op":"insert","table":"Port","uuid":"{}","row":{{"name":"port-{port}","tag":{},"addresses":["set",["02:00:00:00:00:00 10.0.{switch}.{port}"]],"options":["map",[["mtu","1500"]]],"external_ids":["map",[["owner","bench"],["seen","never"]]]}}}}"#,
                port_uuid(port),
                port % 4096
            ));
            members.push(format!(r#"["uuid","{}"]"#, port_uuid(port)));
        }
        operations.push(format!(
            r#"{{"op":"insert","table":"Switch","uuid":"{}","row":{{"name":"switch-{switch}","ports":["set",[{}]],"external_ids":["map",[["owner","bench"]]]}}}}"#,
            switch_uuid(switch),
            members.join(",")
        ));
    }
    // A switch and its ports stay in one transaction: ports that nothing refers to would be collected at its end.
    let per_switch = PORTS_EACH as usize + 1;
    let size = per_switch * (FILL_OPERATIONS as usize / per_switch).max(1);
    operations.chunks(size).map(transaction).collect()
}

/// The transactions that make `rows` flows, each about 400 bytes on the wire.
pub(crate) fn fill_flows(rows: u64) -> Vec<String> {
    let flow = |n: u64| {
        let stage = if n.is_multiple_of(2) { "ingress" } else { "egress" };
        format!(
            r#"{{"op":"insert","table":"Flow","row":{{"stage":"{stage}","level":{},"priority":{},"match":"inport == \"port-{n}\" && eth.src == 02:00:00:00:00:01 && ip4.dst == 10.{}.{}.0/24","actions":"reg0 = {n}; eth.dst = 02:00:00:00:00:02; next(stage=\"{stage}\", level={});","external_ids":["map",[["source","topology-{}"],["stage-name","{stage}-{}"]]]}}}}"#,
            n % 32,
            n % 1000,
            n / 250 % 250,
            n % 250,
            n % 32 + 1,
            n % 97,
            n % 32
        )
    };
    let starts = (0..rows).step_by(FILL_OPERATIONS as usize);
    starts
        .map(|start| transaction(&(start..rows.min(start + FILL_OPERATIONS)).map(flow).collect::<Vec<_>>()))
        .collect()
}

/// Asks for all flows and for what happens to them.
pub(crate) fn monitor_flows() -> String {
    format!(
        r#"{{"id":"dump","method":"monitor_cond_since","params":["{DATABASE}","bench",{{"Flow":[{{"columns":["stage","level","priority","match","actions","external_ids"]}}]}},"00000000-0000-0000-0000-000000000000"]}}"#
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowslip_ovsdb::json::Json;
    use cowslip_ovsdb::schema::Schema;

    #[test]
    fn schema_and_requests_are_well_formed() {
        Schema::parse(SCHEMA.as_bytes()).unwrap();
        let operations = [Operation::Insert, Operation::Update, Operation::Mutate, Operation::PortAdd];
        let mut requests: Vec<String> = operations.iter().map(|o| o.request(true)).collect();
        requests.extend([clear(), touch(), monitor_flows()]);
        requests.extend(fill_network());
        requests.extend(fill_flows(1001));
        for request in requests {
            Json::parse(request.as_bytes()).unwrap_or_else(|e| panic!("{e}: {request:.300}"));
        }
    }
}
