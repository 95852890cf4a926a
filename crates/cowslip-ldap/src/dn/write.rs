//! Writes names as text (RFC 4514 section 2): types and values as they were given, with the escapes that are needed.

use std::fmt::{self, Display, Formatter, Write};

use super::{Ava, Dn, Rdn};

impl Display for Dn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (position, rdn) in self.rdns.iter().enumerate() {
            if position > 0 {
                f.write_char(',')?;
            }
            rdn.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Rdn {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (position, ava) in self.avas().iter().enumerate() {
            if position > 0 {
                f.write_char('+')?;
            }
            ava.fmt(f)?;
        }
        Ok(())
    }
}

impl Display for Ava {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(self.attribute())?;
        f.write_char('=')?;
        match &self.ber {
            Some(octets) => {
                f.write_char('#')?;
                octets.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
            }
            None => value(self.value(), f),
        }
    }
}

/// Writes a value. Besides what the RFC demands, control characters are escaped too, so that a name is one line.
fn value(value: &[u8], f: &mut Formatter<'_>) -> fmt::Result {
    let blanks = value.iter().rev().take_while(|byte| **byte == b' ').count().min(1);
    let last_blank = value.len() - blanks;
    let mut at = 0;
    for chunk in value.utf8_chunks() {
        let text = chunk.valid();
        let mut run = 0;
        for (offset, byte) in text.bytes().enumerate() {
            let position = at + offset;
            let is_special = match byte {
                b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' => true,
                b' ' => position == 0 || position == last_blank,
                b'#' => position == 0,
                _ => byte.is_ascii_control(),
            };
            if is_special {
                f.write_str(&text[run..offset])?;
                match byte.is_ascii_control() {
                    true => write!(f, "\\{byte:02X}")?,
                    false => write!(f, "\\{}", char::from(byte))?,
                }
                run = offset + 1;
            }
        }
        f.write_str(&text[run..])?;
        chunk.invalid().iter().try_for_each(|byte| write!(f, "\\{byte:02X}"))?;
        at += text.len() + chunk.invalid().len();
    }
    Ok(())
}
