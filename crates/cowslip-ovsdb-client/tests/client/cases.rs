//! The list of cases in `tests/README.md`: every test that it names is there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The cases of the kinds that belong to the client.
const CASES: [&str; 18] = [
    "CLI-01", "CLI-02", "CLI-03", "CLI-04", "CLI-06", "CLI-08", "CLI-09", "CLI-10", "CLI-12", "CLI-13",
    "CLI-14", "CLI-15", "CLI-16", "GEN-01", "GEN-02", "GEN-04", "GEN-05", "GEN-07",
];

#[test]
fn every_case_has_a_test_that_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = fs::read_to_string(root.join("tests/README.md")).unwrap();
    let mut missing: BTreeSet<&str> = CASES.into();
    let mut named = 0;
    for line in text.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let case = cells[1];
        if !case.contains('-') || case.starts_with('-') {
            continue;
        }
        missing.remove(case);
        let quoted: Vec<&str> =
            line.split('`').skip(1).step_by(2).filter(|words| words.contains('/')).collect();
        assert!(!quoted.is_empty(), "{case} names no file");
        for words in quoted {
            let (file, test) = words.split_once("::").unwrap_or((words, ""));
            let source = fs::read_to_string(root.join("..").join(file));
            let source = source.unwrap_or_else(|error| panic!("{case}: {file}: {error}"));
            let wanted = if test.is_empty() { case.to_string() } else { format!("fn {test}(") };
            assert!(source.contains(&wanted), "{case}: {file} has no {wanted}");
            named += 1;
        }
    }
    assert!(missing.is_empty(), "cases that nobody speaks of: {missing:?}");
    assert!(named > CASES.len());
}
