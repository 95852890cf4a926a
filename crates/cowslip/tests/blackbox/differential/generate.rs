//! Random steps for two servers, driven by a schema: every column of every table gets values of its type, and now and
//! then values that are not.
//!
//! Invariants: the steps depend on the seed only. Rows are known by names that mean the same on both servers: either a
//! UUID of the small pool that clients choose from, or `@n`, the row that the insert with the private member `label` n
//! made. A UUID belongs to one table: the real server lets a row refer to its own UUID in a table that has no such row. A name used before its insert never goes with a chosen UUID (the real server loses such a reference, REF-16), and
//! no real is so large or so small that the real server prints what it cannot read (VAL-14).

use serde_json::{Map, Value, json};

/// Rows of each table that clients choose UUIDs for.
const POOL: u64 = 3;
/// How many of a table's latest labels references are taken from.
const LABELS_KEPT: u64 = 6;

/// A source of numbers that a seed determines (splitmix64).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(super) fn below(&mut self, n: u64) -> u64 {
        self.next() % n.max(1)
    }

    pub(super) fn percent(&mut self, n: u64) -> bool {
        self.below(100) < n
    }

    fn pick<'t, T>(&mut self, all: &'t [T]) -> &'t T {
        &all[self.below(all.len() as u64) as usize]
    }
}

/// A column as the generator and the client model see it.
pub(super) struct Column {
    pub(super) name: String,
    pub(super) key: Value,
    pub(super) value: Option<Value>,
    pub(super) min: u64,
    pub(super) max: u64,
}

impl Column {
    fn new(name: &str, definition: &Value) -> Column {
        let ty = &definition["type"];
        let whole = ty.is_string() || ty.get("key").is_none();
        let base = |json: &Value| if json.is_string() { json!({ "type": json }) } else { json.clone() };
        let bound = |name: &str| match ty.get(name) {
            Some(Value::String(_)) => u64::MAX,
            other => other.and_then(Value::as_u64).unwrap_or(1),
        };
        Column {
            name: name.to_owned(),
            key: base(if whole { ty } else { &ty["key"] }),
            value: ty.get("value").map(base),
            min: bound("min"),
            max: bound("max"),
        }
    }

    fn is_scalar(&self) -> bool {
        self.min == 1 && self.max == 1 && self.value.is_none()
    }

    fn is_limited(&self) -> bool {
        self.min == 1 && self.key.as_object().is_some_and(|base| base.len() > 1)
    }
}

/// A table and the columns of it.
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
}

/// The tables of a schema.
pub(super) fn tables(schema: &Value) -> Vec<Table> {
    let members = |value: &Value| value.as_object().cloned().unwrap_or_default();
    members(&schema["tables"])
        .iter()
        .map(|(name, table)| Table {
            name: name.clone(),
            columns: members(&table["columns"]).iter().map(|(name, c)| Column::new(name, c)).collect(),
        })
        .collect()
}

/// One step of a history.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Operations of one transaction.
    Transact(Vec<Value>),
    /// New conditions of the conditional monitor, by table.
    Conditions(Value),
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Transact(operations) => write!(f, "{}", Value::from(operations.clone())),
            Step::Conditions(conditions) => write!(f, "conditions {conditions}"),
        }
    }
}

/// Makes steps.
pub(super) struct Generator<'s> {
    pub(super) random: Random,
    tables: &'s [Table],
    /// The tables of the rows that have labels.
    labels: Vec<String>,
    /// Names used and names defined in the transaction being made.
    used: Vec<String>,
    /// Whether the operation being made may get a fault.
    may_err: bool,
}

impl<'s> Generator<'s> {
    pub(super) fn new(seed: u64, tables: &'s [Table]) -> Self {
        Generator { random: Random::new(seed), tables, labels: Vec::new(), used: Vec::new(), may_err: false }
    }

    pub(super) fn step(&mut self) -> Step {
        if self.random.percent(4) {
            return Step::Conditions(self.conditions());
        }
        self.used.clear();
        if self.random.percent(20) {
            return Step::Transact(self.family());
        }
        let count = 1 + self.random.below(4);
        Step::Transact((0..count).map(|_| self.operation()).collect())
    }

    /// A row of the root table with rows that it keeps alive: what most rules are about.
    fn family(&mut self) -> Vec<Value> {
        let mut operations = Vec::new();
        let column = *self.random.pick(&["kids", "one", "owned"]);
        for n in 0..1 + self.random.below(2) {
            let row = json!({"name": self.random.pick(&["a", "b", "c"]), "n": self.random.below(3)});
            let mut next = json!(["set", []]);
            if self.random.percent(30) {
                let name = format!("Kid{}", 1 - n);
                next = json!(["named-uuid", name]);
                self.used.push(name);
            }
            let name = format!("Kid{n}");
            self.used.push(name.clone());
            let mut op = json!({"op": "insert", "table": "Kid", "uuid-name": name, "row": row});
            op["row"]["next"] = next;
            op["label"] = json!(self.labels.len());
            self.labels.push("Kid".to_owned());
            operations.push(op);
        }
        let kid = json!(["named-uuid", "Kid0"]);
        let value =
            if column == "owned" { json!(["map", [[kid, self.random.below(3)]]]) } else { kid.clone() };
        if self.random.percent(60) {
            let name = *self.random.pick(&["", "a", "b", "c"]);
            let mut row = json!({ "name": name, column: value, "byname": ["map", [["a", kid], ["b", self.reference("Kid", false)]]] });
            row["friends"] = json!(["set", [self.reference("Root", false)]]);
            operations
                .push(json!({"op": "insert", "table": "Root", "row": row, "uuid": self.pool_uuid("Root")}));
        } else {
            let condition = json!([["_uuid", "==", self.reference("Root", false)]]);
            let mutations = json!([[column, "insert", value], ["byname", "insert", ["map", [["c", kid]]]]]);
            operations
                .push(json!({"op": "mutate", "table": "Root", "where": condition, "mutations": mutations}));
        }
        if self.random.percent(40) {
            operations.push(self.operation());
        }
        operations
    }

    /// Conditions for some tables.
    pub(super) fn conditions(&mut self) -> Value {
        let mut all = json!({});
        for table in self.tables {
            if self.random.percent(60) {
                all[&table.name] = json!([{ "where": self.monitor_condition(table) }]);
            }
        }
        all
    }

    /// A condition that both servers take.
    pub(super) fn monitor_condition(&mut self, table: &Table) -> Value {
        self.may_err = false;
        let count = self.random.below(4);
        Value::Array((0..count).map(|_| self.clause(table, false)).collect())
    }

    fn pool_uuid(&mut self, table: &str) -> String {
        let at = self.tables.iter().position(|t| t.name == table).unwrap_or_default();
        format!("a0000000-0000-4000-8000-0000000{at:02x}{:03x}", self.random.below(POOL))
    }

    /// A reference to a row that may exist, may come to exist, or may not.
    fn reference(&mut self, table: &str, named: bool) -> Value {
        match self.random.below(20) {
            0 | 1 if named => {
                let name = format!("{table}{}", self.random.below(3));
                self.used.push(name.clone());
                json!(["named-uuid", name])
            }
            2..=5 => {
                let labels: Vec<usize> =
                    (0..self.labels.len()).rev().filter(|n| self.labels[*n] == table).collect();
                let back = self.random.below(LABELS_KEPT) as usize;
                json!(["uuid", format!("@{}", labels.get(back).map_or(u64::MAX, |n| *n as u64))])
            }
            _ => json!(["uuid", self.pool_uuid(table)]),
        }
    }

    fn atom(&mut self, base: &Value, named: bool) -> Value {
        if let Some(choices) = base.get("enum") {
            let mut choices = choices[1].as_array().cloned().unwrap_or_default();
            if self.errs(20) {
                choices = vec![if choices[0].is_string() { json!("zz") } else { json!(4) }];
            }
            return self.random.pick(&choices).clone();
        }
        let is_limited = base.as_object().is_some_and(|b| b.len() > 1);
        match base["type"].as_str().unwrap_or_default() {
            "integer" if is_limited && !self.errs(20) => json!(1 + self.random.below(3)),
            "real" if is_limited && !self.errs(20) => json!(*self.random.pick(&[0.0, 1.5, -1.5, 0.5, 0.1])),
            "string" if is_limited && !self.errs(20) => json!(*self.random.pick(&["ab", "abcd", "é€😀"])),
            "integer" if self.random.percent(6) => self
                .random
                // Not the largest integer itself: the real server refuses a product that is exactly that.
                .pick(&[json!(i64::MAX - 1), json!(i64::MIN), json!((1_i64 << 53) + 1), json!(3.0)])
                .clone(),
            "integer" => json!(self.random.below(7) as i64 - 1),
            "real" => self
                .random
                .pick(&[0.0, 1.5, -1.25, 0.1, 0.5, 1e15, 3.0, 1e200, -0.75, 1.0, 1e-200])
                .to_owned()
                .into(),
            "boolean" => json!(self.random.percent(50)),
            "uuid" => {
                let table = base["refTable"].as_str().unwrap_or("Root").to_owned();
                self.reference(&table, named)
            }
            _ => json!(self.random.pick(&["", "a", "b", "c", "ab", "é€😀", "abcd", "abcde", "q\"\\\n\u{1}"])),
        }
    }

    /// Whether something wrong comes next. One fault per operation: of two, the servers may report either.
    fn errs(&mut self, percent: u64) -> bool {
        let errs = self.may_err && self.random.percent(percent);
        self.may_err &= !errs;
        errs
    }

    /// Something that is hardly ever right.
    fn nonsense(&mut self) -> Value {
        let all = json!([
            null,
            {},
            [],
            true,
            "x",
            1.5,
            1e3,
            ["set", [1, 1]],
            ["map", []],
            ["map", [["a", 1], ["a", 2]]],
            ["map", [[1]]],
            ["uuid", "nope"],
            ["set", []],
            ["set", [1, "a"]],
            1e19,
            ["named-uuid", "0bad"],
            ["set"],
            ["set", [["set", [1]]]],
            ["set", {}],
            ["map", [[1, 2, 3]]],
            "",
            -1,
            ["uuid", "A0000000-0000-4000-8000-000000000001"],
            ["set", ["a", "a", "b"]],
            [1, 2]
        ]);
        let all = all.as_array().cloned().unwrap_or_default();
        self.random.pick(&all).clone()
    }

    fn datum(&mut self, column: &Column, min: u64, max: u64, named: bool) -> Value {
        if self.errs(20) {
            return self.nonsense();
        }
        let many = if self.random.percent(3) { 80 } else { 4 };
        let count = min.max(self.random.below(max.min(many - 1) + 1));
        let mut keys: Vec<Value> = Vec::new();
        for n in 0..count {
            let wide = many > 4 && column.key == json!({"type": "integer"});
            let key = if wide { json!(n + 3) } else { self.atom(&column.key, named) };
            if keys.len() < min as usize || !keys.contains(&key) {
                keys.push(key);
            }
        }
        match &column.value {
            Some(value) => {
                let pairs: Vec<Value> =
                    keys.into_iter().map(|k| json!([k, self.atom(value, named)])).collect();
                json!(["map", pairs])
            }
            None if keys.len() == 1 && self.random.percent(85) => keys.remove(0),
            None => json!(["set", keys]),
        }
    }

    fn column_name(&mut self, table: &Table) -> String {
        match self.random.below(40) {
            0 => "_version".to_owned(),
            1..=4 => "_uuid".to_owned(),
            5 if self.errs(50) => "nope".to_owned(),
            _ => self.random.pick(&table.columns).name.clone(),
        }
    }

    fn clause(&mut self, table: &Table, may_fail: bool) -> Value {
        if self.random.percent(5) {
            return json!(self.random.percent(50));
        }
        if self.random.percent(15) {
            let function = *self.random.pick(&["==", "!=", "includes", "excludes"]);
            return json!(["_uuid", function, self.reference(&table.name, may_fail)]);
        }
        let column = self.random.pick(&table.columns);
        let number = matches!(column.key["type"].as_str(), Some("integer" | "real"));
        let ordered = number && column.value.is_none() && column.max == 1;
        let function = match self.random.below(if ordered { 12 } else { 6 }) {
            0..=2 => "==",
            3 => "!=",
            4 => "includes",
            5 => "excludes",
            _ => self.random.pick(&["<", "<=", ">", ">="]),
        };
        let function = if may_fail && self.errs(10) { self.random.pick(&["<", "~", ">="]) } else { function };
        let min = if matches!(function, "<" | "<=" | ">" | ">=") { 1 } else { column.min };
        let value = self.datum(column, min, column.max, may_fail);
        // Monitors must be accepted, or there is nothing to compare.
        if !may_fail && !self.is_plain(column, &value) {
            return json!(["_uuid", "!=", self.reference(&table.name, false)]);
        }
        json!([column.name, function, value])
    }

    /// Whether a value is certainly one of the column's.
    fn is_plain(&self, column: &Column, value: &Value) -> bool {
        let base = &column.key;
        let fits = |atom: &Value| match base["type"].as_str() {
            _ if base.get("enum").is_some() => {
                base["enum"][1].as_array().is_some_and(|all| all.contains(atom))
            }
            Some("integer") => {
                atom.as_i64().is_some_and(|i| base.get("minInteger").is_none() || (1..=5).contains(&i))
            }
            Some("real") => atom.as_f64().is_some_and(|r| base.get("minReal").is_none() || r.abs() < 1.4),
            Some("string") => atom.as_str().is_some_and(|s| base.get("minLength").is_none() || s == "ab"),
            Some("boolean") => atom.is_boolean(),
            _ => atom[0] == "uuid" && atom[1].as_str().is_some_and(|s| s.starts_with('a')),
        };
        match value[0].as_str().zip(value[1].as_array().map(Vec::as_slice)) {
            Some(("set", members)) if column.value.is_none() => {
                let distinct = members.iter().enumerate().all(|(i, m)| !members[..i].contains(m) && fits(m));
                distinct && members.len() as u64 >= column.min && members.len() as u64 <= column.max
            }
            Some(("map", [])) => column.value.is_some() && column.min == 0,
            _ => column.value.is_none() && fits(value),
        }
    }

    fn condition(&mut self, table: &Table) -> Value {
        match self.random.below(10) {
            0 | 1 => json!([]),
            2..=6 => json!([["_uuid", "==", self.reference(&table.name, true)]]),
            _ => {
                let count = 1 + self.random.below(2);
                Value::Array((0..count).map(|_| self.clause(table, true)).collect())
            }
        }
    }

    fn row(&mut self, table: &Table, is_insert: bool) -> Value {
        let mut row = Map::new();
        for column in &table.columns {
            let limited = if self.may_err { 93 } else { 100 };
            let share = if is_insert && column.is_limited() {
                limited
            } else if is_insert {
                45
            } else {
                25
            };
            if self.random.percent(share) {
                row.insert(column.name.clone(), self.datum(column, column.min, column.max, true));
            }
        }
        if self.errs(10) {
            let name = self.column_name(table);
            row.insert(name, self.nonsense());
        }
        Value::Object(row)
    }

    fn mutation(&mut self, table: &Table) -> Value {
        let column = self.random.pick(&table.columns);
        if self.errs(20) {
            let name = self.column_name(table);
            return json!([name, self.random.pick(&["+=", "insert", "delete", "^="]), self.nonsense()]);
        }
        let number =
            matches!(column.key["type"].as_str(), Some("integer" | "real")) && column.value.is_none();
        let arithmetic = number && (column.is_scalar() || self.random.percent(50));
        if arithmetic {
            let mutator = *self.random.pick(&["+=", "-=", "*=", "/=", "%="]);
            return json!([column.name, mutator, self.atom(&column.key, true)]);
        }
        let mutator = *self.random.pick(&["insert", "delete"]);
        let argument = match &column.value {
            Some(_) if mutator == "delete" && self.random.percent(60) => {
                json!(["set", [self.atom(&column.key, true)]])
            }
            _ => self.datum(column, 0, column.max.max(2), true),
        };
        json!([column.name, mutator, argument])
    }

    fn columns(&mut self, table: &Table) -> Value {
        let count = 1 + self.random.below(4);
        let mut names: Vec<String> = Vec::new();
        for _ in 0..count {
            let name = self.column_name(table);
            if name != "_version" && (!names.contains(&name) || self.errs(20)) {
                names.push(name);
            }
        }
        json!(names)
    }

    fn insert(&mut self, table: &Table) -> Value {
        let mut chosen = self.random.percent(75);
        // A chosen UUID may be taken, which is a fault, too.
        self.may_err &= !chosen;
        let row = self.row(table, true);
        let mut op = json!({"op": "insert", "table": table.name, "row": row});
        if self.random.percent(35) {
            let name = format!("{}{}", table.name, self.random.below(3));
            chosen &= !self.used.contains(&name);
            self.used.push(name.clone());
            op["uuid-name"] = json!(name);
        }
        if chosen {
            op["uuid"] = json!(self.pool_uuid(&table.name));
        } else {
            op["label"] = json!(self.labels.len());
            self.labels.push(table.name.clone());
        }
        op
    }

    fn operation(&mut self) -> Value {
        let tables = self.tables;
        self.may_err = self.random.percent(12);
        // Most rules are about the first two tables.
        let table = if self.random.percent(40) {
            &tables[self.random.below(2) as usize]
        } else {
            self.random.pick(tables)
        };
        let name = &table.name;
        let mut op = match self.random.below(100) {
            0..=34 => self.insert(table),
            35..=52 => {
                json!({"op": "update", "table": name, "where": self.condition(table), "row": self.row(table, false)})
            }
            53..=72 => {
                let count = 1 + self.random.below(3);
                let mutations: Vec<Value> = (0..count).map(|_| self.mutation(table)).collect();
                json!({"op": "mutate", "table": name, "where": self.condition(table), "mutations": mutations})
            }
            73..=83 => json!({"op": "delete", "table": name, "where": self.condition(table)}),
            84..=91 => self.select(table),
            92..=96 => self.wait(table),
            _ => self.small_operation(),
        };
        if op.get("uuid").is_none() && self.errs(15) {
            self.spoil(&mut op);
        }
        op
    }

    fn select(&mut self, table: &Table) -> Value {
        let columns = self.columns(table);
        let mut op =
            json!({"op": "select", "table": table.name, "where": self.condition(table), "columns": columns});
        if self.random.percent(30) {
            op["sort"] = columns;
        }
        op
    }

    fn wait(&mut self, table: &Table) -> Value {
        let until = *self.random.pick(&["==", "!="]);
        let count = self.random.below(3);
        let rows: Vec<Value> = (0..count).map(|_| self.row(table, false)).collect();
        let columns = self.columns(table);
        let condition = self.condition(table);
        json!({"op": "wait", "timeout": 0, "table": table.name, "where": condition, "columns": columns, "until": until,
               "rows": rows})
    }

    fn small_operation(&mut self) -> Value {
        let all = json!([
            {"op": "abort"}, {"op": "comment", "comment": "c"}, {"op": "commit", "durable": false},
            {"op": "assert", "lock": "L"}, {"op": "comment"}, {"op": "bogus"}, 7, {"op": "commit", "durable": 1},
            {"op": "comment", "comment": "c"}, {"op": "assert", "lock": "0 bad"}, {}
        ]);
        let all = all.as_array().cloned().unwrap_or_default();
        self.random.pick(&all).clone()
    }

    /// Takes a member away or puts a strange one in. Time-outs stay 0, or a transaction might wait for ever.
    fn spoil(&mut self, op: &mut Value) {
        let nonsense = self.nonsense();
        let Some(members) = op.as_object_mut() else { return };
        let names: Vec<String> =
            members.keys().filter(|k| !["label", "op", "timeout"].contains(&k.as_str())).cloned().collect();
        match (self.random.below(3), names.is_empty()) {
            (0, false) => {
                members.remove(self.random.pick(&names));
            }
            (1, false) => {
                let name = self.random.pick(&names).clone();
                members.insert(name, nonsense);
            }
            _ => {
                members.insert("strange".to_owned(), nonsense);
            }
        }
    }
}
