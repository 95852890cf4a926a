//! `cowslip ldap explain`: what the planner does with a search.

use super::progress::counted;
use super::remote::load;
use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::Scope;
use cowslip_ldap_server::offline;
use std::path::PathBuf;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The directory's folder, which no server has open
    #[arg(long, value_name = "FOLDER")]
    data: PathBuf,
    /// The entry to search from; by default everything
    #[arg(long, short = 'b', value_name = "DN", default_value = "")]
    base: String,
    /// How far to go from there
    #[arg(long, short = 's', value_name = "SCOPE", value_enum, default_value = "sub")]
    scope: ScopeName,
    /// The filter, such as (&(objectClass=person)(sn=D*))
    #[arg(value_name = "FILTER")]
    filter: String,
}

/// A scope as it is written.
#[derive(Clone, Copy, clap::ValueEnum)]
enum ScopeName {
    /// The base alone
    Base,
    /// The entries right below it
    One,
    /// The base and all below it
    Sub,
    /// All below it
    Children,
}

/// Explains a search.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let filter = Filter::parse(&args.filter).map_err(|error| format!("{}: {error}", args.filter))?;
    let scope = match args.scope {
        ScopeName::Base => Scope::Base,
        ScopeName::One => Scope::One,
        ScopeName::Sub => Scope::Subtree,
        ScopeName::Children => Scope::Subordinates,
    };
    let root = load(&args.data)?;
    let explained = offline::explain(&root, &args.base, scope, &filter).map_err(|refusal| refusal.message)?;
    explained.plan.iter().for_each(|line| println!("{line}"));
    println!("looked at {}, {} match", counted(explained.looked_at, "entries"), explained.matched);
    Ok(())
}
