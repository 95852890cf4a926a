//! Models as files.
//!
//! Invariant: a file whose content is what it should be is not touched, so that nothing is compiled anew for it.

use crate::error::CodegenError;
use crate::plan::Database;
use crate::text::{self, Source};
use std::fs;
use std::io;
use std::path::Path;

/// The models of a database.
#[derive(Clone, Debug)]
pub struct Models {
    database: Database,
}

/// A file of a folder of models.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its name in the folder.
    pub name: String,
    /// Its content.
    pub text: String,
}

impl Models {
    pub(crate) fn new(database: Database) -> Self {
        Models { database }
    }

    /// All models in one text, each table's in a module of its own; for `include!`.
    pub fn single_file(&self) -> String {
        let mut out = Source::new(0);
        // No doc comment of the whole: it could not be included.
        text::database_docs(&self.database).iter().for_each(|line| out.line(&format!("// {line}")));
        out.line("");
        // Attributes of the whole could not be included either.
        text::constants(&self.database, &[text::ALLOWED_TO_ITEMS], &mut out);
        let mut whole = out.finish();
        for table in &self.database.tables {
            let mut head = Source::new(0);
            head.line("");
            head.docs("///", &text::module_docs(table));
            head.line(&format!("#[{}]", text::ALLOWED_TO_ITEMS));
            head.line(&format!("#[{}]", text::ALLOWED_TO_MODULES));
            head.line(&format!("pub mod {} {{", table.module));
            let mut body = Source::new(1);
            text::module(table, &mut body);
            whole.push_str(&head.finish());
            whole.push_str(&body.finish());
            whole.push_str("}\n");
            whole.push_str(&format!("#[{}]\npub use {}::*;\n", text::ALLOWED_TO_EXPORTS, table.module));
        }
        whole
    }

    /// The files of a folder: `mod.rs`, and one per table.
    pub fn files(&self) -> Vec<SourceFile> {
        let mut root = Source::new(0);
        root.docs("//!", &text::database_docs(&self.database));
        root.line("");
        for allowed in [text::ALLOWED_TO_ALL, text::ALLOWED_TO_MODULES] {
            root.line(&format!("#![{allowed}]"));
        }
        root.line("");
        text::constants(&self.database, &[], &mut root);
        let mut files = Vec::with_capacity(self.database.tables.len() + 1);
        for table in &self.database.tables {
            root.line("");
            root.line(&format!("pub mod {};", table.module));
            root.line(&format!("pub use {}::*;", table.module));
            let mut module = Source::new(0);
            module.docs("//!", &text::module_docs(table));
            module.line("");
            text::module(table, &mut module);
            files.push(SourceFile { name: format!("{}.rs", table.module), text: module.finish() });
        }
        files.insert(0, SourceFile { name: "mod.rs".to_owned(), text: root.finish() });
        files
    }

    /// Writes [`single_file`](Self::single_file).
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_file(&self, path: &Path) -> Result<(), CodegenError> {
        write(path, &self.single_file())
    }

    /// Writes [`files`](Self::files) to a folder, which is made if need be. Other files in it stay.
    ///
    /// # Errors
    /// The folder or a file cannot be written.
    pub fn write_dir(&self, dir: &Path) -> Result<(), CodegenError> {
        fs::create_dir_all(dir).map_err(|source| CodegenError::Write { path: dir.to_owned(), source })?;
        self.files().iter().try_for_each(|file| write(&dir.join(&file.name), &file.text))
    }
}

fn write(path: &Path, text: &str) -> Result<(), CodegenError> {
    let failed = |source| CodegenError::Write { path: path.to_owned(), source };
    match fs::read(path) {
        Ok(old) if old == text.as_bytes() => return Ok(()),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    fs::write(path, text).map_err(failed)
}
