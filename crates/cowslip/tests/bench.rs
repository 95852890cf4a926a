//! `cowslip bench` runs, measures all servers, prints a table and leaves nothing behind. No time is asserted here: that
//! is what the benches are for.
#![forbid(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::process::Command;

/// Runs a measurement with its temporary files in a directory of this test; gives the lines of its table.
fn rows(protocol: &str, args: &[&str]) -> Vec<Vec<String>> {
    let dir = tempfile::Builder::new().prefix("cow").tempdir_in("/tmp").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_cowslip"))
        .args(["bench", protocol])
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
    assert!(text.contains("UTC, ") && text.contains(&format!("bench {protocol}")), "{text}");
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
        let rows = rows("ovsdb", &args);
        assert_eq!(rows.len(), 4 * 2 * 2, "{rows:?}");
        for row in rows {
            assert!(row[3].parse::<f64>().is_ok_and(|rate| rate > 0.0), "{row:?}");
            assert_eq!(row[7].ends_with(" x"), row[2] == "cowslip", "{row:?}");
        }
    }
}

#[test]
fn dumps_of_both_servers() {
    let rows = rows("ovsdb", &["dump", "--rows", "700", "--clients", "1,3"]);
    let sizes: Vec<&String> = rows.iter().map(|row| &row[3]).collect();
    assert!(rows.len() == 4 && sizes.iter().all(|size| *size == sizes[0]), "{rows:?}");
}

/// Column by column: the load, its shape, the server, its rate; then its errors.
#[test]
fn loads_of_all_directory_servers() {
    let loads = [
        ("modrate", "slapd,389ds,cowslip,floor"),
        ("searchrate", "slapd,389ds,cowslip"),
        ("bindrate", "slapd,389ds,cowslip"),
        ("addrate", "slapd,389ds,cowslip"),
        ("deleterate", "slapd,389ds,cowslip"),
        ("mixed", "cowslip"),
        ("floor", "floor"),
    ];
    for (load, servers) in loads {
        let mut args = vec![load, "--duration", "0.1", "--warm-up", "0", "--connections", "3"];
        args.extend(["--entries", "200", "--against", servers]);
        let rows = rows("ldap", &args);
        let measured: Vec<&str> = rows.iter().map(|row| row[2].as_str()).collect();
        assert_eq!(measured.join(","), servers, "{load}: {rows:?}");
        for row in &rows {
            assert!(row[3].parse::<f64>().is_ok_and(|rate| rate > 0.0), "{load}: {row:?}");
            assert_eq!(row[15], "0", "{load}: {row:?}");
        }
    }
}

#[test]
fn directory_loads_are_written_as_json() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("results");
    let json = file.to_str().unwrap();
    let args =
        ["searchrate", "--entries", "20", "--duration", "0.05", "--connections", "1,2", "--json", json];
    assert_eq!(rows("ldap", &args).len(), 2);
    let text = std::fs::read_to_string(&file).unwrap();
    let objects: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 2, "{text}");
    for (object, connections) in objects.iter().zip([1.0, 2.0]) {
        assert_eq!(object["connections"].as_f64(), Some(connections), "{object}");
        assert!(object["operations"].as_f64().is_some_and(|count| count > 0.0), "{object}");
        // Each search found its entry. Those that were under way when the load ended count as well.
        assert_eq!(object["entries"], object["operations"], "{object}");
    }
}

#[test]
fn nonsense_is_refused() {
    for args in [
        &["ovsdb", "transact", "--shapes", "0x1"][..],
        &["ovsdb", "dump", "--clients", "0"],
        &["ovsdb", "transact", "--seconds", "0"],
        &["ldap", "modrate", "--connections", "0"],
        &["ldap", "searchrate", "--against", "floor"],
        &["ldap", "bindrate", "--pipeline", "2"],
        &["ldap", "modrate", "--entry-dn", "uid=nobody"],
        &["ldap", "deleterate", "--connections", "1,2"],
    ] {
        let status = Command::new(env!("CARGO_BIN_EXE_cowslip")).arg("bench").args(args).output().unwrap();
        assert!(!status.status.success(), "{args:?}");
    }
}
