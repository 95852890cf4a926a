//! Change sequence numbers: which change made a version of an entry (`entryCSN`).

use std::fmt;
use std::str::FromStr;

use cowslip_ldap::time::Timestamp;

/// A change sequence number in OpenLDAP's form, `YYYYmmddHHMMSS.uuuuuuZ#000000#SSS#000000`. Their order is the order of
/// the changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Csn {
    /// When, in microseconds since 1970; the committer makes it unique.
    pub time_us: u64,
    /// Tells changes of one moment apart; we always write 0.
    pub count: u32,
    /// The server that made the change.
    pub server: u16,
    /// The step within one change; we always write 0.
    pub step: u32,
}

impl Csn {
    /// The first change that this server makes at a moment.
    pub const fn new(time_us: u64, server: u16) -> Self {
        Self { time_us, count: 0, server, step: 0 }
    }
}

impl fmt::Display for Csn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { time_us, count, server, step } = self;
        let time = Timestamp::from_micros(*time_us);
        write!(f, "{}.{:06}Z#{count:06x}#{server:03x}#{step:06x}", time.digits(), time_us % 1_000_000)
    }
}

/// A text that is no change sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CsnError;

impl fmt::Display for CsnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not of the form YYYYmmddHHMMSS.uuuuuuZ#cccccc#sss#mmmmmm")
    }
}

impl std::error::Error for CsnError {}

impl FromStr for Csn {
    type Err = CsnError;

    fn from_str(text: &str) -> Result<Self, CsnError> {
        let mut parts = text.split('#');
        let (time, count, server, step) = (parts.next(), parts.next(), parts.next(), parts.next());
        let (Some(time), Some(count), Some(server), Some(step), None) =
            (time, count, server, step, parts.next())
        else {
            return Err(CsnError);
        };
        let hex = |text: &str, length: usize| {
            let is_hex = text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
            is_hex.then(|| u32::from_str_radix(text, 16).ok()).flatten().ok_or(CsnError)
        };
        let is_full = time.len() == 22 && time.as_bytes()[14] == b'.' && time.ends_with('Z');
        let time_us = Timestamp::parse(time.as_bytes()).filter(|_| is_full).ok_or(CsnError)?.micros();
        let server = u16::try_from(hex(server, 3)?).map_err(|_| CsnError)?;
        Ok(Self { time_us, count: hex(count, 6)?, server, step: hex(step, 6)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let text = "20260102030405.000006Z#000000#001#000000";
        let csn: Csn = text.parse().expect("a CSN");
        assert_eq!(csn.to_string(), text);
        assert!(csn < Csn::new(csn.time_us + 1, 0));
        for wrong in
            ["", "20260102030405Z#000000#001#000000", "20260102030405.000006Z#0#1#0", &format!("{text}#0")]
        {
            assert_eq!(wrong.parse::<Csn>(), Err(CsnError), "{wrong}");
        }
    }
}
