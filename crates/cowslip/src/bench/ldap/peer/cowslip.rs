//! This program's directory server, and the floor, each as a process of its own.

use super::{Place, Server, root_dn, run};
use crate::bench::error::BenchError;
use crate::bench::ldap::population::{PASSWORD, SUFFIX};
use crate::ldap::client::Client;
use cowslip_ldap::message::write_delete;
use cowslip_ldap::result::ResultCode;
use cowslip_ldap_server::config::{INDEX_DN, INDEXES_DEFAULT};
use std::process::Command;

/// This program: also after a build has put another in its place, so that one run measures one build.
const OWN_PROGRAM: &str = "/proc/self/exe";
/// How often the journal is synced when answers do not wait for it, in milliseconds.
const SYNC_INTERVAL_MS: &str = "1000";

/// Fills the folder; gives the command that serves it.
pub(super) fn prepare(place: &Place) -> Result<Command, BenchError> {
    let program = OWN_PROGRAM;
    let population = place.write_population()?;
    let mut import = Command::new(program);
    import.args(["ldap", "import"]).arg(population).arg("--data").arg(place.path("data"));
    import.args(["--suffix", SUFFIX]);
    for (attribute, forms) in place.setup.indexes.list() {
        let forms: Vec<&str> = forms.iter().map(|form| form.name()).collect();
        import.arg(format!("--index={attribute}={}", forms.join(",")));
    }
    run(&mut import, "cowslip ldap import")?;
    let mut serve = Command::new(program);
    serve.arg("ldap-server").arg("--data").arg(place.path("data")).args(["--suffix", SUFFIX]);
    serve.arg("--listen").arg(format!("ldap://127.0.0.1:{}", place.port));
    serve.args(["--root-dn", &root_dn(), "--root-password", PASSWORD]);
    if !place.setup.is_durable {
        serve.args(["--sync-interval-ms", SYNC_INTERVAL_MS]);
    }
    Ok(serve)
}

/// The command of the floor.
pub(super) fn prepare_floor(place: &Place) -> Result<Command, BenchError> {
    let mut serve = Command::new(OWN_PROGRAM);
    serve.args(["bench", "ldap", "floor-server", "--data"]).arg(place.path("data"));
    serve.arg("--listen").arg(format!("ldap://127.0.0.1:{}", place.port));
    Ok(serve)
}

/// Takes away the indexes that a new directory of ours has and the other servers have not.
pub(super) fn remove_other_indexes(server: &Server, place: &Place) -> Result<(), BenchError> {
    let refused = |what: &str| BenchError::Refused(what.to_owned());
    let mut client = Client::connect(&server.url).map_err(|e| refused(&e.to_string()))?;
    client.bind(&server.user, server.password.as_bytes()).map_err(|e| refused(&e.to_string()))?;
    let wanted = place.setup.indexes.list();
    for (attribute, _) in INDEXES_DEFAULT {
        if wanted.iter().any(|(name, _)| *name == attribute) {
            continue;
        }
        let name = format!("cn={attribute},{INDEX_DN}");
        let result = client.call(|out, id| write_delete(out, id, name.as_bytes(), &[]));
        let result = result.map_err(|e| refused(&e.to_string()))?;
        if result.code != ResultCode::Success {
            return Err(refused(&format!("delete {name}: {}", result.code)));
        }
    }
    client.close();
    Ok(())
}
