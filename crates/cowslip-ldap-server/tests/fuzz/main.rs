//! Every decoder of bytes from outside, fed with mutations of good input.
//!
//! A run is the same each time: the numbers come from a seed, the inputs from the cases of other tests. An input whose
//! outcome (accepted, or the kind of error) is new for its target is kept and mutated further, which finds most of what
//! coverage would, without another compiler. `COWSLIP_FUZZ_SECONDS` lets each target run for so long instead of for
//! [`INPUTS`] inputs, `COWSLIP_FUZZ_SEED` takes other numbers. Each target states more than that nothing panics: what is
//! accepted and written again is accepted again, and means the same.
#![forbid(unsafe_code)]

mod mutate;
mod seeds;
mod targets;

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use mutate::Mutator;

/// Inputs for each target unless seconds are given.
const INPUTS: usize = 4_000;

/// Inputs that a target keeps; then new ones take the places of old ones.
const KEPT_MAX: usize = 2_000;

/// What a target says about an input: a short text, the same for what is alike.
type Outcome = String;

/// Runs one target over mutations of its seeds.
///
/// # Panics
/// If the target panics; the input is told.
fn fuzz(name: &str, seeds: Vec<Vec<u8>>, words: &[&[u8]], target: impl Fn(&[u8]) -> Outcome) {
    assert!(!seeds.is_empty(), "{name}: without seeds");
    let number =
        |variable: &str| std::env::var(variable).ok().map(|text| text.parse::<u64>().expect("a number"));
    let seconds = number("COWSLIP_FUZZ_SECONDS").map(Duration::from_secs);
    let mut mutator = Mutator::new(number("COWSLIP_FUZZ_SEED").unwrap_or(1), words);
    let (mut kept, mut outcomes) = (Vec::new(), HashSet::new());
    let run = |input: &[u8]| {
        catch_unwind(AssertUnwindSafe(|| target(input))).unwrap_or_else(|_| {
            panic!("{name}: panics on {} (as text: {:?})", hex(input), String::from_utf8_lossy(input))
        })
    };
    for seed in seeds {
        outcomes.insert(run(&seed));
        kept.push(seed);
    }
    let (start, mut inputs) = (Instant::now(), 0_usize);
    while seconds.map_or(inputs < INPUTS, |seconds| start.elapsed() < seconds) {
        let input = mutator.mutate(&kept);
        inputs += 1;
        if outcomes.insert(run(&input)) {
            if kept.len() < KEPT_MAX {
                kept.push(input);
            } else {
                let place = mutator.below(KEPT_MAX);
                kept[place] = input;
            }
        }
    }
    println!("{name}: {inputs} inputs, {} outcomes", outcomes.len());
    assert!(outcomes.len() > 1, "{name}: every input has the same outcome");
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The kind of an error: its text without names and numbers.
fn kind(error: &impl std::fmt::Debug) -> Outcome {
    let text = format!("{error:?}");
    let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| word.len() > 3);
    words.take(2).collect::<Vec<_>>().join(" ")
}

#[test]
fn requests() {
    fuzz("requests", seeds::frames(), mutate::BER, targets::request);
}

#[test]
fn responses() {
    fuzz("responses", seeds::responses(), mutate::BER, targets::response);
}

#[test]
fn filters_in_ber() {
    fuzz("filters in BER", seeds::ber_filters(), mutate::BER, targets::ber_filter);
}

#[test]
fn filters() {
    fuzz("filters", seeds::texts(seeds::FILTERS), mutate::FILTER, targets::filter);
}

#[test]
fn names() {
    fuzz("names", seeds::texts(seeds::NAMES), mutate::NAME, targets::name);
}

#[test]
fn urls() {
    fuzz("URLs", seeds::texts(seeds::URLS), mutate::URL, targets::url);
}

#[test]
fn ldif() {
    fuzz("LDIF", seeds::ldif(), mutate::LDIF, targets::ldif);
}

#[test]
fn schema_files() {
    fuzz("schema files", seeds::schema_files(), mutate::SCHEMA, targets::schema_file);
}

#[test]
fn definitions() {
    fuzz("definitions", seeds::definitions(), mutate::SCHEMA, targets::definition);
}

#[test]
fn values() {
    fuzz("values", seeds::texts(seeds::VALUES), mutate::VALUE, targets::values);
}

#[test]
fn journal_files() {
    let (journals, _) = seeds::journal_and_snapshot();
    fuzz("journal files", journals, &[], targets::journal);
}

#[test]
fn snapshot_files() {
    let (_, snapshots) = seeds::journal_and_snapshot();
    fuzz("snapshot files", snapshots, &[], targets::snapshot);
}
