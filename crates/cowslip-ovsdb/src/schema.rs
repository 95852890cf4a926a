//! Database schemas (RFC 7047 section 3.2), as strict as the reference server.
//!
//! A [`Schema`] is immutable and is the engine's meta data of an OVSDB root: whoever holds a root holds the schema that
//! its rows obey. Tables and columns have numbers, in the order of their names; `_uuid` and `_version` have none, they
//! are part of every row ([`Column`]).
//!
//! Invariants after parsing: every reference names a table of the schema; a strong reference to a non-root table is
//! stored even if the schema calls its column ephemeral; weak reference columns are mutable, because pruning changes them.

use crate::atom::Atom;
use crate::datum::Datum;
use crate::error::{Error, ErrorKind};
use crate::json::Json;
use crate::key::{IndexKey, KeyWriter};
use crate::members::{Kind, Members, is_id};
use crate::row::Row;
use crate::types::ColumnType;
use cowslip_engine::{IndexIx, IndexKind, Strength, TableIx};
use std::collections::HashMap;
use std::sync::Arc;

/// The most tables of a schema, and the most columns of a table.
pub const SCHEMA_NAMES_MAX: usize = 10_000;

/// A column of data, by its number in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnIx(pub u16);

impl ColumnIx {
    /// The slot of the references that this column holds.
    pub fn slot(self) -> u32 {
        self.0.into()
    }

    /// The column of a reference's slot.
    ///
    /// # Panics
    /// If the slot is not one that [`slot`](Self::slot) gave.
    pub fn from_slot(slot: u32) -> Self {
        Self(u16::try_from(slot).expect("slots are made of columns"))
    }
}

/// A column as requests can name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    /// `_uuid`
    Uuid,
    /// `_version`
    Version,
    /// A column of the schema.
    Data(ColumnIx),
}

/// A column's definition.
#[derive(Clone, Debug)]
pub struct ColumnSchema {
    /// Its name.
    pub name: Arc<str>,
    /// What it may hold.
    pub ty: ColumnType,
    /// Whether it may change after the row's insertion.
    pub mutable: bool,
    /// Whether it outlives a restart.
    pub persistent: bool,
}

/// One part of the key of a client's index.
#[derive(Clone, Debug, PartialEq)]
pub enum KeyPart {
    /// The value of a column; that of an optional column may be empty, which is a value like any other.
    Column(ColumnIx),
    /// The value that a map column has for a key.
    MapValue {
        /// The map.
        column: ColumnIx,
        /// The key.
        key: Atom,
        /// Whether a row without the key has an empty value there; else it is not in the index.
        indexes_absence: bool,
    },
}

/// An index that a client keeps and the server does not know of.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientIndex {
    /// Whether two rows with one key break a rule of the client's.
    pub kind: IndexKind,
    /// What the key consists of.
    pub parts: Vec<KeyPart>,
}

impl KeyPart {
    /// The column that the part looks at.
    pub fn column(&self) -> ColumnIx {
        match self {
            KeyPart::Column(column) | KeyPart::MapValue { column, .. } => *column,
        }
    }

    /// Adds the part's value in a row to a key; none if the row is not to be in the index.
    fn write(&self, row: &Row, out: &mut KeyWriter) -> Option<()> {
        match self {
            KeyPart::Column(column) => out.datum(row.data(*column)),
            KeyPart::MapValue { column, key, indexes_absence } => match row.data(*column).value(key) {
                Some(value) => out.one(value),
                None if *indexes_absence => out.datum(&Datum::EMPTY),
                None => return None,
            },
        }
        Some(())
    }
}

impl ClientIndex {
    /// A row's key; none if the row is not in the index.
    pub fn key(&self, row: &Row) -> Option<IndexKey> {
        let mut key = KeyWriter::default();
        self.parts.iter().try_for_each(|part| part.write(row, &mut key))?;
        Some(key.finish())
    }
}

/// A table's definition.
#[derive(Clone, Debug)]
pub struct TableSchema {
    /// Its name.
    pub name: Arc<str>,
    /// Its columns in the order of their names.
    pub columns: Vec<ColumnSchema>,
    /// The most rows it may have after a transaction.
    pub max_rows: Option<u64>,
    /// Whether its rows live without a strong reference to them.
    pub is_root: bool,
    /// The column sets whose values must be unique.
    pub indexes: Vec<Vec<ColumnIx>>,
    /// Indexes that a client keeps besides those; they follow them in the engine's numbering.
    pub client_indexes: Vec<ClientIndex>,
    /// The columns that refer to rows.
    pub references: Vec<ColumnIx>,
    by_name: HashMap<Arc<str>, ColumnIx>,
    default_columns: Box<[Datum]>,
}

/// A database's definition.
#[derive(Clone, Debug)]
pub struct Schema {
    /// The database's name.
    pub name: Arc<str>,
    /// `x.y.z`, or empty.
    pub version: Arc<str>,
    /// The schema's checksum as its author gave it, or empty.
    pub cksum: Arc<str>,
    /// The tables in the order of their names.
    pub tables: Vec<TableSchema>,
    by_name: HashMap<Arc<str>, TableIx>,
    text: Arc<str>,
}

impl TableSchema {
    /// The number of the column with this name.
    pub fn column(&self, name: &str) -> Option<Column> {
        match name {
            "_uuid" => Some(Column::Uuid),
            "_version" => Some(Column::Version),
            _ => self.by_name.get(name).copied().map(Column::Data),
        }
    }

    /// The definition of a data column.
    pub fn data(&self, column: ColumnIx) -> &ColumnSchema {
        &self.columns[usize::from(column.0)]
    }

    /// The numbers and definitions of the data columns.
    pub fn data_columns(&self) -> impl ExactSizeIterator<Item = (ColumnIx, &ColumnSchema)> {
        self.columns.iter().enumerate().map(|(i, c)| (ColumnIx(i as u16), c))
    }

    /// The name of any column.
    pub fn column_name(&self, column: Column) -> &str {
        match column {
            Column::Uuid => "_uuid",
            Column::Version => "_version",
            Column::Data(column) => &self.data(column).name,
        }
    }

    /// All columns, `_uuid` and `_version` first.
    pub fn all_columns(&self) -> Vec<Column> {
        let data = self.data_columns().map(|(column, _)| Column::Data(column));
        [Column::Uuid, Column::Version].into_iter().chain(data).collect()
    }

    /// The client's index with this number in the engine; none if it is one of the schema's.
    pub fn client_index(&self, index: IndexIx) -> Option<&ClientIndex> {
        usize::from(index.0).checked_sub(self.indexes.len()).and_then(|i| self.client_indexes.get(i))
    }

    /// A row's key in an index; none if the row is not in it.
    pub fn key_of(&self, index: IndexIx, row: &Row) -> Option<IndexKey> {
        match self.client_index(index) {
            Some(index) => index.key(row),
            None => {
                let columns = self.indexes.get(usize::from(index.0))?;
                Some(columns.iter().map(|c| row.data(*c)).collect())
            }
        }
    }

    /// Whether any column of an index is one that `wanted` tells.
    pub(crate) fn key_parts_any(&self, index: IndexIx, wanted: impl Fn(ColumnIx) -> bool) -> bool {
        match self.client_index(index) {
            Some(index) => index.parts.iter().any(|part| wanted(part.column())),
            None => self.indexes.get(usize::from(index.0)).is_some_and(|i| i.iter().any(|c| wanted(*c))),
        }
    }

    /// What the key of an index consists of.
    pub fn key_parts(&self, index: IndexIx) -> Vec<KeyPart> {
        match self.client_index(index) {
            Some(index) => index.parts.clone(),
            None => {
                let columns = self.indexes.get(usize::from(index.0)).map_or(&[][..], Vec::as_slice);
                columns.iter().map(|c| KeyPart::Column(*c)).collect()
            }
        }
    }

    /// The values of a row that was given none.
    pub fn defaults(&self) -> &[Datum] {
        &self.default_columns
    }
}

impl Schema {
    /// Takes a `<database-schema>` from a file or a message.
    ///
    /// # Errors
    /// The first rule that the schema breaks.
    pub fn from_json(json: &Json<'_>) -> Result<Self, Error> {
        let members = Members::new(json, "database schema");
        let name = members.required("name", Kind::Id);
        members.optional("description", Kind::String);
        let version = members.optional("version", Kind::String);
        let cksum = members.optional("cksum", Kind::String);
        let tables = members.required("tables", Kind::Object);
        members.finish()?;
        let text = |json: Option<&Json<'_>>| Arc::from(json.and_then(Json::as_str).unwrap_or_default());
        let mut schema = Schema {
            name: text(name),
            version: text(version),
            cksum: text(cksum),
            tables: Vec::new(),
            by_name: HashMap::new(),
            text: json.to_string().into(),
        };
        if !schema.version.is_empty() && !is_version(&schema.version) {
            return Err(Error::new(
                ErrorKind::Syntax,
                format!("schema version \"{}\" not in format x.y.z", schema.version),
            ));
        }
        for (name, definition) in tables.and_then(Json::as_object).into_iter().flat_map(|o| o.iter()) {
            check_name(json, name, "table")?;
            schema.tables.push(TableSchema::from_json(name, definition)?);
        }
        schema.settle()?;
        Ok(schema)
    }

    /// Parses the text of a schema.
    ///
    /// # Errors
    /// The text is no JSON, or not a schema.
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        let json = Json::parse(text).map_err(|e| Error::new(ErrorKind::Syntax, e.to_string()))?;
        Schema::from_json(&json)
    }

    /// The number of the table with this name.
    pub fn table(&self, name: &str) -> Option<TableIx> {
        self.by_name.get(name).copied()
    }

    /// The definition of a table.
    pub fn at(&self, table: TableIx) -> &TableSchema {
        &self.tables[usize::from(table.0)]
    }

    /// The numbers and definitions of the tables.
    pub fn numbered_tables(&self) -> impl ExactSizeIterator<Item = (TableIx, &TableSchema)> {
        self.tables.iter().enumerate().map(|(i, t)| (TableIx(i as u16), t))
    }

    /// The schema as JSON text, as it was given.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Numbers the tables and applies the rules that need the whole schema.
    fn settle(&mut self) -> Result<(), Error> {
        if self.tables.len() > SCHEMA_NAMES_MAX {
            return Err(Error::new(ErrorKind::Syntax, format!("more than {SCHEMA_NAMES_MAX} tables")));
        }
        self.tables.sort_by(|a, b| a.name.cmp(&b.name));
        self.by_name = self.numbered_tables().map(|(ix, t)| (t.name.clone(), ix)).collect();
        if self.tables.iter().all(|t| !t.is_root) {
            self.tables.iter_mut().for_each(|t| t.is_root = true);
        }
        let roots: Vec<bool> = self.tables.iter().map(|t| t.is_root).collect();
        for table in &mut self.tables {
            for column in &mut table.columns {
                for (part, base) in [("key", Some(&mut column.ty.key)), ("value", column.ty.value.as_mut())] {
                    let Some(reference) = base.and_then(|b| b.reference.as_mut()) else { continue };
                    let Some(&target) = self.by_name.get(&reference.table_name) else {
                        let (column, target) = (&column.name, &reference.table_name);
                        return Err(Error::new(
                            ErrorKind::Syntax,
                            format!("column {column} {part} refers to undefined table {target}"),
                        ));
                    };
                    reference.table = target;
                    match reference.strength {
                        Strength::Weak => column.mutable = true,
                        Strength::Strong if !roots[usize::from(target.0)] => column.persistent = true,
                        Strength::Strong => {}
                    }
                }
            }
            table.references =
                table.data_columns().filter(|(_, c)| c.ty.is_reference()).map(|(column, _)| column).collect();
        }
        Ok(())
    }
}

impl TableSchema {
    fn from_json(name: &str, json: &Json<'_>) -> Result<Self, Error> {
        let members = Members::new(json, format!("table schema for table {name}"));
        let mutable = members.optional("mutable", Kind::Bool);
        let columns = members.required("columns", Kind::Object);
        let max_rows = members.optional("maxRows", Kind::Integer);
        let is_root = members.optional("isRoot", Kind::Bool);
        let indexes = members.optional("indexes", Kind::Array);
        members.finish()?;
        let max_rows = match max_rows {
            Some(Json::Int(n)) if *n > 0 => Some(*n as u64),
            Some(_) => return Err(Error::syntax(json, "maxRows must be at least 1")),
            None => None,
        };
        let object = columns.and_then(Json::as_object);
        let Some(object) = object.filter(|o| !o.is_empty()) else {
            return Err(Error::syntax(json, "table must have at least one column"));
        };
        if object.len() > SCHEMA_NAMES_MAX {
            return Err(Error::new(ErrorKind::Syntax, format!("more than {SCHEMA_NAMES_MAX} columns")));
        }
        let all_mutable = !matches!(mutable, Some(Json::Bool(false)));
        let mut columns = Vec::with_capacity(object.len());
        for (name, definition) in object.iter() {
            check_name(json, name, "column")?;
            columns.push(ColumnSchema::from_json(name, definition, all_mutable)?);
        }
        columns.sort_by(|a, b| a.name.cmp(&b.name));
        let by_name = columns.iter().enumerate().map(|(i, c)| (c.name.clone(), ColumnIx(i as u16))).collect();
        let default_columns = columns.iter().map(|c| c.ty.default_datum()).collect();
        let mut table = TableSchema {
            name: name.into(),
            columns,
            max_rows,
            is_root: matches!(is_root, Some(Json::Bool(true))),
            indexes: Vec::new(),
            client_indexes: Vec::new(),
            references: Vec::new(),
            by_name,
            default_columns,
        };
        for index in indexes.and_then(Json::as_array).unwrap_or_default() {
            let index = table.index_from_json(index)?;
            table.indexes.push(index);
        }
        Ok(table)
    }

    fn index_from_json(&self, json: &Json<'_>) -> Result<Vec<ColumnIx>, Error> {
        let mut index = Vec::new();
        for column in columns_from_json(json, self)? {
            let Column::Data(column) = column else {
                return Err(Error::syntax(json, "an index may only hold columns of the schema"));
            };
            let definition = self.data(column);
            if !definition.persistent {
                let details = format!("ephemeral columns (such as {}) may not be indexed", definition.name);
                return Err(Error::syntax(json, details));
            }
            index.push(column);
        }
        if index.is_empty() {
            return Err(Error::syntax(json, "index must have at least one column"));
        }
        Ok(index)
    }
}

impl ColumnSchema {
    fn from_json(name: &str, json: &Json<'_>, table_mutable: bool) -> Result<Self, Error> {
        let members = Members::new(json, format!("schema for column {name}"));
        let mutable = members.optional("mutable", Kind::Bool);
        let ephemeral = members.optional("ephemeral", Kind::Bool);
        let ty = members.required("type", Kind::StringOrObject);
        members.finish()?;
        let ty = ty.map(ColumnType::from_json).transpose()?;
        Ok(ColumnSchema {
            name: name.into(),
            ty: ty.unwrap_or_else(|| ColumnType::scalar(crate::atom::AtomicType::Integer)),
            mutable: table_mutable && !matches!(mutable, Some(Json::Bool(false))),
            persistent: !matches!(ephemeral, Some(Json::Bool(true))),
        })
    }
}

/// Takes a list of distinct column names from a request or an index.
///
/// # Errors
/// `syntax error` if it is not that.
pub fn columns_from_json(json: &Json<'_>, table: &TableSchema) -> Result<Vec<Column>, Error> {
    let expected = || Error::syntax(json, "array of distinct column names expected");
    let mut columns = Vec::new();
    for name in json.as_array().ok_or_else(expected)? {
        let name = name.as_str().ok_or_else(expected)?;
        let column = table
            .column(name)
            .ok_or_else(|| Error::syntax(json, format!("{name} is not a valid column name")))?;
        if columns.contains(&column) {
            return Err(expected());
        }
        columns.push(column);
    }
    Ok(columns)
}

fn check_name(json: &Json<'_>, name: &str, what: &str) -> Result<(), Error> {
    if name.starts_with('_') {
        Err(Error::syntax(json, "names beginning with \"_\" are reserved"))
    } else if !is_id(name) {
        Err(Error::syntax(json, format!("{what} name must be a valid id")))
    } else {
        Ok(())
    }
}

/// Whether a text is a version of the form x.y.z, without superfluous zeros.
pub fn is_version(text: &str) -> bool {
    let mut parts = 0;
    text.split('.').all(|part| {
        parts += 1;
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && (part.len() == 1 || !part.starts_with('0'))
    }) && parts == 3
}
