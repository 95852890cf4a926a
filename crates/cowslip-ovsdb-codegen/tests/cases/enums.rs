//! The table `Enums`.

use cowslip_ovsdb_client::model::{Model, Scalar, Uuid};
use std::collections::{BTreeMap, BTreeSet};

/// A row of the table `Enums` of `Cases`.
///
/// It lives as long as a strong reference to it does.
#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "Enums", optional)]
#[ovsdb(columns = "EnumsColumns")]
pub struct Enums {
    /// The row's UUID; nil before it is inserted.
    pub uuid: Uuid,
    /// Map of any size, from one of `"burst"`, `"rate"` to one of `1`, `2`.
    pub limits: BTreeMap<EnumsLimitsKey, EnumsLimitsValue>,
    /// None, or one of `0.5`, `1.5`.
    pub measure: Option<f64>,
    /// One of `""`, `"+"`, `"-"`, `"802.1ad"`, `"Self"`, `"TCP"`, `` "`" ``, `"a b"`, `"a-b"`, `"dot1q-tunnel"`, `"unrecognized"`, `"é"`.
    pub name: EnumsName,
    /// One of `-1`, `0`, `7`, `1000`.
    pub number: EnumsNumber,
    /// None, or `"enums_only"`.
    pub only: Option<EnumsOnly>,
    /// Set of any size, each one of `"down"`, `"up"`.
    pub several: BTreeSet<EnumsSeveral>,
    /// None, or `true`.
    pub yes: Option<bool>,
}

impl Default for Enums {
    fn default() -> Self {
        Self {
            uuid: Uuid::nil(),
            limits: Default::default(),
            measure: Default::default(),
            name: Default::default(),
            number: Default::default(),
            only: Default::default(),
            several: Default::default(),
            yes: Default::default(),
        }
    }
}

/// A key of the column `limits` of the table `Enums`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Scalar)]
pub enum EnumsLimitsKey {
    /// The value `"burst"`.
    #[ovsdb(value = "burst")]
    Burst,
    /// The value `"rate"`.
    #[ovsdb(value = "rate")]
    Rate,
    /// A value that is not on the schema's list; a newer server may have it.
    #[ovsdb(unrecognized)]
    Unrecognized(String),
}

/// The default of the column's type, which this column does not take.
impl Default for EnumsLimitsKey {
    fn default() -> Self {
        Self::Unrecognized(Default::default())
    }
}

/// A value of a key of the column `limits` of the table `Enums`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Scalar)]
pub enum EnumsLimitsValue {
    /// The value `1`.
    #[ovsdb(value = 1)]
    V1,
    /// The value `2`.
    #[ovsdb(value = 2)]
    V2,
    /// A value that is not on the schema's list; a newer server may have it.
    #[ovsdb(unrecognized)]
    Unrecognized(i64),
}

/// The default of the column's type, which this column does not take.
impl Default for EnumsLimitsValue {
    fn default() -> Self {
        Self::Unrecognized(Default::default())
    }
}

/// A value of the column `name` of the table `Enums`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Scalar)]
pub enum EnumsName {
    /// The value `""`.
    #[ovsdb(value = "")]
    #[default]
    Empty,
    /// The value `"+"`.
    #[ovsdb(value = "+")]
    U2b,
    /// The value `"-"`.
    #[ovsdb(value = "-")]
    U2d,
    /// The value `"802.1ad"`.
    #[ovsdb(value = "802.1ad")]
    V802_1ad,
    /// The value `"Self"`.
    #[ovsdb(value = "Self")]
    SelfValue,
    /// The value `"TCP"`.
    #[ovsdb(value = "TCP")]
    Tcp,
    /// The value `` "`" ``.
    #[ovsdb(value = "`")]
    U60,
    /// The value `"a b"`.
    #[ovsdb(value = "a b")]
    AB,
    /// The value `"a-b"`.
    #[ovsdb(value = "a-b")]
    AB2,
    /// The value `"dot1q-tunnel"`.
    #[ovsdb(value = "dot1q-tunnel")]
    Dot1qTunnel,
    /// The value `"unrecognized"`.
    #[ovsdb(value = "unrecognized")]
    Unrecognized2,
    /// The value `"é"`.
    #[ovsdb(value = "é")]
    Ue9,
    /// A value that is not on the schema's list; a newer server may have it.
    #[ovsdb(unrecognized)]
    Unrecognized(String),
}

/// A value of the column `number` of the table `Enums`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Scalar)]
pub enum EnumsNumber {
    /// The value `-1`.
    #[ovsdb(value = -1)]
    Minus1,
    /// The value `0`.
    #[ovsdb(value = 0)]
    #[default]
    V0,
    /// The value `7`.
    #[ovsdb(value = 7)]
    V7,
    /// The value `1000`.
    #[ovsdb(value = 1000)]
    V1000,
    /// A value that is not on the schema's list; a newer server may have it.
    #[ovsdb(unrecognized)]
    Unrecognized(i64),
}

/// A value of the column `only` of the table `Enums`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Scalar)]
#[allow(clippy::enum_variant_names)]
pub enum EnumsOnly {
    /// The value `"enums_only"`.
    #[ovsdb(value = "enums_only")]
    EnumsOnly,
    /// A value that is not on the schema's list; a newer server may have it.
    #[ovsdb(unrecognized)]
    Unrecognized(String),
}

/// The default of the column's type, which this column does not take.
impl Default for EnumsOnly {
    fn default() -> Self {
        Self::Unrecognized(Default::default())
    }
}

/// A value of the column `several` of the table `Enums`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Scalar)]
pub enum EnumsSeveral {
    /// The value `"down"`.
    #[ovsdb(value = "down")]
    Down,
    /// The value `"up"`.
    #[ovsdb(value = "up")]
    Up,
    /// A value that is not on the schema's list; a newer server may have it.
    #[ovsdb(unrecognized)]
    Unrecognized(String),
}

/// The default of the column's type, which this column does not take.
impl Default for EnumsSeveral {
    fn default() -> Self {
        Self::Unrecognized(Default::default())
    }
}
