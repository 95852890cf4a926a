//! Mutations of bytes.

/// Pieces of BER: tags and lengths at their limits.
pub(crate) const BER: &[&[u8]] = &[
    b"\x30\x00",
    b"\x30\x80",
    b"\x30\x84\x7f\xff\xff\xff",
    b"\x30\x84\x00\x00\x00\x00",
    b"\x81\xff",
    b"\xa0\x00",
    b"\xa1\x02",
    b"\xa2\x04",
    b"\xa3\x05\x04\x01a\x04\x00",
    b"\xa4\x07\x04\x01a\x30\x02\x80\x00",
    b"\x87\x01a",
    b"\xa9\x04\x83\x00\x84\x00",
    b"\x02\x01\x00",
    b"\x02\x04\x7f\xff\xff\xff",
    b"\x0a\x01\x00",
    b"\x01\x01\xff",
    b"\x04\x00",
    b"\x31\x00",
];

/// Pieces of filters.
pub(crate) const FILTER: &[&[u8]] = &[
    b"(",
    b")",
    b"(&",
    b"(|",
    b"(!",
    b"*",
    b"=",
    b":=",
    b":dn:",
    b">=",
    b"<=",
    b"~=",
    b"\\2a",
    b"\\",
    b"\\00",
    b";lang-en",
    b"2.5.4.3",
    b":caseExactMatch:",
    b"(cn=*)",
    b"((((((((((",
    b"\xc3\xa9",
    b"\xff",
];

/// Pieces of names.
pub(crate) const NAME: &[&[u8]] = &[
    b",",
    b"+",
    b"=",
    b"\\",
    b"\\,",
    b"\\2C",
    b"\"",
    b"#",
    b"#0401",
    b"#04",
    b" ",
    b"\\20",
    b"OID.",
    b"2.5.4.3=",
    b"cn=",
    b"uniqueMember=",
    b"member=cn\\3Da\\2C",
    b";",
    b"\0",
    b"\xc3\xa9",
    b"\xff",
    b"<>",
];

/// Pieces of URLs.
pub(crate) const URL: &[&[u8]] = &[
    b"ldap://",
    b"ldapi://",
    b"ldaps://",
    b"%2F",
    b"%",
    b"%00",
    b"%ff",
    b"?",
    b"??",
    b"?sub",
    b"!bindname=",
    b"[",
    b"]",
    b"::1",
    b":",
    b":65536",
    b",",
    b"/",
    b"#",
    b"(cn=*)",
];

/// Pieces of LDIF.
pub(crate) const LDIF: &[&[u8]] = &[
    b"\n",
    b"\r\n",
    b"\n ",
    b"\n\n",
    b"-\n",
    b": ",
    b":: ",
    b":< file:///",
    b"dn: ",
    b"dn:: ",
    b"changetype: modify\n",
    b"changetype: modrdn\n",
    b"newrdn: ",
    b"deleteoldrdn: 1\n",
    b"newsuperior: ",
    b"add: cn\n",
    b"replace: cn\n",
    b"increment: uidNumber\n",
    b"control: 1.2 true: x\n",
    b"version: 1\n",
    b"#",
    b"=",
    b"\xff",
    b"\0",
];

/// Pieces of schema definitions.
pub(crate) const SCHEMA: &[&[u8]] = &[
    b"( ",
    b" )",
    b"'",
    b" $ ",
    b"NAME ",
    b"DESC ",
    b"SUP ",
    b"MUST ( ",
    b"MAY ",
    b"SYNTAX 1.3.6.1{",
    b"}",
    b"USAGE ",
    b"EQUALITY ",
    b"X-A ",
    b"OBSOLETE",
    b"ABSTRACT",
    b"\\27",
    b"\\5c",
    b"\n",
    b"\n\t",
    b"attributetype ",
    b"objectclass ",
    b"objectidentifier ",
    b"olcAttributeTypes: ",
    b"1.2",
    b".0",
    b"4294967296",
    b"a:1.2",
    b"\xc3",
];

/// Pieces of values.
pub(crate) const VALUE: &[&[u8]] = &[
    b"20261231",
    b"Z",
    b"+0100",
    b".5",
    b"$",
    b"#",
    b"\\24",
    b"\\5C",
    b"'0101'B",
    b"-",
    b"0",
    b"TRUE",
    b"{",
    b"}",
    b"1.2.3",
    b" ",
    b"  ",
    b"\xc2\xad",
    b"\xe2\x80\x8b",
    b"\xcc\x81",
    b"e\xcc\x81",
    b"\xef\xbf\xbd",
    b"\xe1\x9a\x80",
    b"\xff",
    b"\x30\x82\x01",
    b"serialNumber ",
    b"issuer ",
    b"rdnSequence:\"",
];

/// The largest input that is made.
const INPUT_BYTES_MAX: usize = 16 << 10;

/// Makes new inputs from old ones.
pub(crate) struct Mutator<'a> {
    state: u64,
    words: &'a [&'a [u8]],
}

impl<'a> Mutator<'a> {
    pub(crate) fn new(seed: u64, words: &'a [&'a [u8]]) -> Self {
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1, words }
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from(self.state >> 16).unwrap_or_default() % limit
    }

    /// One of the inputs with one to eight changes.
    pub(crate) fn mutate(&mut self, kept: &[Vec<u8>]) -> Vec<u8> {
        let mut input = kept[self.below(kept.len())].clone();
        for _ in 0..1_usize << self.below(4) {
            self.change(&mut input, kept);
        }
        input.truncate(INPUT_BYTES_MAX.max(kept[0].len()));
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, kept: &[Vec<u8>]) {
        let at = self.below(input.len() + 1);
        let span = at..(at + 1 + self.below(16)).min(input.len());
        match self.below(9) {
            0 | 1 if at < input.len() => input[at] = u8::try_from(self.below(256)).unwrap_or_default(),
            2 if at < input.len() => input[at] ^= 1 << self.below(8),
            3 => drop(input.drain(span)),
            4 if !self.words.is_empty() => self.insert_word(input, at),
            5 => {
                // A piece of another input goes in.
                let other = &kept[self.below(kept.len())];
                let from = self.below(other.len() + 1);
                let to = (from + 1 + self.below(64)).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
            6 => {
                let copy = input[span].to_vec();
                let times = 1 + self.below(8);
                input.splice(at..at, copy.repeat(times));
            }
            7 => input.truncate(at),
            8 if at < input.len() => {
                // Near-by numbers: lengths that are one off.
                input[at] =
                    if self.below(2) == 0 { input[at].wrapping_add(1) } else { input[at].wrapping_sub(1) };
            }
            _ => input.insert(at, u8::try_from(self.below(256)).unwrap_or_default()),
        }
    }

    fn insert_word(&mut self, input: &mut Vec<u8>, at: usize) {
        let word = self.words[self.below(self.words.len())];
        input.splice(at..at, word.iter().copied());
    }
}
