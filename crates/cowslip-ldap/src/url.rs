//! LDAP URLs (RFC 4516): where a directory is, and what to search there. Referrals are such URLs.

use std::fmt::{self, Display, Formatter, Write};

use crate::description::AttributeDescription;
use crate::dn::{Dn, DnError};
use crate::filter::{Filter, FilterError};
use crate::message::Scope;

/// Most octets of a URL.
pub const URL_BYTES_MAX: usize = 65_536;

/// Why a text is no LDAP URL.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UrlError {
    /// More octets than [`URL_BYTES_MAX`].
    #[error("a URL of {bytes} bytes, more than {URL_BYTES_MAX}")]
    TooLong {
        /// How many there are.
        bytes: usize,
    },
    /// It begins with neither `ldap://`, `ldaps://` nor `ldapi://`.
    #[error("an LDAP URL begins with ldap://, ldaps:// or ldapi://")]
    Scheme,
    /// The host or port is wrong.
    #[error("{authority:?} is no host with an optional port")]
    Authority {
        /// What stands there.
        authority: String,
    },
    /// A percent sign is not followed by two hexadecimal digits, or what they give is not UTF-8.
    #[error("wrong percent-encoding in {part:?}")]
    Percent {
        /// The part in which it is.
        part: String,
    },
    /// The name is wrong.
    #[error("in the name: {0}")]
    Dn(#[source] DnError),
    /// An attribute is neither an attribute description nor `*`, `+`, `1.1`, `@class`.
    #[error("{attribute:?} is no attribute to ask for")]
    Attribute {
        /// What stands there.
        attribute: String,
    },
    /// The scope is none of `base`, `one`, `sub`, `subord`.
    #[error("unknown scope {scope:?}")]
    Scope {
        /// What stands there.
        scope: String,
    },
    /// The filter is wrong.
    #[error("in the filter: {0}")]
    Filter(#[source] FilterError),
    /// An extension has no type.
    #[error("an extension without a type")]
    Extension,
    /// More than four question marks.
    #[error("text after the extensions")]
    Trailing,
}

/// How the server is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UrlScheme {
    /// `ldap`: TCP, port 389 by default.
    Ldap,
    /// `ldaps`: TLS, port 636 by default.
    Ldaps,
    /// `ldapi`: a socket of the local host, whose path is the host part.
    Ldapi,
}

/// An LDAP URL, taken apart and decoded.
///
/// ```
/// use cowslip_ldap::{message::Scope, url::LdapUrl};
/// let url = LdapUrl::parse("ldap://host:1389/dc=example,dc=com?cn,sn?sub?(uid=a%20b)")?;
/// assert_eq!((url.host.as_deref(), url.port), (Some("host"), Some(1389)));
/// assert_eq!(url.scope, Some(Scope::Subtree));
/// assert_eq!(url.to_string(), "ldap://host:1389/dc=example,dc=com?cn,sn?sub?(uid=a%20b)");
/// # Ok::<(), cowslip_ldap::url::UrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LdapUrl {
    /// How the server is reached.
    pub scheme: UrlScheme,
    /// The host's name or address, without the brackets of an IPv6 address; the path for `ldapi`.
    pub host: Option<String>,
    /// The port, if it is given.
    pub port: Option<u16>,
    /// The base of the search.
    pub dn: Dn,
    /// The attributes to return; none means all user attributes.
    pub attributes: Vec<String>,
    /// The scope; none means `base`, or for a referral the scope of the search that met it.
    pub scope: Option<Scope>,
    /// The filter; none means `(objectClass=*)`, or for a referral the filter of the search that met it.
    pub filter: Option<Filter>,
    /// Extensions.
    pub extensions: Vec<UrlExtension>,
}

/// An extension of a URL (RFC 4516 section 2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UrlExtension {
    /// Whether who doesn't know the extension must not use the URL.
    pub is_critical: bool,
    /// Its name or object identifier.
    pub kind: String,
    /// Its value.
    pub value: Option<String>,
}

impl UrlScheme {
    const ALL: [UrlScheme; 3] = [UrlScheme::Ldap, UrlScheme::Ldaps, UrlScheme::Ldapi];

    /// The text before `://`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            UrlScheme::Ldap => "ldap",
            UrlScheme::Ldaps => "ldaps",
            UrlScheme::Ldapi => "ldapi",
        }
    }
}

/// The words for scopes; the last is that of draft-sermersheim-ldap-subordinate-scope.
const SCOPES: [(&str, Scope); 4] =
    [("base", Scope::Base), ("one", Scope::One), ("sub", Scope::Subtree), ("subord", Scope::Subordinates)];

impl LdapUrl {
    /// A URL of a server, without a search.
    #[must_use]
    pub const fn server(scheme: UrlScheme, host: Option<String>, port: Option<u16>) -> Self {
        Self {
            scheme,
            host,
            port,
            dn: Dn::root(),
            attributes: Vec::new(),
            scope: None,
            filter: None,
            extensions: Vec::new(),
        }
    }

    /// Reads a URL (RFC 4516 section 2).
    ///
    /// # Errors
    /// The text is no LDAP URL; says which part is wrong.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        if text.len() > URL_BYTES_MAX {
            return Err(UrlError::TooLong { bytes: text.len() });
        }
        let (scheme, rest) = text.split_once("://").ok_or(UrlError::Scheme)?;
        let scheme = UrlScheme::ALL.into_iter().find(|known| known.name().eq_ignore_ascii_case(scheme));
        let (authority, rest) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = host_and_port(scheme.ok_or(UrlError::Scheme)?, authority)?;
        let mut url = Self::server(scheme.ok_or(UrlError::Scheme)?, host, port);
        let mut parts = rest.strip_prefix('/').unwrap_or(rest).split('?');
        url.dn = Dn::parse(decoded(parts.next().unwrap_or_default())?.as_bytes()).map_err(UrlError::Dn)?;
        for attribute in list(parts.next()) {
            url.attributes.push(requested_attribute(decoded(attribute)?)?);
        }
        url.scope = match parts.next().unwrap_or_default() {
            "" => None,
            text => Some(scope(text)?),
        };
        url.filter = match parts.next().unwrap_or_default() {
            "" => None,
            text => Some(Filter::parse(&decoded(text)?).map_err(UrlError::Filter)?),
        };
        for text in list(parts.next()) {
            url.extensions.push(extension(text)?);
        }
        if parts.next().is_some() { Err(UrlError::Trailing) } else { Ok(url) }
    }
}

impl std::str::FromStr for LdapUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        LdapUrl::parse(text)
    }
}

/// The parts of a comma-separated list, which may be empty as a whole.
fn list(text: Option<&str>) -> impl Iterator<Item = &str> {
    text.filter(|text| !text.is_empty()).into_iter().flat_map(|text| text.split(','))
}

fn host_and_port(scheme: UrlScheme, authority: &str) -> Result<(Option<String>, Option<u16>), UrlError> {
    let wrong = || UrlError::Authority { authority: authority.to_owned() };
    if scheme == UrlScheme::Ldapi {
        return Ok((Some(decoded(authority)?).filter(|path| !path.is_empty()), None));
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (address, after) = rest.split_once(']').ok_or_else(wrong)?;
            address.parse::<std::net::Ipv6Addr>().map_err(|_| wrong())?;
            match after.strip_prefix(':') {
                Some(port) => (address, Some(port)),
                None if after.is_empty() => (address, None),
                None => return Err(wrong()),
            }
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = match port {
        None | Some("") => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(digits.parse().map_err(|_| wrong())?)
        }
        Some(_) => return Err(wrong()),
    };
    let host = decoded(host)?;
    if host
        .contains(|character: char| character.is_whitespace() || character.is_control() || character == '@')
    {
        return Err(wrong());
    }
    Ok((Some(host).filter(|host| !host.is_empty()), port))
}

fn requested_attribute(attribute: String) -> Result<String, UrlError> {
    let description = attribute.strip_prefix('@').unwrap_or(&attribute);
    match attribute.as_str() {
        "*" | "+" | "1.1" => Ok(attribute),
        _ if AttributeDescription::parse(description).is_ok() => Ok(attribute),
        _ => Err(UrlError::Attribute { attribute }),
    }
}

fn scope(text: &str) -> Result<Scope, UrlError> {
    let known = SCOPES.into_iter().find(|(word, _)| word.eq_ignore_ascii_case(text));
    known.map(|(_, scope)| scope).ok_or_else(|| UrlError::Scope { scope: text.to_owned() })
}

fn extension(text: &str) -> Result<UrlExtension, UrlError> {
    let (kind, value) = match text.split_once('=') {
        Some((kind, value)) => (kind, Some(decoded(value)?)),
        None => (text, None),
    };
    let critical = kind.strip_prefix('!');
    let kind = decoded(critical.unwrap_or(kind))?;
    if kind.is_empty() {
        return Err(UrlError::Extension);
    }
    Ok(UrlExtension { is_critical: critical.is_some(), kind, value })
}

fn decoded(part: &str) -> Result<String, UrlError> {
    let text = percent_decoded(part).and_then(|octets| String::from_utf8(octets).ok());
    text.ok_or_else(|| UrlError::Percent { part: part.to_owned() })
}

/// The octets that percent-encoded text stands for; none if a percent sign lacks its digits.
pub(crate) fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut octets = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte != b'%' {
            octets.push(*byte);
            continue;
        }
        let digit = |place: usize| after.get(place).and_then(|byte| char::from(*byte).to_digit(16));
        octets.push((digit(0)? << 4 | digit(1)?) as u8);
        rest = &after[2..];
    }
    Some(octets)
}

/// Writes text with everything percent-encoded that has a meaning in a URL or stands nowhere in one, and `also`.
fn encoded(f: &mut Formatter<'_>, text: &str, also: &[u8]) -> fmt::Result {
    for byte in text.bytes() {
        let is_plain = byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/".contains(&byte);
        match is_plain && !also.contains(&byte) {
            true => f.write_char(char::from(byte))?,
            false => write!(f, "%{byte:02X}")?,
        }
    }
    Ok(())
}

impl Display for LdapUrl {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme.name())?;
        match self.host.as_deref() {
            Some(host) if self.scheme != UrlScheme::Ldapi && host.contains(':') => write!(f, "[{host}]")?,
            Some(host) => encoded(f, host, b"/:@")?,
            None => {}
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        let parts = [
            !self.attributes.is_empty(),
            self.scope.is_some(),
            self.filter.is_some(),
            !self.extensions.is_empty(),
        ];
        let count = parts.iter().rposition(|part| *part).map_or(0, |last| last + 1);
        if count == 0 && self.dn.is_root() {
            return Ok(());
        }
        f.write_char('/')?;
        encoded(f, &self.dn.to_string(), b"")?;
        for part in 0..count {
            f.write_char('?')?;
            self.part(f, part)?;
        }
        Ok(())
    }
}

impl LdapUrl {
    /// Writes what stands behind a question mark.
    fn part(&self, f: &mut Formatter<'_>, part: usize) -> fmt::Result {
        match part {
            0 => separated(f, &self.attributes, |f, attribute| encoded(f, attribute, b",")),
            1 => {
                let word = SCOPES.into_iter().find(|(_, scope)| self.scope == Some(*scope));
                f.write_str(word.map_or("", |(word, _)| word))
            }
            2 => self.filter.as_ref().map_or(Ok(()), |filter| encoded(f, &filter.to_string(), b"")),
            _ => separated(f, &self.extensions, |f, extension| {
                f.write_str(if extension.is_critical { "!" } else { "" })?;
                encoded(f, &extension.kind, b"!,=")?;
                match &extension.value {
                    Some(value) => {
                        f.write_char('=')?;
                        encoded(f, value, b",")
                    }
                    None => Ok(()),
                }
            }),
        }
    }
}

fn separated<T>(
    f: &mut Formatter<'_>,
    items: &[T],
    mut write: impl FnMut(&mut Formatter<'_>, &T) -> fmt::Result,
) -> fmt::Result {
    for (position, item) in items.iter().enumerate() {
        if position > 0 {
            f.write_char(',')?;
        }
        write(f, item)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_come_back_as_they_were() {
        // The examples of RFC 4516 section 4, and the forms that they leave out.
        for text in [
            "ldap://",
            "ldap://ldap1.example.net",
            "ldap:///o=University%20of%20Michigan,c=US",
            "ldap://ldap1.example.net/o=University%20of%20Michigan,c=US?postalAddress",
            "ldap://ldap1.example.net:6666/o=University%20of%20Michigan,c=US??sub?(cn=Babs%20Jensen)",
            "ldap://ldap1.example.com/c=GB?objectClass?one",
            "ldap://ldap2.example.com/o=Question%3F,c=US?mail",
            "ldap://ldap3.example.com/o=Babsco,c=US???(four-octet=%5C00%5C00%5C00%5C04)",
            "ldap://ldap.example.com/o=An%20Example%5C%2CInc.,c=US",
            "ldap://ldap.example.net/??sub??e-bindname=cn=Manager%2Ccn=Foo",
            "ldap://ldap.example.net/??sub??!e-bindname=cn=Manager%2Ccn=Foo",
            "ldaps://[2001:db8::1]:636/dc=x?*,+,@person,cn;lang-en",
            "ldapi://%2Frun%2Fldapi/dc=x??subord",
        ] {
            let url = LdapUrl::parse(text).expect(text);
            let written = url.to_string();
            assert_eq!(written.replace("%5C%2C", "%5C,"), text.replace("%5C%2C", "%5C,"));
            assert_eq!(LdapUrl::parse(&written), Ok(url));
        }
    }

    #[test]
    fn parts_are_decoded() {
        let url = LdapUrl::parse("LDAP://H%C3%B6st:1/cn=a%20b?CN?SUB?(cn=%2a)?!x=a%2Cb,y").expect("a URL");
        assert_eq!(url.host.as_deref(), Some("Höst"));
        assert_eq!(url.dn.rdns()[0].avas()[0].value(), b"a b");
        assert_eq!(url.filter, Some(Filter::Present("cn".to_owned())));
        let critical =
            UrlExtension { is_critical: true, kind: "x".to_owned(), value: Some("a,b".to_owned()) };
        let other = UrlExtension { is_critical: false, kind: "y".to_owned(), value: None };
        assert_eq!(url.extensions, [critical, other]);
    }

    /// A text, and what the error is like.
    type Refusal = (&'static str, fn(&UrlError) -> bool);

    #[test]
    fn other_texts_are_refused() {
        let cases: &[Refusal] = &[
            ("http://x", |e| *e == UrlError::Scheme),
            ("ldap:", |e| *e == UrlError::Scheme),
            ("ldap://h:x", |e| matches!(e, UrlError::Authority { .. })),
            ("ldap://h:65536", |e| matches!(e, UrlError::Authority { .. })),
            ("ldap://h:+1", |e| matches!(e, UrlError::Authority { .. })),
            ("ldap://[::1", |e| matches!(e, UrlError::Authority { .. })),
            ("ldap://[::x]", |e| matches!(e, UrlError::Authority { .. })),
            ("ldap://[::1]x", |e| matches!(e, UrlError::Authority { .. })),
            ("ldap://user@h", |e| matches!(e, UrlError::Authority { .. })),
            ("ldap:///dc=%zz", |e| matches!(e, UrlError::Percent { .. })),
            ("ldap:///dc=%4", |e| matches!(e, UrlError::Percent { .. })),
            ("ldap:///dc=%ff", |e| matches!(e, UrlError::Percent { .. })),
            ("ldap:///dc", |e| matches!(e, UrlError::Dn(_))),
            ("ldap:///?c n", |e| matches!(e, UrlError::Attribute { .. })),
            ("ldap:///?a,,b", |e| matches!(e, UrlError::Attribute { .. })),
            ("ldap:///??tree", |e| matches!(e, UrlError::Scope { .. })),
            ("ldap:///???(cn=", |e| matches!(e, UrlError::Filter(_))),
            ("ldap:///????!", |e| *e == UrlError::Extension),
            ("ldap:///????x?y", |e| *e == UrlError::Trailing),
        ];
        for (text, is_expected) in cases {
            let error = LdapUrl::parse(text).expect_err(text);
            assert!(is_expected(&error), "{text}: {error:?}");
        }
    }
}
