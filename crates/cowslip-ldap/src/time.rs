//! Points in time as GeneralizedTime (RFC 4517, section 3.3.13) and as microseconds since 1970.
//!
//! Invariant: what [`Timestamp::parse`] accepts exists in the calendar; a leap second counts as the second after it.

use std::fmt;

use crate::syntax::{GeneralizedTime, date_since_1970};

/// A point in time between the years 1970 and 9999, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

const DAY_S: u64 = 86_400;

impl Timestamp {
    /// So many microseconds after the beginning of 1970, UTC.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the beginning of 1970, UTC.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Reads a [`GeneralizedTime`]. A time before 1970 gives none; digits past the microsecond are cut.
    ///
    /// ```
    /// use cowslip_ldap::time::Timestamp;
    /// let time = Timestamp::parse(b"20260102083405.5+0530").expect("a time");
    /// assert_eq!(time.to_string(), "20260102030405.5Z");
    /// ```
    pub fn parse(text: &[u8]) -> Option<Self> {
        GeneralizedTime::parse(text).ok()?.micros_since_1970().map(Self)
    }

    /// `YYYYmmddHHMMSS`, without fraction and zone.
    pub fn digits(self) -> String {
        let seconds = self.0 / 1_000_000;
        let (year, month, day) = date_since_1970(seconds / DAY_S);
        let second = seconds % DAY_S;
        let pairs =
            [year / 100, year % 100, month.into(), day.into(), second / 3600, second / 60 % 60, second % 60];
        // Formatting them one by one would take most of the time that a key in the index of times takes.
        let digits = pairs.iter().flat_map(|pair| [pair / 10 % 10, pair % 10]);
        digits.map(|digit| char::from(b'0' + digit as u8)).collect()
    }
}

impl fmt::Display for Timestamp {
    /// `YYYYmmddHHMMSS[.f]Z`, the fraction without trailing zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.digits())?;
        let micros = self.0 % 1_000_000;
        if micros != 0 {
            let fraction = format!("{micros:06}");
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        f.write_str("Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, want: &str) {
        let got =
            Timestamp::parse(text.as_bytes()).map_or_else(|| "none".to_owned(), |time| time.to_string());
        assert_eq!(got, want, "{text}");
    }

    #[test]
    fn forms() {
        check("2026010203Z", "20260102030000Z");
        check("202601020304Z", "20260102030400Z");
        check("20260102030405.5Z", "20260102030405.5Z");
        check("20260102030405,5Z", "20260102030405.5Z");
        check("2026010203.25Z", "20260102031500Z");
        check("20260102083405+0530", "20260102030405Z");
        check("20261231235960Z", "20270101000000Z");
        check("19700101000000Z", "19700101000000Z");
        check("20240229000000Z", "20240229000000Z");
        check("99991231235959.999999Z", "99991231235959.999999Z");
        for wrong in [
            "20260230000000Z",
            "20260102030405",
            "20260102030405.Z",
            "20260102030405+05300",
            "x",
            "",
            "19691231000000Z",
            "20261301000000Z",
            "20260102030405+2460",
        ] {
            check(wrong, "none");
        }
    }

    #[test]
    fn every_day_is_its_own() {
        for days in (0..2_932_000).step_by(13) {
            let time = Timestamp::from_micros(days * DAY_S * 1_000_000);
            assert_eq!(Timestamp::parse(time.to_string().as_bytes()), Some(time));
        }
    }
}
