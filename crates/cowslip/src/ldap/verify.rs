//! `cowslip ldap verify`: a look through a directory's folder.

use super::progress::{counted, grouped};
use cowslip_engine::storage::{FileSystem, Storage};
use cowslip_ldap_server::journal::{FolderReport, salvage};
use cowslip_ldap_server::offline;
use std::path::PathBuf;
use std::sync::Arc;

/// How many problems are listed; the others are counted only.
const PROBLEMS_LISTED_MAX: u64 = 1_000;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory's folder, which no server has open
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// Make a damaged folder usable: everything up to the damage stays, the rest is kept aside in files named aside-…
    #[arg(long)]
    salvage: bool,
}

/// Looks through a folder.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    if args.salvage {
        let storage: Arc<dyn Storage> = Arc::new(FileSystem::new());
        let salvaged = salvage(&storage, &args.data).map_err(|error| error.to_string())?;
        println!("{salvaged}");
    }
    let mut told = 0;
    let verified = offline::verify(&FileSystem::new(), &args.data, &mut |_| {}, &mut |problem| {
        told += 1;
        if told <= PROBLEMS_LISTED_MAX {
            println!("{problem}");
        }
    });
    let verified = verified.map_err(|error| error.to_string())?;
    print_files(&verified.folder);
    if let Some(entries) = verified.entries {
        println!("{}, {}", counted(entries, "entries"), counted(verified.problems, "problems"));
    }
    match (&verified.folder.damage, verified.problems) {
        (Some(damage), _) => Err(format!(
            "{} is damaged at offset {}: {}; {} later commits are intact; --salvage gives them up",
            damage.path.display(),
            damage.offset,
            damage.fault,
            damage.intact_commits
        )),
        (None, 0) => Ok(()),
        (None, problems) => Err(counted(problems, "problems")),
    }
}

fn print_files(report: &FolderReport) {
    println!("database {}, commit {}", report.database, grouped(report.commits));
    for snapshot in &report.snapshots {
        let path = snapshot.path.display();
        print!("{path}: {}, {}", counted(snapshot.bytes, "bytes"), counted(snapshot.records, "records"));
        match &snapshot.fault {
            None => println!(", whole"),
            Some((offset, fault)) => println!(", damaged at offset {offset}: {fault}"),
        }
    }
    for file in &report.files {
        let path = file.path.display();
        println!("{path}: {}, {}", counted(file.batches, "batches"), counted(file.payload_bytes, "bytes"));
    }
    if let Some((path, offset)) = &report.torn {
        println!("{}: what is behind offset {offset} never became durable", path.display());
    }
}
