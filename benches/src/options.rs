//! What single benches can be told on the command line.

const NAMES: [&str; 4] = ["--delay", "--finished", "--picture", "--workers"];

/// A run to see whether everything works: small, of any build, and nothing of it is published.
const TRY: &str = "--try";

pub(crate) fn is_try() -> bool {
    std::env::args_os().any(|word| word == TRY)
}

/// The word behind an option, if it is there.
pub(crate) fn value(name: &str) -> Option<String> {
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.collect();
    words.windows(2).find_map(|pair| match pair {
        [option, value] if option == name => Some(value.clone()),
        _ => None,
    })
}

/// The words without options and what belongs to them.
pub(crate) fn without<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut left = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match NAMES.contains(word) {
            true => drop(words.next()),
            false if *word == TRY => {}
            false => left.push(*word),
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_no_names() {
        let words = ["soak", "--finished", "1000", "--try", "fold", "--picture"];
        assert_eq!(without(&words), ["soak", "fold"]);
    }
}
