//! From a request to a plan, under one schema.
//!
//! Runs on the worker that read the request, and again in the committer if the rules changed in between. Every refusal
//! says which attribute, which value and which rule.

use std::collections::HashSet;
use std::sync::Arc;

use cowslip_ldap::description::AttributeDescription;
use cowslip_ldap::dn::{Dn, DnError, Rdn};
use cowslip_ldap::result::ResultCode;
use cowslip_ldap::schema::{AttributeType, AttributeTypeId};
use cowslip_ldap::syntax::Syntax;

use super::plan::{
    AddPlan, Brought, ChangeKind, ModifyPlan, Plan, PlannedAttribute, PlannedValue, RenamePlan, SchemaPlan,
};
use super::refusal::Refusal;
use super::write::shown;
use crate::entry::Incoming;
use crate::key::Key;
use crate::meta::Meta;
use crate::schema_entry;
use crate::tree::{Path, normalized_name};

/// One attribute of a request: its description, and values.
#[derive(Clone, Debug)]
pub struct Given<'a> {
    /// The attribute description as it was sent.
    pub description: &'a [u8],
    /// The values.
    pub values: Vec<&'a [u8]>,
}

/// Who asks decides what it may bring along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A client, which may not set what the server maintains.
    Client,
    /// An import, which took that out before and is trusted with the rest.
    Import,
}

/// A name as a request has it.
///
/// # Errors
/// `invalidDNSyntax`, with the place.
pub fn name(text: &[u8]) -> Result<Dn, Refusal> {
    Dn::parse(text).map_err(|error| invalid_name(&error))
}

/// Where a name leads.
///
/// # Errors
/// `invalidDNSyntax`: the name is none, or an attribute of it is unknown.
pub fn path(dn: &Dn, meta: &Meta) -> Result<Path, Refusal> {
    Path::new(dn, meta).map_err(|error| invalid_name(&error))
}

fn invalid_name(error: &DnError) -> Refusal {
    Refusal::new(ResultCode::InvalidDnSyntax, error.to_string())
}

/// The attribute that a description means: its type, and its options as they are stored.
///
/// # Errors
/// `undefinedAttributeType`.
pub fn attribute(text: &[u8], meta: &Meta) -> Result<(AttributeTypeId, Box<str>), Refusal> {
    let undefined = |message: String| Refusal::new(ResultCode::UndefinedAttributeType, message);
    let text = std::str::from_utf8(text)
        .map_err(|_| undefined(format!("{} is no attribute description", shown(text))))?;
    let description = AttributeDescription::parse(text)
        .map_err(|error| undefined(format!("{}: {error}", shown(text.as_bytes()))))?;
    let name = description.attribute();
    let kind = meta
        .schema
        .attribute(name)
        .ok_or_else(|| undefined(format!("the schema has no attribute type {name}")))?;
    if description.is_binary() && meta.schema.attribute_type(kind).syntax.is_human_readable() {
        return Err(undefined(format!(
            "{text}: values of this attribute are not transferred in binary form"
        )));
    }
    Ok((kind, description.normalized_options().into_boxed_str()))
}

/// A plan of an add request (RFC 4511, section 4.7).
///
/// # Errors
/// See [`Refusal`].
pub fn add(
    dn: &[u8],
    attributes: &[Given<'_>],
    brought: Brought,
    origin: Origin,
    meta: &Meta,
) -> Result<AddPlan, Refusal> {
    let dn = name(dn)?;
    let Some(rdn) = dn.rdn() else {
        return Err(Refusal::new(
            ResultCode::EntryAlreadyExists,
            "the entry without a name is the server's own",
        ));
    };
    let path = path(&dn, meta)?;
    let mut planned: Vec<PlannedAttribute> = Vec::with_capacity(attributes.len() + 1);
    for given in attributes {
        let one = values_of(given, origin, meta)?;
        if one.values.is_empty() {
            let message = format!("{} has no values", meta.schema.attribute_type(one.kind).name());
            return Err(Refusal::new(ResultCode::ProtocolError, message));
        }
        merge(&mut planned, one, meta)?;
    }
    for held in rdn_values(rdn, origin, meta)? {
        // RFC 4511, section 4.7: the attributes of the RDN need not be in the list.
        let place = planned.iter_mut().find(|one| one.kind == held.kind && one.options.is_empty());
        match place {
            None => planned.push(held),
            Some(place) => {
                let new = held.values.into_iter().filter(|value| {
                    !place.values.iter().any(|there| there.incoming.key == value.incoming.key)
                });
                let new: Vec<_> = new.collect();
                place.values.extend(new);
            }
        }
    }
    let rdn: Arc<str> = if path.is_suffix() { dn.to_string().into() } else { rdn.to_string().into() };
    Ok(AddPlan { path, rdn, attributes: planned, brought })
}

/// A plan of a modify request (section 4.6).
///
/// # Errors
/// See [`Refusal`].
pub fn modify(dn: &[u8], changes: &[(ChangeKind, Given<'_>)], meta: &Meta) -> Result<Plan, Refusal> {
    let dn = name(dn)?;
    if is_schema(&dn) {
        return schema_change(changes, meta).map(Plan::Schema);
    }
    let path = path(&dn, meta)?;
    let mut planned = Vec::with_capacity(changes.len());
    for (change, given) in changes {
        let one = values_of(given, Origin::Client, meta)?;
        let kind = meta.schema.attribute_type(one.kind);
        match change {
            ChangeKind::Add if one.values.is_empty() => {
                let message = format!("no values to add to {}", kind.name());
                return Err(Refusal::new(ResultCode::ProtocolError, message));
            }
            ChangeKind::Delete if !one.values.is_empty() && kind.equality.is_none() => {
                let message = format!("{} has no equality rule by which a value could be found", kind.name());
                return Err(Refusal::new(ResultCode::InappropriateMatching, message));
            }
            ChangeKind::Increment if kind.syntax != Syntax::Integer => {
                let message = format!("{} is no number", kind.name());
                return Err(Refusal::new(ResultCode::ConstraintViolation, message));
            }
            ChangeKind::Increment if one.values.len() != 1 => {
                return Err(Refusal::new(ResultCode::ProtocolError, "an increment takes exactly one value"));
            }
            _ => {}
        }
        planned.push((*change, one));
    }
    Ok(Plan::Modify(ModifyPlan { path, changes: planned }))
}

/// Whether a name is that of the schema's entry.
pub fn is_schema(dn: &Dn) -> bool {
    let [rdn] = dn.rdns() else { return false };
    let [ava] = rdn.avas() else { return false };
    let is_cn = ["cn", "commonName", "2.5.4.3"].iter().any(|name| name.eq_ignore_ascii_case(ava.attribute()));
    is_cn && ava.value().eq_ignore_ascii_case(b"schema")
}

fn schema_change(changes: &[(ChangeKind, Given<'_>)], meta: &Meta) -> Result<SchemaPlan, Refusal> {
    let unwilling = |message: String| Refusal::new(ResultCode::UnwillingToPerform, message);
    let mut plan = SchemaPlan::default();
    for (change, given) in changes {
        let (kind, _) = attribute(given.description, meta)?;
        let name = meta.schema.attribute_type(kind).name();
        let element =
            schema_entry::element_of(kind).ok_or_else(|| unwilling(format!("{name} cannot be changed")))?;
        let is_added = match change {
            ChangeKind::Add => true,
            ChangeKind::Delete if !given.values.is_empty() => false,
            _ => {
                let message =
                    format!("{name}: definitions are added and deleted one by one, not replaced as a whole");
                return Err(unwilling(message));
            }
        };
        for value in &given.values {
            let text = std::str::from_utf8(value).map_err(|_| {
                Refusal::new(ResultCode::InvalidAttributeSyntax, format!("{name}: a definition is UTF-8"))
            })?;
            plan.definitions.push((is_added, element, text.to_owned()));
        }
    }
    Ok(plan)
}

/// A plan of a modifyDN request (section 4.9).
///
/// # Errors
/// See [`Refusal`].
pub fn rename(
    dn: &[u8],
    new_rdn: &[u8],
    deletes_old: bool,
    superior: Option<&[u8]>,
    meta: &Meta,
) -> Result<RenamePlan, Refusal> {
    let path = self::path(&name(dn)?, meta)?;
    let rdn = Rdn::parse(new_rdn).map_err(|error| invalid_name(&error))?;
    let superior = superior.map(|dn| self::path(&name(dn)?, meta)).transpose()?;
    let values = rdn_values(&rdn, Origin::Client, meta)?;
    let text: Arc<str> = rdn.to_string().into();
    let whole = Dn::new(vec![rdn]).map_err(|error| invalid_name(&error))?;
    let key = normalized_name(&whole, &meta.schema).map_err(|error| invalid_name(&error))?;
    Ok(RenamePlan { path, rdn: text, key, values, deletes_old, superior })
}

/// The attributes that an RDN names, as an entry must hold them.
fn rdn_values(rdn: &Rdn, origin: Origin, meta: &Meta) -> Result<Vec<PlannedAttribute>, Refusal> {
    let mut planned = Vec::with_capacity(rdn.avas().len());
    for ava in rdn.avas() {
        let given = Given { description: ava.attribute().as_bytes(), values: vec![ava.value()] };
        merge(&mut planned, values_of(&given, origin, meta)?, meta)?;
    }
    Ok(planned)
}

/// Puts the values of one attribute that is named twice together.
fn merge(planned: &mut Vec<PlannedAttribute>, one: PlannedAttribute, meta: &Meta) -> Result<(), Refusal> {
    let place = planned.iter_mut().find(|there| there.kind == one.kind && there.options == one.options);
    match place {
        None => planned.push(one),
        Some(place) => {
            place.values.extend(one.values);
            check_distinct(&place.values, meta.schema.attribute_type(place.kind))?;
        }
    }
    Ok(())
}

fn values_of(given: &Given<'_>, origin: Origin, meta: &Meta) -> Result<PlannedAttribute, Refusal> {
    let (id, options) = attribute(given.description, meta)?;
    let kind = meta.schema.attribute_type(id);
    if kind.is_no_user_modification && origin == Origin::Client {
        let message = format!("{} is maintained by the server", kind.name());
        return Err(Refusal::new(ResultCode::ConstraintViolation, message));
    }
    let mut values = Vec::with_capacity(given.values.len());
    for value in &given.values {
        values.push(planned_value(value, kind, meta)?);
    }
    check_distinct(&values, kind)?;
    Ok(PlannedAttribute { kind: id, options, values })
}

fn planned_value(value: &[u8], kind: &AttributeType, meta: &Meta) -> Result<PlannedValue, Refusal> {
    let invalid = |error: &dyn std::fmt::Display| {
        let message = format!("{}: {} is no value of its syntax: {error}", kind.name(), shown(value));
        Refusal::new(ResultCode::InvalidAttributeSyntax, message)
    };
    kind.syntax.check(value, &meta.schema).map_err(|error| invalid(&error))?;
    if meta.is_reference(kind.id)
        && let Ok(dn) = Dn::parse(value)
    {
        let path = Path::new(&dn, meta).map_err(|error| invalid(&error))?;
        let incoming = Incoming { text: value.into(), key: Key::new(&path.bytes()), target: None };
        return Ok(PlannedValue { incoming, path: Some(path) });
    }
    let key = match kind.equality {
        None => Key::new(value),
        Some(rule) => {
            let mut normalized = Vec::with_capacity(value.len() + 8);
            rule.normalize(value, &meta.schema, &mut normalized).map_err(|error| invalid(&error))?;
            Key::new(&normalized)
        }
    };
    Ok(PlannedValue { incoming: Incoming { text: value.into(), key, target: None }, path: None })
}

fn check_distinct(values: &[PlannedValue], kind: &AttributeType) -> Result<(), Refusal> {
    if values.len() < 2 {
        return Ok(());
    }
    let mut seen = HashSet::with_capacity(values.len());
    match values.iter().find(|value| !seen.insert(&value.incoming.key)) {
        None => Ok(()),
        Some(twice) => {
            let message =
                format!("{}: the value {} is there twice", kind.name(), shown(&twice.incoming.text));
            Err(Refusal::new(ResultCode::AttributeOrValueExists, message))
        }
    }
}
