//! Filters as text: RFC 4515's rules and examples, errors with their places, limits, and the way there and back.

use cowslip_ldap::filter::{FILTER_DEPTH_MAX, FILTER_TERMS_MAX, Filter, FilterError};
use proptest::prelude::*;

#[test]
fn filters_come_back_as_they_were() {
    for text in [
        "(cn=Babs Jensen)",
        "(!(cn=Tim Howes))",
        "(&(objectClass=Person)(|(sn=Jensen)(cn=Babs J*)))",
        "(o=univ*of*mich*)",
        "(seeAlso=)",
        "(cn:caseExactMatch:=Fred Flintstone)",
        "(cn:=Betty Rubble)",
        "(sn:dn:2.4.6.8.10:=Barney Rubble)",
        "(o:dn:=Ace Industry)",
        "(:1.2.3:=Wilma Flintstone)",
        "(:DN:2.4.6.8.10:=Dino)".to_lowercase().as_str(),
        r"(o=Parens R Us \28for all your parenthetical needs\29)",
        r"(cn=*\2a*)",
        r"(filename=C:\5cMyFile)",
        r"(bin=\00\00\00\04)",
        "(sn=Lu\u{10d}i\u{107})",
        r"(sn=\ff\fe)",
        "(cn=*)",
        "(cn;lang-en=x)",
        "(cn=a  *)",
        "(cn= *)",
        "(cn~=x)",
        "(cn>=x)",
        "(cn<=x)",
        "(cn=a=b)",
        "(cn=:x)",
        "(&)",
        "(|)",
        "(2.5.4.3=x)",
    ] {
        let filter = Filter::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(filter.to_string(), text);
    }
}

#[test]
fn other_spellings_are_read() {
    for (text, same) in [
        ("cn=x", "(cn=x)"),
        (" ( cn=x) ", "( cn=x)"),
        ("(& (a=b)\n  (c=d)\n)", "(&(a=b)(c=d))"),
        ("(cn=a**b)", "(cn=a*b)"),
        (r"(cn=\C3\A4)", "(cn=\u{e4})"),
        ("(:dn:2.4.6.8.10:=x)", "(:DN:2.4.6.8.10:=x)"),
    ] {
        assert_eq!(Filter::parse(text), Filter::parse(same), "{text}");
        assert!(Filter::parse(text).is_ok(), "{text}");
    }
}

/// A text, and what the error is like.
type Refusal = (&'static str, fn(&FilterError) -> bool);

#[test]
fn other_texts_are_refused() {
    let cases: &[Refusal] = &[
        ("", |e| matches!(e, FilterError::Expected { offset: 0, .. })),
        ("(", |e| matches!(e, FilterError::Expected { .. })),
        ("()", |e| matches!(e, FilterError::Expected { offset: 1, .. })),
        (")", |e| matches!(e, FilterError::Expected { .. })),
        ("(cn)", |e| matches!(e, FilterError::Expected { .. })),
        ("(cn=x", |e| matches!(e, FilterError::Expected { offset: 5, .. })),
        ("(cn=x))", |e| matches!(e, FilterError::Trailing { offset: 6 })),
        ("(cn=x)(cn=y)", |e| matches!(e, FilterError::Trailing { .. })),
        ("(cn=(x)", |e| matches!(e, FilterError::Character { offset: 4, byte: b'(' })),
        ("(&(cn=x)", |e| matches!(e, FilterError::Expected { .. })),
        ("(&cn=x)", |e| matches!(e, FilterError::Expected { offset: 2, .. })),
        ("(!)", |e| matches!(e, FilterError::Expected { .. })),
        ("(!(cn=x)(cn=y))", |e| matches!(e, FilterError::Expected { .. })),
        ("(=x)", |e| matches!(e, FilterError::Attribute { offset: 1, .. })),
        ("(;x=y)", |e| matches!(e, FilterError::Attribute { .. })),
        ("(cn;=y)", |e| matches!(e, FilterError::Attribute { .. })),
        ("(c n=y)", |e| matches!(e, FilterError::Attribute { .. })),
        ("(>=y)", |e| matches!(e, FilterError::Attribute { .. })),
        (r"(cn=\4)", |e| matches!(e, FilterError::Escape { offset: 4 })),
        (r"(cn=\zz)", |e| matches!(e, FilterError::Escape { offset: 4 })),
        (r"(cn=a\*b)", |e| matches!(e, FilterError::Escape { .. })),
        ("(cn=a\0b)", |e| matches!(e, FilterError::Character { offset: 5, byte: 0 })),
        ("(cn>=a*)", |e| matches!(e, FilterError::Character { byte: b'*', .. })),
        ("(cn=**)", |e| matches!(e, FilterError::Expected { .. })),
        ("(:=x)", |e| matches!(e, FilterError::Expected { offset: 1, .. })),
        ("(:dn:=x)", |e| matches!(e, FilterError::Expected { offset: 1, .. })),
        ("(cn:dn:a:b:=x)", |e| matches!(e, FilterError::Rule { .. })),
        ("(cn::=x)", |e| matches!(e, FilterError::Rule { .. })),
        ("(cn:a b:=x)", |e| matches!(e, FilterError::Rule { .. })),
    ];
    for (text, is_expected) in cases {
        let error = Filter::parse(text).expect_err(text);
        assert!(is_expected(&error), "{text}: {error:?}");
    }
}

#[test]
fn limits_hold() {
    let nested = |depth: usize| format!("{}(cn=x){}", "(!".repeat(depth), ")".repeat(depth));
    let flat = |terms: usize| format!("(|{})", "(a=b)".repeat(terms));
    for depth in [1, 63, FILTER_DEPTH_MAX] {
        assert!(Filter::parse(&nested(depth)).is_ok(), "{depth}");
    }
    for depth in [FILTER_DEPTH_MAX + 1, 10_000, 1_000_000] {
        let refused = Filter::parse(&nested(depth));
        assert_eq!(refused, Err(FilterError::TooDeep { offset: 2 * FILTER_DEPTH_MAX + 1 }), "{depth}");
    }
    assert!(Filter::parse(&flat(FILTER_TERMS_MAX - 1)).is_ok());
    assert!(matches!(Filter::parse(&flat(FILTER_TERMS_MAX)), Err(FilterError::TooManyTerms { .. })));
}

fn attribute() -> impl Strategy<Value = String> {
    "[a-z][a-z0-9-]{0,5}(;lang-[a-z]{2})?"
}

fn value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..8),
        "[ *()\\\\=:a\u{e4}]{0,6}".prop_map(String::into_bytes),
    ]
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    value().prop_map(|mut piece| {
        piece.push(b'x');
        piece
    })
}

fn term() -> impl Strategy<Value = Filter> {
    let pieces = (prop::option::of(piece()), prop::collection::vec(piece(), 0..3), prop::option::of(piece()));
    let rule = prop::option::of("[a-z]{3,8}|1\\.2\\.[1-9]");
    prop_oneof![
        (attribute(), value()).prop_map(|(attribute, value)| Filter::Equality { attribute, value }),
        (attribute(), value()).prop_map(|(attribute, value)| Filter::GreaterOrEqual { attribute, value }),
        (attribute(), value()).prop_map(|(attribute, value)| Filter::LessOrEqual { attribute, value }),
        (attribute(), value()).prop_map(|(attribute, value)| Filter::Approximate { attribute, value }),
        attribute().prop_map(Filter::Present),
        (attribute(), pieces).prop_map(|(attribute, (initial, mut any, last))| {
            if initial.is_none() && last.is_none() {
                any.push(b"x".to_vec());
            }
            Filter::Substrings { attribute, initial, any, last }
        }),
        (prop::option::of(attribute()), rule, value(), any::<bool>()).prop_map(
            |(mut attribute, rule, value, dn_attributes)| {
                if rule.is_none() {
                    attribute.get_or_insert_with(|| "cn".to_owned());
                }
                Filter::Extensible { rule, attribute, value, dn_attributes }
            }
        ),
    ]
}

fn filter() -> impl Strategy<Value = Filter> {
    term().prop_recursive(5, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::And),
            prop::collection::vec(inner.clone(), 0..4).prop_map(Filter::Or),
            inner.prop_map(|part| Filter::Not(Box::new(part))),
        ]
    })
}

proptest! {
    #[test]
    fn what_is_written_reads_back(filter in filter()) {
        let text = filter.to_string();
        prop_assert_eq!(Filter::parse(&text), Ok(filter), "{}", text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "([(]|[)]|&|[|]|!|=|:|dn|cn|[*]|\\\\|2a|>|~| |\u{e4}){0,24}") {
        if let Ok(filter) = Filter::parse(&text) {
            prop_assert_eq!(Filter::parse(&filter.to_string()), Ok(filter));
        }
    }
}
