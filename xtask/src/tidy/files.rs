//! The workspace's text files, read once for all rules.
//!
//! Invariants: paths are relative to the root, with `/` between names, in alphabetical order; nothing that cargo or the
//! servers made is among them; a file that is not UTF-8 is listed without its text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::process::Failure;

/// What is never part of the sources. In a further worktree `.git` is a file.
const SKIPPED: [&str; 4] = [".git", "target", "cowslip-data", "__pycache__"];

/// Every file by its path; `None` for those that are not text.
pub(super) struct Files(BTreeMap<String, Option<String>>);

impl Files {
    /// Reads everything below `root`.
    pub(super) fn read(root: &Path) -> Result<Files, Failure> {
        let mut files = BTreeMap::new();
        read_dir(root, "", &mut files)?;
        Ok(Files(files))
    }

    /// Files made up for a test.
    #[cfg(test)]
    pub(super) fn made_of(files: &[(&str, &str)]) -> Files {
        Files(files.iter().map(|(path, text)| ((*path).to_owned(), Some((*text).to_owned()))).collect())
    }

    /// The text files whose name ends in `.extension`.
    pub(super) fn with_extension<'a>(
        &'a self,
        extension: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        let has_it = move |path: &str| path.rsplit_once('.').is_some_and(|(_, end)| end == extension);
        self.text().filter(move |(path, _)| has_it(path))
    }

    /// All text files.
    pub(super) fn text(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// The text of one file.
    pub(super) fn text_of(&self, path: &str) -> Option<&str> {
        self.0.get(path)?.as_deref()
    }

    /// Whether a path names a file or a folder with files in it.
    pub(super) fn contains(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        self.0.contains_key(path)
            || self.0.range(folder.clone()..).next().is_some_and(|(next, _)| next.starts_with(&folder))
    }
}

fn read_dir(root: &Path, dir: &str, files: &mut BTreeMap<String, Option<String>>) -> Result<(), Failure> {
    let path = root.join(dir);
    let failed = |source| Failure::File { path: path.clone(), source };
    for entry in fs::read_dir(&path).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let inner = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
        let kind = entry.file_type().map_err(failed)?;
        if SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if kind.is_dir() {
            read_dir(root, &inner, files)?;
        } else if kind.is_file() {
            let bytes = fs::read(entry.path());
            let bytes = bytes.map_err(|source| Failure::File { path: entry.path(), source })?;
            files.insert(inner, String::from_utf8(bytes).ok());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_exist_through_their_files() {
        let files = Files::made_of(&[("docs/a.md", ""), ("docs-old/b.md", "")]);
        assert!(files.contains("docs") && files.contains("docs/a.md"));
        assert!(!files.contains("doc") && !files.contains("docs/b.md"));
    }
}
