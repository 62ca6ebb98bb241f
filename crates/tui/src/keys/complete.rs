//! What the word before the cursor could become: a command behind a slash, a file behind an @.

use super::slash::{COMMANDS, SlashCommand};

const MOST: usize = 50;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    /// What stands in the text when it is chosen.
    pub(crate) text: String,
    pub(crate) what: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Completion {
    /// Where in the text the word begins.
    pub(crate) from: usize,
    pub(crate) choices: Vec<Choice>,
    pub(crate) chosen: usize,
}

impl Completion {
    pub(crate) fn go(&mut self, is_up: bool) {
        let last = self.choices.len().saturating_sub(1);
        self.chosen = match (is_up, self.chosen) {
            (true, 0) => last,
            (true, at) => at - 1,
            (false, at) if at >= last => 0,
            (false, at) => at + 1,
        };
    }

    pub(crate) fn text(&self) -> Option<&str> {
        let choice = self.choices.get(self.chosen)?;
        Some(choice.text.as_str())
    }
}

/// Looks at what stands before the cursor.
pub(crate) fn find(
    before: &str,
    further: &[SlashCommand],
    files: &dyn Fn(&str) -> Vec<String>,
) -> Option<Completion> {
    let (from, choices) = if let Some(name) = before.strip_prefix('/')
        && !name.contains(char::is_whitespace)
    {
        (0, commands(name, further))
    } else {
        let from = before.rfind(char::is_whitespace).map_or(0, |at| {
            at + before[at..].chars().next().map_or(1, char::len_utf8)
        });
        let name = before[from..].strip_prefix('@')?;
        let found = files(name).into_iter().take(MOST);
        let choice = |file: String| Choice {
            text: format!("@{file} "),
            what: String::new(),
        };
        (from, found.map(choice).collect())
    };
    // What is written already needs no list.
    let is_whole = choices.len() == 1 && choices[0].text.trim_end() == &before[from..];
    (!choices.is_empty() && !is_whole).then_some(Completion {
        from,
        choices,
        chosen: 0,
    })
}

fn commands(name: &str, further: &[SlashCommand]) -> Vec<Choice> {
    let own = COMMANDS.iter().map(|(name, what)| (*name, *what));
    let further = further
        .iter()
        .map(|it| (it.name.as_str(), it.what.as_str()));
    let mut all: Vec<(&str, &str)> = own
        .chain(further)
        .filter(|(known, _)| known.starts_with(name))
        .take(MOST)
        .collect();
    all.sort_unstable();
    all.into_iter()
        .map(|(name, what)| Choice {
            text: format!("/{name} "),
            what: what.to_owned(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(before: &str) -> Vec<String> {
        let files = |name: &str| vec![format!("{name}/one.rs"), "two.rs".to_owned()];
        let found = find(before, &[], &files);
        found
            .into_iter()
            .flat_map(|found| found.choices)
            .map(|choice| choice.text)
            .collect()
    }

    #[test]
    fn commands_and_files_are_offered_where_they_can_stand() {
        assert_eq!(texts("/mo"), ["/mode ", "/model "]);
        assert_eq!(texts("look at @src"), ["@src/one.rs ", "@two.rs "]);
        assert_eq!(texts("mail a@b"), [""; 0]);
        assert_eq!(texts("/model x"), [""; 0]);
        assert_eq!(texts("/help"), [""; 0]);
    }
}
