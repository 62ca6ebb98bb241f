//! What the user wrote before, for the arrow keys.

/// So many are kept here; how many are kept on disk is for whoever writes them there.
const MOST: usize = 1000;

#[derive(Debug, Default)]
pub(crate) struct History {
    entries: Vec<String>,
    /// Which one is shown; none while the user writes something new.
    at: Option<usize>,
    /// What was being written when the user began to look back.
    draft: String,
}

impl History {
    pub(crate) fn new(entries: Vec<String>) -> Self {
        Self {
            entries,
            ..Self::default()
        }
    }

    /// Remembers a text. False if it is the same as the last one.
    pub(crate) fn add(&mut self, text: &str) -> bool {
        self.at = None;
        if self.entries.last().is_some_and(|last| last == text) {
            return false;
        }
        self.entries.push(text.to_owned());
        if self.entries.len() > MOST {
            self.entries.remove(0);
        }
        true
    }

    pub(crate) fn back(&mut self, now: &str) -> Option<&str> {
        let at = match self.at {
            None => {
                now.clone_into(&mut self.draft);
                self.entries.len().checked_sub(1)?
            }
            Some(at) => at.checked_sub(1)?,
        };
        self.at = Some(at);
        self.entries.get(at).map(String::as_str)
    }

    pub(crate) fn forth(&mut self) -> Option<&str> {
        let at = self.at? + 1;
        if at < self.entries.len() {
            self.at = Some(at);
            return self.entries.get(at).map(String::as_str);
        }
        self.at = None;
        Some(&self.draft)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looking_back_and_forth_ends_at_the_draft() {
        let mut history = History::new(vec!["one".to_owned()]);
        assert!(history.add("two"));
        assert!(!history.add("two"));
        assert_eq!(history.back("draft"), Some("two"));
        assert_eq!(history.back("two"), Some("one"));
        assert_eq!(history.back("one"), None);
        assert_eq!(history.forth(), Some("two"));
        assert_eq!(history.forth(), Some("draft"));
        assert_eq!(history.forth(), None);
    }
}
