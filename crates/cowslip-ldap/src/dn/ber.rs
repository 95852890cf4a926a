//! Values that a name gives as `#` and the octets of their BER encoding (RFC 4514 section 2.4), turned into what LDAP
//! transfers: a string type gives its characters, so that `cn=#0C024869` and `cn=Hi` are one name.
//!
//! Invariant: the octets are exactly one element of definite length. Types without an LDAP string of their own stay as
//! they are.

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const NUMERIC_STRING: u8 = 0x12;
const PRINTABLE_STRING: u8 = 0x13;
const TELETEX_STRING: u8 = 0x14;
const IA5_STRING: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const VISIBLE_STRING: u8 = 0x1a;
const GENERAL_STRING: u8 = 0x1b;
const UNIVERSAL_STRING: u8 = 0x1c;
const BMP_STRING: u8 = 0x1e;

/// Appends the LDAP form of one BER element, or says which rule the octets break.
pub(super) fn to_ldap(octets: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    let (tag, content) = element(octets)?;
    match tag {
        OCTET_STRING | UTF8_STRING | NUMERIC_STRING | PRINTABLE_STRING | TELETEX_STRING | IA5_STRING
        | UTC_TIME | GENERALIZED_TIME | VISIBLE_STRING | GENERAL_STRING => out.extend_from_slice(content),
        BOOLEAN => match content {
            [0] => out.extend_from_slice(b"FALSE"),
            [_] => out.extend_from_slice(b"TRUE"),
            _ => return Err("a Boolean has one octet"),
        },
        INTEGER if (1..=16).contains(&content.len()) => {
            let sign = if content[0] & 0x80 == 0 { 0 } else { -1 };
            let number = content.iter().fold(sign, |number: i128, octet| number << 8 | i128::from(*octet));
            out.extend_from_slice(number.to_string().as_bytes());
        }
        OBJECT_IDENTIFIER => identifier(content, out)?,
        BMP_STRING => {
            let (units, odd) = content.as_chunks::<2>();
            let units = units.iter().map(|unit| u16::from_be_bytes(*unit));
            let text: Result<String, _> = char::decode_utf16(units).collect();
            let text = text.ok().filter(|_| odd.is_empty()).ok_or("a BMPString is UTF-16")?;
            out.extend_from_slice(text.as_bytes());
        }
        UNIVERSAL_STRING => {
            let (units, odd) = content.as_chunks::<4>();
            let text: Option<String> =
                units.iter().map(|unit| char::from_u32(u32::from_be_bytes(*unit))).collect();
            let text = text.filter(|_| odd.is_empty()).ok_or("a UniversalString is UTF-32")?;
            out.extend_from_slice(text.as_bytes());
        }
        _ => out.extend_from_slice(octets),
    }
    Ok(())
}

/// The tag octet and the content of the one element that the octets are.
fn element(octets: &[u8]) -> Result<(u8, &[u8]), &'static str> {
    const CUT: &str = "the encoded value ends too early";
    let (tag, mut rest) = octets.split_first().ok_or(CUT)?;
    if tag & 0x1f == 0x1f {
        let length = rest.iter().position(|octet| octet & 0x80 == 0).ok_or(CUT)?;
        rest = &rest[length + 1..];
    }
    let (first, mut rest) = rest.split_first().ok_or(CUT)?;
    let length = match first {
        0..=0x7f => usize::from(*first),
        0x81..=0x84 => {
            let (length, after) = rest.split_at_checked(usize::from(first & 0x7f)).ok_or(CUT)?;
            rest = after;
            length.iter().fold(0, |length: usize, octet| length << 8 | usize::from(*octet))
        }
        _ => return Err("lengths are definite and have at most 4 octets"),
    };
    match rest.len().cmp(&length) {
        std::cmp::Ordering::Less => Err(CUT),
        std::cmp::Ordering::Equal => Ok((*tag, rest)),
        std::cmp::Ordering::Greater => Err("octets follow the encoded value"),
    }
}

/// Appends an object identifier in dotted form.
fn identifier(content: &[u8], out: &mut Vec<u8>) -> Result<(), &'static str> {
    const BAD: &str = "not the encoding of an object identifier";
    if content.last().is_none_or(|octet| octet & 0x80 != 0) {
        return Err(BAD);
    }
    let mut arc: u64 = 0;
    let mut is_first = true;
    for octet in content {
        if arc >= 1 << 56 {
            return Err(BAD);
        }
        arc = arc << 7 | u64::from(octet & 0x7f);
        if octet & 0x80 != 0 {
            continue;
        }
        if is_first {
            let top = (arc / 40).min(2);
            out.extend_from_slice(top.to_string().as_bytes());
            arc -= top * 40;
            is_first = false;
        }
        out.push(b'.');
        out.extend_from_slice(arc.to_string().as_bytes());
        arc = 0;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    type Outcome = Result<&'static [u8], ()>;

    #[test]
    fn elements_become_what_ldap_transfers() {
        let cases: &[(&[u8], Outcome)] = &[
            (b"\x04\x02Hi", Ok(b"Hi")),
            (b"\x0c\x02Hi", Ok(b"Hi")),
            (b"\x13\x81\x02Hi", Ok(b"Hi")),
            (b"\x1e\x04\x00H\x00i", Ok(b"Hi")),
            (b"\x1c\x04\x00\x01\xf6\x00", Ok("\u{1f600}".as_bytes())),
            (b"\x01\x01\xff", Ok(b"TRUE")),
            (b"\x02\x02\xff\x7f", Ok(b"-129")),
            (b"\x06\x03\x55\x04\x03", Ok(b"2.5.4.3")),
            (b"\x06\x03\x88\x37\x03", Ok(b"2.999.3")),
            (b"\x30\x02\x05\x00", Ok(b"\x30\x02\x05\x00")),
            (b"\x1f\x81\x01\x00", Ok(b"\x1f\x81\x01\x00")),
            (b"", Err(())),
            (b"\x04", Err(())),
            (b"\x04\x02H", Err(())),
            (b"\x04\x02Hi\x00", Err(())),
            (b"\x04\x80Hi\x00\x00", Err(())),
            (b"\x04\x85\x00\x00\x00\x00\x00", Err(())),
            (b"\x1f\x81", Err(())),
            (b"\x1e\x02\xd8\x00", Err(())),
            (b"\x1e\x01\x00", Err(())),
            (b"\x06\x00", Err(())),
            (b"\x06\x02\x55\x84", Err(())),
            (b"\x06\x0b\x55\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", Err(())),
            (b"\x01\x02\x00\x00", Err(())),
        ];
        for (octets, expected) in cases {
            let mut out = Vec::new();
            let found = to_ldap(octets, &mut out).map(|()| out.as_slice()).map_err(drop);
            assert_eq!(&found, expected, "{octets:02x?}");
        }
    }
}
