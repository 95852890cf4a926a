//! Which attributes of an entry are answered (RFC 4511, section 4.5.1.8; RFC 3673, 4529).

use std::ops::ControlFlow;

use cowslip_ldap::description::{AttributeDescription, has_options};
use cowslip_ldap::filter::EntryView;
use cowslip_ldap::message::EntryWriter;
use cowslip_ldap::schema::{AttributeTypeId, Schema};

use super::view::{COMPUTED, View};
use crate::tree::Tree;

/// Which attributes of an entry are answered.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    all_user: bool,
    all_operational: bool,
    named: Vec<(AttributeTypeId, String)>,
    types_only: bool,
}

impl Selection {
    /// The selection that a request's list means. What the schema does not know selects nothing.
    pub fn new<'t>(names: impl Iterator<Item = &'t str>, types_only: bool, schema: &Schema) -> Self {
        let mut selection = Self { types_only, ..Self::default() };
        let mut is_empty = true;
        for name in names {
            is_empty = false;
            match name {
                "*" => selection.all_user = true,
                "+" => selection.all_operational = true,
                "1.1" => {}
                _ => selection.name(name, schema),
            }
        }
        selection.all_user |= is_empty;
        selection.named.sort_unstable();
        selection.named.dedup();
        selection
    }

    fn name(&mut self, name: &str, schema: &Schema) {
        if let Some(class) = name.strip_prefix('@') {
            if let Some(class) = schema.object_class(class) {
                let class = schema.class(class);
                self.named.extend(class.must.iter().chain(&class.may).map(|kind| (*kind, String::new())));
            }
            return;
        }
        let Ok(description) = AttributeDescription::parse(name) else { return };
        if let Some(kind) = schema.attribute(description.attribute()) {
            self.named.push((kind, description.normalized_options()));
        }
    }

    /// Whether an attribute is answered.
    pub fn has(&self, kind: AttributeTypeId, options: &str, schema: &Schema) -> bool {
        let is_operational = schema.attribute_type(kind).usage.is_operational();
        let by_kind = if is_operational { self.all_operational } else { self.all_user };
        by_kind
            || self.named.iter().any(|(named, wanted)| {
                (kind == *named || schema.is_subtype(kind, *named)) && has_options(options, wanted)
            })
    }

    /// Writes the attributes of an entry that are answered.
    pub fn write<T: Tree>(&self, view: &View<'_, T>, out: &mut EntryWriter<'_>) {
        let schema = view.schema();
        let mut name = String::new();
        let entry = view.entry();
        let is_wanted = |kind, options: &str| view.is_visible(kind) && self.has(kind, options, schema);
        for attribute in
            entry.attributes.iter().filter(|attribute| is_wanted(attribute.kind, attribute.options))
        {
            out.begin_attribute(described(&mut name, attribute.kind, attribute.options, schema));
            if !self.types_only {
                attribute.values().for_each(|value| out.value(value));
            }
        }
        let special = entry.references().iter().map(|attribute| (attribute.kind, &*attribute.options));
        let special =
            special.chain(entry.large().iter().map(|attribute| (attribute.kind, &*attribute.options)));
        for (kind, options) in special.filter(|(kind, options)| is_wanted(*kind, options)) {
            out.begin_attribute(described(&mut name, kind, options, schema));
            if !self.types_only {
                let _ = view.values(kind, &mut |held, value| {
                    if held == options {
                        out.value(value);
                    }
                    ControlFlow::Continue(())
                });
            }
        }
        self.write_computed(view, out);
    }

    fn write_computed<T: Tree>(&self, view: &View<'_, T>, out: &mut EntryWriter<'_>) {
        let schema = view.schema();
        if !self.all_operational && self.named.is_empty() {
            return;
        }
        for kind in COMPUTED.into_iter().filter(|kind| self.has(*kind, "", schema)) {
            let mut is_open = false;
            let _ = view.computed(kind, &mut |value| {
                if !is_open {
                    out.begin_attribute(schema.attribute_type(kind).name());
                    is_open = true;
                }
                if !self.types_only {
                    out.value(value);
                }
                ControlFlow::Continue(())
            });
        }
    }

    /// Writes the attributes of an entry that is computed as a whole.
    pub fn write_all(
        &self,
        attributes: &[(AttributeTypeId, Vec<Vec<u8>>)],
        schema: &Schema,
        out: &mut EntryWriter<'_>,
    ) {
        for (kind, values) in attributes.iter().filter(|(kind, _)| self.has(*kind, "", schema)) {
            out.begin_attribute(schema.attribute_type(*kind).name());
            if !self.types_only {
                values.iter().for_each(|value| out.value(value));
            }
        }
    }

    /// The same selection with all attributes instead of all attributes of users.
    #[must_use]
    pub fn with_operational(self) -> Self {
        Self { all_operational: self.all_operational || (self.all_user && self.named.is_empty()), ..self }
    }
}

/// The description of an attribute as answers have it: the schema's name, options, and `;binary` where the syntax wants
/// it (RFC 4522).
pub(crate) fn described<'n>(
    name: &'n mut String,
    kind: AttributeTypeId,
    options: &str,
    schema: &Schema,
) -> &'n str {
    let definition = schema.attribute_type(kind);
    name.clear();
    name.push_str(definition.name());
    if definition.syntax.requires_binary() {
        name.push_str(";binary");
    }
    if !options.is_empty() {
        name.push(';');
        name.push_str(options);
    }
    name
}
