//! What is generated from `cases.ovsschema`: the files in `cases/`, byte by byte, and how they behave.
//!
//! After a change of the generator, `COWSLIP_UPDATE=1 cargo test -p cowslip-ovsdb-codegen` writes the files anew; their
//! difference is then what to review.

use cowslip_ovsdb_client::model::{Atom, Datum, IntoDatum, Model, Real, Scalar, Uuid};
use cowslip_ovsdb_client::{Filter, Function};
use cowslip_ovsdb_codegen::{CodegenError, Generator};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs;
use std::path::Path;

// Formatted as everyone's rustfmt does it, not as this workspace's.
#[rustfmt::skip]
mod cases;

use cases::{
    C, CE, Collections, Enums, EnumsLimitsKey, EnumsLimitsValue, EnumsName, EnumsNumber, EnumsOnly,
    EnumsSeveral, Many, Names,
};

const SCHEMA: &[u8] = include_bytes!("cases.ovsschema");

fn generator() -> Generator {
    Generator::new(SCHEMA).expect("a good schema")
}

#[test]
fn the_generated_files_are_those_in_the_folder() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let models = generator().generate().expect("models");
    if std::env::var_os("COWSLIP_UPDATE").is_some() {
        models.write_dir(&dir).expect("written");
    }
    let mut names: Vec<String> = Vec::new();
    for file in models.files() {
        let found = fs::read_to_string(dir.join(&file.name)).unwrap_or_default();
        assert_eq!(found, file.text, "{}", file.name);
        names.push(file.name);
    }
    let listing = fs::read_dir(&dir).expect("the folder").flatten();
    let listing: BTreeSet<String> = listing.map(|entry| entry.file_name().to_string_lossy().into()).collect();
    assert_eq!(listing, names.into_iter().collect());
}

#[test]
fn two_runs_give_equal_bytes_and_leave_files_alone() {
    let dir = tempfile::tempdir().expect("a folder");
    let (first, second) = (generator().generate().expect("models"), generator().generate().expect("models"));
    assert_eq!(first.files(), second.files());
    assert_eq!(first.single_file(), second.single_file());
    let path = dir.path().join("models.rs");
    first.write_file(&path).expect("written");
    let written = fs::metadata(&path).and_then(|m| m.modified()).expect("a time");
    second.write_file(&path).expect("written");
    assert_eq!(fs::metadata(&path).and_then(|m| m.modified()).expect("a time"), written);
}

#[test]
fn raw_names_are_kept_in_the_columns() {
    let columns: Vec<&str> = Names::columns().iter().map(|column| column.name).collect();
    let raw = ["IPv6__addresses_", "Self", "aB", "a_b", "async", "crate", "match", "self", "type", "uuid"];
    assert_eq!(columns, raw);
    assert_eq!(cases::LoadBalancer::TABLE, "LoadBalancer");
    assert_eq!(cases::LoadBalancer2::TABLE, "Load_Balancer");
    assert_eq!(cases::StringRow::TABLE, "String");
    assert_eq!(cases::Mod::TABLE, "Mod");
    assert_eq!((cases::DATABASE, cases::SCHEMA_VERSION), ("Cases", "1.2.3"));
    let named = Names { a_b: "lower".to_owned(), a_b_2: "upper".to_owned(), ..Names::default() };
    assert!(named.to_row().contains(&("aB", Datum::One(Atom::string("upper")))));
    assert!(named.to_row().contains(&("a_b", Datum::One(Atom::string("lower")))));
}

/// Checks that each atom is read as something of its own, and written back as it was.
fn round_trips<T: Scalar + Debug + Ord + Clone>(atoms: &[Atom], is_unrecognized: fn(&T) -> bool) {
    let read = |atom: &Atom| T::from_atom(atom).unwrap_or_else(|| panic!("{atom} is not read"));
    let values: BTreeSet<T> = atoms.iter().map(read).collect();
    assert_eq!(values.len(), atoms.len(), "{values:?}");
    for (atom, value) in atoms.iter().map(|atom| (atom, read(atom))) {
        assert!(!is_unrecognized(&value), "{atom}");
        assert_eq!(value.to_atom(), *atom);
    }
}

#[test]
fn enums_round_trip_every_value() {
    let texts = |texts: &[&str]| -> Vec<Atom> { texts.iter().map(|text| Atom::string(*text)).collect() };
    let names =
        ["", "802.1ad", "dot1q-tunnel", "a b", "a-b", "é", "`", "+", "-", "Self", "unrecognized", "TCP"];
    round_trips::<EnumsName>(&texts(&names), |value| matches!(value, EnumsName::Unrecognized(_)));
    round_trips::<EnumsOnly>(&texts(&["enums_only"]), |value| matches!(value, EnumsOnly::Unrecognized(_)));
    let numbers: Vec<Atom> = [-1, 0, 7, 1000].map(Atom::Integer).to_vec();
    round_trips::<EnumsNumber>(&numbers, |value| matches!(value, EnumsNumber::Unrecognized(_)));
}

#[test]
fn values_of_newer_servers_are_kept() {
    let new = Atom::string("sctp");
    let read = CE::from_atom(&new);
    assert_eq!(read, Some(CE::Unrecognized("sctp".to_owned())));
    assert_eq!(read.map(|value| value.to_atom()), Some(new));
    assert_eq!(EnumsNumber::from_atom(&Atom::Integer(8)), Some(EnumsNumber::Unrecognized(8)));
    assert_eq!(EnumsNumber::from_atom(&Atom::string("8")), None);
}

#[test]
fn the_constructor_asks_for_what_has_no_legal_default() {
    let row = C::new(CE::Tcp, "abc".to_owned(), 5);
    assert_eq!((row.oe, row.rr, row.uuid), (None, 0.0, Uuid::nil()));
    let many = Many::new(1, 1, 1, 1, -1, 0.5, Uuid::nil().into(), BTreeSet::new());
    assert_eq!(many.c5, -1);
    assert_eq!(Enums::default().name, EnumsName::Empty);
    assert_eq!(Enums::default().number, EnumsNumber::V0);
}

#[test]
fn collections_that_need_a_member_begin_with_the_default_one() {
    let row = Collections::default();
    assert!(row.strong.is_empty() && row.weak.is_empty() && row.by_name.is_empty());
    assert_eq!(row.some, BTreeSet::from([0]));
    assert_eq!(row.pair, BTreeMap::from([(String::new(), false)]));
    assert_eq!(row.reals, BTreeSet::from([Real::ZERO]));
    assert_eq!(
        row.by_real.to_datum(),
        Datum::from_pairs(vec![(Atom::Real(Real::ZERO), Atom::Real(Real::ZERO))])
    );
}

#[test]
fn enums_are_elements_keys_and_values() {
    let row = Enums {
        several: BTreeSet::from([EnumsSeveral::Up, EnumsSeveral::Unrecognized("testing".to_owned())]),
        limits: BTreeMap::from([(EnumsLimitsKey::Rate, EnumsLimitsValue::V2)]),
        only: Some(EnumsOnly::EnumsOnly),
        ..Enums::default()
    };
    let written: BTreeMap<&str, Datum> = row.to_row().into_iter().collect();
    assert_eq!(written["several"], Datum::from_atoms(vec![Atom::string("testing"), Atom::string("up")]));
    assert_eq!(written["limits"], Datum::from_pairs(vec![(Atom::string("rate"), Atom::Integer(2))]));
    assert_eq!(written["only"], Datum::One(Atom::string("enums_only")));
    assert_eq!(written["yes"], Datum::EMPTY);
}

#[test]
fn columns_are_there_for_typed_conditions_and_changes() {
    use cases::{CColumns, NamesColumns};
    let row = CColumns::RNG.greater(3).and(CColumns::E.equal(CE::Udp));
    assert_eq!(*row.filter(), Filter::all().test("rng", Function::Greater, &3).equal("e", &CE::Udp));
    assert_eq!((NamesColumns::TYPE.name(), NamesColumns::A_B_2.name()), ("type", "aB"));
    assert_eq!((NamesColumns::UUID.name(), NamesColumns::UUID_2.name()), ("_uuid", "uuid"));
}

#[test]
fn a_selection_changes_no_name() {
    let some = generator().select("Load_Balancer").select("Collections:weak,strong").select("Names:aB");
    let models = some.generate().expect("models");
    let files: Vec<String> = models.files().into_iter().map(|file| file.name).collect();
    assert_eq!(files, ["mod.rs", "collections.rs", "load_balancer.rs", "names.rs"]);
    let text = models.single_file();
    for there in [
        "pub struct LoadBalancer2 {",
        "pub a_b_2: String,",
        "BTreeSet<Ref<super::Names>>",
        "weak: BTreeSet<Uuid>",
    ] {
        assert!(text.contains(there), "{there} in {text}");
    }
    assert!(!text.contains("by_name"));
    let reading = generator().select("C:oe").generate().expect("models").single_file();
    assert!(reading.contains("an insertion also has to give `e`, `len` and `rng`."), "{reading}");
}

#[test]
fn what_the_schema_has_not_cannot_be_selected() {
    let refused = |select: &str| generator().select(select).generate().expect_err(select);
    assert!(matches!(refused("Nmaes"), CodegenError::UnknownTable { table, .. } if table == "Nmaes"));
    assert!(matches!(refused("Names:typ"), CodegenError::UnknownColumn { column, .. } if column == "typ"));
    assert!(matches!(refused("Names:"), CodegenError::UnknownColumn { column, .. } if column.is_empty()));
    assert!(refused("C:x").to_string().ends_with("has no column x; it has: e, len, oe, rng, rr"));
    assert!(generator().select("C:_uuid,e").generate().is_ok());
}

#[test]
fn illegal_names_are_refused() {
    for (table, column) in [("_t", "c"), ("T", "_c"), ("T", "a-b"), ("T", "r#x"), ("1", "c"), ("T", "")] {
        let schema = format!(
            r#"{{"name":"D","tables":{{"{table}":{{"columns":{{"{column}":{{"type":"string"}}}}}}}}}}"#
        );
        let refused = Generator::new(schema.as_bytes());
        assert!(matches!(refused, Err(CodegenError::Schema { .. })), "{table}.{column}");
    }
}
