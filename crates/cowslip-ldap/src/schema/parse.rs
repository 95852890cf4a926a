//! Reading of definitions: RFC 4512 section 4.1 as published, and as 389 Directory Server and OpenLDAP write it.
//!
//! More is read than the RFC allows: key words in any case and order, names and identifiers with or without quotes,
//! lists with or without `$`, a quote inside a quoted text, a description text in place of an identifier
//! (`myAttr-oid`), a name for a syntax, macros (`MyRoot:3`, by [`Macros`]). What is written is always the RFC's form.
//! Invariants: nothing nests deeper than one list, so no recursion; every list and text has a limit.

use std::collections::HashMap;

use super::definition::{
    AttributeTypeDefinition, ContentRuleDefinition, Definition, Element, Head, MatchingRuleDefinition,
    MatchingRuleUseDefinition, NameFormDefinition, ObjectClassDefinition, StructureRuleDefinition,
    SyntaxDefinition,
};
use super::{ClassKind, Usage};

/// Most octets of one definition.
pub const DEFINITION_BYTES_MAX: usize = 256 * 1024;
/// Most names, types, classes or extension values in one list of a definition.
pub const DEFINITION_LIST_MAX: usize = 4096;
/// Most extensions (`X-…`) of one definition.
pub const DEFINITION_EXTENSIONS_MAX: usize = 64;
/// Most octets of a name or identifier.
pub const NAME_BYTES_MAX: usize = 512;
/// Most macros of one schema file.
pub const MACROS_MAX: usize = 4096;

/// Why a text is not a definition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// Too long, or a list in it is.
    #[error("more than {max} {unit}")]
    TooLarge {
        /// The limit.
        max: usize,
        /// Of what.
        unit: &'static str,
    },
    /// Something else was to come here.
    #[error("at {offset}: {expected} expected, {found:?} found")]
    Unexpected {
        /// Offset in octets, from 0.
        offset: usize,
        /// What was to come, in words.
        expected: &'static str,
        /// What came.
        found: String,
    },
    /// A key word that this kind of definition does not have.
    #[error("at {offset}: {keyword:?} has no place in a definition ({element})")]
    UnknownKeyword {
        /// Offset in octets, from 0.
        offset: usize,
        /// The word.
        keyword: String,
        /// The kind of definition.
        element: Element,
    },
    /// A key word that came before.
    #[error("at {offset}: {keyword} again")]
    Repeated {
        /// Offset in octets, from 0.
        offset: usize,
        /// The word.
        keyword: String,
    },
    /// A part that this kind of definition must have.
    #[error("{keyword} is missing")]
    Missing {
        /// The key word of the part.
        keyword: &'static str,
    },
    /// A macro (`Name:1.2`) that is not defined before it is used.
    #[error("at {offset}: no objectidentifier {name:?} before this")]
    UnknownMacro {
        /// Offset in octets, from 0.
        offset: usize,
        /// The macro's name.
        name: String,
    },
}

/// Names for identifiers, as `objectidentifier` lines of OpenLDAP's schema files define them.
#[derive(Debug, Clone, Default)]
pub struct Macros {
    oids: HashMap<String, String>,
}

impl Macros {
    /// Defines `name`; `oid` may itself begin with a macro (`Root:1`).
    ///
    /// # Errors
    /// [`DefinitionError::UnknownMacro`] if `oid` begins with a name that isn't defined; a limit.
    pub fn define(&mut self, name: &str, oid: &str) -> Result<(), DefinitionError> {
        if self.oids.len() >= MACROS_MAX {
            return Err(DefinitionError::TooLarge { max: MACROS_MAX, unit: "macros" });
        }
        let oid = self.expand(oid, 0)?;
        self.oids.insert(name.to_ascii_lowercase(), oid);
        Ok(())
    }

    /// `text` with a macro at its front replaced; a text without one stays.
    fn expand(&self, text: &str, offset: usize) -> Result<String, DefinitionError> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let known = self.oids.get(&name.to_ascii_lowercase());
        match (known, rest) {
            (Some(oid), Some(rest)) if oid.len() + rest.len() < NAME_BYTES_MAX => Ok(format!("{oid}.{rest}")),
            (Some(_), Some(_)) => {
                Err(DefinitionError::TooLarge { max: NAME_BYTES_MAX, unit: "bytes of an identifier" })
            }
            (Some(oid), None) => Ok(oid.clone()),
            (None, Some(_)) => Err(DefinitionError::UnknownMacro { offset, name: name.to_owned() }),
            (None, None) => Ok(text.to_owned()),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'a> {
    Open,
    Close,
    Dollar,
    Word(&'a str),
    /// What stands between quotes, escapes not yet read.
    Quoted(&'a str),
    End,
}

impl Token<'_> {
    fn text(self) -> String {
        match self {
            Token::Open => "(".to_owned(),
            Token::Close => ")".to_owned(),
            Token::Dollar => "$".to_owned(),
            Token::Word(text) | Token::Quoted(text) => text.chars().take(64).collect(),
            Token::End => "the end".to_owned(),
        }
    }
}

/// Reads tokens; one is looked at ahead.
struct Parser<'a> {
    text: &'a str,
    /// Where the token looked at begins.
    offset: usize,
    /// Where it ends.
    end: usize,
    token: Token<'a>,
    macros: &'a Macros,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, macros: &'a Macros) -> Result<Self, DefinitionError> {
        if text.len() > DEFINITION_BYTES_MAX {
            return Err(DefinitionError::TooLarge { max: DEFINITION_BYTES_MAX, unit: "bytes" });
        }
        let mut parser = Parser { text, offset: 0, end: 0, token: Token::End, macros };
        parser.advance()?;
        Ok(parser)
    }

    fn advance(&mut self) -> Result<Token<'a>, DefinitionError> {
        let before = self.token;
        let bytes = self.text.as_bytes();
        let mut at = self.end;
        while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        self.offset = at;
        (self.token, self.end) = match bytes.get(at) {
            None => (Token::End, at),
            Some(b'(') => (Token::Open, at + 1),
            Some(b')') => (Token::Close, at + 1),
            Some(b'$') => (Token::Dollar, at + 1),
            Some(b'\'') => {
                let end = closing_quote(bytes, at + 1).ok_or(DefinitionError::Unexpected {
                    offset: bytes.len(),
                    expected: "a closing quote",
                    found: "the end".to_owned(),
                })?;
                (Token::Quoted(&self.text[at + 1..end]), end + 1)
            }
            Some(_) => {
                let is_end = |byte: &u8| byte.is_ascii_whitespace() || b"()$'".contains(byte);
                let end = bytes[at..].iter().position(is_end).map_or(bytes.len(), |length| at + length);
                (Token::Word(&self.text[at..end]), end)
            }
        };
        Ok(before)
    }

    fn unexpected<T>(&self, expected: &'static str) -> Result<T, DefinitionError> {
        Err(DefinitionError::Unexpected { offset: self.offset, expected, found: self.token.text() })
    }

    fn expect(&mut self, token: Token<'_>, expected: &'static str) -> Result<(), DefinitionError> {
        if self.token != token {
            return self.unexpected(expected);
        }
        self.advance().map(drop)
    }

    /// A name, identifier or number, quoted or not.
    fn word(&mut self, expected: &'static str) -> Result<String, DefinitionError> {
        match self.token {
            Token::Word(text) | Token::Quoted(text) if !text.trim().is_empty() => {
                let text = text.trim();
                if text.len() > NAME_BYTES_MAX {
                    return Err(DefinitionError::TooLarge { max: NAME_BYTES_MAX, unit: "bytes of a name" });
                }
                if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._:;{}".contains(&byte)) {
                    return self.unexpected(expected);
                }
                // Only with a colon: an element may have a macro's name.
                let text = match text.contains(':') {
                    true => self.macros.expand(text, self.offset)?,
                    false => text.to_owned(),
                };
                self.advance()?;
                Ok(text)
            }
            _ => self.unexpected(expected),
        }
    }

    /// An identifier, for which a macro may stand.
    fn identifier(&mut self, expected: &'static str) -> Result<String, DefinitionError> {
        let offset = self.offset;
        let word = self.word(expected)?;
        self.macros.expand(&word, offset)
    }

    fn quoted(&mut self, expected: &'static str) -> Result<String, DefinitionError> {
        match self.token {
            Token::Word(text) | Token::Quoted(text) => {
                let text = unescape(text);
                self.advance()?;
                Ok(text)
            }
            _ => self.unexpected(expected),
        }
    }

    /// One item, or a list of them in parentheses.
    fn list(
        &mut self,
        expected: &'static str,
        item: fn(&mut Self, &'static str) -> Result<String, DefinitionError>,
    ) -> Result<Vec<String>, DefinitionError> {
        if self.token != Token::Open {
            return Ok(vec![item(self, expected)?]);
        }
        self.advance()?;
        let mut items = Vec::new();
        loop {
            match self.token {
                Token::Close => {
                    self.advance()?;
                    return Ok(items);
                }
                Token::Dollar => {
                    self.advance()?;
                }
                _ if items.len() >= DEFINITION_LIST_MAX => {
                    return Err(DefinitionError::TooLarge { max: DEFINITION_LIST_MAX, unit: "list items" });
                }
                _ => items.push(item(self, expected)?),
            }
        }
    }

    fn words(&mut self, expected: &'static str) -> Result<Vec<String>, DefinitionError> {
        self.list(expected, Self::word)
    }

    /// `1.2.3`, `'1.2.3'`, `1.2.3{64}` and `1.2.3 {64}`.
    fn syntax(&mut self) -> Result<(String, Option<u32>), DefinitionError> {
        let offset = self.offset;
        let word = self.word("the identifier of a syntax")?;
        let (oid, bound) = match word.split_once('{') {
            Some((oid, bound)) => (self.macros.expand(oid, offset)?, bound.strip_suffix('}')),
            None => match self.token {
                Token::Word(text) if text.starts_with('{') => {
                    self.advance()?;
                    (self.macros.expand(&word, offset)?, text[1..].strip_suffix('}'))
                }
                _ => return Ok((self.macros.expand(&word, offset)?, None)),
            },
        };
        match bound.map(str::parse) {
            Some(Ok(bound)) => Ok((oid, Some(bound))),
            _ => Err(DefinitionError::Unexpected {
                offset,
                expected: "a length in braces",
                found: bound.unwrap_or_default().to_owned(),
            }),
        }
    }
}

/// Where the quoted text that begins at `from` ends. A quote ends it only if nothing of the text can follow, so that
/// `'the user's shell'`, which older servers write, is read as meant.
fn closing_quote(bytes: &[u8], from: usize) -> Option<usize> {
    let ends = |at: usize| {
        bytes.get(at + 1).is_none_or(|next| next.is_ascii_whitespace() || b")$({'".contains(next))
    };
    (from..bytes.len()).find(|&at| bytes[at] == b'\'' && ends(at))
}

/// `\27` and `\5C` read (RFC 4512 section 4.1, `qdstring`); other backslashes stay, as RFC 2252 had them.
fn unescape(text: &str) -> String {
    if !text.contains('\\') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 1..at + 3).unwrap_or_default();
        match code {
            "27" => out.push('\''),
            code if code.eq_ignore_ascii_case("5c") => out.push('\\'),
            _ => out.push('\\'),
        }
        let is_escape = code == "27" || code.eq_ignore_ascii_case("5c");
        rest = &rest[at + if is_escape { 3 } else { 1 }..];
    }
    out.push_str(rest);
    out
}

/// One key word with what follows it.
struct Clause {
    offset: usize,
    keyword: String,
}

impl Definition {
    /// Reads the definition of an element of one kind.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse(element: Element, text: &str) -> Result<Definition, DefinitionError> {
        Self::parse_with(element, text, &Macros::default())
    }

    /// Reads a definition in which macros may stand for identifiers.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn parse_with(element: Element, text: &str, macros: &Macros) -> Result<Definition, DefinitionError> {
        let mut parser = Parser::new(text, macros)?;
        parser.expect(Token::Open, "(")?;
        let mut definition = Definition::empty(element);
        definition.head_mut().oid = parser.identifier("an object identifier")?;
        let mut seen: Vec<String> = Vec::new();
        while parser.token != Token::Close {
            let Token::Word(word) = parser.token else {
                return parser.unexpected("a key word or )");
            };
            let clause = Clause { offset: parser.offset, keyword: word.to_ascii_uppercase() };
            if seen.contains(&clause.keyword) {
                return Err(DefinitionError::Repeated { offset: clause.offset, keyword: clause.keyword });
            }
            parser.advance()?;
            definition.read_clause(&mut parser, &clause)?;
            seen.push(clause.keyword);
        }
        parser.advance()?;
        if parser.token != Token::End {
            return parser.unexpected("the end of the definition");
        }
        definition.complete(&seen)?;
        Ok(definition)
    }

    fn empty(element: Element) -> Definition {
        match element {
            Element::AttributeType => Definition::AttributeType(AttributeTypeDefinition::default()),
            Element::ObjectClass => Definition::ObjectClass(ObjectClassDefinition::default()),
            Element::Syntax => Definition::Syntax(SyntaxDefinition::default()),
            Element::MatchingRule => Definition::MatchingRule(MatchingRuleDefinition::default()),
            Element::MatchingRuleUse => Definition::MatchingRuleUse(MatchingRuleUseDefinition::default()),
            Element::ContentRule => Definition::ContentRule(ContentRuleDefinition::default()),
            Element::StructureRule => Definition::StructureRule(StructureRuleDefinition::default()),
            Element::NameForm => Definition::NameForm(NameFormDefinition::default()),
        }
    }

    fn head_mut(&mut self) -> &mut Head {
        match self {
            Definition::AttributeType(it) => &mut it.head,
            Definition::ObjectClass(it) => &mut it.head,
            Definition::Syntax(it) => &mut it.head,
            Definition::MatchingRule(it) => &mut it.head,
            Definition::MatchingRuleUse(it) => &mut it.head,
            Definition::ContentRule(it) => &mut it.head,
            Definition::StructureRule(it) => &mut it.head,
            Definition::NameForm(it) => &mut it.head,
        }
    }

    fn read_clause(&mut self, parser: &mut Parser<'_>, clause: &Clause) -> Result<(), DefinitionError> {
        let head = self.head_mut();
        match clause.keyword.as_str() {
            "NAME" => {
                head.names = parser.words("a name")?;
                return Ok(());
            }
            "DESC" => {
                head.description = Some(parser.quoted("a description")?);
                return Ok(());
            }
            "OBSOLETE" => {
                head.is_obsolete = true;
                return Ok(());
            }
            keyword if keyword.starts_with("X-") => {
                if head.extensions.len() >= DEFINITION_EXTENSIONS_MAX {
                    return Err(DefinitionError::TooLarge {
                        max: DEFINITION_EXTENSIONS_MAX,
                        unit: "extensions",
                    });
                }
                let values = parser.list("a quoted text", Parser::quoted)?;
                head.extensions.push((clause.keyword.clone(), values));
                return Ok(());
            }
            _ => {}
        }
        if self.read_part(parser, &clause.keyword)? {
            return Ok(());
        }
        Err(DefinitionError::UnknownKeyword {
            offset: clause.offset,
            keyword: clause.keyword.clone(),
            element: self.element(),
        })
    }

    /// Reads what only this kind of definition has; `false` if it has no such part.
    fn read_part(&mut self, parser: &mut Parser<'_>, keyword: &str) -> Result<bool, DefinitionError> {
        const TYPES: &str = "an attribute type";
        match self {
            Definition::AttributeType(it) => return it.read_part(parser, keyword),
            Definition::ObjectClass(it) => match keyword {
                "SUP" => it.superiors = parser.words("a class")?,
                "ABSTRACT" => it.kind = ClassKind::Abstract,
                "STRUCTURAL" => it.kind = ClassKind::Structural,
                "AUXILIARY" => it.kind = ClassKind::Auxiliary,
                "MUST" => it.must = parser.words(TYPES)?,
                "MAY" => it.may = parser.words(TYPES)?,
                _ => return Ok(false),
            },
            Definition::Syntax(_) => return Ok(false),
            Definition::MatchingRule(it) => match keyword {
                "SYNTAX" => it.syntax = parser.syntax()?.0,
                _ => return Ok(false),
            },
            Definition::MatchingRuleUse(it) => match keyword {
                "APPLIES" => it.applies = parser.words(TYPES)?,
                _ => return Ok(false),
            },
            Definition::ContentRule(it) => match keyword {
                "AUX" => it.auxiliary = parser.words("a class")?,
                "MUST" => it.must = parser.words(TYPES)?,
                "MAY" => it.may = parser.words(TYPES)?,
                "NOT" => it.not = parser.words(TYPES)?,
                _ => return Ok(false),
            },
            Definition::StructureRule(it) => match keyword {
                "FORM" => it.form = parser.word("a name form")?,
                "SUP" => it.superiors = parser.words("a rule's number")?,
                _ => return Ok(false),
            },
            Definition::NameForm(it) => match keyword {
                "OC" => it.class = parser.word("a class")?,
                "MUST" => it.must = parser.words(TYPES)?,
                "MAY" => it.may = parser.words(TYPES)?,
                _ => return Ok(false),
            },
        }
        Ok(true)
    }

    /// Checks that the parts that must be there are.
    fn complete(&self, seen: &[String]) -> Result<(), DefinitionError> {
        let needed: &[&'static str] = match self {
            Definition::MatchingRule(_) => &["SYNTAX"],
            Definition::MatchingRuleUse(_) => &["APPLIES"],
            Definition::StructureRule(_) => &["FORM"],
            Definition::NameForm(_) => &["OC", "MUST"],
            Definition::AttributeType(it) if it.superior.is_none() => &["SYNTAX"],
            _ => &[],
        };
        if let Some(keyword) = needed.iter().find(|keyword| !seen.iter().any(|seen| seen == *keyword)) {
            return Err(DefinitionError::Missing { keyword });
        }
        // A needed list that is empty would be missing when the definition is written.
        match self {
            Definition::MatchingRuleUse(it) if it.applies.is_empty() => {
                Err(DefinitionError::Missing { keyword: "APPLIES" })
            }
            Definition::NameForm(it) if it.must.is_empty() => {
                Err(DefinitionError::Missing { keyword: "MUST" })
            }
            _ => Ok(()),
        }
    }
}

impl AttributeTypeDefinition {
    fn read_part(&mut self, parser: &mut Parser<'_>, keyword: &str) -> Result<bool, DefinitionError> {
        match keyword {
            "SUP" => self.superior = Some(parser.word("an attribute type")?),
            "EQUALITY" => self.equality = Some(parser.word("a matching rule")?),
            "ORDERING" => self.ordering = Some(parser.word("a matching rule")?),
            "SUBSTR" => self.substring = Some(parser.word("a matching rule")?),
            "SYNTAX" => {
                let (syntax, bound) = parser.syntax()?;
                (self.syntax, self.length_bound) = (Some(syntax), bound);
            }
            "SINGLE-VALUE" => self.is_single_value = true,
            "COLLECTIVE" => self.is_collective = true,
            "NO-USER-MODIFICATION" => self.is_no_user_modification = true,
            "USAGE" => {
                let Token::Word(word) = parser.token else {
                    return parser.unexpected("a usage");
                };
                match Usage::by_keyword(word) {
                    Some(usage) => self.usage = usage,
                    None => return parser.unexpected("a usage"),
                }
                parser.advance()?;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}
