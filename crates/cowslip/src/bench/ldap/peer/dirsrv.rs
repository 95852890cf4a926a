//! 389 Directory Server with its bdb backend, without systemd and without its installer: the server's own template of a
//! configuration is filled in, the entries come by `ldif2db`, and `ns-slapd` runs in the foreground.
//!
//! Two things are set so that all servers do the same work: passwords stay in the scheme in which they were loaded
//! (otherwise the first bind of an entry hashes its password anew and writes it), and the access log is as asked for.

use super::{Form, Indexes, Place, run};
use crate::bench::error::BenchError;
use crate::bench::ldap::population::{PASSWORD, SUFFIX};
use crate::bench::process::installed;
use std::fs;
use std::path::Path;
use std::process::Command;

/// The user who may do everything.
pub(super) const ROOT_DN: &str = "cn=Directory Manager";

const TEMPLATE: &str = "/usr/share/dirsrv/data/template-dse.ldif";
const CONFIGURATION: &str = "/etc/dirsrv";
/// Folders of the server below its own.
const FOLDERS: [&str; 10] =
    ["bak", "config", "config/schema", "db", "db/userRoot", "inst", "ldif", "lock", "logs", "run"];
/// What of the indexes the server cannot do without.
const SYSTEM_INDEXES: [&str; 9] = [
    "aci",
    "ancestorid",
    "entryrdn",
    "entryusn",
    "nsTombstoneCSN",
    "nsUniqueId",
    "numsubordinates",
    "parentid",
    "targetuniqueid",
];

/// What it says of its version.
pub(super) fn version() -> Result<String, BenchError> {
    let named = |source| BenchError::Program { name: "ns-slapd".to_owned(), source };
    let output = Command::new(installed("ns-slapd")).arg("-v").output().map_err(named)?;
    let said = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&said).into_owned();
    let line = text.lines().find(|line| line.contains("389-Directory")).unwrap_or_default().trim();
    Ok(format!("389ds: {line}, bdb"))
}

/// Fills the folder; gives the command that serves it.
pub(super) fn prepare(place: &Place) -> Result<Command, BenchError> {
    for folder in FOLDERS.iter().chain(&["tmp"]) {
        fs::create_dir_all(place.path(folder))?;
    }
    let configuration = Path::new(CONFIGURATION);
    copy_files(&configuration.join("schema"), &place.path("config/schema"))?;
    copy_files(&configuration.join("config"), &place.path("config"))?;
    let template = fs::read_to_string(TEMPLATE).map_err(|source| missing(TEMPLATE, source))?;
    fs::write(place.path("config/dse.ldif"), configured(place, &template))?;
    let population = place.write_population()?;
    let program = installed("ns-slapd");
    let mut add = Command::new(&program);
    add.arg("ldif2db").arg("-D").arg(place.path("config")).args(["-n", "userRoot", "-i"]).arg(population);
    run(&mut add, "ns-slapd ldif2db")?;
    let mut serve = Command::new(program);
    serve.arg("-D").arg(place.path("config")).arg("-i").arg(place.path("run/pid")).args(["-d", "0"]);
    Ok(serve)
}

fn missing(what: &str, source: std::io::Error) -> BenchError {
    BenchError::Program { name: format!("389-ds ({what})"), source }
}

fn copy_files(from: &Path, to: &Path) -> Result<(), BenchError> {
    let files = fs::read_dir(from).map_err(|source| missing(&from.display().to_string(), source))?;
    for file in files {
        let file = file?;
        fs::copy(file.path(), to.join(file.file_name()))?;
    }
    Ok(())
}

/// The configuration: the template's entries, changed where needed, and those of the database.
fn configured(place: &Place, template: &str) -> String {
    let filled = filled(place, template);
    let mut indexes = Vec::new();
    let mut entries: Vec<String> = Vec::new();
    for entry in filled.split("\n\n").map(str::trim).filter(|entry| !entry.is_empty()) {
        match entry.strip_prefix("dn: cn=").and_then(|rest| rest.split_once(",cn=default indexes")) {
            Some((attribute, _)) if !is_wanted(attribute, place.setup.indexes) => {}
            Some(_) => {
                indexes.push(entry.replacen("cn=default indexes, cn=config,", "cn=index,cn=userRoot,", 1));
                entries.push(entry.to_owned());
            }
            None if entry.starts_with("dn: cn=config\n") => entries.push(main_entry(place, entry)),
            None if entry.starts_with("dn: cn=config,cn=ldbm database,") => {
                let durable = if place.setup.is_durable { "on" } else { "off" };
                entries.push(format!("{entry}\nnsslapd-db-durable-transaction: {durable}"));
            }
            None => entries.push(entry.to_owned()),
        }
    }
    let escaped = SUFFIX.replace('=', "\\3D").replace(',', "\\2C");
    entries.push(format!(
        "dn: cn={escaped},cn=mapping tree,cn=config\nobjectClass: top\nobjectClass: extensibleObject\n\
         objectClass: nsMappingTree\ncn: {SUFFIX}\nnsslapd-state: backend\nnsslapd-backend: userRoot"
    ));
    entries.push(format!(
        "dn: cn=userRoot,cn=ldbm database,cn=plugins,cn=config\nobjectClass: top\n\
         objectClass: extensibleObject\nobjectClass: nsBackendInstance\ncn: userRoot\n\
         nsslapd-suffix: {SUFFIX}\nnsslapd-directory: {}",
        place.text("db/userRoot")
    ));
    entries.push(
        "dn: cn=index,cn=userRoot,cn=ldbm database,cn=plugins,cn=config\nobjectClass: top\n\
         objectClass: extensibleObject\ncn: index"
            .to_owned(),
    );
    entries.extend(indexes);
    entries.join("\n\n") + "\n"
}

/// Whether the database gets an index of an attribute.
fn is_wanted(attribute: &str, indexes: Indexes) -> bool {
    let is = |name: &&str| name.eq_ignore_ascii_case(attribute);
    match indexes {
        Indexes::Dirsrv => true,
        Indexes::Common => {
            SYSTEM_INDEXES.iter().any(is)
                || indexes.list().iter().any(|(name, forms)| is(name) && forms.contains(&Form::Equality))
        }
    }
}

fn main_entry(place: &Place, entry: &str) -> String {
    let kept = entry.lines().filter(|line| !line.starts_with("nsslapd-ldapifilepath"));
    let access_log = if place.setup.access_log { "on" } else { "off" };
    let more = [
        "nsslapd-listenhost: 127.0.0.1".to_owned(),
        format!("nsslapd-accesslog-logging-enabled: {access_log}"),
        "nsslapd-enable-upgrade-hash: off".to_owned(),
        "nsslapd-sizelimit: -1".to_owned(),
    ];
    kept.map(str::to_owned).chain(more).collect::<Vec<_>>().join("\n")
}

/// The template with its blanks, `%name%`, filled in.
fn filled(place: &Place, template: &str) -> String {
    let folder = |name: &str| place.text(name);
    let values = [
        ("bak_dir", folder("bak")),
        ("cert_dir", folder("config")),
        ("config_dir", folder("config")),
        ("db_dir", folder("db")),
        ("db_home_dir", folder("db")),
        ("db_lib", "bdb".to_owned()),
        ("ds_passwd", format!("{{CLEAR}}{PASSWORD}")),
        ("ds_port", place.port.to_string()),
        ("ds_suffix", SUFFIX.to_owned()),
        ("ds_user", user()),
        ("fqdn", "localhost.localdomain".to_owned()),
        ("inst_dir", folder("inst")),
        ("ldapi", String::new()),
        ("ldapi_autobind", "off".to_owned()),
        ("ldapi_enabled", "off".to_owned()),
        ("ldif_dir", folder("ldif")),
        ("lock_dir", folder("lock")),
        ("log_dir", folder("logs")),
        ("rootdn", ROOT_DN.to_owned()),
        ("run_dir", folder("run")),
        ("schema_dir", folder("config/schema")),
        ("tmp_dir", folder("tmp")),
    ];
    values.iter().fold(template.to_owned(), |text, (name, value)| text.replace(&format!("%{name}%"), value))
}

/// The name of the user who runs this, as whom the server runs too.
fn user() -> String {
    let output = Command::new("id").arg("-un").output();
    output.map_or_else(|_| "root".to_owned(), |o| String::from_utf8_lossy(&o.stdout).trim().to_owned())
}
