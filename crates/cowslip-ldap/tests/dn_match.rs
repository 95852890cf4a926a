//! Names compared by the schema's rules: the cases on names of the public bug reports (by L-number), relations, and the
//! forms for keys.

use cowslip_ldap::dn::{Dn, DnError, Rdn};
use cowslip_ldap::matching::MatchingRule;
use cowslip_ldap::schema::Schema;
use proptest::prelude::*;

fn key(text: &str, schema: &Schema) -> Result<Vec<u8>, DnError> {
    let mut out = Vec::new();
    Dn::parse(text.as_bytes())?.normalize(schema, &mut out)?;
    Ok(out)
}

fn value_key(text: &str, schema: &Schema) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    MatchingRule::DistinguishedNameMatch.normalize(text.as_bytes(), schema, &mut out).ok()?;
    Some(out)
}

#[test]
fn names_match_by_the_schemas_rules() {
    let schema = Schema::standard();
    for (case, one, other, is_match) in [
        ("L028", r"cn=a\ ,dc=x", "cn=a,dc=x", true),
        ("L028", r"cn=a\\,dc=x", "cn=a,dc=x", false),
        ("L030", "cn=#0C024869", "cn=hi", true),
        ("L030", "2.5.4.3=#04024869", "CN=Hi", true),
        ("L031", r"cn=a\2cb", r"cn=a\,b", true),
        ("L032", r"cn=a\00b", "cn=a", false),
        ("L035", "cn=F  O  O,dc=x", "cn=f o     o,dc=x", true),
        ("L035", "cn=F OO,dc=x", "cn=F O O,dc=x", false),
        ("L036", "ou=MiXed,dc=x", "OU=mixed,DC=X", true),
        ("L050", "commonName=Amy", "2.5.4.3=AMY", true),
        ("", "uid=amy+cn=Amy,dc=x", "CN=amy+UID=Amy,dc=x", true),
        ("", "uid=amy+cn=Amy,dc=x", "uid=amy,dc=x", false),
        ("", "uid=amy+cn=Amy,dc=x", "uid=amy,cn=Amy,dc=x", false),
        ("", "uid=amy,cn=b,dc=x", "uid=amy+cn=b,dc=x", false),
        ("", "dc=x,dc=y", "dc=y,dc=x", false),
        ("", "dc=x", "o=x", false),
        ("", "", "", true),
        ("", "", "dc=x", false),
        ("", r"seeAlso=cn\=a\,dc\=b,dc=x", r"seeAlso=CN\=A \, DC\=B,dc=x", true),
        ("", r"seeAlso=cn\=a\,dc\=b,dc=x", r"seeAlso=cn\=a\,dc\=c,dc=x", false),
        ("", "cn=\u{fb01}sh", "cn=FISH", true),
        ("", "uidNumber=7", "uidNumber=70", false),
    ] {
        let (left, right) = (key(one, &schema).expect(one), key(other, &schema).expect(other));
        assert_eq!(left == right, is_match, "{case}: {one} {other}");
        assert_eq!(value_key(one, &schema), Some(left), "{case}: {one}");
        assert_eq!(value_key(other, &schema), Some(right), "{case}: {other}");
    }
}

/// A name, and what the error is like.
type Refusal = (&'static str, fn(&DnError) -> bool);

#[test]
fn names_that_cannot_be_compared_say_why() {
    let schema = Schema::standard();
    let cases: &[Refusal] = &[
        ("nosuch=x", |e| matches!(e, DnError::UnknownAttribute { attribute } if attribute == "nosuch")),
        ("1.2.3=#04024869", |e| matches!(e, DnError::UnknownAttribute { .. })),
        ("jpegPhoto=x,dc=x", |e| matches!(e, DnError::NoEqualityRule { .. })),
        (
            "cn=a+CommonName=b,dc=x",
            |e| matches!(e, DnError::RepeatedAttribute { attribute } if attribute == "cn"),
        ),
        ("uidNumber=x,dc=x", |e| matches!(e, DnError::Value { attribute, .. } if attribute == "uidNumber")),
        (r"seeAlso=x,dc=x", |e| matches!(e, DnError::Value { .. })),
    ];
    for (text, is_expected) in cases {
        let error = key(text, &schema).expect_err(text);
        assert!(is_expected(&error), "{text}: {error:?}");
        assert_eq!(value_key(text, &schema), None, "{text}");
    }
}

#[test]
fn l037_names_inside_of_names() {
    let schema = Schema::standard();
    // Each level escapes what the levels below have escaped, so 12 levels of one comma are some thousand backslashes.
    let mut nested = "dc=x".to_owned();
    for _ in 0..12 {
        let escaped = nested.replace('\\', "\\\\").replace(',', "\\,");
        nested = format!("seeAlso={escaped},dc=x");
    }
    assert!(nested.len() > 4_000 && nested.len() < 32_768, "{}", nested.len());
    let spelt_otherwise = nested.replace("seeAlso", "SEEALSO");
    let normal = value_key(&nested, &schema).expect("twelve levels are within the limit");
    assert_eq!(value_key(&spelt_otherwise, &schema).as_ref(), Some(&normal));
    // A value's key is not longer than its text, however deep: nothing is escaped in it.
    assert!(normal.len() < nested.len());
    let deep = format!("{}dc=x", "seeAlso=".repeat(1_000));
    assert_eq!(value_key(&deep, &schema), None);
    for rule in [MatchingRule::DistinguishedNameMatch, MatchingRule::UniqueMemberMatch] {
        let deep = format!("{}dc=x", "uniqueMember=".repeat(4_000));
        assert!(rule.normalize(deep.as_bytes(), &schema, &mut Vec::new()).is_err());
    }
}

#[test]
fn relations_follow_the_normalised_form() {
    let schema = Schema::standard();
    let normal = |text: &str| Dn::parse(text.as_bytes()).and_then(|dn| dn.normalized(&schema)).expect(text);
    for (one, other, is_within, is_below) in [
        ("uid=amy,ou=People,dc=x", "OU=people,DC=x", true, true),
        ("ou=People,dc=x", "OU=people,DC=x", true, false),
        ("dc=x", "ou=People,dc=x", false, false),
        ("dc=xy", "dc=x", false, false),
        ("uid=a+cn=b,dc=x", "dc=x", true, true),
        ("uid=a,dc=x", "", true, true),
        ("", "", true, false),
        ("uid=a,ou=b,dc=x", "ou=c,dc=x", false, false),
        ("uid=a,dc=x", "cn=a,dc=x", false, false),
    ] {
        let (one, other) = (normal(one), normal(other));
        assert_eq!((one.is_within(&other), one.is_below(&other)), (is_within, is_below), "{one:?} {other:?}");
    }
    let amy = normal("uid=amy,ou=People,dc=x");
    assert_eq!(amy.parent(), Some(normal("ou=People,dc=x")));
    assert_eq!(normal("").parent(), None);
    assert_eq!(amy.depth(), 3);
    assert_eq!(amy.rdns().collect::<Vec<_>>().concat(), amy.bytes());
    let mut last = Vec::new();
    Rdn::parse(b"UID=Amy").and_then(|rdn| rdn.normalize(&schema, &mut last)).expect("an RDN");
    assert_eq!(amy.rdns().next_back(), Some(&last[..]));
}

#[test]
fn long_values_keep_their_bounds() {
    let schema = Schema::standard();
    for bytes in [1, 126, 127, 128, 129, 16_383, 16_384, 60_000] {
        let value = "v".repeat(bytes);
        let (one, two) = (format!("cn={value},dc=x"), format!("uid=a+cn={value},dc=x"));
        for text in [one, two] {
            let normal = key(&text, &schema).expect("a long name");
            assert_eq!(value_key(&text, &schema).as_ref(), Some(&normal), "{bytes}");
            let longer = key(&text.replacen(",dc=", "v,dc=", 1), &schema).expect("a longer name");
            assert!(!longer.starts_with(&normal) && !normal.starts_with(&longer), "{bytes}");
        }
    }
}

fn rdn() -> impl Strategy<Value = String> {
    let ava = |attribute: &'static str| "[aB ]{1,3}b".prop_map(move |value| format!("{attribute}={value}"));
    prop_oneof![
        ava("cn"),
        ava("UID"),
        ava("dc"),
        (ava("cn"), ava("ou")).prop_map(|(one, other)| format!("{one}+{other}")),
        (ava("ou"), ava("cn")).prop_map(|(one, other)| format!("{one} + {other}")),
    ]
}

proptest! {
    #[test]
    fn text_and_parsed_name_have_one_form(rdns in prop::collection::vec(rdn(), 0..8)) {
        let schema = Schema::standard();
        let text = rdns.join(",");
        let normal = key(&text, &schema).expect("known types");
        prop_assert_eq!(value_key(&text, &schema), Some(normal.clone()));
        let dn = Dn::parse(text.as_bytes()).expect("a name");
        let by_rdns = dn.normalized(&schema).expect("known types");
        prop_assert_eq!(by_rdns.bytes(), normal.as_slice());
        let mut above = Some(by_rdns.clone());
        while let Some(at) = above {
            prop_assert!(by_rdns.is_within(&at));
            above = at.parent();
        }
    }
}
