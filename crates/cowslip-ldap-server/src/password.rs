//! Comparing a password with what is stored: clear text and the schemes that directories bring along.
//!
//! Invariants: a comparison takes time that depends on lengths only; an unknown scheme, or a value that its scheme does
//! not allow, matches nothing.

use base64ct::{Base64, Encoding};
use md5::Md5;
use sha1::Sha1;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// The longest stored value that is looked at, in bytes.
pub const STORED_BYTES_MAX: usize = 4096;

/// Whether a password is the one that was stored.
///
/// ```
/// use cowslip_ldap_server::password::is_match;
/// assert!(is_match(b"secret", b"secret"));
/// assert!(!is_match(b"{NOSUCH}x", b"{NOSUCH}x"));
/// ```
pub fn is_match(stored: &[u8], password: &[u8]) -> bool {
    if stored.len() > STORED_BYTES_MAX || stored.is_empty() {
        return false;
    }
    let Some((scheme, rest)) = scheme(stored) else { return is_same(stored, password) };
    match scheme.as_str() {
        "SHA" | "SSHA" => is_hash::<Sha1>(rest, password),
        "SHA256" | "SSHA256" => is_hash::<Sha256>(rest, password),
        "SHA384" | "SSHA384" => is_hash::<Sha384>(rest, password),
        "SHA512" | "SSHA512" => is_hash::<Sha512>(rest, password),
        "MD5" | "SMD5" => is_hash::<Md5>(rest, password),
        "CLEAR" | "CLEARTEXT" => is_same(rest, password),
        _ => false,
    }
}

/// The scheme in braces and what follows it; none if the value is clear text.
fn scheme(stored: &[u8]) -> Option<(String, &[u8])> {
    let inner = stored.strip_prefix(b"{")?;
    let end = inner.iter().position(|byte| *byte == b'}')?;
    let name = &inner[..end];
    let is_name = !name.is_empty()
        && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'/'));
    is_name.then(|| (String::from_utf8_lossy(name).to_ascii_uppercase(), &inner[end + 1..]))
}

/// Whether the rest of a stored value is the hash of the password and the salt that follows the hash.
fn is_hash<D: Digest>(encoded: &[u8], password: &[u8]) -> bool {
    let Some(decoded) = std::str::from_utf8(encoded).ok().and_then(|text| Base64::decode_vec(text).ok())
    else {
        return false;
    };
    let length = <D as Digest>::output_size();
    let Some((hash, salt)) = decoded.split_at_checked(length) else { return false };
    let made = D::new().chain_update(password).chain_update(salt).finalize();
    is_same(hash, &made)
}

/// Whether two byte strings are equal, in a time that their lengths give.
pub(crate) fn is_same(one: &[u8], other: &[u8]) -> bool {
    let differing = one.iter().zip(other).fold(0, |bits, (one, other)| bits | (one ^ other));
    one.len() == other.len() && std::hint::black_box(differing) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn salted<D: Digest>(scheme: &str, password: &[u8], salt: &[u8]) -> Vec<u8> {
        let mut bytes = D::new().chain_update(password).chain_update(salt).finalize().to_vec();
        bytes.extend_from_slice(salt);
        format!("{{{scheme}}}{}", Base64::encode_string(&bytes)).into_bytes()
    }

    #[test]
    fn schemes() {
        for stored in [
            b"secret".to_vec(),
            b"{CLEARTEXT}secret".to_vec(),
            salted::<Sha1>("SHA", b"secret", b""),
            salted::<Sha1>("SSHA", b"secret", b"salt"),
            salted::<Sha256>("ssha256", b"secret", b"12345678"),
            salted::<Sha512>("SSHA512", b"secret", b"12345678"),
            salted::<Md5>("SMD5", b"secret", b"x"),
        ] {
            assert!(is_match(&stored, b"secret"), "{}", stored.escape_ascii());
            assert!(!is_match(&stored, b"Secret"), "{}", stored.escape_ascii());
        }
    }

    #[test]
    fn broken_values_match_nothing() {
        let cut = &salted::<Sha512>("SSHA512", b"x", b"salt")[..20];
        for stored in [
            &b"{SSHA}AA=="[..],
            b"{SMD5}",
            b"{SSHA}",
            b"{NOSUCH}x",
            b"{PBKDF2-SHA256}999999999$x$y",
            cut,
            b"",
        ] {
            assert!(!is_match(stored, b"x") && !is_match(stored, b"") && !is_match(stored, stored), "L023");
        }
    }
}
