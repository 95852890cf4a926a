//! Export: a version of the directory as LDIF (RFC 2849).
//!
//! The entry above comes before those below it, so that any server can read the file in one go. What is computed when
//! it is read is not written; what the server made once (`entryUUID`, times, authors, `entryCSN`) is. Invariant:
//! importing what was exported gives the same entries.

use std::collections::BTreeMap;
use std::io::{self, Write};

use cowslip_engine::Root;
use cowslip_ldap::ldif::LdifWriter;
use cowslip_ldap::schema::AttributeTypeId;
use cowslip_ldap::time::Timestamp;

use crate::entry::{EntryNumber, StoredEntry, Value};
use crate::meta::{Meta, fixed};
use crate::model::{Directory, number_key};
use crate::search::described;
use crate::tree::{Path, Tree};

/// For whom an export is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// For this server: everything.
    #[default]
    Cowslip,
    /// For OpenLDAP's `slapadd`, which takes `entryUUID` and `entryCSN`.
    OpenLdap,
    /// For 389 Directory Server's `ldif2db`, which takes `nsUniqueId`, and `entryUUID` by a plug-in that is on by default.
    Ds389,
}

impl Dialect {
    /// Whether files begin with their version: `slapadd` takes that line for an attribute.
    #[must_use]
    pub fn has_version(self) -> bool {
        self != Self::OpenLdap
    }

    /// Attributes that the server in question refuses, as far as its standard schema goes.
    fn refused(self) -> &'static [&'static str] {
        match self {
            Self::Cowslip => &[],
            Self::OpenLdap => {
                &["aci", "nsAccountLock", "nsRoleDN", "nsUniqueId", "olcAccess", "authPassword"]
            }
            Self::Ds389 => &["entryCSN", "olcAccess", "authPassword"],
        }
    }

    /// Whether the server in question takes an attribute.
    pub fn takes(self, attribute: &str) -> bool {
        !self.refused().iter().any(|refused| refused.eq_ignore_ascii_case(attribute))
    }
}

/// What is exported.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ExportOptions {
    /// For whom.
    pub dialect: Dialect,
    /// The entry at the top; none means everything but the server's own entries.
    pub below: Option<EntryNumber>,
    /// Whether only what users may write is wanted.
    pub is_without_operational: bool,
}

/// What was exported.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExportReport {
    /// How many entries.
    pub entries: u64,
    /// How many values were left out because the server in question refuses them, by attribute.
    pub left_out: BTreeMap<String, u64>,
}

/// After how many entries the progress is told.
const PROGRESS_ENTRIES: u64 = 1_024;

/// Writes a version of the directory. `tell` is told how many entries are written.
///
/// # Errors
/// Those of the output.
pub fn export<W: Write>(
    root: &Root<Directory>,
    out: &mut LdifWriter<W>,
    options: &ExportOptions,
    tell: &mut dyn FnMut(u64),
) -> io::Result<ExportReport> {
    let mut export = Export {
        root,
        out,
        options,
        report: ExportReport::default(),
        dn: String::new(),
        name: String::new(),
        order: order(root.meta()),
    };
    if options.dialect.has_version() {
        export.out.version()?;
    }
    let mut open = match options.below {
        Some(number) => vec![number],
        None => tops(root),
    };
    open.reverse();
    while let Some(number) = open.pop() {
        let Some(entry) = root.entry(number) else { continue };
        export.entry(number, entry)?;
        if export.report.entries.is_multiple_of(PROGRESS_ENTRIES) {
            tell(export.report.entries);
        }
        let first = open.len();
        open.extend(Tree::lookup(root, fixed::CHILDREN, &number_key(number)));
        open[first..].reverse();
    }
    Ok(export.report)
}

/// The entries at the top of the users' trees, in the order of the configuration.
fn tops(root: &Root<Directory>) -> Vec<EntryNumber> {
    let paths = root.meta().rules.contexts().filter_map(|suffix| Path::new(&suffix.dn, root.meta()).ok());
    paths.filter_map(|path| root.resolve(&path).ok()).collect()
}

/// The attribute types in the order in which they are written: object classes, then by name.
fn order(meta: &Meta) -> Vec<u32> {
    let mut types: Vec<(bool, &str, AttributeTypeId)> = meta
        .schema
        .attribute_types()
        .map(|kind| (kind.usage.is_operational(), kind.name(), kind.id))
        .collect();
    types.sort_unstable_by_key(|(is_operational, name, id)| {
        (*id != AttributeTypeId::OBJECT_CLASS, *is_operational, name.to_ascii_lowercase())
    });
    let mut order = Vec::new();
    for (place, (_, _, id)) in (0..).zip(types) {
        let at = id.0 as usize;
        if order.len() <= at {
            order.resize(at + 1, u32::MAX);
        }
        order[at] = place;
    }
    order
}

struct Export<'a, W> {
    root: &'a Root<Directory>,
    out: &'a mut LdifWriter<W>,
    options: &'a ExportOptions,
    report: ExportReport,
    dn: String,
    name: String,
    /// The place of each attribute type by its number.
    order: Vec<u32>,
}

impl<W: Write> Export<'_, W> {
    fn entry(&mut self, number: EntryNumber, entry: &StoredEntry) -> io::Result<()> {
        self.dn.clear();
        self.root.write_dn(number, &mut self.dn);
        self.out.dn(&self.dn)?;
        let mut attributes: Vec<(AttributeTypeId, &str)> = entry.descriptions().collect();
        let place = |kind: AttributeTypeId| self.order.get(kind.0 as usize).copied().unwrap_or(u32::MAX);
        attributes.sort_by_key(|(kind, options)| (place(*kind), *options));
        for (kind, options) in attributes {
            self.attribute(entry, kind, options)?;
        }
        if !self.options.is_without_operational {
            self.made_by_server(entry)?;
        }
        self.report.entries += 1;
        self.out.end()
    }

    fn attribute(&mut self, entry: &StoredEntry, kind: AttributeTypeId, options: &str) -> io::Result<()> {
        let schema = &self.root.meta().schema;
        let definition = schema.attribute_type(kind);
        if self.options.is_without_operational && definition.usage.is_operational() {
            return Ok(());
        }
        let values = entry.count(kind, options);
        if self.is_left_out(definition.name(), values) {
            return Ok(());
        }
        let name = described(&mut self.name, kind, options, schema);
        if let Some(attribute) = entry.attributes.attribute(kind, options) {
            return attribute.values().try_for_each(|value| self.out.value(name, value));
        }
        // The order of names is that of the entries' numbers, which another directory gives otherwise.
        let mut texts: Vec<Box<[u8]>> =
            entry.values(kind, options).iter().map(|value| text(self.root, value)).collect();
        if entry.reference(kind, options).is_some() {
            texts.sort_unstable();
        }
        texts.iter().try_for_each(|text| self.out.value(name, text))
    }

    fn made_by_server(&mut self, entry: &StoredEntry) -> io::Result<()> {
        let time = |us| Timestamp::from_micros(us).to_string();
        self.server_value("creatorsName", &entry.creator)?;
        self.server_value("createTimestamp", &time(entry.created_us))?;
        self.server_value("modifiersName", &entry.modifier)?;
        self.server_value("modifyTimestamp", &time(entry.modified_us))?;
        self.server_value("entryUUID", &entry.uuid.to_string())?;
        self.server_value("entryCSN", &entry.csn.to_string())
    }

    fn server_value(&mut self, name: &str, value: &str) -> io::Result<()> {
        if self.is_left_out(name, 1) { Ok(()) } else { self.out.value(name, value.as_bytes()) }
    }

    fn is_left_out(&mut self, name: &str, values: usize) -> bool {
        let is_left_out = !self.options.dialect.takes(name);
        if is_left_out {
            *self.report.left_out.entry(name.to_owned()).or_default() += values as u64;
        }
        is_left_out
    }
}

/// A value as it is written: an entry by its present name.
fn text(root: &Root<Directory>, value: &Value) -> Box<[u8]> {
    match value {
        Value::Plain(text) | Value::Name(_, text) => Box::from(&**text),
        Value::Entry(target) => root.dn(*target).into_bytes().into(),
    }
}
