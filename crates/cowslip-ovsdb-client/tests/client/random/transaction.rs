//! Random transactions on a random schema, as the JSON text of their operations.

use super::{Base, ColumnPlan, Kind, Random, SchemaPlan};
use cowslip_ovsdb_client::Uuid;

/// The rows that there are, by the number of their table.
pub(crate) type Rows = Vec<Vec<Uuid>>;

/// Makes transactions one after another.
pub(crate) struct Generator<'s> {
    schema: &'s SchemaPlan,
    random: Random,
    /// How many UUIDs were chosen so far.
    chosen: u64,
    /// Whether the transaction may have faults that show in its text: few may, or most would have one.
    is_sloppy: bool,
}

/// What a transaction's operations may refer to.
struct Scope<'r> {
    rows: &'r Rows,
    /// Names of rows that were inserted before, or will be, by the number of their table.
    names: Vec<Vec<String>>,
}

impl<'s> Generator<'s> {
    pub(crate) fn new(schema: &'s SchemaPlan, random: Random) -> Self {
        Generator { schema, random, chosen: 0, is_sloppy: false }
    }

    /// The operations of the next transaction, given the rows that there are.
    pub(crate) fn transaction(&mut self, rows: &Rows) -> String {
        self.is_sloppy = self.random.one_in(6);
        let mut scope = Scope { rows, names: vec![Vec::new(); self.schema.tables.len()] };
        let count = 1 + self.random.below(6);
        let operations: Vec<String> = (0..count).map(|n| self.operation(&mut scope, n)).collect();
        format!("[{}]", operations.join(","))
    }

    /// Whether to make a mistake, of a kind that is made so often.
    fn errs(&mut self, one_in: u64) -> bool {
        self.is_sloppy && self.random.one_in(one_in)
    }

    fn operation(&mut self, scope: &mut Scope<'_>, number: u64) -> String {
        let table = self.random.below(self.schema.tables.len() as u64) as usize;
        let name = &self.schema.tables[table].name;
        match self.random.below(20) {
            0..=8 => self.insert(scope, table, number),
            9..=12 => {
                let (row, condition) = (self.row(scope, table, true), self.condition(scope, table));
                format!(r#"{{"op":"update","table":"{name}","where":{condition},"row":{row}}}"#)
            }
            13..=15 => {
                let condition = self.condition(scope, table);
                let mutations: Vec<String> =
                    (0..=self.random.below(2)).map(|_| self.mutation(scope, table)).collect();
                let mutations = mutations.join(",");
                format!(r#"{{"op":"mutate","table":"{name}","where":{condition},"mutations":[{mutations}]}}"#)
            }
            16 | 17 => {
                format!(r#"{{"op":"delete","table":"{name}","where":{}}}"#, self.condition(scope, table))
            }
            18 => format!(r#"{{"op":"select","table":"{name}","where":{}}}"#, self.condition(scope, table)),
            _ => r#"{"op":"comment","comment":"nothing"}"#.to_string(),
        }
    }

    fn insert(&mut self, scope: &mut Scope<'_>, table: usize, number: u64) -> String {
        let row = self.row(scope, table, false);
        let name = format!("new{number}");
        scope.names[table].push(name.clone());
        let uuid = match self.random.below(12) {
            0 => String::new(),
            // One that may be taken.
            1 => format!(r#","uuid":"{}""#, chosen_uuid(table, self.random.below(self.chosen + 1))),
            _ => {
                self.chosen += 1;
                format!(r#","uuid":"{}""#, chosen_uuid(table, self.chosen))
            }
        };
        let table = &self.schema.tables[table].name;
        format!(r#"{{"op":"insert","table":"{table}","uuid-name":"{name}"{uuid},"row":{row}}}"#)
    }

    fn row(&mut self, scope: &Scope<'_>, table: usize, is_update: bool) -> String {
        let schema = self.schema;
        let mut members = Vec::new();
        for column in &schema.tables[table].columns {
            let is_free = is_update || column.has_legal_default();
            let is_left_out = match is_update && !column.is_mutable {
                true => !self.errs(3),
                false if is_free => self.random.one_in(3),
                false => self.errs(8),
            };
            if !is_left_out {
                members.push(format!("\"{}\":{}", column.name, self.value(scope, column, None)));
            }
        }
        if self.errs(20) {
            members.push("\"nowhere\":1".to_string());
        }
        format!("{{{}}}", members.join(","))
    }

    /// A value for a column: of so many members, or of as many as it may have.
    fn value(&mut self, scope: &Scope<'_>, column: &ColumnPlan, count: Option<u64>) -> String {
        let most = column.max.unwrap_or(3).min(3);
        let count = count.unwrap_or_else(|| match self.errs(10) {
            true => *self.random.of(&[0, most + 1]),
            false => column.min + self.random.below(most - column.min + 1),
        });
        let mut keys: Vec<String> = (0..count).map(|_| self.atom(scope, &column.key)).collect();
        if !self.errs(10) {
            keys.sort();
            keys.dedup();
        }
        match &column.value {
            Some(value) => {
                let pairs: Vec<String> =
                    keys.iter().map(|key| format!("[{key},{}]", self.atom(scope, value))).collect();
                format!(r#"["map",[{}]]"#, pairs.join(","))
            }
            None if keys.len() == 1 && self.random.one_in(2) => keys.remove(0),
            None => format!(r#"["set",[{}]]"#, keys.join(",")),
        }
    }

    fn atom(&mut self, scope: &Scope<'_>, base: &Base) -> String {
        if self.errs(15) {
            return self.random.of(&base.illegal).clone();
        }
        match base.kind {
            Kind::Reference(table) => self.reference(scope, table),
            _ => self.random.of(&base.legal).clone(),
        }
    }

    /// A reference to a row that there is, to a new one, or, seldom, to none.
    fn reference(&mut self, scope: &Scope<'_>, table: usize) -> String {
        let (rows, names) = (&scope.rows[table], &scope.names[table]);
        let choices = (rows.len() + 2 * names.len()) as u64;
        if choices == 0 || self.random.one_in(30) {
            return match self.random.below(3) {
                0 => r#"["named-uuid","never"]"#.to_string(),
                _ => r#"["uuid","00000000-0000-4000-8000-00000000dead"]"#.to_string(),
            };
        }
        let at = self.random.below(choices) as usize;
        match rows.get(at) {
            Some(row) => format!(r#"["uuid","{row}"]"#),
            None => format!(r#"["named-uuid","{}"]"#, names[(at - rows.len()) / 2]),
        }
    }

    fn condition(&mut self, scope: &Scope<'_>, table: usize) -> String {
        let clauses: Vec<String> = match self.random.below(12) {
            0 => Vec::new(),
            1 => vec![self.random.of(&["true", "false"]).to_string()],
            2..=6 => vec![format!(r#"["_uuid","==",{}]"#, self.reference(scope, table))],
            n => (0..1 + n / 11).map(|_| self.clause(scope, table)).collect(),
        };
        format!("[{}]", clauses.join(","))
    }

    fn clause(&mut self, scope: &Scope<'_>, table: usize) -> String {
        let column = self.random.of(&self.schema.tables[table].columns).clone();
        let has_order = column.value.is_none()
            && column.max == Some(1)
            && matches!(column.key.kind, Kind::Integer | Kind::Real);
        let function = match self.random.below(20) {
            _ if self.errs(8) => *self.random.of(&["<", ">=", "="]),
            0..=6 if has_order => *self.random.of(&["<", "<=", ">", ">="]),
            0..=11 => "==",
            12..=14 => "!=",
            15..=17 => "includes",
            _ => "excludes",
        };
        let count = has_order.then_some(1);
        format!(r#"["{}","{function}",{}]"#, column.name, self.value(scope, &column, count))
    }

    fn mutation(&mut self, scope: &Scope<'_>, table: usize) -> String {
        let mut column = self.random.of(&self.schema.tables[table].columns).clone();
        while !column.is_mutable
            && !self.errs(3)
            && self.schema.tables[table].columns.iter().any(|c| c.is_mutable)
        {
            column = self.random.of(&self.schema.tables[table].columns).clone();
        }
        let is_number = column.value.is_none() && matches!(column.key.kind, Kind::Integer | Kind::Real);
        let name = &column.name;
        if is_number && (column.is_scalar() || self.random.one_in(3)) || self.errs(10) {
            let mutators: &[&str] = match column.key.kind {
                Kind::Real => &["+=", "-=", "*=", "/="],
                _ => &["+=", "-=", "*=", "/=", "%="],
            };
            let mutator = *self.random.of(mutators);
            // No thirds: the real server prints fifteen digits of a real and takes that for the value. No product with
            // zero: of a negative integer it dies, of a negative real it makes a zero that is not equal to zero.
            let arguments: &[&str] = match (column.key.kind, mutator) {
                (Kind::Real, "*=") => &["1", "2", "0.5"],
                (Kind::Real, _) => &["0", "1", "2", "0.5"],
                (_, "*=") => &["1", "2", "-1"],
                _ => &["0", "1", "2", "3"],
            };
            let argument = self.random.of(arguments);
            return format!(r#"["{name}","{mutator}",{argument}]"#);
        }
        let verb = *self.random.of(&["insert", "delete"]);
        let argument = if verb == "delete" && column.value.is_some() && self.random.one_in(2) {
            // Of a map, keys alone.
            let mut keys = column.clone();
            keys.value = None;
            self.value(scope, &keys, None)
        } else {
            self.value(scope, &column, None)
        };
        format!(r#"["{name}","{verb}",{argument}]"#)
    }
}

/// Never one that another table has: the real server takes such a row for the one that a reference of its own is to.
fn chosen_uuid(table: usize, number: u64) -> Uuid {
    Uuid::from_u128(0xd000_0000_0000_4000_8000_0000_0000_0000 + ((table as u128) << 40) + u128::from(number))
}
