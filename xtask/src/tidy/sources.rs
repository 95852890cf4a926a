//! Rules about single files: what a module opens with, how long it may be, what must not be left in it.
//!
//! The length of functions is clippy's (`too_many_lines` with the bound in clippy.toml), which reads Rust; these rules
//! read lines.

use super::{Finding, files::Files};

/// Lines a Rust file may have. Beyond that it asks to be split.
const FILE_LINES_MAX: usize = 800;
/// Notes to oneself belong into an issue. In two halves, so that this file passes its own rule.
const LEFTOVERS: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];
/// Folders of the machine that something was written on; they mean nothing on another.
const MACHINE_PATHS: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];
/// A test that is not run proves nothing.
const IGNORED: &str = concat!("#[ig", "nore");

/// Checks every file.
pub(super) fn check(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in files.with_extension("rs") {
        check_rust(path, text, &mut findings);
    }
    // The licences and the lock file are other people's text.
    let ours = |path: &str| !path.starts_with("LICENSE") && path != "Cargo.lock";
    for (path, text) in files.text().filter(|(path, _)| ours(path)) {
        check_leftovers(path, text, &mut findings);
    }
    findings
}

fn check_rust(path: &str, text: &str, findings: &mut Vec<Finding>) {
    let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    if path.contains("src/") && !first.starts_with("//!") {
        findings.push(Finding::new(path, 1, "does not open with `//!`: what is the module for?"));
    }
    let count = text.lines().count();
    if count > FILE_LINES_MAX {
        findings.push(Finding::new(path, 0, format!("{count} lines; at most {FILE_LINES_MAX}")));
    }
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with(IGNORED) {
            findings.push(Finding::new(path, number + 1, "an ignored test"));
        }
    }
}

fn check_leftovers(path: &str, text: &str, findings: &mut Vec<Finding>) {
    for (number, line) in text.lines().enumerate() {
        for leftover in LEFTOVERS {
            if has_word(line, leftover) {
                findings.push(Finding::new(path, number + 1, format!("{leftover}: do it or file an issue")));
            }
        }
        for machine_path in MACHINE_PATHS {
            if has_path(line, machine_path) {
                findings.push(Finding::new(
                    path,
                    number + 1,
                    format!("{machine_path} is on one machine only"),
                ));
            }
        }
    }
}

/// Whether a word stands alone in a line, so that a name that merely holds it is no finding.
fn has_word(line: &str, word: &str) -> bool {
    let part_of_a_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        !line[..start].ends_with(part_of_a_word) && !line[start + word.len()..].starts_with(part_of_a_word)
    })
}

/// Whether an absolute path begins in a line; the middle of a longer path or of a URL is no finding.
fn has_path(line: &str, prefix: &str) -> bool {
    let part_of_a_path = |c: char| c.is_alphanumeric() || "._-~}$)".contains(c);
    line.match_indices(prefix).any(|(start, _)| !line[..start].ends_with(part_of_a_path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(path: &str, text: &str) -> Vec<String> {
        check(&Files::made_of(&[(path, text)])).iter().map(Finding::to_string).collect()
    }

    #[test]
    fn a_module_says_what_it_is_for() {
        let problem = "a/src/m.rs:1: does not open with `//!`: what is the module for?";
        assert_eq!(problems("a/src/m.rs", "use std::fmt;\n"), [problem]);
        assert!(problems("a/src/m.rs", "\n//! Good.\n").is_empty());
        assert!(problems("a/tests/t.rs", "use std::fmt;\n").is_empty());
    }

    #[test]
    fn a_file_is_no_longer_than_its_bound() {
        let text = "//! Long.\n".repeat(FILE_LINES_MAX);
        assert!(problems("a/src/m.rs", &text).is_empty());
        let problem = format!("a/src/m.rs: {} lines; at most {FILE_LINES_MAX}", FILE_LINES_MAX + 1);
        assert_eq!(problems("a/src/m.rs", &(text + "//! One more.\n")), [problem]);
    }

    #[test]
    fn leftovers_are_words_and_paths_begin_somewhere() {
        let [note, _] = LEFTOVERS;
        let [_, path, _] = MACHINE_PATHS;
        assert_eq!(problems("a.md", &format!("x\n{note}: more\n")).len(), 1);
        assert!(problems("a.md", &format!("MAS{note}N\n")).is_empty());
        assert_eq!(problems("a.toml", &format!("dir = \"{path}x\"\n")).len(), 1);
        assert!(problems("a.toml", &format!("dir = \"the{path}x\"\n")).is_empty());
    }

    #[test]
    fn an_ignored_test_is_found() {
        let text = format!("//! M.\n    {IGNORED}]\nfn f() {{}}\n");
        assert_eq!(problems("a/src/m.rs", &text), ["a/src/m.rs:2: an ignored test"]);
    }
}
