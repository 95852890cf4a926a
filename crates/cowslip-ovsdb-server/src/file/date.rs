//! Points in time as files and file names show them: UTC, by the proleptic Gregorian calendar.

use std::time::{SystemTime, UNIX_EPOCH};

/// A point in time taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Date {
    /// The year.
    pub year: i64,
    /// The month, from 1.
    pub month: u32,
    /// The day of the month, from 1.
    pub day: u32,
    /// The hour.
    pub hour: u32,
    /// The minute.
    pub minute: u32,
    /// The second.
    pub second: u32,
    /// The millisecond.
    pub millisecond: u32,
}

const MS_PER_DAY: i64 = 86_400_000;

/// Milliseconds since 1970, negative before.
pub fn now_ms() -> i64 {
    let signed = |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => signed(since),
        Err(before) => -signed(before.duration()),
    }
}

impl Date {
    /// The date of a number of milliseconds since 1970.
    pub fn from_ms(ms: i64) -> Self {
        let (days, rest) = (ms.div_euclid(MS_PER_DAY), ms.rem_euclid(MS_PER_DAY));
        // Days are counted from 1 March of year 0, so that a leap day is the last day of its year.
        let days = days + 719_468;
        let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
        let year_of_era =
            (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        // Months from March on have 153 days in every five.
        let shifted = (5 * day_of_year + 2) / 153;
        let day = day_of_year - (153 * shifted + 2) / 5 + 1;
        let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
        let year = era * 400 + year_of_era + i64::from(month <= 2);
        let part = |value: i64| u32::try_from(value).unwrap_or_default();
        Self {
            year,
            month: part(month),
            day: part(day),
            hour: part(rest / 3_600_000),
            minute: part(rest / 60_000 % 60),
            second: part(rest / 1_000 % 60),
            millisecond: part(rest % 1_000),
        }
    }

    /// The form that sorts and fits into a file name: `20260131T235959Z`.
    pub fn compact(&self) -> String {
        let Self { year, month, day, hour, minute, second, .. } = self;
        format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // `date -u -d @<seconds> +%Y%m%dT%H%M%SZ`
        for (seconds, want) in [
            (0, "19700101T000000Z"),
            (951_782_400, "20000229T000000Z"),
            (951_868_799, "20000229T235959Z"),
            (951_868_800, "20000301T000000Z"),
            (1_796_078_714, "20261130T224514Z"),
            (4_107_542_399, "21000228T235959Z"),
            (4_107_542_400, "21000301T000000Z"),
            (-1, "19691231T235959Z"),
        ] {
            assert_eq!(Date::from_ms(seconds * 1_000).compact(), want);
        }
        assert_eq!(Date::from_ms(1_796_078_714_982).millisecond, 982);
    }
}
