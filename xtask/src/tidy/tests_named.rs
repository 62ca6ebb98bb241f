//! Tests that the documentation names, as `file.rs: name`: each must be there.

use std::collections::BTreeMap;

use super::{Finding, numbered};

/// What stands between the file and the test.
const BETWEEN: &str = ".rs: ";

pub(super) fn check(path: &str, text: &str, texts: &BTreeMap<String, String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (line, content) in numbered(text) {
        for named in content.split('`').skip(1).step_by(2) {
            let Some((file, test)) = named.split_once(BETWEEN) else {
                continue;
            };
            let file = format!("{file}.rs");
            let what = match texts.get(&file) {
                None => format!("`{named}`: there is no file {file}"),
                Some(source) if !has_test(source, test) => {
                    format!("`{named}`: there is no such test in {file}")
                }
                Some(_) => continue,
            };
            findings.push(Finding::new(path, line, what));
        }
    }
    findings
}

/// Whether a function of this name stands behind the mark of a test. Between the two there may be
/// other marks; a macro for property tests has its functions in a block of its own.
fn has_test(source: &str, name: &str) -> bool {
    let head = format!("fn {name}(");
    let Some(at) = source.find(&head) else {
        return false;
    };
    let before = source.get(..at).unwrap_or_default();
    let since = before.rfind("\n}\n").or_else(|| before.rfind("\n    }\n"));
    let near = before.get(since.unwrap_or(0)..).unwrap_or_default();
    near.contains("test]") || near.contains("test(")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "#[test]\nfn one() {\n}\n\nfn helper() {\n}\n\n#[tokio::test(start_paused = true)]\n#[expect(unused, reason = \"so\")]\nasync fn two() {\n}\n";

    fn found(text: &str) -> Vec<usize> {
        let texts = BTreeMap::from([("tests/a.rs".to_owned(), SOURCE.to_owned())]);
        let findings = check("docs/d.md", text, &texts).into_iter();
        findings.map(|it| it.line).collect()
    }

    #[test]
    fn tests_that_are_there_are_found() {
        assert_eq!(found("| `tests/a.rs: one`, `tests/a.rs: two` |\n"), [0; 0]);
        assert_eq!(found("see `tests/a.rs` and `a: b`\n"), [0; 0]);
    }

    #[test]
    fn others_are_reported_with_their_line() {
        assert_eq!(found("x\n`tests/a.rs: three`\n"), [2]);
        assert_eq!(found("`tests/b.rs: one`\n"), [1]);
        assert_eq!(found("`tests/a.rs: helper`\n"), [1], "it is no test");
    }
}
