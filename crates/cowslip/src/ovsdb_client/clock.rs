//! The time of day as the output shows it: UTC, so that no time zone database is needed.

use cowslip_ovsdb_server::file::date::{Date, now_ms};

/// Now, as `YYYY-MM-DD HH:MM:SS.mmm`.
pub(crate) fn timestamp() -> String {
    show(&Date::from_ms(now_ms()))
}

fn show(date: &Date) -> String {
    let Date { year, month, day, hour, minute, second, millisecond } = date;
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{millisecond:03}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_has_its_width() {
        assert_eq!(show(&Date::from_ms(951_782_400_007)), "2000-02-29 00:00:00.007");
    }
}
