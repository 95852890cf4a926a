//! The sample directory of `cowslip serve`: a dozen people and their groups.

use crate::ldap_server::open_or_create;
use cowslip_ldap::ldif::{LdifBody, LdifReader};
use cowslip_ldap_server::host::{Job, Progress, Request, WriteJob};
use cowslip_ldap_server::operations::prepare::{self, Given, Origin};
use cowslip_ldap_server::operations::{Brought, Plan};
use cowslip_ldap_server::server::{Server, ServerOptions};
use cowslip_ldap_server::service::{Service, ServiceOptions};
use cowslip_net::address::Endpoint;
use std::path::Path;
use std::sync::mpsc;

const SAMPLE: &str = include_str!("directory-sample.ldif");

/// The name at the top of the sample.
pub(super) const SUFFIX: &str = "dc=example,dc=com";

/// Who may write, and with which password: it is a sample on the loopback address.
pub(super) const ROOT: (&str, &str) = ("cn=admin,dc=example,dc=com", "secret");

/// Serves the directory of a folder, with the sample in it at the first start. Gives the server, its port, and whether it
/// was made.
pub(super) async fn start(folder: &Path, port: u16) -> Result<(Server, u16, bool), String> {
    let options = ServiceOptions::new([SUFFIX]);
    let (service, is_new) = open_or_create(folder, &options)?;
    // A first start that was interrupted left a part of it.
    if !has_top(&service) {
        fill(&service)?;
    }
    let options = ServerOptions::new(ROOT.0, Some(ROOT.1.into()));
    let server = Server::start(service, options).map_err(|e| e.to_string())?;
    let listening = match server.listen(&format!("ldap://127.0.0.1:{port}")).await {
        Ok(endpoint) => endpoint,
        Err(error) => {
            tracing::warn!(%error, "taking another port");
            server.listen("ldap://127.0.0.1:0").await.map_err(|e| e.to_string())?
        }
    };
    match listening {
        Endpoint::Tcp { port, .. } => Ok((server, port, is_new)),
        other => Err(format!("{other} is no TCP port")),
    }
}

fn has_top(service: &Service) -> bool {
    let root = service.root();
    let path = prepare::name(SUFFIX.as_bytes()).and_then(|dn| prepare::path(&dn, root.meta()));
    path.is_ok_and(|path| cowslip_ldap_server::tree::Tree::resolve(&*root, &path).is_ok())
}

/// Adds the sample's entries, one after the other.
fn fill(service: &Service) -> Result<(), String> {
    for record in LdifReader::new(SAMPLE.as_bytes()) {
        let record = record.map_err(|e| format!("the sample directory: {e}"))?;
        let LdifBody::Entry(attributes) = record.body else { continue };
        let given: Vec<Given<'_>> = attributes
            .iter()
            .map(|attribute| Given {
                description: attribute.description.as_bytes(),
                values: attribute.values.iter().map(Vec::as_slice).collect(),
            })
            .collect();
        let root = service.root();
        let refused = |refusal| format!("the sample directory: {}: {refusal}", record.dn);
        let plan =
            prepare::add(record.dn.as_bytes(), &given, Brought::default(), Origin::Client, root.meta());
        let (answer, answered) = mpsc::channel();
        let job = WriteJob {
            request: Request::None,
            plan: Plan::Add(plan.map_err(refused)?),
            version: root.meta().version,
            who: ROOT.0.into(),
            progress: Progress::default(),
            is_durable: false,
            answer: Box::new(move |done| {
                // The other end waits below.
                let _ = answer.send(done);
            }),
        };
        service.submit(Job::Write(Box::new(job))).map_err(|e| e.to_string())?;
        answered.recv().map_err(|e| e.to_string())?.map_err(refused)?;
    }
    Ok(())
}
