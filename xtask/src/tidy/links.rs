//! Links in Markdown: those that name a file of the tree have to find it there.

use std::collections::BTreeSet;

use super::{Finding, around, numbered};

/// `known` holds every file of the tree and every folder with one in it.
pub(super) fn check(path: &str, text: &str, known: &BTreeSet<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in prose(text) {
        for target in targets(&line) {
            let Some(file) = file_part(&target) else {
                continue;
            };
            let is_known = resolve(path, &file).is_some_and(|file| known.contains(&file));
            if !is_known {
                let what = format!("link to {target}, which is not in the tree");
                findings.push(Finding::new(path, number, what));
            }
        }
    }
    findings
}

/// The lines outside code blocks, without what stands between backticks.
fn prose(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut fence: Option<&str> = None;
    for (number, line) in numbered(text) {
        let own = fence_of(line);
        match (fence, own) {
            (None, None) => lines.push((number, without_code(line))),
            (None, Some(begin)) => fence = Some(begin),
            // Only a fence of the same kind, at least as long and with nothing behind it, ends it.
            (Some(begin), Some(end)) if end.starts_with(begin) && line.trim() == end => {
                fence = None;
            }
            (Some(_), _) => {}
        }
    }
    lines
}

/// The row of backticks or tildes that begins or ends a code block.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    ['`', '~'].into_iter().find_map(|mark| {
        let rest = line.trim_start_matches(mark);
        let row = line.strip_suffix(rest)?;
        // With backticks behind it, it is code within a line.
        (row.len() >= 3 && !rest.contains('`')).then_some(row)
    })
}

fn without_code(line: &str) -> String {
    let mut kept = String::new();
    let mut rest = line;
    while let Some((before, at_code)) = rest.find('`').and_then(|at| rest.split_at_checked(at)) {
        let inside = at_code.trim_start_matches('`');
        let marks = at_code.strip_suffix(inside).unwrap_or("`");
        kept.push_str(before);
        // A row of marks without its like is no code but stands for itself.
        rest = inside.split_once(marks).map_or(inside, |(_, after)| after);
    }
    kept + rest
}

fn targets(line: &str) -> Vec<String> {
    let inline = around(line, "](").map(|(_, after)| within_parentheses(after));
    let html = ["href=\"", "src=\""]
        .into_iter()
        .flat_map(|attribute| around(line, attribute))
        .filter_map(|(_, after)| after.split_once('"'))
        .map(|(target, _)| target);
    let definition = line
        .trim_start()
        .strip_prefix('[')
        .filter(|rest| !rest.starts_with('^')) // a footnote
        .and_then(|rest| rest.split_once("]: "))
        .map(|(_, target)| target);
    inline
        .chain(html)
        .chain(definition)
        .map(without_title)
        .collect()
}

/// The text up to the parenthesis that ends the link; those of the target come in pairs.
fn within_parentheses(after: &str) -> &str {
    let mut depth = 0_usize;
    let end = after.find(|c| {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return true,
            ')' => depth -= 1,
            _ => {}
        }
        false
    });
    end.and_then(|end| after.get(..end)).unwrap_or(after)
}

fn without_title(target: &str) -> String {
    let target = target.trim();
    let bracketed = target
        .strip_prefix('<')
        .and_then(|rest| rest.split_once('>'));
    let target = match bracketed {
        Some((inside, _)) => inside,
        None => target.split_whitespace().next().unwrap_or_default(),
    };
    target.to_owned()
}

/// The file that a link names; none where it leads to another site or stays on its own page.
fn file_part(target: &str) -> Option<String> {
    let file = target.split(['#', '?']).next().unwrap_or_default();
    let has_scheme = file.split_once(':').is_some_and(|(scheme, _)| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        scheme.len() > 1 && scheme.chars().all(allowed)
    });
    let leads_away = has_scheme || file.starts_with("//");
    // A space is the one character of file names here that links have to write in numbers.
    (!file.is_empty() && !leads_away).then(|| file.replace("%20", " "))
}

/// The path from the root of the tree; none for one that leaves the tree.
fn resolve(from: &str, target: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    if target.starts_with('/') {
        parts.clear();
    }
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The links reported as broken in docs/page.md of a small tree.
    fn broken(text: &str) -> Vec<String> {
        let known = [
            "",
            "README.md",
            "docs",
            "docs/page.md",
            "docs/a b.md",
            "x(1).md",
        ];
        let known = known.into_iter().map(str::to_owned).collect();
        let findings = check("docs/page.md", text, &known);
        findings.iter().map(ToString::to_string).collect()
    }

    fn count(text: &str) -> usize {
        broken(text).len()
    }

    #[test]
    fn files_and_folders_of_the_tree_are_found() {
        for good in [
            "[a](page.md) ![b](./page.md)",
            "[a](../README.md#part \"Title\")",
            "[a](/README.md)",
            "[a](..) [b](../docs/)",
            "[a](a%20b.md) [b](<a b.md>)",
            "[a](../x(1).md)",
            "[a]: ../README.md 'Title'",
            "<img src=\"page.md\">",
            "[`code`](page.md)",
        ] {
            assert_eq!(broken(good), Vec::<String>::new(), "{good}");
        }
    }

    #[test]
    fn what_is_not_in_the_tree_is_reported_with_its_line() {
        let text = "# Page\n\n[a](gone.md) and [`b`](../docs/gone/#x)\n\n[c]: gone.svg\n";
        assert_eq!(
            broken(text),
            [
                "docs/page.md:3: link to gone.md, which is not in the tree",
                "docs/page.md:3: link to ../docs/gone/#x, which is not in the tree",
                "docs/page.md:5: link to gone.svg, which is not in the tree",
            ]
        );
        assert_eq!(count("<a href=\"gone.md\">x</a>\n"), 1);
        assert_eq!(count("[a](../../outside.md)\n"), 1);
        assert_eq!(count("[a](Page.md)\n"), 1);
    }

    #[test]
    fn links_to_elsewhere_are_left_alone() {
        for good in [
            "[a](https://a.example/gone.md)",
            "[a](mailto:a@a.example)",
            "[a](#part)",
            "[a](//a.example/gone.md)",
            "[^1]: a footnote",
        ] {
            assert_eq!(broken(good), Vec::<String>::new(), "{good}");
        }
    }

    #[test]
    fn code_is_no_prose() {
        assert_eq!(count("Write `[a](gone.md)` or ``[`a`](gone.md)``.\n"), 0);
        assert_eq!(count("```md\n[a](gone.md)\n```\n"), 0);
        assert_eq!(count("````md\n```\n[a](gone.md)\n```\n````\n"), 0);
        assert_eq!(count("~~~\n```\n[a](gone.md)\n~~~\n[a](gone.md)\n"), 1);
        assert_eq!(count("A lone ` and [a](gone.md)\n"), 1);
        assert_eq!(count("```not a block``` [a](gone.md)\n"), 1);
    }
}
