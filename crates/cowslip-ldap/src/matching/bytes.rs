//! Order-preserving bytes for integers of any size.

/// Appends a form of a decimal number whose byte order is the numbers' order: a header that grows with the number of
/// digits, then the digits; all of it inverted for negative numbers.
pub(super) fn integer_key(is_negative: bool, digits: &[u8], out: &mut Vec<u8>) {
    let flip = if is_negative { 0xff } else { 0 };
    match u8::try_from(digits.len()) {
        Ok(length @ 1..=0x7e) => out.push((0x80 + length) ^ flip),
        _ => {
            out.push(0xff ^ flip);
            let length = u32::try_from(digits.len()).unwrap_or(u32::MAX);
            out.extend(length.to_be_bytes().map(|byte| byte ^ flip));
        }
    }
    out.extend(digits.iter().map(|byte| byte ^ flip));
}

/// The number of an [`integer_key`] if it has at most 64 bits.
pub(super) fn small_integer(key: &[u8]) -> Option<i64> {
    let (&header, digits) = key.split_first()?;
    let (is_negative, flip) = if header < 0x80 { (true, 0xff) } else { (false, 0) };
    if header ^ flip == 0xff {
        return None;
    }
    let mut value = 0_i64;
    for digit in digits {
        let digit = i64::from((digit ^ flip).wrapping_sub(b'0'));
        value = value.checked_mul(10)?;
        value = if is_negative { value.checked_sub(digit)? } else { value.checked_add(digit)? };
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::{integer_key, small_integer};
    use proptest::prelude::*;

    fn key(number: i128) -> Vec<u8> {
        let mut out = Vec::new();
        let digits = number.unsigned_abs().to_string();
        integer_key(number < 0, digits.as_bytes(), &mut out);
        out
    }

    proptest! {
        #[test]
        fn order_and_value_are_kept(one: i128, other: i128, small: i64, shift in 0_u32..127) {
            let (one, other) = (one >> shift, other >> shift);
            prop_assert_eq!(key(one).cmp(&key(other)), one.cmp(&other));
            prop_assert_eq!(small_integer(&key(i128::from(small))), Some(small));
            prop_assert_eq!(small_integer(&key(one)), i64::try_from(one).ok());
        }

        #[test]
        fn very_long_numbers_are_ordered(one in "[1-9][0-9]{110,140}", other in "[1-9][0-9]{110,140}") {
            let expected = one.len().cmp(&other.len()).then(one.cmp(&other));
            let keys = |is_negative| {
                let (mut a, mut b) = (Vec::new(), Vec::new());
                integer_key(is_negative, one.as_bytes(), &mut a);
                integer_key(is_negative, other.as_bytes(), &mut b);
                a.cmp(&b)
            };
            prop_assert_eq!(keys(false), expected);
            prop_assert_eq!(keys(true), expected.reverse());
        }
    }
}
