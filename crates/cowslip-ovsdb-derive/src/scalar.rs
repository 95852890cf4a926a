//! `#[derive(Scalar)]`: an enum of listed values, or a newtype.
//!
//! Invariant: reading the atom of a listed value gives that value's variant, never the unrecognized one.

use crate::attributes::{Errors, Listed, client_path, listed, refuse_generics, text, words};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::spanned::Spanned;
use syn::{Data, DataEnum, DeriveInput, Fields, Ident, Path, Type, Variant};

/// What the variants of an enum are for.
#[derive(Default)]
struct Variants<'a> {
    listed: Vec<(&'a Ident, Listed, Span)>,
    unrecognized: Option<(&'a Ident, &'a Type)>,
}

/// The implementation for an enum or a newtype.
pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    let mut client = None;
    let header = words(&input.attrs, "`crate`", |word, meta| {
        if word != "crate" {
            return Ok(false);
        }
        client = Some(text(meta)?.parse()?);
        Ok(true)
    });
    errors.keep(header);
    refuse_generics(input, &mut errors);
    let client = client_path(client);
    let body = match &input.data {
        Data::Enum(data) => {
            let variants = variants(data, &mut errors);
            if variants.listed.is_empty() {
                errors.at(input.ident.span(), "say what the variants stand for: `#[ovsdb(value = …)]`");
            }
            enumeration(&variants, &client)
        }
        Data::Struct(data) => match &data.fields {
            Fields::Unnamed(fields) if fields.unnamed.len() == 1 => newtype(&fields.unnamed[0].ty, &client),
            _ => {
                errors.at(
                    input.ident.span(),
                    "a scalar struct has one field without a name: `struct Name(String);`",
                );
                TokenStream::new()
            }
        },
        Data::Union(data) => {
            errors.at(data.union_token.span, "a scalar is an enum or a newtype");
            TokenStream::new()
        }
    };
    errors.finish()?;
    let ident = &input.ident;
    Ok(quote! {
        #[automatically_derived]
        impl #client::model::Scalar for #ident {
            #body
        }
    })
}

fn variants<'a>(data: &'a DataEnum, errors: &mut Errors) -> Variants<'a> {
    let mut variants = Variants::default();
    for variant in &data.variants {
        if let Err(error) = take(variant, &mut variants) {
            errors.push(error);
        }
    }
    variants
}

fn take<'a>(variant: &'a Variant, variants: &mut Variants<'a>) -> syn::Result<()> {
    let mut value = None;
    let mut is_unrecognized = false;
    words(&variant.attrs, "`value`, `unrecognized`", |word, meta| {
        match word {
            "value" => value = Some(listed(meta)?),
            "unrecognized" => is_unrecognized = true,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let refuse = |span: Span, message: &str| Err(syn::Error::new(span, message));
    let place = variant.ident.span();
    match (value, is_unrecognized, &variant.fields) {
        (Some((value, span)), false, Fields::Unit) => {
            if let Some((first, ..)) = variants.listed.iter().find(|(_, other, _)| *other == value) {
                return Err(syn::Error::new(span, format!("`{first}` stands for this value already")));
            }
            let is_other_type = |(_, other, _): &(&Ident, Listed, Span)| {
                std::mem::discriminant(other) != std::mem::discriminant(&value)
            };
            if variants.listed.first().is_some_and(is_other_type) {
                return refuse(span, "all values of an enum are of one type");
            }
            variants.listed.push((&variant.ident, value, span));
        }
        (None, true, Fields::Unnamed(fields)) if fields.unnamed.len() == 1 => {
            if let Some((first, _)) = variants.unrecognized {
                return Err(syn::Error::new(place, format!("`{first}` takes unrecognized values already")));
            }
            variants.unrecognized = Some((&variant.ident, &fields.unnamed[0].ty));
        }
        (Some(_), true, _) => return refuse(place, "either `value` or `unrecognized`"),
        (Some(_), false, fields) => return refuse(fields.span(), "a variant with a `value` has no fields"),
        (None, true, _) => {
            return refuse(
                place,
                "holds what is not recognized, in one field without a name: `Unrecognized(String)`",
            );
        }
        (None, false, _) => return refuse(place, "say what it stands for: `#[ovsdb(value = …)]`"),
    }
    Ok(())
}

fn enumeration(variants: &Variants<'_>, client: &Path) -> TokenStream {
    let model = quote!(#client::model);
    let is_text = matches!(variants.listed.first(), Some((_, Listed::Text(_), _)));
    let (atomic, pattern, matched) = if is_text {
        (quote!(String), quote!(#model::Atom::String(value)), quote!(&**value))
    } else {
        (quote!(Integer), quote!(#model::Atom::Integer(value)), quote!(*value))
    };
    let mut reads = Vec::new();
    let mut writes = Vec::new();
    for (ident, value, _) in &variants.listed {
        match value {
            Listed::Text(text) => {
                reads.push(quote!(#text => ::core::option::Option::Some(Self::#ident)));
                writes.push(quote!(Self::#ident => #model::Atom::string(#text)));
            }
            Listed::Number(number) => {
                reads.push(quote!(#number => ::core::option::Option::Some(Self::#ident)));
                writes.push(quote!(Self::#ident => #model::Atom::Integer(#number)));
            }
        }
    }
    let otherwise = match variants.unrecognized {
        Some((ident, ty)) => {
            writes.push(quote!(Self::#ident(value) => <#ty as #model::Scalar>::to_atom(value)));
            quote!(<#ty as #model::Scalar>::from_atom(atom).map(Self::#ident))
        }
        None => quote!(::core::option::Option::None),
    };
    quote! {
        const ATOMIC: #model::AtomicType = #model::AtomicType::#atomic;

        fn from_atom(atom: &#model::Atom) -> ::core::option::Option<Self> {
            match atom {
                #pattern => match #matched {
                    #(#reads,)*
                    _ => #otherwise,
                },
                _ => ::core::option::Option::None,
            }
        }

        fn to_atom(&self) -> #model::Atom {
            match self {
                #(#writes,)*
            }
        }
    }
}

fn newtype(ty: &Type, client: &Path) -> TokenStream {
    let model = quote!(#client::model);
    quote! {
        const ATOMIC: #model::AtomicType = <#ty as #model::Scalar>::ATOMIC;

        fn from_atom(atom: &#model::Atom) -> ::core::option::Option<Self> {
            <#ty as #model::Scalar>::from_atom(atom).map(Self)
        }

        fn to_atom(&self) -> #model::Atom {
            <#ty as #model::Scalar>::to_atom(&self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::expand;
    use crate::attributes::{check_refusal, refusals};

    fn refused(source: &str, at: &str, message: &str) {
        check_refusal(expand, source, at, message);
    }

    #[test]
    fn what_is_no_scalar_is_refused_where_it_is_wrong() {
        refused("struct Two(i64, i64);", "Two", "one field");
        refused("struct Named { a: i64 }", "Named", "one field");
        refused("union U { a: i64 }", "union", "an enum or a newtype");
        refused("enum Empty {}", "Empty", "say what the variants stand for");
        refused("struct G<T>(T);", "T", "generic");
    }

    #[test]
    fn wrong_variants_are_refused() {
        refused("enum E { Aa }", "Aa", "say what it stands for");
        refused(
            "enum E { #[ovsdb(value = \"a\")] A, #[ovsdb(value = \"a\")] B }",
            "\"a\"",
            "`A` stands for this",
        );
        refused("enum E { #[ovsdb(value = \"a\")] A, #[ovsdb(value = 1)] B }", "1", "one type");
        refused("enum E { #[ovsdb(value = 1.5)] A }", "1.5", "a string or an integer");
        refused("enum E { #[ovsdb(value = 9223372036854775808)] A }", "9223372036854775808", "64 bits");
        refused("enum E { #[ovsdb(value = \"a\")] A(i64) }", "(i64)", "no fields");
        refused("enum E { #[ovsdb(unrecognized)] A }", "A", "in one field");
        refused("enum E { #[ovsdb(unrecognized, value = 1)] A }", "A", "either");
        refused("enum E { #[ovsdb(valeu = 1)] A }", "valeu", "known: `value`");
        let twice =
            "enum E { #[ovsdb(value = 1)] A, #[ovsdb(unrecognized)] B(i64), #[ovsdb(unrecognized)] C(i64) }";
        refused(twice, "C", "`B` takes");
    }

    #[test]
    fn the_smallest_integer_can_be_a_value() {
        assert!(refusals(expand, "enum E { #[ovsdb(value = -9223372036854775808)] A }").is_empty());
    }
}
