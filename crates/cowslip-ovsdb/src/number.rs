//! Numbers between text and value.
//!
//! Reals are printed with 15 significant digits, as `%.15g` does in the reference server, if that text reads back as the
//! same value, else with the fewest digits that do. So files and clients never see a value that differs from memory,
//! and the largest double can be read again.

use crate::json::Json;

/// A number without fraction or exponent.
pub(crate) fn parse_plain<'a>(text: &str) -> Json<'a> {
    match text.parse::<i64>() {
        Ok(i) => Json::Int(i),
        Err(_) => Json::Real(real(text)),
    }
}

/// A number with a fraction or an exponent: an integer if its exact value is one that fits 64 bits.
pub(crate) fn parse_decimal<'a>(text: &str) -> Json<'a> {
    match exact_integer(text) {
        Some(i) => Json::Int(i),
        None => Json::Real(real(text)),
    }
}

/// The double nearest to a text that is a JSON number; infinite beyond the range.
fn real(text: &str) -> f64 {
    text.parse().unwrap_or(f64::INFINITY)
}

fn exact_integer(text: &str) -> Option<i64> {
    let (mantissa, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], text[at + 1..].parse::<i64>().ok()?),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let fraction = fraction.trim_end_matches('0');
    let mut digits = format!("{whole}{fraction}");
    let mut exponent = exponent.checked_sub(fraction.len() as i64)?;
    while exponent < 0 && digits.ends_with('0') && digits.len() > 1 {
        digits.pop();
        exponent += 1;
    }
    if digits.trim_start_matches(['-', '0']).is_empty() {
        return Some(0);
    }
    // More than 19 digits cannot fit; the bound also keeps a huge exponent from making a huge string.
    if !(0..=19).contains(&exponent) {
        return None;
    }
    digits.extend(std::iter::repeat_n('0', exponent as usize));
    digits.parse().ok()
}

/// Appends a real: see the module's text for the form. Not a number and infinities, which no column holds, become `null`.
pub fn write_real(out: &mut String, value: f64) {
    if !value.is_finite() {
        out.push_str("null");
        return;
    }
    let short = general(&format!("{value:.14e}"), 15);
    if short.parse() == Ok(value) {
        out.push_str(&short);
    } else {
        out.push_str(&general(&format!("{value:e}"), 17));
    }
}

/// `%.15g`, as the reference server prints reals in messages about values.
pub(crate) fn fifteen_digits(value: f64) -> String {
    general(&format!("{value:.14e}"), 15)
}

/// Lays out `d.ddde±x` the way `%g` does with `precision` significant digits.
fn general(scientific: &str, precision: i32) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa),
    };
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return "0".to_string();
    }
    if exponent < -4 || exponent >= precision {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let direction = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{direction}{:02}", exponent.abs());
    }
    if exponent < 0 {
        return format!("{sign}0.{}{digits}", "0".repeat((-exponent - 1) as usize));
    }
    let whole = exponent as usize + 1;
    if digits.len() <= whole {
        format!("{sign}{digits}{}", "0".repeat(whole - digits.len()))
    } else {
        format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reals_print_like_the_reference_server_and_read_back() {
        for (value, want) in [
            (0.1, "0.1"),
            (3.0, "3"),
            (-0.0, "0"),
            (1e15, "1e+15"),
            (1e14, "100000000000000"),
            (1e-7, "1e-07"),
            (0.0001, "0.0001"),
            (123456789012345680.0, "1.2345678901234568e+17"),
            (0.30000000000000004, "0.30000000000000004"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "4.94065645841247e-324"),
            (-1.5, "-1.5"),
        ] {
            let mut out = String::new();
            write_real(&mut out, value);
            assert_eq!(out, want);
            assert_eq!(out.parse::<f64>().unwrap(), value);
        }
    }

    #[test]
    fn integers_in_disguise() {
        for (text, want) in [
            ("1e3", Json::Int(1000)),
            ("1200e-2", Json::Int(12)),
            ("0.5e1", Json::Int(5)),
            ("0e99999999999999999999", Json::Real(0.0)),
            ("1e400", Json::Real(f64::INFINITY)),
            ("1.5", Json::Real(1.5)),
            ("9223372036854775807.0", Json::Int(i64::MAX)),
            ("92233720368547758080e-1", Json::Real(9223372036854775808.0)),
        ] {
            assert_eq!(parse_decimal(text), want, "{text}");
        }
    }
}
