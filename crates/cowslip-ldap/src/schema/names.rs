//! A frozen table from names to numbers that ignores ASCII case and allocates nothing when it is asked.
//!
//! Invariants: built once, never changed; a load of at most one half, so a probe always ends; all text is in one
//! buffer, so that a look-up touches one slot and one run of bytes.

/// One taken or free place of the table.
#[derive(Debug, Clone, Copy)]
struct Slot {
    hash: u32,
    /// Where the text begins in the buffer; `u32::MAX` marks a free slot.
    start: u32,
    length: u32,
    number: u32,
}

const FREE: Slot = Slot { hash: 0, start: u32::MAX, length: 0, number: 0 };

/// Names and the numbers that they stand for.
#[derive(Debug, Clone)]
pub(super) struct NameTable {
    text: Vec<u8>,
    slots: Vec<Slot>,
}

impl NameTable {
    /// An empty table with room for `names` names.
    pub(super) fn with_capacity(names: usize) -> Self {
        let slots = (names.max(4) * 2).next_power_of_two();
        NameTable { text: Vec::with_capacity(names * 16), slots: vec![FREE; slots] }
    }

    /// Adds a name; answers the number that it already stands for if it is there. There must be room.
    pub(super) fn insert(&mut self, name: &str, number: u32) -> Result<(), u32> {
        let hash = hash(name.as_bytes());
        match self.position(name.as_bytes(), hash) {
            Ok(taken) => Err(self.slots[taken].number),
            Err(free) => {
                let start = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
                let length = u32::try_from(name.len()).unwrap_or(u32::MAX);
                self.text.extend_from_slice(name.as_bytes());
                self.slots[free] = Slot { hash, start, length, number };
                Ok(())
            }
        }
    }

    /// The number that a name stands for, whatever the case of its ASCII letters.
    #[inline]
    pub(super) fn find(&self, name: &[u8]) -> Option<u32> {
        self.position(name, hash(name)).ok().map(|slot| self.slots[slot].number)
    }

    /// The slot of the name, or the free one where it would go.
    #[inline]
    fn position(&self, name: &[u8], hash: u32) -> Result<usize, usize> {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = &self.slots[at];
            if slot.start == u32::MAX {
                return Err(at);
            }
            if slot.hash == hash && slot.length as usize == name.len() {
                let start = slot.start as usize;
                if self.text[start..start + name.len()].eq_ignore_ascii_case(name) {
                    return Ok(at);
                }
            }
            at = (at + 1) & mask;
        }
    }
}

/// A hash that ignores ASCII case: bit 5 of each octet, which is what letters of both cases differ by, is set first.
/// Who can make names collide is whoever may change the schema, so a keyed hash would buy nothing.
#[inline]
fn hash(name: &[u8]) -> u32 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    const CASE: u64 = 0x2020_2020_2020_2020;
    let mut state = name.len() as u64;
    let (chunks, rest) = name.as_chunks::<8>();
    for chunk in chunks {
        state = (state.rotate_left(5) ^ (u64::from_le_bytes(*chunk) | CASE)).wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        state = (state.rotate_left(5) ^ (u64::from_le_bytes(last) | CASE)).wrapping_mul(MULTIPLIER);
    }
    (state >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::NameTable;

    #[test]
    fn finds_names_in_any_case_and_no_others() {
        let names: Vec<String> = (0..1000).map(|number| format!("attribute-Type{number}")).collect();
        let mut table = NameTable::with_capacity(names.len());
        for (number, name) in (0..).zip(&names) {
            assert_eq!(table.insert(name, number), Ok(()));
        }
        for (number, name) in (0..).zip(&names) {
            assert_eq!(table.find(name.to_uppercase().as_bytes()), Some(number));
            assert_eq!(table.insert(&name.to_lowercase(), 5), Err(number));
        }
        // `[` and `{` differ by the bit that the hash ignores: equal hash, other text.
        for absent in ["", "attribute-Type", "attribute-Type1000", "attribute\rType1", "\0"] {
            assert_eq!(table.find(absent.as_bytes()), None);
        }
    }
}
