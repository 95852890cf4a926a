//! Normalised forms: one function per family of rules.

use super::MatchingRule as Rule;
use super::bytes::integer_key;
use crate::prep::{self, Case, Origin, PieceKind};
use crate::schema::Schema;
use crate::syntax::{self, BitString, ExactKey, GeneralizedTime, Mark, SyntaxError, UtcTime};

/// Most names that may stand inside one another (a name in a value of a name in a value …).
pub(crate) const NESTING_MAX: usize = 16;

type Done = Result<(), SyntaxError>;

/// Appends a value's form. Leaves what it appended if it fails.
pub(super) fn value(rule: Rule, value: &[u8], schema: &Schema, depth: usize, out: &mut Vec<u8>) -> Done {
    match rule {
        Rule::CertificateExactMatch => exact(&syntax::certificate_key(value)?, schema, depth, out),
        Rule::CertificateListExactMatch => exact(&syntax::certificate_list_key(value)?, schema, depth, out),
        Rule::ObjectIdentifierFirstComponentMatch => {
            identifier(first_component(value)?, schema, Origin::Value, out)
        }
        Rule::DirectoryStringFirstComponentMatch => {
            prep::collapse(first_component(value)?, Case::Ignore, Origin::Value, out)
        }
        Rule::IntegerFirstComponentMatch => integer(first_component(value)?, out),
        _ => common(rule, value, schema, Origin::Value, depth, out),
    }
}

/// Appends an assertion's form. Leaves what it appended if it fails.
pub(super) fn assertion(rule: Rule, assertion: &[u8], schema: &Schema, out: &mut Vec<u8>) -> Done {
    match rule {
        Rule::CertificateExactMatch | Rule::CertificateListExactMatch => {
            let is_list = rule == Rule::CertificateListExactMatch;
            exact(&syntax::exact_assertion(assertion, is_list)?, schema, 0, out)
        }
        Rule::ObjectIdentifierFirstComponentMatch => identifier(assertion, schema, Origin::Assertion, out),
        Rule::DirectoryStringFirstComponentMatch => {
            prep::collapse(assertion, Case::Ignore, Origin::Assertion, out)
        }
        Rule::IntegerFirstComponentMatch => integer(assertion, out),
        _ => common(rule, assertion, schema, Origin::Assertion, 0, out),
    }
}

/// The rules whose values and assertions look alike.
fn common(rule: Rule, text: &[u8], schema: &Schema, origin: Origin, depth: usize, out: &mut Vec<u8>) -> Done {
    match rule {
        Rule::CaseIgnoreMatch
        | Rule::CaseIgnoreOrderingMatch
        | Rule::CaseIgnoreIa5Match
        | Rule::PresentationAddressMatch
        | Rule::ProtocolInformationMatch
        | Rule::WordMatch
        | Rule::KeywordMatch => prep::collapse(text, Case::Ignore, origin, out),
        Rule::CaseExactMatch | Rule::CaseExactOrderingMatch | Rule::CaseExactIa5Match => {
            prep::collapse(text, Case::Exact, origin, out)
        }
        Rule::NumericStringMatch | Rule::NumericStringOrderingMatch => prep::numeric(text, origin, out),
        Rule::TelephoneNumberMatch => prep::telephone(text, origin, out),
        Rule::CaseIgnoreListMatch => {
            list(text, out, |line, out| prep::collapse(line, Case::Ignore, origin, out))
        }
        Rule::BooleanMatch => {
            out.extend_from_slice(if syntax::boolean(text)? { b"TRUE" } else { b"FALSE" });
            Ok(())
        }
        Rule::IntegerMatch
        | Rule::IntegerOrderingMatch
        | Rule::IntegerBitAndMatch
        | Rule::IntegerBitOrMatch => integer(text, out),
        Rule::BitStringMatch => {
            out.extend_from_slice(BitString::parse(text)?.0);
            Ok(())
        }
        Rule::GeneralizedTimeMatch | Rule::GeneralizedTimeOrderingMatch => {
            GeneralizedTime::parse(text)?.key(out);
            Ok(())
        }
        Rule::UtcTimeMatch => {
            UtcTime::parse(text)?.key(out);
            Ok(())
        }
        Rule::UuidMatch | Rule::UuidOrderingMatch => {
            out.extend_from_slice(&syntax::uuid(text)?);
            Ok(())
        }
        Rule::ObjectIdentifierMatch => identifier(text, schema, origin, out),
        Rule::DistinguishedNameMatch | Rule::InChainMatch => name(text, schema, depth, out),
        Rule::UniqueMemberMatch => {
            let (dn, uid) = syntax::name_and_uid(text);
            name(dn, schema, depth, out)?;
            if let Some(BitString(bits)) = uid {
                out.push(b'#');
                out.extend_from_slice(bits);
            }
            Ok(())
        }
        Rule::AuthPasswordExactMatch => auth_password(text, out),
        Rule::CsnMatch | Rule::CsnOrderingMatch => {
            crate::syntax::Syntax::Csn.check(text, schema)?;
            out.extend(text.iter().map(u8::to_ascii_uppercase));
            Ok(())
        }
        Rule::OctetStringMatch
        | Rule::OctetStringOrderingMatch
        | Rule::CertificatePairExactMatch
        | Rule::AlgorithmIdentifierMatch => {
            out.extend_from_slice(text);
            Ok(())
        }
        _ => Err(no_rule("a substrings rule compares pieces, not whole values")),
    }
}

/// Appends the form of one piece of a substrings assertion.
pub(super) fn piece(rule: Rule, piece: &[u8], at: PieceKind, out: &mut Vec<u8>) -> Done {
    match rule {
        Rule::CaseIgnoreSubstringsMatch
        | Rule::CaseIgnoreIa5SubstringsMatch
        | Rule::CaseIgnoreListSubstringsMatch => prep::piece(piece, at, Case::Ignore, out),
        Rule::CaseExactSubstringsMatch | Rule::CaseExactIa5SubstringsMatch => {
            prep::piece(piece, at, Case::Exact, out)
        }
        Rule::NumericStringSubstringsMatch => prep::numeric(piece, Origin::Assertion, out),
        Rule::TelephoneNumberSubstringsMatch => prep::telephone(piece, Origin::Assertion, out),
        _ => Err(no_rule("this rule compares whole values, not pieces")),
    }
}

/// Appends the form of a value in which pieces are looked for.
pub(super) fn for_substrings(rule: Rule, value: &[u8], out: &mut Vec<u8>) -> Done {
    match rule {
        Rule::CaseIgnoreSubstringsMatch | Rule::CaseIgnoreIa5SubstringsMatch => {
            prep::spaced(value, Case::Ignore, out)
        }
        Rule::CaseIgnoreListSubstringsMatch => {
            let start = out.len();
            let result = list(value, out, |line, out| prep::spaced(line, Case::Ignore, out));
            if result.is_err() {
                out.truncate(start);
            }
            result
        }
        Rule::CaseExactSubstringsMatch | Rule::CaseExactIa5SubstringsMatch => {
            prep::spaced(value, Case::Exact, out)
        }
        Rule::NumericStringSubstringsMatch => prep::numeric(value, Origin::Value, out),
        Rule::TelephoneNumberSubstringsMatch => prep::telephone(value, Origin::Value, out),
        _ => Err(no_rule("this rule compares whole values, not pieces")),
    }
}

/// Whether a prepared text has a word that equals a prepared word; words are letters and digits.
pub(super) fn has_word(text: &[u8], word: &[u8]) -> bool {
    let is_separator = |byte: &u8| byte.is_ascii() && !byte.is_ascii_alphanumeric();
    text == word || text.split(is_separator).any(|part| !part.is_empty() && part == word)
}

fn no_rule(rule: &'static str) -> SyntaxError {
    SyntaxError::Form { offset: 0, rule }
}

fn integer(text: &[u8], out: &mut Vec<u8>) -> Done {
    let (is_negative, digits) = syntax::integer_parts(text)?;
    integer_key(is_negative, digits, out);
    Ok(())
}

/// Lines of a postal address between `$`, `\24` and `\5C` read, each prepared, a NUL (which no prepared text has)
/// after each.
fn list(text: &[u8], out: &mut Vec<u8>, prepare: impl Fn(&[u8], &mut Vec<u8>) -> Done) -> Done {
    for line in text.split(|&byte| byte == b'$') {
        if line.contains(&b'\\') {
            prepare(&unescape(line), out)?;
        } else {
            prepare(line, out)?;
        }
        out.push(0);
    }
    Ok(())
}

fn unescape(line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(line.len());
    let mut rest = line;
    while let Some((&byte, after)) = rest.split_first() {
        let escaped = match (byte, after.get(..2)) {
            (b'\\', Some(b"24")) => Some(b'$'),
            (b'\\', Some(b"5C" | b"5c")) => Some(b'\\'),
            _ => None,
        };
        out.push(escaped.unwrap_or(byte));
        rest = if escaped.is_some() { &after[2..] } else { after };
    }
    out
}

/// A dotted identifier for a name that the schema knows. A name that it doesn't know is an error in an assertion
/// (RFC 4517 section 4.2.26); in a value it stands for itself, in lower case.
fn identifier(text: &[u8], schema: &Schema, origin: Origin, out: &mut Vec<u8>) -> Done {
    let text = text.trim_ascii();
    if text.first().is_some_and(u8::is_ascii_digit) && syntax::is_numeric_oid(text) {
        out.extend_from_slice(text);
        return Ok(());
    }
    let name = std::str::from_utf8(text).unwrap_or_default();
    let class = schema.object_class(name).map(|id| schema.class(id).oid.as_bytes());
    let known = class.or_else(|| schema.attribute(name).map(|id| schema.attribute_type(id).oid.as_bytes()));
    let known = known.or_else(|| Rule::by_name_or_oid(name).map(|rule| rule.oid().as_bytes()));
    match (known, origin) {
        (Some(oid), _) => out.extend_from_slice(oid),
        (None, Origin::Assertion) => {
            return Err(SyntaxError::UnknownName { name: String::from_utf8_lossy(text).into_owned() });
        }
        (None, Origin::Value) if syntax::is_descriptor(text) => {
            out.extend(text.iter().map(u8::to_ascii_lowercase));
        }
        (None, Origin::Value) => return Err(no_rule("an object identifier is a name or numbers with dots")),
    }
    Ok(())
}

/// What follows the opening parenthesis of a definition: its identifier, or a rule's number.
fn first_component(definition: &[u8]) -> Result<&[u8], SyntaxError> {
    let text = definition.trim_ascii_start();
    // An assertion that is the identifier alone serves as well.
    let text = text.strip_prefix(b"(").unwrap_or(text).trim_ascii_start();
    let text = text.strip_prefix(b"'").unwrap_or(text);
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || b")'".contains(byte);
    let end = text.iter().position(is_end).unwrap_or(text.len());
    if end == 0 {
        return Err(SyntaxError::Empty { rule: "a definition begins with ( and an identifier" });
    }
    Ok(&text[..end])
}

fn auth_password(text: &[u8], out: &mut Vec<u8>) -> Done {
    let [scheme, info, hash] = syntax::auth_password_parts(text)?;
    out.extend(scheme.iter().map(u8::to_ascii_uppercase));
    for part in [info, hash] {
        out.push(b'$');
        out.extend_from_slice(part);
    }
    Ok(())
}

fn exact(key: &ExactKey, schema: &Schema, depth: usize, out: &mut Vec<u8>) -> Done {
    match &key.mark {
        Mark::Serial(is_negative, digits) => integer_key(*is_negative, digits.as_bytes(), out),
        Mark::Update(time) => time.key(out),
    }
    out.push(0);
    name(key.issuer.as_bytes(), schema, depth, out)
}

fn name(text: &[u8], schema: &Schema, depth: usize, out: &mut Vec<u8>) -> Done {
    crate::dn::normalize_text(text, schema, depth, out)
        .map_err(|error| SyntaxError::Name { reason: error.to_string() })
}
