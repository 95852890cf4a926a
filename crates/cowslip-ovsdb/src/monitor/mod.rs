//! Monitors: what a client wants to hear of a database, and the updates that tell it (RFC 7047 sections 4.1.5 and
//! 4.1.6; `monitor_cond`, `monitor_cond_since`, `update2` and `update3` as in the reference server).
//!
//! A [`MonitorSpec`] is what the client asked for. Updates are written from rows before and after, whether
//! those come from one commit or from many merged ones.

mod update;

pub use update::{RowChange, UpdateWriter, write_condition_change, write_initial};

use crate::condition::{Condition, column_type};
use crate::error::Error;
use crate::json::Json;
use crate::members::{Kind, Members};
use crate::schema::{Column, Schema, TableSchema};
use crate::types::ColumnType;
use cowslip_engine::{TableIx, Uuid};
use std::collections::BTreeSet;

/// How updates are written, which depends on the method that asked for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `monitor`: `update`, with old and new values.
    Plain,
    /// `monitor_cond`: `update2`, with differences.
    Conditional,
    /// `monitor_cond_since`: `update3`, as `update2` with an id of the state.
    Since,
}

impl Dialect {
    /// The method of the notifications.
    pub fn notification(self) -> &'static str {
        match self {
            Dialect::Plain => "update",
            Dialect::Conditional => "update2",
            Dialect::Since => "update3",
        }
    }
}

/// Which kinds of change a client wants to hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Select {
    /// The rows that are there at first.
    pub initial: bool,
    /// New rows.
    pub insert: bool,
    /// Deleted rows.
    pub delete: bool,
    /// Changed rows.
    pub modify: bool,
}

impl Select {
    const NONE: Select = Select { initial: false, insert: false, delete: false, modify: false };

    fn or(self, other: Select) -> Select {
        Select {
            initial: self.initial || other.initial,
            insert: self.insert || other.insert,
            delete: self.delete || other.delete,
            modify: self.modify || other.modify,
        }
    }
}

/// What a client wants to hear of one table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSpec {
    /// The table.
    pub table: TableIx,
    /// The columns, each with the kinds of change that show it.
    pub columns: Vec<(Column, Select)>,
    /// The kinds of change that any column wants.
    pub select: Select,
    /// Rows that meet one of the clauses are seen; all rows, if there is no clause.
    pub condition: Condition,
}

/// What a client wants to hear of a database.
#[derive(Clone, Debug, PartialEq)]
pub struct MonitorSpec {
    /// How it wants to hear it.
    pub dialect: Dialect,
    /// The tables, in the order of their numbers.
    pub tables: Vec<TableSpec>,
}

impl MonitorSpec {
    /// Takes the `<monitor-requests>` of a monitor request.
    ///
    /// # Errors
    /// `syntax error` and what conditions can break.
    pub fn from_json(schema: &Schema, dialect: Dialect, json: &Json<'_>) -> Result<Self, Error> {
        let object =
            json.as_object().ok_or_else(|| Error::syntax(json, "monitor-requests must be object"))?;
        let mut tables = Vec::with_capacity(object.len());
        for (name, requests) in object.iter() {
            let Some(table) = schema.table(name) else {
                return Err(Error::new(crate::error::ErrorKind::Syntax, format!("no table named {name}")));
            };
            tables.push(TableSpec::from_json(schema.at(table), table, dialect, requests)?);
        }
        tables.sort_by_key(|t| t.table);
        Ok(MonitorSpec { dialect, tables })
    }

    /// The specification of one table.
    pub fn table(&self, table: TableIx) -> Option<&TableSpec> {
        self.tables.binary_search_by_key(&table, |t| t.table).ok().map(|at| &self.tables[at])
    }

    /// The same with the conditions that a `monitor_cond_change` gives; tables that it does not name keep theirs.
    ///
    /// # Errors
    /// `syntax error` if a table is not monitored, and what conditions can break.
    pub fn with_conditions(&self, schema: &Schema, json: &Json<'_>) -> Result<Self, Error> {
        let object =
            json.as_object().ok_or_else(|| Error::syntax(json, "monitor-requests must be object"))?;
        let mut spec = self.clone();
        for (name, requests) in object.iter() {
            let known = schema.table(name);
            let place = known.and_then(|t| spec.tables.iter_mut().find(|s| s.table == t));
            let Some(place) = place else {
                let details = match known {
                    None => format!("no table named {name}"),
                    Some(_) => format!("no table named {name} in the monitor"),
                };
                return Err(Error::new(crate::error::ErrorKind::Syntax, details));
            };
            let definition = schema.at(place.table);
            place.condition = Condition::default();
            for request in one_or_many(requests) {
                let members = Members::new(request, format!("table {name}"));
                let clauses = members.optional("where", Kind::Array);
                members.optional("columns", Kind::Array);
                members.finish()?;
                if let Some(clauses) = clauses {
                    place.condition.clauses.extend(Condition::from_json(definition, clauses, None)?.clauses);
                }
            }
        }
        Ok(spec)
    }

    /// Whether a restart changes what the client sees, because it watches columns that are not stored.
    pub fn shows_what_is_not_stored(&self, schema: &Schema) -> bool {
        self.tables.iter().any(|spec| {
            spec.columns.iter().any(|(column, _)| match column {
                Column::Version => true,
                Column::Uuid => false,
                Column::Data(column) => !schema.at(spec.table).data(*column).persistent,
            })
        })
    }
}

fn one_or_many<'j, 'a>(json: &'j Json<'a>) -> &'j [Json<'a>] {
    json.as_array().unwrap_or(std::slice::from_ref(json))
}

impl TableSpec {
    fn from_json(
        definition: &TableSchema,
        table: TableIx,
        dialect: Dialect,
        json: &Json<'_>,
    ) -> Result<Self, Error> {
        let mut spec =
            TableSpec { table, columns: Vec::new(), select: Select::NONE, condition: Condition::default() };
        for request in one_or_many(json) {
            spec.add(definition, dialect, request)?;
        }
        Ok(spec)
    }

    fn add(&mut self, definition: &TableSchema, dialect: Dialect, json: &Json<'_>) -> Result<(), Error> {
        let members = Members::new(json, format!("table {}", definition.name));
        let clauses = if dialect == Dialect::Plain { None } else { members.optional("where", Kind::Array) };
        let columns = members.optional("columns", Kind::Array);
        let select = members.optional("select", Kind::Object);
        members.finish()?;
        let select = match select {
            None => Select { initial: true, insert: true, delete: true, modify: true },
            Some(json) => select_from_json(definition, json)?,
        };
        self.select = self.select.or(select);
        let named = match columns {
            Some(list) => columns_named(definition, list)?,
            None => definition.all_columns().into_iter().filter(|c| *c != Column::Uuid).collect(),
        };
        let mut seen: BTreeSet<Column> = self.columns.iter().map(|(column, _)| *column).collect();
        for column in named {
            if !seen.insert(column) {
                let details = format!("column {} mentioned more than once", definition.column_name(column));
                return Err(Error::syntax(columns.unwrap_or(json), details));
            }
            self.columns.push((column, select));
        }
        if let Some(clauses) = clauses {
            self.condition.clauses.extend(Condition::from_json(definition, clauses, None)?.clauses);
        }
        Ok(())
    }

    /// Whether the client sees a row.
    pub fn sees(&self, id: &Uuid, row: &crate::row::Row) -> bool {
        self.condition.any_holds(id, row)
    }
}

fn columns_named(definition: &TableSchema, list: &Json<'_>) -> Result<Vec<Column>, Error> {
    let mut columns = Vec::new();
    for name in list.as_array().unwrap_or_default() {
        let name = name.as_str().ok_or_else(|| Error::syntax(list, "array of column names expected"))?;
        let column = definition
            .column(name)
            .ok_or_else(|| Error::syntax(list, format!("{name} is not a valid column name")))?;
        columns.push(column);
    }
    Ok(columns)
}

fn select_from_json(definition: &TableSchema, json: &Json<'_>) -> Result<Select, Error> {
    let members = Members::new(json, format!("table {} select", definition.name));
    let flag = |name| !matches!(members.optional(name, Kind::Bool), Some(Json::Bool(false)));
    let select = Select {
        initial: flag("initial"),
        insert: flag("insert"),
        delete: flag("delete"),
        modify: flag("modify"),
    };
    members.finish()?;
    Ok(select)
}

fn type_of(definition: &TableSchema, column: Column) -> &ColumnType {
    column_type(definition, column)
}
