//! `#[derive(Model)]`: reads the struct, then writes the implementation.
//!
//! Invariant: the columns are listed, read and written in the order of the fields.

use crate::attributes::{Errors, check_id, client_path, id, refuse_generics, text, words};
use proc_macro2::{Group, Span, TokenStream, TokenTree};
use quote::{ToTokens, quote, quote_spanned};
use std::collections::HashSet;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Data, DeriveInput, Field, Fields, Ident, LitStr, Path, Type, Visibility};

/// What the struct says about itself.
#[derive(Default)]
struct Header {
    table: Option<LitStr>,
    is_optional: bool,
    client: Option<Path>,
    columns: Option<Ident>,
}

/// What a field is for.
enum Role {
    Uuid,
    Column { name: String, is_required: bool },
    Skipped,
}

struct Member<'a> {
    ident: &'a Ident,
    ty: &'a Type,
    visibility: &'a Visibility,
    role: Role,
}

/// The implementation for a struct.
pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    let mut errors = Errors::default();
    let said = errors.keep(header(input));
    if said.as_ref().is_some_and(|header| header.table.is_none()) {
        errors.at(input.ident.span(), "say which table: `#[ovsdb(table = \"…\")]`");
    }
    refuse_generics(input, &mut errors);
    let header = said.unwrap_or_default();
    let members = members(input, header.is_optional, &mut errors);
    let uuid = members.iter().find(|member| matches!(member.role, Role::Uuid)).map(|member| member.ident);
    // With other errors it may only seem to be missing.
    if uuid.is_none() && errors.is_empty() {
        errors.at(input.ident.span(), "needs a field for the row's UUID: `uuid: Uuid`");
    }
    errors.finish()?;
    let client = client_path(header.client);
    let mut output = implementation(&input.ident, header.table.as_ref(), uuid, &members, &client);
    output.extend(header.columns.map(|columns| typed_columns(&columns, input, &members, &client)));
    Ok(output)
}

fn header(input: &DeriveInput) -> syn::Result<Header> {
    let mut header = Header::default();
    words(&input.attrs, "`table`, `columns`, `optional`, `crate`", |word, meta| {
        match word {
            "table" => header.table = Some(id(meta)?),
            "optional" => header.is_optional = true,
            "columns" => header.columns = Some(text(meta)?.parse()?),
            "crate" => header.client = Some(text(meta)?.parse()?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    Ok(header)
}

/// The fields with their roles; of one whose attributes are wrong nothing is known.
fn members<'a>(input: &'a DeriveInput, all_optional: bool, errors: &mut Errors) -> Vec<Member<'a>> {
    let fields = match &input.data {
        Data::Struct(data) => &data.fields,
        Data::Enum(data) => {
            errors.at(data.enum_token.span, "a model is a struct; for an enum, derive `Scalar`");
            return Vec::new();
        }
        Data::Union(data) => {
            errors.at(data.union_token.span, "a model is a struct");
            return Vec::new();
        }
    };
    let Fields::Named(fields) = fields else {
        errors.at(input.ident.span(), "a model has named fields, one per column");
        return Vec::new();
    };
    let mut members: Vec<Member<'a>> = Vec::new();
    let mut columns = HashSet::new();
    let mut has_uuid = false;
    for field in &fields.named {
        let Some(ident) = &field.ident else { continue };
        let Some(role) = errors.keep(role(field, ident, all_optional)) else { continue };
        match &role {
            Role::Uuid if has_uuid => errors.at(ident.span(), "there is a field for the row's UUID already"),
            Role::Uuid => has_uuid = true,
            Role::Column { name, .. } if !columns.insert(name.clone()) => {
                errors.at(ident.span(), format!("there is a field for the column `{name}` already"));
            }
            Role::Column { .. } | Role::Skipped => {}
        }
        members.push(Member { ident, ty: &field.ty, visibility: &field.vis, role });
    }
    members
}

fn role(field: &Field, ident: &Ident, all_optional: bool) -> syn::Result<Role> {
    let mut column = None;
    let (mut is_uuid, mut is_skipped, mut is_optional, mut is_required) = (false, false, false, false);
    words(&field.attrs, "`uuid`, `column`, `optional`, `required`, `skip`", |word, meta| {
        match word {
            "uuid" => is_uuid = true,
            "skip" => is_skipped = true,
            "optional" => is_optional = true,
            "required" => is_required = true,
            "column" => column = Some(id(meta)?),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    let has_column_words = column.is_some() || is_optional || is_required;
    if is_optional && is_required {
        return Err(syn::Error::new(ident.span(), "either `optional` or `required`"));
    }
    if (is_uuid || is_skipped) && has_column_words || is_uuid && is_skipped {
        return Err(syn::Error::new(
            ident.span(),
            "`uuid` and `skip` stand alone: such a field is no column",
        ));
    }
    if is_skipped {
        return Ok(Role::Skipped);
    }
    let name = ident.unraw().to_string();
    if is_uuid || name == "uuid" && column.is_none() && !has_column_words {
        return Ok(Role::Uuid);
    }
    let name = match column {
        Some(column) => column.value(),
        None => check_id(&name, ident.span()).map(|()| name)?,
    };
    Ok(Role::Column { name, is_required: is_required || !(is_optional || all_optional) })
}

fn implementation(
    ident: &Ident,
    table: Option<&LitStr>,
    uuid: Option<&Ident>,
    members: &[Member<'_>],
    client: &Path,
) -> TokenStream {
    let model = quote!(#client::model);
    let mut specs = Vec::new();
    let mut reads = Vec::new();
    let mut writes = Vec::new();
    for Member { ident, ty, role, .. } in members {
        // At the type's place, so that one which is no column's value is reported there.
        let span = ty.span().resolved_at(Span::call_site());
        match role {
            Role::Uuid => reads.push(quote_spanned!(span=> #ident: row.uuid())),
            Role::Skipped => {
                reads.push(quote_spanned!(span=> #ident: <#ty as ::core::default::Default>::default()));
            }
            Role::Column { name, is_required } => {
                let shape = quote_spanned!(span=> <#ty as #model::FromDatum>::SHAPE);
                specs.push(
                    quote!(#model::ColumnSpec { name: #name, shape: #shape, is_required: #is_required }),
                );
                reads.push(if *is_required {
                    quote_spanned!(span=> #ident: row.value::<#ty>(#name)?)
                } else {
                    quote_spanned!(span=> #ident: row.value_if_known::<#ty>(#name)?.unwrap_or_default())
                });
                writes.push(quote_spanned!(span=> (#name, #model::IntoDatum::to_datum(&self.#ident))));
            }
        }
    }
    quote! {
        #[automatically_derived]
        impl #model::Model for #ident {
            const TABLE: &'static str = #table;

            fn columns() -> &'static [#model::ColumnSpec] {
                const { &[#(#specs),*] }
            }

            fn from_row(
                row: &#client::RowView<'_>,
            ) -> ::core::result::Result<Self, #model::ModelError> {
                if *row.table().name != *Self::TABLE {
                    return ::core::result::Result::Err(#model::ModelError::Table {
                        expected: ::std::string::ToString::to_string(Self::TABLE),
                        found: ::std::string::ToString::to_string(&row.table().name),
                    });
                }
                ::core::result::Result::Ok(Self { #(#reads),* })
            }

            fn to_row(&self) -> ::std::vec::Vec<(&'static str, #model::Datum)> {
                ::std::vec![#(#writes),*]
            }

            fn uuid(&self) -> #model::Uuid {
                self.#uuid
            }
        }
    }
}

/// The type that holds a constant per column, for typed conditions and changes.
fn typed_columns(columns: &Ident, input: &DeriveInput, members: &[Member<'_>], client: &Path) -> TokenStream {
    let (model, visibility) = (&input.ident, &input.vis);
    let constants = members.iter().filter_map(|member| {
        let name = match &member.role {
            Role::Uuid => "_uuid",
            Role::Column { name, .. } => name,
            Role::Skipped => return None,
        };
        let constant = Ident::new(&member.ident.unraw().to_string().to_uppercase(), member.ident.span());
        let ty = with_self_named(member.ty.to_token_stream(), model);
        let (visibility, docs) = (member.visibility, format!("`{name}`"));
        Some(quote! {
            #[doc = #docs]
            #visibility const #constant: #client::Column<#model, #ty> = #client::Column::new(#name);
        })
    });
    let docs = format!("The columns of [`{model}`], for conditions and changes.");
    quote! {
        #[doc = #docs]
        #[allow(dead_code)]
        #visibility enum #columns {}

        #[allow(dead_code)]
        impl #columns {
            #(#constants)*
        }
    }
}

/// A type as it reads outside the model, where `Self` is something else.
fn with_self_named(ty: TokenStream, model: &Ident) -> TokenStream {
    let named = ty.into_iter().map(|token| match token {
        TokenTree::Ident(ident) if ident == "Self" => TokenTree::Ident(model.clone()),
        TokenTree::Group(group) => {
            let inner = with_self_named(group.stream(), model);
            TokenTree::Group(Group::new(group.delimiter(), inner))
        }
        other => other,
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::expand;
    use crate::attributes::{check_refusal, refusals};

    fn refused(source: &str, at: &str, message: &str) {
        check_refusal(expand, source, at, message);
    }

    /// The same for a struct that is right but for these fields.
    fn refused_fields(fields: &str, at: &str, message: &str) {
        refused(&format!("#[ovsdb(table = \"T\")] struct S {{ uuid: Uuid, {fields} }}"), at, message);
    }

    #[test]
    fn what_is_no_model_is_refused_where_it_is_wrong() {
        refused("struct Plain { uuid: Uuid }", "Plain", "say which table");
        refused("#[ovsdb(table = \"T\")] struct NoId { a: i64 }", "NoId", "needs a field for the row's UUID");
        refused("#[ovsdb(table = \"T\")] struct Tuple(i64);", "Tuple", "named fields");
        refused("#[ovsdb(table = \"T\")] enum E { A }", "enum", "derive `Scalar`");
        refused("#[ovsdb(table = \"T\")] union U { a: i64 }", "union", "a model is a struct");
        refused("#[ovsdb(table = \"T\")] struct G<X> { uuid: Uuid, a: X }", "X", "generic");
    }

    #[test]
    fn wrong_words_on_the_struct_are_refused() {
        refused("#[ovsdb(table = \"a-b\")] struct S { uuid: Uuid }", "\"a-b\"", "no schema has such a name");
        refused("#[ovsdb(table = \"_t\")] struct S { uuid: Uuid }", "\"_t\"", "begin with `_`");
        refused("#[ovsdb(tabel = \"T\")] struct S { uuid: Uuid }", "tabel", "known: `table`");
        refused("#[ovsdb(table = \"T\", table = \"U\")] struct S { uuid: Uuid }", "table", "twice");
        refused("#[ovsdb(table = 7)] struct S { uuid: Uuid }", "7", "string");
    }

    #[test]
    fn wrong_fields_are_refused() {
        refused_fields("#[ovsdb(column = \"_uuid\")] a: Uuid", "\"_uuid\"", "without naming it");
        refused_fields("#[ovsdb(column = \"b\")] a: i64, b: i64", "b", "column `b` already");
        refused_fields("#[ovsdb(uuid)] a: Uuid", "a", "UUID already");
        refused_fields("#[ovsdb(optional, required)] a: i64", "a", "either");
        refused_fields("#[ovsdb(skip, column = \"b\")] a: i64", "a", "stand alone");
        refused_fields("#[ovsdb(skip, uuid)] a: i64", "a", "stand alone");
        refused_fields("#[ovsdb(default)] a: i64", "default", "known: `uuid`");
        refused_fields("_a: i64", "_a", "begin with `_`");
    }

    #[test]
    fn all_errors_are_reported_at_once() {
        let source =
            "#[ovsdb(tabel = \"T\")] struct S { uuid: Uuid, #[ovsdb(x)] a: i64, #[ovsdb(y)] b: i64 }";
        let places: Vec<String> = refusals(expand, source).into_iter().map(|(at, _)| at).collect();
        assert_eq!(places, ["tabel", "x", "y"]);
    }

    #[test]
    fn a_column_may_be_called_uuid_if_another_field_is_the_rows() {
        let source =
            "#[ovsdb(table = \"T\")] struct S { #[ovsdb(uuid)] id: Uuid, #[ovsdb(required)] uuid: i64 }";
        assert!(refusals(expand, source).is_empty());
    }
}
