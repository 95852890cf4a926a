//! Appending elements to a buffer.

use super::{BOOLEAN, LENGTH_OCTETS_MAX};

/// A constructed element whose content is being written; [`end`] puts its length in.
#[derive(Debug)]
#[must_use = "an element without its length can't be read"]
pub struct Mark {
    /// Where the length goes.
    at: usize,
    /// How many octets were left for it.
    reserved: usize,
}

/// Opens an element that will probably be shorter than 128 octets.
pub fn begin(out: &mut Vec<u8>, tag: u8) -> Mark {
    out.extend_from_slice(&[tag, 0]);
    Mark { at: out.len() - 1, reserved: 1 }
}

/// Opens an element of probably 256 octets to 64 KiB. A wrong guess costs moving the content once.
pub fn begin_large(out: &mut Vec<u8>, tag: u8) -> Mark {
    out.extend_from_slice(&[tag, 0, 0, 0]);
    Mark { at: out.len() - 3, reserved: 3 }
}

/// Closes an element: everything appended since is its content. Elements are closed in the reverse order of opening.
///
/// ```
/// use cowslip_ldap::ber;
/// let mut out = Vec::new();
/// let sequence = ber::begin(&mut out, ber::SEQUENCE);
/// ber::integer(&mut out, ber::INTEGER, 5);
/// ber::end(&mut out, sequence);
/// assert_eq!(out, [0x30, 0x03, 0x02, 0x01, 0x05]);
/// ```
pub fn end(out: &mut Vec<u8>, mark: Mark) {
    let start = mark.at + mark.reserved;
    let content_bytes = out.len() - start;
    let (length, octets) = length(content_bytes);
    if octets > mark.reserved {
        out.resize(out.len() + octets - mark.reserved, 0);
    }
    if octets != mark.reserved {
        out.copy_within(start..start + content_bytes, mark.at + octets);
        out.truncate(mark.at + octets + content_bytes);
    }
    out[mark.at..mark.at + octets].copy_from_slice(&length[..octets]);
}

/// Appends a string, or any primitive element whose content is at hand.
#[inline]
pub fn octets(out: &mut Vec<u8>, tag: u8, content: &[u8]) {
    if content.len() < 0x80 {
        #[expect(clippy::cast_possible_truncation, reason = "less than 128")]
        out.extend_from_slice(&[tag, content.len() as u8]);
    } else {
        let (length, octets) = length(content.len());
        out.reserve(1 + octets + content.len());
        out.push(tag);
        out.extend_from_slice(&length[..octets]);
    }
    out.extend_from_slice(content);
}

/// Appends an integer or enumerated in its shortest form.
pub fn integer(out: &mut Vec<u8>, tag: u8, number: i64) {
    let all = number.to_be_bytes();
    // An octet is needless if it only repeats the sign of the one after it.
    let needless =
        all.windows(2).take_while(|pair| pair[0] == if pair[1] & 0x80 == 0 { 0 } else { 0xff }).count();
    octets(out, tag, &all[needless..]);
}

/// Appends a Boolean; true is 0xff (RFC 4511 section 5.1).
pub fn boolean(out: &mut Vec<u8>, is_true: bool) {
    out.extend_from_slice(&[BOOLEAN, 1, if is_true { 0xff } else { 0 }]);
}

/// The octets of a length, and how many of them there are.
///
/// # Panics
/// Never for what memory holds here: frames are bounded far below 4 GiB.
fn length(content_bytes: usize) -> ([u8; 1 + LENGTH_OCTETS_MAX], usize) {
    let number = u32::try_from(content_bytes).expect("messages are bounded below 4 GiB").to_be_bytes();
    let mut octets = [0; 1 + LENGTH_OCTETS_MAX];
    if content_bytes < 0x80 {
        octets[0] = number[3];
        return (octets, 1);
    }
    let zeros = number.iter().take_while(|octet| **octet == 0).count();
    let count = number.len() - zeros;
    #[expect(clippy::cast_possible_truncation, reason = "at most 4")]
    let first = 0x80 | count as u8;
    octets[0] = first;
    octets[1..=count].copy_from_slice(&number[zeros..]);
    (octets, 1 + count)
}

#[cfg(test)]
mod tests {
    use super::super::{INTEGER, OCTET_STRING, Reader, SEQUENCE};
    use super::*;

    #[test]
    fn lengths_are_shortest_whatever_was_guessed() {
        for bytes in [0, 1, 127, 128, 255, 256, 65_535, 65_536, 70_000] {
            let content: Vec<u8> = (0..bytes).map(|at: u32| at.to_le_bytes()[0]).collect();
            let mut expected = b"before".to_vec();
            octets(&mut expected, SEQUENCE, &content);
            for open in [begin, begin_large] {
                let mut out = b"before".to_vec();
                let mark = open(&mut out, SEQUENCE);
                out.extend_from_slice(&content);
                end(&mut out, mark);
                assert_eq!(out, expected, "{bytes}");
            }
            assert_eq!(Reader::new(&expected[6..]).element(), Ok((SEQUENCE, &content[..])));
        }
    }

    #[test]
    fn integers_are_shortest() {
        let cases: &[(i64, &[u8])] = &[
            (0, &[0]),
            (127, &[127]),
            (128, &[0, 128]),
            (-1, &[0xff]),
            (-128, &[0x80]),
            (-129, &[0xff, 0x7f]),
            (i64::from(i32::MAX), &[0x7f, 0xff, 0xff, 0xff]),
            (i64::MIN, &[0x80, 0, 0, 0, 0, 0, 0, 0]),
        ];
        for (number, content) in cases {
            let mut out = Vec::new();
            integer(&mut out, INTEGER, *number);
            assert_eq!(&out[2..], *content, "{number}");
            assert_eq!(Reader::new(&out).integer(), Ok(*number));
        }
        let mut out = Vec::new();
        octets(&mut out, OCTET_STRING, b"");
        assert_eq!(out, [4, 0]);
    }
}
