//! `cowslip ldap schema`: the schema of a server or of a folder, and its changes.

use super::client::{Client, refuse};
use super::import::schema_file;
use super::remote::{Remote, load};
use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{ChangeOperation, Scope, SearchParameters, write_modify};
use cowslip_ldap::schema::{Difference, Element, Others, Schema, SchemaFile, Unused};
use cowslip_ldap_server::schema_entry::SCHEMA_DN;
use std::path::PathBuf;

/// The kinds of definitions that a server can be given.
const ELEMENTS: [(Element, &str); 3] = [
    (Element::AttributeType, "attributeTypes"),
    (Element::ObjectClass, "objectClasses"),
    (Element::ContentRule, "dITContentRules"),
];

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List names
    List {
        #[command(flatten)]
        source: Source,
        /// Everything, not only what the standard schema does not have
        #[arg(long)]
        all: bool,
    },
    /// Show the definitions of a name or object identifier
    Show {
        #[command(flatten)]
        source: Source,
        /// A name or an object identifier
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Give a server the definitions of a file (.schema, or LDIF of cn=schema), all or nothing
    Apply {
        #[command(flatten)]
        remote: Remote,
        /// The file
        #[arg(value_name = "FILE")]
        file: PathBuf,
        /// Delete what is neither in the file nor of the standard schema
        #[arg(long)]
        delete_others: bool,
        /// Only say what would change
        #[arg(long)]
        dry_run: bool,
    },
}

/// A server or a folder.
#[derive(clap::Args)]
struct Source {
    /// The directory's folder, which no server has open
    #[arg(long, value_name = "FOLDER", conflicts_with = "url", required_unless_present = "url")]
    data: Option<PathBuf>,
    #[command(flatten)]
    remote: Remote,
}

impl Source {
    /// All definitions, in LDIF's form: kind of the element, text.
    fn definitions(&self) -> Result<Vec<(Element, String)>, String> {
        match &self.data {
            Some(folder) => {
                let root = load(folder)?;
                let schema = &root.meta().schema;
                let of = |(element, _): (Element, &str)| {
                    schema.published(element).into_iter().map(move |text| (element, text))
                };
                Ok(ELEMENTS.into_iter().flat_map(of).collect())
            }
            None => {
                let mut client = self.remote.connect()?;
                let found = fetch(&mut client)?;
                client.close();
                Ok(found)
            }
        }
    }
}

/// Does it.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    match &args.action {
        Action::List { source, all } => list(&source.definitions()?, *all),
        Action::Show { source, name } => show(&source.definitions()?, name),
        Action::Apply { remote, file, delete_others, dry_run } => {
            let others = if *delete_others { Others::Delete } else { Others::Keep };
            apply(remote, &schema_file(file)?, others, *dry_run)
        }
    }
}

/// Reads the definitions of a server.
fn fetch(client: &mut Client) -> Result<Vec<(Element, String)>, String> {
    let attributes = ELEMENTS.map(|(_, attribute)| attribute);
    let parameters = SearchParameters {
        base: SCHEMA_DN,
        scope: Scope::Base,
        attributes: &attributes,
        ..SearchParameters::default()
    };
    let filter = Filter::Equality { attribute: "objectClass".to_owned(), value: b"subschema".to_vec() };
    let mut found = Vec::new();
    let result = client.search(&parameters, &filter, |_, attributes| {
        for attribute in attributes.iter() {
            let Some(element) = Element::by_attribute(attribute.description) else { continue };
            let values = attribute.values.iter().map(|value| String::from_utf8_lossy(value).into_owned());
            found.extend(values.map(|text| (element, text)));
        }
    });
    let result = result.map_err(|error| error.to_string())?;
    refuse(SCHEMA_DN.to_owned(), result).map_err(|error| error.to_string())?;
    Ok(found)
}

/// Definitions as a file has them.
fn file_of(definitions: &[(Element, String)]) -> Result<SchemaFile, String> {
    let name = |element: Element| ELEMENTS.iter().find(|(it, _)| *it == element).map_or("", |(_, name)| name);
    let text: String =
        definitions.iter().map(|(element, text)| format!("{}: {text}\n", name(*element))).collect();
    SchemaFile::parse(&text).map_err(|error| format!("the server's schema: {error}"))
}

fn list(definitions: &[(Element, String)], is_all: bool) -> Result<(), String> {
    let standard = Schema::standard();
    for located in &file_of(definitions)?.definitions {
        let definition = &located.definition;
        let head = definition.head();
        let is_standard = match definition.element() {
            Element::AttributeType => standard.attribute(&head.oid).is_some(),
            Element::ObjectClass => standard.object_class(&head.oid).is_some(),
            _ => false,
        };
        if is_all || !is_standard {
            println!("{} {} {}", definition.element(), head.oid, head.names.join(" "));
        }
    }
    Ok(())
}

fn show(definitions: &[(Element, String)], name: &str) -> Result<(), String> {
    let mut count = 0;
    for located in &file_of(definitions)?.definitions {
        let head = located.definition.head();
        if head.oid == name || head.names.iter().any(|it| it.eq_ignore_ascii_case(name)) {
            println!("{}: {}", located.definition.element(), located.definition);
            count += 1;
        }
    }
    if count == 0 { Err(format!("the schema has no {name}")) } else { Ok(()) }
}

fn apply(remote: &Remote, file: &SchemaFile, others: Others, is_dry: bool) -> Result<(), String> {
    let mut client = remote.connect()?;
    let served = file_of(&fetch(&mut client)?)?;
    let standard = Schema::standard();
    let current = standard.apply(&standard.difference(&served, Others::Keep).changes, &Unused);
    let current = current.map_err(|error| format!("the server's schema: {error}"))?;
    let Difference { changes, kept } = current.difference(file, others);
    for kept in &kept {
        println!("line {}: {} {} is left as it is: {}", kept.line, kept.element, kept.name, kept.reason);
    }
    let mut steps: Vec<(ChangeOperation, &str, [String; 1])> = Vec::new();
    for change in &changes {
        let attribute = ELEMENTS.iter().find(|(element, _)| *element == change.element());
        let Some((_, attribute)) = attribute else { continue };
        let (deleted, added) = change.values();
        let deleted = deleted.map(|text| (ChangeOperation::Delete, *attribute, [text]));
        let added = added.map(|text| (ChangeOperation::Add, *attribute, [text]));
        steps.extend(deleted.into_iter().chain(added));
    }
    for (operation, attribute, [text]) in &steps {
        let sign = if *operation == ChangeOperation::Add { '+' } else { '-' };
        println!("{sign} {attribute}: {text}");
    }
    if !is_dry && !steps.is_empty() {
        let list = steps.iter().map(|(operation, attribute, text)| (*operation, *attribute, &text[..]));
        let result = client.call(|out, id| write_modify(out, id, SCHEMA_DN.as_bytes(), list, &[]));
        refuse(SCHEMA_DN.to_owned(), result.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    }
    client.close();
    println!("{} changes{}", changes.len(), if is_dry { ", not made" } else { "" });
    Ok(())
}
