//! Text patterns of rules: `*` stands for anything, a space before a last `*` for the end of a word.

/// A text with stars. Matching takes time in proportion to the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pattern {
    /// What stands between the stars; one piece is a text without stars.
    pieces: Vec<String>,
    /// The pattern without its last ` *`, where it ends in one: nothing may follow the word.
    bare: Option<Vec<String>>,
}

impl Pattern {
    /// `*` anywhere; `\*` is a star itself.
    pub(super) fn new(text: &str) -> Self {
        let mut pieces = vec![String::new()];
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            match c {
                '*' => pieces.push(String::new()),
                '\\' if chars.peek() == Some(&'*') => {
                    chars.next();
                    push(&mut pieces, '*');
                }
                c => push(&mut pieces, c),
            }
        }
        let bare = match pieces.as_slice() {
            [before @ .., word, last] if last.is_empty() && word.ends_with(' ') => {
                let mut bare = before.to_vec();
                bare.push(word.trim_end_matches(' ').to_owned());
                Some(bare)
            }
            _ => None,
        };
        Self { pieces, bare }
    }

    /// Stars in a text that is to stand for itself.
    pub(super) fn escape(text: &str) -> String {
        text.replace('*', "\\*")
    }

    /// Whether it matches every text.
    pub(super) fn is_any(&self) -> bool {
        self.pieces.len() > 1 && self.pieces.iter().all(String::is_empty)
    }

    pub(super) fn has_stars(&self) -> bool {
        self.pieces.len() > 1
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        fits(&self.pieces, text) || self.bare.as_ref().is_some_and(|bare| fits(bare, text))
    }
}

fn push(pieces: &mut [String], c: char) {
    if let Some(piece) = pieces.last_mut() {
        piece.push(c);
    }
}

fn fits(pieces: &[String], text: &str) -> bool {
    let (first, last, middle) = match pieces {
        [] => return text.is_empty(),
        [only] => return text == only,
        [first, middle @ .., last] => (first, last, middle),
    };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else {
        return false;
    };
    // The earliest place for each piece leaves the most room for the next.
    for piece in middle {
        let Some(place) = rest.find(piece.as_str()) else {
            return false;
        };
        rest = &rest[place + piece.len()..];
    }
    rest.ends_with(last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stars_stand_for_anything_and_a_space_before_the_last_for_the_end_of_a_word() {
        let rows = [
            ("npm run *", "npm run x", true),
            ("npm run *", "npm run", true),
            ("npm run *", "npm runx", false),
            ("npm run *", "npm", false),
            ("npm*", "npm", true),
            ("npm*", "npmx y", true),
            ("git * main", "git push origin main", true),
            ("git * main", "git main", false),
            ("* --version", "node --version", true),
            ("* --version", "node --version x", false),
            ("a*b*a", "aba", true),
            ("a*b*a", "ab", false),
            ("a*a", "a", false),
            ("git * -f *", "git push -f", true),
            ("git * -f *", "git push -fx", false),
            ("ls", "ls", true),
            ("ls", "ls -l", false),
            (r"rm \*", "rm *", true),
            (r"rm \*", "rm x", false),
            (r"a\b", r"a\b", true),
        ];
        for (pattern, text, want) in rows {
            assert_eq!(
                Pattern::new(pattern).matches(text),
                want,
                "{pattern} {text}"
            );
        }
        assert!(Pattern::new("*").is_any() && Pattern::new("**").is_any());
        assert!(!Pattern::new("").is_any() && !Pattern::new("a*").is_any());
    }

    /// The plain definition, slow.
    fn slow(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], []) => true,
            (['*', rest @ ..], _) => (0..=text.len()).any(|skip| slow(rest, &text[skip..])),
            ([p, ps @ ..], [t, ts @ ..]) => p == t && slow(ps, ts),
            _ => false,
        }
    }

    proptest! {
        #[test]
        fn quick_matching_is_what_the_plain_definition_says(
            pattern in "[ab*]{0,8}", text in "[ab]{0,10}",
        ) {
            let p: Vec<char> = pattern.chars().collect();
            let t: Vec<char> = text.chars().collect();
            prop_assert_eq!(Pattern::new(&pattern).matches(&text), slow(&p, &t));
        }

        #[test]
        fn an_escaped_text_matches_itself_alone(text in r"[a*\\ ]{0,10}", other in r"[a*\\ ]{0,10}") {
            let pattern = Pattern::new(&Pattern::escape(&text));
            prop_assert!(pattern.matches(&text));
            prop_assert_eq!(pattern.matches(&other), text == other);
        }
    }
}
