//! A phonetic key for approximate matching (`~=`, RFC 4511 section 4.5.1.7.6, which leaves the algorithm open).
//!
//! Words are reduced to the consonants one hears, in the manner of Metaphone, in one pass: vowels count at the front
//! only, doubled letters once, letters that sound alike are one. Marks are taken off Latin letters first, so `Müller`
//! sounds as `Muller`. Letters of other scripts stand for themselves.

use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Most octets of a word's key; what follows is not heard.
pub const PHONETIC_KEY_BYTES_MAX: usize = 8;

/// The words of a text, as approximate matching takes them apart: runs of letters and digits.
pub fn phonetic_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !character.is_alphanumeric() && !is_combining_mark(character))
        .filter(|word| !word.is_empty())
}

/// Appends the key of one word. Two words sound alike if their keys are equal.
///
/// ```
/// use cowslip_ldap::matching::phonetic_key;
/// let key = |word| {
///     let mut out = Vec::new();
///     phonetic_key(word, &mut out);
///     out
/// };
/// assert_eq!(key("Philip"), key("Filipp"));
/// assert_ne!(key("Philip"), key("Filbert"));
/// ```
pub fn phonetic_key(word: &str, out: &mut Vec<u8>) {
    let start = out.len();
    let mut letters =
        word.nfd().filter(|character| !is_combining_mark(*character)).flat_map(char::to_lowercase).peekable();
    let mut before = None;
    while let Some(letter) = letters.next() {
        let next = letters.peek().copied();
        let is_first = before.is_none();
        let sound = sound(letter, before, next);
        if matches!((letter, next), ('p', Some('h')) | ('s' | 'c' | 't', Some('h'))) {
            letters.next();
        }
        let is_silent_start =
            is_first && matches!((letter, next), ('k' | 'g' | 'p', Some('n')) | ('w', Some('r')));
        before = Some(letter);
        if is_silent_start {
            continue;
        }
        let sound = match sound {
            Some(sound) => sound,
            // A vowel is heard at the front.
            None if is_first && letter != 'h' => 'a',
            None => continue,
        };
        push(sound, start, out);
    }
}

/// What a letter sounds like between its neighbours; nothing for vowels and silent letters.
fn sound(letter: char, before: Option<char>, next: Option<char>) -> Option<char> {
    let is_soft = matches!(next, Some('e' | 'i' | 'y'));
    Some(match letter {
        'a' | 'e' | 'i' | 'o' | 'u' | 'y' => return None,
        // Heard before a vowel only.
        'h' if before.is_none() && next.is_some_and(|next| "aeiouy".contains(next)) => 'h',
        'h' => return None,
        'w' if next.is_some_and(|next| "aeiouy".contains(next)) => 'v',
        'w' => return None,
        'b' => 'p',
        'c' if next == Some('h') => 'x',
        'c' if is_soft => 's',
        'c' | 'q' | 'k' => 'k',
        'd' | 't' => {
            if next == Some('h') {
                '0'
            } else {
                't'
            }
        }
        'g' if is_soft => 'j',
        'g' => 'k',
        'p' if next == Some('h') => 'f',
        's' if next == Some('h') => 'x',
        's' | 'z' | 'ß' => 's',
        'f' | 'v' => 'f',
        'm' | 'n' => 'n',
        'x' => 'k',
        other => other,
    })
}

/// Appends a sound unless it is the one before it or the key is full.
fn push(sound: char, start: usize, out: &mut Vec<u8>) {
    let mut buffer = [0; 4];
    let sound = sound.encode_utf8(&mut buffer).as_bytes();
    let is_full = out.len() - start + sound.len() > PHONETIC_KEY_BYTES_MAX;
    if !is_full && !out[start..].ends_with(sound) {
        out.extend_from_slice(sound);
    }
}

#[cfg(test)]
mod tests {
    use super::{PHONETIC_KEY_BYTES_MAX, phonetic_key, phonetic_words};

    fn key(word: &str) -> Vec<u8> {
        let mut out = vec![1];
        phonetic_key(word, &mut out);
        out.split_off(1)
    }

    #[test]
    fn words_that_sound_alike() {
        let alike = [
            ("Smith", "Smyth"),
            ("Meier", "Mayer"),
            ("Catherine", "Katherin"),
            ("Müller", "Muller"),
            ("knight", "night"),
            ("Stephen", "Stefen"),
            ("wright", "right"),
        ];
        for (one, other) in alike {
            assert_eq!(key(one), key(other), "{one} {other}");
        }
        for (one, other) in [("Smith", "Jones"), ("Doe", "Roe"), ("Иван", "Пётр")] {
            assert_ne!(key(one), key(other), "{one} {other}");
        }
    }

    #[test]
    fn keys_are_bounded_and_words_are_taken_apart() {
        assert!(key(&"krtl".repeat(100)).len() <= PHONETIC_KEY_BYTES_MAX);
        assert_eq!(
            phonetic_words("Amy  Doe-Smith, O'Neill").collect::<Vec<_>>(),
            ["Amy", "Doe", "Smith", "O", "Neill"]
        );
    }
}
