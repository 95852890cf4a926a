//! `cowslip codegen`, as its user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const SCHEMA: &str = r#"{"name": "Pets", "version": "1.0.0", "tables": {
    "Cat": {"columns": {"name": {"type": "string"}, "age": {"type": "integer"}}},
    "Dog": {"columns": {"name": {"type": "string"}}}
}}"#;

fn codegen(dir: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cowslip"));
    command.current_dir(dir).arg("codegen").args(arguments).output().expect("cowslip runs")
}

fn stage() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("pets.ovsschema"), SCHEMA).expect("a schema");
    dir
}

#[test]
fn a_folder_gets_a_file_per_table() {
    let dir = stage();
    let output = codegen(dir.path(), &["pets.ovsschema", "-o", "pets/models"]);
    assert!(output.status.success(), "{output:?}");
    assert!(output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    let read = |name: &str| fs::read_to_string(dir.path().join("pets/models").join(name)).expect(name);
    assert!(read("mod.rs").contains("pub mod cat;") && read("cat.rs").contains("pub struct Cat {"));
    assert!(read("dog.rs").contains("pub struct Dog {"));
}

#[test]
fn tables_and_columns_are_chosen_and_printed() {
    let dir = stage();
    let output = codegen(dir.path(), &["pets.ovsschema", "--table", "Cat:name", "-o", "-"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("pub name: String,") && !text.contains("pub age") && !text.contains("Dog"),
        "{text}"
    );
    let again = codegen(dir.path(), &["pets.ovsschema", "-t", "Cat:name"]);
    assert_eq!(again.stdout, output.stdout);
}

#[test]
fn what_is_wrong_is_said_in_a_line() {
    let dir = stage();
    fs::write(dir.path().join("bad.ovsschema"), r#"{"name": "D", "tables": {"_t": {}}}"#).expect("a schema");
    for (arguments, message) in [
        (&["nowhere"] as &[&str], "cannot read nowhere: No such file"),
        (&["bad.ovsschema"], "names beginning with \"_\" are reserved"),
        (&["pets.ovsschema", "-t", "Cow"], "has no table Cow; it has: Cat, Dog"),
        (&["pets.ovsschema", "-t", "Cat:tail"], "has no column tail; it has: age, name"),
        (&["pets.ovsschema", "-o", "pets.ovsschema/x"], "cannot write pets.ovsschema/x: "),
    ] {
        let output = codegen(dir.path(), arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.starts_with("cowslip codegen: ") && error.contains(message), "{arguments:?}: {error}");
    }
}
