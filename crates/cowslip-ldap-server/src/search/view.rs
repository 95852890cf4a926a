//! An entry as filters and answers see it: what is stored, and what is computed when somebody asks.
//!
//! Invariants: names of other entries are put together only for who asks for them; whether an attribute names an entry
//! is told by that entry's number. Whatever a search finds out about names, groups and chains it keeps in its
//! [`Context`], so that it is found out once.

use std::cell::RefCell;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Place;
use std::ops::ControlFlow;
use std::sync::Arc;

use cowslip_engine::Posting;
use cowslip_ldap::description::has_options;
use cowslip_ldap::dn::Dn;
use cowslip_ldap::filter::{EntryView, Truth, VisitAva, VisitKind, VisitValue};
use cowslip_ldap::schema::{AttributeTypeId, Schema};
use cowslip_ldap::time::Timestamp;

use crate::entry::{EntryNumber, NO_ENTRY, StoredEntry};
use crate::key::Key;
use crate::meta::{Meta, fixed};
use crate::model::number_key;
use crate::operations::structural_class;
use crate::schema_entry::SCHEMA_DN;
use crate::tree::{Path, Tree};

/// The attribute types that are computed, apart from those that every entry has stored in its head.
pub const COMPUTED: [AttributeTypeId; 13] = [
    AttributeTypeId::CREATE_TIMESTAMP,
    AttributeTypeId::MODIFY_TIMESTAMP,
    AttributeTypeId::CREATORS_NAME,
    AttributeTypeId::MODIFIERS_NAME,
    AttributeTypeId::SUBSCHEMA_SUBENTRY,
    AttributeTypeId::STRUCTURAL_OBJECT_CLASS,
    AttributeTypeId::ENTRY_DN,
    AttributeTypeId::ENTRY_UUID,
    AttributeTypeId::ENTRY_CSN,
    AttributeTypeId::CONTEXT_CSN,
    AttributeTypeId::HAS_SUBORDINATES,
    AttributeTypeId::NUM_SUBORDINATES,
    AttributeTypeId::MEMBER_OF,
];

/// Whether values of this type are computed and never stored.
pub fn is_computed(kind: AttributeTypeId) -> bool {
    COMPUTED.contains(&kind)
}

/// What one search has found out about names.
#[derive(Debug, Default)]
pub struct Context {
    resolved: RefCell<HashMap<Box<[u8]>, Option<EntryNumber>>>,
    members: RefCell<HashMap<EntryNumber, Arc<Posting>>>,
    chains: RefCell<HashMap<(AttributeTypeId, EntryNumber), Arc<Posting>>>,
}

impl Context {
    /// The entry that has a normalised name.
    pub fn resolve<T: Tree>(&self, tree: &T, name: &[u8]) -> Option<EntryNumber> {
        if let Some(known) = self.resolved.borrow().get(name) {
            return *known;
        }
        let number = Path::from_normalized(name, tree.meta()).and_then(|path| tree.resolve(&path).ok());
        self.resolved.borrow_mut().insert(name.into(), number);
        number
    }

    /// The entries that a group has as members, directly or through groups within it.
    pub fn members<T: Tree>(&self, tree: &T, group: EntryNumber) -> Arc<Posting> {
        if let Some(known) = self.members.borrow().get(&group) {
            return Arc::clone(known);
        }
        let groups = &tree.meta().rules.groups;
        let mut members = Posting::default();
        let mut open = vec![group];
        while let Some(entry) = open.pop().and_then(|number| tree.entry(number)) {
            for attribute in entry.references().iter().filter(|attribute| groups.contains(&attribute.kind)) {
                for member in attribute.entries.iter() {
                    if members.insert(member) {
                        let is_group = tree.entry(member).is_some_and(|entry| !entry.references().is_empty());
                        open.extend(is_group.then_some(member));
                    }
                }
            }
        }
        let members = Arc::new(members);
        self.members.borrow_mut().insert(group, Arc::clone(&members));
        members
    }

    /// The entries from which values of one type lead to this one, over any number of entries.
    pub fn chain<T: Tree>(&self, tree: &T, kind: AttributeTypeId, target: EntryNumber) -> Arc<Posting> {
        let mut chains = self.chains.borrow_mut();
        let place = match chains.entry((kind, target)) {
            Place::Occupied(known) => return Arc::clone(known.get()),
            Place::Vacant(place) => place,
        };
        let mut found = Posting::default();
        let mut open = vec![target];
        while let Some(number) = open.pop() {
            for referrer in tree.referrers(number).filter(|referrer| referrer.slot == kind.0) {
                if found.insert(referrer.source) {
                    open.push(referrer.source);
                }
            }
        }
        Arc::clone(place.insert(Arc::new(found)))
    }
}

/// An entry as filters and answers see it.
#[derive(Debug)]
pub struct View<'a, T> {
    tree: &'a T,
    number: EntryNumber,
    entry: &'a StoredEntry,
    context: &'a Context,
    /// Whether passwords are shown.
    sees_secrets: bool,
}

impl<'a, T: Tree> View<'a, T> {
    /// A view of an entry.
    pub fn new(
        tree: &'a T,
        number: EntryNumber,
        entry: &'a StoredEntry,
        context: &'a Context,
        sees_secrets: bool,
    ) -> Self {
        Self { tree, number, entry, context, sees_secrets }
    }

    /// The entry.
    pub fn entry(&self) -> &'a StoredEntry {
        self.entry
    }

    /// Whether the asking user sees attributes of this type.
    pub fn is_visible(&self, kind: AttributeTypeId) -> bool {
        self.sees_secrets || !matches!(kind, AttributeTypeId::USER_PASSWORD | AttributeTypeId::AUTH_PASSWORD)
    }

    /// Appends the entry's name.
    pub fn write_dn(&self, out: &mut String) {
        self.tree.write_dn(self.number, out);
    }

    /// Gives the values of a computed attribute.
    pub fn computed(
        &self,
        kind: AttributeTypeId,
        visit: &mut dyn FnMut(&[u8]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let entry = self.entry;
        let mut text = |text: &str| visit(text.as_bytes());
        match kind {
            AttributeTypeId::CREATE_TIMESTAMP => text(&Timestamp::from_micros(entry.created_us).to_string()),
            AttributeTypeId::MODIFY_TIMESTAMP => text(&Timestamp::from_micros(entry.modified_us).to_string()),
            AttributeTypeId::CREATORS_NAME => text(&entry.creator),
            AttributeTypeId::MODIFIERS_NAME => text(&entry.modifier),
            AttributeTypeId::SUBSCHEMA_SUBENTRY => text(SCHEMA_DN),
            AttributeTypeId::STRUCTURAL_OBJECT_CLASS => match structural_class(self.tree.meta(), entry) {
                Some(class) => text(self.tree.meta().schema.class(class).name()),
                None => ControlFlow::Continue(()),
            },
            AttributeTypeId::ENTRY_DN => text(&self.tree.dn(self.number)),
            AttributeTypeId::ENTRY_UUID => text(&entry.uuid.to_string()),
            AttributeTypeId::ENTRY_CSN => text(&entry.csn.to_string()),
            AttributeTypeId::CONTEXT_CSN if entry.parent == NO_ENTRY => match latest(self.tree) {
                Some(csn) => text(&csn),
                None => ControlFlow::Continue(()),
            },
            AttributeTypeId::HAS_SUBORDINATES => {
                text(if self.tree.has_children(self.number) { "TRUE" } else { "FALSE" })
            }
            AttributeTypeId::NUM_SUBORDINATES => {
                text(&self.tree.count(fixed::CHILDREN, &number_key(self.number)).to_string())
            }
            AttributeTypeId::MEMBER_OF => {
                for group in groups_of(self.tree, self.number) {
                    visit(self.tree.dn(group).as_bytes())?;
                }
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Continue(()),
        }
    }

    fn stored(&self, kind: AttributeTypeId, visit: VisitValue<'_>) -> ControlFlow<()> {
        for attribute in self.entry.attributes.of_type(kind) {
            for value in attribute.values() {
                visit(attribute.options, value)?;
            }
        }
        for attribute in self.entry.large().iter().filter(|attribute| attribute.kind == kind) {
            for (_, value) in attribute.values.iter() {
                visit(&attribute.options, value)?;
            }
        }
        let mut name = String::new();
        for attribute in self.entry.references().iter().filter(|attribute| attribute.kind == kind) {
            for number in attribute.entries.iter() {
                name.clear();
                self.tree.write_dn(number, &mut name);
                visit(&attribute.options, name.as_bytes())?;
            }
            for (_, text) in attribute.names.iter() {
                visit(&attribute.options, text)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn classes(&self, visit: VisitValue<'_>) -> ControlFlow<()> {
        let meta = self.tree.meta();
        for class in meta.classes(self.entry) {
            // RFC 4512, section 3.3: whoever is of a class is of its superclasses.
            for above in &meta.schema.class(class).lineage {
                visit("", meta.schema.class(*above).name().as_bytes())?;
            }
        }
        ControlFlow::Continue(())
    }
}

impl<T: Tree> EntryView for View<'_, T> {
    fn schema(&self) -> &Schema {
        &self.tree.meta().schema
    }

    fn values(&self, kind: AttributeTypeId, visit: VisitValue<'_>) -> ControlFlow<()> {
        if is_computed(kind) {
            return self.computed(kind, &mut |value| visit("", value));
        }
        if kind == AttributeTypeId::OBJECT_CLASS {
            self.classes(visit)?;
        }
        self.stored(kind, visit)
    }

    fn kinds(&self, visit: VisitKind<'_>) -> ControlFlow<()> {
        for (kind, _) in self.entry.descriptions() {
            visit(kind)?;
        }
        COMPUTED.into_iter().try_for_each(visit)
    }

    fn name_values(&self, visit: VisitAva<'_>) -> ControlFlow<()> {
        for entry in self.tree.lineage(self.number).filter_map(|number| self.tree.entry(number)) {
            let Ok(dn) = Dn::parse(entry.rdn.as_bytes()) else { continue };
            for ava in dn.rdns().iter().flat_map(|rdn| rdn.avas()) {
                if let Some(kind) = self.schema().attribute(ava.attribute()) {
                    visit(kind, ava.value())?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn has(&self, kind: AttributeTypeId, options: &str) -> bool {
        if is_computed(kind) {
            return options.is_empty() && self.computed(kind, &mut |_| ControlFlow::Break(())).is_break();
        }
        self.entry
            .descriptions()
            .any(|(held, held_options)| held == kind && has_options(held_options, options))
    }

    fn holds(&self, kind: AttributeTypeId, options: &str, normalized: &[u8]) -> Option<bool> {
        let meta: &Meta = self.tree.meta();
        if kind == AttributeTypeId::MEMBER_OF {
            let group = self.context.resolve(self.tree, normalized);
            return Some(
                group.is_some_and(|group| self.context.members(self.tree, group).contains(self.number)),
            );
        }
        if kind == AttributeTypeId::ENTRY_DN {
            return Some(self.context.resolve(self.tree, normalized) == Some(self.number));
        }
        if meta.is_reference(kind) {
            return self.refers(kind, options, normalized);
        }
        let mut large = self.entry.large().iter().filter(|attribute| attribute.kind == kind).peekable();
        large.peek()?;
        let is_plain = self.entry.attributes.of_type(kind).next().is_some();
        let key = Key::new(normalized);
        let found = large.any(|attribute| {
            has_options(&attribute.options, options) && attribute.values.value(&key).is_some()
        });
        if is_plain { None } else { Some(found) }
    }

    fn is_searchable(&self, kind: AttributeTypeId) -> bool {
        self.is_visible(kind)
    }

    fn is_in_chain(&self, kind: AttributeTypeId, dn: &Dn) -> Truth {
        let mut name = Vec::new();
        if dn.normalize(self.schema(), &mut name).is_err() {
            return Truth::Undefined;
        }
        let Some(target) = self.context.resolve(self.tree, &name) else { return Truth::False };
        if kind == AttributeTypeId::MEMBER_OF {
            return Truth::from(self.context.members(self.tree, target).contains(self.number));
        }
        if !self.tree.meta().is_reference(kind) {
            return Truth::from(self.leads_to(kind, target));
        }
        Truth::from(self.context.chain(self.tree, kind, target).contains(self.number))
    }
}

impl<T: Tree> View<'_, T> {
    /// Whether values of a type that is not under referential integrity lead to an entry. Nothing knows who holds the
    /// name of whom, so the values are followed from here.
    fn leads_to(&self, kind: AttributeTypeId, target: EntryNumber) -> bool {
        let mut seen = Posting::default();
        let mut open = vec![self.number];
        while let Some(number) = open.pop() {
            let Some(entry) = self.tree.entry(number) else { continue };
            let view = View::new(self.tree, number, entry, self.context, self.sees_secrets);
            let found = view.values(kind, &mut |_, value| {
                let mut name = Vec::new();
                let is_name = Dn::parse(value).is_ok_and(|dn| dn.normalize(self.schema(), &mut name).is_ok());
                let next = if is_name { self.context.resolve(self.tree, &name) } else { None };
                match next {
                    Some(next) if next == target => return ControlFlow::Break(()),
                    Some(next) if seen.insert(next) => open.push(next),
                    _ => {}
                }
                ControlFlow::Continue(())
            });
            if found.is_break() {
                return true;
            }
        }
        false
    }

    fn refers(&self, kind: AttributeTypeId, options: &str, normalized: &[u8]) -> Option<bool> {
        let references = self.entry.references().iter();
        let mut references =
            references.filter(|a| a.kind == kind && has_options(&a.options, options)).peekable();
        if references.peek().is_none() {
            return Some(false);
        }
        let target = self.context.resolve(self.tree, normalized);
        let path = match target {
            Some(_) => None,
            // A name with more than a name in it (RFC 4517, section 3.3.21) is compared by its text.
            None => Some(Path::from_normalized(normalized, self.tree.meta())?.bytes()),
        };
        let key = path.map(|path| Key::new(&path));
        Some(references.any(|attribute| match (target, &key) {
            (Some(target), _) => attribute.entries.contains(target),
            (None, Some(key)) => attribute.names.value(key).is_some(),
            (None, None) => false,
        }))
    }
}

/// The groups that have an entry as a member, directly or through groups within them, in ascending order.
fn groups_of<T: Tree>(tree: &T, number: EntryNumber) -> Vec<EntryNumber> {
    let groups = &tree.meta().rules.groups;
    let mut found = Posting::default();
    let mut open = vec![number];
    while let Some(member) = open.pop() {
        for referrer in
            tree.referrers(member).filter(|referrer| groups.iter().any(|kind| kind.0 == referrer.slot))
        {
            if found.insert(referrer.source) {
                open.push(referrer.source);
            }
        }
    }
    found.iter().collect()
}

/// The latest change of the directory.
fn latest<T: Tree>(tree: &T) -> Option<String> {
    let entries = tree.last_holders(fixed::MODIFIED);
    let csns = entries.into_iter().filter_map(|number| tree.entry(number)).map(|entry| entry.csn);
    csns.max().map(|csn| csn.to_string())
}
