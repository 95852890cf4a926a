//! `cowslip ldap index`: the indexes of a server, which are entries below `cn=index,cn=config`.

use super::client::{Client, ClientError, refuse};
use super::import::forms;
use super::remote::Remote;
use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{
    ChangeOperation, Scope, SearchParameters, write_add, write_delete, write_modify,
};
use cowslip_ldap::result::ResultCode;
use cowslip_ldap_server::config::INDEX_DN;
use cowslip_ldap_server::meta::IndexForm;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Ask for an index; it is built aside and used as soon as it is there
    Add {
        #[command(flatten)]
        remote: Remote,
        /// The attribute
        #[arg(value_name = "ATTRIBUTE")]
        attribute: String,
        /// What it is made for: eq, sub, ord, approx, with commas between
        #[arg(value_name = "FORMS")]
        forms: String,
    },
    /// Remove an index
    Remove {
        #[command(flatten)]
        remote: Remote,
        /// The attribute
        #[arg(value_name = "ATTRIBUTE")]
        attribute: String,
        /// The forms to remove; by default all
        #[arg(value_name = "FORMS")]
        forms: Option<String>,
    },
    /// List what is asked for
    Status {
        #[command(flatten)]
        remote: Remote,
    },
}

/// Does it.
pub(crate) fn run(args: &Args) -> Result<(), String> {
    let (remote, done) = match &args.action {
        Action::Add { remote, attribute, forms: list } => {
            let forms = forms(list)?;
            let mut client = remote.connect()?;
            let done = add(&mut client, attribute, &forms);
            (client, done)
        }
        Action::Remove { remote, attribute, forms: list } => {
            let forms = list.as_deref().map(forms).transpose()?;
            let mut client = remote.connect()?;
            let done = remove(&mut client, attribute, forms.as_deref());
            (client, done)
        }
        Action::Status { remote } => {
            let mut client = remote.connect()?;
            let done = status(&mut client);
            (client, done)
        }
    };
    done.map_err(|error| error.to_string())?;
    remote.close();
    Ok(())
}

fn dn_of(attribute: &str) -> String {
    format!("cn={attribute},{INDEX_DN}")
}

fn names(forms: &[IndexForm]) -> Vec<&'static str> {
    forms.iter().map(|form| form.name()).collect()
}

fn add(client: &mut Client, attribute: &str, forms: &[IndexForm]) -> Result<(), ClientError> {
    let (dn, forms) = (dn_of(attribute), names(forms));
    let what = format!("the index of {attribute}");
    let change = [(ChangeOperation::Add, "indexForm", &forms[..])];
    let changed = client.call(|out, id| write_modify(out, id, dn.as_bytes(), change, &[]))?;
    if changed.code != ResultCode::NoSuchObject {
        return refuse(what, changed);
    }
    let attributes = [("objectClass", &["cowslipIndex"][..]), ("indexForm", &forms[..])];
    refuse(what, client.call(|out, id| write_add(out, id, dn.as_bytes(), attributes, &[]))?)
}

fn remove(client: &mut Client, attribute: &str, forms: Option<&[IndexForm]>) -> Result<(), ClientError> {
    let dn = dn_of(attribute);
    let what = format!("the index of {attribute}");
    if let Some(forms) = forms {
        let forms = names(forms);
        let change = [(ChangeOperation::Delete, "indexForm", &forms[..])];
        let changed = client.call(|out, id| write_modify(out, id, dn.as_bytes(), change, &[]))?;
        // The last form goes with its entry.
        if changed.code != ResultCode::ObjectClassViolation {
            return refuse(what, changed);
        }
    }
    refuse(what, client.call(|out, id| write_delete(out, id, dn.as_bytes(), &[]))?)
}

fn status(client: &mut Client) -> Result<(), ClientError> {
    let attributes = &["cn", "indexForm"];
    let parameters =
        SearchParameters { base: INDEX_DN, scope: Scope::One, attributes, ..SearchParameters::default() };
    let mut lines = Vec::new();
    let result =
        client.search(&parameters, &Filter::Present("objectClass".to_owned()), |_, attributes| {
            let values = |name: &str| -> Vec<String> {
                let named =
                    attributes.iter().filter(|attribute| attribute.description.eq_ignore_ascii_case(name));
                named
                    .flat_map(|attribute| attribute.values.iter())
                    .map(|value| String::from_utf8_lossy(value).into_owned())
                    .collect()
            };
            lines.push(format!("{}: {}", values("cn").join(", "), values("indexForm").join(", ")));
        })?;
    refuse(INDEX_DN.to_owned(), result)?;
    lines.sort();
    lines.iter().for_each(|line| println!("{line}"));
    Ok(())
}
