//! Changes of the schema and checks of entries by example. The cases' numbers are those of the project's list of LDAP
//! cases.

use std::collections::HashMap;

use cowslip_ldap::schema::{
    AttributeTypeId, Definition, Element, EntryError, ObjectClassId, Others, Schema, SchemaChange,
    SchemaError, SchemaFile, SchemaModification, SchemaUse, Unused,
};

const TYPES: &str = "\
attributetype ( 1.3.6.1.4.1.32473.1.1 NAME 'xInt' EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )
attributetype ( 1.3.6.1.4.1.32473.1.2 NAME 'xOwner' SUP distinguishedName SINGLE-VALUE )
attributetype ( 1.3.6.1.4.1.32473.1.3 NAME 'xSub' SUP xInt )
objectclass ( 1.3.6.1.4.1.32473.2.1 NAME 'xOwned' AUXILIARY MUST xOwner MAY xInt )
objectclass ( 1.3.6.1.4.1.32473.2.2 NAME 'xThing' SUP device MAY xInt )
objectclass ( 1.3.6.1.4.1.32473.2.3 NAME 'xBase' ABSTRACT MAY xSub )
objectclass ( 1.3.6.1.4.1.32473.2.4 NAME 'xExtra' SUP xBase AUXILIARY )
";

/// What entries use, by name.
#[derive(Default)]
struct Used {
    types: HashMap<AttributeTypeId, u64>,
    classes: HashMap<ObjectClassId, u64>,
    indexed: Vec<AttributeTypeId>,
}

impl Used {
    fn of(schema: &Schema, names: &[&str]) -> Used {
        let types = names.iter().filter_map(|name| schema.attribute(name)).map(|id| (id, 7)).collect();
        let classes = names.iter().filter_map(|name| schema.object_class(name)).map(|id| (id, 7)).collect();
        Used { types, classes, indexed: Vec::new() }
    }
}

impl SchemaUse for Used {
    fn attribute_type_entries(&self, id: AttributeTypeId) -> u64 {
        self.types.get(&id).copied().unwrap_or(0)
    }

    fn object_class_entries(&self, id: ObjectClassId) -> u64 {
        self.classes.get(&id).copied().unwrap_or(0)
    }

    fn is_indexed(&self, id: AttributeTypeId) -> bool {
        self.indexed.contains(&id)
    }
}

fn schema() -> Schema {
    let standard = Schema::standard();
    let file = SchemaFile::parse(TYPES).expect("a good file");
    standard.apply(&standard.difference(&file, Others::Keep).changes, &Unused).expect("good changes")
}

fn replace(element: Element, text: &str) -> SchemaChange {
    SchemaChange::Replace(Definition::parse(element, text).unwrap_or_else(|error| panic!("{text}: {error}")))
}

fn delete(element: Element, oid: &str) -> SchemaChange {
    SchemaChange::Delete { element, oid: oid.to_owned() }
}

#[test]
fn changes_of_what_entries_use() {
    use Element::{AttributeType, ObjectClass};
    let schema = schema();
    const INT: &str =
        "( 1.3.6.1.4.1.32473.1.1 NAME 'xInt' EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27";
    const OWNER: &str = "( 1.3.6.1.4.1.32473.1.2 NAME 'xOwner' ";
    const OWNED: &str = "( 1.3.6.1.4.1.32473.2.1 NAME 'xOwned' ";
    const THING: &str = "( 1.3.6.1.4.1.32473.2.2 NAME 'xThing' ";
    let text = |head: &str, rest: &str| format!("{head} {rest} )");
    // Element, definition, what entries use, what is refused while they do.
    let cases: Vec<(Element, String, &[&str], Option<&str>)> = vec![
        // Always allowed.
        (AttributeType, text(INT, "X-NOTE 'x'"), &["xInt"], None),
        (AttributeType, INT.replace("'xInt'", "( 'xInt' 'xInteger' ) DESC 'd'") + " )", &["xInt"], None),
        (AttributeType, text(OWNER, "SUP distinguishedName"), &["xOwner"], None),
        (ObjectClass, text(OWNED, "AUXILIARY MUST xOwner MAY ( xInt $ cn )"), &["xOwned"], None),
        (ObjectClass, text(OWNED, "AUXILIARY MAY ( xOwner $ xInt )"), &["xOwned"], None),
        (ObjectClass, text(OWNED, "AUXILIARY MUST xOwner"), &["xOwned"], None),
        // Refused while in use.
        (AttributeType, text(INT, "SINGLE-VALUE"), &["xInt"], Some("setting SINGLE-VALUE")),
        (AttributeType, text(INT, "ORDERING integerOrderingMatch"), &["xInt"], Some("a change of ORDERING")),
        (AttributeType, text(INT, "ORDERING integerOrderingMatch"), &["xSub"], Some("a change of ORDERING")),
        (
            AttributeType,
            INT.replace("EQUALITY integerMatch", "") + " )",
            &["xInt"],
            Some("a change of EQUALITY"),
        ),
        (AttributeType, INT.replace("1.27", "1.15") + " )", &["xInt"], Some("a change of SYNTAX")),
        (AttributeType, text(OWNER, "SUP member SINGLE-VALUE"), &["xOwner"], Some("a change of SUP")),
        (
            AttributeType,
            text(
                OWNER,
                "SYNTAX 1.3.6.1.4.1.1466.115.121.1.12 EQUALITY distinguishedNameMatch SINGLE-VALUE USAGE dSAOperation",
            ),
            &["xOwner"],
            Some("a change of SUP"),
        ),
        (ObjectClass, text(OWNED, "AUXILIARY MUST ( xOwner $ xInt )"), &["xOwned"], Some("adding to MUST")),
        (ObjectClass, text(OWNED, "STRUCTURAL MUST xOwner MAY xInt"), &["xOwned"], Some("a change of kind")),
        (ObjectClass, text(THING, "SUP person MAY xInt"), &["xThing"], Some("a change of SUP")),
    ];
    for (element, text, used, refused) in cases {
        let change = replace(element, &text);
        assert!(schema.apply(std::slice::from_ref(&change), &Unused).is_ok(), "{text}");
        let result = schema.apply(&[change], &Used::of(&schema, used));
        match (refused, result) {
            (None, result) => assert!(result.is_ok(), "{text}: {:?}", result.err()),
            (Some(what), Err(SchemaError::InUse { change, entries: 7, .. })) => {
                assert_eq!(change, what, "{text}")
            }
            (Some(_), other) => panic!("{text}: {:?}", other.map(drop)),
        }
    }
    let error = schema.apply(&[delete(ObjectClass, "xThing")], &Used::of(&schema, &["xThing"])).map(drop);
    assert_eq!(
        error.expect_err("in use").to_string(),
        "object class \"xThing\": deletion is refused while 7 entries use it"
    );
    let mut used = Used::default();
    used.indexed.extend(schema.attribute("xSub"));
    let changes =
        [delete(ObjectClass, "xExtra"), delete(ObjectClass, "xBase"), delete(AttributeType, "xSub")];
    assert!(matches!(schema.apply(&changes, &used), Err(SchemaError::Indexed { .. })));
    assert!(schema.apply(&changes, &Unused).is_ok());
}

#[test]
fn l054_what_is_referred_to_stays() {
    use Element::{AttributeType, ObjectClass};
    let schema = schema();
    let cases = [
        (vec![delete(AttributeType, "xOwner")], "xOwner", "xOwned", "MUST"),
        (vec![delete(AttributeType, "xInt")], "xInt", "xSub", "SUP"),
        (vec![delete(ObjectClass, "xBase")], "xBase", "xExtra", "SUP"),
        // The name that others use goes.
        (
            vec![replace(
                AttributeType,
                "( 1.3.6.1.4.1.32473.1.2 NAME 'yOwner' SUP distinguishedName SINGLE-VALUE )",
            )],
            "xOwner",
            "xOwned",
            "MUST",
        ),
    ];
    for (changes, gone, referrer, word) in cases {
        match schema.apply(&changes, &Unused) {
            Err(SchemaError::ReferredTo { name, by, keyword, .. }) => {
                assert_eq!((name.as_str(), by.as_str(), keyword), (gone, referrer, word));
            }
            other => panic!("{changes:?}: {other:?}"),
        }
    }
    // In one change both can go, in any order.
    let both = [delete(AttributeType, "1.3.6.1.4.1.32473.1.2"), delete(ObjectClass, "xOwned")];
    let next = schema.apply(&both, &Unused).expect("nothing refers to them any more");
    let old = schema.attribute("xOwner").expect("it was there");
    assert!(next.attribute("xOwner").is_none() && !next.has_attribute_type(old));
    assert_eq!(next.attribute_type(old).name(), "xOwner");
    assert!(!next.subtypes(AttributeTypeId::DISTINGUISHED_NAME).contains(&old));
    // The number is the OID's for ever.
    let add =
        Definition::parse(AttributeType, "( 1.3.6.1.4.1.32473.1.9 NAME 'xOwner' SUP name )").expect("good");
    let next = next.apply(&[SchemaChange::Add(add)], &Unused).expect("the name is free");
    assert_ne!(next.attribute("xOwner"), Some(old));
    let again = SchemaFile::parse(
        &TYPES.replace("'xOwner' SUP d", "'zOwner' SUP d").replace("MUST xOwner", "MUST zOwner"),
    );
    let changes = next.difference(&again.expect("good"), Others::Keep).changes;
    let next = next.apply(&changes, &Unused).expect("the OID comes back");
    assert_eq!(next.attribute("zOwner"), Some(old));
}

#[test]
fn changes_that_make_no_schema() {
    let schema = schema();
    let add = |element, text: &str| {
        SchemaChange::Add(Definition::parse(element, text).unwrap_or_else(|error| panic!("{text}: {error}")))
    };
    let kind = |text: &str| schema.apply(&[add(Element::AttributeType, text)], &Unused).map(drop);
    let class = |text: &str| schema.apply(&[add(Element::ObjectClass, text)], &Unused).map(drop);
    let syntax = "SYNTAX 1.3.6.1.4.1.1466.115.121.1.15";
    assert!(
        matches!(kind(&format!("( 1.2.3 NAME 'CN' {syntax} )")), Err(SchemaError::NameTaken { by, .. }) if by == "cn")
    );
    assert!(matches!(kind(&format!("( 2.5.4.3 NAME 'zz' {syntax} )")), Err(SchemaError::Exists { .. })));
    assert!(matches!(
        kind("( 1.2.3 NAME 'a' SUP nosuch )"),
        Err(SchemaError::UnknownReference { keyword: "SUP", .. })
    ));
    assert!(matches!(
        kind("( 1.2.3 NAME 'a' SYNTAX 1.2.3 )"),
        Err(SchemaError::UnknownReference { keyword: "SYNTAX", .. })
    ));
    assert!(matches!(
        kind(&format!("( 1.2.3 EQUALITY xyz {syntax} )")),
        Err(SchemaError::UnknownReference { .. })
    ));
    assert!(matches!(
        kind(&format!("( 1.2.3 ORDERING caseIgnoreMatch {syntax} )")),
        Err(SchemaError::Rule { .. })
    ));
    assert!(matches!(kind("( 1.2.3 SUP name USAGE dSAOperation )"), Err(SchemaError::Rule { .. })));
    assert!(matches!(kind("( 1.2.3 SUP name COLLECTIVE )"), Err(SchemaError::Unsupported { .. })));
    assert!(matches!(kind("( 1.2.3 SYNTAX 1.3.6.1.4.1.1466.115.121.1.58 )"), Err(SchemaError::Rule { .. })));
    assert!(matches!(kind("( 1.2.3 NAME '1a' SUP name )"), Err(SchemaError::BadName { .. })));
    assert!(matches!(kind("( bad NAME 'a' SUP name )"), Err(SchemaError::BadName { .. })));
    assert!(matches!(kind("( 1.02.3 NAME 'a' SUP name )"), Err(SchemaError::BadName { .. })));
    assert!(matches!(kind("( 1.2.3 NAME 'a' SUP a )"), Err(SchemaError::Cycle { .. })));
    assert!(matches!(class("( 1.2.3 NAME 'a' SUP a )"), Err(SchemaError::Cycle { .. })));
    assert!(matches!(class("( 1.2.3 NAME 'a' SUP ( top $ xOwned ) )"), Err(SchemaError::Rule { .. })));
    assert!(matches!(class("( 1.2.3 NAME 'a' SUP person AUXILIARY )"), Err(SchemaError::Rule { .. })));
    assert!(matches!(
        class("( 1.2.3 NAME 'a' MUST nosuch )"),
        Err(SchemaError::UnknownReference { keyword: "MUST", .. })
    ));
    let cycle = [replace(Element::AttributeType, "( 1.3.6.1.4.1.32473.1.1 NAME 'xInt' SUP xSub )")];
    assert!(matches!(schema.apply(&cycle, &Unused), Err(SchemaError::Cycle { .. })));
    assert!(matches!(
        schema.apply(&[delete(Element::ObjectClass, "nosuch")], &Unused),
        Err(SchemaError::Missing { .. })
    ));
    let form = add(Element::NameForm, "( 1.2.3 OC person MUST cn )");
    assert!(matches!(schema.apply(&[form], &Unused), Err(SchemaError::Unsupported { .. })));
    // All or nothing: the good change before the bad one leaves nothing.
    let good = add(Element::AttributeType, "( 1.2.3 NAME 'fine' SUP name )");
    assert!(schema.apply(&[good, delete(Element::ObjectClass, "nosuch")], &Unused).is_err());
    assert_eq!(schema.attribute("fine"), None);
}

#[test]
fn what_the_server_relies_on_stays() {
    let schema = Schema::standard();
    let user_password = "( 2.5.4.35 NAME 'userPassword' EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 SINGLE-VALUE )";
    let refused = [
        delete(Element::AttributeType, "entryUUID"),
        delete(Element::ObjectClass, "extensibleObject"),
        replace(Element::AttributeType, user_password),
        replace(Element::AttributeType, "( 2.5.4.3 NAME 'commonName' SUP name )"),
        replace(Element::ObjectClass, "( 2.5.6.1 NAME 'alias' SUP top MAY aliasedObjectName )"),
    ];
    for change in &refused[..4] {
        let result = schema.apply(std::slice::from_ref(change), &Unused);
        let is_refused =
            matches!(result, Err(SchemaError::Protected { .. } | SchemaError::ReferredTo { .. }));
        assert!(is_refused, "{change:?}: {result:?}");
    }
    // Asking less of an alias is no harm to the server.
    assert!(schema.apply(&refused[4..], &Unused).is_ok());
    let more = replace(
        Element::AttributeType,
        "( 2.5.4.3 NAME ( 'cn' 'commonName' 'fullName' ) DESC 'x' SUP name )",
    );
    let next = schema.apply(&[more], &Unused).expect("names and descriptions are free");
    assert_eq!(next.attribute("fullname"), Some(AttributeTypeId::CN));
}

#[test]
fn modifications_of_the_subschema_entry() {
    let element = Element::AttributeType;
    let add = |definition| SchemaModification::Add { element, definition };
    let delete = |definition| SchemaModification::Delete { element, definition };
    let schema = schema();
    let street = "( 2.5.4.9 NAME ( 'street' 'streetAddress' 'road' ) DESC 'new' EQUALITY caseIgnoreMatch SUBSTR caseIgnoreSubstringsMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )";
    let changes = SchemaChange::from_modifications(&[
        delete("( 2.5.4.9 NAME 'whatever' )"),
        add(street),
        delete("1.3.6.1.4.1.32473.1.7"),
        add("( 1.2.3 NAME 'new' SUP name )"),
    ])
    .expect("good definitions");
    assert!(matches!(
        changes.as_slice(),
        [SchemaChange::Replace(_), SchemaChange::Delete { .. }, SchemaChange::Add(_)]
    ));
    let used = Used::of(&schema, &["street"]);
    let next = schema.apply(&changes[..1], &used).expect("an alias and a description are free");
    assert_eq!(next.attribute("road"), schema.attribute("street"));
    let twice = SchemaChange::from_modifications(&[add(street)]).expect("a good definition");
    assert!(matches!(schema.apply(&twice, &Unused), Err(SchemaError::Exists { .. })));
    assert!(SchemaChange::from_modifications(&[add("( 1.2.3")]).is_err());
    assert!(SchemaChange::from_modifications(&[delete("( )")]).is_err());
}

#[test]
fn definitions_are_shared_between_versions() {
    let before = schema();
    let change = replace(
        Element::AttributeType,
        "( 1.3.6.1.4.1.32473.1.1 NAME 'xInt' DESC 'x' EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )",
    );
    let after = before.apply(&[change], &Unused).expect("a description is free");
    let changed: Vec<&str> = before
        .attribute_types()
        .filter(|kind| !std::ptr::eq(*kind, after.attribute_type(kind.id)))
        .map(|kind| kind.name())
        .collect();
    assert_eq!(changed, ["xInt", "xSub"]);
    assert!(before.object_classes().all(|class| std::ptr::eq(class, after.class(class.id))));
}

#[test]
fn classes_and_attributes_of_entries() {
    let schema = schema();
    let rule = "( 2.5.6.14 NAME 'deviceContent' AUX ( xExtra $ ieee802Device ) MUST serialNumber MAY street NOT owner )";
    let rule = SchemaChange::Add(Definition::parse(Element::ContentRule, rule).expect("a good rule"));
    let schema = schema.apply(&[rule], &Unused).expect("a good rule");
    let person = "objectClass cn sn";
    // Classes, attributes, the structural class or what is wrong.
    let cases: &[(&str, &str, Result<&str, &str>)] = &[
        ("person", person, Ok("person")),
        ("top person inetOrgPerson", "objectClass cn sn mail description", Ok("inetOrgPerson")),
        ("inetOrgPerson person", person, Ok("inetOrgPerson")),
        ("person", "objectClass cn", Err("the class \"person\" requires the attribute \"sn\"")),
        (
            "top person inetOrgPerson",
            "objectClass cn",
            Err("the class \"person\" requires the attribute \"sn\""),
        ),
        ("person", "objectClass cn sn mail", Err("no class of the entry allows the attribute \"mail\"")),
        ("person extensibleObject", "objectClass cn sn mail uidNumber", Ok("person")),
        ("person", "objectClass cn sn createTimestamp entryUUID memberOf", Ok("person")),
        ("top", "objectClass", Err("no structural object class")),
        ("xOwned", "objectClass xOwner", Err("no structural object class")),
        ("", "", Err("no structural object class")),
        (
            "person device",
            "objectClass cn sn",
            Err("\"person\" and \"device\" are both structural, and neither inherits from the other"),
        ),
        (
            "person xBase",
            person,
            Err("the class \"xBase\" is abstract, and no class of the entry inherits from it"),
        ),
        ("person xBase xExtra", "objectClass cn sn xSub", Ok("person")),
        // L067
        ("person xOwned", "objectClass cn sn xOwner", Ok("person")),
        ("person xOwned", person, Err("the class \"xOwned\" requires the attribute \"xOwner\"")),
        // RFC 2307's groups and those of its successor.
        ("posixGroup", "objectClass cn gidNumber memberUid", Ok("posixGroup")),
        ("groupOfNames posixGroup", "objectClass cn member gidNumber", Ok("groupOfNames")),
        // Content rule.
        ("device", "objectClass cn", Err("the class \"device\" requires the attribute \"serialNumber\"")),
        ("device", "objectClass cn serialNumber street", Ok("device")),
        (
            "device",
            "objectClass cn serialNumber owner",
            Err("the content rule for \"device\" excludes the attribute \"owner\""),
        ),
        ("device xExtra ieee802Device", "objectClass cn serialNumber xSub macAddress", Ok("device")),
        (
            "device xOwned",
            "objectClass cn serialNumber xOwner",
            Err("the content rule for \"device\" does not allow the auxiliary class \"xOwned\""),
        ),
        ("xThing", "objectClass cn owner", Ok("xThing")),
    ];
    for (classes, attributes, expected) in cases {
        let ids: Vec<ObjectClassId> =
            classes.split_whitespace().filter_map(|name| schema.object_class(name)).collect();
        let types: Vec<AttributeTypeId> =
            attributes.split_whitespace().filter_map(|name| schema.attribute(name)).collect();
        assert_eq!(ids.len(), classes.split_whitespace().count(), "{classes}");
        assert_eq!(types.len(), attributes.split_whitespace().count(), "{attributes}");
        let result = schema.check_entry(&ids, &types);
        let shown = result.as_ref().map(|id| schema.class(*id).name()).map_err(ToString::to_string);
        assert_eq!(shown, expected.map_err(str::to_owned), "{classes}: {attributes}");
    }
    let unknown = schema.check_entry(&[ObjectClassId(9999)], &[]);
    assert_eq!(unknown, Err(EntryError::UnknownClass { number: 9999 }));
}

#[test]
fn l062_an_entry_stays_what_it_is() {
    let schema = schema();
    let ids = |names: &str| -> Vec<ObjectClassId> {
        names.split_whitespace().filter_map(|name| schema.object_class(name)).collect()
    };
    let cases = [
        ("person", "person xExtra", false),
        ("person", "inetOrgPerson", true),
        ("inetOrgPerson", "person", true),
        ("person", "device", true),
        ("posixGroup", "posixGroup groupOfNames", false),
    ];
    for (before, after, expected) in cases {
        let before_class = schema.structural_class(&ids(before)).expect("a structural class");
        let result = schema.is_structural_change(before_class, &ids(after));
        assert_eq!(result, Ok(expected), "{before} to {after}");
    }
    let all: Vec<&str> = schema
        .with_superclasses(&ids("inetOrgPerson xExtra"))
        .iter()
        .map(|id| schema.class(*id).name())
        .collect();
    assert_eq!(all, ["inetOrgPerson", "organizationalPerson", "person", "top", "xExtra", "xBase"]);
}

#[test]
fn a_file_that_says_the_same_changes_nothing() {
    let schema = schema();
    let published: String =
        [Element::AttributeType, Element::ObjectClass, Element::Syntax, Element::MatchingRule]
            .into_iter()
            .flat_map(|element| {
                schema
                    .published(element)
                    .into_iter()
                    .map(move |text| format!("{}: {text}\n", element.attribute()))
            })
            .collect();
    let file = SchemaFile::parse(&published).expect("what is published");
    let difference = schema.difference(&file, Others::Delete);
    assert_eq!((difference.changes.as_slice(), difference.kept.as_slice()), (&[] as &[_], &[] as &[_]));
    // Another product's wording of a standard element, and its own OID for a standard name.
    let worded = "attributetype ( 2.5.4.4 NAME 'sn' DESC 'RFC2256' SUP name )\n\
        objectclass ( 2.5.6.6 NAME 'person' DESC 'RFC2256' SUP top STRUCTURAL MUST ( cn $ sn ) MAY ( description $ seeAlso $ telephoneNumber $ userPassword ) )\n\
        attributetype ( 1.2.3.4 NAME 'entrydn' SYNTAX 1.3.6.1.4.1.1466.115.121.1.12 )\n\
        attributetype ( 2.5.4.0 NAME 'objectClass' SYNTAX 1.3.6.1.4.1.1466.115.121.1.15 )\n\
        ldapsyntax ( 1.2.3.5 DESC 'unheard of' )\n";
    let difference = schema.difference(&SchemaFile::parse(worded).expect("a good file"), Others::Keep);
    assert_eq!(difference.changes, []);
    let kept: Vec<(usize, &str)> = difference.kept.iter().map(|it| (it.line, it.name.as_str())).collect();
    assert_eq!(kept, [(3, "entrydn"), (4, "objectClass"), (5, "1.2.3.5")]);
    let back = schema.difference(&SchemaFile::default(), Others::Delete);
    let plain = schema.apply(&back.changes, &Unused).expect("nothing uses them");
    assert_eq!(plain.attribute_types().count(), Schema::standard().attribute_types().count());
    assert_eq!(plain.numbers(), schema.numbers());
}
