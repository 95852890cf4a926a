//! Reads records: names, controls, contents. Changes are read in `change`.

use std::collections::HashMap;
use std::io::{BufRead, Read};

use super::lines::{Line, Lines};
use super::{LdifBody, LdifControl, LdifError, LdifErrorKind, LdifOptions, LdifRecord, base64};
use crate::description::AttributeDescription;
use crate::entry::Attribute;

/// Up to so many attributes are looked through one by one; beyond, a table is kept.
const SCANNED_ATTRIBUTES_MAX: usize = 32;

/// Streams records from LDIF text.
///
/// Beyond the RFC, values and names may have UTF-8 characters without base64, `changetype: modify` may leave out the last
/// `-`, and a name may stand without any attribute.
///
/// ```
/// use cowslip_ldap::ldif::{LdifBody, LdifReader};
/// let text = b"version: 1\ndn: cn=amy,dc=example\ncn: amy\nsn:: RG9l\n\ndn: cn=bob,dc=example\nchangetype: delete\n";
/// let records: Vec<_> = LdifReader::new(text.as_slice()).collect::<Result<_, _>>()?;
/// assert_eq!(records[0].dn, "cn=amy,dc=example");
/// assert!(matches!(&records[0].body, LdifBody::Entry(attributes) if attributes[1].values[0] == b"Doe"));
/// assert_eq!((records[1].line, &records[1].body), (6, &LdifBody::Delete));
/// # Ok::<(), cowslip_ldap::ldif::LdifError>(())
/// ```
pub struct LdifReader<R> {
    lines: Lines<R>,
    options: LdifOptions,
    /// What was read last.
    at: Line,
    /// Where that began.
    line: u64,
    is_first: bool,
    is_broken: bool,
    record_bytes: usize,
    record_values: usize,
}

/// The value part of a line, not yet decoded.
pub(super) enum RawValue<'a> {
    Plain(&'a [u8]),
    Base64(&'a [u8]),
    Url(&'a [u8]),
}

impl<R: BufRead> LdifReader<R> {
    /// A reader with the default options.
    pub fn new(input: R) -> Self {
        Self::with_options(input, LdifOptions::default())
    }

    /// A reader with these options.
    pub fn with_options(input: R, options: LdifOptions) -> Self {
        Self {
            lines: Lines::new(input, options.limits.line_bytes),
            options,
            at: Line::Blank,
            line: 0,
            is_first: true,
            is_broken: false,
            record_bytes: 0,
            record_values: 0,
        }
    }

    /// The line that was read last, the first being 1: for progress.
    pub fn line(&self) -> u64 {
        self.line
    }

    /// Reads the next record; none at the input's end. After an error, the next call reads the record that follows the
    /// next empty line, unless the input itself failed.
    ///
    /// # Errors
    /// What is wrong with the record, and where.
    pub fn read(&mut self) -> Result<Option<LdifRecord>, LdifError> {
        if self.is_broken {
            return Ok(None);
        }
        let record = self.skip_rest().and_then(|()| self.record());
        self.is_broken = matches!(&record, Err(LdifError { kind: LdifErrorKind::Io(_), .. }));
        record
    }

    /// After an error, reads up to the empty line.
    fn skip_rest(&mut self) -> Result<(), LdifError> {
        while self.at == Line::Text {
            match self.lines.next() {
                Ok((at, line)) => (self.at, self.line) = (at, line),
                Err(error @ LdifError { kind: LdifErrorKind::Io(_), .. }) => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn record(&mut self) -> Result<Option<LdifRecord>, LdifError> {
        (self.record_bytes, self.record_values) = (0, 0);
        while self.at == Line::Blank {
            self.advance()?;
            if self.at == Line::Text && std::mem::take(&mut self.is_first) && self.is_named("version") {
                self.version()?;
                self.advance()?;
            }
        }
        if self.at == Line::End {
            return Ok(None);
        }
        if !self.is_named("dn") {
            return self.fail(LdifErrorKind::Expected { expected: "a line with dn:" });
        }
        let line = self.line;
        let dn = self.text_value()?;
        self.advance()?;
        let mut controls = Vec::new();
        while self.is_named("control") {
            self.count_value()?;
            controls.push(self.control()?);
            self.advance()?;
        }
        let body = if self.is_named("changetype") {
            self.change()?
        } else if controls.is_empty() {
            LdifBody::Entry(self.attributes()?)
        } else {
            return self.fail(LdifErrorKind::Expected { expected: "a line with changetype: after controls" });
        };
        if self.at == Line::Text {
            return self.fail(LdifErrorKind::Expected { expected: "an empty line after the record" });
        }
        Ok(Some(LdifRecord { line, dn, controls, body }))
    }

    pub(super) fn fail<T>(&self, kind: LdifErrorKind) -> Result<T, LdifError> {
        Err(LdifError { line: self.line, kind })
    }

    pub(super) fn is_at_text(&self) -> bool {
        self.at == Line::Text
    }

    /// The line as it was read.
    pub(super) fn current(&self) -> &[u8] {
        self.lines.text()
    }

    /// Goes to the next line.
    pub(super) fn advance(&mut self) -> Result<(), LdifError> {
        // If this fails, the rest of the record is skipped.
        self.at = Line::Text;
        let (at, line) = self.lines.next()?;
        (self.at, self.line) = (at, line);
        self.record_bytes += self.lines.text().len();
        let max = self.options.limits.record_bytes;
        if self.record_bytes > max { self.fail(LdifErrorKind::RecordTooLong { max }) } else { Ok(()) }
    }

    pub(super) fn count_value(&mut self) -> Result<(), LdifError> {
        self.record_values += 1;
        let max = self.options.limits.record_values;
        if self.record_values > max { self.fail(LdifErrorKind::TooManyValues { max }) } else { Ok(()) }
    }

    /// Whether this is a line whose attribute has that name.
    pub(super) fn is_named(&self, name: &str) -> bool {
        let text = self.current();
        self.is_at_text()
            && text.get(name.len()) == Some(&b':')
            && text[..name.len()].eq_ignore_ascii_case(name.as_bytes())
    }

    fn version(&self) -> Result<(), LdifError> {
        match self.text_value()? {
            version if version.trim() == "1" => Ok(()),
            found => self.fail(LdifErrorKind::Version { found }),
        }
    }

    /// Takes the line apart at its first colon.
    pub(super) fn parts(&self) -> Result<(&[u8], RawValue<'_>), LdifError> {
        let text = self.current();
        let Some(colon) = memchr::memchr(b':', text) else { return self.fail(LdifErrorKind::NoColon) };
        let value = match text.get(colon + 1) {
            Some(b':') => RawValue::Base64(without_fill(&text[colon + 2..])),
            Some(b'<') => RawValue::Url(without_fill(&text[colon + 2..])),
            _ => RawValue::Plain(without_fill(&text[colon + 1..])),
        };
        Ok((&text[..colon], value))
    }

    /// The value of the line.
    pub(super) fn value(&self) -> Result<Vec<u8>, LdifError> {
        let (_, value) = self.parts()?;
        self.decode(value)
    }

    fn decode(&self, value: RawValue<'_>) -> Result<Vec<u8>, LdifError> {
        match value {
            RawValue::Plain(value) => match memchr::memchr2(0, b'\r', value) {
                Some(position) => {
                    let offset = self.current().len() - value.len() + position;
                    self.fail(LdifErrorKind::Character { offset, byte: value[position] })
                }
                None => Ok(value.to_vec()),
            },
            RawValue::Base64(text) => match base64::decode(text.trim_ascii_end()) {
                Some(value) => Ok(value),
                None => self.fail(LdifErrorKind::Base64),
            },
            RawValue::Url(url) => self.file(&String::from_utf8_lossy(url)),
        }
    }

    /// Reads the file that a value's URL names, if that is allowed.
    fn file(&self, url: &str) -> Result<Vec<u8>, LdifError> {
        let path = url.strip_prefix("file://").map(|rest| rest.strip_prefix("localhost").unwrap_or(rest));
        let path = path.filter(|path| self.options.reads_files && path.starts_with('/'));
        let Some(path) = path.and_then(crate::url::percent_decoded) else {
            return self.fail(LdifErrorKind::UrlRefused { url: url.to_owned() });
        };
        let max = self.options.limits.line_bytes;
        let mut value = Vec::new();
        let path = String::from_utf8_lossy(&path).into_owned();
        let read =
            std::fs::File::open(&path).and_then(|file| file.take(max as u64 + 1).read_to_end(&mut value));
        match read {
            Ok(bytes) if bytes <= max => Ok(value),
            Ok(_) => self.fail(LdifErrorKind::LineTooLong { max }),
            Err(error) => self.fail(LdifErrorKind::File { path, error }),
        }
    }

    /// The value of the line as text.
    pub(super) fn text_value(&self) -> Result<String, LdifError> {
        String::from_utf8(self.value()?).or_else(|_| self.fail(LdifErrorKind::NotUtf8))
    }

    /// The value of the line as the text of an attribute description.
    pub(super) fn description_value(&self) -> Result<String, LdifError> {
        let text = self.text_value()?;
        match AttributeDescription::parse(text.trim_ascii_end()) {
            Ok(description) => Ok(description.text().to_owned()),
            Err(reason) => self.fail(LdifErrorKind::Description(reason)),
        }
    }

    fn control(&self) -> Result<LdifControl, LdifError> {
        let (_, RawValue::Plain(text)) = self.parts()? else { return self.fail(LdifErrorKind::Control) };
        let oid_bytes = text.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b'.').count();
        let (oid, rest) = text.split_at(oid_bytes);
        let rest = without_fill(rest);
        let (is_critical, rest) = match (rest.strip_prefix(b"true"), rest.strip_prefix(b"false")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => (false, rest),
        };
        let value = match without_fill(rest) {
            [] => None,
            [b':', b':', text @ ..] => Some(self.decode(RawValue::Base64(without_fill(text)))?),
            [b':', b'<', url @ ..] => Some(self.decode(RawValue::Url(without_fill(url)))?),
            [b':', text @ ..] => Some(self.decode(RawValue::Plain(without_fill(text)))?),
            _ => return self.fail(LdifErrorKind::Control),
        };
        match std::str::from_utf8(oid) {
            Ok(oid) if crate::description::check_type(oid.as_bytes()).is_ok() => {
                Ok(LdifControl { oid: oid.to_owned(), is_critical, value })
            }
            _ => self.fail(LdifErrorKind::Control),
        }
    }

    /// Reads attribute lines up to the record's end.
    pub(super) fn attributes(&mut self) -> Result<Vec<Attribute>, LdifError> {
        let mut collected = Collected::default();
        while self.is_at_text() {
            self.count_value()?;
            let (name, value) = self.parts()?;
            let description = match std::str::from_utf8(name).map(AttributeDescription::parse) {
                Ok(Ok(description)) => description.text(),
                Ok(Err(reason)) => return self.fail(LdifErrorKind::Description(reason)),
                Err(_) => return self.fail(LdifErrorKind::NotUtf8),
            };
            let value = self.decode(value)?;
            collected.attribute(description).values.push(value);
            self.advance()?;
        }
        Ok(collected.attributes)
    }
}

impl<R: BufRead> Iterator for LdifReader<R> {
    type Item = Result<LdifRecord, LdifError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

/// Attributes by their descriptions, in the order of their first values.
#[derive(Default)]
struct Collected {
    attributes: Vec<Attribute>,
    /// Where each is, by its description in lower case; only kept when there are many.
    positions: HashMap<String, usize>,
}

impl Collected {
    /// The attribute of this description, which comes into being if need be. Lines of one attribute mostly follow each
    /// other, so the last is tried first.
    fn attribute(&mut self, description: &str) -> &mut Attribute {
        let named = |attribute: &Attribute| attribute.description.eq_ignore_ascii_case(description);
        let count = self.attributes.len();
        let position = match self.attributes.last() {
            Some(last) if named(last) => Some(count - 1),
            _ if count <= SCANNED_ATTRIBUTES_MAX => self.attributes.iter().position(named),
            _ => {
                if self.positions.is_empty() {
                    let keys =
                        self.attributes.iter().map(|attribute| attribute.description.to_ascii_lowercase());
                    self.positions = keys.zip(0..).collect();
                }
                self.positions.get(&description.to_ascii_lowercase()).copied()
            }
        };
        let position = position.unwrap_or_else(|| {
            if !self.positions.is_empty() {
                self.positions.insert(description.to_ascii_lowercase(), count);
            }
            self.attributes.push(Attribute { description: description.to_owned(), values: Vec::new() });
            count
        });
        &mut self.attributes[position]
    }
}

/// Text without the spaces in front; other blanks belong to the value.
fn without_fill(text: &[u8]) -> &[u8] {
    let fill = text.iter().take_while(|byte| **byte == b' ').count();
    &text[fill..]
}
