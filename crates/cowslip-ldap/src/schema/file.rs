//! Files of definitions: OpenLDAP's `.schema` files, and LDIF as 389 Directory Server (`99user.ldif`), slapd
//! (`cn=schema,cn=config`) and `ldapsearch -b cn=schema` write it.
//!
//! A line that begins with a blank goes on with the line before. What isn't a definition (`dn:`, `objectClass:`,
//! `changetype:`, …) is listed and passed over. Invariant: work is linear in the file's length.

use super::parse::Macros;
use super::{Definition, DefinitionError, Element};

/// Most octets of a schema file.
pub const SCHEMA_FILE_BYTES_MAX: usize = 64 << 20;

/// A schema file, read.
///
/// ```
/// use cowslip_ldap::schema::SchemaFile;
/// let slapd = SchemaFile::parse("objectidentifier Ours 1.3.6.1.4.1.32473\n\
///     attributetype ( Ours:1 NAME 'shoeSize'\n\tSYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )\n")?;
/// let ldif = SchemaFile::parse("dn: cn=schema\nattributeTypes: ( 1.3.6.1.4.1.32473.1 NAME 'shoeSize' SYNTAX 1.3.6.\n \
///     1.4.1.1466.115.121.1.27 SINGLE-VALUE )\n")?;
/// assert_eq!(slapd.definitions[0].definition, ldif.definitions[0].definition);
/// assert_eq!((slapd.definitions[0].line, ldif.definitions[0].line), (2, 2));
/// # Ok::<(), cowslip_ldap::schema::SchemaFileError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SchemaFile {
    /// The definitions in the order of the file.
    pub definitions: Vec<Located>,
    /// What was passed over.
    pub ignored: Vec<Ignored>,
}

/// A definition and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// The line on which it begins, from 1.
    pub line: usize,
    /// The definition.
    pub definition: Definition,
}

/// A line that is not a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The line, from 1.
    pub line: usize,
    /// Its first word.
    pub keyword: String,
}

/// Why a file is not one of definitions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaFileError {
    /// The file is too long.
    #[error("the file has more than {max} bytes")]
    TooLarge {
        /// The limit in octets.
        max: usize,
    },
    /// The file is not UTF-8.
    #[error("line {line}: not UTF-8")]
    NotUtf8 {
        /// The line, from 1.
        line: usize,
    },
    /// A definition is wrong.
    #[error("line {line}: {element}: {error}")]
    Definition {
        /// The line on which the definition begins, from 1.
        line: usize,
        /// What it was to define.
        element: Element,
        /// What is wrong; offsets count from the definition's beginning, line ends left out.
        error: DefinitionError,
    },
    /// An `objectidentifier` line is wrong.
    #[error("line {line}: objectidentifier: {error}")]
    Macro {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        error: DefinitionError,
    },
    /// An `objectidentifier` line without a name or an identifier.
    #[error("line {line}: objectidentifier needs a name and an identifier")]
    MacroForm {
        /// The line, from 1.
        line: usize,
    },
    /// A value given as base64 isn't.
    #[error("line {line}: not base64 of UTF-8 text")]
    Base64 {
        /// The line, from 1.
        line: usize,
    },
}

/// One line with those that go on with it.
struct Logical<'a> {
    line: usize,
    first: &'a str,
    more: Vec<&'a str>,
}

impl SchemaFile {
    /// Reads a file of either form from its octets.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn from_bytes(bytes: &[u8]) -> Result<SchemaFile, SchemaFileError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(text),
            Err(error) => {
                let before = &bytes[..error.valid_up_to()];
                Err(SchemaFileError::NotUtf8 {
                    line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
                })
            }
        }
    }

    /// Reads a file of either form.
    ///
    /// # Errors
    /// The first thing that is wrong, with its line.
    pub fn parse(text: &str) -> Result<SchemaFile, SchemaFileError> {
        if text.len() > SCHEMA_FILE_BYTES_MAX {
            return Err(SchemaFileError::TooLarge { max: SCHEMA_FILE_BYTES_MAX });
        }
        let mut file = SchemaFile::default();
        let mut macros = Macros::default();
        for logical in logical_lines(text) {
            file.read(&logical, &mut macros)?;
        }
        Ok(file)
    }

    fn read(&mut self, logical: &Logical<'_>, macros: &mut Macros) -> Result<(), SchemaFileError> {
        let line = logical.line;
        let key_end = logical.first.find(|c: char| c == ':' || c.is_ascii_whitespace());
        let (key, rest) = logical.first.split_at(key_end.unwrap_or(logical.first.len()));
        // `objectClass:` is the entry's own in LDIF; `objectclass (` defines one in a `.schema` file.
        let element = match rest.starts_with(':') {
            true => Element::by_attribute(key),
            false => Element::by_directive(key),
        };
        let is_macro =
            key.eq_ignore_ascii_case("objectidentifier") || key.eq_ignore_ascii_case("olcObjectIdentifier");
        if element.is_none() && !is_macro {
            self.ignored.push(Ignored { line, keyword: key.to_owned() });
            return Ok(());
        }
        let value = value(logical, rest).ok_or(SchemaFileError::Base64 { line })?;
        let value = without_index(&value);
        match element {
            Some(element) => {
                let definition = Definition::parse_with(element, value, macros)
                    .map_err(|error| SchemaFileError::Definition { line, element, error })?;
                self.definitions.push(Located { line, definition });
            }
            None => {
                let mut words = value.split_ascii_whitespace();
                let (Some(name), Some(oid), None) = (words.next(), words.next(), words.next()) else {
                    return Err(SchemaFileError::MacroForm { line });
                };
                macros.define(name, oid).map_err(|error| SchemaFileError::Macro { line, error })?;
            }
        }
        Ok(())
    }
}

/// Lines joined with those that go on with them; comments and empty lines left out.
fn logical_lines(text: &str) -> Vec<Logical<'_>> {
    let mut out: Vec<Logical<'_>> = Vec::new();
    let mut is_comment = false;
    for (line, text) in (1..).zip(text.lines()) {
        match text.as_bytes().first() {
            Some(b' ' | b'\t') => match out.last_mut() {
                Some(last) if !is_comment => last.more.push(text),
                _ => {}
            },
            Some(b'#') => is_comment = true,
            None => {}
            Some(_) => {
                is_comment = false;
                out.push(Logical { line, first: text, more: Vec::new() });
            }
        }
    }
    out
}

/// The text after the key. LDIF drops the one blank that a line goes on with, `.schema` files keep it.
fn value(logical: &Logical<'_>, rest: &str) -> Option<String> {
    let (is_ldif, is_base64, rest) = match (rest.strip_prefix("::"), rest.strip_prefix(':')) {
        (Some(rest), _) => (true, true, rest),
        (None, Some(rest)) => (true, false, rest),
        (None, None) => (false, false, rest),
    };
    let length = rest.len() + logical.more.iter().map(|line| line.len()).sum::<usize>();
    let mut value = String::with_capacity(length);
    value.push_str(rest);
    for line in &logical.more {
        value.push_str(if is_ldif { &line[1..] } else { line });
    }
    if is_base64 {
        String::from_utf8(crate::ldif::base64::decode(value.trim().as_bytes())?).ok()
    } else {
        Some(value)
    }
}

/// Without the `{12}` that slapd puts before values of its configuration.
fn without_index(value: &str) -> &str {
    let value = value.trim();
    let after = value.strip_prefix('{').and_then(|rest| rest.split_once('}'));
    match after {
        Some((index, rest)) if index.bytes().all(|byte| byte.is_ascii_digit()) => rest.trim(),
        _ => value,
    }
}
