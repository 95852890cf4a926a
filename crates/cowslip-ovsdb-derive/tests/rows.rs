//! Derived models against a server: what is written is read back, and what a server lacks or has otherwise is noticed.

use cowslip_net::address::{Endpoint, Remote};
use cowslip_ovsdb::schema::Schema;
use cowslip_ovsdb_client::model::{AtomicType, Count, Model, ModelError, Real, Ref, Scalar, Shape, Uuid};
use cowslip_ovsdb_client::{
    BuildError, Client, ClientError, Explanation, FindError, Mismatch, Monitor, State, Where,
};
use cowslip_ovsdb_server::{Server, ServerOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const SCHEMA: &str = r#"{"name": "Lab", "tables": {
    "Switch": {"isRoot": true, "columns": {
        "name": {"type": "string"},
        "type": {"type": {"key": {"type": "string", "enum": ["set", ["access", "trunk", "new"]]}}},
        "ports": {"type": {"key": {"type": "uuid", "refTable": "Port"}, "min": 0, "max": "unlimited"}},
        "tag": {"type": {"key": {"type": "integer", "minInteger": 0, "maxInteger": 4095}, "min": 0}},
        "enabled": {"type": "boolean"},
        "weight": {"type": "real"},
        "levels": {"type": {"key": "real", "min": 0, "max": "unlimited"}},
        "labels": {"type": {"key": "string", "value": "string", "min": 0, "max": "unlimited"}},
        "queues": {"type": {"key": "integer", "value": {"type": "uuid", "refTable": "Port"}, "min": 0, "max": 9}},
        "unused": {"type": "string"}
    }},
    "Port": {"columns": {"name": {"type": "string"}}}
}}"#;

#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "Port")]
struct Port {
    #[ovsdb(uuid)]
    id: Uuid,
    name: PortName,
}

#[derive(Clone, Debug, PartialEq, Eq, Scalar)]
struct PortName(String);

#[derive(Clone, Debug, PartialEq, Eq, Scalar)]
enum Kind {
    #[ovsdb(value = "access")]
    Access,
    #[ovsdb(value = "trunk")]
    Trunk,
    #[ovsdb(unrecognized)]
    Unrecognized(String),
}

#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "Switch", columns = "SwitchColumns")]
struct Switch {
    uuid: Uuid,
    name: Arc<str>,
    r#type: Kind,
    ports: BTreeSet<Ref<Port>>,
    #[ovsdb(column = "tag")]
    vlan: Option<i64>,
    enabled: bool,
    weight: f64,
    levels: Vec<Real>,
    labels: BTreeMap<String, String>,
    queues: BTreeMap<i64, Ref<Port>>,
    #[ovsdb(optional)]
    future: Option<Ref<Self>>,
    #[ovsdb(optional, column = "futures")]
    more: BTreeMap<String, String>,
    #[ovsdb(skip)]
    cached: Option<usize>,
}

/// A switch with a value in every column.
fn switch() -> Switch {
    Switch {
        uuid: Uuid::nil(),
        name: "s1".into(),
        r#type: Kind::Trunk,
        ports: BTreeSet::new(),
        vlan: Some(7),
        enabled: true,
        weight: 1.5,
        levels: [0.5, 2.5].into_iter().filter_map(Real::new).collect(),
        labels: BTreeMap::from([("owner".to_owned(), "me".to_owned())]),
        queues: BTreeMap::new(),
        future: None,
        more: BTreeMap::new(),
        cached: None,
    }
}

struct Lab {
    endpoint: String,
    _server: Server,
    _dir: tempfile::TempDir,
}

impl Lab {
    async fn new() -> Lab {
        let dir = tempfile::tempdir().expect("a folder");
        let socket = dir.path().join("s");
        let server = Server::start(ServerOptions::default()).await.expect("threads");
        server.add_memory(Schema::parse(SCHEMA.as_bytes()).expect("a schema")).await.expect("a free name");
        server.add_remote(&Remote::Listen(Endpoint::Unix(socket.clone()))).await.expect("a socket");
        Lab { endpoint: format!("unix:{}", socket.display()), _server: server, _dir: dir }
    }

    async fn connect(&self, monitor: Monitor) -> Result<Client, ClientError> {
        Client::builder("Lab").endpoint(&self.endpoint).monitor(monitor).connect().await
    }
}

#[test]
fn columns_are_those_of_the_fields() {
    let columns: Vec<(&str, bool)> = Switch::columns().iter().map(|c| (c.name, c.is_required)).collect();
    let required = ["name", "type", "ports", "tag", "enabled", "weight", "levels", "labels", "queues"];
    let expected: Vec<(&str, bool)> = required
        .map(|name| (name, true))
        .into_iter()
        .chain([("future", false), ("futures", false)])
        .collect();
    assert_eq!(columns, expected);
    let shape = |name: &str| Switch::columns().iter().find(|c| c.name == name).map(|c| c.shape);
    let one = Shape { key: AtomicType::String, value: None, count: Count::One };
    assert_eq!(shape("type"), Some(one));
    assert_eq!(shape("tag"), Some(Shape { key: AtomicType::Integer, count: Count::Optional, ..one }));
    let queues = Shape { key: AtomicType::Integer, value: Some(AtomicType::Uuid), count: Count::Many };
    assert_eq!(shape("queues"), Some(queues));
    assert_eq!(Port::columns()[0].shape, one);
}

#[tokio::test]
async fn a_row_is_read_back_as_it_was_written() {
    let lab = Lab::new().await;
    let client = lab.connect(Monitor::nothing().model::<Switch>().model::<Port>()).await.expect("connected");
    let mut written = switch();
    let mut transaction = client.transaction();
    let port = transaction.create(&Port { id: Uuid::nil(), name: PortName("p1".to_owned()) });
    written.ports.insert(port);
    written.queues.insert(3, port);
    transaction.create(&written);
    client.transact(transaction).await.expect("committed");

    let snapshot = client.snapshot();
    let ports: Vec<Port> = snapshot.models().expect("ports");
    assert_eq!(ports[0].name, PortName("p1".to_owned()));
    let port = Ref::new(ports[0].uuid());
    let switches: Vec<Switch> = snapshot.models().expect("switches");
    written = Switch {
        uuid: switches[0].uuid,
        ports: BTreeSet::from([port]),
        queues: BTreeMap::from([(3, port)]),
        ..written
    };
    assert_eq!(switches, [written.clone()]);
    assert!(!written.uuid.is_nil());
    assert_eq!(snapshot.get(Ref::<Switch>::new(written.uuid)).expect("a switch"), Some(written));

    let row = snapshot.row("Port", port.uuid()).expect("a row");
    let wrong = Switch::from_row(&row).expect_err("not a switch");
    assert_eq!(wrong, ModelError::Table { expected: "Switch".to_owned(), found: "Port".to_owned() });
}

#[tokio::test]
async fn a_value_that_the_enum_does_not_list_survives_an_update_of_others() {
    let lab = Lab::new().await;
    let client = lab.connect(Monitor::nothing().model::<Switch>()).await.expect("connected");
    let row = Switch { r#type: Kind::Unrecognized("new".to_owned()), ..switch() };
    client.create(&row).await.expect("committed");
    let mut read: Switch = client.snapshot().models().expect("switches").remove(0);
    assert_eq!(read.r#type, Kind::Unrecognized("new".to_owned()));
    read.enabled = false;
    let mut transaction = client.transaction();
    transaction.save(&read, &[]);
    client.transact(transaction).await.expect("committed");
    assert_eq!(client.snapshot().models::<Switch>().expect("switches"), [read]);
}

#[tokio::test]
async fn optional_columns_that_the_server_lacks_are_reported_and_read_as_defaults() {
    let lab = Lab::new().await;
    let client = lab.connect(Monitor::nothing().model::<Switch>()).await.expect("connected");
    let lacks = |column: &str| Mismatch::Column { table: "Switch".to_owned(), column: column.to_owned() };
    let State::Live { missing, .. } = client.state() else { panic!("not live") };
    assert_eq!(missing, [lacks("future"), lacks("futures")]);
    let future = Some(Ref::new(Uuid::from_u128(1)));
    client.create(&Switch { future, ..switch() }).await.expect("committed without it");
    let read: Switch = client.snapshot().models().expect("switches").remove(0);
    assert_eq!((read.future, read.more.len(), read.cached), (None, 0, None));
    assert!(!client.snapshot().has_column("Switch", "future"));
}

#[derive(Clone, Debug, Model)]
#[ovsdb(table = "Switch")]
#[allow(dead_code, reason = "only the columns matter")]
struct Demanding {
    uuid: Uuid,
    name: i64,
    levels: Option<f64>,
    missing: String,
}

#[tokio::test]
async fn required_columns_that_do_not_fit_are_all_listed() {
    let lab = Lab::new().await;
    let refused = lab.connect(Monitor::nothing().model::<Demanding>()).await.err();
    let Some(ClientError::Schema { mismatches }) = refused else { panic!("{refused:?}") };
    let words: Vec<String> = mismatches.iter().map(ToString::to_string).collect();
    assert_eq!(words.len(), 3, "{words:?}");
    assert!(words[0].contains("Switch.name") && words[0].contains("integer"), "{words:?}");
    assert!(words[1].contains("Switch.levels") && words[2].contains("Switch.missing"), "{words:?}");
}

/// The names of the switches that meet a condition, in order.
fn names(client: &Client, rows: &Where<Switch>) -> Vec<String> {
    let found = client.snapshot().find_models(rows).expect("a condition on columns that are there");
    let mut names: Vec<String> = found.iter().map(|switch| switch.name.to_string()).collect();
    names.sort();
    names
}

#[tokio::test]
async fn typed_conditions_find_rows() {
    type S = SwitchColumns;
    let lab = Lab::new().await;
    let client = lab.connect(Monitor::nothing().model::<Switch>()).await.expect("connected");
    let mut transaction = client.transaction();
    for (name, vlan, kind) in
        [("a", Some(1), Kind::Trunk), ("b", Some(5), Kind::Access), ("c", None, Kind::Access)]
    {
        transaction.create(&Switch { name: name.into(), vlan, r#type: kind, ..switch() });
    }
    client.transact(transaction).await.expect("committed");
    assert_eq!(names(&client, &Where::all()), ["a", "b", "c"]);
    assert_eq!(names(&client, &S::NAME.equal(Arc::from("b"))), ["b"]);
    assert_eq!(names(&client, &S::TYPE.not_equal(Kind::Trunk)), ["b", "c"]);
    assert_eq!(names(&client, &S::VLAN.equal(None)), ["c"]);
    assert_eq!(names(&client, &S::VLAN.greater(1)), ["b"]);
    assert_eq!(names(&client, &S::VLAN.greater_or_equal(1).and(S::VLAN.less(5))), ["a"]);
    assert_eq!(names(&client, &S::VLAN.less_or_equal(5).and(S::ENABLED.equal(true))), ["a", "b"]);
    let labels = BTreeMap::from([("owner".to_owned(), "me".to_owned())]);
    assert_eq!(names(&client, &S::LABELS.includes(&labels)).len(), 3);
    assert_eq!(names(&client, &S::LABELS.excludes(&labels)).len(), 0);
    let b: Switch = client.snapshot().find_models(&S::VLAN.equal(Some(5))).expect("switches").remove(0);
    let by_uuid = Where::row(Ref::<Switch>::new(b.uuid));
    assert_eq!(client.snapshot().explain("Switch", by_uuid.filter()), Ok(Explanation::ByUuid));
    assert_eq!(names(&client, &by_uuid), ["b"]);
    assert_eq!(names(&client, &S::UUID.equal(b.uuid)), ["b"]);
    let lacking = client.snapshot().find_models(&S::FUTURE.equal(None));
    let column = BuildError::Column { table: "Switch".to_owned(), column: "future".to_owned() };
    assert_eq!(lacking, Err(FindError::Condition(column)));
}

#[tokio::test]
async fn typed_changes_reach_the_rows() {
    type S = SwitchColumns;
    let lab = Lab::new().await;
    let client = lab.connect(Monitor::nothing().model::<Switch>()).await.expect("connected");
    client.create(&switch()).await.expect("committed");
    let text = |text: &str| text.to_owned();
    let mut transaction = client.transaction();
    let rows = S::ENABLED.equal(true);
    transaction.update_rows(&rows, [S::WEIGHT.set(4.0), S::TYPE.set(Kind::Access)]);
    transaction.change_rows(
        &rows,
        [S::WEIGHT.divide(8.0), S::VLAN.add(5), S::VLAN.multiply(2), S::VLAN.subtract(1)],
    );
    let pairs = BTreeMap::from([(text("owner"), text("you")), (text("new"), text("yes"))]);
    transaction.change_rows(&rows, S::LABELS.upsert(&pairs));
    transaction.change_rows(&rows, [S::LEVELS.delete(vec![Real::ZERO]), S::LEVELS.insert(vec![Real::ZERO])]);
    client.transact(transaction).await.expect("committed");
    let read: Switch = client.snapshot().models().expect("switches").remove(0);
    assert_eq!((read.weight, read.vlan, &read.r#type), (0.5, Some(23), &Kind::Access));
    assert_eq!((&read.labels, read.levels.len()), (&pairs, 3));
    let snapshot = client.snapshot();
    let row = snapshot.row("Switch", read.uuid).expect("a row");
    assert_eq!(S::LABELS.read(&row), Ok(pairs));

    let mut transaction = client.transaction();
    let mut gone = BTreeSet::from([text("owner")]);
    transaction.change_rows(&Where::all(), [S::LABELS.delete_keys(&gone)]);
    client.transact(transaction).await.expect("committed");
    let read: Switch = client.snapshot().models().expect("switches").remove(0);
    gone.clear();
    gone.extend(read.labels.into_keys());
    assert_eq!(gone, BTreeSet::from([text("new")]));

    let mut transaction = client.transaction();
    transaction.delete_rows(&S::VLAN.equal(Some(23)));
    client.transact(transaction).await.expect("committed");
    assert!(client.snapshot().is_empty("Switch"));
}

#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "Switch", optional)]
struct Tolerant {
    uuid: Uuid,
    name: String,
    enabled: bool,
    labels: BTreeMap<String, String>,
}

#[tokio::test]
async fn saving_a_model_leaves_columns_that_were_never_seen() {
    let lab = Lab::new().await;
    let all = lab.connect(Monitor::nothing().model::<Switch>()).await.expect("connected");
    all.create(&switch()).await.expect("committed");
    let some = Monitor::nothing().columns("Switch", ["name"]);
    let client = lab.connect(some).await.expect("connected");
    let mut read: Tolerant = client.snapshot().models().expect("switches").remove(0);
    assert_eq!((read.enabled, read.labels.len()), (false, 0));
    read.name = "renamed".to_owned();
    let before = all.snapshot().generation();
    let mut transaction = client.transaction();
    transaction.save(&read, &[]);
    client.transact(transaction).await.expect("committed");
    let seen = all.generation(before + 1).await.expect("the update of the other client");
    let kept: Switch = seen.models().expect("switches").remove(0);
    assert_eq!((&*kept.name, kept.enabled, &kept.labels), ("renamed", true, &switch().labels));
}
