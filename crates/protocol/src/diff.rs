//! What changes between two texts, line by line, for showing.

/// Lines around a change that are shown with it.
const AROUND: usize = 2;
/// Beyond so many lines on both sides the comparison would cost more than it tells.
const MOST: usize = 120;

/// Lines that begin with `-`, `+` or a space.
pub fn diff(old: &str, new: &str) -> Vec<String> {
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev());
    let tail = tail.take(most).take_while(same).count();
    let (gone, come) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut lines = Vec::new();
    let before = &old[head.saturating_sub(AROUND)..head];
    lines.extend(before.iter().map(|line| format!(" {line}")));
    if gone.len() > MOST || come.len() > MOST {
        lines.extend(gone.iter().map(|line| format!("-{line}")));
        lines.extend(come.iter().map(|line| format!("+{line}")));
    } else {
        middle(gone, come, &mut lines);
    }
    let behind = old.len() - tail;
    let after = &old[behind..(behind + AROUND).min(old.len())];
    lines.extend(after.iter().map(|line| format!(" {line}")));
    lines
}

/// By the longest common subsequence.
fn middle(gone: &[&str], come: &[&str], lines: &mut Vec<String>) {
    let row = come.len() + 1;
    let mut longest = vec![0u16; (gone.len() + 1) * row];
    for a in (0..gone.len()).rev() {
        for b in (0..come.len()).rev() {
            longest[a * row + b] = if gone[a] == come[b] {
                longest[(a + 1) * row + b + 1] + 1
            } else {
                longest[(a + 1) * row + b].max(longest[a * row + b + 1])
            };
        }
    }
    let (mut a, mut b) = (0, 0);
    while a < gone.len() || b < come.len() {
        if a < gone.len() && b < come.len() && gone[a] == come[b] {
            lines.push(format!(" {}", gone[a]));
            (a, b) = (a + 1, b + 1);
        } else if b == come.len()
            || (a < gone.len() && longest[(a + 1) * row + b] >= longest[a * row + b + 1])
        {
            lines.push(format!("-{}", gone[a]));
            a += 1;
        } else {
            lines.push(format!("+{}", come[b]));
            b += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_what_changes_is_marked() {
        let (old, new) = ("a\nb\nc\nd\ne\nf", "a\nb\nc\nD\ne\nf");
        assert_eq!(diff(old, new), [" b", " c", "-d", "+D", " e", " f"]);
        assert_eq!(diff("", "new"), ["+new"]);
    }

    proptest! {
        #[test]
        fn both_sides_can_be_read_from_it(old in "[ab\n]{0,30}", new in "[ab\n]{0,30}") {
            let lines = diff(&old, &new);
            let count = |mark: char| lines.iter().filter(|line| line.starts_with(mark)).count();
            let (gone, come) = (count('-'), count('+'));
            prop_assert_eq!(
                old.lines().count() + come,
                new.lines().count() + gone
            );
        }
    }
}
