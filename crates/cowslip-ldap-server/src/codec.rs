//! What the directory's commits and roots are in its journal.
//!
//! A commit's record has, for each entry that it changed, the entry's number and the values that it lost and got, never
//! a whole old entry. Reading them needs no clock, no schema and no rule: a record brings about exactly the version that
//! the commit made. Everything else (indexes, schema, rules) is a function of the entries and is made once at the end.
//!
//! Invariant: what is written here and read again is equal, value by value; small attributes keep their order.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cowslip_engine::{Commit, RecordNumber, Root, Uuid};
use cowslip_ldap::dn::Dn;
use cowslip_ldap::schema::AttributeTypeId;

use crate::entry::{
    Attributes, Csn, EntryDelta, EntryEdit, EntryNumber, Incoming, LargeAttribute, LargeValues,
    ReferenceAttribute, Special, StoredEntry, Value, write_bytes, write_number,
};
use crate::journal::{Codec, CodecError, SnapshotError, SnapshotReader, SnapshotWriter};
use crate::key::Key;
use crate::meta::{ENTRIES, Meta};
use crate::model::Directory;
use crate::tree::Path;

/// Makes the meta of a set of entries: schema and rules are entries, too.
pub type MetaOf = dyn Fn(&BTreeMap<EntryNumber, Arc<StoredEntry>>) -> Result<Meta, String> + Send + Sync;

/// The directory's [`Codec`].
pub struct DirectoryCodec {
    meta_of: Box<MetaOf>,
    /// The highest entry number of all commits that were written, for the next snapshot: its entry may be deleted.
    last_number: AtomicU32,
}

impl DirectoryCodec {
    /// A codec that makes the meta in this way.
    pub fn new(meta_of: Box<MetaOf>) -> Self {
        Self { meta_of, last_number: AtomicU32::new(0) }
    }
}

/// A directory that is being read.
#[derive(Default)]
pub struct State {
    entries: BTreeMap<EntryNumber, Arc<StoredEntry>>,
    /// Entries that were changed since the snapshot, taken apart until the end.
    changed: HashMap<EntryNumber, Loose>,
    names: HashMap<Box<str>, Arc<str>>,
    last_number: u32,
}

/// An entry that is being changed: a table for each attribute, so that no change looks at all its values.
struct Loose {
    head: StoredEntry,
    attributes: BTreeMap<(AttributeTypeId, Box<str>), LooseValues>,
}

#[derive(Default)]
struct LooseValues {
    order: BTreeMap<u64, Value>,
    places: HashMap<Value, u64>,
    next: u64,
}

impl LooseValues {
    fn add(&mut self, value: Value) {
        self.places.insert(value.clone(), self.next);
        self.order.insert(self.next, value);
        self.next += 1;
    }

    fn remove(&mut self, value: &Value) -> bool {
        self.places.remove(value).and_then(|place| self.order.remove(&place)).is_some()
    }
}

const REMOVED: u8 = 0;
const WHOLE: u8 = 1;
const CHANGED: u8 = 2;
const CHANGED_AND_RENAMED: u8 = 3;

const PLAIN: u8 = 0;
const ENTRY: u8 = 1;
const NAME: u8 = 2;

impl Codec<Directory> for DirectoryCodec {
    type State = State;

    fn encode_commit(&self, commit: &Commit<Directory>, out: &mut Vec<u8>) -> Result<(), CodecError> {
        self.last_number.fetch_max(commit.note.last_number, Ordering::Relaxed);
        write_number(out, commit.note.last_number as usize);
        for change in commit.changes.table(ENTRIES).into_iter().flat_map(|table| &table.records) {
            let id = change.id.0 as usize;
            match (&change.old, &change.new) {
                (_, None) => {
                    out.push(REMOVED);
                    write_number(out, id);
                }
                (None, Some(new)) => {
                    out.push(WHOLE);
                    write_number(out, id);
                    write_entry(out, new);
                }
                (Some(old), Some(new)) => write_change(out, id, old, new, &change.delta),
            }
        }
        Ok(())
    }

    fn replay(&self, state: &mut State, _: u64, record: &[u8]) -> Result<(), CodecError> {
        let mut input = Input(record);
        state.last_number = state.last_number.max(input.small()?);
        while !input.0.is_empty() {
            let tag = input.byte()?;
            let id = RecordNumber(input.small()?);
            match tag {
                REMOVED => {
                    state.changed.remove(&id);
                    state.entries.remove(&id);
                }
                WHOLE => {
                    let entry = read_entry(&mut input, &mut state.names)?;
                    state.changed.remove(&id);
                    state.entries.insert(id, Arc::new(entry));
                }
                CHANGED | CHANGED_AND_RENAMED => {
                    let State { entries, changed, names, .. } = state;
                    let loose = match changed.entry(id) {
                        std::collections::hash_map::Entry::Occupied(there) => there.into_mut(),
                        std::collections::hash_map::Entry::Vacant(place) => {
                            let entry =
                                entries.get(&id).ok_or_else(|| CodecError::new("a change of no entry"))?;
                            place.insert(Loose::new(entry))
                        }
                    };
                    read_change(&mut input, names, loose, tag == CHANGED_AND_RENAMED)?;
                }
                _ => return Err(CodecError::new("an unknown kind of change")),
            }
        }
        Ok(())
    }

    fn write_snapshot(&self, root: &Root<Directory>, snapshot: &mut SnapshotWriter<'_>) -> io::Result<()> {
        let (last, _) = crate::host::numbers_of(root);
        let last = last.max(root.meta().last_number()).max(self.last_number.load(Ordering::Relaxed));
        snapshot.record(|out| write_number(out, last as usize))?;
        for (id, entry) in root.scan(ENTRIES) {
            snapshot.record(|out| {
                write_number(out, id.0 as usize);
                write_entry(out, entry);
            })?;
        }
        Ok(())
    }

    fn read_snapshot(&self, snapshot: &mut SnapshotReader<'_>) -> Result<State, SnapshotError> {
        let mut state = State::default();
        let mut is_first = true;
        while let Some(record) = snapshot.record()? {
            let mut input = Input(record);
            if std::mem::take(&mut is_first) {
                state.last_number = input.small()?;
                continue;
            }
            let id = RecordNumber(input.small()?);
            let entry = read_entry(&mut input, &mut state.names)?;
            state.entries.insert(id, Arc::new(entry));
        }
        Ok(state)
    }

    fn finish(&self, mut state: State) -> Result<Root<Directory>, CodecError> {
        // Schema and rules are in entries that may have changed, and these need no rule to be read.
        let plain = Meta::bare();
        let tops: Vec<EntryNumber> = state.changed.keys().copied().collect();
        for id in &tops {
            if let Some(loose) = state.changed.get(id) {
                state.entries.insert(*id, Arc::new(loose.stored(&plain)));
            }
        }
        let meta =
            (self.meta_of)(&state.entries).map_err(CodecError::new)?.with_last_number(state.last_number);
        for (id, loose) in state.changed {
            state.entries.insert(id, Arc::new(loose.stored(&meta)));
        }
        for entry in state.entries.values_mut().filter(|entry| has_stale_names(entry, &meta)) {
            *entry = Arc::new(Loose::new(entry).stored(&meta));
        }
        let records = state.entries.into_iter().map(|(id, entry)| (ENTRIES, id, entry));
        Root::load(Arc::new(meta), 0, records).map_err(|conflict| CodecError::new(conflict.to_string()))
    }
}

/// The key of an unresolved name: it depends on which suffixes there are, and these may have changed since it was written.
fn name_key(text: &[u8], meta: &Meta) -> Option<Key> {
    let path = Dn::parse(text).ok().and_then(|dn| Path::new(&dn, meta).ok())?;
    Some(Key::new(&path.bytes()))
}

fn has_stale_names(entry: &StoredEntry, meta: &Meta) -> bool {
    let mut names = entry.references().iter().flat_map(|attribute| attribute.names.iter());
    names.any(|(key, text)| name_key(text, meta).is_some_and(|now| now != *key))
}

impl Loose {
    fn new(entry: &StoredEntry) -> Self {
        let mut attributes: BTreeMap<_, LooseValues> = BTreeMap::new();
        for (kind, options) in entry.descriptions() {
            let values = attributes.entry((kind, Box::from(options))).or_default();
            entry.values(kind, options).into_iter().for_each(|value| values.add(value));
        }
        let head =
            StoredEntry { attributes: Attributes::default(), special: None, ..StoredEntry::clone(entry) };
        Self { head, attributes }
    }

    fn stored(&self, meta: &Meta) -> StoredEntry {
        let none = Attributes::default();
        let mut edit = EntryEdit::of(&none, None, |kind, value: &[u8]| meta.value_key(kind, value));
        for ((kind, options), values) in &self.attributes {
            let is_reference = values.order.values().any(|value| !matches!(value, Value::Plain(_)));
            let incoming = |value: &Value| match value {
                Value::Plain(text) => {
                    Incoming { text: Arc::clone(text), key: meta.value_key(*kind, text), target: None }
                }
                Value::Name(key, text) => {
                    let key = name_key(text, meta).unwrap_or_else(|| key.clone());
                    Incoming { text: Arc::clone(text), key, target: None }
                }
                Value::Entry(number) => {
                    Incoming { text: Arc::default(), key: Key::new(b""), target: Some(*number) }
                }
            };
            let values: Vec<Incoming> = values.order.values().map(incoming).collect();
            edit.replace(*kind, options, is_reference, &values);
        }
        let (attributes, special, _) = edit.finish().unwrap_or_default();
        StoredEntry { attributes, special, ..self.head.clone() }
    }
}

fn write_entry(out: &mut Vec<u8>, entry: &StoredEntry) {
    write_number(out, entry.parent.0 as usize);
    write_bytes(out, entry.rdn.as_bytes());
    out.extend_from_slice(entry.uuid.as_bytes());
    out.extend_from_slice(&entry.created_us.to_le_bytes());
    write_bytes(out, entry.creator.as_bytes());
    write_stamp(out, entry);
    write_bytes(out, entry.attributes.as_bytes());
    write_number(out, entry.references().len());
    for attribute in entry.references() {
        write_number(out, attribute.kind.0 as usize);
        write_bytes(out, attribute.options.as_bytes());
        write_number(out, attribute.entries.len());
        attribute.entries.iter().for_each(|number| write_number(out, number.0 as usize));
        write_values(out, &attribute.names);
    }
    write_number(out, entry.large().len());
    for attribute in entry.large() {
        write_number(out, attribute.kind.0 as usize);
        write_bytes(out, attribute.options.as_bytes());
        write_values(out, &attribute.values);
    }
}

fn write_values(out: &mut Vec<u8>, values: &LargeValues) {
    write_number(out, values.len());
    for (key, text) in values.iter() {
        write_bytes(out, key.bytes());
        write_bytes(out, text);
    }
}

fn write_stamp(out: &mut Vec<u8>, entry: &StoredEntry) {
    out.extend_from_slice(&entry.modified_us.to_le_bytes());
    write_bytes(out, entry.modifier.as_bytes());
    let Csn { time_us, count, server, step } = entry.csn;
    out.extend_from_slice(&time_us.to_le_bytes());
    write_number(out, count as usize);
    write_number(out, usize::from(server));
    write_number(out, step as usize);
}

fn write_change(out: &mut Vec<u8>, id: usize, old: &StoredEntry, new: &StoredEntry, delta: &EntryDelta) {
    let is_renamed = (old.parent, &old.rdn) != (new.parent, &new.rdn);
    out.push(if is_renamed { CHANGED_AND_RENAMED } else { CHANGED });
    write_number(out, id);
    if is_renamed {
        write_number(out, new.parent.0 as usize);
        write_bytes(out, new.rdn.as_bytes());
    }
    write_stamp(out, new);
    write_number(out, delta.0.len());
    for attribute in &delta.0 {
        write_number(out, attribute.kind.0 as usize);
        write_bytes(out, attribute.options.as_bytes());
        for values in [&attribute.removed, &attribute.added] {
            write_number(out, values.len());
            values.iter().for_each(|value| write_value(out, value));
        }
    }
}

fn write_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::Plain(text) => {
            out.push(PLAIN);
            write_bytes(out, text);
        }
        Value::Entry(number) => {
            out.push(ENTRY);
            write_number(out, number.0 as usize);
        }
        Value::Name(key, text) => {
            out.push(NAME);
            write_bytes(out, key.bytes());
            write_bytes(out, text);
        }
    }
}

type Names = HashMap<Box<str>, Arc<str>>;

fn read_entry(input: &mut Input<'_>, names: &mut Names) -> Result<StoredEntry, CodecError> {
    let parent = RecordNumber(input.small()?);
    let rdn: Arc<str> = input.text()?.into();
    let uuid = Uuid::from_bytes(*input.array::<16>()?);
    let created_us = u64::from_le_bytes(*input.array()?);
    let creator = input.name(names)?;
    let (modified_us, modifier, csn) = read_stamp(input, names)?;
    let attributes =
        Attributes::from_bytes(input.bytes()?).ok_or_else(|| CodecError::new("attributes are malformed"))?;
    let mut special = Special::default();
    for _ in 0..input.small()? {
        let (kind, options) = (AttributeTypeId(input.small()?), input.text()?.into());
        let count = input.small()?;
        let entries =
            (0..count).map(|_| Ok(RecordNumber(input.small()?))).collect::<Result<_, CodecError>>()?;
        let names = read_values(input)?;
        special.references.push(ReferenceAttribute { kind, options, entries, names });
    }
    for _ in 0..input.small()? {
        let (kind, options) = (AttributeTypeId(input.small()?), input.text()?.into());
        let values = read_values(input)?;
        special.large.push(LargeAttribute { kind, options, values });
    }
    let has_special = !special.references.is_empty() || !special.large.is_empty();
    let special = has_special.then(|| Arc::new(special));
    Ok(StoredEntry {
        parent,
        rdn,
        uuid,
        created_us,
        creator,
        modified_us,
        modifier,
        csn,
        attributes,
        special,
    })
}

fn read_values(input: &mut Input<'_>) -> Result<LargeValues, CodecError> {
    let mut values = LargeValues::default();
    for _ in 0..input.small()? {
        let key = input.key()?;
        values.insert(key, input.bytes()?.into());
    }
    Ok(values)
}

fn read_stamp(input: &mut Input<'_>, names: &mut Names) -> Result<(u64, Arc<str>, Csn), CodecError> {
    let modified_us = u64::from_le_bytes(*input.array()?);
    let modifier = input.name(names)?;
    let time_us = u64::from_le_bytes(*input.array()?);
    let count = input.small()?;
    let server =
        u16::try_from(input.small()?).map_err(|_| CodecError::new("a server number is too large"))?;
    Ok((modified_us, modifier, Csn { time_us, count, server, step: input.small()? }))
}

fn read_change(
    input: &mut Input<'_>,
    names: &mut Names,
    loose: &mut Loose,
    is_renamed: bool,
) -> Result<(), CodecError> {
    if is_renamed {
        loose.head.parent = RecordNumber(input.small()?);
        loose.head.rdn = input.text()?.into();
    }
    (loose.head.modified_us, loose.head.modifier, loose.head.csn) = read_stamp(input, names)?;
    for _ in 0..input.small()? {
        let place = (AttributeTypeId(input.small()?), Box::from(input.text()?));
        let values = loose.attributes.entry(place).or_default();
        for _ in 0..input.small()? {
            if !values.remove(&input.value()?) {
                return Err(CodecError::new("a value that is not there is removed"));
            }
        }
        for _ in 0..input.small()? {
            values.add(input.value()?);
        }
    }
    loose.attributes.retain(|_, values| !values.order.is_empty());
    Ok(())
}

/// Bytes that are read from the front.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn byte(&mut self) -> Result<u8, CodecError> {
        self.array::<1>().map(|[byte]| *byte)
    }

    fn array<const N: usize>(&mut self) -> Result<&'a [u8; N], CodecError> {
        let (array, rest) = self.0.split_first_chunk().ok_or_else(|| CodecError::new("it ends too early"))?;
        self.0 = rest;
        Ok(array)
    }

    fn small(&mut self) -> Result<u32, CodecError> {
        let mut number = 0_u64;
        for shift in (0..35).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return u32::try_from(number).map_err(|_| CodecError::new("a number is too large"));
            }
        }
        Err(CodecError::new("a number is too large"))
    }

    fn bytes(&mut self) -> Result<&'a [u8], CodecError> {
        let length = self.small()? as usize;
        let (bytes, rest) =
            self.0.split_at_checked(length).ok_or_else(|| CodecError::new("it ends too early"))?;
        self.0 = rest;
        Ok(bytes)
    }

    fn text(&mut self) -> Result<&'a str, CodecError> {
        std::str::from_utf8(self.bytes()?).map_err(|_| CodecError::new("a text is not UTF-8"))
    }

    fn name(&mut self, names: &mut Names) -> Result<Arc<str>, CodecError> {
        let text = self.text()?;
        if let Some(name) = names.get(text) {
            return Ok(Arc::clone(name));
        }
        let name: Arc<str> = text.into();
        names.insert(text.into(), Arc::clone(&name));
        Ok(name)
    }

    fn key(&mut self) -> Result<Key, CodecError> {
        Ok(Key::from_stored(self.bytes()?))
    }

    fn value(&mut self) -> Result<Value, CodecError> {
        match self.byte()? {
            PLAIN => Ok(Value::Plain(self.bytes()?.into())),
            ENTRY => Ok(Value::Entry(RecordNumber(self.small()?))),
            NAME => Ok(Value::Name(self.key()?, self.bytes()?.into())),
            _ => Err(CodecError::new("an unknown kind of value")),
        }
    }
}
