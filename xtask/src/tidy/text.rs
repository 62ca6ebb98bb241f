//! Checks of text files of any kind: white space, the last newline, paths of one person's machine.

use super::{Finding, around, extension};

// Written in two parts, here and in the tests, so that this file passes its own checks.
const ROOT: &str = concat!("/ro", "ot/");
const HOME: &str = concat!("/ho", "me/");
const WORK: &str = concat!("/wo", "rk/");

pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let mut findings: Vec<Finding> = last_newline(path, text).into_iter().collect();
    let extension = extension(path);
    let judges_space = matches!(extension, "rs" | "md" | "toml");
    let judges_paths = judges_space || matches!(extension, "yaml" | "yml" | "json" | "sh");
    // Not `lines()`, which would swallow the carriage returns that are to be found.
    for (number, line) in (1..).zip(text.split('\n')) {
        let mut found = |what: String| findings.push(Finding::new(path, number, what));
        if judges_space && line.ends_with(char::is_whitespace) {
            found("white space at the end of the line".to_owned());
        }
        if judges_space && line.contains('\t') {
            found("a tab: use spaces, or \\t in a string".to_owned());
        }
        if judges_paths && let Some(folder) = own_folder(line, extension) {
            found(format!("a path below {folder}, which is one machine's own"));
        }
    }
    findings
}

fn last_newline(path: &str, text: &str) -> Option<Finding> {
    let what = if text.is_empty() {
        return None;
    } else if !text.ends_with('\n') {
        "no newline at the end of the file"
    } else if text == "\n" || text.ends_with("\n\n") {
        "empty lines at the end of the file"
    } else {
        return None;
    };
    Some(Finding::new(path, text.lines().count(), what))
}

/// The folder of one machine that a path in this line begins with.
fn own_folder(line: &str, extension: &str) -> Option<&'static str> {
    let has_absolute = |folder: &'static str, counts: &dyn Fn(&str) -> bool| {
        around(line, folder).any(|(before, after)| !before.ends_with(in_path) && counts(after))
    };
    // Readers of documentation need some example of a home folder; programs and tests do not.
    let is_prose = extension == "md" || (extension == "rs" && line.trim_start().starts_with("//"));
    let is_somebody = |after: &str| {
        let name: String = after
            .chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect();
        name.starts_with(|c: char| c.is_ascii_alphabetic()) && !(is_prose && name == "you")
    };
    if has_absolute(ROOT, &|_| true) {
        Some(ROOT)
    } else if has_absolute(HOME, &is_somebody) {
        Some(HOME)
    } else if has_absolute(WORK, &|_| true) {
        Some(WORK)
    } else {
        None
    }
}

/// What stands before a slash in the middle of a path: a name, a variable, a placeholder, a glob.
fn in_path(c: char) -> bool {
    c.is_alphanumeric() || "_-.~})]*".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [usize; 0] = [];

    fn lines_found(path: &str, text: &str) -> Vec<usize> {
        let findings = check(path, text);
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn every_text_ends_with_one_newline() {
        for path in ["a.rs", "LICENSE", "a.snap"] {
            assert_eq!(lines_found(path, "a\nb\n"), NONE);
            assert_eq!(lines_found(path, ""), NONE);
            assert_eq!(lines_found(path, "a\nb"), [2]);
            assert_eq!(lines_found(path, "a\n\n"), [2]);
            assert_eq!(lines_found(path, "\n"), [1]);
        }
    }

    #[test]
    fn white_space_at_the_end_of_a_line_is_found() {
        for path in ["a.rs", "b.md", "c.toml"] {
            assert_eq!(lines_found(path, "a\nb \nc\r\n\u{a0}\nd\n"), [2, 3, 4]);
        }
        assert_eq!(lines_found("a.snap", "a \nb\r\n"), NONE);
    }

    #[test]
    fn tabs_are_found() {
        for path in ["a.rs", "b.md", "c.toml"] {
            assert_eq!(lines_found(path, "a\n\tb\na\tb\n"), [2, 3]);
        }
        assert_eq!(lines_found("Makefile", "\tcc\n"), NONE);
    }

    #[test]
    fn absolute_paths_of_one_machine_are_found() {
        for path in [
            "a.rs", "a.md", "a.toml", "a.yaml", "a.yml", "a.json", "a.sh",
        ] {
            for folder in [ROOT, WORK] {
                assert_eq!(lines_found(path, &format!("in \"{folder}x\"\n")), [1]);
                assert_eq!(lines_found(path, &format!("{folder}\n")), [1]);
                assert_eq!(lines_found(path, &format!("file://{folder}x\n")), [1]);
            }
            assert_eq!(lines_found(path, &format!("x\n={HOME}ann/x\n")), [2]);
            assert_eq!(lines_found(path, &format!("{HOME}youri\n")), [1]);
        }
        assert_eq!(lines_found("a.txt", &format!("{ROOT}x\n")), NONE);
    }

    #[test]
    fn parts_of_other_paths_are_not_found() {
        for before in [
            "$HOME",
            "${A}",
            ".",
            "..",
            "~",
            "a-b",
            "**",
            "https://a.example",
        ] {
            for folder in [ROOT, WORK] {
                assert_eq!(lines_found("a.md", &format!("{before}{folder}x\n")), NONE);
            }
            assert_eq!(lines_found("a.md", &format!("{before}{HOME}ann\n")), NONE);
        }
        assert_eq!(lines_found("a.rs", &format!("{HOME}{{name}}\n")), NONE);
    }

    #[test]
    fn the_example_home_is_for_prose_only() {
        let example = format!("{HOME}you/project\n");
        assert_eq!(lines_found("a.md", &example), NONE);
        assert_eq!(lines_found("a.rs", &format!("    /// {example}")), NONE);
        assert_eq!(lines_found("a.rs", &format!("let a = \"{example}")), [1]);
        assert_eq!(lines_found("a.json", &example), [1]);
    }
}
