//! The requests of a load, made one by one without allocating.
//!
//! Which entry is next is random, except for adds and deletes, which go through their names once.

use super::pattern::{NamePattern, Random};
use super::population::{PASSWORD, Person};
use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{
    Authentication, ChangeOperation, MessageId, Scope, SearchParameters, write_add, write_bind, write_delete,
    write_modify, write_search,
};

/// What a load asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Replace the values of some attributes of an entry.
    Modify,
    /// Find an entry by the attribute that names it.
    Search,
    /// Bind as an entry.
    Bind,
    /// Add an entry.
    Add,
    /// Delete an entry.
    Delete,
    /// Modifies among searches.
    Mixed {
        /// How many of a hundred are modifies.
        writes_percent: u8,
    },
}

impl Kind {
    /// The name in tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Modify => "modify",
            Self::Search => "search",
            Self::Bind => "bind",
            Self::Add => "add",
            Self::Delete => "delete",
            Self::Mixed { .. } => "mixed",
        }
    }
}

/// What a load is about.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    /// The entries.
    pub(crate) entries: NamePattern,
    /// The attributes that modifies replace.
    pub(crate) attributes: Vec<String>,
    /// The length of their values, in bytes.
    pub(crate) value_bytes: usize,
    /// Where searches begin.
    pub(crate) base: String,
    /// The password that binds give.
    pub(crate) password: String,
}

/// Makes requests.
pub(crate) struct Requests {
    kind: Kind,
    subject: Subject,
    random: Random,
    /// How many adds or deletes were made.
    made: u64,
    /// Tells the entries of one load from those of another.
    first_new: u64,
    name: String,
    values: Vec<[Vec<u8>; 1]>,
    filter: Filter,
}

impl Requests {
    /// Requests of a kind. Names of added entries begin at `first_new`.
    pub(crate) fn new(kind: Kind, subject: &Subject, seed: u64, first_new: u64) -> Self {
        let attribute = subject.entries.attribute().to_owned();
        Self {
            kind,
            subject: subject.clone(),
            random: Random::new(seed),
            made: 0,
            first_new,
            name: String::new(),
            values: vec![[vec![0; subject.value_bytes]]; subject.attributes.len()],
            filter: Filter::Equality { attribute, value: Vec::new() },
        }
    }

    /// How many adds or deletes were made.
    pub(crate) fn made(&self) -> u64 {
        self.made
    }

    /// Appends the next request; false if there is nothing left to ask for.
    pub(crate) fn append(&mut self, out: &mut Vec<u8>, id: MessageId) -> bool {
        match self.kind {
            Kind::Modify => self.modify(out, id),
            Kind::Search => self.search(out, id),
            Kind::Mixed { writes_percent } => {
                if self.random.below(100) < u64::from(writes_percent) {
                    self.modify(out, id);
                } else {
                    self.search(out, id);
                }
            }
            Kind::Bind => {
                self.pick();
                let password = Authentication::Simple(self.subject.password.as_bytes());
                write_bind(out, id, self.name.as_bytes(), password, &[]);
            }
            Kind::Add => self.add(out, id),
            Kind::Delete => {
                if self.made == self.subject.entries.len() {
                    return false;
                }
                self.subject.entries.name(self.subject.entries.number(self.made), &mut self.name);
                self.made += 1;
                write_delete(out, id, self.name.as_bytes(), &[]);
            }
        }
        true
    }

    /// Chooses an entry and writes its name.
    fn pick(&mut self) -> u64 {
        let entries = &self.subject.entries;
        let number = entries.number(self.random.below(entries.len()));
        entries.name(number, &mut self.name);
        number
    }

    fn modify(&mut self, out: &mut Vec<u8>, id: MessageId) {
        self.pick();
        for [value] in &mut self.values {
            self.random.letters(value);
        }
        let attributes = self.subject.attributes.iter().zip(&self.values);
        let changes =
            attributes.map(|(attribute, value)| (ChangeOperation::Replace, attribute.as_str(), &value[..]));
        write_modify(out, id, self.name.as_bytes(), changes, &[]);
    }

    fn search(&mut self, out: &mut Vec<u8>, id: MessageId) {
        let number = self.pick();
        if let Filter::Equality { value, .. } = &mut self.filter {
            self.subject.entries.value(number, value);
        }
        let search = SearchParameters {
            base: &self.subject.base,
            scope: Scope::Subtree,
            ..SearchParameters::default()
        };
        write_search(out, id, &search, &self.filter, &[]);
    }

    fn add(&mut self, out: &mut Vec<u8>, id: MessageId) {
        let number = self.first_new + self.made;
        self.made += 1;
        let person = Person::new("new", number);
        let name = format!("uid=new.{number},{}", self.subject.entries.parent());
        let attributes = person.attributes.iter().map(|(attribute, values)| (*attribute, &values[..]));
        write_add(out, id, name.as_bytes(), attributes, &[]);
    }
}

impl Subject {
    /// What the generated population offers.
    pub(crate) fn new(entries: NamePattern, base: &str) -> Self {
        Self {
            entries,
            attributes: vec!["street".to_owned(), "description".to_owned()],
            value_bytes: 12,
            base: base.to_owned(),
            password: PASSWORD.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::ldap::population::{SUFFIX, people};
    use cowslip_ldap::message::{Limits, OperationKind, decode_request};

    #[test]
    fn every_kind_is_what_it_says() {
        let subject = Subject::new(people(2), SUFFIX);
        let kinds = [
            (Kind::Modify, OperationKind::Modify),
            (Kind::Search, OperationKind::Search),
            (Kind::Bind, OperationKind::Bind),
            (Kind::Add, OperationKind::Add),
            (Kind::Delete, OperationKind::Delete),
            (Kind::Mixed { writes_percent: 100 }, OperationKind::Modify),
            (Kind::Mixed { writes_percent: 0 }, OperationKind::Search),
        ];
        for (kind, operation) in kinds {
            let mut requests = Requests::new(kind, &subject, 1, 1);
            let mut out = Vec::new();
            let id = MessageId::new(9).unwrap();
            assert!(requests.append(&mut out, id), "{kind:?}");
            let request = decode_request(&out, &Limits::DEFAULT).unwrap();
            assert_eq!((request.id, request.operation.kind()), (id, operation), "{kind:?}");
        }
    }

    #[test]
    fn deletes_end() {
        let mut requests = Requests::new(Kind::Delete, &Subject::new(people(2), SUFFIX), 1, 1);
        let made: Vec<bool> = (0..3).map(|_| requests.append(&mut Vec::new(), MessageId::MAX)).collect();
        assert_eq!(made, [true, true, false]);
    }
}
