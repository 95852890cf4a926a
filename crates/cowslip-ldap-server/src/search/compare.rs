//! Comparing (RFC 4511, section 4.10).

use cowslip_ldap::filter::{CompiledFilter, EntryView, Filter, Scratch, Truth};
use cowslip_ldap::message::CompareRequest;
use cowslip_ldap::result::ResultCode;

use super::view::{Context, View};
use crate::operations::write::found;
use crate::operations::{Refusal, prepare};
use crate::tree::Tree;

/// Whether an entry has a value.
///
/// # Errors
/// There is no such entry or attribute, or it cannot be compared with such a value: see [`Refusal`].
pub fn compare<T: Tree>(tree: &T, request: &CompareRequest<'_>, sees_secrets: bool) -> Result<bool, Refusal> {
    let meta = tree.meta();
    let number = found(tree, &prepare::path(&prepare::name(request.name)?, meta)?)?;
    let is_configuration = |config| !sees_secrets && tree.is_within(number, config);
    if meta.rules.config.is_some_and(is_configuration) {
        return Err(Refusal::new(ResultCode::NoSuchObject, "there is no such entry"));
    }
    let (kind, options) = prepare::attribute(request.attribute.as_bytes(), meta)?;
    let definition = meta.schema.attribute_type(kind);
    let Some(rule) = definition.equality else {
        let message = format!("{} has no equality rule", definition.name());
        return Err(Refusal::new(ResultCode::InappropriateMatching, message));
    };
    if let Err(error) = rule.normalize_assertion(request.value, &meta.schema, &mut Vec::new()) {
        let message = format!("{}: {error}", definition.name());
        return Err(Refusal::new(ResultCode::InvalidAttributeSyntax, message));
    }
    let context = Context::default();
    let Some(entry) = tree.entry(number) else { return Ok(false) };
    let view = View::new(tree, number, entry, &context, sees_secrets);
    let kinds = meta.schema.subtypes(kind);
    if !kinds.iter().any(|kind| view.is_visible(*kind) && view.has(*kind, &options)) {
        return Err(Refusal::new(
            ResultCode::NoSuchAttribute,
            format!("the entry has no {}", definition.name()),
        ));
    }
    let filter = Filter::Equality { attribute: request.attribute.to_owned(), value: request.value.to_vec() };
    let filter = CompiledFilter::new(&filter, &meta.schema);
    Ok(filter.evaluate(&view, &mut Scratch::default()) == Truth::True)
}
