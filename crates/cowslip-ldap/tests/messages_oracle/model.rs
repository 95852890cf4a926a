//! Messages as plain owned data, and strategies for random ones. Lengths cross 127 and 255 octets.

use cowslip_ldap::filter::Filter;
use cowslip_ldap::message::{ChangeOperation, Dereference, MessageId, OperationKind, Scope};
use cowslip_ldap::result::ResultCode;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

#[derive(Clone, Debug)]
pub(crate) struct Message<T> {
    pub(crate) id: u32,
    pub(crate) what: T,
    pub(crate) controls: Vec<AControl>,
}

#[derive(Clone, Debug)]
pub(crate) struct AControl {
    pub(crate) oid: String,
    pub(crate) is_critical: bool,
    pub(crate) value: Option<Vec<u8>>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ask {
    Bind {
        name: String,
        password: Vec<u8>,
    },
    Sasl {
        name: String,
        mechanism: String,
        credentials: Option<Vec<u8>>,
    },
    Unbind,
    Search {
        base: String,
        scope: Scope,
        dereference: Dereference,
        size_limit: u32,
        time_limit_s: u32,
        types_only: bool,
        filter: Filter,
        attributes: Vec<String>,
    },
    Modify {
        name: String,
        changes: Vec<(ChangeOperation, String, Vec<Vec<u8>>)>,
    },
    Add {
        name: String,
        attributes: Vec<(String, Vec<Vec<u8>>)>,
    },
    Delete(String),
    ModifyDn {
        name: String,
        new_rdn: String,
        deletes_old_rdn: bool,
        new_superior: Option<String>,
    },
    Compare {
        name: String,
        attribute: String,
        value: Vec<u8>,
    },
    Abandon(u32),
    Extended {
        name: String,
        value: Option<Vec<u8>>,
    },
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) code: ResultCode,
    pub(crate) matched: String,
    pub(crate) message: String,
    pub(crate) referrals: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Bind { outcome: Outcome, credentials: Option<Vec<u8>> },
    Entry { name: String, attributes: Vec<(String, Vec<Vec<u8>>)> },
    Reference(Vec<String>),
    Done { operation: OperationKind, outcome: Outcome },
    Extended { outcome: Outcome, name: Option<String>, value: Option<Vec<u8>> },
    Intermediate { name: Option<String>, value: Option<Vec<u8>> },
}

impl Ask {
    /// The same with its sets in one order.
    pub(crate) fn sorted(mut self) -> Self {
        match &mut self {
            Self::Search { filter, .. } => sort_filter(filter),
            Self::Modify { changes, .. } => changes.iter_mut().for_each(|(_, _, values)| values.sort()),
            Self::Add { attributes, .. } => attributes.iter_mut().for_each(|(_, values)| values.sort()),
            _ => {}
        }
        self
    }
}

impl Answer {
    /// The same with its sets in one order.
    pub(crate) fn sorted(mut self) -> Self {
        if let Self::Entry { attributes, .. } = &mut self {
            attributes.iter_mut().for_each(|(_, values)| values.sort());
        }
        self
    }
}

fn sort_filter(filter: &mut Filter) {
    match filter {
        Filter::And(parts) | Filter::Or(parts) => {
            parts.iter_mut().for_each(sort_filter);
            parts.sort_by_key(|part| format!("{part:?}"));
        }
        Filter::Not(part) => sort_filter(part),
        _ => {}
    }
}

pub(crate) fn id(number: u32) -> MessageId {
    MessageId::new(number).expect("in range")
}

fn number() -> impl Strategy<Value = u32> {
    prop_oneof![1..300_u32, Just(32_767), Just(32_768), Just(8_388_608), Just(2_147_483_647)]
}

fn octets() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![8 => vec(any::<u8>(), 0..6), 1 => vec(any::<u8>(), 120..135), 1 => vec(any::<u8>(), 250..260)]
}

fn text() -> impl Strategy<Value = String> {
    let characters = || prop_oneof![9 => (32_u8..127).prop_map(char::from), 1 => any::<char>()];
    let string = |range| vec(characters(), range).prop_map(String::from_iter);
    prop_oneof![8 => string(0..8), 1 => string(118..130), 1 => string(245..258)]
}

fn attributes(values_min: usize, min: usize) -> impl Strategy<Value = Vec<(String, Vec<Vec<u8>>)>> {
    vec((text(), vec(octets(), values_min..4)), min..5)
}

fn filter() -> impl Strategy<Value = Filter> {
    let pair = || (text(), octets());
    let term = prop_oneof![
        pair().prop_map(|(attribute, value)| Filter::Equality { attribute, value }),
        pair().prop_map(|(attribute, value)| Filter::GreaterOrEqual { attribute, value }),
        pair().prop_map(|(attribute, value)| Filter::LessOrEqual { attribute, value }),
        pair().prop_map(|(attribute, value)| Filter::Approximate { attribute, value }),
        text().prop_map(Filter::Present),
        (text(), option::of(octets()), vec(octets(), 0..3), option::of(octets()))
            .prop_filter("a piece at least", |(_, initial, any, last)| initial.is_some()
                || !any.is_empty()
                || last.is_some())
            .prop_map(|(attribute, initial, any, last)| Filter::Substrings { attribute, initial, any, last }),
        (option::of(text()), option::of(text()), octets(), any::<bool>())
            .prop_filter("a subject", |(rule, attribute, _, _)| rule.is_some() || attribute.is_some())
            .prop_map(|(rule, attribute, value, dn_attributes)| {
                Filter::Extensible { rule, attribute, value, dn_attributes }
            }),
    ];
    term.prop_recursive(5, 24, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Filter::And),
            vec(inner.clone(), 0..4).prop_map(Filter::Or),
            inner.prop_map(|part| Filter::Not(Box::new(part))),
        ]
    })
}

fn search() -> impl Strategy<Value = Ask> {
    let scope = select(vec![Scope::Base, Scope::One, Scope::Subtree]);
    let dereference = select(vec![
        Dereference::Never,
        Dereference::InSearching,
        Dereference::FindingBase,
        Dereference::Always,
    ]);
    (text(), scope, dereference, number(), 0..3_u32, any::<bool>(), filter(), vec(text(), 0..4)).prop_map(
        |(base, scope, dereference, size_limit, time_limit_s, types_only, filter, attributes)| Ask::Search {
            base,
            scope,
            dereference,
            size_limit,
            time_limit_s,
            types_only,
            filter,
            attributes,
        },
    )
}

fn ask() -> impl Strategy<Value = Ask> {
    let operation = select(vec![ChangeOperation::Add, ChangeOperation::Delete, ChangeOperation::Replace]);
    let change = (operation, text(), vec(octets(), 0..4))
        .prop_filter("an add has values", |(operation, _, values)| {
            *operation != ChangeOperation::Add || !values.is_empty()
        });
    prop_oneof![
        (text(), octets()).prop_map(|(name, password)| Ask::Bind { name, password }),
        (text(), text(), option::of(octets())).prop_map(|(name, mechanism, credentials)| Ask::Sasl {
            name,
            mechanism,
            credentials
        }),
        Just(Ask::Unbind),
        search(),
        (text(), vec(change, 0..4)).prop_map(|(name, changes)| Ask::Modify { name, changes }),
        (text(), attributes(1, 1)).prop_map(|(name, attributes)| Ask::Add { name, attributes }),
        text().prop_map(Ask::Delete),
        (text(), text(), any::<bool>(), option::of(text())).prop_map(
            |(name, new_rdn, deletes_old_rdn, new_superior)| Ask::ModifyDn {
                name,
                new_rdn,
                deletes_old_rdn,
                new_superior
            }
        ),
        (text(), text(), octets()).prop_map(|(name, attribute, value)| Ask::Compare {
            name,
            attribute,
            value
        }),
        number().prop_map(Ask::Abandon),
        (text(), option::of(octets())).prop_map(|(name, value)| Ask::Extended { name, value }),
    ]
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let code =
        select(vec![ResultCode::Success, ResultCode::NoSuchObject, ResultCode::Referral, ResultCode::Other]);
    (code, text(), text(), vec(text(), 0..3)).prop_map(|(code, matched, message, referrals)| Outcome {
        code,
        matched,
        message,
        referrals,
    })
}

fn an_answer() -> impl Strategy<Value = Answer> {
    let operation = select(vec![
        OperationKind::Search,
        OperationKind::Modify,
        OperationKind::Add,
        OperationKind::Delete,
        OperationKind::ModifyDn,
        OperationKind::Compare,
    ]);
    prop_oneof![
        (outcome(), option::of(octets()))
            .prop_map(|(outcome, credentials)| Answer::Bind { outcome, credentials }),
        (text(), attributes(0, 0)).prop_map(|(name, attributes)| Answer::Entry { name, attributes }),
        vec(text(), 1..4).prop_map(Answer::Reference),
        (operation, outcome()).prop_map(|(operation, outcome)| Answer::Done { operation, outcome }),
        (outcome(), option::of(text()), option::of(octets()))
            .prop_map(|(outcome, name, value)| Answer::Extended { outcome, name, value }),
        (option::of(text()), option::of(octets()))
            .prop_map(|(name, value)| Answer::Intermediate { name, value }),
    ]
}

fn controls() -> impl Strategy<Value = Vec<AControl>> {
    let control = (text(), any::<bool>(), option::of(octets()))
        .prop_map(|(oid, is_critical, value)| AControl { oid, is_critical, value });
    prop_oneof![2 => Just(Vec::new()), 1 => vec(control, 0..4)]
}

/// Requests.
pub(crate) fn asks() -> impl Strategy<Value = Message<Ask>> {
    (number(), ask(), controls()).prop_map(|(id, what, mut controls)| {
        // What is written for these takes none.
        if matches!(what, Ask::Unbind | Ask::Abandon(_)) {
            controls.clear();
        }
        Message { id, what, controls }
    })
}

/// Responses.
pub(crate) fn answers() -> impl Strategy<Value = Message<Answer>> {
    (number(), an_answer(), controls()).prop_map(|(id, what, controls)| Message { id, what, controls })
}
