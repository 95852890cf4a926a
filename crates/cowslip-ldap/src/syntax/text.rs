//! Syntaxes that are text (RFC 4517 section 3.3), each a small hand-written check.
//!
//! Choices: an inner line of a postal address may be empty (`a$$b`) and a backslash in it need not begin an escape,
//! since real data has both; a JPEG value is looked at no further than its first marker.

use super::{Syntax, SyntaxError};
use crate::dn::Dn;
use crate::schema::Schema;

type Checked = Result<(), SyntaxError>;

pub(super) fn check(syntax: Syntax, value: &[u8], schema: &Schema) -> Checked {
    match syntax {
        Syntax::BitString => BitString::parse(value).map(drop),
        Syntax::Boolean => boolean(value).map(drop),
        Syntax::CountryString => country(value),
        Syntax::Dn => name(value),
        Syntax::DeliveryMethod => delivery_method(value),
        Syntax::DirectoryString
        | Syntax::DataQuality
        | Syntax::DsaQuality
        | Syntax::MailPreference
        | Syntax::MhsOrAddress
        | Syntax::ProtocolInformation
        | Syntax::PresentationAddress => directory_string(value),
        Syntax::FacsimileTelephoneNumber => facsimile(value),
        Syntax::Ia5String => ia5(value),
        Syntax::Integer => integer_parts(value).map(drop),
        Syntax::NameAndOptionalUid => name(name_and_uid(value).0),
        Syntax::NumericString => numeric(value),
        Syntax::Oid => oid(value),
        Syntax::OtherMailbox => other_mailbox(value),
        Syntax::PostalAddress => postal_address(value),
        Syntax::PrintableString | Syntax::TelephoneNumber => printable(value, 0),
        Syntax::SubtreeSpecification => subtree_specification(value),
        Syntax::TelexNumber => telex(value),
        Syntax::SubstringAssertion => substring_assertion(value),
        Syntax::NetgroupTriple => netgroup_triple(value),
        Syntax::BootParameter => boot_parameter(value),
        Syntax::Uuid => uuid(value).map(drop),
        Syntax::AuthPassword => auth_password_parts(value).map(drop),
        // The caller sends only the above here; the others have checks of their own.
        other => other.check(value, schema),
    }
}

/// The bits of `'0101'B`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BitString<'a>(pub(crate) &'a [u8]);

impl<'a> BitString<'a> {
    pub(crate) fn parse(value: &'a [u8]) -> Result<BitString<'a>, SyntaxError> {
        let bits = value.strip_prefix(b"'").and_then(|rest| rest.strip_suffix(b"'B"));
        let Some(bits) = bits else {
            return Err(SyntaxError::Form { offset: 0, rule: "a bit string is written '0101'B" });
        };
        all(bits, 1, "0 and 1", |byte| matches!(byte, b'0' | b'1'))?;
        Ok(BitString(bits))
    }
}

/// `TRUE` or `FALSE`, whatever the case (the RFC's ABNF literals ignore it).
pub(crate) fn boolean(value: &[u8]) -> Result<bool, SyntaxError> {
    match value {
        value if value.eq_ignore_ascii_case(b"TRUE") => Ok(true),
        value if value.eq_ignore_ascii_case(b"FALSE") => Ok(false),
        _ => Err(SyntaxError::Form { offset: 0, rule: "a Boolean is TRUE or FALSE" }),
    }
}

/// Sign and digits of an integer: no plus sign, no needless zeros.
pub(crate) fn integer_parts(value: &[u8]) -> Result<(bool, &[u8]), SyntaxError> {
    let (is_negative, digits) = match value.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, value),
    };
    let offset = usize::from(is_negative);
    if digits.is_empty() {
        return Err(SyntaxError::Empty { rule: "an integer has at least one digit" });
    }
    all(digits, offset, "digits", |byte| byte.is_ascii_digit())?;
    if digits[0] == b'0' && (is_negative || digits.len() > 1) {
        return Err(SyntaxError::Form {
            offset,
            rule: "an integer does not begin with 0, and 0 has no sign",
        });
    }
    Ok((is_negative, digits))
}

/// The name's text and, if there is one, the bit string after the last `#`.
pub(crate) fn name_and_uid(value: &[u8]) -> (&[u8], Option<BitString<'_>>) {
    let uid = value
        .iter()
        .rposition(|&byte| byte == b'#')
        .and_then(|at| BitString::parse(&value[at + 1..]).ok().map(|uid| (at, uid)));
    match uid {
        Some((at, uid)) => (&value[..at], Some(uid)),
        None => (value, None),
    }
}

/// The 16 octets of a UUID (RFC 4530 section 2.1).
pub(crate) fn uuid(value: &[u8]) -> Result<[u8; 16], SyntaxError> {
    if value.len() != 36 {
        return Err(SyntaxError::Form { offset: 0, rule: "a UUID has 36 characters, as 8-4-4-4-12" });
    }
    let mut out = [0; 16];
    let mut digits = 0;
    for (offset, &byte) in value.iter().enumerate() {
        if matches!(offset, 8 | 13 | 18 | 23) {
            if byte != b'-' {
                return Err(SyntaxError::Character { offset, allowed: "a hyphen" });
            }
            continue;
        }
        let Some(digit) = char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()) else {
            return Err(SyntaxError::Character { offset, allowed: "hexadecimal digits" });
        };
        out[digits / 2] = out[digits / 2] << 4 | digit;
        digits += 1;
    }
    Ok(out)
}

/// Scheme, information and value of an `authPassword` (RFC 3112 section 2), blanks around `$` left out.
pub(crate) fn auth_password_parts(value: &[u8]) -> Result<[&[u8]; 3], SyntaxError> {
    let text = utf8(value)?;
    let mut parts = text.splitn(3, '$').map(|part| part.trim_matches(' ').as_bytes());
    let (Some(scheme), Some(info), Some(hash)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(SyntaxError::Form { offset: 0, rule: "an authPassword is scheme$information$value" });
    };
    if scheme.is_empty() {
        return Err(SyntaxError::Empty { rule: "an authPassword names its scheme" });
    }
    let is_scheme = |byte: u8| byte.is_ascii_alphanumeric() || b"-./_".contains(&byte);
    all(scheme, 0, "letters, digits and - . / _", is_scheme)?;
    let offset = value.len() - hash.len() - info.len();
    all(info, offset, "printable characters", |byte| byte.is_ascii_graphic())?;
    all(hash, offset, "printable characters", |byte| byte.is_ascii_graphic())?;
    Ok([scheme, info, hash])
}

/// Whether this is a dotted object identifier (RFC 4512 section 1.4): at least two numbers without needless zeros.
pub(crate) fn is_numeric_oid(text: &[u8]) -> bool {
    let is_number = |part: &[u8]| {
        !part.is_empty() && part.iter().all(u8::is_ascii_digit) && (part[0] != b'0' || part.len() == 1)
    };
    text.contains(&b'.') && text.split(|&byte| byte == b'.').all(is_number)
}

/// Whether this is a short descriptor (RFC 4512 section 1.4).
pub(crate) fn is_descriptor(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_alphabetic)
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
}

pub(super) fn utf8(value: &[u8]) -> Result<&str, SyntaxError> {
    std::str::from_utf8(value).map_err(|error| SyntaxError::NotUtf8 { offset: error.valid_up_to() })
}

fn all(text: &[u8], offset: usize, allowed: &'static str, is_allowed: impl Fn(u8) -> bool) -> Checked {
    match text.iter().position(|&byte| !is_allowed(byte)) {
        Some(at) => Err(SyntaxError::Character { offset: offset + at, allowed }),
        None => Ok(()),
    }
}

fn name(value: &[u8]) -> Checked {
    Dn::parse(value).map(drop).map_err(|error| SyntaxError::Name { reason: error.to_string() })
}

fn is_printable(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"'()+,-.=/:? ".contains(&byte)
}

/// Printable String, some octets into the value.
fn printable(value: &[u8], offset: usize) -> Checked {
    if value.is_empty() {
        return Err(SyntaxError::Empty { rule: "a printable string has at least one character" });
    }
    all(value, offset, "letters, digits, blanks and '()+,-.=/:?", is_printable)
}

fn directory_string(value: &[u8]) -> Checked {
    if value.is_empty() {
        return Err(SyntaxError::Empty { rule: "a directory string has at least one character" });
    }
    utf8(value).map(drop)
}

fn ia5(value: &[u8]) -> Checked {
    all(value, 0, "ASCII characters", |byte| byte.is_ascii())
}

fn numeric(value: &[u8]) -> Checked {
    if value.is_empty() {
        return Err(SyntaxError::Empty { rule: "a numeric string has at least one character" });
    }
    all(value, 0, "digits and blanks", |byte| byte.is_ascii_digit() || byte == b' ')
}

fn country(value: &[u8]) -> Checked {
    if value.len() != 2 {
        return Err(SyntaxError::Form { offset: 0, rule: "a country code has two characters" });
    }
    printable(value, 0)
}

fn oid(value: &[u8]) -> Checked {
    if is_numeric_oid(value) || is_descriptor(value) {
        return Ok(());
    }
    Err(SyntaxError::Form {
        offset: 0,
        rule: "an object identifier is a name or numbers with dots between them",
    })
}

/// Parts between `$`, with the offset of each.
fn dollar_parts(value: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut offset = 0;
    value.split(|&byte| byte == b'$').map(move |part| {
        let at = offset;
        offset += part.len() + 1;
        (at, part)
    })
}

fn delivery_method(value: &[u8]) -> Checked {
    const METHODS: [&[u8]; 10] = [
        b"any",
        b"mhs",
        b"physical",
        b"telex",
        b"teletex",
        b"g3fax",
        b"g4fax",
        b"ia5",
        b"videotex",
        b"telephone",
    ];
    for (offset, part) in dollar_parts(value) {
        let part = part.trim_ascii();
        if !METHODS.iter().any(|method| part.eq_ignore_ascii_case(method)) {
            let rule = "a delivery method is any, mhs, physical, telex, teletex, g3fax, g4fax, ia5, videotex or \
                        telephone";
            return Err(SyntaxError::Form { offset, rule });
        }
    }
    Ok(())
}

fn facsimile(value: &[u8]) -> Checked {
    const PARAMETERS: [&[u8]; 7] = [
        b"twoDimensional",
        b"fineResolution",
        b"unlimitedLength",
        b"b4Length",
        b"a3Width",
        b"b4Width",
        b"uncompressed",
    ];
    for (offset, part) in dollar_parts(value) {
        if offset == 0 {
            printable(part, 0)?;
        } else if !PARAMETERS.iter().any(|known| part.eq_ignore_ascii_case(known)) {
            let rule = "after $ comes twoDimensional, fineResolution, unlimitedLength, b4Length, a3Width, b4Width or \
                        uncompressed";
            return Err(SyntaxError::Form { offset, rule });
        }
    }
    Ok(())
}

fn other_mailbox(value: &[u8]) -> Checked {
    let Some(at) = value.iter().position(|&byte| byte == b'$') else {
        return Err(SyntaxError::Form { offset: value.len(), rule: "a mailbox is type$address" });
    };
    printable(&value[..at], 0)?;
    all(&value[at + 1..], at + 1, "ASCII characters", |byte| byte.is_ascii())
}

fn postal_address(value: &[u8]) -> Checked {
    if value.is_empty() {
        return Err(SyntaxError::Empty { rule: "a postal address has at least one line" });
    }
    utf8(value).map(drop)
}

fn telex(value: &[u8]) -> Checked {
    let mut count = 0;
    for (offset, part) in dollar_parts(value) {
        printable(part, offset)?;
        count += 1;
    }
    if count == 3 {
        return Ok(());
    }
    Err(SyntaxError::Form { offset: 0, rule: "a telex number is number$country$answerback" })
}

fn substring_assertion(value: &[u8]) -> Checked {
    let text = utf8(value)?;
    if text.contains('*') {
        return Ok(());
    }
    Err(SyntaxError::Form { offset: value.len(), rule: "a substrings assertion has an asterisk" })
}

fn subtree_specification(value: &[u8]) -> Checked {
    let text = utf8(value)?.trim();
    let form = |offset, rule| Err(SyntaxError::Form { offset, rule });
    if !text.starts_with('{') || !text.ends_with('}') {
        return form(0, "a subtree specification stands in braces");
    }
    let (mut depth, mut is_quoted) = (0_usize, false);
    for (offset, byte) in value.iter().enumerate() {
        match byte {
            b'"' => is_quoted = !is_quoted,
            b'{' if !is_quoted => depth += 1,
            b'}' if !is_quoted => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return form(offset, "a closing brace without an opening one"),
            },
            _ => {}
        }
    }
    if depth != 0 || is_quoted {
        return form(value.len(), "a brace or a quote is not closed");
    }
    Ok(())
}

fn netgroup_triple(value: &[u8]) -> Checked {
    let inner = value.strip_prefix(b"(").and_then(|rest| rest.strip_suffix(b")"));
    let Some(inner) = inner else {
        return Err(SyntaxError::Form { offset: 0, rule: "a netgroup triple is (host,user,domain)" });
    };
    all(inner, 1, "ASCII characters", |byte| byte.is_ascii())?;
    if inner.iter().filter(|&&byte| byte == b',').count() == 2 {
        return Ok(());
    }
    Err(SyntaxError::Form { offset: 0, rule: "a netgroup triple has three parts" })
}

fn boot_parameter(value: &[u8]) -> Checked {
    ia5(value)?;
    let rule = "a boot parameter is key=server:path";
    let parts =
        utf8(value)?.split_once('=').and_then(|(key, rest)| rest.split_once(':').map(|rest| (key, rest)));
    match parts {
        Some((key, _)) if !key.is_empty() => Ok(()),
        _ => Err(SyntaxError::Form { offset: 0, rule }),
    }
}

pub(super) fn jpeg(value: &[u8]) -> Checked {
    if value.starts_with(&[0xff, 0xd8]) {
        return Ok(());
    }
    Err(SyntaxError::Form { offset: 0, rule: "a JPEG value begins with the octets FF D8" })
}
