//! Search guides (RFC 4517 sections 3.3.10 and 3.3.14): `class#criteria#scope`.
//!
//! Invariant: nesting is counted, not recursed into.

use super::{STRUCTURED_VALUE_BYTES_MAX, Syntax, SyntaxError, text};

const MATCH_TYPES: [&str; 5] = ["EQ", "SUBSTR", "GE", "LE", "APPROX"];
const SCOPES: [&str; 3] = ["baseobject", "oneLevel", "wholeSubtree"];

pub(super) fn check(syntax: Syntax, value: &[u8]) -> Result<(), SyntaxError> {
    if value.len() > STRUCTURED_VALUE_BYTES_MAX {
        return Err(SyntaxError::TooLarge { max: STRUCTURED_VALUE_BYTES_MAX, unit: "bytes" });
    }
    let text = text::utf8(value)?;
    let parts: Vec<&str> = text.split('#').collect();
    let form = |offset, rule| Err(SyntaxError::Form { offset, rule });
    let (class, guide, scope) = match (syntax, parts.as_slice()) {
        (Syntax::EnhancedGuide, [class, guide, scope]) => (Some(class.trim()), guide, Some(scope.trim())),
        (Syntax::EnhancedGuide, _) => return form(0, "an enhanced guide is class#criteria#scope"),
        (_, [guide]) => (None, guide, None),
        (_, [class, guide]) => (Some(class.trim()), guide, None),
        _ => return form(0, "a guide is class#criteria"),
    };
    let is_oid = |text: &str| text::is_numeric_oid(text.as_bytes()) || text::is_descriptor(text.as_bytes());
    if class.is_some_and(|class| !is_oid(class)) {
        return form(0, "a guide begins with the name of a class");
    }
    if scope.is_some_and(|scope| !SCOPES.iter().any(|known| known.eq_ignore_ascii_case(scope))) {
        return form(text.len(), "a scope is baseobject, oneLevel or wholeSubtree");
    }
    criteria(guide, text.find('#').filter(|_| class.is_some()).map_or(0, |at| at + 1))
}

/// Checks terms (`attribute$EQ`, `?true`, `?false`) joined by `&` and `|`, negated by `!`, grouped by parentheses.
fn criteria(guide: &str, offset: usize) -> Result<(), SyntaxError> {
    let form = |at: usize, rule| Err(SyntaxError::Form { offset: offset + at, rule });
    let (mut depth, mut wants_term) = (0_usize, true);
    let mut at = 0;
    while let Some(&byte) = guide.as_bytes().get(at) {
        match (byte, wants_term) {
            (b' ', _) | (b'!', true) => {}
            (b'(', true) => depth += 1,
            (b')', false) => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return form(at, "a closing parenthesis without an opening one"),
            },
            (b'&' | b'|', false) => wants_term = true,
            (_, true) => {
                let end =
                    guide[at..].find([' ', '&', '|', ')', '(', '!']).map_or(guide.len(), |more| at + more);
                if !is_term(&guide[at..end]) {
                    return form(at, "a criterion is attribute$EQ (SUBSTR, GE, LE, APPROX), ?true or ?false");
                }
                at = end;
                wants_term = false;
                continue;
            }
            (_, false) => return form(at, "& or | stands between criteria"),
        }
        at += 1;
    }
    if wants_term {
        return form(at, "a criterion is missing");
    }
    if depth != 0 {
        return form(at, "a parenthesis is not closed");
    }
    Ok(())
}

fn is_term(term: &str) -> bool {
    match term.split_once('$') {
        Some((attribute, kind)) => {
            let attribute = attribute.as_bytes();
            (text::is_descriptor(attribute) || text::is_numeric_oid(attribute))
                && MATCH_TYPES.iter().any(|known| known.eq_ignore_ascii_case(kind))
        }
        None => term.eq_ignore_ascii_case("?true") || term.eq_ignore_ascii_case("?false"),
    }
}
