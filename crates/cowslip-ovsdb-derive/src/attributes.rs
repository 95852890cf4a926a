//! What `#[ovsdb(…)]` says, and gathering the errors of a whole type.
//!
//! Invariant: a word that stands where it means nothing, or stands twice, is an error at that word.

use proc_macro2::Span;
use quote::format_ident;
use syn::meta::ParseNestedMeta;
use syn::{Attribute, DeriveInput, Expr, ExprLit, ExprUnary, Lit, LitStr, Path, UnOp};

/// The errors of a type, reported together.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    /// Adds one.
    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    /// Adds one at a place.
    pub(crate) fn at(&mut self, span: Span, message: impl std::fmt::Display) {
        self.push(syn::Error::new(span, message));
    }

    /// The result's value; its error is added.
    pub(crate) fn keep<T>(&mut self, result: syn::Result<T>) -> Option<T> {
        result.map_err(|error| self.push(error)).ok()
    }

    /// Whether there was none yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Fails if there was any.
    pub(crate) fn finish(self) -> syn::Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}

/// Goes through the words of all `#[ovsdb(…)]`; `take` tells whether it knows the word.
pub(crate) fn words(
    attributes: &[Attribute],
    known: &str,
    mut take: impl FnMut(&str, &ParseNestedMeta<'_>) -> syn::Result<bool>,
) -> syn::Result<()> {
    let mut seen: Vec<String> = Vec::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("ovsdb")) {
        attribute.parse_nested_meta(|meta| {
            let word = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            if seen.contains(&word) {
                return Err(meta.error(format!("`{word}` is there twice")));
            }
            if !take(&word, &meta)? {
                return Err(meta.error(format!("unknown here; known: {known}")));
            }
            seen.push(word);
            Ok(())
        })?;
    }
    Ok(())
}

/// A string after `=`.
pub(crate) fn text(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    meta.value()?.parse()
}

/// The name of a table or column after `=`.
pub(crate) fn id(meta: &ParseNestedMeta<'_>) -> syn::Result<LitStr> {
    let text = text(meta)?;
    check_id(&text.value(), text.span())?;
    Ok(text)
}

/// Checks that a schema could have a table or column of this name.
pub(crate) fn check_id(name: &str, span: Span) -> syn::Result<()> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts_well && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Ok(());
    }
    let message = if name.starts_with('_') {
        "no schema has names that begin with `_`; every model has the row's UUID without naming it"
    } else {
        "no schema has such a name: letters, digits and `_` only, a letter first"
    };
    Err(syn::Error::new(span, message))
}

/// A value that a schema's list can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// A string.
    Text(String),
    /// An integer.
    Number(i64),
}

/// A string or an integer after `=`.
pub(crate) fn listed(meta: &ParseNestedMeta<'_>) -> syn::Result<(Listed, Span)> {
    let expression: Expr = meta.value()?.parse()?;
    let span = syn::spanned::Spanned::span(&expression);
    let refused = || syn::Error::new(span, "expected a string or an integer of 64 bits");
    let (literal, sign) = match &expression {
        Expr::Lit(ExprLit { lit, .. }) => (lit, ""),
        Expr::Unary(ExprUnary { op: UnOp::Neg(_), expr, .. }) => match &**expr {
            Expr::Lit(ExprLit { lit: lit @ Lit::Int(_), .. }) => (lit, "-"),
            _ => return Err(refused()),
        },
        _ => return Err(refused()),
    };
    let value = match literal {
        Lit::Str(text) => Listed::Text(text.value()),
        Lit::Int(digits) => {
            // The sign is part of the number, or the smallest one could not be written.
            Listed::Number(format!("{sign}{}", digits.base10_digits()).parse().map_err(|_| refused())?)
        }
        _ => return Err(refused()),
    };
    Ok((value, span))
}

/// The path of the client's crate.
pub(crate) fn client_path(given: Option<Path>) -> Path {
    given.unwrap_or_else(|| {
        let name = format_ident!("cowslip_ovsdb_client");
        syn::parse_quote!(::#name)
    })
}

/// Refuses a generic type: what a column holds has to be known.
pub(crate) fn refuse_generics(input: &DeriveInput, errors: &mut Errors) {
    if let Some(parameter) = input.generics.params.first() {
        errors.at(syn::spanned::Spanned::span(parameter), "cannot be derived for a generic type");
    }
}

/// For the tests of what is refused: each error's message and the words that it is at.
#[cfg(test)]
pub(crate) fn refusals(
    expand: fn(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
    source: &str,
) -> Vec<(String, String)> {
    let input: DeriveInput = syn::parse_str(source).expect("the test's source is Rust");
    let Err(errors) = expand(&input) else { return Vec::new() };
    let at = |error: &syn::Error| error.span().source_text().unwrap_or_default();
    errors.into_iter().map(|error| (at(&error), error.to_string())).collect()
}

/// For the same tests: checks the first error of a type, the words that it is at and a part of its message.
#[cfg(test)]
pub(crate) fn check_refusal(
    expand: fn(&DeriveInput) -> syn::Result<proc_macro2::TokenStream>,
    source: &str,
    at: &str,
    message: &str,
) {
    let errors = refusals(expand, source);
    let first = errors.first().unwrap_or_else(|| panic!("not refused: {source}"));
    assert_eq!(first.0, at, "{source}\n{errors:?}");
    assert!(first.1.contains(message), "{source}\n{errors:?}");
}
