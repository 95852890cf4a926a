//! Filters as text (RFC 4515).
//!
//! More than the RFC: blanks and line ends around parentheses, and a lone term without its parentheses, as people type
//! on command lines. Values are taken as they stand, blanks included; of `**`, one star counts.

use std::fmt::{self, Display, Formatter, Write};

use super::{FILTER_DEPTH_MAX, FILTER_TERMS_MAX, Filter};
use crate::description::{AttributeDescription, DescriptionError, check_type};

/// Why a text is not a filter. Offsets count octets of the text, from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterError {
    /// Something else should stand here.
    #[error("byte {offset}: {expected} should follow")]
    Expected {
        /// Where.
        offset: usize,
        /// What, in words.
        expected: &'static str,
    },
    /// The text goes on after the filter's end.
    #[error("byte {offset}: the filter has ended before")]
    Trailing {
        /// Where.
        offset: usize,
    },
    /// What stands before the comparison is no attribute description.
    #[error("in the attribute description at byte {offset}: {reason}")]
    Attribute {
        /// Where the description begins.
        offset: usize,
        /// What is wrong with it; its offsets count from the description's beginning.
        reason: DescriptionError,
    },
    /// What stands as matching rule is neither a name nor an object identifier.
    #[error("byte {offset}: neither a name nor an object identifier of a matching rule")]
    Rule {
        /// Where it begins.
        offset: usize,
    },
    /// A backslash is not followed by two hexadecimal digits.
    #[error("byte {offset}: two hexadecimal digits should follow the backslash")]
    Escape {
        /// Where the backslash stands.
        offset: usize,
    },
    /// A character that a value has only as an escape.
    #[error("byte {offset}: \"{}\" must be escaped in a value", .byte.escape_ascii())]
    Character {
        /// Where.
        offset: usize,
        /// The character.
        byte: u8,
    },
    /// More levels than [`FILTER_DEPTH_MAX`].
    #[error("byte {offset}: more than {FILTER_DEPTH_MAX} levels of and, or, not")]
    TooDeep {
        /// Where the first level too much begins.
        offset: usize,
    },
    /// More parts than [`FILTER_TERMS_MAX`].
    #[error("byte {offset}: more than {FILTER_TERMS_MAX} parts")]
    TooManyTerms {
        /// Where the first part too much begins.
        offset: usize,
    },
}

impl Filter {
    /// Reads a filter's text (RFC 4515 section 3).
    ///
    /// ```
    /// use cowslip_ldap::filter::Filter;
    /// let filter = Filter::parse(r"(cn=a\2ab)")?;
    /// assert_eq!(filter, Filter::Equality { attribute: "cn".to_owned(), value: b"a*b".to_vec() });
    /// # Ok::<(), cowslip_ldap::filter::FilterError>(())
    /// ```
    ///
    /// # Errors
    /// The text is no filter; says where and why.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let mut parser = Parser { text, at: 0, parts: 0 };
        parser.skip_blanks();
        let filter = match parser.peek() {
            Some(b'(') => parser.filter()?,
            _ => parser.term(text.len())?,
        };
        parser.skip_blanks();
        match parser.peek() {
            None => Ok(filter),
            Some(_) => Err(FilterError::Trailing { offset: parser.at }),
        }
    }
}

impl std::str::FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        Filter::parse(text)
    }
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    parts: usize,
}

/// An and, or, not whose parts are being read.
struct Open {
    operator: u8,
    parts: Vec<Filter>,
}

impl Open {
    fn close(mut self) -> Option<Filter> {
        match self.operator {
            b'&' => Some(Filter::And(self.parts)),
            b'|' => Some(Filter::Or(self.parts)),
            _ => self.parts.pop().filter(|_| self.parts.is_empty()).map(|part| Filter::Not(Box::new(part))),
        }
    }
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | b'\n')).count();
    }

    fn expected<T>(&self, expected: &'static str) -> Result<T, FilterError> {
        Err(FilterError::Expected { offset: self.at, expected })
    }

    /// Reads one filter with its parentheses; what is open is kept in a vector, not on the stack.
    fn filter(&mut self) -> Result<Filter, FilterError> {
        let mut open: Vec<Open> = Vec::new();
        loop {
            self.skip_blanks();
            let done = match self.peek() {
                Some(b'(') => {
                    self.at += 1;
                    self.skip_blanks();
                    match self.peek() {
                        Some(operator @ (b'&' | b'|' | b'!')) => {
                            self.count_part()?;
                            if open.len() >= FILTER_DEPTH_MAX {
                                return Err(FilterError::TooDeep { offset: self.at });
                            }
                            self.at += 1;
                            open.push(Open { operator, parts: Vec::new() });
                            continue;
                        }
                        _ => self.parenthesised_term()?,
                    }
                }
                Some(b')') => match open.pop().map(Open::close) {
                    Some(Some(filter)) => {
                        self.at += 1;
                        filter
                    }
                    _ => return self.expected("exactly one filter in a not"),
                },
                _ => return self.expected(if open.is_empty() { "\"(\"" } else { "\"(\" or \")\"" }),
            };
            match open.last_mut() {
                Some(outer) => outer.parts.push(done),
                None => return Ok(done),
            }
        }
    }

    fn count_part(&mut self) -> Result<(), FilterError> {
        self.parts += 1;
        if self.parts > FILTER_TERMS_MAX {
            Err(FilterError::TooManyTerms { offset: self.at })
        } else {
            Ok(())
        }
    }

    fn parenthesised_term(&mut self) -> Result<Filter, FilterError> {
        let rest = &self.text.as_bytes()[self.at..];
        match memchr::memchr2(b'(', b')', rest).map(|length| (self.at + length, rest[length])) {
            Some((end, b')')) => {
                let term = self.term(end)?;
                self.at = end + 1;
                Ok(term)
            }
            Some((offset, byte)) => Err(FilterError::Character { offset, byte }),
            None => {
                self.at = self.text.len();
                self.expected("\")\"")
            }
        }
    }

    /// Reads a term that goes up to `end`.
    fn term(&mut self, end: usize) -> Result<Filter, FilterError> {
        self.count_part()?;
        let start = self.at;
        let Some(length) = memchr::memchr(b'=', &self.text.as_bytes()[start..end]) else {
            return self.expected("an attribute description and a comparison");
        };
        let equals = start + length;
        let left = &self.text[start..equals];
        let value_at = equals + 1;
        self.at = end;
        let comparison = match left.as_bytes().last() {
            Some(b':') => return self.extensible(start, equals - 1, value_at),
            Some(comparison @ (b'>' | b'<' | b'~')) => *comparison,
            _ => return self.equal(self.description(start, left)?, value_at),
        };
        let attribute = self.description(start, &left[..left.len() - 1])?;
        let value = self.value(value_at, end)?;
        Ok(match comparison {
            b'>' => Filter::GreaterOrEqual { attribute, value },
            b'<' => Filter::LessOrEqual { attribute, value },
            _ => Filter::Approximate { attribute, value },
        })
    }

    fn description(&self, offset: usize, text: &str) -> Result<String, FilterError> {
        match AttributeDescription::parse(text.trim_matches(' ')) {
            Ok(description) => Ok(description.text().to_owned()),
            Err(reason) => Err(FilterError::Attribute { offset, reason }),
        }
    }

    /// Reads what stands behind a plain equals sign: presence, a value, or pieces of one.
    fn equal(&self, attribute: String, start: usize) -> Result<Filter, FilterError> {
        let end = self.at;
        if &self.text[start..end] == "*" {
            return Ok(Filter::Present(attribute));
        }
        let mut stars = memchr::memchr_iter(b'*', &self.text.as_bytes()[start..end]).map(|star| start + star);
        let Some(first) = stars.next() else {
            return Ok(Filter::Equality { attribute, value: self.value(start, end)? });
        };
        let piece =
            |start, end| self.value(start, end).map(|piece| Some(piece).filter(|piece| !piece.is_empty()));
        let initial = piece(start, first)?;
        let mut any = Vec::new();
        let mut piece_at = first + 1;
        for star in stars {
            any.extend(piece(piece_at, star)?);
            piece_at = star + 1;
        }
        let last = piece(piece_at, end)?;
        if initial.is_none() && any.is_empty() && last.is_none() {
            return Err(FilterError::Expected { offset: piece_at, expected: "a piece of a value" });
        }
        Ok(Filter::Substrings { attribute, initial, any, last })
    }

    /// Reads `[attribute][:dn][:rule]`, which ends before the colon of `:=`.
    fn extensible(&self, start: usize, end: usize, value_at: usize) -> Result<Filter, FilterError> {
        let mut parts = self.text[start..end].split(':');
        let attribute = match parts.next().map(|text| text.trim_matches(' ')).filter(|text| !text.is_empty())
        {
            Some(text) => Some(self.description(start, text)?),
            None => None,
        };
        let mut next = parts.next();
        let dn_attributes = next.is_some_and(|part| part.eq_ignore_ascii_case("dn"));
        if dn_attributes {
            next = parts.next();
        }
        let rule = next.map(str::to_owned);
        let is_rule = rule.as_ref().is_none_or(|rule| check_type(rule.as_bytes()).is_ok());
        if !is_rule || parts.next().is_some() {
            let offset = end - rule.map_or(0, |rule| rule.len());
            return Err(FilterError::Rule { offset });
        }
        if attribute.is_none() && rule.is_none() {
            return Err(FilterError::Expected {
                offset: start,
                expected: "an attribute description or a rule",
            });
        }
        Ok(Filter::Extensible { rule, attribute, value: self.value(value_at, self.at)?, dn_attributes })
    }

    /// Reads a value or a piece of one.
    fn value(&self, start: usize, end: usize) -> Result<Vec<u8>, FilterError> {
        let bytes = &self.text.as_bytes()[..end];
        let mut value = Vec::with_capacity(end - start);
        let mut at = start;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\\' => {
                    let digit =
                        |place: usize| bytes.get(place).and_then(|byte| char::from(*byte).to_digit(16));
                    let pair = digit(at + 1).zip(digit(at + 2)).ok_or(FilterError::Escape { offset: at })?;
                    value.push((pair.0 << 4 | pair.1) as u8);
                    at += 3;
                }
                b'*' | b'(' | b')' | 0 => return Err(FilterError::Character { offset: at, byte: *byte }),
                byte => {
                    value.push(*byte);
                    at += 1;
                }
            }
        }
        Ok(value)
    }
}

/// Writes the text (RFC 4515); it parses to an equal filter.
impl Display for Filter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_char('(')?;
        match self {
            Filter::And(parts) => list(f, '&', parts)?,
            Filter::Or(parts) => list(f, '|', parts)?,
            Filter::Not(part) => list(f, '!', std::slice::from_ref(part))?,
            Filter::Equality { attribute, value } => compare(f, attribute, "=", value)?,
            Filter::GreaterOrEqual { attribute, value } => compare(f, attribute, ">=", value)?,
            Filter::LessOrEqual { attribute, value } => compare(f, attribute, "<=", value)?,
            Filter::Approximate { attribute, value } => compare(f, attribute, "~=", value)?,
            Filter::Present(attribute) => write!(f, "{attribute}=*")?,
            Filter::Substrings { attribute, initial, any, last } => {
                write!(f, "{attribute}=")?;
                escaped(f, initial.as_deref().unwrap_or_default())?;
                for piece in any {
                    f.write_char('*')?;
                    escaped(f, piece)?;
                }
                f.write_char('*')?;
                escaped(f, last.as_deref().unwrap_or_default())?;
            }
            Filter::Extensible { rule, attribute, value, dn_attributes } => {
                f.write_str(attribute.as_deref().unwrap_or_default())?;
                f.write_str(if *dn_attributes { ":dn" } else { "" })?;
                if let Some(rule) = rule {
                    write!(f, ":{rule}")?;
                }
                compare(f, "", ":=", value)?;
            }
        }
        f.write_char(')')
    }
}

fn list<'a>(
    f: &mut Formatter<'_>,
    operator: char,
    parts: impl IntoIterator<Item = &'a (impl Display + 'a)>,
) -> fmt::Result {
    f.write_char(operator)?;
    parts.into_iter().try_for_each(|part| part.fmt(f))
}

fn compare(f: &mut Formatter<'_>, attribute: &str, comparison: &str, value: &[u8]) -> fmt::Result {
    f.write_str(attribute)?;
    f.write_str(comparison)?;
    escaped(f, value)
}

/// Writes a value with its escapes: what the RFC demands, octets that are not UTF-8, and control characters.
fn escaped(f: &mut Formatter<'_>, value: &[u8]) -> fmt::Result {
    for chunk in value.utf8_chunks() {
        let text = chunk.valid();
        let mut run = 0;
        for (offset, byte) in text.bytes().enumerate() {
            if matches!(byte, b'*' | b'(' | b')' | b'\\') || byte.is_ascii_control() {
                f.write_str(&text[run..offset])?;
                write!(f, "\\{byte:02x}")?;
                run = offset + 1;
            }
        }
        f.write_str(&text[run..])?;
        chunk.invalid().iter().try_for_each(|byte| write!(f, "\\{byte:02x}"))?;
    }
    Ok(())
}
