//! What a text names: paths of files and folders, and symbols of code.

use std::collections::BTreeSet;

/// So much of a text is looked at for names.
const MOST_TEXT: usize = 256 << 10;
const MOST_PATHS: usize = 200;
const MOST_SYMBOLS: usize = 400;
const SHORTEST_SYMBOL: usize = 4;

/// How files are called, as the rules' data lists it.
#[derive(Debug, Default, Clone)]
pub(crate) struct FileNames {
    pub(super) extensions: BTreeSet<String>,
    /// Names without an ending that are files all the same.
    pub(super) whole: BTreeSet<String>,
    /// Folders that make a path of what could be two words with a slash.
    pub(super) folders: BTreeSet<String>,
    /// What looks like a file and is none.
    pub(super) never: BTreeSet<String>,
}

impl FileNames {
    /// All paths that a text names, each once, in order.
    pub(crate) fn paths(&self, text: &str) -> Vec<String> {
        let mut all: Vec<String> = Vec::new();
        for chunk in chunks(text) {
            let Some(path) = self.path(chunk) else {
                continue;
            };
            if !all.iter().any(|known| known == path) {
                all.push(path.to_owned());
            }
            if all.len() >= MOST_PATHS {
                break;
            }
        }
        all
    }

    /// Whether a text names a path at all.
    pub(super) fn has_path(&self, text: &str) -> bool {
        chunks(text).any(|chunk| self.path(chunk).is_some())
    }

    fn path<'a>(&self, chunk: &'a str) -> Option<&'a str> {
        if chunk.contains("://") || chunk.len() < 2 {
            return None;
        }
        // `file.rs:142`, `file.rs#L10`, `file.rs:142-150`.
        let path = chunk.split([':', '#']).next()?;
        let path = path.trim_end_matches(['.', '\'', '-', '!', '?']);
        let path = path.strip_prefix("./").unwrap_or(path);
        let last = path.trim_end_matches('/').rsplit('/').next()?;
        if last.is_empty() || self.never.contains(&path.to_ascii_lowercase()) {
            return None;
        }
        let is_file = self.is_file(last);
        let is_path = match path.contains('/') {
            false => is_file,
            true => is_file || self.is_folder(path),
        };
        is_path.then_some(path)
    }

    fn is_file(&self, name: &str) -> bool {
        if self.whole.contains(name) {
            return true;
        }
        let Some((stem, extension)) = name.rsplit_once('.') else {
            return false;
        };
        let starts = stem.is_empty() || stem.contains(|it: char| it.is_alphanumeric() || it == '*');
        starts && self.extensions.contains(&extension.to_ascii_lowercase())
    }

    /// A slash alone makes no path: `and/or`, `read/write`.
    fn is_folder(&self, path: &str) -> bool {
        let is_rooted = path.starts_with(['/', '~', '.']) && path.len() > 2;
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let names = |part: &&str| self.folders.contains(&part.to_ascii_lowercase());
        let is_written = |it: char| matches!(it, '_' | '.' | '*' | '-');
        is_rooted
            || (path.ends_with('/') && !parts.is_empty())
            || parts.len() > 2
            || parts.iter().any(names)
            || path.contains(is_written)
    }
}

/// Stretches of a text in which a path may stand. Scripts without spaces end one.
fn chunks(text: &str) -> impl Iterator<Item = &str> {
    let is_apart = |it: char| {
        !it.is_ascii_graphic()
            || matches!(
                it,
                '`' | '"'
                    | '\''
                    | '('
                    | ')'
                    | '['
                    | ']'
                    | '{'
                    | '}'
                    | '<'
                    | '>'
                    | ','
                    | ';'
                    | '|'
                    | '='
                    | '$'
                    | '&'
            )
    };
    text.split(is_apart).filter(|chunk| !chunk.is_empty())
}

/// Symbols that a text names, by their hashes: words as only code writes them.
pub(crate) fn symbols(text: &str) -> BTreeSet<u32> {
    let text = &text[..text.floor_char_boundary(MOST_TEXT)];
    let mut all = BTreeSet::new();
    let mut is_code = false;
    let mut behind_fn = false;
    for part in text.split_inclusive(|it: char| !(it == '_' || it.is_ascii_alphanumeric())) {
        let word = part.trim_end_matches(|it: char| !(it == '_' || it.is_ascii_alphanumeric()));
        if is_symbol(word) || (word.len() >= SHORTEST_SYMBOL && (is_code || behind_fn)) {
            all.insert(hash(word));
        }
        behind_fn = match word {
            "" => behind_fn,
            "fn" | "def" | "func" | "function" | "class" | "struct" => true,
            _ => false,
        };
        if part.ends_with('`') {
            is_code = !is_code;
        }
        if part.ends_with('\n') {
            is_code = false;
        }
        if all.len() >= MOST_SYMBOLS {
            break;
        }
    }
    all
}

fn is_symbol(word: &str) -> bool {
    if word.len() < SHORTEST_SYMBOL || word.starts_with(|it: char| it.is_ascii_digit()) {
        return false;
    }
    let bytes = word.as_bytes();
    let has_hump = bytes
        .windows(2)
        .any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    has_hump || word.trim_matches('_').contains('_')
}

/// FNV-1a: it stands in the book, so it must be the same in every build.
fn hash(word: &str) -> u32 {
    let add = |sum: u32, byte: u8| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193);
    word.bytes().fold(0x811c_9dc5, add)
}

/// Whether two paths may be the same file: one may be told from another folder than the other.
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    let (short, long) = match one.len() <= other.len() {
        true => (one, other),
        false => (other, one),
    };
    let Some(before) = long.strip_suffix(short) else {
        return false;
    };
    before.is_empty() || before.ends_with('/') || short.starts_with('/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> FileNames {
        let set = |list: &[&str]| list.iter().map(ToString::to_string).collect();
        FileNames {
            extensions: set(&["rs", "toml", "js"]),
            whole: set(&["Makefile"]),
            folders: set(&["src", "tests"]),
            never: set(&["node.js"]),
        }
    }

    #[test]
    fn paths_are_told_from_words_with_a_slash() {
        let text = "Read `src/auth/session.rs:142`, ./Cargo.toml and Makefile; docs/ and/or read/write \
                    under src/auth. Node.js 1.5 e.g. https://a.b/c.rs 修改src/a.rs中的x tests/x_y";
        assert_eq!(
            names().paths(text),
            [
                "src/auth/session.rs",
                "Cargo.toml",
                "Makefile",
                "docs/",
                "src/auth",
                "src/a.rs",
                "tests/x_y"
            ]
        );
        assert!(!names().has_path("Fix the login and/or logout, v1.2."));
    }

    #[test]
    fn symbols_are_what_only_code_writes() {
        assert_eq!(symbols("the Login of all users").len(), 0);
        assert_eq!(
            symbols("expires_at in `refresh`, SessionStore, fn reload").len(),
            4
        );
        assert_eq!(symbols("expires_at"), symbols("`expires_at`!"));
    }

    #[test]
    fn the_same_file_may_be_told_from_elsewhere() {
        assert!(is_same("/p/src/a.rs", "src/a.rs"));
        assert!(is_same("a.rs", "src/a.rs"));
        assert!(!is_same("a.rs", "src/ba.rs"));
        assert!(!is_same("src/a.rs", "lib/a.rs"));
    }
}
