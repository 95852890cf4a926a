//! Links in the documentation: what a relative link names is there, and so is the heading behind a `#`.
//!
//! Links to other sites are not followed: a check must not fail because someone else's server is down.

use super::{Finding, files::Files};

/// Checks every Markdown file, and that the commands CI runs are the ones the README tells people.
pub(super) fn check(files: &Files) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in files.with_extension("md") {
        for (line, target) in targets(text) {
            if let Some(problem) = problem_of(files, path, &target) {
                findings.push(Finding::new(path, line, problem));
            }
        }
    }
    findings.extend(check_test_command(files));
    findings
}

/// The README promises a command for the tests; CI must prove that very command.
fn check_test_command(files: &Files) -> Vec<Finding> {
    const COMMAND: &str = "cargo xtask test";
    let lacks_it = |path: &&str| {
        !files.text_of(path).is_some_and(|text| text.lines().any(|line| line.trim().starts_with(COMMAND)))
    };
    let places = [".ci/run", "README.md"].into_iter().filter(lacks_it);
    places.map(|path| Finding::new(path, 0, format!("does not give the command `{COMMAND}`"))).collect()
}

fn problem_of(files: &Files, path: &str, target: &str) -> Option<String> {
    let has_scheme = target.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    if has_scheme {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if file.is_empty() { path.to_owned() } else { resolved(path, file)? };
    if !file.is_empty() && !files.contains(&file) {
        return Some(format!("the link `{target}` leads nowhere"));
    }
    let headings = files.text_of(&file).filter(|_| file.ends_with(".md") && !anchor.is_empty())?;
    let is_there =
        lines_outside_fences(headings).any(|(_, line)| slug_of_heading(line).as_deref() == Some(anchor));
    (!is_there).then(|| format!("the link `{target}` names no heading of {file}"))
}

/// A link's file as a path from the root; none if it leaves the workspace, which a web view may resolve.
fn resolved(path: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

/// The links of a text with their lines: `[text](target)` and `[name]: target`.
fn targets(text: &str) -> Vec<(usize, String)> {
    let mut targets = Vec::new();
    for (number, line) in lines_outside_fences(text) {
        let line = without_code(line);
        for (start, _) in line.match_indices("](") {
            let rest = &line[start + 2..];
            let end = rest.find([')', ' ']).unwrap_or(rest.len());
            targets.push((number, rest[..end].to_owned()));
        }
        let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: "));
        if let Some((_, target)) = definition {
            targets.push((number, target.split(' ').next().unwrap_or_default().to_owned()));
        }
    }
    targets
}

/// Numbered lines that are not inside a fenced block of code.
fn lines_outside_fences(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_inside = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        let is_fence = line.trim_start().starts_with("```");
        is_inside ^= is_fence;
        (!is_inside && !is_fence).then_some((index + 1, line))
    })
}

/// A line without what stands between backticks.
fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect::<Vec<_>>().join("")
}

/// The anchor that web views give a heading: lower case, blanks as dashes, punctuation dropped.
fn slug_of_heading(line: &str) -> Option<String> {
    let title = line.trim_start_matches('#');
    if title.len() == line.len() || !title.starts_with(' ') {
        return None;
    }
    let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    Some(kept.collect::<String>().to_lowercase().replace(' ', "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(files: &[(&str, &str)]) -> Vec<String> {
        let files = Files::made_of(files);
        check(&files).iter().filter(|one| one.line > 0).map(Finding::to_string).collect()
    }

    #[test]
    fn a_link_must_lead_somewhere() {
        let text = "[a](docs/a.md) [b](docs/b.md#why-not) [c](https://example.org/c) `[d](e)`\n\n[f]: ./g.md";
        let files = [("README.md", text), ("docs/a.md", "# A"), ("docs/b.md", "## Why not?")];
        assert_eq!(problems(&files), ["README.md:3: the link `./g.md` leads nowhere"]);
    }

    #[test]
    fn an_anchor_must_name_a_heading() {
        let files =
            [("docs/a.md", "# One, two\n```\n# not a heading\n```\n[x](#one-two) [y](#not-a-heading)\n")];
        assert_eq!(
            problems(&files),
            ["docs/a.md:5: the link `#not-a-heading` names no heading of docs/a.md"]
        );
    }

    #[test]
    fn links_are_relative_to_their_file() {
        let files =
            [("docs/a.md", "[up](../README.md) [dir](../docs) [out](../../issues)"), ("README.md", "")];
        assert!(problems(&files).is_empty());
    }

    #[test]
    fn ci_runs_what_the_readme_says() {
        let files = Files::made_of(&[("README.md", "cargo xtask test\n"), (".ci/run", "cargo test\n")]);
        let findings = check_test_command(&files);
        assert_eq!(findings, [Finding::new(".ci/run", 0, "does not give the command `cargo xtask test`")]);
    }
}
