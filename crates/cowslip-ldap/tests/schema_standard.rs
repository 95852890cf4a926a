//! The standard schema, its numbers, what is published of it, and reading of definitions.

use cowslip_ldap::matching::MatchingRule;
use cowslip_ldap::schema::{
    AttributeTypeId, ClassKind, Definition, DefinitionError, Element, Numbers, ObjectClassId, Schema,
    SchemaError, SchemaFile, Usage,
};
use cowslip_ldap::syntax::Syntax;
use proptest::prelude::*;

#[test]
fn constants_are_the_elements_that_they_say() {
    let schema = Schema::standard();
    let types = [
        (AttributeTypeId::OBJECT_CLASS, "objectClass"),
        (AttributeTypeId::ALIASED_OBJECT_NAME, "aliasedObjectName"),
        (AttributeTypeId::CREATE_TIMESTAMP, "createTimestamp"),
        (AttributeTypeId::MODIFY_TIMESTAMP, "modifyTimestamp"),
        (AttributeTypeId::CREATORS_NAME, "creatorsName"),
        (AttributeTypeId::MODIFIERS_NAME, "modifiersName"),
        (AttributeTypeId::SUBSCHEMA_SUBENTRY, "subschemaSubentry"),
        (AttributeTypeId::STRUCTURAL_OBJECT_CLASS, "structuralObjectClass"),
        (AttributeTypeId::GOVERNING_STRUCTURE_RULE, "governingStructureRule"),
        (AttributeTypeId::ENTRY_DN, "entryDN"),
        (AttributeTypeId::ENTRY_UUID, "entryUUID"),
        (AttributeTypeId::ENTRY_CSN, "entryCSN"),
        (AttributeTypeId::CONTEXT_CSN, "contextCSN"),
        (AttributeTypeId::HAS_SUBORDINATES, "hasSubordinates"),
        (AttributeTypeId::NUM_SUBORDINATES, "numSubordinates"),
        (AttributeTypeId::MEMBER_OF, "memberOf"),
        (AttributeTypeId::NS_UNIQUE_ID, "nsUniqueId"),
        (AttributeTypeId::REF, "ref"),
        (AttributeTypeId::ATTRIBUTE_TYPES, "attributeTypes"),
        (AttributeTypeId::OBJECT_CLASSES, "objectClasses"),
        (AttributeTypeId::LDAP_SYNTAXES, "ldapSyntaxes"),
        (AttributeTypeId::MATCHING_RULES, "matchingRules"),
        (AttributeTypeId::MATCHING_RULE_USE, "matchingRuleUse"),
        (AttributeTypeId::DIT_CONTENT_RULES, "dITContentRules"),
        (AttributeTypeId::DIT_STRUCTURE_RULES, "dITStructureRules"),
        (AttributeTypeId::NAME_FORMS, "nameForms"),
        (AttributeTypeId::NAMING_CONTEXTS, "namingContexts"),
        (AttributeTypeId::ALT_SERVER, "altServer"),
        (AttributeTypeId::SUPPORTED_EXTENSION, "supportedExtension"),
        (AttributeTypeId::SUPPORTED_CONTROL, "supportedControl"),
        (AttributeTypeId::SUPPORTED_SASL_MECHANISMS, "supportedSASLMechanisms"),
        (AttributeTypeId::SUPPORTED_LDAP_VERSION, "supportedLDAPVersion"),
        (AttributeTypeId::SUPPORTED_FEATURES, "supportedFeatures"),
        (AttributeTypeId::SUPPORTED_AUTH_PASSWORD_SCHEMES, "supportedAuthPasswordSchemes"),
        (AttributeTypeId::VENDOR_NAME, "vendorName"),
        (AttributeTypeId::VENDOR_VERSION, "vendorVersion"),
        (AttributeTypeId::DEFAULT_NAMING_CONTEXT, "defaultNamingContext"),
        (AttributeTypeId::NAME, "name"),
        (AttributeTypeId::CN, "cn"),
        (AttributeTypeId::USER_PASSWORD, "userPassword"),
        (AttributeTypeId::DISTINGUISHED_NAME, "distinguishedName"),
        (AttributeTypeId::DESCRIPTION, "description"),
        (AttributeTypeId::MEMBER, "member"),
        (AttributeTypeId::UNIQUE_MEMBER, "uniqueMember"),
        (AttributeTypeId::UID, "uid"),
        (AttributeTypeId::AUTH_PASSWORD, "authPassword"),
    ];
    for (number, (id, name)) in (0..).zip(types) {
        assert_eq!((schema.attribute(name), id), (Some(id), AttributeTypeId(number)), "{name}");
        assert_eq!(schema.attribute_type(id).name(), name);
    }
    let classes = [
        (ObjectClassId::TOP, "top"),
        (ObjectClassId::ALIAS, "alias"),
        (ObjectClassId::SUBSCHEMA, "subschema"),
        (ObjectClassId::EXTENSIBLE_OBJECT, "extensibleObject"),
        (ObjectClassId::REFERRAL, "referral"),
        (ObjectClassId::SUBENTRY, "subentry"),
        (ObjectClassId::LDAP_SUBENTRY, "ldapSubEntry"),
    ];
    for (number, (id, name)) in (0..).zip(classes) {
        assert_eq!((schema.object_class(name), id), (Some(id), ObjectClassId(number)), "{name}");
    }
}

#[test]
fn elements_are_found_by_every_name_in_any_case() {
    let schema = Schema::standard();
    for kind in schema.attribute_types() {
        for name in kind.names.iter().chain([&kind.oid]) {
            assert_eq!(schema.attribute(name), Some(kind.id), "{name}");
            assert_eq!(schema.attribute(&name.to_uppercase()), Some(kind.id), "{name}");
        }
        assert!(schema.subtypes(kind.id).starts_with(&[kind.id]));
        for &sub in schema.subtypes(kind.id) {
            assert!(schema.is_subtype(sub, kind.id));
        }
    }
    for class in schema.object_classes() {
        for name in class.names.iter().chain([&class.oid]) {
            assert_eq!(schema.object_class(&name.to_lowercase()), Some(class.id), "{name}");
        }
    }
    for absent in ["", "nosuch", "objectclass-EXTRA", "2.5.4.999", "cn;lang-en", "c n"] {
        assert_eq!(schema.attribute(absent), None, "{absent:?}");
    }
    assert_eq!(schema.attribute_type(AttributeTypeId(u32::MAX)).syntax, Syntax::OctetString);
    assert!(schema.subtypes(AttributeTypeId(u32::MAX)).is_empty());
}

#[test]
fn rules_and_syntaxes_are_inherited() {
    let schema = Schema::standard();
    let kind =
        |name| schema.attribute_type(schema.attribute(name).unwrap_or_else(|| panic!("no type {name}")));
    let country = kind("c");
    assert_eq!(country.syntax, Syntax::CountryString);
    assert_eq!(country.equality, Some(MatchingRule::CaseIgnoreMatch));
    assert_eq!(country.substring, Some(MatchingRule::CaseIgnoreSubstringsMatch));
    assert!(country.is_single_value);
    assert_eq!(kind("seeAlso").equality, Some(MatchingRule::DistinguishedNameMatch));
    assert_eq!(kind("registeredAddress").equality, Some(MatchingRule::CaseIgnoreListMatch));
    assert_eq!(kind("mail").length_bound, Some(256));
    assert_eq!(kind("entryUUID").ordering, Some(MatchingRule::UuidOrderingMatch));
    assert!(kind("createTimestamp").is_no_user_modification);
    assert_eq!(kind("vendorName").usage, Usage::DsaOperation);
    // In the RFCs, names have no order.
    assert_eq!(kind("sn").ordering, None);
    let class = |name| schema.class(schema.object_class(name).unwrap_or_else(|| panic!("no class {name}")));
    let person = class("inetOrgPerson");
    assert_eq!(person.kind, ClassKind::Structural);
    let lineage: Vec<&str> = person.lineage.iter().map(|id| schema.class(*id).name()).collect();
    assert_eq!(lineage, ["inetOrgPerson", "organizationalPerson", "person", "top"]);
    let must: Vec<&str> = person.must.iter().map(|id| schema.attribute_type(*id).name()).collect();
    assert_eq!(must, ["objectClass", "cn", "sn"]);
    assert!(person.allows(kind("mail").id) && !person.allows(kind("uidNumber").id));
}

#[test]
fn what_is_published_reads_back_and_is_valid() {
    let schema = Schema::standard();
    for element in Element::ALL {
        let id = schema.attribute(element.attribute()).expect("an attribute of the subschema");
        let kind = schema.attribute_type(id);
        for text in schema.published(element) {
            let definition =
                Definition::parse(element, &text).unwrap_or_else(|error| panic!("{text}: {error}"));
            assert_eq!(definition.to_string(), text);
            assert_eq!(kind.syntax.check(text.as_bytes(), &schema), Ok(()), "{text}");
            let rule = kind.equality.expect("an equality rule");
            let (mut value, mut wanted) = (Vec::new(), Vec::new());
            rule.normalize(text.as_bytes(), &schema, &mut value).expect("a definition");
            rule.normalize_assertion(definition.head().oid.as_bytes(), &schema, &mut wanted).expect("an OID");
            assert_eq!(value, wanted, "{text}");
        }
    }
    let counts = Element::ALL.map(|element| schema.published(element).len());
    assert!(counts[..5].iter().all(|count| *count > 20), "{counts:?}");
}

#[test]
fn numbers_are_kept() {
    let schema = Schema::standard();
    let mut numbers = schema.numbers();
    // A directory that has seen other elements after the first ones, one of them gone since.
    numbers.attribute_types.insert(50, "1.3.6.1.4.1.32473.9".to_owned());
    numbers.attribute_types.swap(60, 70);
    numbers.object_classes.push("1.3.6.1.4.1.32473.8".to_owned());
    let restored = schema.with_numbers(&numbers).expect("a good table");
    assert_eq!(restored.numbers(), numbers);
    for kind in schema.attribute_types() {
        let id = restored.attribute(kind.name()).expect("the standard's types are there");
        assert_eq!(restored.attribute_type(id).definition(), kind.definition());
        assert_eq!(numbers.attribute_types[id.0 as usize], kind.oid);
    }
    let gone = AttributeTypeId(50);
    assert!(!restored.has_attribute_type(gone) && restored.attribute("1.3.6.1.4.1.32473.9").is_none());
    assert_eq!(restored.attribute_type(gone).oid, "1.3.6.1.4.1.32473.9");
    assert_eq!(restored.subtypes(gone), [gone]);
    // A table from before an element of the standard was known.
    numbers.attribute_types.truncate(100);
    let restored = schema.with_numbers(&numbers).expect("a shorter table");
    assert_eq!(restored.attribute_types().count(), schema.attribute_types().count());
    assert_eq!(restored.numbers().attribute_types[..100], numbers.attribute_types);
}

#[test]
fn tables_that_contradict_are_refused() {
    let schema = Schema::standard();
    let good = schema.numbers();
    let change = |edit: fn(&mut Numbers)| {
        let mut numbers = good.clone();
        edit(&mut numbers);
        schema.with_numbers(&numbers).map(drop)
    };
    assert!(matches!(change(|it| it.attribute_types.swap(3, 4)), Err(SchemaError::Number { number: 3, .. })));
    assert!(matches!(change(|it| it.object_classes.swap(0, 1)), Err(SchemaError::Number { number: 0, .. })));
    assert!(matches!(
        change(|it| it.attribute_types.truncate(7)),
        Err(SchemaError::Number { number: 7, .. })
    ));
    let twice = change(|it| it.attribute_types[50] = it.attribute_types[60].clone());
    assert!(matches!(twice, Err(SchemaError::NameTaken { .. })), "{twice:?}");
    assert_eq!(change(|it| *it = Numbers::default()), Ok(()));
}

#[test]
fn definitions_as_products_write_them() {
    use Element::{
        AttributeType, ContentRule, MatchingRuleUse, NameForm, ObjectClass, StructureRule, Syntax,
    };
    let cases: &[(Element, &str, &str)] = &[
        (AttributeType, "(1.2.3 name 'a' syntax 1.2.3{5})", "( 1.2.3 NAME 'a' SYNTAX 1.2.3{5} )"),
        (AttributeType, "( '1.2.3' NAME a SUP 'b' )", "( 1.2.3 NAME 'a' SUP b )"),
        (AttributeType, "( 1.2.3\tNAME ('a' 'b')\n SYNTAX '1.2' )", "( 1.2.3 NAME ( 'a' 'b' ) SYNTAX 1.2 )"),
        (
            AttributeType,
            "( a-oid SYNTAX 1.2 SINGLE-VALUE X-ORIGIN 'u' )",
            "( a-oid SYNTAX 1.2 SINGLE-VALUE X-ORIGIN 'u' )",
        ),
        (
            AttributeType,
            "( 1.2.3 DESC 'user's \\27x\\5c' SUP b )",
            "( 1.2.3 DESC 'user\\27s \\27x\\5C' SUP b )",
        ),
        (AttributeType, "( 1.2.3 DESC '' SUP b )", "( 1.2.3 DESC '' SUP b )"),
        (
            AttributeType,
            "( 1.2.3 X-B ( 'x' 'y' ) SUP b USAGE DSAOperation )",
            "( 1.2.3 SUP b USAGE dSAOperation X-B ( 'x' 'y' ) )",
        ),
        (
            ObjectClass,
            "( 1.2.3 SUP ( a $ b ) ABSTRACT MUST(c$d) MAY e )",
            "( 1.2.3 SUP ( a $ b ) ABSTRACT MUST ( c $ d ) MAY e )",
        ),
        (ObjectClass, "( 1.2.3 MAY ( a b ) )", "( 1.2.3 STRUCTURAL MAY ( a $ b ) )"),
        (ObjectClass, "( 1.2.3 OBSOLETE MAY ( ) )", "( 1.2.3 OBSOLETE STRUCTURAL )"),
        (
            Syntax,
            "( 1.2.3 DESC 'x' X-NOT-HUMAN-READABLE 'TRUE' )",
            "( 1.2.3 DESC 'x' X-NOT-HUMAN-READABLE 'TRUE' )",
        ),
        (MatchingRuleUse, "( 1.2.3 APPLIES ( a $ b ) )", "( 1.2.3 APPLIES ( a $ b ) )"),
        (ContentRule, "( 1.2.3 AUX ( a $ b ) NOT c )", "( 1.2.3 AUX ( a $ b ) NOT c )"),
        (StructureRule, "( 2 NAME 'r' FORM f SUP ( 1 3 ) )", "( 2 NAME 'r' FORM f SUP ( 1 3 ) )"),
        (NameForm, "( 1.2.3 OC a MUST b MAY ( c $ d ) )", "( 1.2.3 OC a MUST b MAY ( c $ d ) )"),
    ];
    for (element, text, canonical) in cases {
        let definition = Definition::parse(*element, text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(definition.to_string(), *canonical, "{text}");
        assert_eq!(Definition::parse(*element, canonical), Ok(definition), "{text}");
    }
}

#[test]
fn definitions_that_are_none() {
    let parse = |text: &str| Definition::parse(Element::AttributeType, text);
    let unexpected = [
        "",
        "1.2.3",
        "( )",
        "( 1.2.3",
        "( 1.2.3 SUP a ) x",
        "( 1.2.3 DESC 'x SUP a )",
        "( 1.2.3 'x' )",
        "( 1.2.3 SYNTAX 1.2{x} )",
        "( 1.2.3 SYNTAX 1.2{99999999999} )",
        "( 1.2.3 SUP a USAGE x )",
        "( 1.2.3 NAME (a (b)) SUP a )",
        "( 1.2.3 NAME 'a b' SUP a )",
    ];
    for text in unexpected {
        assert!(matches!(parse(text), Err(DefinitionError::Unexpected { .. })), "{text}: {:?}", parse(text));
    }
    assert!(matches!(parse("( 1.2.3 MUST a )"), Err(DefinitionError::UnknownKeyword { offset: 8, .. })));
    assert!(matches!(parse("( 1.2.3 SUP a sup b )"), Err(DefinitionError::Repeated { offset: 14, .. })));
    assert!(matches!(parse("( 1.2.3 NAME 'a' )"), Err(DefinitionError::Missing { keyword: "SYNTAX" })));
    // Found by fuzzing: a needed list that is there and empty.
    for (element, text, needed) in [
        (Element::MatchingRuleUse, "( 2.5.13.2 APPLIES ( ) )", "APPLIES"),
        (Element::NameForm, "( 1.2.3 OC person MUST ( ) )", "MUST"),
    ] {
        let found = Definition::parse(element, text);
        assert!(matches!(found, Err(DefinitionError::Missing { keyword }) if keyword == needed), "{found:?}");
    }
    assert!(matches!(parse("( R:1 SUP a )"), Err(DefinitionError::UnknownMacro { offset: 2, .. })));
    let long = format!("( 1.2.3 MAY ( {} ) )", "a ".repeat(5000));
    let error = Definition::parse(Element::ObjectClass, &long);
    assert!(matches!(error, Err(DefinitionError::TooLarge { max: 4096, .. })), "{error:?}");
    assert!(matches!(parse(&"(".repeat(300_000)), Err(DefinitionError::TooLarge { .. })));
}

#[test]
fn files_of_both_forms() {
    let slapd = "# comment\nobjectidentifier R 1.3.6.1.4.1.32473\nObjectIdentifier T R:1\nOBJECTIDENTIFIER Str 1.3.6.1.4.1.1466.115.121.1.15\n\n\
        attributetype ( T:1 NAME 'one'\n\tDESC 'two  words'\n\n\tSYNTAX Str{9} )\n# ( not this )\n  nor this )\nobjectclass ( R:2.7 NAME 'two' MAY one )\ninclude x.schema\n";
    let file = SchemaFile::parse(slapd).expect("a good file");
    let texts: Vec<(usize, String)> =
        file.definitions.iter().map(|it| (it.line, it.definition.to_string())).collect();
    let one =
        "( 1.3.6.1.4.1.32473.1.1 NAME 'one' DESC 'two  words' SYNTAX 1.3.6.1.4.1.1466.115.121.1.15{9} )";
    assert_eq!(texts[0], (6, one.to_owned()));
    assert_eq!((file.ignored[0].line, file.ignored[0].keyword.as_str()), (13, "include"));
    let error =
        SchemaFile::parse("\nattributetype ( X:1 NAME 'one' SUP name )\n").expect_err("an unknown macro");
    assert_eq!(error.to_string(), "line 2: attribute type: at 2: no objectidentifier \"X\" before this");
    let ldif = "dn: cn=x\nobjectClass: olcSchemaConfig\nattributetypes: ( 1.2.3 NAME 'o\n ne' SUP\n  name )\n\
        olcObjectClasses: {3}( 1.2.4 NAME 'two' MAY one )\nobjectClasses:: KCAxLjIuNSBOQU1FICd0aHJlZScgKQ==\ncn: x\n";
    let file = SchemaFile::parse(ldif).expect("a good file");
    let texts: Vec<(usize, String)> =
        file.definitions.iter().map(|it| (it.line, it.definition.to_string())).collect();
    let expected = [
        (3, "( 1.2.3 NAME 'one' SUP name )"),
        (6, "( 1.2.4 NAME 'two' STRUCTURAL MAY one )"),
        (7, "( 1.2.5 NAME 'three' STRUCTURAL )"),
    ];
    assert_eq!(texts, expected.map(|(line, text)| (line, text.to_owned())));
    let ignored: Vec<&str> = file.ignored.iter().map(|it| it.keyword.as_str()).collect();
    assert_eq!(ignored, ["dn", "objectClass", "cn"]);
    assert_eq!(SchemaFile::from_bytes(ldif.as_bytes()), Ok(file));
    let error = SchemaFile::from_bytes(b"a\nb\xff\n").expect_err("not UTF-8");
    assert_eq!(error.to_string(), "line 2: not UTF-8");
    for bad in
        ["objectidentifier x\n", "objectClasses:: ###\n", "objectClasses:: YWJjZ\n", "nameforms: ( 1.2 )\n"]
    {
        assert!(SchemaFile::parse(bad).is_err(), "{bad}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in "[ '()$\\\\{}a1.:-]{0,40}|\\PC{0,30}") {
        for element in Element::ALL {
            if let Ok(definition) = Definition::parse(element, &text) {
                let again = definition.to_string();
                prop_assert_eq!(Definition::parse(element, &again), Ok(definition));
            }
        }
        let file = format!("attributetype {text}\nattributeTypes: {text}\n{text}");
        let _ = SchemaFile::from_bytes(file.as_bytes());
    }

    #[test]
    fn what_is_written_reads_back(
        oid in "[0-2](\\.(0|[1-9][0-9]{0,3})){1,4}", names in prop::collection::vec("[a-z][a-zA-Z0-9-]{0,8}", 0..4),
        description in prop::option::of("[ -~\u{e9}]{1,20}"), bound in prop::option::of(any::<u32>()),
        extension in prop::collection::vec("[ -~]{0,9}", 0..3), flags in any::<[bool; 4]>(),
    ) {
        use cowslip_ldap::schema::{AttributeTypeDefinition, Head};
        let extensions = if extension.is_empty() { Vec::new() } else { vec![("X-A".to_owned(), extension)] };
        let head = Head { oid: oid.clone(), names, description, is_obsolete: flags[0], extensions };
        let definition = Definition::AttributeType(AttributeTypeDefinition {
            head,
            syntax: Some(oid),
            length_bound: bound,
            is_single_value: flags[1],
            is_collective: flags[2],
            is_no_user_modification: flags[3],
            ..AttributeTypeDefinition::default()
        });
        let text = definition.to_string();
        prop_assert_eq!(Definition::parse(Element::AttributeType, &text), Ok(definition), "{}", text);
    }
}
