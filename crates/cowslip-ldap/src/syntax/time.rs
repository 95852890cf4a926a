//! Times: Generalized Time (RFC 4517 section 3.3.13), UTC Time (3.3.34) and OpenLDAP's change sequence numbers.
//!
//! Invariant: what parses exists in the calendar; two values that mean the same instant parse to equal values.

use std::fmt;

use super::SyntaxError;

/// Most digits after the decimal mark.
pub const FRACTION_DIGITS_MAX: usize = 30;

const MINUTES_PER_DAY: i64 = 24 * 60;

/// An instant, as Generalized Time gives it: any year from 0 to 9999, any zone, any precision.
///
/// ```
/// use cowslip_ldap::syntax::GeneralizedTime;
/// let there = GeneralizedTime::parse(b"20260102083405+0530")?;
/// let here = GeneralizedTime::parse(b"20260102030405Z")?;
/// assert_eq!(there, here);
/// assert_eq!(GeneralizedTime::parse(b"2026010203.5Z")?.to_string(), "20260102033000Z");
/// # Ok::<(), cowslip_ldap::syntax::SyntaxError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GeneralizedTime {
    /// Minutes since the beginning of the year 0 (Gregorian), UTC.
    minute: i64,
    /// 0 to 60: leap seconds are kept apart from the second after them.
    second: u8,
    /// Digits after the second, without zeros at the end.
    fraction: String,
}

/// An instant, as UTC Time gives it: years 1950 to 2049.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UtcTime(GeneralizedTime);

/// Reads digits from the front.
struct Digits<'a> {
    text: &'a [u8],
    offset: usize,
}

impl Digits<'_> {
    fn two(&mut self, part: &'static str, range: std::ops::RangeInclusive<u8>) -> Result<u8, SyntaxError> {
        let (Some(tens), Some(ones)) = (self.digit(self.offset), self.digit(self.offset + 1)) else {
            return Err(SyntaxError::Character { offset: self.offset, allowed: "two digits" });
        };
        let value = tens * 10 + ones;
        if !range.contains(&value) {
            return Err(SyntaxError::Range { part });
        }
        self.offset += 2;
        Ok(value)
    }

    fn digit(&self, at: usize) -> Option<u8> {
        self.text.get(at).filter(|byte| byte.is_ascii_digit()).map(|byte| byte - b'0')
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.offset).copied()
    }

    fn optional_two(
        &mut self,
        part: &'static str,
        range: std::ops::RangeInclusive<u8>,
    ) -> Result<Option<u8>, SyntaxError> {
        if self.digit(self.offset).is_none() {
            return Ok(None);
        }
        self.two(part, range).map(Some)
    }

    /// `Z`, `+hh[mm]`, `-hh[mm]`: minutes east of UTC.
    fn zone(&mut self) -> Result<i64, SyntaxError> {
        let sign = match self.peek() {
            Some(b'Z') => 0,
            Some(b'+') => 1,
            Some(b'-') => -1,
            _ => {
                let rule = "the zone (Z, +hhmm or -hhmm) is missing";
                return Err(SyntaxError::Form { offset: self.offset, rule });
            }
        };
        self.offset += 1;
        let mut minutes = 0;
        if sign != 0 {
            let hours = self.two("hour of the zone", 0..=23)?;
            let rest = self.optional_two("minute of the zone", 0..=59)?.unwrap_or(0);
            minutes = sign * (i64::from(hours) * 60 + i64::from(rest));
        }
        if self.offset != self.text.len() {
            return Err(SyntaxError::Form { offset: self.offset, rule: "nothing follows the zone" });
        }
        Ok(minutes)
    }
}

impl GeneralizedTime {
    /// Reads `YYYYmmddHH[MM[SS]][.f](Z|+hh[mm]|-hh[mm])`; the decimal mark may be a comma.
    ///
    /// # Errors
    /// Which part is wrong.
    pub fn parse(text: &[u8]) -> Result<GeneralizedTime, SyntaxError> {
        let mut digits = Digits { text, offset: 0 };
        let century = digits.two("century", 0..=99)?;
        let year = i64::from(century) * 100 + i64::from(digits.two("year", 0..=99)?);
        Self::after_year(year, digits)
    }

    fn after_year(year: i64, mut digits: Digits<'_>) -> Result<GeneralizedTime, SyntaxError> {
        let month = digits.two("month", 1..=12)?;
        let day = digits.two("day", 1..=31)?;
        if day > days_in_month(year, month) {
            return Err(SyntaxError::Range { part: "day of the month" });
        }
        let hour = digits.two("hour", 0..=23)?;
        let minute = digits.optional_two("minute", 0..=59)?;
        let second = match minute {
            Some(_) => digits.optional_two("second", 0..=60)?,
            None => None,
        };
        let mut time = GeneralizedTime {
            minute: day_number(year, month, day) * MINUTES_PER_DAY
                + i64::from(hour) * 60
                + i64::from(minute.unwrap_or(0)),
            second: second.unwrap_or(0),
            fraction: String::new(),
        };
        if let Some(b'.' | b',') = digits.peek() {
            digits.offset += 1;
            let unit_s = match (minute, second) {
                (None, _) => 3600,
                (Some(_), None) => 60,
                (Some(_), Some(_)) => 1,
            };
            time.add_fraction(&mut digits, unit_s)?;
        }
        time.minute -= digits.zone()?;
        Ok(time)
    }

    /// Adds the digits that come next as a fraction of a unit of so many seconds.
    fn add_fraction(&mut self, digits: &mut Digits<'_>, unit_s: u128) -> Result<(), SyntaxError> {
        let start = digits.offset;
        let mut value = 0_u128;
        while let Some(digit) = digits.digit(digits.offset) {
            if digits.offset - start >= FRACTION_DIGITS_MAX {
                return Err(SyntaxError::TooLarge { max: FRACTION_DIGITS_MAX, unit: "digits of a fraction" });
            }
            value = value * 10 + u128::from(digit);
            digits.offset += 1;
        }
        let count = digits.offset - start;
        if count == 0 {
            return Err(SyntaxError::Character { offset: start, allowed: "a digit" });
        }
        let scale = 10_u128.pow(u32::try_from(count).unwrap_or(0));
        let scaled = value * unit_s;
        let seconds = i64::try_from(scaled / scale).unwrap_or(0);
        self.minute += seconds / 60;
        self.second += u8::try_from(seconds % 60).unwrap_or(0);
        let rest = scaled % scale;
        if rest != 0 {
            self.fraction = format!("{rest:0count$}").trim_end_matches('0').to_owned();
        }
        Ok(())
    }

    /// Microseconds since the beginning of 1970, UTC, with what is finer cut off; none for what came before.
    pub(crate) fn micros_since_1970(&self) -> Option<u64> {
        let minutes = self.minute - day_number(1970, 1, 1) * MINUTES_PER_DAY;
        let seconds = u64::try_from(minutes * 60 + i64::from(self.second)).ok()?;
        let digits = self.fraction.bytes().chain(std::iter::repeat(b'0')).take(6);
        let micros = digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        Some(seconds * 1_000_000 + micros)
    }

    /// Appends a form whose byte order is the order of time and which is equal for equal instants.
    pub(crate) fn key(&self, out: &mut Vec<u8>) {
        let biased = u64::from_ne_bytes(self.minute.to_ne_bytes()) ^ (1 << 63);
        out.extend_from_slice(&biased.to_be_bytes());
        out.push(self.second);
        out.extend_from_slice(self.fraction.as_bytes());
    }
}

impl fmt::Display for GeneralizedTime {
    /// `YYYYmmddHHMMSS[.f]Z`, the only form that the server writes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month, day) = date(self.minute.div_euclid(MINUTES_PER_DAY));
        let minute = self.minute.rem_euclid(MINUTES_PER_DAY);
        let (hour, minute) = (minute / 60, minute % 60);
        write!(f, "{year:04}{month:02}{day:02}{hour:02}{minute:02}{:02}", self.second)?;
        if !self.fraction.is_empty() {
            write!(f, ".{}", self.fraction)?;
        }
        f.write_str("Z")
    }
}

impl UtcTime {
    /// Reads `YYmmddHHMM[SS][Z|+hhmm|-hhmm]`; without a zone it is UTC.
    ///
    /// # Errors
    /// Which part is wrong.
    pub fn parse(text: &[u8]) -> Result<UtcTime, SyntaxError> {
        let has_zone = text.iter().any(|byte| b"Z+-".contains(byte));
        let with_zone = if has_zone { text.to_vec() } else { [text, b"Z"].concat() };
        let mut digits = Digits { text: &with_zone, offset: 0 };
        let year = i64::from(digits.two("year", 0..=99)?);
        let year = if year < 50 { 2000 + year } else { 1900 + year };
        let fixed = with_zone.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(with_zone.len());
        let is_zone_next = with_zone.get(fixed).is_some_and(|byte| b"Z+-".contains(byte));
        if !matches!(fixed, 10 | 12) || !is_zone_next {
            return Err(SyntaxError::Form {
                offset: fixed,
                rule: "a UTC Time has 10 or 12 digits, then the zone",
            });
        }
        GeneralizedTime::after_year(year, digits).map(UtcTime)
    }

    /// The instant.
    #[must_use]
    pub fn instant(self) -> GeneralizedTime {
        self.0
    }

    pub(crate) fn key(&self, out: &mut Vec<u8>) {
        self.0.key(out);
    }
}

/// Checks a change sequence number, `YYYYmmddHHMMSS[.uuuuuu]Z#cccccc#sss#mmmmmm` with hexadecimal counts.
pub(super) fn csn(text: &[u8]) -> Result<(), SyntaxError> {
    let mut parts = text.split(|&byte| byte == b'#');
    let time = parts.next().unwrap_or_default();
    GeneralizedTime::parse(time)?;
    let form =
        SyntaxError::Form { offset: time.len(), rule: "a CSN is time#cccccc#sss#mmmmmm in hexadecimal" };
    let is_hex = |part: Option<&[u8]>, lengths: &[usize]| {
        part.is_some_and(|part| lengths.contains(&part.len()) && part.iter().all(u8::is_ascii_hexdigit))
    };
    let is_good = time.ends_with(b"Z")
        && is_hex(parts.next(), &[6])
        && is_hex(parts.next(), &[2, 3])
        && is_hex(parts.next(), &[6])
        && parts.next().is_none();
    if is_good { Ok(()) } else { Err(form) }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_in_month(year: i64, month: u8) -> u8 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1 January of the year 0 to a date, for years from 0.
fn day_number(year: i64, month: u8, day: u8) -> i64 {
    let leaps = |years: i64| (years + 3) / 4 - (years + 99) / 100 + (years + 399) / 400;
    let months: i64 = (1..month).map(|month| i64::from(days_in_month(year, month))).sum();
    year * 365 + leaps(year) + months + i64::from(day) - 1
}

/// Year, month and day, so many days after the beginning of 1970.
pub(crate) fn date_since_1970(days: u64) -> (u64, u8, u8) {
    let day = i64::try_from(days).unwrap_or(i64::MAX / 2) + day_number(1970, 1, 1);
    let (year, month, day) = date(day);
    (year.unsigned_abs(), month, day)
}

/// The date of a day number; a zone can put an instant a day before the year 0 or after 9999.
fn date(day: i64) -> (i64, u8, u8) {
    let mut year = day.div_euclid(366);
    while day_number_any(year + 1) <= day {
        year += 1;
    }
    let mut rest = day - day_number_any(year);
    let mut month = 1;
    while rest >= i64::from(days_in_month(year, month)) {
        rest -= i64::from(days_in_month(year, month));
        month += 1;
    }
    (year, month, u8::try_from(rest + 1).unwrap_or(1))
}

/// The number of 1 January of a year, the year -1 included.
fn day_number_any(year: i64) -> i64 {
    if year < 0 { year * 365 } else { day_number(year, 1, 1) }
}

#[cfg(test)]
mod tests {
    use super::{GeneralizedTime, UtcTime};
    use proptest::prelude::*;

    #[test]
    fn l057_forms() {
        let good = [
            ("2026010203Z", "20260102030000Z"),
            ("202601020304Z", "20260102030400Z"),
            ("20260102030405.5Z", "20260102030405.5Z"),
            ("20260102030405,5Z", "20260102030405.5Z"),
            ("20260102083405+0530", "20260102030405Z"),
            ("20261231235960Z", "20261231235960Z"),
            ("2026010203.25Z", "20260102031500Z"),
            ("202601020304.255Z", "20260102030415.3Z"),
            ("20260102030405.1200-01", "20260102040405.12Z"),
            ("20240229000000Z", "20240229000000Z"),
            ("00000101000000+0001", "-00011231235900Z"),
        ];
        for (text, canonical) in good {
            let time = GeneralizedTime::parse(text.as_bytes()).expect(text);
            let shown = time.to_string();
            assert!(shown == canonical || text.starts_with("0000"), "{text}: {shown}");
        }
        let bad = [
            "20260230000000Z",
            "20260102030405",
            "2026010203",
            "20260102030405Z ",
            "20260102030405.Z",
            "20261301000000Z",
            "20260102240000Z",
            "20260102036000Z",
            "20260102030461Z",
            "2026-01-02T03:04:05Z",
            "20230229000000Z",
            "20260102030405+2400",
            "20260102030405z",
            "",
            "1",
        ];
        for text in bad {
            assert!(GeneralizedTime::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn utc_times() {
        let key = |text: &str| {
            let mut out = Vec::new();
            UtcTime::parse(text.as_bytes()).expect(text).key(&mut out);
            out
        };
        assert_eq!(key("2601020304Z"), key("2601020904+0600"));
        assert_eq!(key("260102030400"), key("2601020304Z"));
        assert!(key("5001010000Z") < key("4912312359Z"));
        for text in ["26010203Z", "260102030.5Z", "26010203040Z", "2613020304Z"] {
            assert!(UtcTime::parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn writing_and_reading_agree(
            year in 0_u32..10_000, month in 1_u32..13, day in 1_u32..29, minute in 0_u32..1440, second in 0_u32..61,
            fraction in "|\\.[0-9]{1,6}",
        ) {
            let (hour, minute) = (minute / 60, minute % 60);
            let text = format!("{year:04}{month:02}{day:02}{hour:02}{minute:02}{second:02}{fraction}Z");
            let time = GeneralizedTime::parse(text.as_bytes()).expect("valid");
            let again = GeneralizedTime::parse(time.to_string().as_bytes()).expect("what is written is valid");
            prop_assert_eq!(&again, &time);
            prop_assert!(text.starts_with(&time.to_string()[..14]));
        }
    }
}
