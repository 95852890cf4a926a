//! Values that are schema definitions (RFC 4517 sections 3.3.1, 3.3.7, 3.3.8, 3.3.18 to 3.3.24).

use super::{STRUCTURED_VALUE_BYTES_MAX, Syntax, SyntaxError, text};
use crate::schema::{Definition, Element};

/// The kind of definition that values of a syntax are.
pub(super) const fn element(syntax: Syntax) -> Option<Element> {
    Some(match syntax {
        Syntax::AttributeTypeDescription => Element::AttributeType,
        Syntax::ObjectClassDescription => Element::ObjectClass,
        Syntax::SyntaxDescription => Element::Syntax,
        Syntax::MatchingRuleDescription => Element::MatchingRule,
        Syntax::MatchingRuleUseDescription => Element::MatchingRuleUse,
        Syntax::ContentRuleDescription => Element::ContentRule,
        Syntax::StructureRuleDescription => Element::StructureRule,
        Syntax::NameFormDescription => Element::NameForm,
        _ => return None,
    })
}

pub(super) fn check(syntax: Syntax, value: &[u8]) -> Result<(), SyntaxError> {
    if value.len() > STRUCTURED_VALUE_BYTES_MAX {
        return Err(SyntaxError::TooLarge { max: STRUCTURED_VALUE_BYTES_MAX, unit: "bytes" });
    }
    let text = text::utf8(value)?;
    match element(syntax) {
        Some(element) => Definition::parse(element, text)
            .map(drop)
            .map_err(|error| SyntaxError::Definition { reason: error.to_string() }),
        None => Ok(()),
    }
}
