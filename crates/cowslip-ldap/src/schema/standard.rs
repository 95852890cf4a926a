//! The standard schema, read from the data files next to this module: one per RFC, the definitions as the RFC has them.
//!
//! Invariants: the elements of `core.schema` come first and keep their order for ever, since their numbers are
//! constants and the server relies on them; every data file parses and assembles (a test), so that reading them can't
//! fail at run time.

use std::sync::Arc;
use std::sync::OnceLock;

use super::assemble::{Numbers, Parts};
use super::file::SchemaFile;
use super::{AttributeTypeId, Definition, ObjectClassId, Schema};

/// The data files in the order in which numbers are given.
const FILES: &[(&str, &str)] = &[
    ("core", include_str!("data/core.schema")),
    ("rfc4519", include_str!("data/rfc4519.schema")),
    ("rfc4523", include_str!("data/rfc4523.schema")),
    ("rfc4524", include_str!("data/rfc4524.schema")),
    ("rfc3112", include_str!("data/rfc3112.schema")),
    ("rfc2079", include_str!("data/rfc2079.schema")),
    ("rfc2798", include_str!("data/rfc2798.schema")),
    ("rfc2307bis", include_str!("data/rfc2307bis.schema")),
    ("cowslip", include_str!("data/cowslip.schema")),
    ("products", include_str!("data/products.schema")),
];

macro_rules! well_known {
    ($id:ident: $($(#[$doc:meta])* $name:ident = $number:literal;)*) => {
        impl $id {
            $($(#[$doc])* pub const $name: $id = $id($number);)*
        }
    };
}

well_known! { AttributeTypeId:
    /// `objectClass`
    OBJECT_CLASS = 0;
    /// `aliasedObjectName`
    ALIASED_OBJECT_NAME = 1;
    /// `createTimestamp`
    CREATE_TIMESTAMP = 2;
    /// `modifyTimestamp`
    MODIFY_TIMESTAMP = 3;
    /// `creatorsName`
    CREATORS_NAME = 4;
    /// `modifiersName`
    MODIFIERS_NAME = 5;
    /// `subschemaSubentry`
    SUBSCHEMA_SUBENTRY = 6;
    /// `structuralObjectClass`
    STRUCTURAL_OBJECT_CLASS = 7;
    /// `governingStructureRule`
    GOVERNING_STRUCTURE_RULE = 8;
    /// `entryDN` (RFC 5020)
    ENTRY_DN = 9;
    /// `entryUUID` (RFC 4530)
    ENTRY_UUID = 10;
    /// `entryCSN`
    ENTRY_CSN = 11;
    /// `contextCSN`
    CONTEXT_CSN = 12;
    /// `hasSubordinates`
    HAS_SUBORDINATES = 13;
    /// `numSubordinates`
    NUM_SUBORDINATES = 14;
    /// `memberOf`
    MEMBER_OF = 15;
    /// `nsUniqueId`
    NS_UNIQUE_ID = 16;
    /// `ref` (RFC 3296)
    REF = 17;
    /// `attributeTypes`
    ATTRIBUTE_TYPES = 18;
    /// `objectClasses`
    OBJECT_CLASSES = 19;
    /// `ldapSyntaxes`
    LDAP_SYNTAXES = 20;
    /// `matchingRules`
    MATCHING_RULES = 21;
    /// `matchingRuleUse`
    MATCHING_RULE_USE = 22;
    /// `dITContentRules`
    DIT_CONTENT_RULES = 23;
    /// `dITStructureRules`
    DIT_STRUCTURE_RULES = 24;
    /// `nameForms`
    NAME_FORMS = 25;
    /// `namingContexts`
    NAMING_CONTEXTS = 26;
    /// `altServer`
    ALT_SERVER = 27;
    /// `supportedExtension`
    SUPPORTED_EXTENSION = 28;
    /// `supportedControl`
    SUPPORTED_CONTROL = 29;
    /// `supportedSASLMechanisms`
    SUPPORTED_SASL_MECHANISMS = 30;
    /// `supportedLDAPVersion`
    SUPPORTED_LDAP_VERSION = 31;
    /// `supportedFeatures`
    SUPPORTED_FEATURES = 32;
    /// `supportedAuthPasswordSchemes` (RFC 3112)
    SUPPORTED_AUTH_PASSWORD_SCHEMES = 33;
    /// `vendorName` (RFC 3045)
    VENDOR_NAME = 34;
    /// `vendorVersion` (RFC 3045)
    VENDOR_VERSION = 35;
    /// `defaultNamingContext`
    DEFAULT_NAMING_CONTEXT = 36;
    /// `name`
    NAME = 37;
    /// `cn`
    CN = 38;
    /// `userPassword`
    USER_PASSWORD = 39;
    /// `distinguishedName`
    DISTINGUISHED_NAME = 40;
    /// `description`
    DESCRIPTION = 41;
    /// `member`
    MEMBER = 42;
    /// `uniqueMember`
    UNIQUE_MEMBER = 43;
    /// `uid`
    UID = 44;
    /// `authPassword` (RFC 3112)
    AUTH_PASSWORD = 45;
}

well_known! { ObjectClassId:
    /// `top`
    TOP = 0;
    /// `alias`
    ALIAS = 1;
    /// `subschema`
    SUBSCHEMA = 2;
    /// `extensibleObject`
    EXTENSIBLE_OBJECT = 3;
    /// `referral` (RFC 3296)
    REFERRAL = 4;
    /// `subentry` (RFC 3672)
    SUBENTRY = 5;
    /// `LDAPsubentry`
    LDAP_SUBENTRY = 6;
}

/// How many types `core.schema` has.
pub(super) const CORE_TYPES: u32 = 46;
/// How many classes `core.schema` has.
pub(super) const CORE_CLASSES: u32 = 7;

/// The standard's definitions, read once per process.
fn parts() -> &'static Parts {
    static PARTS: OnceLock<Parts> = OnceLock::new();
    PARTS.get_or_init(|| {
        let mut parts = Parts::default();
        for (name, text) in FILES {
            let file = SchemaFile::parse(text)
                .unwrap_or_else(|error| unreachable!("a test reads all data files; {name}: {error}"));
            for located in file.definitions {
                match located.definition {
                    Definition::AttributeType(it) => parts.attribute_types.push(Arc::new(it)),
                    Definition::ObjectClass(it) => parts.object_classes.push(Arc::new(it)),
                    Definition::ContentRule(it) => parts.content_rules.push(Arc::new(it)),
                    _ => {}
                }
            }
        }
        parts
    })
}

/// OIDs of the types whose numbers never change, in order.
pub(super) fn core_type_oids() -> Vec<String> {
    parts().attribute_types.iter().take(CORE_TYPES as usize).map(|it| it.head.oid.clone()).collect()
}

/// OIDs of the classes whose numbers never change, in order.
pub(super) fn core_class_oids() -> Vec<String> {
    parts().object_classes.iter().take(CORE_CLASSES as usize).map(|it| it.head.oid.clone()).collect()
}

/// Whether the standard has a type or class with this OID.
pub(super) fn is_standard(definition: &Definition) -> bool {
    let oid = &definition.head().oid;
    match definition {
        Definition::AttributeType(_) => parts().attribute_types.iter().any(|it| it.head.oid == *oid),
        Definition::ObjectClass(_) => parts().object_classes.iter().any(|it| it.head.oid == *oid),
        _ => false,
    }
}

impl Schema {
    /// The elements of RFC 4512, 4519, 4523, 4524, 2798, 2307 (as in 2307bis), 2079, 3112, 3296, 3045, 3672, 4530 and
    /// 5020, and the operational attributes of OpenLDAP and 389 Directory Server that tools ask for.
    #[must_use]
    pub fn standard() -> Schema {
        Schema::empty(&Numbers::default())
            .and_then(|empty| empty.assemble(parts()))
            .unwrap_or_else(|error| unreachable!("a test assembles the standard: {error}"))
    }
}
