//! `cowslip ldap import`: LDIF into a new directory's folder, or to a server.
//!
//! A server gets the records one behind the other, up to [`WINDOW`] without an answer. What it refuses because the entry
//! above is not there yet is sent again at the end, as long as that helps.

use super::client::{Client, said};
use super::progress::{Progress, counted};
use super::remote::Remote;
use cowslip_engine::storage::FileSystem;
use cowslip_ldap::ldif::{LdifBody, LdifError, LdifErrorKind, LdifOptions, LdifReader, LdifRecord};
use cowslip_ldap::message::MessageId;
use cowslip_ldap::result::{LdapResult, ResultCode};
use cowslip_ldap::schema::{Schema, SchemaFile};
use cowslip_ldap_server::import::{
    ImportOptions, ImportProgress, ImportReport, Imported, Rejection, for_client, import,
};
use cowslip_ldap_server::meta::IndexForm;
use cowslip_ldap_server::service::Service;
use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// How many records are sent without an answer.
const WINDOW: usize = 256;

/// How many records may wait for the entry above them.
const RETRIES_MAX: usize = 100_000;

/// How much of the file is read at once.
const READ_BYTES: usize = 1 << 20;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The file; - for the standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Make a new directory in this folder, which no server has open
    #[arg(long, value_name = "FOLDER", conflicts_with = "url", required_unless_present = "url")]
    data: Option<PathBuf>,
    #[command(flatten)]
    remote: Remote,
    /// A name at the top of the new directory; may be repeated; by default the name of the first entry
    #[arg(long = "suffix", value_name = "DN", conflicts_with = "url")]
    suffixes: Vec<String>,
    /// A file with definitions that the new directory's schema gets first; may be repeated
    #[arg(long = "schema", value_name = "FILE", conflicts_with = "url")]
    schema: Vec<PathBuf>,
    /// An index of the new directory, such as mail=eq,sub; may be repeated
    #[arg(long = "index", value_name = "ATTRIBUTE=FORMS", conflicts_with = "url", value_parser = index)]
    indexes: Vec<(String, Vec<IndexForm>)>,
    /// Leave out attributes and object classes that the schema does not have, instead of rejecting their entries
    #[arg(long, conflicts_with = "url")]
    drop_unknown: bool,
    /// Succeed although the file has access rules (aci, olcAccess, locked accounts), which are kept and not enforced
    #[arg(long)]
    ignore_access_rules: bool,
    /// Read values that the file gives as file: URLs, with the rights of this command
    #[arg(long)]
    read_files: bool,
}

/// An attribute and the forms of its index.
pub(super) fn index(text: &str) -> Result<(String, Vec<IndexForm>), String> {
    let (name, list) = text.split_once('=').ok_or("an index is ATTRIBUTE=FORM,FORM…")?;
    Ok((name.to_owned(), forms(list)?))
}

/// Forms of an index.
pub(super) fn forms(list: &str) -> Result<Vec<IndexForm>, String> {
    let form = |name: &str| {
        IndexForm::by_name(name).ok_or_else(|| format!("no form \"{name}\": there are eq, sub, ord, approx"))
    };
    list.split(',').map(form).collect()
}

/// Imports.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let input = Input::open(&args.file)?;
    let options = LdifOptions { reads_files: args.read_files, ..LdifOptions::default() };
    let position = Rc::clone(&input.position);
    let part = || input.bytes.map(|bytes| position.get() as f64 / bytes.max(1) as f64);
    let reader = LdifReader::with_options(BufReader::with_capacity(READ_BYTES, input.stream), options);
    let mut progress = Progress::new("records");
    let report = match &args.data {
        Some(folder) => offline(args, folder, reader, &mut progress, &part)?,
        None => online(args, reader, &mut progress, &part)?,
    };
    eprintln!("{}", progress.end(report.read));
    conclude(args, &report)
}

/// Says what became of the records; an error if not all of it is in the directory and in force.
fn conclude(args: &Args, report: &ImportReport) -> Result<(), String> {
    let ImportReport { imported, rejected, .. } = report;
    println!("{imported} imported, {rejected} rejected");
    let list = |what: &str, counts: &BTreeMap<String, u64>| {
        if !counts.is_empty() {
            let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{name} {count}")).collect();
            println!("{what}: {}", counts.join(", "));
        }
    };
    list("left out, computed or of another server's bookkeeping", &report.dropped);
    list("made anew, because they were not of their form", &report.malformed);
    list("left out, unknown to the schema", &report.unknown);
    if report.unresolved > 0 {
        println!(
            "{} name no entry of this directory and are kept as text",
            counted(report.unresolved, "values")
        );
    }
    if report.access_rule_count > 0 {
        println!("NOT ENFORCED, access rules of another server:");
        for rule in &report.access_rules {
            println!("  line {}: {} of {}", rule.line, counted(rule.values, &rule.attribute), rule.dn);
        }
        let listed: u64 = report.access_rules.iter().map(|rule| rule.values).sum();
        if report.access_rule_count > listed {
            println!("  and {} more", report.access_rule_count - listed);
        }
    }
    let rules = report.access_rule_count;
    let is_warned = rules > 0 && !args.ignore_access_rules;
    if is_warned {
        eprintln!(
            "warning: {rules} access rules of another server are not enforced here: see who may read the directory, \
             then say --ignore-access-rules"
        );
    }
    match (report.rejected, is_warned) {
        (0, false) => Ok(()),
        (0, true) => Err("everything is imported, but access rules are not enforced".to_owned()),
        (rejected, _) => Err(format!("{} were rejected", counted(rejected, "records"))),
    }
}

fn tell_rejection(progress: &mut Progress, Rejection { line, dn, reason }: &Rejection) {
    progress.clear();
    match &**dn {
        "" => eprintln!("line {line}: {reason}"),
        dn => eprintln!("line {line}: {dn}: {reason}"),
    }
}

/// Whether a folder holds a directory: what making one would find at the end is told at the beginning.
fn has_directory(folder: &Path) -> bool {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| file.file_name().into_string().ok()).any(|name| name.starts_with("snapshot-"))
}

type Part<'a> = &'a dyn Fn() -> Option<f64>;

fn offline<R: BufRead>(
    args: &Args,
    folder: &Path,
    mut reader: LdifReader<R>,
    progress: &mut Progress,
    part: Part<'_>,
) -> Result<ImportReport, String> {
    if has_directory(folder) {
        return Err(format!(
            "there is a directory in {} already; to add to it, send the file to its server (--url)",
            folder.display()
        ));
    }
    let first = reader.next();
    let suffixes = match (&args.suffixes[..], &first) {
        ([], Some(Ok(record))) => vec![record.dn.clone()],
        (suffixes, _) => suffixes.to_vec(),
    };
    let mut options = ImportOptions::new(suffixes);
    options.drops_unknown = args.drop_unknown;
    options.indexes = args.indexes.clone();
    for path in &args.schema {
        options.schema.push(schema_file(path)?);
    }
    let progress = std::cell::RefCell::new(progress);
    let mut tell = |at: ImportProgress| {
        let mut progress = progress.borrow_mut();
        match at {
            ImportProgress::Reading { records, .. } => progress.tell(records, part()),
            ImportProgress::Settling { entries } => {
                progress.say(&format!("names of {}", counted(entries, "entries")))
            }
            ImportProgress::Indexing { entries } => {
                progress.say(&format!("indexes of {}", counted(entries, "entries")))
            }
            _ => {}
        }
    };
    let mut reject = |rejection: Rejection| tell_rejection(&mut progress.borrow_mut(), &rejection);
    let records = first.into_iter().chain(reader);
    let imported = import(records, &options, &mut tell, &mut reject);
    let Imported { root, report } = imported.map_err(|error| format!("{}: {error}", args.file.display()))?;
    progress.borrow_mut().say("writing the snapshot");
    let made = Service::create_from(&FileSystem::new(), folder, &options.service, &root);
    made.map_err(|error| error.to_string())?;
    Ok(report)
}

/// Reads a file of definitions.
pub(super) fn schema_file(path: &Path) -> Result<SchemaFile, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    SchemaFile::from_bytes(&bytes).map_err(|error| format!("{}: {error}", path.display()))
}

fn online<R: BufRead>(
    args: &Args,
    reader: LdifReader<R>,
    progress: &mut Progress,
    part: Part<'_>,
) -> Result<ImportReport, String> {
    let client = args.remote.connect()?;
    let schema = Schema::standard();
    let mut load = Load {
        client,
        under_way: VecDeque::with_capacity(WINDOW),
        report: ImportReport::default(),
        progress,
        again: Vec::new(),
    };
    for record in reader {
        load.report.read += 1;
        match record {
            Ok(mut record) => {
                if let LdifBody::Entry(attributes) | LdifBody::Add(attributes) = &mut record.body {
                    for_client(attributes, (record.line, &record.dn), &schema, &mut load.report);
                }
                load.send(record)?;
            }
            Err(error @ LdifError { kind: LdifErrorKind::Io(_), .. }) => {
                return Err(format!("{}: {error}", args.file.display()));
            }
            Err(error) => load.reject(error.line, String::new(), error.kind.to_string()),
        }
        load.progress.tell(load.report.imported, part());
    }
    load.drain(0)?;
    load.send_again()?;
    load.client.close();
    Ok(load.report)
}

/// Records on their way to a server.
struct Load<'a> {
    client: Client,
    /// Sent, and not answered yet.
    under_way: VecDeque<(MessageId, LdifRecord)>,
    report: ImportReport,
    progress: &'a mut Progress,
    /// Entries whose parent was not there.
    again: Vec<LdifRecord>,
}

impl Load<'_> {
    fn send(&mut self, record: LdifRecord) -> Result<(), String> {
        let id = self.client.queue_record(&record);
        self.under_way.push_back((id, record));
        if self.under_way.len() >= WINDOW { self.drain(WINDOW / 2) } else { Ok(()) }
    }

    /// Waits until so many are under way at most.
    fn drain(&mut self, most: usize) -> Result<(), String> {
        self.client.flush().map_err(|error| error.to_string())?;
        while self.under_way.len() > most {
            let (id, result) = self.client.next_result().map_err(|error| error.to_string())?;
            let place = self.under_way.iter().position(|(sent, _)| *sent == id);
            let Some((_, record)) = place.and_then(|place| self.under_way.remove(place)) else { continue };
            self.ended(record, &result);
        }
        Ok(())
    }

    fn ended(&mut self, record: LdifRecord, result: &LdapResult<'_>) {
        let is_add = matches!(record.body, LdifBody::Entry(_) | LdifBody::Add(_));
        match result.code {
            ResultCode::Success => self.report.imported += 1,
            ResultCode::NoSuchObject if is_add && self.again.len() < RETRIES_MAX => self.again.push(record),
            _ => self.reject(record.line, record.dn, said(result)),
        }
    }

    fn reject(&mut self, line: u64, dn: String, reason: String) {
        self.report.rejected += 1;
        tell_rejection(self.progress, &Rejection { line, dn, reason });
    }

    /// Sends entries whose parent was not there, as long as it helps.
    fn send_again(&mut self) -> Result<(), String> {
        loop {
            let before = self.report.imported;
            let again = std::mem::take(&mut self.again);
            if again.is_empty() {
                return Ok(());
            }
            for record in again {
                self.send(record)?;
            }
            self.drain(0)?;
            if self.report.imported == before {
                let mut orphans = std::mem::take(&mut self.again);
                orphans.sort_by_key(|record| record.line);
                for record in orphans {
                    self.reject(record.line, record.dn, "the entry above it is missing".to_owned());
                }
                return Ok(());
            }
        }
    }
}

/// The file, and how far it was read.
struct Input {
    stream: Counted,
    position: Rc<Cell<u64>>,
    bytes: Option<u64>,
}

impl Input {
    fn open(path: &Path) -> Result<Self, String> {
        let position = Rc::new(Cell::new(0));
        let (stream, bytes): (Box<dyn Read>, _) = if path == Path::new("-") {
            (Box::new(std::io::stdin()), None)
        } else {
            let file = File::open(path).map_err(|error| format!("{}: {error}", path.display()))?;
            let bytes =
                file.metadata().ok().filter(std::fs::Metadata::is_file).map(|metadata| metadata.len());
            (Box::new(file), bytes)
        };
        let stream = Counted { stream, position: Rc::clone(&position) };
        Ok(Self { stream, position, bytes })
    }
}

/// Counts what is read.
struct Counted {
    stream: Box<dyn Read>,
    position: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.stream.read(buffer)?;
        self.position.set(self.position.get() + read as u64);
        Ok(read)
    }
}
