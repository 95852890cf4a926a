//! Several databases over one connection, of our server and the real one: each has its cache, its transactions and its
//! fate.

use crate::process::{PATIENCE, Process, control, create, wait_for};
use crate::support::{BOTH, Kind, text};
use cowslip_engine::storage::FileSystem;
use cowslip_net::address::{Endpoint, Remote};
use cowslip_ovsdb::schema::Schema;
use cowslip_ovsdb_client::*;
use cowslip_ovsdb_server::{Server, ServerOptions, file};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const VSWITCH: &str = "/usr/share/openvswitch/vswitch.ovsschema";
const NORTH: &str = "/usr/share/ovn/ovn-nb.ovsschema";

/// A server with the databases `vswitch` and `north` in its directory, served or not.
struct Servers {
    kind: Kind,
    ours: Option<Server>,
    real: Option<Process>,
    directory: TempDir,
}

impl Servers {
    async fn start(kind: Kind, files: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        for (file, schema) in [("vswitch", VSWITCH), ("north", NORTH)] {
            let schema = std::fs::read_to_string(schema);
            let schema = schema.expect("a schema is missing: run `cargo xtask peers`");
            match kind {
                Kind::Real => create(directory.path(), file, &schema),
                Kind::Ours => {
                    let schema = Schema::parse(schema.as_bytes()).unwrap();
                    file::create(&FileSystem::new(), &directory.path().join(file), &schema).unwrap();
                }
            }
        }
        let mut servers = Servers { kind, ours: None, real: None, directory };
        servers.serve(files).await;
        servers
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    async fn serve(&mut self, files: &[&str]) {
        let socket = self.path().join("sock");
        match self.kind {
            Kind::Ours => {
                self.ours = Some(Server::start(ServerOptions::default()).await.unwrap());
                for file in files {
                    self.add(file).await;
                }
                let remote = Remote::Listen(Endpoint::Unix(socket));
                self.ours.as_ref().unwrap().add_remote(&remote).await.unwrap();
            }
            Kind::Real => {
                let _ = std::fs::remove_file(&socket);
                let mut arguments = vec![format!("--remote=punix:{}", socket.display())];
                arguments.extend(files.iter().map(|file| (*file).to_string()));
                self.real = Some(Process::start(self.path(), &arguments));
                wait_for(|| socket.exists().then_some(())).await;
            }
        }
    }

    async fn restart(&mut self) {
        if let Some(server) = self.ours.take() {
            server.stop().await.unwrap();
        }
        self.real = None;
        self.serve(&["vswitch", "north"]).await;
    }

    async fn add(&self, file: &str) {
        let path = self.path().join(file);
        match &self.ours {
            Some(server) => drop(server.add_file(Arc::new(FileSystem::new()), &path).await.unwrap()),
            None => control(self.path(), &["ovsdb-server/add-db", &path.display().to_string()]),
        }
    }

    async fn remove(&self, database: &str) {
        match &self.ours {
            Some(server) => server.remove_database(database).await.unwrap(),
            None => control(self.path(), &["ovsdb-server/remove-db", database]),
        }
    }

    fn builder(&self, database: &str) -> ClientBuilder {
        let endpoint = format!("unix:{}", self.path().join("sock").display());
        Client::builder(database).endpoint(&endpoint).with(|o| {
            o.backoff_min = Duration::from_millis(5);
            o.backoff_max = Duration::from_millis(50);
        })
    }

    /// A client of each database, over one connection.
    async fn both(&self) -> (Client, Client) {
        let monitor = Monitor::nothing().table("Bridge").table("Open_vSwitch");
        let vswitch = self.builder("Open_vSwitch").monitor(monitor).connect().await.unwrap();
        let north = north_of(&vswitch).connect().await.unwrap();
        (vswitch, north)
    }
}

fn north_of(client: &Client) -> ClientBuilder {
    client
        .database("OVN_Northbound")
        .monitor(Monitor::nothing().table("Logical_Switch"))
        .validation(Validation::All)
}

async fn insert_switch(north: &Client, name: &str) {
    let mut tx = north.transaction();
    let row = tx.insert("Logical_Switch", [("name", text(name))]);
    let results = north.transact(tx).await.unwrap();
    assert!(north.snapshot().row("Logical_Switch", results.uuid(row)).is_some());
}

async fn insert_bridge(vswitch: &Client, name: &str) {
    let mut tx = vswitch.transaction();
    let bridge = tx.insert("Bridge", [("name", text(name))]);
    // The table's only row, which keeps the bridge.
    if vswitch.snapshot().is_empty("Open_vSwitch") {
        tx.insert("Open_vSwitch", [("bridges", bridge.to_datum())]);
    } else {
        tx.mutate("Open_vSwitch", &Filter::all(), [("bridges", Mutator::Insert, bridge.to_datum())]);
    }
    let results = vswitch.transact(tx).await.unwrap();
    assert!(vswitch.snapshot().row("Bridge", results.uuid(bridge)).is_some());
}

async fn wait_until(client: &Client, what: impl Fn(&State) -> bool) {
    let mut states = client.states();
    let found = tokio::time::timeout(PATIENCE, states.wait_for(what)).await;
    assert!(found.is_ok(), "{:?}", client.state());
}

fn is_without_database(state: &State) -> bool {
    matches!(state, State::Waiting { reason, .. } if reason.contains("database"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_has_its_own_content_and_transactions() {
    for kind in BOTH {
        let servers = Servers::start(kind, &["vswitch", "north"]).await;
        let (vswitch, north) = servers.both().await;
        if let Some(server) = &servers.ours {
            assert_eq!(server.session_count(), 1);
        }
        let switches = async {
            for n in 0..100 {
                insert_switch(&north, &format!("s{n}")).await;
            }
        };
        let bridges = async {
            for n in 0..50 {
                insert_bridge(&vswitch, &format!("b{n}")).await;
            }
        };
        tokio::join!(switches, bridges);
        assert_eq!((vswitch.snapshot().len("Bridge"), north.snapshot().len("Logical_Switch")), (50, 100));
        assert_eq!((vswitch.counts().sent, north.counts().sent), (50, 100), "{kind:?}");
        assert_eq!(&*vswitch.snapshot().schema().name, "Open_vSwitch");
        assert!(!north.snapshot().has_table("Bridge"));

        // A filter changes for one of them.
        let mut acknowledged = north.conditions_acknowledged();
        let wanted = north.set_filter("Logical_Switch", Some(Filter::all().equal("name", "s7"))).unwrap();
        acknowledged.wait_for(|number| *number >= wanted).await.unwrap();
        assert_eq!((vswitch.snapshot().len("Bridge"), north.snapshot().len("Logical_Switch")), (50, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_follow_a_server_that_is_restarted() {
    for kind in BOTH {
        let mut servers = Servers::start(kind, &["vswitch", "north"]).await;
        let (vswitch, north) = servers.both().await;
        for round in 1..=5_u64 {
            insert_bridge(&vswitch, &format!("b{round}")).await;
            insert_switch(&north, &format!("s{round}")).await;
            servers.restart().await;
            for client in [&vswitch, &north] {
                wait_until(client, |state| state.is_live() && client.counts().connections > round).await;
            }
            // Somebody else's writes arrive in both.
            let (others_vswitch, others_north) = servers.both().await;
            insert_bridge(&others_vswitch, &format!("c{round}")).await;
            insert_switch(&others_north, &format!("t{round}")).await;
            let rows = usize::try_from(2 * round).unwrap();
            let is_here = || {
                let (bridges, switches) = (vswitch.snapshot(), north.snapshot());
                let is_all = (bridges.len("Bridge"), switches.len("Logical_Switch")) == (rows, rows);
                is_all.then_some(())
            };
            wait_for(is_here).await;
        }
        assert_eq!((vswitch.counts().resyncs, north.counts().resyncs), (0, 0), "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_not_there_disturbs_no_other() {
    for kind in BOTH {
        let servers = Servers::start(kind, &["vswitch"]).await;
        let vswitch = servers.builder("Open_vSwitch").monitor(Monitor::everything()).connect().await.unwrap();
        let north = north_of(&vswitch).start().unwrap();
        wait_until(&north, is_without_database).await;
        insert_bridge(&vswitch, "while it is missing").await;

        for round in 0..3 {
            servers.add("north").await;
            wait_until(&north, State::is_live).await;
            assert_eq!(north.snapshot().len("Logical_Switch"), round);
            insert_switch(&north, &format!("s{round}")).await;
            servers.remove("OVN_Northbound").await;
            wait_until(&north, is_without_database).await;
            let mut tx = north.transaction();
            tx.insert("Logical_Switch", [("name", text("nowhere"))]);
            assert!(matches!(north.transact(tx).await, Err(TransactError::Disconnected)), "{kind:?}");
            insert_bridge(&vswitch, &format!("b{round}")).await;
        }
        assert_eq!((vswitch.counts().connections, vswitch.counts().resyncs), (1, 0), "{kind:?}");
        assert_eq!(vswitch.snapshot().len("Bridge"), 4);
    }
}

/// Whose name is a text, really.
#[derive(Debug, model::Model)]
#[ovsdb(table = "Logical_Switch")]
struct Misfit {
    uuid: Uuid,
    name: i64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_does_not_fit_disturbs_no_other() {
    for kind in BOTH {
        let servers = Servers::start(kind, &["vswitch", "north"]).await;
        let vswitch = servers.builder("Open_vSwitch").monitor(Monitor::everything()).connect().await.unwrap();
        let monitor = Monitor::nothing().model::<Misfit>();
        match vswitch.database("OVN_Northbound").monitor(monitor).connect().await {
            Err(ClientError::Schema { mismatches }) => assert_eq!(mismatches.len(), 1),
            other => panic!("{kind:?}: {other:?}"),
        }
        insert_bridge(&vswitch, "b").await;
        assert_eq!(vswitch.counts().connections, 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_connection_lives_as_long_as_its_last_client() {
    for kind in BOTH {
        let servers = Servers::start(kind, &["vswitch", "north"]).await;
        let (vswitch, north) = servers.both().await;
        // The first one goes, and the second one's connection stays.
        drop(vswitch);
        insert_switch(&north, "a").await;
        // The same database twice over one connection, too.
        let again = north_of(&north).connect().await.unwrap();
        assert_eq!(again.snapshot().len("Logical_Switch"), 1, "{kind:?}");
        insert_switch(&again, "b").await;
        wait_for(|| (north.snapshot().len("Logical_Switch") == 2).then_some(())).await;
        again.close();
        wait_until(&again, |state| *state == State::Closed).await;
        insert_switch(&north, "c").await;
        assert_eq!((north.counts().connections, north.counts().resyncs), (1, 0));
        north.close();
        wait_until(&north, |state| *state == State::Closed).await;
        assert!(matches!(north_of(&north).start(), Err(ClientError::Closed)));
        if let Some(server) = &servers.ours {
            wait_for(|| (server.session_count() == 0).then_some(())).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_belongs_to_all_clients_of_the_connection() {
    for kind in BOTH {
        let servers = Servers::start(kind, &["vswitch", "north"]).await;
        let (vswitch, north) = servers.both().await;
        let (_, stranger) = servers.both().await;
        let (mut first, mut second) = (vswitch.lock("l"), north.lock("l"));
        for owned in [&mut first, &mut second] {
            owned.wait_for(|owned| *owned).await.unwrap();
        }
        let mut others = stranger.lock("l");
        // It stays while one of them wants it.
        vswitch.unlock("l");
        let mut tx = north.transaction();
        tx.assert_lock("l");
        tx.insert("Logical_Switch", [("name", text("owned"))]);
        north.transact(tx).await.unwrap();
        assert!(!*others.borrow(), "{kind:?}");
        drop(north);
        let passed_on = tokio::time::timeout(PATIENCE, others.wait_for(|owned| *owned)).await;
        assert!(passed_on.is_ok(), "{kind:?}: the lock goes with the last client that wants it");
        insert_bridge(&vswitch, "and the connection goes on").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_takes_so_many_databases() {
    let servers = Servers::start(Kind::Ours, &["vswitch", "north"]).await;
    let vswitch = servers.builder("Open_vSwitch").start().unwrap();
    let clients: Vec<Client> = (1..DATABASES_MAX).map(|_| north_of(&vswitch).start().unwrap()).collect();
    assert!(matches!(north_of(&vswitch).start(), Err(ClientError::Databases { limit: DATABASES_MAX })));
    for client in &clients {
        client.ready().await.unwrap();
    }
    drop(clients);
    wait_for(|| north_of(&vswitch).start().ok()).await;
    let own_endpoint = vswitch.database("OVN_Northbound").endpoint("tcp:127.0.0.1:1").start();
    assert!(matches!(own_endpoint, Err(ClientError::Endpoint { .. })));
}
