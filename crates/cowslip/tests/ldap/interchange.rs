//! LDIF of slapd (`slapcat`) and of 389 Directory Server (`db2ldif`) comes here, and ours goes there (`slapadd`,
//! `ldif2db`): the same entries, the same `entryUUID`s, the same passwords.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use crate::peers::{Peer, Store};
use crate::support::{SUFFIX, Server, binary, run, scratch};

/// A user and the user's password.
const AMY: (&str, &str) = ("uid=amy,ou=People,dc=example,dc=com", "amy's password");

/// What both servers know. The password is salted SHA-1, which all of them check.
const POPULATION: &str = "dn: dc=example,dc=com
objectClass: domain
dc: example

dn: ou=People,dc=example,dc=com
objectClass: organizationalUnit
ou: People
description: first line
description:: wqDDpMO2w7w=

dn: ou=Groups,dc=example,dc=com
objectClass: organizationalUnit
ou: Groups

dn: uid=amy,ou=People,dc=example,dc=com
objectClass: inetOrgPerson
objectClass: posixAccount
uid: amy
cn: Amy Doe
cn: Amelia Doe
sn: Doe
mail: amy@example.com
telephoneNumber: +1 555 0100
uidNumber: 1000
gidNumber: 100
homeDirectory: /people/amy
jpegPhoto:: /9j/4AAQSkZJRgAB
userPassword: PASSWORD

dn: uid=bob,ou=People,dc=example,dc=com
objectClass: inetOrgPerson
uid: bob
cn:: QsO2Yg==
sn: Smith\\Jones
manager: uid=amy,ou=People,dc=example,dc=com
description: a long text that LDIF folds: 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789

dn: cn=Comma\\, Plus\\+,ou=People,dc=example,dc=com
objectClass: person
cn: Comma, Plus+
sn: Punctuation

dn: cn=staff,ou=Groups,dc=example,dc=com
objectClass: groupOfNames
cn: staff
member: uid=amy,ou=People,dc=example,dc=com
member: uid=bob,ou=People,dc=example,dc=com
";

/// Amy's password, salted and hashed: `{SSHA}`, base 64 of SHA-1 of password and salt, and the salt.
fn hashed() -> String {
    use base64ct::{Base64, Encoding};
    use sha1::{Digest, Sha1};
    let salt = b"saltsalt";
    let digest = Sha1::new().chain_update(AMY.1).chain_update(salt).finalize();
    format!("{{SSHA}}{}", Base64::encode_string(&[&digest[..], salt].concat()))
}

fn population() -> String {
    POPULATION.replace("PASSWORD", &hashed()).replace("\\\\", "\\")
}

/// A record's lines without their order: attribute in lower case, value as LDIF has it.
type Entries = BTreeMap<String, BTreeSet<String>>;

/// All entries below the suffix. Which classes above its own an entry lists differs, so `top` and the like are left out.
fn entries(server: &Server, attributes: &[&str]) -> Entries {
    let ldif = server.search(&[&["-b", SUFFIX, "(objectClass=*)"], attributes].concat());
    let mut entries = Entries::new();
    for record in ldif.split("\n\n") {
        let mut name = None;
        let mut lines = BTreeSet::new();
        for line in record.lines().filter(|line| !line.is_empty()) {
            let (attribute, value) = line.split_once(':').expect("attribute and value");
            let line = format!("{}:{value}", attribute.to_ascii_lowercase());
            let inherited = ["top", "person", "organizationalPerson"]
                .iter()
                .any(|class| line == format!("objectclass: {class}"));
            if attribute == "dn" {
                name = Some(value.trim().to_ascii_lowercase().replace("\\2c", "\\,").replace("\\2b", "\\+"));
            } else if !inherited {
                lines.insert(line);
            }
        }
        if let Some(name) = name {
            assert!(entries.insert(name, lines).is_none(), "twice: {record}");
        }
    }
    entries
}

/// The same entries with the same user attributes and UUIDs, and Amy can bind.
fn assert_same(one: &Server, other: &Server) {
    let [left, right] = [one, other].map(|server| entries(server, &["*"]));
    assert!(left.len() > 6, "{left:?}");
    for (name, lines) in &left {
        assert_eq!(Some(lines), right.get(name), "{name}");
    }
    assert_eq!(left.len(), right.len());
    let [left, right] = [one, other].map(|server| entries(server, &["entryUUID"]));
    assert!(left.values().all(|lines| lines.len() == 1), "{left:?}");
    assert_eq!(left, right);
    for server in [one, other] {
        let bind = |password| run(&mut server.tool_as("ldapwhoami", AMY.0, password, &[]), "").code;
        assert_eq!((bind(AMY.1), bind("another")), (Some(0), Some(49)));
    }
}

fn cowslip_ldap(arguments: &[&str], paths: &[&Path]) -> String {
    let mut command = Command::new(binary());
    run(command.arg("ldap").args(arguments).args(paths), "").success(&format!("cowslip ldap {arguments:?}"))
}

/// Fills the peer, takes its LDIF, and compares.
fn from_peer(peer: Peer) {
    let dir = scratch();
    let (original, exported) = (dir.path().join("population.ldif"), dir.path().join("exported.ldif"));
    let mut population = population();
    if peer == Peer::Dirsrv {
        // It makes UUIDs for what is added over the network, not for what is imported.
        let records = population.trim_end().split("\n\n").enumerate();
        let uuid = |n| format!("entryUUID: 597ae2f6-16a6-4027-98f4-d28b5365dc0{n}");
        population = records.map(|(n, record)| format!("{record}\n{}\n\n", uuid(n))).collect();
    }
    std::fs::write(&original, population).expect("written");
    let store = Store::import(peer, &original);
    store.export(&exported);
    let folder = dir.path().join("data");
    let told = cowslip_ldap(
        &["import", "--ignore-access-rules", "--data", &folder.display().to_string()],
        &[&exported],
    );
    assert!(told.contains("7 imported, 0 rejected"), "{told}");
    assert_same(&store.serve(), &Server::start(&folder));
}

/// Fills ours over the network, gives the peer its LDIF, and compares.
fn to_peer(peer: Peer, dialect: &str) {
    let dir = scratch();
    let (folder, exported) = (dir.path().join("data"), dir.path().join("exported.ldif"));
    let server = Server::start(&folder);
    server.add(&population());
    server.stop();
    let data = folder.display().to_string();
    cowslip_ldap(&["export", "--for", dialect, "--data", &data, "--output"], &[&exported]);
    let store = Store::import(peer, &exported);
    assert_same(&Server::start(&folder), &store.serve());
}

#[test]
fn slapcat_comes_here() {
    from_peer(Peer::Slapd);
}

#[test]
fn ours_goes_to_slapadd() {
    to_peer(Peer::Slapd, "openldap");
}

#[test]
fn db2ldif_comes_here() {
    from_peer(Peer::Dirsrv);
}

#[test]
fn ours_goes_to_ldif2db() {
    to_peer(Peer::Dirsrv, "389ds");
}
