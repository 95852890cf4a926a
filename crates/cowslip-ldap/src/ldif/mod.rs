//! LDIF (RFC 2849): entries and changes as lines of text.
//!
//! [`LdifReader`] streams records from anything that is read in pieces and goes on with the next record after an error;
//! [`LdifWriter`] writes what the reader reads back unchanged. Invariants: memory is bounded by [`LdifLimits`], whatever
//! the input; each error names its line; nothing is fetched or opened because a file says so, unless
//! [`LdifOptions::reads_files`] allows it.

pub(crate) mod base64;
mod change;
mod lines;
mod reader;
mod writer;

pub use reader::LdifReader;
pub use writer::LdifWriter;

use crate::description::DescriptionError;
use crate::entry::Attribute;

/// Most octets of a line, its continuations included, unless [`LdifLimits`] says otherwise.
pub const LDIF_LINE_BYTES_MAX: usize = 64 << 20;

/// Most values of a record, unless [`LdifLimits`] says otherwise.
pub const LDIF_RECORD_VALUES_MAX: usize = 2_000_000;

/// Most octets of a record's lines, unless [`LdifLimits`] says otherwise.
pub const LDIF_RECORD_BYTES_MAX: usize = 512 << 20;

/// The longest line that is written; what is longer is folded.
pub const LDIF_COLUMNS: usize = 76;

/// What a reader takes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LdifLimits {
    /// Octets of a line, its continuations included.
    pub line_bytes: usize,
    /// Values of a record: those of all its attributes or changes.
    pub record_values: usize,
    /// Octets of a record's lines.
    pub record_bytes: usize,
}

impl Default for LdifLimits {
    fn default() -> Self {
        Self {
            line_bytes: LDIF_LINE_BYTES_MAX,
            record_values: LDIF_RECORD_VALUES_MAX,
            record_bytes: LDIF_RECORD_BYTES_MAX,
        }
    }
}

/// How a reader behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LdifOptions {
    /// What is taken at most.
    pub limits: LdifLimits,
    /// Whether values may be given as `attribute:< file:///path`. Off by default: the file's author would read this
    /// host's files with the importer's rights. No other kind of URL is ever followed.
    pub reads_files: bool,
}

/// A record: an entry, or a change of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LdifRecord {
    /// The line with its name, the first being 1.
    pub line: u64,
    /// The distinguished name as text, not yet parsed.
    pub dn: String,
    /// Controls that go with a change.
    pub controls: Vec<LdifControl>,
    /// What the record says about the name.
    pub body: LdifBody,
}

/// What a record says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LdifBody {
    /// The entry as it is: a content record, without `changetype`.
    Entry(Vec<Attribute>),
    /// `changetype: add`: the entry is added.
    Add(Vec<Attribute>),
    /// `changetype: delete`: the entry goes.
    Delete,
    /// `changetype: modify`: the changes, in their order.
    Modify(Vec<LdifModification>),
    /// `changetype: modrdn` or `moddn`: the entry gets another name.
    Rename {
        /// The new RDN.
        new_rdn: String,
        /// Whether the values of the old RDN go from the entry.
        deletes_old_rdn: bool,
        /// The new entry above, if it moves.
        new_superior: Option<String>,
    },
}

/// One step of a modification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LdifModification {
    /// What is done.
    pub operation: LdifOperation,
    /// The attribute, and the values that the step is about.
    pub attribute: Attribute,
}

/// What a step of a modification does (RFC 4511 section 4.6, RFC 4525).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LdifOperation {
    /// Adds the values.
    Add,
    /// Deletes the values, or without values the attribute.
    Delete,
    /// Replaces all values.
    Replace,
    /// Adds a number to the value.
    Increment,
}

/// A control of a change (RFC 4511 section 4.1.11).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LdifControl {
    /// The control's object identifier.
    pub oid: String,
    /// Whether the change must not be made by a server that doesn't know the control.
    pub is_critical: bool,
    /// The control's value.
    pub value: Option<Vec<u8>>,
}

/// What is wrong, and in which line.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {kind}")]
pub struct LdifError {
    /// The line, the first being 1.
    pub line: u64,
    /// What is wrong there.
    #[source]
    pub kind: LdifErrorKind,
}

/// What is wrong with a line or a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LdifErrorKind {
    /// The input can't be read further. The reader ends.
    #[error("reading failed: {0}")]
    Io(std::io::Error),
    /// A line, its continuations included, is longer than [`LdifLimits::line_bytes`].
    #[error("a line of more than {max} bytes")]
    LineTooLong {
        /// The limit.
        max: usize,
    },
    /// A record has more values than [`LdifLimits::record_values`].
    #[error("a record of more than {max} values")]
    TooManyValues {
        /// The limit.
        max: usize,
    },
    /// A record's lines are longer than [`LdifLimits::record_bytes`].
    #[error("a record of more than {max} bytes")]
    RecordTooLong {
        /// The limit.
        max: usize,
    },
    /// A continuation without a line before it.
    #[error("a continuation without a line before it")]
    LoneContinuation,
    /// A line without a colon.
    #[error("a colon should follow the name of the attribute")]
    NoColon,
    /// Another line should stand here.
    #[error("expected {expected}")]
    Expected {
        /// Which one, in words.
        expected: &'static str,
    },
    /// The `version` is not 1.
    #[error("version {found:?}; only version 1 is known")]
    Version {
        /// What stands there.
        found: String,
    },
    /// What stands before the colon is no attribute description.
    #[error("{0}")]
    Description(DescriptionError),
    /// A value with NUL, carriage return: such values are written in base64.
    #[error("byte {offset} of the line, {}, must be written in base64", .byte.escape_ascii())]
    Character {
        /// Where in the line, from 0.
        offset: usize,
        /// The octet.
        byte: u8,
    },
    /// A value after `::` that is not base64.
    #[error("not base64 (RFC 4648 section 4)")]
    Base64,
    /// A name or word that is not UTF-8.
    #[error("not UTF-8")]
    NotUtf8,
    /// A value is given as a URL, and the reader doesn't follow such.
    #[error("a value given as the URL {url:?}, which is not followed")]
    UrlRefused {
        /// The URL.
        url: String,
    },
    /// A file that gives a value can't be read.
    #[error("the value's file {path:?}: {error}")]
    File {
        /// The path.
        path: String,
        /// Why not.
        error: std::io::Error,
    },
    /// An unknown `changetype`.
    #[error("unknown changetype {found:?}")]
    ChangeType {
        /// What stands there.
        found: String,
    },
    /// A value of another attribute inside a step of a modification.
    #[error("a value of {found:?} among those of {expected:?}")]
    OtherAttribute {
        /// The step's attribute.
        expected: String,
        /// The attribute that was found.
        found: String,
    },
    /// A `control` line is not an object identifier, an optional `true` or `false`, and an optional value.
    #[error("a control is an object identifier, then true or false, then a value")]
    Control,
}
