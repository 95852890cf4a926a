//! What the subschema entry publishes (RFC 4512 section 4.2).

use super::{
    Definition, Element, Head, MatchingRuleDefinition, MatchingRuleUseDefinition, Schema, SyntaxDefinition,
};
use crate::matching::{MatchingRule, RuleKind};
use crate::syntax::Syntax;

impl Schema {
    /// The values of one attribute of the subschema entry, in a fixed order.
    ///
    /// ```
    /// use cowslip_ldap::schema::{Element, Schema};
    /// let values = Schema::standard().published(Element::AttributeType);
    /// assert!(values[0].starts_with("( 2.5.4.0 NAME 'objectClass'"));
    /// ```
    #[must_use]
    pub fn published(&self, element: Element) -> Vec<String> {
        match element {
            Element::AttributeType => self.attribute_types().map(|it| it.definition().to_string()).collect(),
            Element::ObjectClass => self.object_classes().map(|it| it.definition().to_string()).collect(),
            Element::ContentRule => self
                .content_rules()
                .map(|it| Definition::ContentRule(it.definition().clone()).to_string())
                .collect(),
            Element::Syntax => Syntax::ALL.iter().map(|it| syntax(*it).to_string()).collect(),
            Element::MatchingRule => MatchingRule::ALL.iter().map(|it| rule(*it).to_string()).collect(),
            Element::MatchingRuleUse => MatchingRule::ALL
                .iter()
                .filter_map(|it| self.rule_use(*it))
                .map(|it| it.to_string())
                .collect(),
            Element::StructureRule | Element::NameForm => Vec::new(),
        }
    }

    /// The types that a rule can be applied to in an extensible match.
    fn rule_use(&self, rule: MatchingRule) -> Option<Definition> {
        let applies: Vec<String> = self
            .attribute_types()
            .filter(|it| rule.applies_to(it.syntax))
            .map(|it| it.name().to_owned())
            .collect();
        // Substring rules have assertions of pieces, which an extensible match can't carry.
        if applies.is_empty() || rule.kind() == RuleKind::Substring {
            return None;
        }
        Some(Definition::MatchingRuleUse(MatchingRuleUseDefinition { head: rule_head(rule), applies }))
    }
}

fn syntax(syntax: Syntax) -> Definition {
    let mut extensions = Vec::new();
    if !syntax.is_human_readable() {
        extensions.push(("X-NOT-HUMAN-READABLE".to_owned(), vec!["TRUE".to_owned()]));
    }
    if syntax.requires_binary() {
        extensions.push(("X-BINARY-TRANSFER-REQUIRED".to_owned(), vec!["TRUE".to_owned()]));
    }
    let head = Head {
        oid: syntax.oid().to_owned(),
        description: Some(syntax.description().to_owned()),
        extensions,
        ..Head::default()
    };
    Definition::Syntax(SyntaxDefinition { head })
}

fn rule(rule: MatchingRule) -> Definition {
    let syntax = rule.assertion_syntax().oid().to_owned();
    Definition::MatchingRule(MatchingRuleDefinition { head: rule_head(rule), syntax })
}

fn rule_head(rule: MatchingRule) -> Head {
    Head { oid: rule.oid().to_owned(), names: vec![rule.name().to_owned()], ..Head::default() }
}
