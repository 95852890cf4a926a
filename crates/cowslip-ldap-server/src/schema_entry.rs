//! The schema as an entry: `cn=schema` holds what was added to the standard schema, changed in it or taken from it.
//!
//! What clients see at `cn=schema` is the whole schema, put together when it is read; what is stored is the difference,
//! and which attribute type has which number, because stored entries name their types by number. Invariant: the schema
//! is a function of this entry and of the standard that this version of the program has.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use cowslip_engine::Draft;
use cowslip_ldap::result::ResultCode;
use cowslip_ldap::schema::{
    AttributeTypeId, Definition, Element, Numbers, ObjectClassId, Schema, SchemaChange, SchemaError,
    SchemaModification, SchemaUse, Unused,
};

use crate::entry::{EntryDelta, EntryEdit, Incoming, StoredEntry};
use crate::meta::{ENTRIES, IndexForm, Meta, fixed};
use crate::model::{Directory, type_key};
use crate::operations::write::Circumstances;
use crate::operations::{Refusal, SchemaPlan};
use crate::tree::Tree;

/// The name of the schema's entry.
pub const SCHEMA_DN: &str = "cn=schema";

/// The types in which the server keeps its configuration.
const OWN_TYPES: [&str; 5] = ["indexForm", "uniqueAttribute", "uniqueBelow", "uniqueClass", "schemaNumbers"];

/// The kinds of elements that can be changed, and the attributes that hold them.
const KINDS: [(Element, AttributeTypeId); 3] = [
    (Element::AttributeType, AttributeTypeId::ATTRIBUTE_TYPES),
    (Element::ObjectClass, AttributeTypeId::OBJECT_CLASSES),
    (Element::ContentRule, AttributeTypeId::DIT_CONTENT_RULES),
];

/// The standard that changed schemas are compared with, and its definitions as they are published, by [`KINDS`].
struct Standard {
    schema: Schema,
    published: [HashSet<String>; KINDS.len()],
}

static STANDARD: LazyLock<Standard> = LazyLock::new(|| {
    let schema = Schema::standard();
    let published = KINDS.map(|(element, _)| schema.published(element).into_iter().collect());
    Standard { schema, published }
});

/// The kind of element that an attribute of the schema's entry holds, if it can be changed.
pub fn element_of(kind: AttributeTypeId) -> Option<Element> {
    KINDS.iter().find(|(_, holder)| *holder == kind).map(|(element, _)| *element)
}

/// The schema that the entry gives; without an entry, the standard.
///
/// # Errors
/// The entry contradicts itself or the standard of this version, with the element.
pub fn schema_of(entry: Option<&StoredEntry>) -> Result<Schema, String> {
    let Some(entry) = entry else { return Ok(Schema::standard()) };
    let standard = &STANDARD.schema;
    let kept = Kept::read(entry, standard);
    let numbered = standard.with_numbers(&kept.numbers).map_err(|error| error.to_string())?;
    let mut changes = Vec::new();
    for (element, holder) in KINDS {
        let attribute = entry.attributes.attribute(holder, "");
        let plain = attribute.into_iter().flat_map(|attribute| attribute.values());
        let large = entry.large().iter().filter(|attribute| attribute.kind == holder);
        let large = large.flat_map(|attribute| attribute.values.iter()).map(|(_, value)| &**value);
        for value in plain.chain(large) {
            let text = std::str::from_utf8(value).map_err(|error| error.to_string())?;
            let definition = Definition::parse(element, text).map_err(|error| error.to_string())?;
            let is_known = has(&numbered, element, &definition.head().oid);
            changes.push(if is_known {
                SchemaChange::Replace(definition)
            } else {
                SchemaChange::Add(definition)
            });
        }
    }
    for (element, oid) in kept.deleted {
        if has(&numbered, element, &oid) {
            changes.push(SchemaChange::Delete { element, oid });
        }
    }
    numbered.apply(&changes, &Unused).map_err(|error| error.to_string())
}

/// Changes the schema, and the entry that keeps it, on a draft.
///
/// # Errors
/// See [`Refusal`]; nothing is changed.
pub fn change(
    draft: &mut Draft<'_, Directory>,
    plan: &SchemaPlan,
    now: &mut Circumstances<'_>,
) -> Result<Arc<Schema>, Refusal> {
    let meta: &Meta = draft.meta();
    let entry = meta.rules.schema.and_then(|number| Some((number, Arc::clone(draft.entry(number)?))));
    let Some((number, entry)) = entry else {
        return Err(Refusal::new(
            ResultCode::UnwillingToPerform,
            "this directory has no entry that keeps its schema",
        ));
    };
    let modifications: Vec<SchemaModification<'_>> = plan.modifications().collect();
    let changes = SchemaChange::from_modifications(&modifications).map_err(|error| refused(&error))?;
    let usage = InUse { draft, meta };
    let schema = meta.schema.apply(&changes, &usage).map_err(|error| refused(&error))?;
    let mut edit = EntryEdit::new(&entry, |kind, value: &[u8]| meta.value_key(kind, value));
    for ((element, holder), known) in KINDS.into_iter().zip(&STANDARD.published) {
        let texts = schema.published(element).into_iter().filter(|text| !known.contains(text));
        let values: Vec<Incoming> = texts.map(|text| incoming(meta, holder, text.into_bytes())).collect();
        edit.replace(holder, "", false, &values);
    }
    if let Some(holder) = schema.attribute("schemaNumbers") {
        let text = Kept::of(&schema, &STANDARD.schema).write();
        edit.replace(holder, "", false, &[incoming(meta, holder, text.into_bytes())]);
    }
    let (attributes, special, delta) = edit
        .finish()
        .unwrap_or_else(|| (entry.attributes.clone(), entry.special.clone(), EntryDelta::default()));
    let changed = StoredEntry {
        attributes,
        special,
        modified_us: now.now_us,
        modifier: Arc::clone(now.who),
        csn: now.csn,
        ..StoredEntry::clone(&entry)
    };
    draft.put(ENTRIES, number, Arc::new(changed), delta);
    Ok(Arc::new(schema))
}

fn incoming(meta: &Meta, kind: AttributeTypeId, text: Vec<u8>) -> Incoming {
    let text: Arc<[u8]> = text.into();
    Incoming { key: meta.value_key(kind, &text), text, target: None }
}

fn refused(error: &SchemaError) -> Refusal {
    let code = match error {
        SchemaError::Definition { .. } | SchemaError::BadName { .. } => ResultCode::InvalidAttributeSyntax,
        SchemaError::NameTaken { .. } => ResultCode::AttributeOrValueExists,
        SchemaError::UnknownReference { .. } | SchemaError::Cycle { .. } | SchemaError::Rule { .. } => {
            ResultCode::ConstraintViolation
        }
        SchemaError::Missing { .. } => ResultCode::NoSuchAttribute,
        _ => ResultCode::UnwillingToPerform,
    };
    Refusal::new(code, error.to_string())
}

fn has(schema: &Schema, element: Element, oid: &str) -> bool {
    match element {
        Element::AttributeType => schema.attribute(oid).is_some(),
        Element::ObjectClass => schema.object_class(oid).is_some(),
        Element::ContentRule => {
            schema.object_class(oid).is_some_and(|class| schema.content_rule(class).is_some())
        }
        _ => false,
    }
}

/// How much the entries of a draft's base use the schema: known from the sizes of index entries, without a scan.
struct InUse<'a> {
    draft: &'a Draft<'a, Directory>,
    meta: &'a Meta,
}

impl SchemaUse for InUse<'_> {
    fn attribute_type_entries(&self, id: AttributeTypeId) -> u64 {
        let posting = self.draft.base().posting(ENTRIES, fixed::PRESENCE, &type_key(id));
        posting.map_or(0, |posting| posting.len() as u64)
    }

    fn object_class_entries(&self, id: ObjectClassId) -> u64 {
        let Some(index) = self.meta.index(AttributeTypeId::OBJECT_CLASS, IndexForm::Equality) else {
            return u64::MAX;
        };
        // The index has an entry's superclasses, too.
        let name = self.meta.schema.class(id).name();
        let key = self.meta.value_key(AttributeTypeId::OBJECT_CLASS, name.as_bytes());
        self.draft.base().posting(ENTRIES, index, &key).map_or(0, |posting| posting.len() as u64)
    }

    fn is_indexed(&self, id: AttributeTypeId) -> bool {
        let rules = &self.meta.rules;
        OWN_TYPES.iter().any(|name| self.meta.schema.attribute(name) == Some(id))
            || self.meta.slots().any(|(_, slot)| slot.kind == id && !slot.is_absent)
            || self.meta.is_reference(id)
            || rules.groups.contains(&id)
            || rules.unique.iter().any(|rule| rule.kinds.contains(&id))
    }
}

/// What is kept besides definitions: numbers, and which elements of the standard were deleted.
#[derive(Default)]
struct Kept {
    numbers: Numbers,
    deleted: Vec<(Element, String)>,
}

impl Kept {
    fn of(schema: &Schema, standard: &Schema) -> Self {
        let types = standard.attribute_types().filter(|it| !has(schema, Element::AttributeType, &it.oid));
        let classes = standard.object_classes().filter(|it| !has(schema, Element::ObjectClass, &it.oid));
        let types = types.map(|it| (Element::AttributeType, it.oid.clone()));
        let classes = classes.map(|it| (Element::ObjectClass, it.oid.clone()));
        // A class goes before the types that it names.
        Self { numbers: schema.numbers(), deleted: classes.chain(types).collect() }
    }

    fn write(&self) -> String {
        let line = |sign: &'static str| move |oid: &String| format!("{sign}{oid}\n");
        let mut text: String = self.numbers.attribute_types.iter().map(line("t ")).collect();
        text.extend(self.numbers.object_classes.iter().map(line("c ")));
        text.extend(self.deleted.iter().map(|(element, oid)| match element {
            Element::ObjectClass => format!("-c {oid}\n"),
            _ => format!("-t {oid}\n"),
        }));
        text
    }

    fn read(entry: &StoredEntry, standard: &Schema) -> Self {
        let holder = standard.attribute("schemaNumbers");
        let attribute = holder.and_then(|kind| entry.attributes.attribute(kind, ""));
        let mut kept = Self::default();
        let text = attribute.map(|attribute| String::from_utf8_lossy(attribute.first()).into_owned());
        for line in text.iter().flat_map(|text| text.lines()) {
            match line.split_once(' ') {
                Some(("t", oid)) => kept.numbers.attribute_types.push(oid.to_owned()),
                Some(("c", oid)) => kept.numbers.object_classes.push(oid.to_owned()),
                Some(("-t", oid)) => kept.deleted.push((Element::AttributeType, oid.to_owned())),
                Some(("-c", oid)) => kept.deleted.push((Element::ObjectClass, oid.to_owned())),
                _ => {}
            }
        }
        kept
    }
}
