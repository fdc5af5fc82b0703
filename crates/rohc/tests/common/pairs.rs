//! Rows of a table with many dimensions that cover each pair of values, instead of the product.

use std::collections::{BTreeMap, BTreeSet};

use super::SplitMix64;

/// Number of rows from which the best one is taken.
const TRIES: usize = 16;

/// A value of a dimension.
type Value = (usize, usize);

/// Returns rows with a value of each dimension, of `values[dimension]` ones, in which each valid pair of values of two dimensions
/// occurs. `is_valid` gets rows in which some values are not chosen yet.
pub fn covering(values: &[usize], seed: u64, is_valid: impl Fn(&[Option<usize>]) -> bool) -> Vec<Vec<usize>> {
    let mut random = SplitMix64(seed);
    let mut open = BTreeSet::new();
    for (a, &of_a) in values.iter().enumerate() {
        for (b, &of_b) in values.iter().enumerate().skip(a + 1) {
            for pair in (0..of_a).flat_map(|x| (0..of_b).map(move |y| ((a, x), (b, y)))) {
                if is_valid(&row_of(values.len(), pair)) {
                    open.insert(pair);
                }
            }
        }
    }
    let mut rows = Vec::new();
    while let Some(&first) = open.iter().nth(random.below(open.len().max(1) as u64) as usize) {
        let tries =
            (0..TRIES).map(|_| fill(row_of(values.len(), first), values, &open, &mut random, &is_valid));
        let row = tries.max_by_key(|row| pairs(row).filter(|pair| open.contains(pair)).count()).unwrap();
        pairs(&row).for_each(|pair| _ = open.remove(&pair));
        rows.push(row.into_iter().map(Option::unwrap).collect());
    }
    rows
}

/// Numbers of those of `rows`, in their order, in which each pair of values of two dimensions occurs that some row has.
pub fn subset(rows: &[Vec<String>], seed: u64) -> Vec<usize> {
    let mut numbers = BTreeMap::new();
    let mut number_of = |value: (usize, &String)| {
        let next = numbers.len();
        *numbers.entry((value.0, value.1.clone())).or_insert(next)
    };
    let rows: Vec<Vec<Option<usize>>> =
        rows.iter().map(|row| row.iter().enumerate().map(|value| Some(number_of(value))).collect()).collect();
    let mut open: BTreeSet<(Value, Value)> = rows.iter().flat_map(|row| pairs(row)).collect();
    let mut random = SplitMix64(seed);
    let mut chosen = BTreeSet::new();
    while !open.is_empty() {
        let start = random.below(rows.len() as u64) as usize;
        let best = (0..rows.len())
            .map(|at| (at + start) % rows.len())
            .max_by_key(|at| pairs(&rows[*at]).filter(|pair| open.contains(pair)).count())
            .unwrap();
        pairs(&rows[best]).for_each(|pair| _ = open.remove(&pair));
        chosen.insert(best);
    }
    chosen.into_iter().collect()
}

fn row_of(dimensions: usize, pair: (Value, Value)) -> Vec<Option<usize>> {
    let mut row = vec![None; dimensions];
    for (dimension, value) in [pair.0, pair.1] {
        row[dimension] = Some(value);
    }
    row
}

/// The pairs of values that are chosen.
fn pairs(row: &[Option<usize>]) -> impl Iterator<Item = (Value, Value)> {
    let chosen: Vec<Value> =
        row.iter().enumerate().filter_map(|(at, value)| value.map(|value| (at, value))).collect();
    let count = chosen.len();
    (0..count)
        .flat_map(move |a| (a + 1..count).map(move |b| (a, b)))
        .map(move |(a, b)| (chosen[a], chosen[b]))
}

/// Chooses the values that are missing, in any order: those that cover most pairs.
fn fill(
    mut row: Vec<Option<usize>>,
    values: &[usize],
    open: &BTreeSet<(Value, Value)>,
    random: &mut SplitMix64,
    is_valid: &impl Fn(&[Option<usize>]) -> bool,
) -> Vec<Option<usize>> {
    let mut missing: Vec<usize> = (0..row.len()).filter(|at| row[*at].is_none()).collect();
    while !missing.is_empty() {
        let at = missing.swap_remove(random.below(missing.len() as u64) as usize);
        let start = random.below(values[at] as u64) as usize;
        let choices = (0..values[at]).map(|value| (value + start) % values[at]).filter_map(|value| {
            let mut row = row.clone();
            row[at] = Some(value);
            is_valid(&row).then(|| (pairs(&row).filter(|pair| open.contains(pair)).count(), row))
        });
        row = choices.max_by_key(|(covered, _)| *covered).expect("each valid part of a row has a whole").1;
    }
    row
}
