//! One line as it is shown: without its end, and not longer than is useful.

use std::borrow::Cow;

const LONGEST: usize = 500;
/// What is kept of a long line before the match.
const LEAD: usize = 100;

/// Without the line end.
pub(super) fn trim(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line as text. A long one is cut around the byte that `place` finds in it.
pub(super) fn show(line: &[u8], place: impl FnOnce() -> usize) -> Cow<'_, str> {
    if line.len() <= LONGEST {
        return String::from_utf8_lossy(line);
    }
    let start = place().saturating_sub(LEAD).min(line.len() - LONGEST);
    let start = boundary(line, start);
    let end = boundary(line, start + LONGEST);
    let text = String::from_utf8_lossy(&line[start..end]);
    let mark = |bytes: usize| match bytes {
        0 => String::new(),
        bytes => format!("[… {bytes} bytes]"),
    };
    Cow::Owned(format!("{}{text}{}", mark(start), mark(line.len() - end)))
}

/// The nearest place at or before this one that is not inside a character.
fn boundary(line: &[u8], place: usize) -> usize {
    let is_inside = |at: &usize| line.get(*at).is_some_and(|byte| byte & 0xC0 == 0x80);
    // In what is not UTF-8 any place is as good as another.
    let near = (place.saturating_sub(3)..=place.min(line.len())).rev();
    near.into_iter().find(|at| !is_inside(at)).unwrap_or(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_lose_their_ends_and_nothing_else() {
        for (line, want) in [
            ("a\n", "a"),
            ("a\r\n", "a"),
            ("a", "a"),
            ("\r\n", ""),
            ("a\r\r\n", "a\r"),
        ] {
            assert_eq!(trim(line.as_bytes()), want.as_bytes());
        }
    }

    #[test]
    fn long_lines_are_cut_around_the_match_between_characters() {
        assert_eq!(show(&[b'x'; 500], || 0).len(), 500);
        let line = format!("{}needle{}", "a".repeat(1000), "b".repeat(1000));
        let shown = show(line.as_bytes(), || 1000);
        let want = format!(
            "[… 900 bytes]{}needle{}[… 606 bytes]",
            "a".repeat(100),
            "b".repeat(394)
        );
        assert_eq!(shown, want);
        let shown = show(line.as_bytes(), || 2005);
        assert_eq!(shown, format!("[… 1506 bytes]{}", "b".repeat(500)));
        let line = "é".repeat(1000);
        for place in [0, 1, 900, 901, 1999] {
            let shown = show(line.as_bytes(), || place);
            assert!(!shown.contains('\u{FFFD}'), "{shown}");
        }
        // Not UTF-8 at all.
        assert!(show(&[0x80; 2000], || 700).contains("[… 600 bytes]"));
    }
}
