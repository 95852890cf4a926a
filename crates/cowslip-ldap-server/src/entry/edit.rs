//! An entry while an operation changes it.
//!
//! Attributes that nobody touches are never looked into. At the end the touched ones are compared with what they were,
//! and the difference is the delta. Invariants: the base is not changed; for a small attribute the values that stay keep
//! their order and the new ones follow in theirs, so that replaying the delta gives the same bytes.

use std::collections::HashSet;
use std::sync::Arc;

use cowslip_ldap::schema::AttributeTypeId;

use super::values::LARGE_MIN;
use super::{
    AttributeDelta, Attributes, AttributesWriter, EntryDelta, EntryNumber, LargeAttribute, LargeValues,
    Numbers, ReferenceAttribute, Special, StoredEntry, Value,
};
use crate::key::Key;

/// A value as it comes in, with what was found out about it.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// As the client sent it.
    pub text: Arc<[u8]>,
    /// Its normalised form by the attribute's equality rule, or itself where there is none.
    pub key: Key,
    /// The entry of ours that it names, if the attribute is under referential integrity and there is one.
    pub target: Option<EntryNumber>,
}

/// An entry while an operation changes it. `key_of` gives the normalised form of a stored value.
pub struct EntryEdit<'a, F> {
    attributes: &'a Attributes,
    special: Option<&'a Arc<Special>>,
    touched: Vec<Touched>,
    key_of: F,
}

struct Touched {
    kind: AttributeTypeId,
    options: Box<str>,
    before: Form,
    now: Form,
}

/// The values of one attribute.
#[derive(Clone, Debug)]
enum Form {
    Plain(Vec<Arc<[u8]>>),
    Large(LargeValues),
    Reference(Numbers, LargeValues),
}

impl<'a, F: Fn(AttributeTypeId, &[u8]) -> Key> EntryEdit<'a, F> {
    /// An edit of an entry.
    pub fn new(entry: &'a StoredEntry, key_of: F) -> Self {
        Self::of(&entry.attributes, entry.special.as_ref(), key_of)
    }

    /// An edit of attributes that are in no entry yet.
    pub fn of(attributes: &'a Attributes, special: Option<&'a Arc<Special>>, key_of: F) -> Self {
        Self { attributes, special, touched: Vec::new(), key_of }
    }

    /// How many values an attribute has now.
    pub fn len(&self, kind: AttributeTypeId, options: &str) -> usize {
        match self.touched.iter().find(|touched| touched.is(kind, options)) {
            Some(touched) => touched.now.len(),
            None => self.stored(kind, options).map_or(0, |form| form.len()),
        }
    }

    /// The values of a plain attribute as they are now; those of references are not among them.
    pub fn plain_values(&self, kind: AttributeTypeId, options: &str) -> Vec<Arc<[u8]>> {
        let form = match self.touched.iter().find(|touched| touched.is(kind, options)) {
            Some(touched) => Some(touched.now.clone()),
            None => self.stored(kind, options),
        };
        match form {
            Some(Form::Plain(values)) => values,
            Some(Form::Large(values)) => values.iter().map(|(_, value)| Arc::clone(value)).collect(),
            Some(Form::Reference(..)) | None => Vec::new(),
        }
    }

    /// Whether an attribute has a value equal to this one.
    pub fn contains(
        &mut self,
        kind: AttributeTypeId,
        options: &str,
        is_reference: bool,
        value: &Incoming,
    ) -> bool {
        let place = self.touch(kind, options, is_reference);
        let Touched { now, .. } = &self.touched[place];
        now.contains(kind, value, &self.key_of)
    }

    /// Adds a value; false, and nothing happens, if an equal one is there.
    pub fn add(
        &mut self,
        kind: AttributeTypeId,
        options: &str,
        is_reference: bool,
        value: &Incoming,
    ) -> bool {
        let place = self.touch(kind, options, is_reference);
        let now = &mut self.touched[place].now;
        match now {
            Form::Large(values) => values.insert(value.key.clone(), Arc::clone(&value.text)),
            Form::Reference(numbers, names) => match value.target {
                Some(number) => numbers.insert(number),
                None => names.insert(value.key.clone(), Arc::clone(&value.text)),
            },
            Form::Plain(values) => {
                if values.iter().any(|held| (self.key_of)(kind, held) == value.key) {
                    return false;
                }
                values.push(Arc::clone(&value.text));
                if values.len() >= LARGE_MIN {
                    *now = now.enlarged(kind, &self.key_of);
                }
                true
            }
        }
    }

    /// Takes a value away; false if no equal one is there.
    pub fn remove(
        &mut self,
        kind: AttributeTypeId,
        options: &str,
        is_reference: bool,
        value: &Incoming,
    ) -> bool {
        let place = self.touch(kind, options, is_reference);
        match &mut self.touched[place].now {
            Form::Large(values) => values.remove(&value.key).is_some(),
            Form::Reference(numbers, names) => match value.target {
                Some(number) => numbers.remove(number),
                None => names.remove(&value.key).is_some(),
            },
            Form::Plain(values) => {
                let found = values.iter().position(|held| (self.key_of)(kind, held) == value.key);
                found.map(|at| values.remove(at)).is_some()
            }
        }
    }

    /// Takes all values away; false if there were none.
    pub fn clear(&mut self, kind: AttributeTypeId, options: &str, is_reference: bool) -> bool {
        let place = self.touch(kind, options, is_reference);
        let now = &mut self.touched[place].now;
        let had = now.len() > 0;
        *now = if is_reference {
            Form::Reference(Numbers::default(), LargeValues::default())
        } else {
            Form::Plain(Vec::new())
        };
        had
    }

    /// Gives an attribute exactly these values, which must differ from each other.
    pub fn replace(&mut self, kind: AttributeTypeId, options: &str, is_reference: bool, values: &[Incoming]) {
        let place = self.touch(kind, options, is_reference);
        let now = &mut self.touched[place].now;
        let pair = |value: &Incoming| (value.key.clone(), Arc::clone(&value.text));
        // A large set is changed in what differs, so that nobody has to look at all of it afterwards.
        if is_reference {
            if !matches!(now, Form::Reference(..)) {
                *now = Form::Reference(Numbers::default(), LargeValues::default());
            }
            if let Form::Reference(numbers, names) = now {
                numbers.assign(values.iter().filter_map(|value| value.target));
                names.assign(values.iter().filter(|value| value.target.is_none()).map(pair));
            }
        } else if values.len() >= LARGE_MIN {
            if !matches!(now, Form::Large(_)) {
                *now = Form::Large(LargeValues::default());
            }
            if let Form::Large(large) = now {
                large.assign(values.iter().map(pair));
            }
        } else {
            *now = Form::Plain(values.iter().map(|value| Arc::clone(&value.text)).collect());
        }
    }

    /// Turns the text of an unresolved name into the number of the entry that has it now, or back.
    pub fn exchange(&mut self, kind: AttributeTypeId, options: &str, old: &Incoming, new: &Incoming) {
        if self.remove(kind, options, true, old) {
            self.add(kind, options, true, new);
        }
    }

    /// The entry's attributes from now on, and what changed. None if nothing did.
    pub fn finish(self) -> Option<(Attributes, Option<Arc<Special>>, EntryDelta)> {
        let mut delta = EntryDelta::default();
        let mut plain = Vec::new();
        let mut special = self.special.map(|special| Special::clone(special)).unwrap_or_default();
        let mut touched = self.touched;
        touched.sort_by(|one, other| (one.kind, &one.options).cmp(&(other.kind, &other.options)));
        for Touched { kind, options, before, mut now } in touched {
            if let (Form::Plain(before), Form::Plain(values)) = (&before, &mut now) {
                *values = kept_first(before, std::mem::take(values));
            }
            let (removed, added) = before.difference(&now);
            if removed.is_empty() && added.is_empty() {
                continue;
            }
            delta.0.push(AttributeDelta { kind, options: options.clone(), removed, added });
            special.remove(kind, &options);
            if let Some(values) = special.insert(kind, &options, now) {
                plain.push((kind, options, values));
            } else {
                plain.push((kind, options, Vec::new()));
            }
        }
        if delta.0.is_empty() {
            return None;
        }
        let attributes = rewritten(self.attributes, &plain);
        let special =
            (!special.references.is_empty() || !special.large.is_empty()).then(|| Arc::new(special));
        Some((attributes, special, delta))
    }

    fn touch(&mut self, kind: AttributeTypeId, options: &str, is_reference: bool) -> usize {
        if let Some(place) = self.touched.iter().position(|touched| touched.is(kind, options)) {
            return place;
        }
        let none = || {
            if is_reference {
                Form::Reference(Numbers::default(), LargeValues::default())
            } else {
                Form::Plain(Vec::new())
            }
        };
        let before = self.stored(kind, options).unwrap_or_else(none);
        self.touched.push(Touched { kind, options: options.into(), now: before.clone(), before });
        self.touched.len() - 1
    }

    fn stored(&self, kind: AttributeTypeId, options: &str) -> Option<Form> {
        if let Some(special) = self.special {
            let reference = special.references.iter().find(|a| a.kind == kind && *a.options == *options);
            if let Some(reference) = reference {
                return Some(Form::Reference(reference.entries.clone(), reference.names.clone()));
            }
            if let Some(large) = special.large.iter().find(|a| a.kind == kind && *a.options == *options) {
                return Some(Form::Large(large.values.clone()));
            }
        }
        let attribute = self.attributes.attribute(kind, options)?;
        Some(Form::Plain(attribute.values().map(Arc::from).collect()))
    }
}

impl Touched {
    fn is(&self, kind: AttributeTypeId, options: &str) -> bool {
        self.kind == kind && *self.options == *options
    }
}

impl Form {
    fn len(&self) -> usize {
        match self {
            Self::Plain(values) => values.len(),
            Self::Large(values) => values.len(),
            Self::Reference(numbers, names) => numbers.len() + names.len(),
        }
    }

    fn contains(
        &self,
        kind: AttributeTypeId,
        value: &Incoming,
        key_of: impl Fn(AttributeTypeId, &[u8]) -> Key,
    ) -> bool {
        match self {
            Self::Plain(values) => values.iter().any(|held| key_of(kind, held) == value.key),
            Self::Large(values) => values.value(&value.key).is_some(),
            Self::Reference(numbers, names) => match value.target {
                Some(number) => numbers.contains(number),
                None => names.value(&value.key).is_some(),
            },
        }
    }

    fn enlarged(&self, kind: AttributeTypeId, key_of: impl Fn(AttributeTypeId, &[u8]) -> Key) -> Self {
        let Self::Plain(values) = self else { return self.clone() };
        let mut large = LargeValues::default();
        for value in values {
            large.insert(key_of(kind, value), Arc::clone(value));
        }
        Self::Large(large)
    }

    /// What is in this one and not in the other, and the reverse.
    fn difference(&self, now: &Self) -> (Vec<Value>, Vec<Value>) {
        match (self, now) {
            (Self::Reference(before, before_names), Self::Reference(numbers, names)) => {
                let (gone, come) = before.difference(numbers);
                let mut removed: Vec<Value> = gone.into_iter().map(Value::Entry).collect();
                let mut added: Vec<Value> = come.into_iter().map(Value::Entry).collect();
                let (gone, come) = before_names.difference(names);
                removed.extend(gone.into_iter().map(|(key, text)| Value::Name(key, text)));
                added.extend(come.into_iter().map(|(key, text)| Value::Name(key, text)));
                (removed, added)
            }
            (Self::Large(before), Self::Large(values)) => {
                let (gone, come) = before.difference(values);
                let plain = |values: Vec<(Key, Arc<[u8]>)>| {
                    values.into_iter().map(|(_, text)| Value::Plain(text)).collect()
                };
                (plain(gone), plain(come))
            }
            _ => {
                let (before, values) = (self.plain(), now.plain());
                if before.len().max(values.len()) <= FEW_VALUES {
                    return (missing(&before, &values), missing(&values, &before));
                }
                let (old, new): (HashSet<_>, HashSet<_>) = (before.iter().collect(), values.iter().collect());
                let less = |list: &[Arc<[u8]>], other: &HashSet<&Arc<[u8]>>| {
                    list.iter()
                        .filter(|value| !other.contains(value))
                        .map(|value| Value::Plain(Arc::clone(value)))
                        .collect()
                };
                (less(&before, &new), less(&values, &old))
            }
        }
    }

    fn plain(&self) -> Vec<Arc<[u8]>> {
        match self {
            Self::Plain(values) => values.clone(),
            Self::Large(values) => values.iter().map(|(_, value)| Arc::clone(value)).collect(),
            Self::Reference(..) => Vec::new(),
        }
    }
}

impl Special {
    fn remove(&mut self, kind: AttributeTypeId, options: &str) {
        self.references.retain(|a| a.kind != kind || *a.options != *options);
        self.large.retain(|a| a.kind != kind || *a.options != *options);
    }

    /// Takes the values in if they have a special form, and gives them back otherwise.
    fn insert(&mut self, kind: AttributeTypeId, options: &str, form: Form) -> Option<Vec<Arc<[u8]>>> {
        match form {
            Form::Plain(values) => return Some(values),
            Form::Large(values) if values.is_empty() => {}
            Form::Large(values) => {
                let place = self.large.partition_point(|a| (a.kind, &*a.options) < (kind, options));
                self.large.insert(place, LargeAttribute { kind, options: options.into(), values });
            }
            Form::Reference(entries, names) if entries.is_empty() && names.is_empty() => {}
            Form::Reference(entries, names) => {
                let place = self.references.partition_point(|a| (a.kind, &*a.options) < (kind, options));
                self.references
                    .insert(place, ReferenceAttribute { kind, options: options.into(), entries, names });
            }
        }
        None
    }
}

/// Up to how many values a list is searched from one end to the other rather than hashed.
const FEW_VALUES: usize = 8;

/// The values of a short list that another one lacks.
fn missing(list: &[Arc<[u8]>], other: &[Arc<[u8]>]) -> Vec<Value> {
    list.iter().filter(|value| !other.contains(value)).map(|value| Value::Plain(Arc::clone(value))).collect()
}

/// The values that were there before in their old order, then the others.
fn kept_first(before: &[Arc<[u8]>], now: Vec<Arc<[u8]>>) -> Vec<Arc<[u8]>> {
    let kept = before.iter().filter(|value| now.contains(value)).cloned();
    let new = now.iter().filter(|value| !before.contains(value)).cloned();
    kept.chain(new).collect()
}

/// An attribute's type and options, and its values from now on.
type Rewritten = (AttributeTypeId, Box<str>, Vec<Arc<[u8]>>);

/// The attributes with some of them given new values; an empty list takes one away.
fn rewritten(base: &Attributes, changed: &[Rewritten]) -> Attributes {
    let mut writer = AttributesWriter::with_capacity(base.bytes() + 64);
    let mut changed = changed.iter().peekable();
    for attribute in base.iter() {
        let place = (attribute.kind, attribute.options);
        while let Some((kind, options, values)) =
            changed.next_if(|(kind, options, _)| (*kind, &**options) < place)
        {
            writer.write(*kind, options, values.iter().map(|value| &**value));
        }
        match changed.next_if(|(kind, options, _)| (*kind, &**options) == place) {
            Some((kind, options, values)) => {
                writer.write(*kind, options, values.iter().map(|value| &**value))
            }
            None => writer.copy(attribute),
        }
    }
    for (kind, options, values) in changed {
        writer.write(*kind, options, values.iter().map(|value| &**value));
    }
    writer.finish()
}
