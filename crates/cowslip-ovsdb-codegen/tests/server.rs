//! Generated models against a server: what they make without being asked is what the server takes.

use cowslip_net::address::{Endpoint, Remote};
use cowslip_ovsdb::schema::Schema;
use cowslip_ovsdb_client::model::{Model, Ref, Uuid};
use cowslip_ovsdb_client::{Client, Monitor, TransactError};
use cowslip_ovsdb_server::{Server, ServerOptions};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

#[rustfmt::skip]
mod cases;

use cases::{C, CE, Collections, Enums, EnumsName, EnumsOnly, EnumsSeveral, Many, Names};

const SCHEMA: &str = include_str!("cases.ovsschema");

struct Lab {
    client: Client,
    _server: Server,
    _dir: tempfile::TempDir,
}

impl Lab {
    /// A server of the cases in which every row lives without references to it, and a client that sees everything.
    async fn new() -> Lab {
        let schema = SCHEMA.replace("\"isRoot\": true", "\"isRoot\": false");
        let schema = Schema::parse(schema.as_bytes()).expect("a schema");
        let dir = tempfile::tempdir().expect("a folder");
        let socket = dir.path().join("s");
        let server = Server::start(ServerOptions::default()).await.expect("threads");
        server.add_memory(schema).await.expect("a free name");
        server.add_remote(&Remote::Listen(Endpoint::Unix(socket.clone()))).await.expect("a socket");
        let builder = Client::builder(cases::DATABASE).endpoint(&format!("unix:{}", socket.display()));
        let monitor = Monitor::nothing().model::<Names>().model::<C>().model::<Many>();
        let monitor = monitor.model::<Enums>().model::<Collections>().model::<cases::LoadBalancer2>();
        let client = builder.monitor(monitor).connect().await.expect("connected");
        Lab { client, _server: server, _dir: dir }
    }

    /// Inserts a row and gives it as it was read back.
    async fn create<M: Model + Debug>(&self, row: &M) -> M {
        self.client.create(row).await.unwrap_or_else(|error| panic!("{row:?}: {error}"));
        self.client.snapshot().models().expect("rows").remove(0)
    }
}

#[tokio::test]
async fn default_rows_are_taken_and_read_back() {
    let lab = Lab::new().await;
    let names = lab.create(&Names::default()).await;
    assert_eq!(names, Names { uuid: names.uuid, ..Names::default() });
    let enums = lab.create(&Enums::default()).await;
    assert_eq!(enums, Enums { uuid: enums.uuid, ..Enums::default() });
    let collections = lab.create(&Collections::default()).await;
    assert_eq!(collections, Collections { uuid: collections.uuid, ..Collections::default() });
    let balancer = lab.create(&cases::LoadBalancer2::default()).await;
    assert_eq!(balancer, cases::LoadBalancer2 { uuid: balancer.uuid, a: 0 });
}

#[tokio::test]
async fn constructed_rows_are_taken_and_what_they_ask_for_is_needed() {
    let lab = Lab::new().await;
    let c = lab.create(&C::new(CE::Tcp, "abc".to_owned(), 5)).await;
    assert_eq!((&c.e, c.len.as_str(), c.rng), (&CE::Tcp, "abc", 5));
    let to_c = Ref::new(c.uuid);
    let many = lab.create(&Many::new(1, 1, 1, 1, -1, 0.5, to_c, BTreeSet::from([to_c]))).await;
    assert_eq!((many.c7, many.c8), (to_c, BTreeSet::from([to_c])));
    for wrong in [
        C::new(CE::default(), "abc".to_owned(), 5),
        C::new(CE::Tcp, String::new(), 5),
        C::new(CE::Tcp, "abc".to_owned(), 0),
    ] {
        let refused = lab.client.create(&wrong).await;
        assert!(matches!(refused, Err(TransactError::Build(_))), "{wrong:?}: {refused:?}");
    }
}

#[tokio::test]
async fn values_of_every_kind_are_read_back() {
    let lab = Lab::new().await;
    let mut transaction = lab.client.transaction();
    let name =
        Names { r#match: "m".to_owned(), a_b: "a_b".to_owned(), a_b_2: "aB".to_owned(), ..Names::default() };
    let name = transaction.create(&name);
    let collections = Collections {
        strong: BTreeSet::from([name]),
        by_name: BTreeMap::from([("n".to_owned(), name)]),
        ..Collections::default()
    };
    transaction.create(&collections);
    let enums = Enums {
        name: EnumsName::V802_1ad,
        only: Some(EnumsOnly::EnumsOnly),
        several: BTreeSet::from([EnumsSeveral::Down, EnumsSeveral::Up]),
        ..Enums::default()
    };
    transaction.create(&enums);
    lab.client.transact(transaction).await.expect("committed");
    let snapshot = lab.client.snapshot();
    let name: Names = snapshot.models().expect("rows").remove(0);
    assert_eq!((name.r#match.as_str(), name.a_b.as_str(), name.a_b_2.as_str()), ("m", "a_b", "aB"));
    let to_name = Ref::new(name.uuid);
    let read: Collections = snapshot.models().expect("rows").remove(0);
    assert_eq!(read.strong, BTreeSet::from([to_name]));
    assert_eq!(read.by_name, BTreeMap::from([("n".to_owned(), to_name)]));
    let read: Enums = snapshot.models().expect("rows").remove(0);
    assert_eq!(Enums { uuid: Uuid::nil(), ..read }, enums);
}
