//! Random schemas: every kind of column, constraint, reference and index.

use super::Random;

/// A schema and what of it the transactions need to know.
#[derive(Clone, Debug)]
pub(crate) struct SchemaPlan {
    pub(crate) tables: Vec<TablePlan>,
}

#[derive(Clone, Debug)]
pub(crate) struct TablePlan {
    pub(crate) name: String,
    pub(crate) columns: Vec<ColumnPlan>,
    indexes: Vec<Vec<usize>>,
    is_root: bool,
    rows_max: Option<u64>,
}

#[derive(Clone, Debug)]
pub(crate) struct ColumnPlan {
    pub(crate) name: String,
    pub(crate) key: Base,
    pub(crate) value: Option<Base>,
    pub(crate) min: u64,
    /// None is unlimited.
    pub(crate) max: Option<u64>,
    pub(crate) is_mutable: bool,
    is_ephemeral: bool,
}

/// What an atom of a column may be.
#[derive(Clone, Debug)]
pub(crate) struct Base {
    pub(crate) kind: Kind,
    constraint: String,
    /// Legal and illegal atoms, as JSON; none for references.
    pub(crate) legal: Vec<String>,
    pub(crate) illegal: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer,
    Real,
    Boolean,
    String,
    Uuid,
    /// To the table of this number.
    Reference(usize),
}

impl ColumnPlan {
    pub(crate) fn is_scalar(&self) -> bool {
        (self.min, self.max) == (1, Some(1)) && self.value.is_none()
    }

    /// Whether a new row may leave it out.
    pub(crate) fn has_legal_default(&self) -> bool {
        let is_legal = |base: &Base| {
            let default = match base.kind {
                Kind::Integer | Kind::Real => "0",
                Kind::Boolean => "false",
                Kind::String => "\"\"",
                // No row has the UUID of zeros.
                Kind::Uuid => return true,
                Kind::Reference(_) => return false,
            };
            base.legal.iter().any(|atom| atom == default)
        };
        self.min == 0 || is_legal(&self.key) && self.value.as_ref().is_none_or(is_legal)
    }

    fn text(&self) -> String {
        let value = self.value.as_ref().map(|base| format!(",\"value\":{}", base.text())).unwrap_or_default();
        let max = self.max.map_or("\"unlimited\"".to_string(), |max| max.to_string());
        let mutable = if self.is_mutable { "" } else { ",\"mutable\":false" };
        let ephemeral = if self.is_ephemeral { ",\"ephemeral\":true" } else { "" };
        let key = self.key.text();
        format!(
            "\"{}\":{{\"type\":{{\"key\":{key}{value},\"min\":{},\"max\":{max}}}{mutable}{ephemeral}}}",
            self.name, self.min
        )
    }
}

impl Base {
    fn text(&self) -> String {
        let kind = match self.kind {
            Kind::Integer => "integer",
            Kind::Real => "real",
            Kind::Boolean => "boolean",
            Kind::String => "string",
            Kind::Uuid | Kind::Reference(_) => "uuid",
        };
        format!("{{\"type\":\"{kind}\"{}}}", self.constraint)
    }
}

impl SchemaPlan {
    pub(crate) fn random(random: &mut Random) -> Self {
        let count = 1 + random.below(4) as usize;
        let mut tables: Vec<TablePlan> = (0..count).map(|n| table(random, n, count)).collect();
        // Some row has to be able to stay, or every transaction ends with an empty database.
        tables[0].is_root = true;
        SchemaPlan { tables }
    }

    /// The schema of the database `T`.
    pub(crate) fn text(&self) -> String {
        let tables: Vec<String> = self.tables.iter().map(TablePlan::text).collect();
        format!("{{\"name\":\"T\",\"version\":\"1.0.0\",\"tables\":{{{}}}}}", tables.join(","))
    }
}

impl TablePlan {
    fn text(&self) -> String {
        let columns: Vec<String> = self.columns.iter().map(ColumnPlan::text).collect();
        let quoted = |index: &Vec<usize>| {
            let names: Vec<String> = index.iter().map(|c| format!("\"{}\"", self.columns[*c].name)).collect();
            format!("[{}]", names.join(","))
        };
        let indexes: Vec<String> = self.indexes.iter().map(quoted).collect();
        let rows_max = self.rows_max.map(|max| format!(",\"maxRows\":{max}")).unwrap_or_default();
        format!(
            "\"{}\":{{\"columns\":{{{}}},\"indexes\":[{}],\"isRoot\":{}{rows_max}}}",
            self.name,
            columns.join(","),
            indexes.join(","),
            self.is_root
        )
    }
}

fn table(random: &mut Random, number: usize, tables: usize) -> TablePlan {
    let columns: Vec<ColumnPlan> = (0..1 + random.below(6)).map(|n| column(random, n, tables)).collect();
    let durable: Vec<usize> = (0..columns.len()).filter(|c| !columns[*c].is_ephemeral).collect();
    let mut indexes = Vec::new();
    for _ in 0..random.below(3) {
        let mut index: Vec<usize> = Vec::new();
        for _ in 0..=random.below(2) {
            if !durable.is_empty() {
                index.push(*random.of(&durable));
            }
        }
        index.sort_unstable();
        index.dedup();
        if !index.is_empty() {
            indexes.push(index);
        }
    }
    TablePlan {
        name: format!("T{number}"),
        columns,
        indexes,
        is_root: random.one_in(2),
        rows_max: random.one_in(5).then(|| 2 + random.below(4)),
    }
}

fn column(random: &mut Random, number: u64, tables: usize) -> ColumnPlan {
    let key = base(random, tables, true);
    let refers = matches!(key.kind, Kind::Reference(_));
    let value = random.one_in(4).then(|| base(random, tables, !refers));
    let (min, max) = match random.below(6) {
        _ if value.is_some() => (random.below(2), if random.one_in(3) { Some(2) } else { None }),
        0..=2 => (1, Some(1)),
        3 => (0, Some(1)),
        4 => (0, None),
        _ => (random.below(2), Some(1 + random.below(3))),
    };
    ColumnPlan {
        name: format!("c{number}"),
        key,
        value,
        min,
        max,
        is_mutable: !random.one_in(8),
        is_ephemeral: random.one_in(10),
    }
}

fn base(random: &mut Random, tables: usize, may_refer: bool) -> Base {
    let texts = |atoms: &[&str]| atoms.iter().map(|atom| (*atom).to_string()).collect();
    let (kind, constraint, legal, illegal): (_, _, Vec<String>, Vec<String>) = match random.below(10) {
        0 => (Kind::Integer, "", texts(&["0", "1", "2", "-3", "7"]), texts(&["1.5", "\"1\"", "null"])),
        1 => (
            Kind::Integer,
            ",\"minInteger\":-1,\"maxInteger\":5",
            texts(&["-1", "0", "1", "5"]),
            texts(&["-2", "6", "true"]),
        ),
        2 => (
            Kind::Integer,
            ",\"enum\":[\"set\",[1,2,4]]",
            texts(&["1", "2", "4"]),
            texts(&["0", "3", "\"2\""]),
        ),
        3 => (Kind::Real, "", texts(&["0", "0.5", "-1.25", "2.0"]), texts(&["\"x\"", "false"])),
        4 => (Kind::Boolean, "", texts(&["true", "false"]), texts(&["0", "\"true\""])),
        5 => (Kind::String, "", texts(&["\"\"", "\"a\"", "\"b\"", "\"é\""]), texts(&["1", "[\"set\"]"])),
        6 => (
            Kind::String,
            ",\"minLength\":1,\"maxLength\":3",
            texts(&["\"a\"", "\"bcd\"", "\"ééé\""]),
            texts(&["\"\"", "\"abcd\""]),
        ),
        7 => (
            Kind::String,
            ",\"enum\":[\"set\",[\"tcp\",\"udp\"]]",
            texts(&["\"tcp\"", "\"udp\""]),
            texts(&["\"sctp\"", "\"\""]),
        ),
        _ if may_refer => return reference(random, tables),
        _ => (
            Kind::Uuid,
            "",
            texts(&[
                "[\"uuid\",\"00000000-0000-0000-0000-000000000000\"]",
                "[\"uuid\",\"00000000-0000-4000-8000-000000000001\"]",
            ]),
            texts(&["[\"uuid\",\"1\"]", "\"00000000-0000-4000-8000-000000000001\""]),
        ),
    };
    Base { kind, constraint: constraint.to_string(), legal, illegal }
}

fn reference(random: &mut Random, tables: usize) -> Base {
    let table = random.below(tables as u64) as usize;
    let strength = if random.one_in(2) { "strong" } else { "weak" };
    Base {
        kind: Kind::Reference(table),
        constraint: format!(",\"refTable\":\"T{table}\",\"refType\":\"{strength}\""),
        legal: Vec::new(),
        illegal: vec!["\"T0\"".to_string(), "[\"uuid\",7]".to_string()],
    }
}
