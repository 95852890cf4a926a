//! `cowslip ldap export`: a directory as LDIF, from its folder or from a server.

use super::client::refuse;
use super::progress::{Progress, counted};
use super::remote::{Remote, load};
use cowslip_ldap::dn::Dn;
use cowslip_ldap::entry::Entry;
use cowslip_ldap::filter::Filter;
use cowslip_ldap::ldif::LdifWriter;
use cowslip_ldap::message::{Attributes, Scope, SearchParameters};
use cowslip_ldap::schema::Schema;
use cowslip_ldap_server::export::{Dialect, ExportOptions, export};
use cowslip_ldap_server::operations::prepare;
use cowslip_ldap_server::search::view::is_computed;
use cowslip_ldap_server::tree::Tree;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory's folder, which no server has open
    #[arg(long, value_name = "FOLDER", conflicts_with = "url", required_unless_present = "url")]
    data: Option<PathBuf>,
    #[command(flatten)]
    remote: Remote,
    /// The entry at the top; by default everything but the server's own entries
    #[arg(long, short = 'b', value_name = "DN")]
    base: Option<String>,
    /// The file to write; by default the standard output
    #[arg(long, short = 'o', value_name = "FILE")]
    output: Option<PathBuf>,
    /// Leave out what another server refuses
    #[arg(long = "for", value_name = "SERVER", value_enum)]
    dialect: Option<Server>,
    /// Write only what users may write: no entryUUID, times, authors
    #[arg(long)]
    user_attributes: bool,
}

/// Another server.
#[derive(Clone, Copy, clap::ValueEnum)]
enum Server {
    /// OpenLDAP's slapadd
    Openldap,
    /// 389 Directory Server's ldif2db
    #[value(name = "389ds")]
    Ds389,
}

/// What an answer has besides what users may write and what is computed.
const MADE_BY_SERVER: [&str; 6] =
    ["entryUUID", "entryCSN", "createTimestamp", "creatorsName", "modifyTimestamp", "modifiersName"];

/// Exports.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let out: Box<dyn Write> = match &args.output {
        Some(path) => Box::new(File::create(path).map_err(|error| format!("{}: {error}", path.display()))?),
        None => Box::new(std::io::stdout()),
    };
    let mut out = LdifWriter::new(BufWriter::new(out));
    let mut progress = Progress::new("entries");
    let entries = match &args.data {
        Some(folder) => offline(args, folder, &mut out, &mut progress)?,
        None => online(args, &mut out, &mut progress)?,
    };
    out.into_inner().flush().map_err(|error| error.to_string())?;
    eprintln!("{}", progress.end(entries));
    Ok(())
}

fn dialect(args: &Args) -> Dialect {
    match args.dialect {
        None => Dialect::Cowslip,
        Some(Server::Openldap) => Dialect::OpenLdap,
        Some(Server::Ds389) => Dialect::Ds389,
    }
}

type Out = LdifWriter<BufWriter<Box<dyn Write>>>;

fn offline(args: &Args, folder: &Path, out: &mut Out, progress: &mut Progress) -> Result<u64, String> {
    let root = load(folder)?;
    let mut options = ExportOptions::default();
    options.dialect = dialect(args);
    options.is_without_operational = args.user_attributes;
    if let Some(base) = &args.base {
        let path = prepare::name(base.as_bytes()).and_then(|dn| prepare::path(&dn, root.meta()));
        let path = path.map_err(|refusal| format!("{base}: {}", refusal.message))?;
        options.below = Some(root.resolve(&path).map_err(|_| format!("{base}: there is no such entry"))?);
    }
    let report = export(&root, out, &options, &mut |entries| progress.tell(entries, None));
    let report = report.map_err(|error| error.to_string())?;
    progress.clear();
    for (attribute, values) in &report.left_out {
        eprintln!("left out: {attribute}, {}", counted(*values, "values"));
    }
    Ok(report.entries)
}

fn online(args: &Args, out: &mut Out, progress: &mut Progress) -> Result<u64, String> {
    let mut client = args.remote.connect()?;
    let everything = Filter::Present("objectClass".to_owned());
    let bases = match &args.base {
        Some(base) => vec![base.clone()],
        None => {
            let attributes = &["namingContexts"];
            let dse = SearchParameters { scope: Scope::Base, attributes, ..SearchParameters::default() };
            let mut contexts = Vec::new();
            let result = client.search(&dse, &everything, |_, attributes| {
                let values = attributes.iter().flat_map(|attribute| attribute.values.iter());
                contexts.extend(values.map(|value| String::from_utf8_lossy(value).into_owned()));
            });
            refuse("namingContexts".to_owned(), result.map_err(|e| e.to_string())?)
                .map_err(|e| e.to_string())?;
            contexts
        }
    };
    let mut sorter = ParentsFirst {
        out,
        schema: Schema::standard(),
        dialect: dialect(args),
        written: HashSet::new(),
        waiting: HashMap::new(),
        entries: 0,
        failed: None,
    };
    if sorter.dialect.has_version() {
        sorter.out.version().map_err(|error| error.to_string())?;
    }
    for base in bases {
        sorter.written.extend(parent_of(&base));
        let attributes: &[&str] = if args.user_attributes { &["*"] } else { &["*", "+"] };
        let parameters = SearchParameters { base: &base, attributes, ..SearchParameters::default() };
        let result = client.search(&parameters, &everything, |name, attributes| {
            sorter.take(name, attributes);
            progress.tell(sorter.entries, None);
        });
        refuse(base.clone(), result.map_err(|e| e.to_string())?).map_err(|e| e.to_string())?;
    }
    client.close();
    sorter.write_rest();
    let (entries, failed) = (sorter.entries, sorter.failed);
    failed.map_or(Ok(entries), Err)
}

/// The name of the entry above, for comparing.
fn parent_of(dn: &str) -> Option<String> {
    let parent = Dn::parse(dn.as_bytes()).ok()?.parent()?;
    Some(parent.to_string().to_lowercase())
}

/// Writes entries in an order in which the one above comes before those below. A server gives them in any.
struct ParentsFirst<'a> {
    out: &'a mut Out,
    schema: Schema,
    dialect: Dialect,
    /// The names that are written, in lower case.
    written: HashSet<String>,
    /// By the name of the entry above.
    waiting: HashMap<String, Vec<Entry>>,
    entries: u64,
    failed: Option<String>,
}

impl ParentsFirst<'_> {
    fn take(&mut self, name: &str, attributes: Attributes<'_>) {
        let mut entry = Entry::new(name);
        for attribute in attributes.iter() {
            let base = attribute.description.split(';').next().unwrap_or_default();
            let kind = self.schema.attribute(base);
            let is_made = MADE_BY_SERVER.iter().any(|made| made.eq_ignore_ascii_case(base));
            let is_virtual = kind.is_some_and(is_computed) && !is_made;
            if !is_virtual && self.dialect.takes(base) {
                attribute.values.iter().for_each(|value| entry.push(attribute.description, value));
            }
        }
        match parent_of(name).filter(|parent| !self.written.contains(parent)) {
            Some(parent) => self.waiting.entry(parent).or_default().push(entry),
            None => self.write(entry),
        }
    }

    fn write(&mut self, entry: Entry) {
        let mut open = vec![entry];
        while let Some(entry) = open.pop() {
            if let Err(error) = self.out.entry(&entry) {
                self.failed.get_or_insert(error.to_string());
            }
            self.entries += 1;
            let name = Dn::parse(entry.dn.as_bytes()).map(|dn| dn.to_string().to_lowercase());
            let Ok(name) = name else { continue };
            open.extend(self.waiting.remove(&name).into_iter().flatten());
            self.written.insert(name);
        }
    }

    /// Writes entries whose parent the server did not give.
    fn write_rest(&mut self) {
        let mut rest: Vec<Entry> = std::mem::take(&mut self.waiting).into_values().flatten().collect();
        rest.sort_by_key(|entry| (entry.dn.matches(',').count(), entry.dn.clone()));
        rest.into_iter().for_each(|entry| self.write(entry));
    }
}
