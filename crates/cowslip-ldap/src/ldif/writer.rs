//! Writes records: folded at [`LDIF_COLUMNS`], base64 wherever plain text would not come back as it was.

use std::io::{self, Write};

use super::{LDIF_COLUMNS, LdifBody, LdifControl, LdifRecord, base64};
use crate::entry::{Attribute, Entry};

/// Writes LDIF.
///
/// ```
/// use cowslip_ldap::{entry::Entry, ldif::LdifWriter};
/// let mut entry = Entry::new("cn=amy,dc=example");
/// entry.push("cn", b"amy");
/// entry.push("description", b" leading blank");
/// let mut writer = LdifWriter::new(Vec::new());
/// writer.version()?;
/// writer.entry(&entry)?;
/// let expected = "version: 1\n\ndn: cn=amy,dc=example\ncn: amy\ndescription:: IGxlYWRpbmcgYmxhbms=\n\n";
/// assert_eq!(writer.into_inner(), expected.as_bytes());
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct LdifWriter<W> {
    out: W,
    line: Vec<u8>,
}

impl<W: Write> LdifWriter<W> {
    /// A writer on `out`, which should be buffered.
    pub fn new(out: W) -> Self {
        Self { out, line: Vec::new() }
    }

    /// What is written to.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Writes `version: 1`, which stands before the first record.
    ///
    /// # Errors
    /// Those of the output, as with all that follow.
    pub fn version(&mut self) -> io::Result<()> {
        self.out.write_all(b"version: 1\n\n")
    }

    /// Writes comment lines.
    ///
    /// # Errors
    /// Those of the output.
    pub fn comment(&mut self, text: &str) -> io::Result<()> {
        for line in text.split(['\n', '\r']) {
            self.line.clear();
            self.line.extend_from_slice(b"# ");
            self.line.extend_from_slice(line.as_bytes());
            self.out.write_all(&self.line)?;
            self.out.write_all(b"\n")?;
        }
        Ok(())
    }

    /// Writes a name: the beginning of a record.
    ///
    /// # Errors
    /// Those of the output.
    pub fn dn(&mut self, dn: &str) -> io::Result<()> {
        self.value("dn", dn.as_bytes())
    }

    /// Writes one value of an attribute.
    ///
    /// # Errors
    /// Those of the output.
    pub fn value(&mut self, description: &str, value: &[u8]) -> io::Result<()> {
        self.line.clear();
        self.line.extend_from_slice(description.as_bytes());
        push_value(&mut self.line, value);
        self.fold()
    }

    /// Writes the empty line that ends a record.
    ///
    /// # Errors
    /// Those of the output.
    pub fn end(&mut self) -> io::Result<()> {
        self.out.write_all(b"\n")
    }

    /// Writes an entry as a content record.
    ///
    /// # Errors
    /// Those of the output.
    pub fn entry(&mut self, entry: &Entry) -> io::Result<()> {
        self.dn(&entry.dn)?;
        self.attributes(&entry.attributes)?;
        self.end()
    }

    /// Writes a record of any kind. A content record cannot have controls; such are left out.
    ///
    /// # Errors
    /// Those of the output.
    pub fn record(&mut self, record: &LdifRecord) -> io::Result<()> {
        self.dn(&record.dn)?;
        let change_type = match &record.body {
            LdifBody::Entry(attributes) => {
                self.attributes(attributes)?;
                return self.end();
            }
            LdifBody::Add(_) => "add",
            LdifBody::Delete => "delete",
            LdifBody::Modify(_) => "modify",
            LdifBody::Rename { .. } => "modrdn",
        };
        record.controls.iter().try_for_each(|control| self.control(control))?;
        self.value("changetype", change_type.as_bytes())?;
        match &record.body {
            LdifBody::Entry(attributes) | LdifBody::Add(attributes) => self.attributes(attributes)?,
            LdifBody::Delete => {}
            LdifBody::Modify(modifications) => {
                for modification in modifications {
                    let attribute = &modification.attribute;
                    self.value(modification.operation.name(), attribute.description.as_bytes())?;
                    self.attributes(std::slice::from_ref(attribute))?;
                    self.out.write_all(b"-\n")?;
                }
            }
            LdifBody::Rename { new_rdn, deletes_old_rdn, new_superior } => {
                self.value("newrdn", new_rdn.as_bytes())?;
                self.value("deleteoldrdn", if *deletes_old_rdn { b"1" } else { b"0" })?;
                if let Some(superior) = new_superior {
                    self.value("newsuperior", superior.as_bytes())?;
                }
            }
        }
        self.end()
    }

    fn attributes(&mut self, attributes: &[Attribute]) -> io::Result<()> {
        for attribute in attributes {
            for value in &attribute.values {
                self.value(&attribute.description, value)?;
            }
        }
        Ok(())
    }

    fn control(&mut self, control: &LdifControl) -> io::Result<()> {
        self.line.clear();
        self.line.extend_from_slice(b"control: ");
        self.line.extend_from_slice(control.oid.as_bytes());
        self.line.extend_from_slice(if control.is_critical { b" true" } else { b" false" });
        if let Some(value) = &control.value {
            push_value(&mut self.line, value);
        }
        self.fold()
    }

    /// Writes the line, which is ASCII, in pieces.
    fn fold(&mut self) -> io::Result<()> {
        let (first, mut rest) = self.line.split_at(self.line.len().min(LDIF_COLUMNS));
        self.out.write_all(first)?;
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.len().min(LDIF_COLUMNS - 1));
            self.out.write_all(b"\n ")?;
            self.out.write_all(piece)?;
            rest = after;
        }
        self.out.write_all(b"\n")
    }
}

/// Appends the colon, or colons, and the value.
fn push_value(line: &mut Vec<u8>, value: &[u8]) {
    if is_plain(value) {
        line.extend_from_slice(if value.is_empty() { b":" } else { b": " });
        line.extend_from_slice(value);
    } else {
        line.extend_from_slice(b":: ");
        base64::encode(value, line);
    }
}

/// Whether a value comes back as it is if it is written as it is (RFC 2849, `SAFE-STRING`, and no blank at the end).
fn is_plain(value: &[u8]) -> bool {
    let edges = !matches!(value, [b' ' | b':' | b'<', ..] | [.., b' ']);
    edges && value.iter().all(|byte| byte.is_ascii() && !matches!(byte, 0 | b'\r' | b'\n'))
}
