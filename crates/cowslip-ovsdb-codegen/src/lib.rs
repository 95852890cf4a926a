//! Rust models of the tables of an OVSDB schema.
//!
//! A [`Generator`] takes a schema and gives [`Models`]: one module per table, in it a struct that derives the client's
//! `Model`, beside it `…Columns` with a constant per column for typed conditions and changes, and an enum for each
//! column whose values the schema lists. Docs say what the schema says: limits, what a
//! reference refers to, indexes, whether a column may change. The code needs the crate `cowslip-ovsdb-client`.
//!
//! # In a build script
//!
//! ```no_run
//! use cowslip_ovsdb_codegen::Generator;
//! use std::path::Path;
//!
//! fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let schema = "schemas/ovn-nb.ovsschema";
//!     println!("cargo::rerun-if-changed={schema}");
//!     let out = std::env::var("OUT_DIR")?;
//!     let models = Generator::from_file(Path::new(schema))?
//!         .select("Logical_Switch")
//!         .select("Logical_Switch_Port:name,type,addresses")
//!         .generate()?;
//!     models.write_file(&Path::new(&out).join("northbound.rs"))?;
//!     Ok(())
//! }
//! ```
//!
//! The crate then holds `mod northbound { include!(concat!(env!("OUT_DIR"), "/northbound.rs")); }`. From the command
//! line, `cowslip codegen SCHEMA -o DIR` writes a folder to be checked in.
//!
//! # What becomes of a column
//!
//! | the column holds | the field's type |
//! | --- | --- |
//! | one value | `i64`, `f64`, `bool`, `String`, `Uuid` |
//! | one of a list of strings or integers | an enum, which keeps a value that is not on the list |
//! | a reference to a table that is generated, too | `Ref<Table>` |
//! | at most one value | `Option<…>` |
//! | a set | `BTreeSet<…>`; of reals `BTreeSet<Real>` |
//! | a map | `BTreeMap<…, …>` |
//!
//! A struct whose every column has a default that the schema allows implements `Default`; any other one has `new`,
//! which asks for the columns that an insertion has to give. A server may lack any of the columns; they read as their
//! defaults then.
//!
//! # Names
//!
//! `Logical_Switch` becomes the struct `LogicalSwitch` in the module `logical_switch`; a column that is a keyword becomes
//! a raw identifier (`r#type`). If two names become one identifier, the one that needed no change keeps it and the
//! others get a number, in the order of their names in the *whole* schema: choosing fewer tables changes no name.
//!
//! Invariant: the output depends on the schema's content and the selection only. It is formatted as rustfmt does.
#![forbid(unsafe_code)]

mod docs;
mod error;
mod names;
mod output;
mod plan;
mod selection;
mod text;

pub use error::CodegenError;
pub use output::{Models, SourceFile};

use cowslip_ovsdb::schema::Schema;
use selection::Selection;
use std::fs;
use std::path::Path;

/// The largest schema file that is read, in bytes: a hundred times the largest one known.
pub const SCHEMA_BYTES_MAX: u64 = 10 << 20;

/// A schema and the choice of what to generate from it.
///
/// ```
/// use cowslip_ovsdb_codegen::Generator;
///
/// let schema = r#"{"name": "Pets", "tables": {"Cat": {"columns": {"name": {"type": "string"}}}}}"#;
/// let models = Generator::new(schema.as_bytes())?.generate()?;
/// assert!(models.single_file().contains("pub struct Cat {"));
/// # Ok::<(), cowslip_ovsdb_codegen::CodegenError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Generator {
    schema: Schema,
    chosen: Vec<String>,
}

impl Generator {
    /// Takes the text of a schema.
    ///
    /// # Errors
    /// [`CodegenError::Schema`] if it breaks a rule for schemas, such as an id that is none.
    pub fn new(schema: &[u8]) -> Result<Self, CodegenError> {
        let schema = Schema::parse(schema).map_err(|source| CodegenError::Schema { source })?;
        Ok(Generator { schema, chosen: Vec::new() })
    }

    /// Reads the file of a schema, `*.ovsschema`.
    ///
    /// # Errors
    /// The file cannot be read or is larger than [`SCHEMA_BYTES_MAX`], besides the errors of [`Generator::new`].
    pub fn from_file(path: &Path) -> Result<Self, CodegenError> {
        let unreadable = |source| CodegenError::Read { path: path.to_owned(), source };
        let size = fs::metadata(path).map_err(unreadable)?.len();
        if size > SCHEMA_BYTES_MAX {
            return Err(CodegenError::TooLarge { path: path.to_owned(), size });
        }
        Generator::new(&fs::read(path).map_err(unreadable)?)
    }

    /// Generates this table, `Table` or `Table:column,column`, and no others than those selected. A table selected
    /// twice gets the columns of both.
    pub fn select(mut self, table: impl Into<String>) -> Self {
        self.chosen.push(table.into());
        self
    }

    /// Makes the models.
    ///
    /// # Errors
    /// The selection names what the schema has not.
    pub fn generate(&self) -> Result<Models, CodegenError> {
        let selection = Selection::new(&self.schema, &self.chosen)?;
        Ok(Models::new(plan::Database::new(&self.schema, &selection)))
    }
}
