//! Filters evaluated: the cases on filters of the public bug reports (by L-number), RFC 4511's three values, matching
//! rules, options, extensible matches.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use cowslip_ldap::description::AttributeDescription;
use cowslip_ldap::dn::{Dn, Rdn};
use cowslip_ldap::entry::Attribute;
use cowslip_ldap::filter::{
    CompiledFilter, EntryView, Filter, Node, Scratch, Test, Truth, VisitAva, VisitKind, VisitValue,
};
use cowslip_ldap::ldif::{LdifBody, LdifReader};
use cowslip_ldap::schema::{AttributeTypeId, Definition, Element, Schema, SchemaChange, Unused};
use proptest::prelude::*;

/// Types besides the standard ones.
const TYPES: &[&str] = &[
    "( 1.3.6.1.4.1.55555.1.1 NAME 'xInt' EQUALITY integerMatch ORDERING integerOrderingMatch \
     SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 SINGLE-VALUE )",
    "( 1.3.6.1.4.1.55555.1.2 NAME 'xExact' EQUALITY caseExactMatch ORDERING caseExactOrderingMatch \
     SUBSTR caseExactSubstringsMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )",
    "( 1.3.6.1.4.1.55555.1.3 NAME 'xName' SUP name EQUALITY caseExactMatch )",
    "( 1.3.6.1.4.1.55555.1.4 NAME 'xBool' EQUALITY booleanMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.7 )",
];

/// The entries, by the first value of `ou`, which no filter asks for.
const ENTRIES: &str = "\
dn: uid=amy,ou=People,dc=example,dc=com
ou: amy
objectClass: top
objectClass: person
objectClass: inetOrgPerson
uid: amy
cn: Amy Doe
sn: Doe
mail: amy@example.com
telephoneNumber: +1 555-0100
description: one
description: two
postalAddress: 1 Main St$Town\\2450
createTimestamp: 20260102030405Z
jpegPhoto:: /9j/
xInt: 5
xBool: TRUE

dn: uid=bob,ou=Groups,dc=example,dc=com
ou: bob
objectClass: person
uid: bob
cn: Bob
cn;lang-en: e
cn;lang-fr: f
sn: Ernst
xExact: aB
xInt: -3
createTimestamp: 20250102030405Z

dn: cn=three,dc=example,dc=com
ou: three
objectClass: device
cn: a   b
cn;lang-en: e
description: Muller and sons
member:
userCertificate;binary:: AAA=
attributeTypes: ( 2.5.4.3 NAME ( 'cn' 'commonName' ) SUP name )

dn: cn=ab,dc=example,dc=com
ou: four
objectClass: groupOfNames
cn: ab
xName: Zed
member: uid=amy,ou=People,dc=example,dc=com
";

/// Normalised options, and the values of the attribute that has them.
type Values = (String, Vec<Vec<u8>>);

struct TestEntry<'a> {
    schema: &'a Schema,
    dn: Dn,
    attributes: HashMap<AttributeTypeId, Vec<Values>>,
    hidden: Vec<AttributeTypeId>,
}

impl<'a> TestEntry<'a> {
    fn new(schema: &'a Schema, dn: &str, list: &[Attribute]) -> Self {
        let mut attributes: HashMap<_, Vec<Values>> = HashMap::new();
        for attribute in list {
            let description = AttributeDescription::parse(&attribute.description).expect("a description");
            let kind = schema.attribute(description.attribute()).expect("a known type");
            let values = attribute.values.clone();
            attributes.entry(kind).or_default().push((description.normalized_options(), values));
        }
        let dn = Dn::parse(dn.as_bytes()).expect("a name");
        Self { schema, dn, attributes, hidden: Vec::new() }
    }

    fn label(&self) -> String {
        let ou = self.schema.attribute("ou").expect("a standard type");
        String::from_utf8_lossy(&self.attributes[&ou][0].1[0]).into_owned()
    }
}

impl EntryView for TestEntry<'_> {
    fn schema(&self) -> &Schema {
        self.schema
    }

    fn values(&self, kind: AttributeTypeId, visit: VisitValue<'_>) -> ControlFlow<()> {
        let attributes = self.attributes.get(&kind).into_iter().flatten();
        let mut values = attributes.flat_map(|(options, values)| values.iter().map(move |it| (options, it)));
        values.try_for_each(|(options, value)| visit(options, value))
    }

    fn kinds(&self, visit: VisitKind<'_>) -> ControlFlow<()> {
        self.attributes.keys().try_for_each(|kind| visit(*kind))
    }

    fn name_values(&self, visit: VisitAva<'_>) -> ControlFlow<()> {
        self.dn.rdns().iter().flat_map(Rdn::avas).try_for_each(|ava| {
            let kind = self.schema.attribute(ava.attribute()).expect("a known type");
            visit(kind, ava.value())
        })
    }

    fn is_searchable(&self, kind: AttributeTypeId) -> bool {
        !self.hidden.contains(&kind)
    }

    /// Group four leads to group three, so to speak.
    fn is_in_chain(&self, kind: AttributeTypeId, dn: &Dn) -> Truth {
        let is_member = self.schema.attribute_type(kind).name() == "member";
        Truth::from(is_member && self.label() == "four" && dn.to_string().starts_with("cn=chained"))
    }
}

fn schema() -> Schema {
    let definitions = TYPES.iter().map(|text| Definition::parse(Element::AttributeType, text).expect(text));
    let changes: Vec<SchemaChange> = definitions.map(SchemaChange::Add).collect();
    Schema::standard().apply(&changes, &Unused).expect("new types")
}

fn entries(schema: &Schema) -> Vec<TestEntry<'_>> {
    let records = LdifReader::new(ENTRIES.as_bytes()).map(|record| record.expect("a record"));
    let entry = |record: cowslip_ldap::ldif::LdifRecord| match &record.body {
        LdifBody::Entry(attributes) => TestEntry::new(schema, &record.dn, attributes),
        other => panic!("{other:?}"),
    };
    records.map(entry).collect()
}

/// The labels of the entries that a filter is true for.
fn found(filter: &str, entries: &[TestEntry<'_>], schema: &Schema) -> Vec<String> {
    let filter = Filter::parse(filter).unwrap_or_else(|e| panic!("{filter}: {e}"));
    let compiled = CompiledFilter::new(&filter, schema);
    let mut scratch = Scratch::default();
    let matching = entries.iter().filter(|entry| compiled.evaluate(*entry, &mut scratch).is_true());
    let labels: Vec<String> = matching.map(TestEntry::label).collect();
    assert!(labels.is_empty() || compiled.can_match(), "{filter}");
    labels
}

const ALL: &[&str] = &["amy", "bob", "three", "four"];

/// The case, the filter, and the entries that it finds.
const CASES: &[(&str, &str, &[&str])] = &[
    ("L038", "(&(cn:dn:=groups))", &[]),
    ("L038", "(&(ou:dn:=groups))", &["bob"]),
    ("L038", "(ou:dn:=groups)", &["bob"]),
    ("L038", "(ou:dn:=people)", &["amy"]),
    ("L038", "(dc:dn:=EXAMPLE)", ALL),
    ("L038", "(&(uid=amy))", &["amy"]),
    ("L038", "(|(uid=amy))", &["amy"]),
    ("L038", "(!(!(uid=amy)))", &["amy"]),
    ("L040", "(cn:caseExactMatch:=amy doe)", &[]),
    ("L040", "(cn:caseIgnoreMatch:=AMY DOE)", &["amy"]),
    ("L040", "(cn:2.5.13.5:=Amy Doe)", &["amy"]),
    ("L040", "(:caseExactMatch:=Doe)", &["amy"]),
    ("L040", "(:caseExactMatch:=doe)", &[]),
    ("L040", "(:caseIgnoreMatch:=doe)", &["amy"]),
    ("L040", "(:dn:caseIgnoreIA5Match:=com)", ALL),
    ("L040", "(cn:noSuchRule:=x)", &[]),
    ("L040", "(!(cn:noSuchRule:=x))", &[]),
    ("L040", "(cn:integerMatch:=5)", &[]),
    ("L040", "(!(cn:integerMatch:=5))", &[]),
    ("L040", "(:integerMatch:=5)", &["amy"]),
    ("L040", "(nosuch:caseExactMatch:=x)", &[]),
    ("L043", "(nosuch=x)", &[]),
    ("L043", "(!(nosuch=x))", &[]),
    ("L043", "(nosuch=*)", &[]),
    ("L043", "(!(nosuch=*))", &[]),
    ("L043", "(|(nosuch=x)(uid=amy))", &["amy"]),
    ("L043", "(&(nosuch=x)(uid=amy))", &[]),
    ("L043", "(!(&(nosuch=x)(uid=amy)))", &["bob", "three", "four"]),
    ("L043", "(!(|(nosuch=x)(uid=amy)))", &[]),
    ("L043", "(!(xInt=abc))", &[]),
    ("L043", "(!(xInt=5))", &["bob", "three", "four"]),
    ("L044", "(cn=f)", &["bob"]),
    ("L044", "(cn=e)", &["bob", "three"]),
    ("L044", "(cn;lang-fr=f)", &["bob"]),
    ("L044", "(cn;LANG-fr=F)", &["bob"]),
    ("L044", "(cn;lang-en=f)", &[]),
    ("L044", "(&(cn;lang-en=e)(!(cn;lang-fr=f)))", &["three"]),
    ("L044", "(cn;lang-=e)", &["bob", "three"]),
    ("L044", "(cn;lang-fr=*)", &["bob"]),
    ("L044", "(name;lang-fr=f)", &["bob"]),
    ("L046", "(cn=*a b*)", &["three"]),
    ("L046", "(cn=a  *)", &["three"]),
    ("L046", "(cn=* b)", &["three"]),
    ("L046", "(cn= *)", ALL),
    ("L046", "(cn=a*b)", &["three", "four"]),
    ("L046", "(cn=*ab*)", &["four"]),
    ("L047", "(&)", ALL),
    ("L047", "(|)", &[]),
    ("L047", "(!(&))", &[]),
    ("L049", "(&(objectClass=*)(createTimestamp>=1))", &[]),
    ("L049", "(!(createTimestamp>=1))", &[]),
    ("L049", "(createTimestamp>=20260101000000Z)", &["amy"]),
    ("L049", "(createTimestamp<=20260102030405Z)", &["amy", "bob"]),
    ("L049", "(createTimestamp>=20260102083405+0530)", &["amy"]),
    ("L049", "(createTimestamp:generalizedTimeOrderingMatch:=20260102030405Z)", &["bob"]),
    ("L049", "(xInt>=abc)", &[]),
    ("L049", "(xInt>=-3)", &["amy", "bob"]),
    ("L049", "(xInt>=-2)", &["amy"]),
    ("L049", "(xInt<=4)", &["bob"]),
    ("L050", "(objectClass=PERSON)", &["amy", "bob"]),
    ("L050", "(objectClass=2.5.6.6)", &["amy", "bob"]),
    ("L050", "(CN=amy DOE)", &["amy"]),
    ("L050", "(2.5.4.3=Amy Doe)", &["amy"]),
    ("L050", "(xExact=Ab)", &[]),
    ("L050", "(xExact=aB)", &["bob"]),
    ("L050", "(xBool=true)", &["amy"]),
    ("L051", "(member:distinguishedNameMatch:=)", &["three"]),
    ("L051", "(member:dn:distinguishedNameMatch:=)", &["three"]),
    ("L051", "(member=)", &["three"]),
    ("L051", "(member=UID=Amy, OU=people,dc=example,dc=com)", &["four"]),
    ("L058", "(telephoneNumber=+1-555 0100)", &["amy"]),
    ("L058", "(telephoneNumber=*50100)", &["amy"]),
    ("L059", "(userCertificate=*)", &["three"]),
    ("L059", "(userCertificate;binary=*)", &["three"]),
    ("", "(attributeTypes=2.5.4.3)", &["three"]),
    ("", "(attributeTypes=CommonName)", &["three"]),
    ("", "(attributeTypes=sn)", &[]),
    ("", "(!(attributeTypes=nosuch))", &[]),
    ("", "(name=doe)", &["amy"]),
    ("", "(name=e*)", &["bob", "three"]),
    ("", "(name=zed)", &[]),
    ("", "(name=Zed)", &["four"]),
    ("", "(!(name=zed))", ALL),
    ("", "(name=*)", ALL),
    ("", "(jpegPhoto=x)", &[]),
    ("", "(!(jpegPhoto=x))", &[]),
    ("", "(jpegPhoto=*)", &["amy"]),
    ("", "(sn>=a)", &[]),
    ("", "(!(sn>=a))", &[]),
    ("", "(sn:caseIgnoreOrderingMatch:=Eb)", &["amy"]),
    ("", r"(sn:caseIgnoreSubstringsMatch:=\2aoe)", &["amy"]),
    ("", r"(sn:caseExactSubstringsMatch:=d\2ae)", &[]),
    ("", r"(sn:caseExactSubstringsMatch:=D\2ae)", &["amy"]),
    ("", r"(sn:caseIgnoreSubstringsMatch:=d\5c2Ae)", &[]),
    ("", "(cn~=aimee dow)", &["amy"]),
    ("", "(cn~=dow aimee)", &["amy"]),
    ("", "(description~=m\u{fc}ller)", &["three"]),
    ("", "(description~=miller jones)", &[]),
    ("", "(xInt~=5)", &["amy"]),
    ("", "(cn~=...)", &[]),
    ("", "(description:wordMatch:=AND)", &["three"]),
    ("", "(description:wordMatch:=an)", &[]),
    ("", "(xInt:1.2.840.113556.1.4.803:=4)", &["amy", "bob"]),
    ("", "(xInt:1.2.840.113556.1.4.803:=7)", &[]),
    ("", "(xInt:1.2.840.113556.1.4.804:=7)", &["amy", "bob"]),
    ("", "(member:1.2.840.113556.1.4.1941:=cn=chained,dc=x)", &["four"]),
    ("", "(member:1.2.840.113556.1.4.1941:=cn=other,dc=x)", &[]),
    ("", "(member:1.2.840.113556.1.4.1941:=nonsense)", &[]),
    ("", "(!(member:1.2.840.113556.1.4.1941:=nonsense))", &[]),
    ("", "(|(uid=bob)(uid=nobody)(cn=ab)(uid=AMY)(uid=bob))", &["amy", "bob", "four"]),
    ("", "(!(|(uid=bob)(uid=nobody)(uid=AMY)))", &["three", "four"]),
    ("", r"(postalAddress=1 main st$TOWN\5c2450)", &["amy"]),
];

#[test]
fn filters_find_what_they_should() {
    let schema = schema();
    let entries = entries(&schema);
    for (case, filter, expected) in CASES {
        assert_eq!(found(filter, &entries, &schema), *expected, "{case}: {filter}");
    }
}

#[test]
fn l041_nothing_before_the_equals_sign() {
    let schema = schema();
    let entries = entries(&schema);
    for attribute in ["", ";x", "\u{fffd}", "cn;", "cn;;", "c n"] {
        let value = b"x".to_vec();
        let filter = Filter::Equality { attribute: attribute.to_owned(), value };
        let compiled = CompiledFilter::new(&filter, &schema);
        assert!(matches!(compiled.root(), Node::Undefined), "L041: {attribute:?}");
        let truth = compiled.evaluate(&entries[0], &mut Scratch::default());
        assert_eq!(truth, Truth::Undefined, "L041: {attribute:?}");
    }
}

#[test]
fn l042_what_may_not_be_searched_is_undefined() {
    let schema = schema();
    let mut entries = entries(&schema);
    let mail = schema.attribute("mail").expect("a standard type");
    entries.iter_mut().for_each(|entry| entry.hidden.push(mail));
    let cases: &[(&str, &[&str])] = &[
        ("(|(uid=amy)(mail=amy@example.com))", &["amy"]),
        ("(|(uid=nobody)(mail=amy@example.com))", &[]),
        ("(!(mail=amy@example.com))", &[]),
        ("(mail=*)", &[]),
        ("(!(mail=*))", &[]),
        ("(mail:caseIgnoreIA5Match:=amy@example.com)", &[]),
        ("(:caseIgnoreIA5Match:=amy@example.com)", &[]),
        // Neither does a match over all attributes show who has a mail.
        ("(!(:caseIgnoreIA5Match:=amy@example.com))", ALL),
    ];
    for (filter, expected) in cases {
        assert_eq!(found(filter, &entries, &schema), *expected, "L042: {filter}");
    }
}

#[test]
fn l019_thousands_of_terms_are_one_set() {
    let schema = schema();
    let entries = entries(&schema);
    let terms: String = (0..20_000).map(|number| format!("(uid=u{number})")).collect();
    let flat = format!("(|{terms}(uid=AMY))");
    assert_eq!(found(&flat, &entries, &schema), ["amy"]);
    let filter = Filter::parse(&flat).expect("a long filter");
    let compiled = CompiledFilter::new(&filter, &schema);
    let Node::Term { test: Test::Equality { assertions, .. }, .. } = compiled.root() else {
        panic!("{compiled:?}")
    };
    assert_eq!(assertions.len(), 20_001);
    assert!(assertions.is_sorted());
    assert_eq!(found(&format!("(&{flat}(!{flat}))"), &entries, &schema), [""; 0]);
    assert_eq!(found(&format!("(&{flat}(!(|{terms})))"), &entries, &schema), ["amy"]);
}

#[test]
fn filters_that_nothing_can_match_are_known() {
    let schema = schema();
    for (filter, can_match) in [
        ("(nosuch=x)", false),
        ("(!(nosuch=x))", false),
        ("(|(nosuch=x)(xInt=abc))", false),
        ("(|(nosuch=x)(uid=a))", true),
        ("(&(nosuch=x)(uid=a))", false),
        ("(!(&(nosuch=x)(uid=a)))", true),
        ("(!(|(nosuch=x)(uid=a)))", false),
        ("(|)", false),
        ("(&)", true),
        ("(!(&))", false),
        ("(cn:dn:noSuchRule:=x)", false),
    ] {
        let parsed = Filter::parse(filter).expect(filter);
        assert_eq!(CompiledFilter::new(&parsed, &schema).can_match(), can_match, "{filter}");
    }
}

/// A view that knows its values by their normalised form, as a large group does.
struct Keyed<'a>(TestEntry<'a>);

impl EntryView for Keyed<'_> {
    fn schema(&self) -> &Schema {
        self.0.schema
    }

    fn values(&self, _: AttributeTypeId, _: VisitValue<'_>) -> ControlFlow<()> {
        panic!("this view is asked for whole values");
    }

    fn kinds(&self, visit: VisitKind<'_>) -> ControlFlow<()> {
        self.0.kinds(visit)
    }

    fn name_values(&self, visit: VisitAva<'_>) -> ControlFlow<()> {
        self.0.name_values(visit)
    }

    fn holds(&self, kind: AttributeTypeId, _: &str, normalized: &[u8]) -> Option<bool> {
        let rule = self.0.schema.attribute_type(kind).equality?;
        let mut is_held = false;
        let _ = self.0.values(kind, &mut |_, value| {
            let mut key = Vec::new();
            rule.normalize(value, self.0.schema, &mut key).expect("a stored value");
            is_held |= key == normalized;
            ControlFlow::Continue(())
        });
        Some(is_held)
    }
}

#[test]
fn views_may_look_values_up() {
    let schema = schema();
    let four = entries(&schema).pop().expect("there are entries");
    let view = Keyed(four);
    for (filter, expected) in [
        ("(member=UID=amy,ou=people,dc=example,dc=com)", Truth::True),
        ("(member=uid=bob,dc=example,dc=com)", Truth::False),
        ("(|(member=uid=bob,dc=x)(member=uid=amy,ou=people,dc=example,dc=com))", Truth::True),
        ("(|(member=uid=bob,dc=x)(member=uid=eve,dc=x))", Truth::False),
        ("(!(cn=ab))", Truth::False),
    ] {
        let parsed = Filter::parse(filter).expect(filter);
        let truth = CompiledFilter::new(&parsed, &schema).evaluate(&view, &mut Scratch::default());
        assert_eq!(truth, expected, "{filter}");
    }
}

/// A filter's value by RFC 4511's tables alone: each term is compiled by itself.
fn by_the_book(filter: &Filter, entry: &TestEntry<'_>) -> Truth {
    let parts =
        |parts: &[Filter]| -> Vec<Truth> { parts.iter().map(|part| by_the_book(part, entry)).collect() };
    match filter {
        Filter::And(all) => match parts(all) {
            all if all.contains(&Truth::False) => Truth::False,
            all if all.contains(&Truth::Undefined) => Truth::Undefined,
            _ => Truth::True,
        },
        Filter::Or(some) => match parts(some) {
            some if some.contains(&Truth::True) => Truth::True,
            some if some.contains(&Truth::Undefined) => Truth::Undefined,
            _ => Truth::False,
        },
        Filter::Not(part) => match by_the_book(part, entry) {
            Truth::True => Truth::False,
            Truth::False => Truth::True,
            Truth::Undefined => Truth::Undefined,
        },
        term => CompiledFilter::new(term, entry.schema).evaluate(entry, &mut Scratch::default()),
    }
}

fn some_filter() -> impl Strategy<Value = Filter> {
    let terms = [
        "(uid=amy)",
        "(uid=AMY)",
        "(uid=bob)",
        "(uid=nobody)",
        "(cn=e)",
        "(cn;lang-en=e)",
        "(name=zed)",
        "(xInt>=0)",
        "(xInt=abc)",
        "(nosuch=x)",
        "(mail=*)",
        "(cn=*b*)",
    ];
    let term = prop::sample::select(terms.to_vec()).prop_map(|text| Filter::parse(text).expect("a term"));
    term.prop_recursive(4, 30, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Filter::And),
            prop::collection::vec(inner.clone(), 0..5).prop_map(Filter::Or),
            inner.prop_map(|part| Filter::Not(Box::new(part))),
        ]
    })
}

proptest! {
    #[test]
    fn compiling_keeps_the_meaning(filter in some_filter(), hides_mail in any::<bool>()) {
        static SCHEMA: LazyLock<Schema> = LazyLock::new(schema);
        let compiled = CompiledFilter::new(&filter, &SCHEMA);
        let mut scratch = Scratch::default();
        for mut entry in entries(&SCHEMA) {
            entry.hidden.extend(SCHEMA.attribute("mail").filter(|_| hides_mail));
            let truth = compiled.evaluate(&entry, &mut scratch);
            prop_assert_eq!(truth, by_the_book(&filter, &entry), "{}", filter);
            prop_assert!(compiled.can_match() || !truth.is_true(), "{}", filter);
        }
    }
}
