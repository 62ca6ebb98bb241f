//! The known name that a misspelt one was meant to be.

/// How many letters must change to make one word the other. Case is the mistake made most, and is
/// no distance at all.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    strsim::levenshtein(&a.to_lowercase(), &b.to_lowercase())
}

/// The known name that is a few letters away, if there is one.
pub fn nearest<T: AsRef<str>>(name: &str, known: impl IntoIterator<Item = T>) -> Option<T> {
    let distances = known
        .into_iter()
        .map(|known| (distance(name, known.as_ref()), known));
    let (distance, known) = distances.min_by(|(a, one), (b, other)| {
        let by_name = || one.as_ref().cmp(other.as_ref());
        a.cmp(b).then_with(by_name)
    })?;
    (distance <= 2.max(name.chars().count() / 3)).then_some(known)
}

/// A word for the end of a warning: the name that was meant, or nothing.
pub fn hint<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(name, known) {
        Some(known) => format!("; did you mean `{known}`?"),
        None => String::new(),
    }
}
