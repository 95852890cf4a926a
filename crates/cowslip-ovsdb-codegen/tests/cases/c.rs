//! The table `C`.

use cowslip_ovsdb_client::model::{Model, Scalar, Uuid};

/// A row of the table `C` of `Cases`.
#[derive(Clone, Debug, PartialEq, Model)]
#[ovsdb(table = "C", optional)]
#[ovsdb(columns = "CColumns")]
pub struct C {
    /// The row's UUID; nil before it is inserted.
    pub uuid: Uuid,
    /// One of `"tcp"`, `"udp"`.
    pub e: CE,
    /// A string of 2 to 5 characters.
    pub len: String,
    /// None, or one of `"tcp"`, `"udp"`.
    pub oe: Option<COe>,
    /// An integer from 1 to 10.
    pub rng: i64,
    /// A real number from -1.5 to 1.5.
    pub rr: f64,
}

impl C {
    /// A new row of what an insertion has to give, with the defaults in all other columns.
    pub fn new(e: CE, len: String, rng: i64) -> Self {
        Self {
            uuid: Uuid::nil(),
            e,
            len,
            oe: Default::default(),
            rng,
            rr: Default::default(),
        }
    }
}

/// A value of the column `e` of the table `C`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Scalar)]
pub enum CE {
    /// The value `"tcp"`.
    #[ovsdb(value = "tcp")]
    Tcp,
    /// The value `"udp"`.
    #[ovsdb(value = "udp")]
    Udp,
    /// A value that is not on the schema's list; a newer server may have it.
    #[ovsdb(unrecognized)]
    Unrecognized(String),
}

/// The default of the column's type, which this column does not take.
impl Default for CE {
    fn default() -> Self {
        Self::Unrecognized(Default::default())
    }
}

/// A value of the column `oe` of the table `C`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Scalar)]
pub enum COe {
    /// The value `"tcp"`.
    #[ovsdb(value = "tcp")]
    Tcp,
    /// The value `"udp"`.
    #[ovsdb(value = "udp")]
    Udp,
    /// A value that is not on the schema's list; a newer server may have it.
    #[ovsdb(unrecognized)]
    Unrecognized(String),
}

/// The default of the column's type, which this column does not take.
impl Default for COe {
    fn default() -> Self {
        Self::Unrecognized(Default::default())
    }
}
