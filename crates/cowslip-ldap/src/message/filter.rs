//! Filters as they travel (RFC 4511 section 4.5.1.7), decoded without recursion.

use super::error::{Fault, Problem};
use super::values::text;
use super::{Limits, tags};
use crate::ber::{self, BerError, Reader};
use crate::filter::{FILTER_DEPTH_MAX, Filter};

const ATTRIBUTE: &str = "an attribute description in the filter";

/// Why octets are no filter. Who sent them is at fault: the request is answered with `protocolError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterDecodeError {
    /// Tags or lengths are wrong.
    #[error("the filter is damaged: {0}")]
    Damaged(#[from] BerError),
    /// The filter says something that it may not.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Reads a filter from the octets of one, as controls carry it (assertion, matched values).
///
/// # Errors
/// The octets are no filter, or a larger one than the limits allow.
pub fn decode_filter(octets: &[u8], limits: &Limits) -> Result<Filter, FilterDecodeError> {
    let mut reader = Reader::new(octets);
    let filter = read_filter(&mut reader, limits).map_err(|problem| match problem {
        Problem::Damaged(error) => FilterDecodeError::Damaged(error),
        Problem::Fault(fault) => FilterDecodeError::Fault(fault),
    })?;
    reader.finish()?;
    Ok(filter)
}

/// An and, or, not whose parts are being read.
struct Level<'a> {
    tag: u8,
    rest: Reader<'a>,
    parts: Vec<Filter>,
}

impl Level<'_> {
    fn close(mut self) -> Result<Filter, BerError> {
        match self.tag {
            tags::FILTER_AND => Ok(Filter::And(self.parts)),
            tags::FILTER_OR => Ok(Filter::Or(self.parts)),
            _ => {
                let part = self.parts.pop().ok_or(BerError::Truncated)?;
                if self.parts.is_empty() { Ok(Filter::Not(Box::new(part))) } else { Err(BerError::Trailing) }
            }
        }
    }
}

/// Reads the next element as a filter.
pub(super) fn read_filter(outer: &mut Reader<'_>, limits: &Limits) -> Result<Filter, Problem> {
    let depth_max = limits.filter_depth_max.min(FILTER_DEPTH_MAX);
    let mut levels: Vec<Level<'_>> = Vec::new();
    let mut terms = 0;
    loop {
        let reader = levels.last_mut().map_or(&mut *outer, |level| &mut level.rest);
        let (tag, content) = reader.element()?;
        terms += 1;
        if terms > limits.filter_terms_max {
            return Err(Fault::FilterTerms { max: limits.filter_terms_max }.into());
        }
        let mut done = None;
        if matches!(tag, tags::FILTER_AND | tags::FILTER_OR | tags::FILTER_NOT) {
            if levels.len() == depth_max {
                return Err(Fault::FilterDepth { max: depth_max }.into());
            }
            levels.push(Level { tag, rest: Reader::new(content), parts: Vec::new() });
        } else {
            done = Some(read_term(tag, content)?);
        }
        // A term, and every level that it completes, becomes a part of the level around it.
        loop {
            let Some(level) = levels.last_mut() else {
                return done.ok_or(Problem::Damaged(BerError::Truncated));
            };
            level.parts.extend(done.take());
            if !level.rest.is_empty() {
                break;
            }
            done = levels.pop().map(Level::close).transpose()?;
        }
    }
}

fn read_term(tag: u8, content: &[u8]) -> Result<Filter, Problem> {
    match tag {
        tags::FILTER_EQUALITY => {
            let (attribute, value) = read_assertion(content)?;
            Ok(Filter::Equality { attribute, value })
        }
        tags::FILTER_GREATER_OR_EQUAL => {
            let (attribute, value) = read_assertion(content)?;
            Ok(Filter::GreaterOrEqual { attribute, value })
        }
        tags::FILTER_LESS_OR_EQUAL => {
            let (attribute, value) = read_assertion(content)?;
            Ok(Filter::LessOrEqual { attribute, value })
        }
        tags::FILTER_APPROXIMATE => {
            let (attribute, value) = read_assertion(content)?;
            Ok(Filter::Approximate { attribute, value })
        }
        tags::FILTER_PRESENT => Ok(Filter::Present(text(content, ATTRIBUTE)?.to_owned())),
        tags::FILTER_SUBSTRINGS => read_substrings(content),
        tags::FILTER_EXTENSIBLE => read_extensible(content),
        _ => Err(Fault::FilterChoice { tag }.into()),
    }
}

fn read_assertion(content: &[u8]) -> Result<(String, Vec<u8>), Problem> {
    let mut reader = Reader::new(content);
    let attribute = reader.octets()?;
    let value = reader.octets()?;
    reader.skip_extensions()?;
    Ok((text(attribute, ATTRIBUTE)?.to_owned(), value.to_vec()))
}

fn read_substrings(content: &[u8]) -> Result<Filter, Problem> {
    let mut reader = Reader::new(content);
    let attribute = reader.octets()?;
    let mut pieces = reader.within(ber::SEQUENCE)?;
    reader.skip_extensions()?;
    let attribute = text(attribute, ATTRIBUTE)?.to_owned();
    let mut initial = None;
    let mut any = Vec::new();
    let mut last = None;
    if pieces.is_empty() {
        return Err(Fault::Substrings { attribute }.into());
    }
    let mut is_first = true;
    while !pieces.is_empty() {
        match pieces.element()? {
            (tags::SUBSTRING_INITIAL, piece) if is_first => initial = Some(piece.to_vec()),
            (tags::SUBSTRING_ANY, piece) if last.is_none() => any.push(piece.to_vec()),
            (tags::SUBSTRING_LAST, piece) if last.is_none() => last = Some(piece.to_vec()),
            _ => return Err(Fault::Substrings { attribute }.into()),
        }
        is_first = false;
    }
    Ok(Filter::Substrings { attribute, initial, any, last })
}

fn read_extensible(content: &[u8]) -> Result<Filter, Problem> {
    let mut reader = Reader::new(content);
    let rule = reader.optional(tags::EXTENSIBLE_RULE)?;
    let attribute = reader.optional(tags::EXTENSIBLE_ATTRIBUTE)?;
    let value = reader.expect(tags::EXTENSIBLE_VALUE)?;
    let dn_attributes = match reader.optional(tags::EXTENSIBLE_DN_ATTRIBUTES)? {
        Some(octets) => ber::boolean_of(tags::EXTENSIBLE_DN_ATTRIBUTES, octets)?,
        None => false,
    };
    reader.skip_extensions()?;
    let owned =
        |octets: Option<&[u8]>, field| octets.map(|it| text(it, field).map(str::to_owned)).transpose();
    let rule = owned(rule, "a matching rule in the filter")?;
    let attribute = owned(attribute, ATTRIBUTE)?;
    if rule.is_none() && attribute.is_none() {
        return Err(Fault::ExtensibleWithoutSubject.into());
    }
    Ok(Filter::Extensible { rule, attribute, value: value.to_vec(), dn_attributes })
}

/// Appends a filter as it travels. Recurses by the filter's depth, which is bounded for all filters that were read.
///
/// ```
/// use cowslip_ldap::filter::Filter;
/// use cowslip_ldap::message::{Limits, decode_filter, encode_filter};
/// let filter = Filter::parse("(|(uid=amy)(cn=A*))")?;
/// let mut octets = Vec::new();
/// encode_filter(&mut octets, &filter);
/// assert_eq!(decode_filter(&octets, &Limits::DEFAULT)?, filter);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn encode_filter(out: &mut Vec<u8>, filter: &Filter) {
    match filter {
        Filter::And(parts) => write_parts(out, tags::FILTER_AND, parts),
        Filter::Or(parts) => write_parts(out, tags::FILTER_OR, parts),
        Filter::Not(part) => write_parts(out, tags::FILTER_NOT, std::slice::from_ref(part.as_ref())),
        Filter::Equality { attribute, value } => {
            write_assertion(out, tags::FILTER_EQUALITY, attribute, value)
        }
        Filter::GreaterOrEqual { attribute, value } => {
            write_assertion(out, tags::FILTER_GREATER_OR_EQUAL, attribute, value);
        }
        Filter::LessOrEqual { attribute, value } => {
            write_assertion(out, tags::FILTER_LESS_OR_EQUAL, attribute, value);
        }
        Filter::Approximate { attribute, value } => {
            write_assertion(out, tags::FILTER_APPROXIMATE, attribute, value);
        }
        Filter::Present(attribute) => ber::octets(out, tags::FILTER_PRESENT, attribute.as_bytes()),
        Filter::Substrings { attribute, initial, any, last } => {
            let element = ber::begin(out, tags::FILTER_SUBSTRINGS);
            ber::octets(out, ber::OCTET_STRING, attribute.as_bytes());
            let pieces = ber::begin(out, ber::SEQUENCE);
            if let Some(piece) = initial {
                ber::octets(out, tags::SUBSTRING_INITIAL, piece);
            }
            for piece in any {
                ber::octets(out, tags::SUBSTRING_ANY, piece);
            }
            if let Some(piece) = last {
                ber::octets(out, tags::SUBSTRING_LAST, piece);
            }
            ber::end(out, pieces);
            ber::end(out, element);
        }
        Filter::Extensible { rule, attribute, value, dn_attributes } => {
            let element = ber::begin(out, tags::FILTER_EXTENSIBLE);
            if let Some(rule) = rule {
                ber::octets(out, tags::EXTENSIBLE_RULE, rule.as_bytes());
            }
            if let Some(attribute) = attribute {
                ber::octets(out, tags::EXTENSIBLE_ATTRIBUTE, attribute.as_bytes());
            }
            ber::octets(out, tags::EXTENSIBLE_VALUE, value);
            if *dn_attributes {
                ber::octets(out, tags::EXTENSIBLE_DN_ATTRIBUTES, &[0xff]);
            }
            ber::end(out, element);
        }
    }
}

fn write_parts(out: &mut Vec<u8>, tag: u8, parts: &[Filter]) {
    let element = ber::begin(out, tag);
    for part in parts {
        encode_filter(out, part);
    }
    ber::end(out, element);
}

fn write_assertion(out: &mut Vec<u8>, tag: u8, attribute: &str, value: &[u8]) {
    let element = ber::begin(out, tag);
    ber::octets(out, ber::OCTET_STRING, attribute.as_bytes());
    ber::octets(out, ber::OCTET_STRING, value);
    ber::end(out, element);
}
