//! Colours for code: keywords, strings, comments and numbers, as far as a line at a time tells.

use crate::look::Look;
use ratatui::text::Span;

/// What is known of a language.
struct Language {
    names: &'static [&'static str],
    keywords: &'static [&'static str],
    line_comment: &'static [&'static str],
    has_block_comment: bool,
    quotes: &'static [char],
}

const LANGUAGES: &[Language] = &[
    Language {
        names: &["rust", "rs"],
        keywords: &[
            "as", "async", "await", "break", "const", "continue", "crate", "dyn", "else", "enum",
            "extern", "false", "fn", "for", "if", "impl", "in", "let", "loop", "match", "mod",
            "move", "mut", "pub", "ref", "return", "self", "Self", "static", "struct", "super",
            "trait", "true", "type", "unsafe", "use", "where", "while",
        ],
        line_comment: &["//"],
        has_block_comment: true,
        quotes: &['"'],
    },
    Language {
        names: &["python", "py"],
        keywords: &[
            "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
            "elif", "else", "except", "False", "finally", "for", "from", "global", "if", "import",
            "in", "is", "lambda", "None", "not", "or", "pass", "raise", "return", "True", "try",
            "while", "with", "yield",
        ],
        line_comment: &["#"],
        has_block_comment: false,
        quotes: &['"', '\''],
    },
    Language {
        names: &["javascript", "js", "jsx", "typescript", "ts", "tsx"],
        keywords: &[
            "as",
            "async",
            "await",
            "break",
            "case",
            "catch",
            "class",
            "const",
            "continue",
            "default",
            "delete",
            "do",
            "else",
            "enum",
            "export",
            "extends",
            "false",
            "finally",
            "for",
            "from",
            "function",
            "if",
            "implements",
            "import",
            "in",
            "instanceof",
            "interface",
            "let",
            "new",
            "null",
            "of",
            "return",
            "static",
            "super",
            "switch",
            "this",
            "throw",
            "true",
            "try",
            "type",
            "typeof",
            "undefined",
            "var",
            "void",
            "while",
            "yield",
        ],
        line_comment: &["//"],
        has_block_comment: true,
        quotes: &['"', '\'', '`'],
    },
    Language {
        names: &["go", "golang"],
        keywords: &[
            "break",
            "case",
            "chan",
            "const",
            "continue",
            "default",
            "defer",
            "else",
            "false",
            "for",
            "func",
            "go",
            "if",
            "import",
            "interface",
            "map",
            "nil",
            "package",
            "range",
            "return",
            "select",
            "struct",
            "switch",
            "true",
            "type",
            "var",
        ],
        line_comment: &["//"],
        has_block_comment: true,
        quotes: &['"', '\'', '`'],
    },
    Language {
        names: &[
            "c", "h", "cpp", "c++", "hpp", "java", "kotlin", "kt", "swift", "csharp", "cs",
        ],
        keywords: &[
            "auto",
            "bool",
            "break",
            "case",
            "catch",
            "char",
            "class",
            "const",
            "continue",
            "default",
            "delete",
            "do",
            "double",
            "else",
            "enum",
            "extends",
            "extern",
            "false",
            "final",
            "float",
            "for",
            "fun",
            "func",
            "if",
            "implements",
            "import",
            "include",
            "int",
            "interface",
            "let",
            "long",
            "namespace",
            "new",
            "null",
            "nullptr",
            "package",
            "private",
            "protected",
            "public",
            "return",
            "short",
            "sizeof",
            "static",
            "struct",
            "super",
            "switch",
            "template",
            "this",
            "throw",
            "true",
            "try",
            "typedef",
            "typename",
            "union",
            "unsigned",
            "using",
            "val",
            "var",
            "virtual",
            "void",
            "while",
        ],
        line_comment: &["//"],
        has_block_comment: true,
        quotes: &['"', '\''],
    },
    Language {
        names: &["sh", "bash", "zsh", "shell", "console", "fish"],
        keywords: &[
            "case", "cd", "do", "done", "echo", "elif", "else", "esac", "exit", "export", "fi",
            "for", "function", "if", "in", "local", "return", "set", "then", "until", "while",
        ],
        line_comment: &["#"],
        has_block_comment: false,
        quotes: &['"', '\''],
    },
    Language {
        names: &["json", "yaml", "yml", "toml", "ini"],
        keywords: &["true", "false", "null"],
        line_comment: &["#"],
        has_block_comment: false,
        quotes: &['"', '\''],
    },
    Language {
        names: &["sql"],
        keywords: &[
            "SELECT", "FROM", "WHERE", "INSERT", "INTO", "VALUES", "UPDATE", "SET", "DELETE",
            "CREATE", "TABLE", "INDEX", "JOIN", "LEFT", "ON", "AND", "OR", "NOT", "NULL", "ORDER",
            "BY", "GROUP", "LIMIT", "AS", "select", "from", "where", "insert", "into", "values",
            "update", "set", "delete", "create", "table", "index", "join", "left", "on", "and",
            "or", "not", "null", "order", "by", "group", "limit", "as",
        ],
        line_comment: &["--"],
        has_block_comment: true,
        quotes: &['\''],
    },
    Language {
        names: &["ruby", "rb"],
        keywords: &[
            "begin", "class", "def", "do", "else", "elsif", "end", "ensure", "false", "if", "in",
            "module", "nil", "not", "or", "require", "rescue", "return", "self", "then", "true",
            "unless", "until", "when", "while", "yield",
        ],
        line_comment: &["#"],
        has_block_comment: false,
        quotes: &['"', '\''],
    },
];

/// Colours the lines of one block of code, in their order.
pub(crate) struct Painter {
    language: Option<&'static Language>,
    is_diff: bool,
    is_in_comment: bool,
    look: Look,
}

impl Painter {
    pub(crate) fn new(language: &str, look: Look) -> Self {
        let name = language.split([',', ' ', '{']).next().unwrap_or_default();
        let name = name.to_ascii_lowercase();
        Self {
            language: LANGUAGES
                .iter()
                .find(|language| language.names.contains(&name.as_str())),
            is_diff: matches!(name.as_str(), "diff" | "patch"),
            is_in_comment: false,
            look,
        }
    }

    pub(crate) fn line<'a>(&mut self, line: &'a str) -> Vec<Span<'a>> {
        if self.is_diff {
            return vec![diff_line(line, self.look)];
        }
        let Some(language) = self.language else {
            return vec![Span::styled(line, self.look.plain())];
        };
        let mut spans = Vec::new();
        let mut rest = line;
        while !rest.is_empty() {
            let (size, style) = self.token(language, rest);
            let (token, more) = rest.split_at(size.clamp(first_char(rest), rest.len()));
            spans.push(Span::styled(token, style));
            rest = more;
        }
        spans
    }

    /// How long the next token is, and how it looks.
    fn token(&mut self, language: &Language, rest: &str) -> (usize, ratatui::style::Style) {
        let look = self.look;
        if self.is_in_comment || (language.has_block_comment && rest.starts_with("/*")) {
            let from = if self.is_in_comment { 0 } else { 2 };
            let end = rest[from..].find("*/").map(|at| from + at + 2);
            self.is_in_comment = end.is_none();
            return (end.unwrap_or(rest.len()), look.dim());
        }
        if language.line_comment.iter().any(|it| rest.starts_with(it)) {
            return (rest.len(), look.dim());
        }
        let Some(first) = rest.chars().next() else {
            return (0, look.plain());
        };
        if language.quotes.contains(&first) {
            return (string_end(rest, first), look.string());
        }
        if first.is_ascii_digit() {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_'));
            return (end.unwrap_or(rest.len()), look.number());
        }
        let in_word = |c: char| c.is_alphanumeric() || c == '_';
        if in_word(first) {
            let end = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
            if language.keywords.contains(&&rest[..end]) {
                return (end, look.keyword());
            }
            return (end, look.plain());
        }
        let stops = |c: char| {
            in_word(c) || language.quotes.contains(&c) || matches!(c, '/' | '#' | '-' | '*')
        };
        let begin = first.len_utf8();
        let end = rest[begin..].find(stops).map(|at| begin + at);
        (end.unwrap_or(rest.len()), look.plain())
    }
}

fn first_char(text: &str) -> usize {
    text.chars().next().map_or(0, char::len_utf8)
}

/// Behind the closing quote, or the end of the line.
fn string_end(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// A line of a diff in its colour.
pub(crate) fn diff_line(line: &str, look: Look) -> Span<'_> {
    let style = match line.as_bytes().first() {
        Some(b'+') => look.added(),
        Some(b'-') => look.removed(),
        Some(b'@') => look.accent(),
        _ => look.plain(),
    };
    Span::styled(line, style)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(language: &str, line: &str) -> Vec<String> {
        let look = Look { has_color: true };
        let spans = Painter::new(language, look).line(line);
        let colored = spans.iter().filter(|span| span.style != look.plain());
        colored.map(|span| span.content.to_string()).collect()
    }

    #[test]
    fn keywords_strings_numbers_and_comments_stand_out() {
        assert_eq!(
            painted("rust", r#"let n = 12; // "no""#),
            ["let", "12", "// \"no\""]
        );
        assert_eq!(
            painted("py", r#"return "a\"b" + c"#),
            ["return", r#""a\"b""#]
        );
        assert_eq!(painted("nobody-knows", "let n = 12"), [""; 0]);
    }

    #[test]
    fn a_comment_goes_on_over_lines() {
        let look = Look { has_color: true };
        let mut painter = Painter::new("c", look);
        painter.line("/* one");
        assert_eq!(painter.line("two */ int")[0].content, "two */");
    }
}
