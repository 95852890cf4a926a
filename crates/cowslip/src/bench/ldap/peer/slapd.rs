//! OpenLDAP's slapd with its mdb backend: a `slapd.conf`, the entries by `slapadd`, the server in the foreground.

use super::{Place, root_dn, run};
use crate::bench::error::BenchError;
use crate::bench::ldap::population::{PASSWORD, SUFFIX};
use crate::bench::process::installed;
use std::fmt::Write;
use std::fs;
use std::process::Command;

/// The most that the database may grow to, in bytes; it is reserved as address space only.
const DATABASE_BYTES_MAX: u64 = 64 << 30;

/// What it says of its version.
pub(super) fn version() -> Result<String, BenchError> {
    let named = |source| BenchError::Program { name: "slapd".to_owned(), source };
    let output = Command::new(installed("slapd")).arg("-VV").output().map_err(named)?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("slapd")).unwrap_or_default();
    let version = line
        .trim_start_matches("@(#)")
        .trim()
        .trim_start_matches("$OpenLDAP: ")
        .split(" (")
        .next()
        .unwrap_or_default();
    Ok(format!("slapd: {version}, back-mdb"))
}

/// Fills the folder; gives the command that serves it.
pub(super) fn prepare(place: &Place) -> Result<Command, BenchError> {
    fs::create_dir(place.path("db"))?;
    let configuration = place.path("slapd.conf");
    fs::write(&configuration, text(place))?;
    let population = place.write_population()?;
    let mut add = Command::new(installed("slapadd"));
    run(add.arg("-q").arg("-f").arg(&configuration).arg("-l").arg(population), "slapadd")?;
    let mut serve = Command::new(installed("slapd"));
    serve.arg("-f").arg(&configuration).arg("-h").arg(format!("ldap://127.0.0.1:{}", place.port));
    // With a debug level it stays in the foreground; what it logs goes to its standard error.
    serve.args(["-d", if place.setup.access_log { "stats" } else { "0" }]);
    Ok(serve)
}

fn text(place: &Place) -> String {
    let mut out = String::new();
    for schema in ["core", "cosine", "inetorgperson"] {
        let _ = writeln!(out, "include /etc/ldap/schema/{schema}.schema");
    }
    let _ = write!(
        out,
        "modulepath /usr/lib/ldap\nmoduleload back_mdb\npidfile {}\nloglevel {}\nsizelimit unlimited\n\
         database mdb\nsuffix {SUFFIX}\nrootdn {}\nrootpw {PASSWORD}\ndirectory {}\nmaxsize {DATABASE_BYTES_MAX}\n",
        place.text("pid"),
        if place.setup.access_log { "stats" } else { "none" },
        root_dn(),
        place.text("db"),
    );
    if !place.setup.is_durable {
        out.push_str("dbnosync\n");
    }
    for (attribute, forms) in place.setup.indexes.list() {
        let forms: Vec<&str> = forms.iter().map(|form| form.name()).collect();
        let _ = writeln!(out, "index {attribute} {}", forms.join(","));
    }
    out
}
