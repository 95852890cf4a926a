//! Points in time as GeneralizedTime (RFC 4517, section 3.3.13) and as microseconds since 1970.
//!
//! Invariant: what [`Timestamp::parse`] accepts exists in the calendar; a leap second counts as the second after it.

use std::fmt;

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

    /// Reads a GeneralizedTime: `YYYYmmddHH[MM[SS]][.f](Z|+hhmm|-hhmm)`. Times before 1970 and digits past the
    /// microsecond have no place here and give none and are cut.
    ///
    /// ```
    /// use cowslip_ldap::time::Timestamp;
    /// let time = Timestamp::parse(b"20260102083405.5+0530").expect("a time");
    /// assert_eq!(time.to_string(), "20260102030405.5Z");
    /// ```
    pub fn parse(text: &[u8]) -> Option<Self> {
        let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = |range: std::ops::Range<usize>| -> Option<u64> {
            let part = text.get(range)?;
            part.iter()
                .try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
        };
        let (minute, second, unit_us) = match digits {
            10 => (0, 0, 3_600_000_000),
            12 => (number(10..12)?, 0, 60_000_000),
            14 => (number(10..12)?, number(12..14)?, 1_000_000),
            _ => return None,
        };
        let (year, month, day, hour) = (number(0..4)?, number(4..6)?, number(6..8)?, number(8..10)?);
        let days = days_since_1970(year, month, day)?;
        if hour > 23 || minute > 59 || second > 60 {
            return None;
        }
        let (fraction_us, zone) = fraction(&text[digits..], unit_us)?;
        let seconds = days * DAY_S + hour * 3600 + minute * 60 + second;
        let local = i64::try_from(seconds * 1_000_000 + fraction_us).ok()?;
        u64::try_from(local - zone_minutes(zone)? * 60_000_000).ok().map(Self)
    }

    /// `YYYYmmddHHMMSS`, without fraction and zone.
    pub fn digits(self) -> String {
        let seconds = self.0 / 1_000_000;
        let (year, month, day) = date(seconds / DAY_S);
        let second = seconds % DAY_S;
        let pairs = [year / 100, year % 100, month, day, second / 3600, second / 60 % 60, second % 60];
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

/// The fraction, in microseconds of its unit, and what follows it.
fn fraction(text: &[u8], unit_us: u64) -> Option<(u64, &[u8])> {
    let Some((b'.' | b',', rest)) = text.split_first() else { return Some((0, text)) };
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if length == 0 {
        return None;
    }
    let (digits, zone) = rest.split_at(length);
    let mut part = 0_u128;
    let mut whole = 1_u128;
    // Twelve digits of an hour are finer than a microsecond.
    for digit in digits.iter().take(12) {
        part = part * 10 + u128::from(digit - b'0');
        whole *= 10;
    }
    u64::try_from(part * u128::from(unit_us) / whole).ok().map(|micros| (micros, zone))
}

/// How many minutes the zone is ahead of UTC.
fn zone_minutes(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = zone.split_first()?;
    let sign = match sign {
        b'Z' => return rest.is_empty().then_some(0),
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    if !rest.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let two = |at: usize| Some(i64::from(rest.get(at)? - b'0') * 10 + i64::from(rest.get(at + 1)? - b'0'));
    let (hours, minutes) = match rest.len() {
        2 => (two(0)?, 0),
        4 => (two(0)?, two(2)?),
        _ => return None,
    };
    (hours <= 23 && minutes <= 59).then_some(sign * (hours * 60 + minutes))
}

fn is_leap(year: u64) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

fn month_days(year: u64, month: u64) -> u64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_before(year: u64) -> u64 {
    let past = year - 1;
    365 * past + past / 4 - past / 100 + past / 400
}

fn days_since_1970(year: u64, month: u64, day: u64) -> Option<u64> {
    if !(1970..=9999).contains(&year)
        || !(1..=12).contains(&month)
        || day == 0
        || day > month_days(year, month)
    {
        return None;
    }
    let months: u64 = (1..month).map(|month| month_days(year, month)).sum();
    Some(days_before(year) - days_before(1970) + months + day - 1)
}

fn date(days: u64) -> (u64, u64, u64) {
    // Off by at most one, in either direction, which the two loops mend.
    let mut year = 1970 + days * 400 / 146_097;
    while days_before(year) - days_before(1970) > days {
        year -= 1;
    }
    while days_before(year + 1) - days_before(1970) <= days {
        year += 1;
    }
    let mut left = days - (days_before(year) - days_before(1970));
    let mut month = 1;
    while left >= month_days(year, month) {
        left -= month_days(year, month);
        month += 1;
    }
    (year, month, left + 1)
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
            let (year, month, day) = date(days);
            assert_eq!(days_since_1970(year, month, day), Some(days));
        }
    }
}
