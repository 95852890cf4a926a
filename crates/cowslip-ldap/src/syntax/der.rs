//! Certificates and revocation lists (RFC 4523): as much of their DER is read as the exact matching rules need, and
//! the text form of those rules' assertions.
//!
//! Invariants: lengths are definite; every element lies within its parent; a serial number has at most
//! [`SERIAL_BYTES_MAX`] octets, so that writing it in decimal is bounded.

use std::fmt::Write;

use super::{GeneralizedTime, Syntax, SyntaxError, UtcTime, text};
use crate::ber::{BerError, Reader};
use crate::dn::Dn;

/// Most octets of a certificate's serial number (RFC 5280 allows 20).
pub const SERIAL_BYTES_MAX: usize = 64;

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const INTEGER: u8 = 0x02;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;

/// What identifies a certificate or a revocation list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExactKey {
    pub(crate) mark: Mark,
    /// The issuer's name as text (RFC 4514).
    pub(crate) issuer: String,
}

/// What tells one issuer's certificates or lists apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A certificate's serial number: sign and decimal digits.
    Serial(bool, String),
    /// A list's time of issue.
    Update(GeneralizedTime),
}

pub(super) fn check(syntax: Syntax, value: &[u8]) -> Result<(), SyntaxError> {
    match syntax {
        Syntax::Certificate => certificate_key(value).map(drop),
        Syntax::CertificateList => certificate_list_key(value).map(drop),
        _ => {
            let mut reader = Reader::new(value);
            let mut inner = reader.within(SEQUENCE).map_err(broken)?;
            while !inner.is_empty() {
                inner.element().map_err(broken)?;
            }
            at_end(&reader)
        }
    }
}

pub(super) fn check_assertion(syntax: Syntax, value: &[u8]) -> Result<(), SyntaxError> {
    exact_assertion(value, syntax == Syntax::CertificateListExactAssertion).map(drop)
}

/// Issuer and serial number of a certificate in DER (RFC 5280 section 4.1).
pub(crate) fn certificate_key(value: &[u8]) -> Result<ExactKey, SyntaxError> {
    let mut outer = Reader::new(value);
    let mut certificate = outer.within(SEQUENCE).map_err(broken)?;
    at_end(&outer)?;
    let mut signed = certificate.within(SEQUENCE).map_err(broken)?;
    const VERSION: u8 = 0xa0;
    signed.optional(VERSION).map_err(broken)?;
    let serial = signed.expect(INTEGER).map_err(broken)?;
    signed.expect(SEQUENCE).map_err(broken)?;
    let issuer = name_text(signed.expect(SEQUENCE).map_err(broken)?)?;
    let (is_negative, digits) = decimal(serial)?;
    Ok(ExactKey { mark: Mark::Serial(is_negative, digits), issuer })
}

/// Issuer and time of issue of a revocation list in DER (RFC 5280 section 5.1).
pub(crate) fn certificate_list_key(value: &[u8]) -> Result<ExactKey, SyntaxError> {
    let mut outer = Reader::new(value);
    let mut list = outer.within(SEQUENCE).map_err(broken)?;
    at_end(&outer)?;
    let mut signed = list.within(SEQUENCE).map_err(broken)?;
    signed.optional(INTEGER).map_err(broken)?;
    signed.expect(SEQUENCE).map_err(broken)?;
    let issuer = name_text(signed.expect(SEQUENCE).map_err(broken)?)?;
    let (tag, time) = signed.element().map_err(broken)?;
    let time = match tag {
        UTC_TIME => UtcTime::parse(time)?.instant(),
        GENERALIZED_TIME => GeneralizedTime::parse(time)?,
        _ => {
            return Err(SyntaxError::Form { offset: 0, rule: "a revocation list has the time of its issue" });
        }
    };
    Ok(ExactKey { mark: Mark::Update(time), issuer })
}

/// Reads `{ serialNumber 7, issuer rdnSequence:"cn=…" }`, `{ issuer …, thisUpdate utcTime:"…" }` (RFC 4523 section 2)
/// or the older `7$cn=…`.
pub(crate) fn exact_assertion(value: &[u8], is_list: bool) -> Result<ExactKey, SyntaxError> {
    let text = text::utf8(value)?.trim();
    let form = |rule| SyntaxError::Form { offset: 0, rule };
    if let Some((serial, issuer)) = text.split_once('$').filter(|_| !is_list && !text.starts_with('{')) {
        return serial_assertion(serial, issuer.to_owned());
    }
    let inner = text.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
    let mut rest = inner.ok_or(form("the assertion stands in braces"))?.trim();
    let (mut issuer, mut mark) = (None, None);
    while !rest.is_empty() {
        let (field, after) = rest.split_once(' ').ok_or(form("a field has a name and a value"))?;
        let (choice, content, after) =
            field_value(after.trim_start()).ok_or(form("a field's value is cut off"))?;
        match field {
            "issuer" => issuer = Some(content),
            "serialNumber" | "thisUpdate" => mark = Some((choice, content)),
            // A distribution point narrows lists further; issuer and time are what this rule compares.
            "distributionPoint" if is_list => {}
            _ => return Err(form("the assertion has the fields issuer and serialNumber or thisUpdate")),
        }
        rest = after.trim_start().strip_prefix(',').unwrap_or(after).trim_start();
    }
    let (Some(issuer), Some((choice, mark))) = (issuer, mark) else {
        return Err(form("the assertion has the fields issuer and serialNumber or thisUpdate"));
    };
    if !is_list {
        return serial_assertion(&mark, issuer);
    }
    let time = match choice {
        "utcTime" => UtcTime::parse(mark.as_bytes())?.instant(),
        "generalizedTime" => GeneralizedTime::parse(mark.as_bytes())?,
        _ => return Err(form("thisUpdate is utcTime:\"…\" or generalizedTime:\"…\"")),
    };
    check_name(&issuer)?;
    Ok(ExactKey { mark: Mark::Update(time), issuer })
}

fn serial_assertion(serial: &str, issuer: String) -> Result<ExactKey, SyntaxError> {
    let (is_negative, digits) = text::integer_parts(serial.trim().as_bytes())?;
    if digits.len() > SERIAL_BYTES_MAX * 3 {
        return Err(SyntaxError::TooLarge { max: SERIAL_BYTES_MAX * 3, unit: "digits of a serial number" });
    }
    let digits = String::from_utf8_lossy(digits).into_owned();
    check_name(&issuer)?;
    Ok(ExactKey { mark: Mark::Serial(is_negative, digits), issuer })
}

fn check_name(text: &str) -> Result<(), SyntaxError> {
    Dn::parse(text.as_bytes()).map(drop).map_err(|error| SyntaxError::Name { reason: error.to_string() })
}

/// A field's value, a word or `choice:"text"` with quotes doubled in it: choice, text, and what follows.
fn field_value(text: &str) -> Option<(&str, String, &str)> {
    let end = text.find([',', ' ', '"']).unwrap_or(text.len());
    let (choice, word) = text[..end].split_once(':').unwrap_or(("", &text[..end]));
    if !text[end..].starts_with('"') {
        return Some((choice, word.to_owned(), &text[end..]));
    }
    let mut out = String::new();
    let mut rest = &text[end + 1..];
    loop {
        let quote = rest.find('"')?;
        out.push_str(&rest[..quote]);
        rest = &rest[quote + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                out.push('"');
                rest = more;
            }
            None => return Some((choice, out, rest)),
        }
    }
}

/// A `Name` in DER as RFC 4514 text, values as `#` and their octets.
pub(crate) fn name_text(rdns: &[u8]) -> Result<String, SyntaxError> {
    let mut reader = Reader::new(rdns);
    let mut parts = Vec::new();
    while !reader.is_empty() {
        let mut set = reader.within(SET).map_err(broken)?;
        let mut rdn = String::new();
        while !set.is_empty() {
            let mut pair = set.within(SEQUENCE).map_err(broken)?;
            let oid = pair.expect(OBJECT_IDENTIFIER).map_err(broken)?;
            if !rdn.is_empty() {
                rdn.push('+');
            }
            dotted(oid, &mut rdn)?;
            rdn.push_str("=#");
            for octet in pair.rest() {
                // Writing to a string does not fail.
                let _ = write!(rdn, "{octet:02x}");
            }
        }
        parts.push(rdn);
    }
    parts.reverse();
    Ok(parts.join(","))
}

fn dotted(octets: &[u8], out: &mut String) -> Result<(), SyntaxError> {
    let rule = "an object identifier is cut off or too long";
    let mut value = 0_u64;
    let mut is_first = true;
    for octet in octets {
        if value >> 56 != 0 {
            return Err(SyntaxError::Form { offset: 0, rule });
        }
        value = value << 7 | u64::from(octet & 0x7f);
        if octet & 0x80 != 0 {
            continue;
        }
        // The first number stands for two.
        let _ = match (is_first, value) {
            (true, 0..80) => write!(out, "{}.{}", value / 40, value % 40),
            (true, _) => write!(out, "2.{}", value - 80),
            (false, _) => write!(out, ".{value}"),
        };
        (is_first, value) = (false, 0);
    }
    match octets.last() {
        Some(last) if last & 0x80 == 0 => Ok(()),
        _ => Err(SyntaxError::Form { offset: 0, rule }),
    }
}

/// An integer's octets in decimal.
fn decimal(octets: &[u8]) -> Result<(bool, String), SyntaxError> {
    if octets.is_empty() {
        return Err(SyntaxError::Empty { rule: "an integer has at least one octet" });
    }
    if octets.len() > SERIAL_BYTES_MAX {
        return Err(SyntaxError::TooLarge { max: SERIAL_BYTES_MAX, unit: "bytes of a serial number" });
    }
    let is_negative = octets[0] & 0x80 != 0;
    let mut magnitude = octets.to_vec();
    if is_negative {
        let mut carry = true;
        for octet in magnitude.iter_mut().rev() {
            let (sum, more) = (!*octet).overflowing_add(u8::from(carry));
            (*octet, carry) = (sum, more);
        }
    }
    let mut digits = Vec::new();
    while magnitude.iter().any(|octet| *octet != 0) {
        let mut rest = 0_u16;
        for octet in &mut magnitude {
            let value = rest << 8 | u16::from(*octet);
            *octet = u8::try_from(value / 10).unwrap_or(0);
            rest = value % 10;
        }
        digits.push(char::from_digit(u32::from(rest), 10).unwrap_or('0'));
    }
    if digits.is_empty() {
        digits.push('0');
    }
    Ok((is_negative, digits.into_iter().rev().collect()))
}

fn at_end(reader: &Reader<'_>) -> Result<(), SyntaxError> {
    if reader.is_empty() {
        return Ok(());
    }
    Err(SyntaxError::Form { offset: 0, rule: "nothing follows the value" })
}

fn broken(error: BerError) -> SyntaxError {
    SyntaxError::Definition { reason: format!("not DER as expected: {error}") }
}
