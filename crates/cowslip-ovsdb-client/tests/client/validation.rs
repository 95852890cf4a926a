//! Validation: what passes, what is refused with nothing sent, guards, races.

use crate::support::{BOTH, Kind, Peer, SCHEMA, map, text};
use cowslip_ovsdb_client::*;

fn key(value: &str) -> Datum {
    map(&[("key", value)])
}

/// A client with a primary index on one key of a map, and one on rows that only live while they are referred to.
async fn client(peer: &Peer) -> Client {
    peer.builder()
        .monitor(Monitor::everything())
        .index(Index::primary("Plain", "by_key").map_key("m", "key"))
        .index(Index::primary("Port", "by_key").map_key("external_ids", "key"))
        .validation(Validation::All)
        .connect()
        .await
        .unwrap()
}

async fn insert(client: &Client, value: &str) -> Uuid {
    let mut tx = client.transaction();
    let id = tx.insert("Plain", [("m", key(value))]);
    client.transact(tx).await.unwrap().uuid(id)
}

/// Expects a duplicate key to be refused with nothing sent.
async fn refused(client: &Client, tx: Transaction) -> Refusal {
    let sent = client.counts().sent;
    let refusal = match client.transact(tx).await {
        Err(TransactError::Refused(refusal)) => *refusal,
        other => panic!("{other:?}"),
    };
    assert_eq!(client.counts().sent, sent, "a refused transaction is not sent");
    refusal
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_may_move_within_a_transaction() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let client = client(&peer).await;
        let (a, b) = (insert(&client, "a").await, insert(&client, "b").await);
        let mut tx = client.transaction();
        tx.delete("Plain", &Filter::uuid(a));
        let c = tx.insert("Plain", [("m", key("a"))]);
        let c = client.transact(tx).await.unwrap().uuid(c);
        let mut tx = client.transaction();
        tx.update("Plain", &Filter::uuid(b), [("m", key("a"))]);
        tx.update("Plain", &Filter::uuid(c), [("m", key("b"))]);
        client.transact(tx).await.unwrap();
        let snapshot = client.snapshot();
        let holder = snapshot.find("Plain", "by_key", &[text("a")]).unwrap().next().unwrap().uuid();
        assert_eq!(holder, b, "{kind:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_collected_row_frees_its_key() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let client = client(&peer).await;
        let mut tx = client.transaction();
        let port = tx.insert("Port", [("external_ids", key("p"))]);
        tx.insert("Bridge", [("name", text("br")), ("ports", port.to_datum())]);
        client.transact(tx).await.unwrap();
        // The old port goes because nothing refers to it any more; nobody deletes it.
        let mut tx = client.transaction();
        let port = tx.insert("Port", [("external_ids", key("p"))]);
        tx.update("Bridge", &Filter::all().equal("name", "br"), [("ports", port.to_datum())]);
        client.transact(tx).await.unwrap_or_else(|e| panic!("{kind:?}: {e}"));
        assert_eq!(client.snapshot().len("Port"), 1);
        // The same with the old port kept is a duplicate.
        let mut tx = client.transaction();
        let port = tx.insert("Port", [("external_ids", key("p"))]);
        tx.mutate(
            "Bridge",
            &Filter::all().equal("name", "br"),
            [("ports", Mutator::Insert, port.to_datum())],
        );
        let refusal = refused(&client, tx).await;
        assert_eq!(refusal.duplicate.unwrap().table, "Port");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn duplicates_are_refused_with_nothing_sent() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let client = client(&peer).await;
        let (a, b) = (insert(&client, "a").await, insert(&client, "b").await);
        let mut tx = client.transaction();
        tx.mutate(
            "Plain",
            &Filter::uuid(b),
            [("m", Mutator::Delete, text("key")), ("m", Mutator::Insert, key("a"))],
        );
        let refusal = refused(&client, tx).await;
        let mut rows = [a, b];
        rows.sort();
        let duplicate = refusal.duplicate.unwrap();
        assert_eq!((duplicate.table.as_str(), duplicate.index.as_str()), ("Plain", "by_key"), "{kind:?}");
        assert_eq!((&duplicate.key[..], &duplicate.rows[..]), (&[text("a")][..], &rows[..]));
        assert_eq!(refusal.generation, client.snapshot().generation());

        let mut tx = client.transaction();
        tx.update("Plain", &Filter::all(), [("m", key("c"))]);
        refused(&client, tx).await;
        let mut tx = client.transaction();
        tx.insert("Plain", [("m", key("a"))]);
        assert!(client.dry_run(&tx).unwrap().refusal.is_some());
        refused(&client, tx).await;
        // Not validated, the server takes it, and the client tells that a key is held twice.
        let mut duplicates = client.duplicates();
        let mut tx = client.transaction().validated(Validation::Off);
        tx.insert("Plain", [("m", key("a"))]);
        client.transact(tx).await.unwrap();
        assert_eq!(duplicates.recv().await.unwrap().rows.len(), 2);
        // Other broken rules are refused, too: of the operations, and of the end.
        let mut tx = client.transaction();
        tx.comment("a comment first");
        tx.mutate("Plain", &Filter::uuid(a), [("v", Mutator::Divide, 0_i64.to_datum())]);
        assert_eq!(refused(&client, tx).await.operation, Some(1));
        let mut tx = client.transaction();
        tx.insert("Bridge", [("name", text("x")), ("ports", Uuid::from_u128(1).to_datum())]);
        assert_eq!(refused(&client, tx).await.error.kind.tag(), "referential integrity violation");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_shows_what_would_be() {
    let peer = Peer::start(Kind::Ours, SCHEMA).await;
    let client = client(&peer).await;
    let a = insert(&client, "a").await;
    let mut tx = client.transaction();
    tx.update("Plain", &Filter::uuid(a), [("v", 9_i64.to_datum())]);
    tx.insert("Plain", [("m", key("b"))]);
    let sent = client.counts().sent;
    let dry = client.dry_run(&tx).unwrap();
    assert!(dry.refusal.is_none() && dry.is_certain);
    assert_eq!(dry.changes.len(), 2);
    assert_eq!(dry.after.row("Plain", a).unwrap().value::<i64>("v").unwrap(), 9);
    assert_eq!((dry.after.len("Plain"), client.snapshot().len("Plain")), (2, 1));
    assert_eq!(client.counts().sent, sent);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partial_knowledge_refuses_only_what_is_seen() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let all = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let seen = peer
            .builder()
            .monitor(
                Monitor::nothing().columns("Plain", ["v"]).rows("Plain", Filter::all().equal("v", &1_i64)),
            )
            .index(Index::primary("Plain", "by_key").map_key("m", "key"))
            .validation(Validation::All)
            .connect()
            .await
            .unwrap();
        let mut tx = all.transaction();
        tx.insert("Plain", [("m", key("seen")), ("v", 1_i64.to_datum())]);
        tx.insert("Plain", [("m", key("hidden")), ("v", 2_i64.to_datum())]);
        tx.insert("Bridge", [("name", text("hidden"))]);
        all.transact(tx).await.unwrap();
        seen.generation(1).await.unwrap();
        while seen.snapshot().is_empty("Plain") {
            tokio::task::yield_now().await;
        }
        let mut tx = seen.transaction();
        tx.insert("Plain", [("m", key("seen"))]);
        refused(&seen, tx).await;
        let mut tx = seen.transaction();
        tx.insert("Plain", [("m", key("hidden"))]);
        seen.transact(tx).await.unwrap_or_else(|e| panic!("{kind:?}: {e}"));
        // The server knows better.
        let mut tx = seen.transaction();
        tx.insert("Bridge", [("name", text("hidden"))]);
        assert!(matches!(seen.transact(tx).await, Err(TransactError::Failed(_))));
        let mut tx = seen.transaction();
        tx.update("Plain", &Filter::all().equal("name", "unknown"), [("v", 5_i64.to_datum())]);
        seen.transact(tx).await.unwrap();
    }
}

/// `Kid` needs a row of `Root` that it refers to weakly, and lives as long as one refers to it strongly. Names of kids are
/// unique.
const KIN: &str = r#"{"name":"T","tables":{
 "Root":{"isRoot":true,"columns":{"name":{"type":"string"},
   "kids":{"type":{"key":{"type":"uuid","refTable":"Kid"},"min":0,"max":"unlimited"}}}},
 "Kid":{"indexes":[["name"]],"columns":{"name":{"type":"string"},
   "root":{"type":{"key":{"type":"uuid","refTable":"Root","refType":"weak"},"min":1,"max":"unlimited"}}}}}}"#;

/// Adds operations that the server accepts, given a row of `Root`.
type Harmless = fn(&mut Transaction, Uuid);

fn nobody() -> Datum {
    Uuid::from_u128(0xdead).to_datum()
}

/// What a client that does not see `Root.kids` might take for a broken rule, and is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn references_that_are_not_known_break_no_rule() {
    let cases: [(&str, Harmless); 5] = [
        ("a row that nothing refers to is collected before its own references are looked at", |tx, _| {
            tx.insert("Kid", [("root", nobody())]);
        }),
        ("a new row's column is known, whatever the cache knows of it", |tx, _| {
            let row = tx.insert("Root", [("kids", nobody())]);
            tx.mutate("Root", &Filter::uuid(row), [("kids", Mutator::Delete, nobody())]);
        }),
        ("a row that is referred to stays", |tx, row| {
            let kid = tx.insert("Kid", [("name", text("kid")), ("root", row.to_datum())]);
            tx.update("Root", &Filter::uuid(row), [("kids", kid.to_datum())]);
        }),
        ("a row that is no longer referred to is collected, and its key is free", |tx, row| {
            let kid = tx.insert("Kid", [("name", text("kid")), ("root", row.to_datum())]);
            tx.update("Root", &Filter::uuid(row), [("kids", kid.to_datum())]);
        }),
        ("what an update wrote to a column that is not known, a mutation can take away", |tx, row| {
            tx.update("Root", &Filter::uuid(row), [("kids", nobody())]);
            tx.mutate("Root", &Filter::uuid(row), [("kids", Mutator::Delete, nobody())]);
            tx.update("Root", &Filter::uuid(row), [("name", text("childless"))]);
        }),
    ];
    for kind in BOTH {
        let peer = Peer::start(kind, KIN).await;
        let partial = Monitor::nothing().columns("Root", ["name"]).table("Kid");
        let partial = peer.builder().monitor(partial).validation(Validation::All).connect().await.unwrap();
        let mut tx = partial.transaction();
        let row = tx.insert("Root", [("name", text("row"))]);
        let row = partial.transact(tx).await.unwrap().uuid(row);
        for (what, make) in &cases {
            let mut tx = partial.transaction();
            make(&mut tx, row);
            partial.transact(tx).await.unwrap_or_else(|error| panic!("{kind:?}: {what}: {error}"));
        }
        // A new row's column is known for what is wrong, too.
        let mut tx = partial.transaction();
        tx.insert("Root", [("kids", nobody())]);
        refused(&partial, tx).await;
        assert_eq!((partial.snapshot().len("Root"), partial.snapshot().len("Kid")), (2, 0), "{kind:?}");
    }
}

/// Two clients insert the same keys at once; gives how many keys are held twice.
async fn race(peer: &Peer, keys: usize, guarded: bool) -> usize {
    let clients = [client(peer).await, client(peer).await];
    let mut won = 0;
    for n in 0..keys {
        let attempts = clients.iter().map(|client| {
            let client = client.clone();
            tokio::spawn(async move {
                let mut tx = client.transaction().guarded(guarded);
                tx.insert("Plain", [("m", key(&format!("k{n}")))]);
                client.transact(tx).await
            })
        });
        let mut losers = 0;
        for attempt in attempts.collect::<Vec<_>>() {
            match attempt.await.unwrap() {
                Ok(_) => won += 1,
                Err(TransactError::Duplicate(duplicate)) => {
                    assert!(guarded);
                    assert_eq!((duplicate.table.as_str(), duplicate.index.as_str()), ("Plain", "by_key"));
                    losers += 1;
                }
                Err(TransactError::Refused(_)) => losers += 1,
                Err(other) => panic!("{other}"),
            }
        }
        assert!(losers < 2, "one of the two wins");
    }
    won - keys
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_guards_catch_races() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        assert_eq!(race(&peer, 1000, true).await, 0, "{kind:?}: no duplicates with guards");
        let peer = Peer::start(kind, SCHEMA).await;
        let twice = race(&peer, 1000, false).await;
        assert!(twice > 0, "{kind:?}: without guards the race is lost at times");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guards_let_keys_move() {
    let peer = Peer::start(Kind::Real, SCHEMA).await;
    let client = client(&peer).await;
    let (a, b) = (insert(&client, "a").await, insert(&client, "b").await);
    let mut tx = client.transaction().guarded(true);
    tx.update("Plain", &Filter::uuid(a), [("m", key("b"))]);
    let at = tx.update("Plain", &Filter::uuid(b), [("m", key("a"))]);
    let results = client.transact(tx).await.unwrap();
    assert_eq!(results.count(at), Some(1), "guards do not shift the results");
}

const KEYS: u64 = 12;

/// One of many things that take, free and move keys.
fn anything(client: &Client, random: &mut u64) -> Transaction {
    let mut below = |limit: u64| {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*random >> 33) % limit
    };
    let snapshot = client.snapshot();
    let mut tx = client.transaction();
    let rows: Vec<Uuid> = snapshot.rows("Plain").unwrap().map(|row| row.uuid()).collect();
    let bridges: Vec<Uuid> = snapshot.rows("Bridge").unwrap().map(|row| row.uuid()).collect();
    let a_key = |n: u64| key(&format!("k{n}"));
    let pick = |rows: &[Uuid], n: u64| Filter::uuid(rows[n as usize % rows.len()]);
    match below(8) {
        0 | 1 => {
            tx.insert("Plain", [("m", a_key(below(KEYS)))]);
        }
        2 if !rows.is_empty() => {
            // Not validated, and yet others' verdicts have to count with it.
            tx = tx.validated(Validation::Off);
            tx.delete("Plain", &pick(&rows, below(100)));
        }
        3 if rows.len() > 1 => {
            let (a, b) = (below(100), below(100));
            tx.update("Plain", &pick(&rows, a), [("m", a_key(below(KEYS)))]);
            tx.update("Plain", &pick(&rows, b), [("m", a_key(below(KEYS)))]);
        }
        4 if !rows.is_empty() => {
            tx.delete("Plain", &pick(&rows, below(100)));
            tx.insert("Plain", [("m", a_key(below(KEYS)))]);
        }
        5 => {
            let port = tx.insert("Port", [("external_ids", a_key(below(KEYS)))]);
            let name = format!("br{}", below(KEYS));
            tx.insert("Bridge", [("name", text(&name)), ("ports", port.to_datum())]);
        }
        6 if !bridges.is_empty() => {
            let port = tx.insert("Port", [("external_ids", a_key(below(KEYS)))]);
            tx.update("Bridge", &pick(&bridges, below(100)), [("ports", port.to_datum())]);
        }
        _ if !bridges.is_empty() => {
            tx = tx.validated(Validation::Off);
            tx.delete("Bridge", &pick(&bridges, below(100)));
        }
        _ => {
            tx.insert("Plain", [("m", a_key(below(KEYS)))]);
        }
    }
    tx
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lone_client_sends_nothing_that_fails_however_it_pipelines() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let client = client(&peer).await;
        let mut duplicates = client.duplicates();
        let tasks: Vec<_> = (0..16_u64)
            .map(|n| {
                let client = client.clone();
                tokio::spawn(async move {
                    let (mut random, mut applied) = (n, 0);
                    for _ in 0..250 {
                        let tx = anything(&client, &mut random);
                        match client.transact(tx).await {
                            Ok(_) => applied += 1,
                            Err(TransactError::Refused(_)) => {}
                            Err(other) => panic!("{kind:?}: sent and failed: {other}"),
                        }
                    }
                    applied
                })
            })
            .collect();
        let mut applied = 0;
        for task in tasks {
            applied += task.await.unwrap();
        }
        assert!(duplicates.try_recv().is_err(), "{kind:?}: a key was held twice");
        assert!(applied > 500 && client.counts().refused > 100, "{kind:?}: {:?}", client.counts());
        println!("{kind:?}: {applied} applied; {:?}", client.counts());
    }
}
