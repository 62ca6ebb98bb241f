//! The part of all lines that one result shows.

/// Beyond this a result costs more than it tells.
const MOST_BYTES: usize = 30_000;
/// What is left free for the word on how to go on.
const FOR_NOTES: usize = 500;

/// Collects lines until enough are there.
#[derive(Debug)]
pub(super) struct Page {
    text: String,
    offset: usize,
    limit: usize,
    shown: usize,
    is_out_of_bytes: bool,
}

impl Page {
    pub(super) fn new(offset: usize, limit: usize) -> Self {
        Self {
            text: String::new(),
            offset,
            limit,
            shown: 0,
            is_out_of_bytes: false,
        }
    }

    /// The entries that may be shown.
    pub(super) fn wanted<'a, T>(&self, entries: &'a [T]) -> &'a [T] {
        let wanted = entries.get(self.offset..).unwrap_or_default();
        &wanted[..wanted.len().min(self.limit)]
    }

    /// How many lines come before the page.
    pub(super) fn offset(&self) -> usize {
        self.offset
    }

    pub(super) fn is_full(&self) -> bool {
        self.is_out_of_bytes || self.shown >= self.limit
    }

    /// Adds a line. False means that no more are wanted.
    pub(super) fn push(&mut self, line: &str) -> bool {
        if self.is_full() {
            return false;
        }
        if self.text.len() + line.len() > MOST_BYTES - FOR_NOTES {
            self.is_out_of_bytes = true;
            return false;
        }
        self.text.push_str(line);
        self.text.push('\n');
        self.shown += 1;
        !self.is_full()
    }

    /// The text, with a word on how to go on if it is not all.
    pub(super) fn finish(mut self, total: usize, what: &str) -> String {
        let end = self.offset.saturating_add(self.shown);
        if self.shown == 0 {
            let offset = self.offset;
            return format!("There are only {total} {what}, so offset {offset} leaves none.\n");
        }
        if end < total {
            let larger = if self.is_out_of_bytes {
                ""
            } else {
                " or a larger head_limit"
            };
            let first = self.offset + 1;
            self.text.push_str(&format!(
                "[{what} {first} to {end} of {total}. Go on with offset {end}{larger}, or narrow it with path, glob or type.]\n"
            ));
        }
        self.text
    }
}
