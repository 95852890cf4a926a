//! Base64 (RFC 4648 section 4), with padding, for whole values.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

const BAD: u8 = 0xff;

static DIGITS: [u8; 256] = {
    let mut digits = [BAD; 256];
    let mut digit = 0;
    while digit < 64 {
        digits[ALPHABET[digit] as usize] = digit as u8;
        digit += 1;
    }
    digits
};

/// Appends the base64 form.
pub(super) fn encode(octets: &[u8], out: &mut Vec<u8>) {
    out.reserve(octets.len().div_ceil(3) * 4);
    let (triples, rest) = octets.as_chunks::<3>();
    let digits = |bits: u32| [18, 12, 6, 0].map(|shift| ALPHABET[(bits >> shift & 63) as usize]);
    for [a, b, c] in triples {
        out.extend_from_slice(&digits(u32::from_be_bytes([0, *a, *b, *c])));
    }
    match rest {
        [a] => {
            out.extend_from_slice(&digits(u32::from_be_bytes([0, *a, 0, 0]))[..2]);
            out.extend_from_slice(b"==");
        }
        [a, b] => {
            out.extend_from_slice(&digits(u32::from_be_bytes([0, *a, *b, 0]))[..3]);
            out.push(b'=');
        }
        _ => {}
    }
}

/// The octets; none if the text isn't base64 with its padding, or bits after the last octet are not 0.
pub(crate) fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let (quads, []) = text.as_chunks::<4>() else { return None };
    let mut out = Vec::with_capacity(quads.len() * 3);
    for (position, quad) in quads.iter().enumerate() {
        let padding = match quad {
            [_, _, b'=', b'='] => 2,
            [_, _, _, b'='] => 1,
            _ => 0,
        };
        if padding > 0 && position + 1 < quads.len() {
            return None;
        }
        let mut bits = 0;
        for (place, byte) in quad.iter().enumerate() {
            let digit = if place + padding < 4 { DIGITS[usize::from(*byte)] } else { 0 };
            if digit == BAD {
                return None;
            }
            bits = bits << 6 | u32::from(digit);
        }
        let [_, octets @ ..] = bits.to_be_bytes();
        let (kept, cut) = octets.split_at(3 - padding);
        if cut.iter().any(|octet| *octet != 0) {
            return None;
        }
        out.extend_from_slice(kept);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rfcs_vectors_hold() {
        for (octets, text) in [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ] {
            let mut out = Vec::new();
            encode(octets.as_bytes(), &mut out);
            assert_eq!(out, text.as_bytes());
            assert_eq!(decode(text.as_bytes()).as_deref(), Some(octets.as_bytes()));
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["Zg=", "Zg", "Z===", "Zg==Zg==", "Zh==", "Zm9=", "Zm 9", "Zm9-", "====", "Zg=a"] {
            assert_eq!(decode(text.as_bytes()), None, "{text}");
        }
    }
}
