//! Conditions by name: which rows an operation, a monitor or a look-up is about.
//!
//! What holds is decided by the executor's own code, so that the client and the server never differ.

use crate::error::BuildError;
use crate::model::IntoDatum;
use cowslip_engine::{IndexIx, TableIx, Uuid};
use cowslip_ovsdb::atom::{Atom, AtomicType};
use cowslip_ovsdb::condition::{Clause, Condition, Function, column_type};
use cowslip_ovsdb::datum::Datum;
use cowslip_ovsdb::executor::indexed;
use cowslip_ovsdb::row::{IndexKey, Row};
use cowslip_ovsdb::schema::{Column, Schema, TableSchema};
use cowslip_ovsdb::types::{ColumnType, UNLIMITED};

/// Requirements on a row, by the names of columns. All must hold, and one of them may be that one of several filters does.
///
/// ```
/// use cowslip_ovsdb_client::Filter;
/// let filter = Filter::all().equal("name", "br0").includes("external_ids", &std::collections::BTreeMap::from([
///     ("owner".to_string(), "me".to_string()),
/// ]));
/// let either = Filter::all().equal("name", "br0").or(Filter::all().equal("name", "br1"));
/// let both = filter.and(either);
/// # let _ = both;
/// ```
///
/// # Where "or" is understood
/// * **Look-ups** take any filter, and use an index for each of the filters joined by [`or`](Self::or) if there is one.
/// * **Monitors** know nothing but "or": the clauses of their condition are alternatives of one requirement each. A
///   filter that has a row meet two requirements at once is refused there ([`BuildError::Conjunction`]).
/// * **Operations** know nothing but "and" (RFC 7047 section 5.2: all conditions of a `where` must hold). A filter with
///   an "or" in it is refused there ([`BuildError::Disjunction`]); [`alternatives`](Self::alternatives) gives the filters
///   for as many operations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    clauses: Vec<FilterClause>,
}

#[derive(Clone, Debug, PartialEq)]
enum FilterClause {
    Always(bool),
    Test {
        column: String,
        function: Function,
        argument: Datum,
    },
    /// One of these must hold. Neither one nor none, and none of them is `Any` alone.
    Any(Vec<Filter>),
}

impl Filter {
    /// Every row.
    pub fn all() -> Self {
        Filter::default()
    }

    /// No row: as a monitor's filter, when rows are to be let in later.
    pub fn none() -> Self {
        Filter { clauses: vec![FilterClause::Always(false)] }
    }

    /// The row with this UUID.
    pub fn uuid(uuid: Uuid) -> Self {
        Filter::all().test("_uuid", Function::Equal, &uuid)
    }

    /// The rows that one of the filters lets in; no row, if there is no filter.
    ///
    /// ```
    /// use cowslip_ovsdb_client::Filter;
    /// let names = ["br0", "br1", "br2"];
    /// let filter = Filter::any_of(names.map(|name| Filter::all().equal("name", name)));
    /// assert_eq!(filter.alternatives().len(), 3);
    /// ```
    pub fn any_of(filters: impl IntoIterator<Item = Filter>) -> Self {
        let mut any = Vec::new();
        for mut filter in filters {
            match filter.clauses.as_mut_slice() {
                [FilterClause::Any(nested)] => any.append(nested),
                _ => any.push(filter),
            }
        }
        match any.len() {
            0 => Filter::none(),
            1 => any.remove(0),
            _ => Filter { clauses: vec![FilterClause::Any(any)] },
        }
    }

    /// The rows that this filter lets in, and those that the other one does.
    #[must_use]
    pub fn or(mut self, other: Filter) -> Self {
        // In place, so that joining many one by one takes no longer than it should.
        if let [FilterClause::Any(any)] = self.clauses.as_mut_slice() {
            match <[_; 1]>::try_from(other.clauses) {
                Ok([FilterClause::Any(mut nested)]) => any.append(&mut nested),
                Ok(clauses) => any.push(Filter { clauses: clauses.into() }),
                Err(clauses) => any.push(Filter { clauses }),
            }
            return self;
        }
        Filter::any_of([self, other])
    }

    /// The rows that both filters let in.
    #[must_use]
    pub fn and(mut self, other: Filter) -> Self {
        self.clauses.extend(other.clauses);
        self
    }

    /// Adds a requirement.
    #[must_use]
    pub fn test(mut self, column: &str, function: Function, argument: &(impl IntoDatum + ?Sized)) -> Self {
        let argument = argument.to_datum();
        self.clauses.push(FilterClause::Test { column: column.to_string(), function, argument });
        self
    }

    /// The column has this value.
    #[must_use]
    pub fn equal(self, column: &str, value: &(impl IntoDatum + ?Sized)) -> Self {
        self.test(column, Function::Equal, value)
    }

    /// The column has another value.
    #[must_use]
    pub fn not_equal(self, column: &str, value: &(impl IntoDatum + ?Sized)) -> Self {
        self.test(column, Function::NotEqual, value)
    }

    /// The column has all of these members.
    #[must_use]
    pub fn includes(self, column: &str, value: &(impl IntoDatum + ?Sized)) -> Self {
        self.test(column, Function::Includes, value)
    }

    /// The column has none of these members.
    #[must_use]
    pub fn excludes(self, column: &str, value: &(impl IntoDatum + ?Sized)) -> Self {
        self.test(column, Function::Excludes, value)
    }

    /// Filters without an "or" that together let the same rows in: one, if there is no "or" in this one. A row may be let
    /// in by several of them.
    ///
    /// This is how "or" comes into operations: one operation for each. Deleting twice, and setting columns twice to the
    /// same values, is the same as once, other than for the counts in the results; a **mutation** is made anew each time,
    /// so there the alternatives must not overlap. Of several "or" joined by "and" these are all combinations.
    ///
    /// ```
    /// use cowslip_ovsdb_client::Filter;
    /// # fn delete(tx: &mut cowslip_ovsdb_client::Transaction) {
    /// let stale = Filter::all().equal("name", "a").or(Filter::all().equal("v", &7_i64));
    /// for rows in stale.alternatives() {
    ///     tx.delete("Bridge", &rows);
    /// }
    /// # }
    /// ```
    pub fn alternatives(&self) -> Vec<Filter> {
        let mut all = vec![Filter::all()];
        for clause in &self.clauses {
            match clause {
                FilterClause::Any(any) => {
                    let nested: Vec<Filter> = any.iter().flat_map(Filter::alternatives).collect();
                    let with_each = |filter: &Filter| {
                        let filter = filter.clone();
                        nested.iter().map(move |other| filter.clone().and(other.clone())).collect::<Vec<_>>()
                    };
                    all = all.iter().flat_map(with_each).collect();
                }
                clause => all.iter_mut().for_each(|filter| filter.clauses.push(clause.clone())),
            }
        }
        all
    }

    /// The condition of an operation, by numbers.
    pub(crate) fn resolve(&self, schema: &Schema, table: TableIx) -> Result<Condition, BuildError> {
        let definition = schema.at(table);
        let clauses = self.clauses.iter().map(|clause| {
            let refuse = || BuildError::Disjunction { table: definition.name.to_string() };
            resolve_clause(definition, clause)?.ok_or_else(refuse)
        });
        Ok(Condition { clauses: clauses.collect::<Result<_, BuildError>>()? })
    }

    /// The filter of a look-up, by numbers.
    pub(crate) fn resolve_all(&self, schema: &Schema, table: TableIx) -> Result<Selection, BuildError> {
        let definition = schema.at(table);
        let mut selection = Selection::default();
        for clause in &self.clauses {
            match (resolve_clause(definition, clause)?, clause) {
                (Some(clause), _) => selection.condition.clauses.push(clause),
                (None, FilterClause::Any(any)) => {
                    let any = any.iter().map(|filter| filter.resolve_all(schema, table));
                    selection.groups.push(any.collect::<Result<_, _>>()?);
                }
                (None, _) => {}
            }
        }
        Ok(selection)
    }

    /// Whether no row has to meet two requirements at once.
    pub(crate) fn is_disjunction(&self) -> bool {
        match self.clauses.as_slice() {
            [FilterClause::Any(any)] => any.iter().all(Filter::is_disjunction),
            clauses => clauses.len() <= 1,
        }
    }

    /// The condition of a monitor, by numbers: one of its clauses must hold. None if every row is let in.
    pub(crate) fn resolve_any(
        &self,
        schema: &Schema,
        table: TableIx,
    ) -> Result<Option<Vec<Clause>>, BuildError> {
        let definition = schema.at(table);
        let refuse = || BuildError::Conjunction { table: definition.name.to_string() };
        match self.clauses.as_slice() {
            [] => Ok(None),
            [FilterClause::Any(any)] => {
                let mut clauses = Vec::new();
                for filter in any {
                    match filter.resolve_any(schema, table)? {
                        Some(more) => clauses.extend(more),
                        None => return Ok(None),
                    }
                }
                Ok(Some(clauses))
            }
            [clause] => Ok(resolve_clause(definition, clause)?.map(|clause| vec![clause])),
            _ => Err(refuse()),
        }
    }
}

/// A clause by numbers; none if it is an "or".
fn resolve_clause(definition: &TableSchema, clause: &FilterClause) -> Result<Option<Clause>, BuildError> {
    match clause {
        FilterClause::Always(holds) => Ok(Some(Clause::Always(*holds))),
        FilterClause::Any(_) => Ok(None),
        FilterClause::Test { column: name, function, argument } => {
            let column = column_of(definition, name)?;
            let ty = function
                .argument_type(column_type(definition, column))
                .ok_or_else(|| value_error(definition, name, "this column has no order"))?;
            check(definition, name, &ty, argument)?;
            Ok(Some(Clause::Test { column, function: *function, argument: argument.clone() }))
        }
    }
}

/// A filter by the numbers of columns, as look-ups use it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selection {
    /// All of these must hold.
    condition: Condition,
    /// Of each of these, one must.
    groups: Vec<Vec<Selection>>,
}

/// How the rows of a selection are found. What is found so is a superset, and may name a row twice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Path {
    /// The row of this UUID, if it is there.
    ByUuid(Uuid),
    /// The holders of a key.
    ByIndex(IndexIx, IndexKey),
    /// What each of these finds.
    EachOf(Vec<Path>),
    /// Every row.
    Scan,
}

impl Selection {
    /// Whether a row is let in.
    pub(crate) fn holds(&self, uuid: &Uuid, row: &Row) -> bool {
        let one_holds = |group: &Vec<Selection>| group.iter().any(|selection| selection.holds(uuid, row));
        self.condition.all_hold(uuid, row) && self.groups.iter().all(one_holds)
    }

    /// The best way to the rows.
    pub(crate) fn path(&self, definition: &TableSchema) -> Path {
        let uuid = self.condition.equal_to(Column::Uuid).and_then(Datum::as_one).and_then(Atom::as_uuid);
        if let Some(uuid) = uuid {
            return Path::ByUuid(*uuid);
        }
        if let Some((index, key)) = indexed(definition, &self.condition) {
            return Path::ByIndex(index, key);
        }
        let paths = self.groups.iter().filter_map(|group| {
            let paths: Vec<Path> = group.iter().map(|selection| selection.path(definition)).collect();
            (!paths.contains(&Path::Scan)).then_some(paths)
        });
        paths.min_by_key(Vec::len).map_or(Path::Scan, Path::EachOf)
    }
}

/// The number of a table.
pub(crate) fn table_of(schema: &Schema, table: &str) -> Result<TableIx, BuildError> {
    schema.table(table).ok_or_else(|| BuildError::Table { table: table.to_string() })
}

/// The number of a column.
pub(crate) fn column_of(definition: &TableSchema, column: &str) -> Result<Column, BuildError> {
    definition
        .column(column)
        .ok_or_else(|| BuildError::Column { table: definition.name.to_string(), column: column.to_string() })
}

fn value_error(definition: &TableSchema, column: &str, reason: impl Into<String>) -> BuildError {
    let table = definition.name.to_string();
    BuildError::Value { table, column: column.to_string(), reason: reason.into() }
}

/// Whether a value could have come in a message for a column of this type.
pub(crate) fn check(
    definition: &TableSchema,
    column: &str,
    ty: &ColumnType,
    value: &Datum,
) -> Result<(), BuildError> {
    let count = value.len();
    if count < ty.min as usize || (ty.max != UNLIMITED && count > ty.max as usize) {
        let reason = format!("{count} members where {} are allowed", crate::model::count_in_words(ty));
        return Err(value_error(definition, column, reason));
    }
    let is = |atom: &Atom, kind: AtomicType| atomic_type(atom) == kind;
    for (key, member) in value.members() {
        let fits = is(key, ty.key.atomic)
            && match (&ty.value, member) {
                (Some(base), Some(member)) => is(member, base.atomic),
                (None, None) => true,
                _ => false,
            };
        if !fits {
            return Err(value_error(definition, column, format!("expected {}", ty.in_words())));
        }
    }
    value.check_members(ty).map_err(|error| value_error(definition, column, error.to_string()))
}

fn atomic_type(atom: &Atom) -> AtomicType {
    match atom {
        Atom::Integer(_) => AtomicType::Integer,
        Atom::Real(_) => AtomicType::Real,
        Atom::Boolean(_) => AtomicType::Boolean,
        Atom::String(_) => AtomicType::String,
        Atom::Uuid(_) => AtomicType::Uuid,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Schema {
        let text = br#"{"name":"T","tables":{"T":{"indexes":[["name"]],"columns":{"name":{"type":"string"},
            "v":{"type":"integer"},"ss":{"type":{"key":"string","min":0,"max":"unlimited"}}}}}}"#;
        Schema::parse(text).expect("the test's schema is one")
    }

    /// The row with this `v`.
    fn v(n: i64) -> Filter {
        Filter::all().equal("v", &n)
    }

    fn name(name: &str) -> Filter {
        Filter::all().equal("name", name)
    }

    #[test]
    fn or_is_the_same_however_it_is_joined() {
        let wanted = Filter::any_of([v(1), v(2), v(3)]);
        let same = [
            v(1).or(v(2)).or(v(3)),
            v(1).or(v(2).or(v(3))),
            Filter::any_of([v(1).or(v(2)), v(3)]),
            Filter::any_of([v(1), Filter::any_of([v(2)]), v(3)]),
        ];
        for filter in same {
            assert_eq!(filter, wanted);
        }
        assert_eq!(Filter::any_of([]), Filter::none());
        assert_eq!(Filter::any_of([v(1)]), v(1));
        let long = (2..10_000).fold(v(1), |filter, n| filter.or(v(n)));
        assert_eq!(long.alternatives().len(), 9_999);
    }

    #[test]
    fn alternatives_are_all_combinations() {
        let (ab, cd) = (v(1).or(v(2)), name("c").or(name("d")));
        let cases = [
            (Filter::all(), vec![Filter::all()]),
            (v(1).and(name("a")), vec![v(1).and(name("a"))]),
            (ab.clone(), vec![v(1), v(2)]),
            (ab.clone().or(Filter::all()), vec![v(1), v(2), Filter::all()]),
            (name("x").and(ab.clone()), vec![name("x").and(v(1)), name("x").and(v(2))]),
            (
                ab.clone().and(cd.clone()),
                vec![v(1).and(name("c")), v(1).and(name("d")), v(2).and(name("c")), v(2).and(name("d"))],
            ),
            (name("x").and(ab).or(cd), vec![name("x").and(v(1)), name("x").and(v(2)), name("c"), name("d")]),
        ];
        for (filter, wanted) in cases {
            assert_eq!(filter.alternatives(), wanted, "{filter:?}");
        }
    }

    /// What operations, monitors and look-ups make of a filter: whether it is refused, the number of clauses, the path.
    #[test]
    fn each_use_takes_what_it_can() {
        let schema = schema();
        let table = schema.table("T").expect("the test's schema has it");
        let both = || name("a").and(v(1));
        let by_name = |name: &str| Path::ByIndex(IndexIx(0), [name.to_datum()].as_slice().into());
        let or_names = || name("a").or(name("b"));
        let each_name = || Path::EachOf(vec![by_name("a"), by_name("b")]);
        // The filter, clauses of an operation, clauses of a monitor (or every row), the path of a look-up.
        let cases = [
            (Filter::all(), Some(0), Some(None), Path::Scan),
            (Filter::none(), Some(1), Some(Some(1)), Path::Scan),
            (name("a"), Some(1), Some(Some(1)), by_name("a")),
            (both(), Some(2), None, by_name("a")),
            (v(1).or(v(2)), None, Some(Some(2)), Path::Scan),
            (or_names(), None, Some(Some(2)), each_name()),
            (or_names().or(v(1)), None, Some(Some(3)), Path::Scan),
            (or_names().or(Filter::all()), None, Some(None), Path::Scan),
            (or_names().or(both()), None, None, Path::EachOf(vec![by_name("a"), by_name("b"), by_name("a")])),
            (v(1).and(or_names()), None, None, each_name()),
            (v(1).or(v(2)).and(or_names()), None, None, each_name()),
            (
                Filter::any_of([v(1).and(or_names()), name("a")]),
                None,
                None,
                Path::EachOf(vec![each_name(), by_name("a")]),
            ),
            (Filter::uuid(Uuid::nil()).and(or_names()), None, None, Path::ByUuid(Uuid::nil())),
        ];
        for (filter, operation, monitor, path) in cases {
            match (filter.resolve(&schema, table), operation) {
                (Ok(condition), Some(clauses)) => assert_eq!(condition.clauses.len(), clauses, "{filter:?}"),
                (Err(error), None) => assert_eq!(error, BuildError::Disjunction { table: "T".to_string() }),
                (found, _) => panic!("{filter:?}: {found:?}"),
            }
            assert_eq!(filter.is_disjunction(), monitor.is_some(), "{filter:?}");
            match (filter.resolve_any(&schema, table), monitor) {
                (Ok(found), Some(wanted)) => assert_eq!(found.map(|c| c.len()), wanted, "{filter:?}"),
                (Err(error), None) => assert_eq!(error, BuildError::Conjunction { table: "T".to_string() }),
                (found, _) => panic!("{filter:?}: {found:?}"),
            }
            let selection = filter.resolve_all(&schema, table).expect("a look-up takes every filter");
            assert_eq!(selection.path(schema.at(table)), path, "{filter:?}");
        }
    }

    #[test]
    fn what_is_wrong_inside_an_or_is_found() {
        let schema = schema();
        let table = schema.table("T").expect("the test's schema has it");
        let wrong = [
            Filter::all().equal("nothing", &1_i64),
            Filter::all().equal("v", "text"),
            Filter::all().test("ss", Function::Less, &1_i64),
        ];
        for filter in wrong {
            let alone = filter.resolve(&schema, table).expect_err("it is wrong");
            let filter = v(1).or(filter);
            assert_eq!(filter.resolve_any(&schema, table).expect_err("it is wrong"), alone);
            assert_eq!(filter.resolve_all(&schema, table).expect_err("it is wrong"), alone);
        }
    }
}
