//! `cowslip bench` runs, measures both servers, prints a table and leaves nothing behind. No time is asserted here: that
//! is what the benches are for.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::process::Command;

/// Runs a measurement with its temporary files in a directory of this test; gives the lines of its table.
fn rows(args: &[&str]) -> Vec<Vec<String>> {
    let dir = tempfile::Builder::new().prefix("cow").tempdir_in("/tmp").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cowslip"))
        .args(["bench", "ovsdb"])
        .args(args)
        .env("TMPDIR", dir.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{args:?}: {text}\n{errors}\n(`cargo xtask peers` installs what is missing)"
    );
    assert!(text.contains("UTC, ") && text.contains("bench ovsdb"), "{text}");
    let left: Vec<_> = std::fs::read_dir(dir.path()).unwrap().collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    let lines = text.lines().filter(|line| line.starts_with("| ")).skip(2);
    lines.map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()).collect()
}

#[test]
fn transactions_of_both_servers() {
    for durable in [&[][..], &["--durable"]] {
        let mut args = vec!["transact", "--seconds", "0.05", "--rounds", "1", "--shapes", "1x1,2x3"];
        args.extend(durable);
        let rows = rows(&args);
        assert_eq!(rows.len(), 4 * 2 * 2, "{rows:?}");
        for row in rows {
            assert!(row[3].parse::<f64>().is_ok_and(|rate| rate > 0.0), "{row:?}");
            assert_eq!(row[7].ends_with(" x"), row[2] == "cowslip", "{row:?}");
        }
    }
}

#[test]
fn dumps_of_both_servers() {
    let rows = rows(&["dump", "--rows", "700", "--clients", "1,3"]);
    let sizes: Vec<&String> = rows.iter().map(|row| &row[3]).collect();
    assert!(rows.len() == 4 && sizes.iter().all(|size| *size == sizes[0]), "{rows:?}");
}

#[test]
fn nonsense_is_refused() {
    for args in
        [&["transact", "--shapes", "0x1"][..], &["dump", "--clients", "0"], &["transact", "--seconds", "0"]]
    {
        let status =
            Command::new(env!("CARGO_BIN_EXE_cowslip")).args(["bench", "ovsdb"]).args(args).output().unwrap();
        assert!(!status.status.success(), "{args:?}");
    }
}
