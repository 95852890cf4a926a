//! The entries that every server starts with, as LDIF, and the ones that a load adds.

use super::pattern::NamePattern;
use base64ct::{Base64, Encoding};
use sha1::{Digest, Sha1};
use std::io::{self, Write};

/// The name at the top.
pub(crate) const SUFFIX: &str = "dc=example,dc=com";
/// The entry that all people are below.
pub(crate) const PEOPLE: &str = "ou=People,dc=example,dc=com";
/// Everybody's password, and that of the user who may do everything.
pub(crate) const PASSWORD: &str = "secret";
/// The object classes of a person.
const CLASSES: [&str; 4] = ["top", "person", "organizationalPerson", "inetOrgPerson"];

/// The names of the people.
pub(crate) fn people(count: u64) -> NamePattern {
    NamePattern::new("uid=user.", 1..=count, &format!(",{PEOPLE}"))
}

/// Attributes and values of a person.
#[derive(Debug, Default)]
pub(crate) struct Person {
    /// In the order of an LDIF file.
    pub(crate) attributes: Vec<(&'static str, Vec<String>)>,
}

impl Person {
    /// A person whose `uid` and mail address begin with `kind`.
    pub(crate) fn new(kind: &str, number: u64) -> Self {
        let one = |attribute: &'static str, value: String| (attribute, vec![value]);
        let attributes = vec![
            ("objectClass", CLASSES.map(str::to_owned).to_vec()),
            one("uid", format!("{kind}.{number}")),
            one("cn", format!("Given{} Family{number}", number % 997)),
            one("sn", format!("Family{number}")),
            one("givenName", format!("Given{}", number % 997)),
            one("mail", format!("{kind}.{number}@example.com")),
            one("telephoneNumber", format!("+1 555 {:07}", number % 10_000_000)),
            one("street", format!("{number} Main Street")),
            one("description", format!("The person of number {number}")),
            one("userPassword", hashed(PASSWORD, number)),
        ];
        Self { attributes }
    }
}

/// A password as `{SSHA}`, salted with a number.
fn hashed(password: &str, salt: u64) -> String {
    let salt = salt.to_be_bytes();
    let digest = Sha1::new().chain_update(password).chain_update(salt).finalize();
    let bytes: Vec<u8> = digest.iter().chain(&salt).copied().collect();
    format!("{{SSHA}}{}", Base64::encode_string(&bytes))
}

/// Writes the whole directory.
pub(crate) fn write_ldif(out: &mut impl Write, count: u64) -> io::Result<()> {
    write!(
        out,
        "dn: {SUFFIX}\nobjectClass: top\nobjectClass: dcObject\nobjectClass: organization\n\
         dc: example\no: Example\n\ndn: {PEOPLE}\nobjectClass: top\nobjectClass: organizationalUnit\nou: People\n\n"
    )?;
    for number in 1..=count {
        writeln!(out, "dn: uid=user.{number},{PEOPLE}")?;
        for (attribute, values) in &Person::new("user", number).attributes {
            values.iter().try_for_each(|value| writeln!(out, "{attribute}: {value}"))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use cowslip_ldap::ldif::LdifReader;

    #[test]
    fn the_population_is_ldif_with_passwords_that_match() {
        let mut text = Vec::new();
        write_ldif(&mut text, 3).unwrap();
        let records: Vec<_> = LdifReader::new(&text[..]).collect::<Result<_, _>>().unwrap();
        assert_eq!(records.len(), 5);
        let person = Person::new("user", 3);
        let (_, passwords) = person.attributes.last().unwrap();
        assert!(cowslip_ldap_server::password::is_match(passwords[0].as_bytes(), PASSWORD.as_bytes()));
    }
}
