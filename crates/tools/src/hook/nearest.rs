//! The known name that a misspelt one was meant to be.

/// A word for the end of a warning: the known name that is a few letters away, or nothing.
pub(super) fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let lower = name.to_lowercase();
    // Case is the mistake made most, and is no distance at all.
    let distances = known
        .into_iter()
        .map(|known| (distance(&lower, &known.to_lowercase()), known));
    match distances.min() {
        Some((distance, known)) if distance <= 2.max(name.chars().count() / 4) => {
            format!("; did you mean `{known}`?")
        }
        _ => String::new(),
    }
}

/// How many letters must change to make one word the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let change = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}
