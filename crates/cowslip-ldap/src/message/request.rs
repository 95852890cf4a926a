//! Requests as a server sees them, borrowed from the frame.

use super::values::{Attributes, Changes, Texts};
use super::{Control, MessageId, tags};
use crate::filter::Filter;

/// A request: its number, what it asks for, and controls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The number that its answers carry.
    pub id: MessageId,
    /// What it asks for.
    pub operation: Operation<'a>,
    /// Its controls in the order sent.
    pub controls: Vec<Control<'a>>,
}

/// What a request asks for (RFC 4511 sections 4.2 to 4.12). Names of entries are octets as sent: whether they are
/// distinguished names shows when the schema is at hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation<'a> {
    /// Says who the client is.
    Bind(BindRequest<'a>),
    /// Says goodbye. Without answer.
    Unbind,
    /// Asks for entries.
    Search(Box<SearchRequest<'a>>),
    /// Changes an entry.
    Modify(ModifyRequest<'a>),
    /// Adds an entry.
    Add(AddRequest<'a>),
    /// Deletes the entry of this name.
    Delete(&'a [u8]),
    /// Renames or moves an entry.
    ModifyDn(ModifyDnRequest<'a>),
    /// Asks whether an entry has a value.
    Compare(CompareRequest<'a>),
    /// Loses interest in the operation of this number. Without answer.
    Abandon(MessageId),
    /// Anything else.
    Extended(ExtendedRequest<'a>),
}

impl Operation<'_> {
    /// Which operation it is.
    #[must_use]
    pub const fn kind(&self) -> OperationKind {
        match self {
            Self::Bind(_) => OperationKind::Bind,
            Self::Unbind => OperationKind::Unbind,
            Self::Search(_) => OperationKind::Search,
            Self::Modify(_) => OperationKind::Modify,
            Self::Add(_) => OperationKind::Add,
            Self::Delete(_) => OperationKind::Delete,
            Self::ModifyDn(_) => OperationKind::ModifyDn,
            Self::Compare(_) => OperationKind::Compare,
            Self::Abandon(_) => OperationKind::Abandon,
            Self::Extended(_) => OperationKind::Extended,
        }
    }
}

/// The operations of RFC 4511.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named as in RFC 4511, described at `Operation`")]
pub enum OperationKind {
    Bind,
    Unbind,
    Search,
    Modify,
    Add,
    Delete,
    ModifyDn,
    Compare,
    Abandon,
    Extended,
}

impl OperationKind {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Bind,
        Self::Unbind,
        Self::Search,
        Self::Modify,
        Self::Add,
        Self::Delete,
        Self::ModifyDn,
        Self::Compare,
        Self::Abandon,
        Self::Extended,
    ];

    /// The name in logs and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bind => "bind",
            Self::Unbind => "unbind",
            Self::Search => "search",
            Self::Modify => "modify",
            Self::Add => "add",
            Self::Delete => "delete",
            Self::ModifyDn => "modifyDN",
            Self::Compare => "compare",
            Self::Abandon => "abandon",
            Self::Extended => "extended",
        }
    }

    /// Whether the operation ends with an answer.
    #[must_use]
    pub const fn has_answer(self) -> bool {
        self.answer_tag().is_some()
    }

    /// The tag of the message that ends it.
    pub(super) const fn answer_tag(self) -> Option<u8> {
        match self {
            Self::Bind => Some(tags::BIND_RESPONSE),
            Self::Search => Some(tags::SEARCH_DONE),
            Self::Modify => Some(tags::MODIFY_RESPONSE),
            Self::Add => Some(tags::ADD_RESPONSE),
            Self::Delete => Some(tags::DELETE_RESPONSE),
            Self::ModifyDn => Some(tags::MODIFY_DN_RESPONSE),
            Self::Compare => Some(tags::COMPARE_RESPONSE),
            Self::Extended => Some(tags::EXTENDED_RESPONSE),
            Self::Unbind | Self::Abandon => None,
        }
    }

    /// The operation that a request's tag stands for.
    pub(super) const fn from_tag(tag: u8) -> Option<Self> {
        match tag {
            tags::BIND_REQUEST => Some(Self::Bind),
            tags::UNBIND_REQUEST => Some(Self::Unbind),
            tags::SEARCH_REQUEST => Some(Self::Search),
            tags::MODIFY_REQUEST => Some(Self::Modify),
            tags::ADD_REQUEST => Some(Self::Add),
            tags::DELETE_REQUEST => Some(Self::Delete),
            tags::MODIFY_DN_REQUEST => Some(Self::ModifyDn),
            tags::COMPARE_REQUEST => Some(Self::Compare),
            tags::ABANDON_REQUEST => Some(Self::Abandon),
            tags::EXTENDED_REQUEST => Some(Self::Extended),
            _ => None,
        }
    }
}

/// A bind of version 3 (RFC 4511 section 4.2).
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct BindRequest<'a> {
    /// The entry to be; empty for nobody, and often with SASL.
    pub name: &'a [u8],
    /// How it is proved.
    pub authentication: Authentication<'a>,
}

/// How a client proves who it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Authentication<'a> {
    /// By this password, which may be empty.
    Simple(&'a [u8]),
    /// By a SASL mechanism (RFC 4422).
    Sasl {
        /// Its name; empty to break off the exchange.
        mechanism: &'a str,
        /// The client's part of this step.
        credentials: Option<&'a [u8]>,
    },
}

// Secrets stay out of logs.
impl std::fmt::Debug for Authentication<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Simple(password) => write!(f, "Simple({} bytes)", password.len()),
            Self::Sasl { mechanism, credentials } => {
                write!(f, "Sasl({mechanism}, {} bytes)", credentials.map_or(0, <[u8]>::len))
            }
        }
    }
}

impl std::fmt::Debug for BindRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = String::from_utf8_lossy(self.name);
        f.debug_struct("BindRequest")
            .field("name", &name)
            .field("authentication", &self.authentication)
            .finish()
    }
}

/// Which entries a search looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// The base entry alone.
    Base,
    /// The entries right below the base.
    One,
    /// The base and all below it.
    Subtree,
    /// All below the base, without it (draft-sermersheim-ldap-subordinate-scope).
    Subordinates,
}

impl Scope {
    /// The number that travels.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Base => 0,
            Self::One => 1,
            Self::Subtree => 2,
            Self::Subordinates => 3,
        }
    }

    /// The scope of a number.
    #[must_use]
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Base),
            1 => Some(Self::One),
            2 => Some(Self::Subtree),
            3 => Some(Self::Subordinates),
            _ => None,
        }
    }
}

/// When aliases are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dereference {
    /// Never.
    Never,
    /// Below the base, not for the base.
    InSearching,
    /// For the base, not below it.
    FindingBase,
    /// Always.
    Always,
}

impl Dereference {
    /// The number that travels.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Never => 0,
            Self::InSearching => 1,
            Self::FindingBase => 2,
            Self::Always => 3,
        }
    }

    /// What a number stands for.
    #[must_use]
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Never),
            1 => Some(Self::InSearching),
            2 => Some(Self::FindingBase),
            3 => Some(Self::Always),
            _ => None,
        }
    }
}

/// A search (RFC 4511 section 4.5.1).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchRequest<'a> {
    /// The entry to start from.
    pub base: &'a [u8],
    /// How far to go from there.
    pub scope: Scope,
    /// Which aliases to follow.
    pub dereference: Dereference,
    /// Most entries that the client wants; 0 for all.
    pub size_limit: u32,
    /// Most seconds that the client wants to wait; 0 for any.
    pub time_limit_s: u32,
    /// Whether values are left out of the entries.
    pub types_only: bool,
    /// Which entries.
    pub filter: Filter,
    /// Which attributes of them; none stands for all user attributes.
    pub attributes: Texts<'a>,
}

/// A modify (RFC 4511 section 4.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModifyRequest<'a> {
    /// The entry.
    pub name: &'a [u8],
    /// What to change, all or nothing. May be empty, which changes nothing.
    pub changes: Changes<'a>,
}

/// What a change does with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangeOperation {
    /// Adds them.
    Add,
    /// Deletes them, or the whole attribute if there are none.
    Delete,
    /// Puts them in place of all there are.
    Replace,
    /// Adds the one number to each value (RFC 4525).
    Increment,
}

impl ChangeOperation {
    /// The number that travels.
    #[must_use]
    pub const fn number(self) -> u8 {
        match self {
            Self::Add => 0,
            Self::Delete => 1,
            Self::Replace => 2,
            Self::Increment => 3,
        }
    }

    /// The operation of a number.
    #[must_use]
    pub const fn from_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Add),
            1 => Some(Self::Delete),
            2 => Some(Self::Replace),
            3 => Some(Self::Increment),
            _ => None,
        }
    }
}

/// An add (RFC 4511 section 4.7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddRequest<'a> {
    /// The new entry's name.
    pub name: &'a [u8],
    /// Its attributes, each with a value at least.
    pub attributes: Attributes<'a>,
}

/// A rename or move (RFC 4511 section 4.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModifyDnRequest<'a> {
    /// The entry.
    pub name: &'a [u8],
    /// Its new RDN.
    pub new_rdn: &'a [u8],
    /// Whether values of the old RDN that are not in the new one are deleted.
    pub deletes_old_rdn: bool,
    /// Its new parent, if it moves.
    pub new_superior: Option<&'a [u8]>,
}

/// A compare (RFC 4511 section 4.10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompareRequest<'a> {
    /// The entry.
    pub name: &'a [u8],
    /// The attribute description.
    pub attribute: &'a str,
    /// The value that it is asked for.
    pub value: &'a [u8],
}

/// An extended operation (RFC 4511 section 4.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedRequest<'a> {
    /// Its object identifier in dotted form.
    pub name: &'a str,
    /// What it says, encoded as its specification has it.
    pub value: Option<&'a [u8]>,
}
