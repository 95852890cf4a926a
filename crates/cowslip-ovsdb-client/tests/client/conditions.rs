//! Filters with "or": in look-ups, in monitors, and in operations, where they are several.

use crate::support::{BOTH, Peer, SCHEMA, map, text};
use crate::tap::Tap;
use cowslip_ovsdb_client::*;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::json;
use std::collections::BTreeSet;

#[derive(Clone, Debug, Model)]
#[ovsdb(table = "Plain", columns = "PlainColumns")]
struct Plain {
    uuid: Uuid,
    name: String,
    v: i64,
}

fn v(n: i64) -> Filter {
    Filter::all().equal("v", &n)
}

fn name(name: &str) -> Filter {
    Filter::all().equal("name", name)
}

/// Rows of every combination that the filters ask about.
async fn fill(client: &Client) {
    let mut tx = client.transaction();
    for n in 0..36_i64 {
        let members = map(&[("k", &(n % 2).to_string()), ("other", "x")]);
        let columns = [
            ("name", text(&format!("n{}", n / 12))),
            ("v", (n / 3 % 4).to_datum()),
            ("m", if n % 3 == 2 { map(&[]) } else { members }),
            ("o", if n % 3 == 0 { text("there") } else { Datum::EMPTY }),
        ];
        tx.insert("Plain", columns);
    }
    client.transact(tx).await.unwrap();
}

/// What a requirement means, told in another way than the client does.
type Meaning = fn(&RowView<'_>, i64) -> bool;

/// A requirement with this number in it.
type Requirement = fn(i64) -> Filter;

const REQUIREMENTS: [(Requirement, Meaning); 7] = [
    (v, |row, n| row.value::<i64>("v").unwrap() == n),
    (|n| name(&format!("n{n}")), |row, n| row.value::<String>("name").unwrap() == format!("n{n}")),
    (|n| Filter::all().test("v", Function::Less, &n), |row, n| row.value::<i64>("v").unwrap() < n),
    (|n| Filter::all().not_equal("v", &n), |row, n| row.value::<i64>("v").unwrap() != n),
    (
        |n| Filter::all().includes("m", &map(&[("k", &n.to_string())])),
        |row, n| row.datum("m").unwrap().value(&Atom::string("k")) == Some(&Atom::string(n.to_string())),
    ),
    (|_| Filter::all().equal("o", "there"), |row, _| row.datum("o").unwrap().len() == 1),
    (|n| if n == 0 { Filter::all() } else { Filter::none() }, |_, n| n == 0),
];

/// "And" and "or" of requirements by their numbers.
#[derive(Clone, Debug)]
enum Tree {
    Requirement(usize, i64),
    And(Vec<Tree>),
    Or(Vec<Tree>),
}

impl Tree {
    fn filter(&self) -> Filter {
        match self {
            Tree::Requirement(which, n) => (REQUIREMENTS[*which].0)(*n),
            Tree::And(trees) => trees.iter().fold(Filter::all(), |filter, tree| filter.and(tree.filter())),
            Tree::Or(trees) => Filter::any_of(trees.iter().map(Tree::filter)),
        }
    }

    fn holds(&self, row: &RowView<'_>) -> bool {
        match self {
            Tree::Requirement(which, n) => (REQUIREMENTS[*which].1)(row, *n),
            Tree::And(trees) => trees.iter().all(|tree| tree.holds(row)),
            Tree::Or(trees) => trees.iter().any(|tree| tree.holds(row)),
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let requirement = (0..REQUIREMENTS.len(), 0..4_i64).prop_map(|(which, n)| Tree::Requirement(which, n));
    requirement.prop_recursive(3, 16, 3, |inner| {
        let some = prop::collection::vec(inner, 0..4);
        prop_oneof![some.clone().prop_map(Tree::And), some.prop_map(Tree::Or)]
    })
}

fn found(snapshot: &Snapshot, filter: &Filter) -> BTreeSet<Uuid> {
    let rows = snapshot.list("Plain", filter).unwrap();
    let unique: BTreeSet<Uuid> = rows.iter().map(RowView::uuid).collect();
    assert_eq!(unique.len(), rows.len(), "no row is given twice: {filter:?}");
    unique
}

/// Look-ups by index and by scan find what the filter means, its alternatives find it too, and so does the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_filters_find_what_they_mean() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let indexed = peer
            .builder()
            .monitor(Monitor::everything())
            .index(Index::secondary("Plain", "v,name").column("v").column("name"))
            .index(Index::secondary("Plain", "name").column("name"))
            .index(Index::secondary("Plain", "k").map_key("m", "k"))
            .connect()
            .await
            .unwrap();
        fill(&indexed).await;
        let plain = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        let mut runner = TestRunner::deterministic();
        let (mut by_index, mut is_or) = (0, 0);
        for _ in 0..200 {
            let tree = tree().new_tree(&mut runner).unwrap().current();
            let filter = tree.filter();
            let snapshot = indexed.snapshot();
            let rows = snapshot.rows("Plain").unwrap();
            let wanted: BTreeSet<Uuid> = rows.filter(|row| tree.holds(row)).map(|row| row.uuid()).collect();
            assert_eq!(found(&snapshot, &filter), wanted, "{kind:?} {tree:?}");
            assert_eq!(found(&plain.snapshot(), &filter), wanted, "{kind:?} {tree:?}");
            let alternatives = filter.alternatives();
            let each =
                alternatives.iter().flat_map(|filter| found(&snapshot, filter)).collect::<BTreeSet<_>>();
            assert_eq!(each, wanted, "{kind:?} {tree:?}");
            by_index += u32::from(matches!(
                snapshot.explain("Plain", &filter).unwrap(),
                Explanation::ByIndex { .. } | Explanation::EachOf(_)
            ));
            let mut tx = plain.transaction();
            for filter in &alternatives {
                tx.select("Plain", filter, &["_uuid"]);
            }
            let results = plain.transact(tx).await.unwrap();
            let rows = (0..alternatives.len()).flat_map(|at| results.rows(at).unwrap());
            let selected: BTreeSet<Uuid> =
                rows.map(|row| *row["_uuid"].as_one().unwrap().as_uuid().unwrap()).collect();
            assert_eq!(selected, wanted, "{kind:?}: the server about {tree:?}");
            is_or += u32::from(alternatives.len() > 1);
        }
        assert!(by_index > 10 && is_or > 20, "{by_index} by index, {is_or} with an or");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typed_conditions_are_joined_by_or() {
    let peer = Peer::start(BOTH[0], SCHEMA).await;
    let client = peer
        .builder()
        .monitor(Monitor::everything())
        .index(Index::secondary("Plain", "name").column("name"))
        .connect()
        .await
        .unwrap();
    fill(&client).await;
    let either = PlainColumns::NAME.equal("n0").or(PlainColumns::NAME.equal("n2"));
    let low = either.clone().and(PlainColumns::V.less(2));
    let snapshot = client.snapshot();
    let by_name = Explanation::ByIndex { index: "name".to_string() };
    let explained = snapshot.explain("Plain", low.filter()).unwrap();
    assert_eq!(explained, Explanation::EachOf(vec![by_name.clone(), by_name]));
    let models = snapshot.find_models(&low).unwrap();
    assert!(models.iter().all(|row| row.name != "n1" && row.v < 2));
    assert_eq!(models.len(), 12);

    // An operation cannot have it, and says what can be done.
    let mut tx = client.transaction();
    tx.delete_rows(&low);
    let error = client.transact(tx).await.unwrap_err();
    assert!(matches!(error, TransactError::Build(BuildError::Disjunction { .. })), "{error:?}");
    assert!(error.to_string().contains("alternatives"), "{error}");
    let mut tx = client.transaction();
    for rows in low.alternatives() {
        tx.delete_rows(&rows);
    }
    let results = client.transact(tx).await.unwrap();
    assert_eq!((results.count(0), results.count(1)), (Some(6), Some(6)));
    assert!(client.snapshot().find_models(&low).unwrap().is_empty());
    assert_eq!(client.snapshot().len("Plain"), 24);
}

/// A monitor's clauses are joined by "or", on the wire and in what the cache holds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn monitors_take_or_and_nothing_else() {
    for kind in BOTH {
        let peer = Peer::start(kind, SCHEMA).await;
        let writer = peer.builder().monitor(Monitor::everything()).connect().await.unwrap();
        fill(&writer).await;
        let tap = Tap::new(&peer);
        let either = v(1).or(name("n2"));
        let monitor = Monitor::nothing().table("Plain").rows("Plain", either.clone());
        let client = tap.builder().monitor(monitor).connect().await.unwrap();
        let wanted = found(&writer.snapshot(), &either);
        assert_eq!(found(&client.snapshot(), &Filter::all()), wanted, "{kind:?}");
        assert!(!client.snapshot().has_all_rows("Plain"));
        let mut acknowledged = client.conditions_acknowledged();
        let other = either.clone().or(v(3)).or(Filter::none());
        let number = client.set_filter("Plain", Some(other.clone())).unwrap();
        acknowledged.wait_for(|n| *n >= number).await.unwrap();
        assert_eq!(found(&client.snapshot(), &Filter::all()), found(&writer.snapshot(), &other));
        let wheres = [tap.requests("monitor_cond_since"), tap.requests("monitor_cond_change")];
        let wheres = wheres.map(|requests| requests.last().unwrap()[2]["Plain"][0]["where"].clone());
        assert_eq!(
            wheres,
            [
                json!([["v", "==", 1], ["name", "==", "n2"]]),
                json!([["v", "==", 1], ["name", "==", "n2"], ["v", "==", 3], false])
            ]
        );
        // All rows, as an alternative, is all rows.
        let number = client.set_filter("Plain", Some(either.or(Filter::all()))).unwrap();
        acknowledged.wait_for(|n| *n >= number).await.unwrap();
        assert!(client.snapshot().has_all_rows("Plain"));
        assert_eq!(client.snapshot().len("Plain"), 36);

        let both = || v(1).and(name("n2"));
        let error = client.set_filter("Plain", Some(both())).unwrap_err();
        assert_eq!(error, BuildError::Conjunction { table: "Plain".to_string() });
        let monitor = Monitor::nothing().table("Plain").rows("Plain", v(0)).rows("Plain", both());
        let error = peer.builder().monitor(monitor).start().unwrap_err();
        assert!(matches!(error, ClientError::Unknown(BuildError::Conjunction { .. })), "{error}");
    }
}
