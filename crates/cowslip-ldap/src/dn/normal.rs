//! Normalised names: octets that are equal exactly if two names match (RFC 4517 section 4.2.15).
//!
//! An RDN becomes its assertions in ascending order of type number and normalised value. Each is written as the type's
//! number (doubled, plus one if another assertion of the RDN follows), the value's length, both as LEB128, and the
//! value. A name becomes its RDNs from the root to the entry. So an RDN's octets are never the beginning of another
//! RDN's, and a name lies within another exactly if its octets begin with the other's. Work is linear in the text's
//! length: names inside of names are followed for a bounded number of levels.

use super::parse::{AvaReader, Unescaped};
use super::{DN_RDNS_MAX, Dn, DnError, Rdn};
use crate::matching::NESTING_MAX;
use crate::schema::{AttributeTypeId, Schema};

impl Rdn {
    /// Appends the RDN's normalised form: equal octets for RDNs that match.
    ///
    /// ```
    /// use cowslip_ldap::{dn::Rdn, schema::Schema};
    /// let schema = Schema::standard();
    /// let (mut one, mut other) = (Vec::new(), Vec::new());
    /// Rdn::parse(b"CN=Amy  Doe+uid=AMY")?.normalize(&schema, &mut one)?;
    /// Rdn::parse(b"userid=amy+2.5.4.3=amy doe")?.normalize(&schema, &mut other)?;
    /// assert_eq!(one, other);
    /// # Ok::<(), cowslip_ldap::dn::DnError>(())
    /// ```
    ///
    /// # Errors
    /// A type is unknown, has no equality rule or stands there twice, or a value is not one of its type.
    pub fn normalize(&self, schema: &Schema, out: &mut Vec<u8>) -> Result<(), DnError> {
        let mut writer = RdnWriter::new(schema, 0);
        let (last, others) = self.avas().split_last().ok_or(DnError::NotOneRdn { count: 0 })?;
        for ava in others {
            writer.ava(ava.attribute(), ava.value(), false, out)?;
        }
        writer.ava(last.attribute(), last.value(), true, out)
    }
}

impl Dn {
    /// Appends the name's normalised form: equal octets for names that match, and a name below another begins with the
    /// other's octets.
    ///
    /// # Errors
    /// As with [`Rdn::normalize`].
    pub fn normalize(&self, schema: &Schema, out: &mut Vec<u8>) -> Result<(), DnError> {
        self.rdns().iter().rev().try_for_each(|rdn| rdn.normalize(schema, out))
    }

    /// The name in the form in which it is compared.
    ///
    /// # Errors
    /// As with [`Rdn::normalize`].
    pub fn normalized(&self, schema: &Schema) -> Result<NormalDn, DnError> {
        let mut normal = NormalDn::default();
        for rdn in self.rdns().iter().rev() {
            rdn.normalize(schema, &mut normal.bytes)?;
            normal.ends.push(normal.bytes.len());
        }
        Ok(normal)
    }
}

/// Appends the normalised form of a name's text, without a [`Dn`] in between. `nesting` counts the values that this name
/// is part of.
pub(crate) fn normalize_text(
    text: &[u8],
    schema: &Schema,
    nesting: usize,
    out: &mut Vec<u8>,
) -> Result<(), DnError> {
    if nesting > NESTING_MAX {
        return Err(DnError::TooDeep);
    }
    let start = out.len();
    let written = write_upwards(text, schema, nesting, out);
    if written.is_err() {
        out.truncate(start);
    }
    written
}

/// Writes RDN after RDN as they stand in the text, then turns their order round in place: all octets first, then those
/// of each RDN.
fn write_upwards(text: &[u8], schema: &Schema, nesting: usize, out: &mut Vec<u8>) -> Result<(), DnError> {
    let mut reader = AvaReader::new(text)?;
    let mut unescaped = Unescaped::default();
    let mut writer = RdnWriter::new(schema, nesting);
    let start = out.len();
    let mut ends = [0; DN_RDNS_MAX];
    let mut count = 0;
    while let Some(raw) = reader.next(&mut unescaped)? {
        writer.ava(raw.attribute, raw.value, raw.is_last, out)?;
        if raw.is_last {
            *ends.get_mut(count).ok_or(DnError::TooManyRdns)? = out.len();
            count += 1;
        }
    }
    if count > 1 {
        let end = out.len();
        out[start..].reverse();
        let mut piece_start = start;
        for piece_end in &ends[..count] {
            out[start + end - piece_end..start + end - piece_start].reverse();
            piece_start = *piece_end;
        }
    }
    Ok(())
}

/// Writes the assertions of one RDN after the other.
struct RdnWriter<'a> {
    schema: &'a Schema,
    nesting: usize,
    /// Assertions of an RDN that has several: type, and where the value lies in `values`.
    avas: Vec<(AttributeTypeId, usize, usize)>,
    values: Vec<u8>,
}

impl<'a> RdnWriter<'a> {
    fn new(schema: &'a Schema, nesting: usize) -> Self {
        Self { schema, nesting, avas: Vec::new(), values: Vec::new() }
    }

    /// Takes one assertion; with the last of an RDN, the RDN is appended to `out`.
    fn ava(
        &mut self,
        attribute: &str,
        value: &[u8],
        is_last: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), DnError> {
        let kind = self.schema.attribute(attribute);
        let kind = kind.ok_or_else(|| DnError::UnknownAttribute { attribute: attribute.to_owned() })?;
        let rule = self.schema.attribute_type(kind).equality;
        let rule = rule.ok_or_else(|| DnError::NoEqualityRule { attribute: attribute.to_owned() })?;
        let wrong = |reason| DnError::Value { attribute: attribute.to_owned(), reason };
        if is_last && self.avas.is_empty() {
            push_number(u64::from(kind.0) << 1, out);
            let length_at = out.len();
            out.push(0);
            rule.normalize_nested(value, self.schema, self.nesting + 1, out).map_err(wrong)?;
            set_length(length_at, out);
            return Ok(());
        }
        let start = self.values.len();
        rule.normalize_nested(value, self.schema, self.nesting + 1, &mut self.values).map_err(wrong)?;
        self.avas.push((kind, start, self.values.len()));
        if self.avas.len() > super::RDN_AVAS_MAX {
            return Err(DnError::TooManyAvas);
        }
        if is_last { self.several(out) } else { Ok(()) }
    }

    fn several(&mut self, out: &mut Vec<u8>) -> Result<(), DnError> {
        // An RDN has a type once (RFC 4512 section 2.3.1), so the types alone give the order.
        self.avas.sort_unstable_by_key(|(kind, ..)| *kind);
        if let Some(pair) = self.avas.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let attribute = self.schema.attribute_type(pair[0].0).name().to_owned();
            return Err(DnError::RepeatedAttribute { attribute });
        }
        for (position, (kind, start, end)) in self.avas.iter().enumerate() {
            let is_more = position + 1 < self.avas.len();
            push_number(u64::from(kind.0) << 1 | u64::from(is_more), out);
            push_number((end - start) as u64, out);
            out.extend_from_slice(&self.values[*start..*end]);
        }
        self.avas.clear();
        self.values.clear();
        Ok(())
    }
}

fn push_number(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Writes the length of what follows the one octet at `at`, which makes room if it doesn't suffice.
fn set_length(at: usize, out: &mut Vec<u8>) {
    let length = out.len() - at - 1;
    if length < 0x80 {
        out[at] = length as u8;
        return;
    }
    let mut octets = Vec::with_capacity(4);
    push_number(length as u64, &mut octets);
    out.splice(at..=at, octets);
}

/// A name in the form in which names are compared, under one version of the schema.
///
/// ```
/// use cowslip_ldap::{dn::Dn, schema::Schema};
/// let schema = Schema::standard();
/// let normal = |text: &str| Dn::parse(text.as_bytes()).and_then(|dn| dn.normalized(&schema));
/// let (amy, people) = (normal("UID=amy, ou=People, dc=x")?, normal("ou=people,DC=X")?);
/// assert!(amy.is_within(&people) && !people.is_within(&amy));
/// assert_eq!(amy.parent(), Some(people));
/// # Ok::<(), cowslip_ldap::dn::DnError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct NormalDn {
    bytes: Vec<u8>,
    /// Where each RDN ends, from the root to the entry.
    ends: Vec<usize>,
}

impl NormalDn {
    /// A name from its octets, as [`Dn::normalize`] appends them; none if they are no such form.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut normal = Self { bytes: bytes.to_vec(), ends: Vec::new() };
        let mut at = 0;
        while at < bytes.len() {
            loop {
                let (kind, next) = number_at(bytes, at)?;
                let (length, next) = number_at(bytes, next)?;
                at = next.checked_add(length).filter(|end| *end <= bytes.len())?;
                if kind & 1 == 0 {
                    break;
                }
            }
            normal.ends.push(at);
        }
        Some(normal)
    }

    /// The octets, as [`Dn::normalize`] appends them.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many RDNs the name has.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.ends.len()
    }

    /// The normalised RDNs, from the root to the entry.
    pub fn rdns(&self) -> impl DoubleEndedIterator<Item = &[u8]> + ExactSizeIterator {
        (0..self.ends.len()).map(|position| {
            let start = position.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.bytes[start..self.ends[position]]
        })
    }

    /// Whether this is the other name or lies below it.
    #[must_use]
    pub fn is_within(&self, other: &NormalDn) -> bool {
        self.bytes.starts_with(&other.bytes)
    }

    /// Whether this lies below the other name.
    #[must_use]
    pub fn is_below(&self, other: &NormalDn) -> bool {
        self.depth() > other.depth() && self.is_within(other)
    }

    /// The name above; none for the root DSE.
    #[must_use]
    pub fn parent(&self) -> Option<NormalDn> {
        let (_, above) = self.ends.split_last()?;
        let end = above.last().copied().unwrap_or(0);
        Some(NormalDn { bytes: self.bytes[..end].to_vec(), ends: above.to_vec() })
    }
}

/// A number in LEB128, and where it ends.
fn number_at(bytes: &[u8], mut at: usize) -> Option<(usize, usize)> {
    let mut number = 0;
    for shift in (0..usize::BITS - 7).step_by(7) {
        let byte = bytes.get(at)?;
        at += 1;
        number |= usize::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some((number, at));
        }
    }
    None
}
