//! Entries as they travel: in answers to a search, in add requests, in LDIF.

/// An entry: its name and its attributes, as text and octets, with nothing looked up in a schema.
///
/// ```
/// use cowslip_ldap::entry::Entry;
/// let mut entry = Entry::new("uid=amy,dc=example,dc=com");
/// entry.push("cn", b"Amy Doe");
/// entry.push("CN", b"Amy");
/// assert_eq!(entry.attributes.len(), 1);
/// assert_eq!(entry.values("cn").len(), 2);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The distinguished name (RFC 4514 text).
    pub dn: String,
    /// The attributes, each description once.
    pub attributes: Vec<Attribute>,
}

/// An attribute: its description, and its values in the order in which they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribute {
    /// The attribute description as text: type and options.
    pub description: String,
    /// The values.
    pub values: Vec<Vec<u8>>,
}

impl Entry {
    /// An entry without attributes.
    #[must_use]
    pub fn new(dn: impl Into<String>) -> Self {
        Self { dn: dn.into(), attributes: Vec::new() }
    }

    /// Adds a value to the attribute with this description (case ignored), which comes into being if need be.
    pub fn push(&mut self, description: &str, value: impl Into<Vec<u8>>) {
        let named = |attribute: &Attribute| attribute.description.eq_ignore_ascii_case(description);
        match self.attributes.iter().rposition(named) {
            Some(position) => self.attributes[position].values.push(value.into()),
            None => {
                self.attributes
                    .push(Attribute { description: description.to_owned(), values: vec![value.into()] });
            }
        }
    }

    /// The attribute with exactly this description, case ignored.
    #[must_use]
    pub fn attribute(&self, description: &str) -> Option<&Attribute> {
        self.attributes.iter().find(|attribute| attribute.description.eq_ignore_ascii_case(description))
    }

    /// The values of the attribute with exactly this description, case ignored; none if it isn't there.
    #[must_use]
    pub fn values(&self, description: &str) -> &[Vec<u8>] {
        self.attribute(description).map_or(&[], |attribute| &attribute.values)
    }
}
