//! `codegen`: Rust models of the tables of an OVSDB schema, for `cowslip-ovsdb-client`.
//!
//! Invariant: equal arguments and an equal schema give equal bytes, so that the output can be checked in and compared.

use clap::builder::NonEmptyStringValueParser;
use cowslip_ovsdb_codegen::{CodegenError, Generator};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// What `codegen` is told on the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The schema's file, such as /usr/share/ovn/ovn-nb.ovsschema
    schema: PathBuf,
    /// Only this table, or only these of its columns; may be given more than once
    #[arg(short, long = "table", value_name = "TABLE[:COLUMN,…]")]
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    tables: Vec<String>,
    /// A folder for one file per table and mod.rs; "-" prints it all as one file
    #[arg(short, long, value_name = "DIR", default_value = "-")]
    output: PathBuf,
}

/// Generates, and says what is wrong if it cannot.
pub(crate) fn main(args: Args) -> ExitCode {
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Nobody is there to hear that the message could not be printed.
            let _ = writeln!(io::stderr(), "cowslip codegen: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<(), CodegenError> {
    let generator = Generator::from_file(&args.schema)?;
    let models = args.tables.iter().fold(generator, Generator::select).generate()?;
    if args.output != Path::new("-") {
        return models.write_dir(&args.output);
    }
    match io::stdout().write_all(models.single_file().as_bytes()) {
        // Who reads only the beginning has what they want.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CodegenError::Write { path: "standard output".into(), source: error })
        }
        _ => Ok(()),
    }
}
