//! String preparation for comparing (RFC 4518): map, normalise, insignificant characters.
//!
//! Choices where the RFC leaves room or is out of date:
//! * Case is folded fully, with the Unicode tables of the standard library: `Straße` equals `STRASSE`.
//! * Code points that the RFC's tables (Unicode 3.2) don't assign are ordinary characters.
//! * Prohibited code points (private use, non-characters, U+FFFD) make an *assertion* Undefined; in stored values
//!   they are compared as themselves, so that a value that could be added can also be found and deleted.
//!
//! Invariants: ASCII input is prepared in one pass and without allocation; output is UTF-8; preparing what was
//! prepared by [`collapse`] changes nothing.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

use crate::syntax::SyntaxError;

/// Whether case counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Letters of another case are other letters.
    Exact,
    /// Case is folded.
    Ignore,
}

/// Whether the text is a stored value or what a client asserts about one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A value: prohibited code points are kept.
    Value,
    /// An assertion: prohibited code points are an error (the filter item is Undefined).
    Assertion,
}

/// Where a piece of a substrings assertion stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PieceKind {
    /// At the beginning of the value.
    Initial,
    /// Anywhere.
    Any,
    /// At the end of the value.
    Final,
}

/// How spaces come out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spacing {
    /// One between words, none at the ends; one for a text of spaces alone. As good as the RFC's form for equality
    /// and order, and shorter.
    Collapse,
    /// RFC 4518 section 2.6.1 for values: one at each end, two between words.
    Value,
    /// RFC 4518 section 2.6.1 for pieces.
    Piece(PieceKind),
    /// None (RFC 4518 sections 2.6.2).
    Remove,
    /// Neither spaces nor hyphens (RFC 4518 section 2.6.3).
    RemoveWithHyphens,
}

/// Appends a value's form for equality and order: words separated by one space.
///
/// ```
/// use cowslip_ldap::prep::{Case, Origin, collapse};
/// let mut out = Vec::new();
/// collapse("  \u{fb01}sh \u{ad} &  CHIPS ".as_bytes(), Case::Ignore, Origin::Value, &mut out)?;
/// assert_eq!(out, b"fish & chips");
/// # Ok::<(), cowslip_ldap::syntax::SyntaxError>(())
/// ```
///
/// # Errors
/// Not UTF-8; a prohibited character in an assertion. `out` is then as before.
pub fn collapse(text: &[u8], case: Case, origin: Origin, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
    prepare(text, case, origin, Spacing::Collapse, out)
}

/// Appends a value's form in which pieces of assertions are looked for (RFC 4518 section 2.6.1): one space at each
/// end, two between words.
///
/// # Errors
/// Not UTF-8. `out` is then as before.
pub fn spaced(text: &[u8], case: Case, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
    prepare(text, case, Origin::Value, Spacing::Value, out)
}

/// Appends the form of one piece of a substrings assertion (RFC 4518 section 2.6.1).
///
/// # Errors
/// Not UTF-8; a prohibited character. `out` is then as before.
pub fn piece(text: &[u8], at: PieceKind, case: Case, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
    prepare(text, case, Origin::Assertion, Spacing::Piece(at), out)
}

/// Appends a numeric string without its spaces (RFC 4518 section 2.6.2).
///
/// # Errors
/// Not UTF-8; a prohibited character in an assertion. `out` is then as before.
pub fn numeric(text: &[u8], origin: Origin, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
    prepare(text, Case::Ignore, origin, Spacing::Remove, out)
}

/// Appends a telephone number without its spaces and hyphens (RFC 4518 section 2.6.3).
///
/// # Errors
/// Not UTF-8; a prohibited character in an assertion. `out` is then as before.
pub fn telephone(text: &[u8], origin: Origin, out: &mut Vec<u8>) -> Result<(), SyntaxError> {
    prepare(text, Case::Ignore, origin, Spacing::RemoveWithHyphens, out)
}

fn prepare(
    text: &[u8],
    case: Case,
    origin: Origin,
    spacing: Spacing,
    out: &mut Vec<u8>,
) -> Result<(), SyntaxError> {
    out.reserve(text.len() + 2);
    let mut spaces = Spaces::new(spacing, out);
    if text.is_ascii() {
        spaces.ascii(text, case);
        spaces.finish();
        return Ok(());
    }
    let text =
        std::str::from_utf8(text).map_err(|error| SyntaxError::NotUtf8 { offset: error.valid_up_to() })?;
    if origin == Origin::Assertion
        && let Some(character) = text.chars().find(|&character| is_prohibited(character))
    {
        return Err(SyntaxError::Prohibited { character });
    }
    if text.chars().all(is_simple) {
        for character in text.chars() {
            match (character, case) {
                (' ', _) => spaces.space(),
                (character, Case::Exact) => spaces.character(character),
                (character, Case::Ignore) => {
                    character.to_lowercase().for_each(|lower| spaces.character(lower))
                }
            }
        }
    } else {
        transform(text, case, &mut spaces);
    }
    spaces.finish();
    Ok(())
}

/// The general way: map, fold, normalise.
fn transform(text: &str, case: Case, spaces: &mut Spaces<'_>) {
    let mapped = text.chars().filter_map(map);
    let prepared: String = match case {
        Case::Exact => mapped.nfkc().collect(),
        // Folding can give what normalises further and the other way round, hence twice (Unicode's NFKC case fold).
        Case::Ignore => {
            let once: String = mapped.nfd().flat_map(fold).nfkc().collect();
            once.chars().flat_map(fold).nfkc().collect()
        }
    };
    let mut characters = prepared.chars().peekable();
    while let Some(character) = characters.next() {
        // A space that carries a mark is not a space (RFC 4518 section 2.6.1).
        if character == ' ' && !characters.peek().is_some_and(|&next| is_combining_mark(next)) {
            spaces.space();
        } else {
            spaces.character(character);
        }
    }
}

/// Whether a character is of a large and usual kind that mapping and normalisation leave alone, that composes with none
/// of its kind, and whose folding is its lower case: printable ASCII, Latin letters with marks, Cyrillic, kana, Han,
/// Hangul syllables.
fn is_simple(character: char) -> bool {
    matches!(character,
        ' '..='~'
        | '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{de}' | '\u{e0}'..='\u{f6}' | '\u{f8}'..='\u{12f}'
        | '\u{134}'..='\u{13e}' | '\u{141}'..='\u{148}' | '\u{14a}'..='\u{17e}'
        | '\u{400}'..='\u{45f}' | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}'
        | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

/// Whether ASCII text is printable and has single blanks between words only, as nearly all values are.
fn is_collapsed(text: &[u8]) -> bool {
    let is_printable = text.iter().fold(true, |so_far, byte| so_far & (b' '..=b'~').contains(byte));
    let is_double = |pair: &[u8]| pair[0] == b' ' && pair[1] == b' ';
    is_printable
        && text.first().is_some_and(|first| *first != b' ')
        && text.last() != Some(&b' ')
        && !text.windows(2).fold(false, |so_far, pair| so_far | is_double(pair))
}

/// Writes text with its spaces as asked for.
struct Spaces<'a> {
    spacing: Spacing,
    out: &'a mut Vec<u8>,
    /// Where the output began.
    start: usize,
    /// Whether something other than a space came.
    has_text: bool,
    /// Whether spaces came since then.
    is_pending: bool,
}

impl<'a> Spaces<'a> {
    fn new(spacing: Spacing, out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Spaces { spacing, out, start, has_text: false, is_pending: false }
    }

    #[inline]
    fn space(&mut self) {
        self.is_pending = true;
    }

    /// Takes ASCII text.
    fn ascii(&mut self, text: &[u8], case: Case) {
        if self.spacing == Spacing::Collapse && is_collapsed(text) {
            let start = self.out.len();
            self.out.extend_from_slice(text);
            if case == Case::Ignore {
                self.out[start..].make_ascii_lowercase();
            }
            self.has_text = true;
            return;
        }
        for &byte in text {
            match byte {
                b'!'..=b'~' if case == Case::Exact => self.byte(byte),
                b'!'..=b'~' => self.byte(byte.to_ascii_lowercase()),
                b' ' | b'\t'..=b'\r' => self.space(),
                // Other control characters are mapped to nothing.
                _ => {}
            }
        }
    }

    #[inline]
    fn byte(&mut self, byte: u8) {
        if byte == b'-' && self.spacing == Spacing::RemoveWithHyphens {
            return;
        }
        if self.is_pending || !self.has_text {
            self.before_text();
        }
        self.out.push(byte);
    }

    fn character(&mut self, character: char) {
        if character.is_ascii() {
            return self.byte(character as u8);
        }
        if self.spacing == Spacing::RemoveWithHyphens && is_hyphen(character) {
            return;
        }
        if self.is_pending || !self.has_text {
            self.before_text();
        }
        self.out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
    }

    /// Writes what stands before the first word or between two.
    #[cold]
    fn before_text(&mut self) {
        let spaces: &[u8] = match (self.spacing, self.has_text) {
            (Spacing::Remove | Spacing::RemoveWithHyphens, _) | (Spacing::Collapse, false) => b"",
            (Spacing::Collapse, true) | (Spacing::Value | Spacing::Piece(PieceKind::Initial), false) => b" ",
            (Spacing::Piece(_), false) if self.is_pending => b" ",
            (Spacing::Piece(_), false) => b"",
            (Spacing::Value | Spacing::Piece(_), true) => b"  ",
        };
        self.out.extend_from_slice(spaces);
        self.has_text = true;
        self.is_pending = false;
    }

    /// Writes what stands at the end.
    fn finish(self) {
        debug_assert!(self.has_text || self.out.len() == self.start, "nothing is written before text");
        let spaces: &[u8] = match (self.spacing, self.has_text) {
            (Spacing::Remove | Spacing::RemoveWithHyphens, _) | (Spacing::Collapse, true) => b"",
            (Spacing::Value, false) => b"  ",
            (Spacing::Collapse | Spacing::Piece(_), false) | (Spacing::Value, true) => b" ",
            (Spacing::Piece(PieceKind::Final), true) => b" ",
            (Spacing::Piece(_), true) if self.is_pending => b" ",
            (Spacing::Piece(_), true) => b"",
        };
        self.out.extend_from_slice(spaces);
    }
}

/// RFC 4518 section 2.2 without case: what a character is mapped to, if to anything.
fn map(character: char) -> Option<char> {
    match character {
        '\t'..='\r' | '\u{85}' => Some(' '),
        '\0'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' => None,
        '\u{ad}' | '\u{34f}' | '\u{6dd}' | '\u{70f}' | '\u{1806}' | '\u{180b}'..='\u{180e}' => None,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2063}' => None,
        '\u{206a}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffc}' => None,
        '\u{1d173}'..='\u{1d17a}' | '\u{e0001}' | '\u{e0020}'..='\u{e007f}' => None,
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{2028}' | '\u{2029}' => Some(' '),
        '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
        other => Some(other),
    }
}

/// Full case folding of one character: to lower case by way of upper case, which sends ß and ẞ to `ss` and all
/// sigmas to one. Dotless i stays, as in Unicode's table.
fn fold(character: char) -> impl Iterator<Item = char> {
    let is_kept = character == 'ı';
    let kept = is_kept.then_some(character);
    let folded = (!is_kept)
        .then(|| character.to_lowercase().flat_map(char::to_uppercase).flat_map(char::to_lowercase));
    kept.into_iter().chain(folded.into_iter().flatten())
}

/// RFC 4518 section 2.4: private use, non-characters, the replacement character.
fn is_prohibited(character: char) -> bool {
    let code = u32::from(character);
    matches!(code, 0xe000..=0xf8ff | 0xf_0000..=0xf_fffd | 0x10_0000..=0x10_fffd | 0xfdd0..=0xfdef | 0xfffd)
        || code & 0xfffe == 0xfffe
}

/// RFC 4518 section 2.6.3, those that NFKC leaves.
fn is_hyphen(character: char) -> bool {
    matches!(character, '\u{58a}' | '\u{2010}' | '\u{2011}' | '\u{2212}' | '\u{fe63}' | '\u{ff0d}')
}

#[cfg(test)]
mod tests {
    use super::{
        Case, Origin, PieceKind, Spaces, Spacing, collapse, is_simple, numeric, piece, spaced, telephone,
        transform,
    };
    use proptest::prelude::*;

    fn collapsed(text: &str, case: Case) -> String {
        let mut out = Vec::new();
        collapse(text.as_bytes(), case, Origin::Value, &mut out).expect("UTF-8");
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn l061_texts_that_match() {
        let equal = [
            ("\u{fb01}sh", "FISH"),
            ("Mu\u{308}ller", "m\u{fc}ller"),
            ("Stra\u{df}e", "STRASSE"),
            ("STRA\u{1e9e}E", "strasse"),
            ("so\u{ad}ft", "soft"),
            ("a\u{3000}b", "A  b"),
            ("\u{2121}", "tel"),
            ("\u{3a3}\u{3c2}\u{3c3}", "\u{3c3}\u{3c3}\u{3c3}"),
            ("\u{1f}a\tb\u{7f}\r\n", "a b"),
            ("\u{212b}", "a\u{30a}"),
            ("", "   "),
        ];
        for (one, other) in equal {
            assert_eq!(collapsed(one, Case::Ignore), collapsed(other, Case::Ignore), "{one:?} {other:?}");
        }
        let unequal = [("\u{131}", "i"), ("a b", "ab"), ("a \u{301}", "a  ")];
        for (one, other) in unequal {
            assert_ne!(collapsed(one, Case::Ignore), collapsed(other, Case::Ignore), "{one:?} {other:?}");
        }
        assert_ne!(collapsed("A", Case::Exact), collapsed("a", Case::Exact));
    }

    #[test]
    fn l046_pieces_and_values() {
        let value = |text: &str| {
            let mut out = Vec::new();
            spaced(text.as_bytes(), Case::Ignore, &mut out).expect("UTF-8");
            out
        };
        let part = |text: &str, at| {
            let mut out = Vec::new();
            piece(text.as_bytes(), at, Case::Ignore, &mut out).expect("UTF-8");
            out
        };
        assert_eq!(value("a   b"), b" a  b ");
        assert_eq!(value(" \t "), b"  ");
        let pieces: [(&str, PieceKind, &[u8]); 9] = [
            ("a b", PieceKind::Any, b"a  b"),
            ("a  ", PieceKind::Initial, b" a "),
            ("a", PieceKind::Initial, b" a"),
            (" b", PieceKind::Final, b" b "),
            ("b", PieceKind::Final, b"b "),
            (" b ", PieceKind::Any, b" b "),
            (" ", PieceKind::Initial, b" "),
            ("  ", PieceKind::Any, b" "),
            ("\u{3000}\u{c4}", PieceKind::Any, " \u{e4}".as_bytes()),
        ];
        for (text, at, expected) in pieces {
            assert_eq!(part(text, at), expected, "{text:?} {at:?}");
        }
    }

    #[test]
    fn l058_numbers_without_spaces_and_hyphens() {
        for text in ["+1 555-0100", "+15550100", "+1\u{a0}555\u{2010}0100", "+1-555 0100"] {
            let mut out = Vec::new();
            telephone(text.as_bytes(), Origin::Value, &mut out).expect("UTF-8");
            assert_eq!(out, b"+15550100", "{text:?}");
        }
        let mut out = Vec::new();
        numeric(b" 12 34-5 ", Origin::Value, &mut out).expect("UTF-8");
        assert_eq!(out, b"1234-5");
    }

    #[test]
    fn prohibited_characters_make_assertions_undefined_only() {
        for text in ["\u{e000}", "a\u{fffd}", "\u{fffe}", "\u{10ffff}", "\u{fdd0}"] {
            let mut out = vec![7];
            assert!(collapse(text.as_bytes(), Case::Ignore, Origin::Assertion, &mut out).is_err());
            assert_eq!(out, [7]);
            assert!(collapse(text.as_bytes(), Case::Ignore, Origin::Value, &mut out).is_ok());
        }
        let mut out = vec![7];
        assert!(collapse(b"a\xff", Case::Exact, Origin::Value, &mut out).is_err());
        assert_eq!(out, [7]);
    }

    #[test]
    fn simple_characters_need_no_tables() {
        for character in ('\0'..=char::MAX).filter(|character| is_simple(*character) && *character != ' ') {
            for case in [Case::Exact, Case::Ignore] {
                // Two of a kind, so that composition would show.
                let text = format!("{character}{character}");
                assert_eq!(collapsed(&text, case), the_general_way(&text, case), "{character:?}");
            }
        }
    }

    fn the_general_way(text: &str, case: Case) -> String {
        let mut out = Vec::new();
        let mut spaces = Spaces::new(Spacing::Collapse, &mut out);
        transform(text, case, &mut spaces);
        spaces.finish();
        String::from_utf8(out).expect("UTF-8")
    }

    proptest! {
        #[test]
        fn the_quick_way_is_the_general_way(
            text in "[a-zA-Z \u{c0}-\u{17e}\u{400}-\u{45f}\u{3041}-\u{30fa}\u{ac00}-\u{ac20}]{0,12}",
        ) {
            for case in [Case::Exact, Case::Ignore] {
                prop_assert_eq!(collapsed(&text, case), the_general_way(&text, case));
            }
        }

        #[test]
        fn preparing_again_changes_nothing(text in "\\PC{0,12}|[ -~\t]{0,12}|[aA \u{df}\u{1e9e}\u{345}\u{3b1}\u{130}\u{131}\u{2121}\u{301}]{0,8}") {
            for case in [Case::Exact, Case::Ignore] {
                let once = collapsed(&text, case);
                prop_assert_eq!(collapsed(&once, case), once);
            }
        }

        #[test]
        fn ascii_is_prepared_as_other_text_is(text in "[\\x00-\\x7f]{0,16}") {
            for case in [Case::Exact, Case::Ignore] {
                let with_other = collapsed(&format!("\u{e9}{text}"), case);
                let alone = collapsed(&format!("x{text}"), case);
                prop_assert_eq!(&with_other["\u{e9}".len()..], &alone[1..]);
            }
        }
    }
}
