//! Definitions of schema elements as they are written (RFC 4512 section 4.1): names not yet resolved.
//!
//! Invariant: `Display` writes a text that parses to an equal value, and that text is what the subschema publishes.

use std::fmt;

use super::Usage;

/// What all definitions have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Head {
    /// The object identifier in dotted form (for a structure rule, its number).
    pub oid: String,
    /// Names (short descriptors), the first of which is the one that answers use.
    pub names: Vec<String>,
    /// What the element is for, in words.
    pub description: Option<String>,
    /// Whether the element is `OBSOLETE`.
    pub is_obsolete: bool,
    /// Extensions: a name that begins with `X-`, and its values.
    pub extensions: Vec<(String, Vec<String>)>,
}

impl Head {
    /// The name for messages: the first name, else the object identifier.
    #[must_use]
    pub fn name(&self) -> &str {
        self.names.first().unwrap_or(&self.oid)
    }
}

/// The definition of an attribute type (RFC 4512 section 4.1.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AttributeTypeDefinition {
    /// Identifier, names, description.
    pub head: Head,
    /// `SUP`: the supertype, by name or identifier.
    pub superior: Option<String>,
    /// `EQUALITY` rule by name or identifier.
    pub equality: Option<String>,
    /// `ORDERING` rule by name or identifier.
    pub ordering: Option<String>,
    /// `SUBSTR` rule by name or identifier.
    pub substring: Option<String>,
    /// `SYNTAX` identifier.
    pub syntax: Option<String>,
    /// The number in braces after the syntax: the length, in characters, that a server should at least take.
    pub length_bound: Option<u32>,
    /// `SINGLE-VALUE`.
    pub is_single_value: bool,
    /// `COLLECTIVE`.
    pub is_collective: bool,
    /// `NO-USER-MODIFICATION`.
    pub is_no_user_modification: bool,
    /// `USAGE`.
    pub usage: Usage,
}

/// The definition of an object class (RFC 4512 section 4.1.1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObjectClassDefinition {
    /// Identifier, names, description.
    pub head: Head,
    /// `SUP`: superclasses by name or identifier.
    pub superiors: Vec<String>,
    /// The kind of class.
    pub kind: super::ClassKind,
    /// `MUST`: attribute types by name or identifier.
    pub must: Vec<String>,
    /// `MAY`: attribute types by name or identifier.
    pub may: Vec<String>,
}

/// The definition of an LDAP syntax (RFC 4512 section 4.1.5).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SyntaxDefinition {
    /// Identifier, description; a syntax has no names.
    pub head: Head,
}

/// The definition of a matching rule (RFC 4512 section 4.1.3).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MatchingRuleDefinition {
    /// Identifier, names, description.
    pub head: Head,
    /// `SYNTAX` of assertions.
    pub syntax: String,
}

/// The definition of a matching rule use (RFC 4512 section 4.1.4): the types that a rule can be applied to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MatchingRuleUseDefinition {
    /// Identifier (the rule's), names, description.
    pub head: Head,
    /// `APPLIES`: attribute types by name or identifier.
    pub applies: Vec<String>,
}

/// The definition of a DIT content rule (RFC 4512 section 4.1.6).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ContentRuleDefinition {
    /// Identifier (the structural class'), names, description.
    pub head: Head,
    /// `AUX`: auxiliary classes that entries of the class may have.
    pub auxiliary: Vec<String>,
    /// `MUST`: attribute types in addition to the classes'.
    pub must: Vec<String>,
    /// `MAY`: attribute types in addition to the classes'.
    pub may: Vec<String>,
    /// `NOT`: attribute types that may not be used although a class allows them.
    pub not: Vec<String>,
}

/// The definition of a DIT structure rule (RFC 4512 section 4.1.7.1).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StructureRuleDefinition {
    /// The rule's number in `oid`, names, description.
    pub head: Head,
    /// `FORM`: the name form.
    pub form: String,
    /// `SUP`: numbers of superior rules.
    pub superiors: Vec<String>,
}

/// The definition of a name form (RFC 4512 section 4.1.7.2).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameFormDefinition {
    /// Identifier, names, description.
    pub head: Head,
    /// `OC`: the structural class.
    pub class: String,
    /// `MUST`: types that an RDN has.
    pub must: Vec<String>,
    /// `MAY`: types that an RDN may have.
    pub may: Vec<String>,
}

/// A definition of any kind.
///
/// ```
/// use cowslip_ldap::schema::{Definition, Element};
/// let text = "( 2.5.4.3 NAME ( 'cn' 'commonName' ) SUP name )";
/// let definition = Definition::parse(Element::AttributeType, text)?;
/// assert_eq!(definition.head().name(), "cn");
/// assert_eq!(definition.to_string(), text);
/// # Ok::<(), cowslip_ldap::schema::DefinitionError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Definition {
    /// `attributeTypes`.
    AttributeType(AttributeTypeDefinition),
    /// `objectClasses`.
    ObjectClass(ObjectClassDefinition),
    /// `ldapSyntaxes`.
    Syntax(SyntaxDefinition),
    /// `matchingRules`.
    MatchingRule(MatchingRuleDefinition),
    /// `matchingRuleUse`.
    MatchingRuleUse(MatchingRuleUseDefinition),
    /// `dITContentRules`.
    ContentRule(ContentRuleDefinition),
    /// `dITStructureRules`.
    StructureRule(StructureRuleDefinition),
    /// `nameForms`.
    NameForm(NameFormDefinition),
}

/// The kinds of schema elements, each an attribute of the subschema entry (RFC 4512 section 4.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Element {
    /// `attributeTypes`.
    AttributeType,
    /// `objectClasses`.
    ObjectClass,
    /// `ldapSyntaxes`.
    Syntax,
    /// `matchingRules`.
    MatchingRule,
    /// `matchingRuleUse`.
    MatchingRuleUse,
    /// `dITContentRules`.
    ContentRule,
    /// `dITStructureRules`.
    StructureRule,
    /// `nameForms`.
    NameForm,
}

impl Element {
    /// All kinds.
    pub const ALL: [Element; 8] = [
        Element::Syntax,
        Element::MatchingRule,
        Element::MatchingRuleUse,
        Element::AttributeType,
        Element::ObjectClass,
        Element::ContentRule,
        Element::StructureRule,
        Element::NameForm,
    ];

    /// The attribute of the subschema entry that holds this kind.
    #[must_use]
    pub const fn attribute(self) -> &'static str {
        match self {
            Element::AttributeType => "attributeTypes",
            Element::ObjectClass => "objectClasses",
            Element::Syntax => "ldapSyntaxes",
            Element::MatchingRule => "matchingRules",
            Element::MatchingRuleUse => "matchingRuleUse",
            Element::ContentRule => "dITContentRules",
            Element::StructureRule => "dITStructureRules",
            Element::NameForm => "nameForms",
        }
    }

    /// The kind whose attribute has this name, with slapd's prefix `olc` or without.
    #[must_use]
    pub fn by_attribute(name: &str) -> Option<Element> {
        let name = match name.get(..3) {
            Some(olc) if olc.eq_ignore_ascii_case("olc") => &name[3..],
            _ => name,
        };
        Self::ALL.into_iter().find(|element| element.attribute().eq_ignore_ascii_case(name))
    }

    /// The kind that a line of a `.schema` file defines by its first word.
    #[must_use]
    pub fn by_directive(word: &str) -> Option<Element> {
        const DIRECTIVES: [(&str, Element); 9] = [
            ("attribute", Element::AttributeType),
            ("attributetype", Element::AttributeType),
            ("objectclass", Element::ObjectClass),
            ("ldapsyntax", Element::Syntax),
            ("syntax", Element::Syntax),
            ("matchingrule", Element::MatchingRule),
            ("ditcontentrule", Element::ContentRule),
            ("ditstructurerule", Element::StructureRule),
            ("nameform", Element::NameForm),
        ];
        let found = DIRECTIVES.iter().find(|(directive, _)| directive.eq_ignore_ascii_case(word));
        found.map(|(_, element)| *element)
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Element::AttributeType => "attribute type",
            Element::ObjectClass => "object class",
            Element::Syntax => "syntax",
            Element::MatchingRule => "matching rule",
            Element::MatchingRuleUse => "matching rule use",
            Element::ContentRule => "content rule",
            Element::StructureRule => "structure rule",
            Element::NameForm => "name form",
        })
    }
}

impl Definition {
    /// What kind of element this defines.
    #[must_use]
    pub fn element(&self) -> Element {
        match self {
            Definition::AttributeType(_) => Element::AttributeType,
            Definition::ObjectClass(_) => Element::ObjectClass,
            Definition::Syntax(_) => Element::Syntax,
            Definition::MatchingRule(_) => Element::MatchingRule,
            Definition::MatchingRuleUse(_) => Element::MatchingRuleUse,
            Definition::ContentRule(_) => Element::ContentRule,
            Definition::StructureRule(_) => Element::StructureRule,
            Definition::NameForm(_) => Element::NameForm,
        }
    }

    /// Identifier, names and description.
    #[must_use]
    pub fn head(&self) -> &Head {
        match self {
            Definition::AttributeType(it) => &it.head,
            Definition::ObjectClass(it) => &it.head,
            Definition::Syntax(it) => &it.head,
            Definition::MatchingRule(it) => &it.head,
            Definition::MatchingRuleUse(it) => &it.head,
            Definition::ContentRule(it) => &it.head,
            Definition::StructureRule(it) => &it.head,
            Definition::NameForm(it) => &it.head,
        }
    }
}

/// Writes the parts of a definition in the RFC's order.
struct Writer<'a, 'f>(&'a mut fmt::Formatter<'f>);

impl Writer<'_, '_> {
    fn open(&mut self, head: &Head) -> fmt::Result {
        write!(self.0, "( {}", head.oid)?;
        match head.names.as_slice() {
            [] => {}
            names => {
                self.0.write_str(" NAME")?;
                self.quoted(names)?;
            }
        }
        if let Some(description) = &head.description {
            self.0.write_str(" DESC")?;
            self.quoted(std::slice::from_ref(description))?;
        }
        self.flag("OBSOLETE", head.is_obsolete)
    }

    fn close(&mut self, head: &Head) -> fmt::Result {
        for (name, values) in &head.extensions {
            write!(self.0, " {name}")?;
            self.quoted(values)?;
        }
        self.0.write_str(" )")
    }

    fn flag(&mut self, keyword: &str, is_set: bool) -> fmt::Result {
        if is_set { write!(self.0, " {keyword}") } else { Ok(()) }
    }

    fn word(&mut self, keyword: &str, word: &str) -> fmt::Result {
        write!(self.0, " {keyword} {word}")
    }

    fn optional(&mut self, keyword: &str, word: Option<&String>) -> fmt::Result {
        word.map_or(Ok(()), |word| self.word(keyword, word))
    }

    /// `'one'` or `( 'one' 'other' )`, `'` and `\` escaped.
    fn quoted(&mut self, values: &[String]) -> fmt::Result {
        let is_list = values.len() != 1;
        self.0.write_str(if is_list { " (" } else { "" })?;
        for value in values {
            self.0.write_str(" '")?;
            for character in value.chars() {
                match character {
                    '\'' => self.0.write_str("\\27")?,
                    '\\' => self.0.write_str("\\5C")?,
                    other => fmt::Write::write_char(self.0, other)?,
                }
            }
            self.0.write_str("'")?;
        }
        self.0.write_str(if is_list { " )" } else { "" })
    }

    /// `KEYWORD one` or `KEYWORD ( one $ other )`; nothing if the list is empty.
    fn list(&mut self, keyword: &str, words: &[String], separator: &str) -> fmt::Result {
        match words {
            [] => Ok(()),
            [one] => self.word(keyword, one),
            many => write!(self.0, " {keyword} ( {} )", many.join(separator)),
        }
    }
}

impl fmt::Display for Definition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Definition::AttributeType(it) => it.fmt(f),
            Definition::ObjectClass(it) => it.fmt(f),
            Definition::Syntax(it) => {
                let mut writer = Writer(f);
                writer.open(&it.head)?;
                writer.close(&it.head)
            }
            Definition::MatchingRule(it) => {
                let mut writer = Writer(f);
                writer.open(&it.head)?;
                writer.word("SYNTAX", &it.syntax)?;
                writer.close(&it.head)
            }
            Definition::MatchingRuleUse(it) => {
                let mut writer = Writer(f);
                writer.open(&it.head)?;
                writer.list("APPLIES", &it.applies, " $ ")?;
                writer.close(&it.head)
            }
            Definition::ContentRule(it) => {
                let mut writer = Writer(f);
                writer.open(&it.head)?;
                writer.list("AUX", &it.auxiliary, " $ ")?;
                writer.list("MUST", &it.must, " $ ")?;
                writer.list("MAY", &it.may, " $ ")?;
                writer.list("NOT", &it.not, " $ ")?;
                writer.close(&it.head)
            }
            Definition::StructureRule(it) => {
                let mut writer = Writer(f);
                writer.open(&it.head)?;
                writer.word("FORM", &it.form)?;
                writer.list("SUP", &it.superiors, " ")?;
                writer.close(&it.head)
            }
            Definition::NameForm(it) => {
                let mut writer = Writer(f);
                writer.open(&it.head)?;
                writer.word("OC", &it.class)?;
                writer.list("MUST", &it.must, " $ ")?;
                writer.list("MAY", &it.may, " $ ")?;
                writer.close(&it.head)
            }
        }
    }
}

impl fmt::Display for AttributeTypeDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut writer = Writer(f);
        writer.open(&self.head)?;
        writer.optional("SUP", self.superior.as_ref())?;
        writer.optional("EQUALITY", self.equality.as_ref())?;
        writer.optional("ORDERING", self.ordering.as_ref())?;
        writer.optional("SUBSTR", self.substring.as_ref())?;
        writer.optional("SYNTAX", self.syntax.as_ref())?;
        if let (Some(_), Some(bound)) = (&self.syntax, self.length_bound) {
            write!(writer.0, "{{{bound}}}")?;
        }
        writer.flag("SINGLE-VALUE", self.is_single_value)?;
        writer.flag("COLLECTIVE", self.is_collective)?;
        writer.flag("NO-USER-MODIFICATION", self.is_no_user_modification)?;
        if self.usage != Usage::UserApplications {
            writer.word("USAGE", self.usage.keyword())?;
        }
        writer.close(&self.head)
    }
}

impl fmt::Display for ObjectClassDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut writer = Writer(f);
        writer.open(&self.head)?;
        writer.list("SUP", &self.superiors, " $ ")?;
        writer.flag(self.kind.keyword(), true)?;
        writer.list("MUST", &self.must, " $ ")?;
        writer.list("MAY", &self.may, " $ ")?;
        writer.close(&self.head)
    }
}
