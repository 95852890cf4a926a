//! Derive macros for the typed rows of `cowslip-ovsdb-client`, which re-exports them: use them from there.
//!
//! `Model` makes a struct a row of a table, `Scalar` makes an enum or a newtype a value of a column. `cowslip codegen`
//! writes such types from a schema.
//!
//! Invariants: what a macro refuses is an error at the words that are wrong, all of them at once; the code that a macro
//! writes names everything by its full path, so that it works whatever is in scope.
#![forbid(unsafe_code)]

mod attributes;
mod model;
mod scalar;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Makes a struct with named fields a row of a table.
///
/// ```
/// use cowslip_ovsdb_client::model::{Model, Ref, Uuid};
/// use std::collections::{BTreeMap, BTreeSet};
///
/// #[derive(Clone, Debug, Model)]
/// #[ovsdb(table = "Logical_Switch_Port")]
/// struct Port {
///     uuid: Uuid,
///     name: String,
///     r#type: String,
/// }
///
/// #[derive(Clone, Debug, Model)]
/// #[ovsdb(table = "Logical_Switch")]
/// struct Switch {
///     uuid: Uuid,
///     name: String,
///     ports: BTreeSet<Ref<Port>>,
///     #[ovsdb(column = "external_ids")]
///     labels: BTreeMap<String, String>,
///     /// Older servers lack it: they leave it empty.
///     #[ovsdb(optional)]
///     copp: Option<Uuid>,
/// }
///
/// assert_eq!(Switch::TABLE, "Logical_Switch");
/// assert_eq!(Switch::columns()[2].name, "external_ids");
/// ```
///
/// A field that no column could be is an error at its type:
///
/// ```compile_fail,E0277
/// # use cowslip_ovsdb_client::model::{Model, Uuid};
/// #[derive(Model)]
/// #[ovsdb(table = "Logical_Switch")]
/// struct Switch {
///     uuid: Uuid,
///     size: u32, // "no column holds a `u32`"; `i64` is what there is
/// }
/// ```
///
/// On the struct:
///
/// * `table = "…"`: the table's name in the schema; must be there.
/// * `columns = "…"`: declares a type of that name with a constant per field, in capitals: the client's `Column`, for
///   conditions and changes that the compiler checks.
/// * `optional`: a server may lack any of the columns, as if each field said so.
/// * `crate = "…"`: the path of `cowslip-ovsdb-client`, if it is not that.
///
/// On a field:
///
/// * `uuid`: it holds the row's UUID. A field that is named `uuid` does without saying so. There must be one, of the
///   type `Uuid`.
/// * `column = "…"`: the column's name in the schema, if it is not the field's.
/// * `optional`: a server may lack the column; the field then has its type's default. The client reports such columns
///   when it connects and tells on request whether one is there.
/// * `required`: a server without the column is an error; the default, unless the struct says `optional`.
/// * `skip`: no column; the field has its type's default in a row that was read.
///
/// A table's other columns are neither read nor written. The type of a field is any that the client's `FromDatum` and
/// `IntoDatum` know; when the client connects, it is compared with the column's type in the server's schema.
#[proc_macro_derive(Model, attributes(ovsdb))]
pub fn derive_model(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    model::expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}

/// Makes an enum or a newtype one value of a column.
///
/// ```
/// use cowslip_ovsdb_client::model::{Atom, Scalar};
///
/// #[derive(Clone, Debug, PartialEq, Scalar)]
/// enum VlanMode {
///     #[ovsdb(value = "access")]
///     Access,
///     #[ovsdb(value = "native-tagged")]
///     NativeTagged,
///     #[ovsdb(unrecognized)]
///     Unrecognized(String),
/// }
///
/// #[derive(Clone, Debug, PartialEq, Scalar)]
/// struct Tag(i64);
///
/// assert_eq!(VlanMode::from_atom(&Atom::string("native-tagged")), Some(VlanMode::NativeTagged));
/// assert_eq!(VlanMode::from_atom(&Atom::string("new")), Some(VlanMode::Unrecognized("new".to_string())));
/// assert_eq!(Tag(7).to_atom(), Atom::Integer(7));
/// ```
///
/// A variant without fields says which `value` it stands for, a string or an integer; all of an enum's are of one type.
/// The variant marked `unrecognized`, if there is one, holds a value that is on no other variant, as a newer server may
/// send it; without it, a row with such a value cannot be read. A newtype is what its field is.
///
/// On the type, `#[ovsdb(crate = "…")]` names the path of `cowslip-ovsdb-client`, if it is not that.
#[proc_macro_derive(Scalar, attributes(ovsdb))]
pub fn derive_scalar(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    scalar::expand(&input).unwrap_or_else(|error| error.into_compile_error()).into()
}
