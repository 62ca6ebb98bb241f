//! Names: what a worktree's branch is called, so that a list of branches says who worked on what.

/// Longer texts are cut at a word.
const LONGEST: usize = 40;

/// `gaffer/{session}/{words-of-the-task}-{id}`: below `gaffer/`, where workers may write; the
/// session, so that two of them never meet; the task for people; the end of the worker's id, so
/// that two workers with one task differ.
pub(super) fn branch(session: &str, task: &str, name: &str) -> String {
    let id: String = {
        let plain: Vec<char> = name.chars().filter(char::is_ascii_alphanumeric).collect();
        plain[plain.len().saturating_sub(4)..].iter().collect()
    };
    let session: String = words(session, 8).replace('-', "");
    format!(
        "gaffer/{}/{}-{}",
        or(session, "session"),
        or(words(task, LONGEST), "task"),
        or(id.to_ascii_lowercase(), "0")
    )
}

fn or(text: String, other: &str) -> String {
    match text.is_empty() {
        true => other.to_owned(),
        false => text,
    }
}

/// The words of a text, of ASCII letters and digits alone: what every file system and shell takes
/// as it is.
fn words(text: &str, longest: usize) -> String {
    let mut out = String::new();
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric());
    for word in parts.filter(|word| !word.is_empty()) {
        let room = longest.saturating_sub(out.len() + usize::from(!out.is_empty()));
        if word.len() > room && !out.is_empty() {
            break;
        }
        if !out.is_empty() {
            out.push('-');
        }
        out.extend(word.chars().take(room).map(|c| c.to_ascii_lowercase()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_branch_says_what_it_is_for() {
        let name = |session, task| branch(session, task, "agent-00c0ffee");
        assert_eq!(
            name("3f2b8a10-aaaa", "Fix the parser's off-by-one!"),
            "gaffer/3f2b8a10/fix-the-parser-s-off-by-one-ffee"
        );
        assert_eq!(
            name(
                "s1",
                "add retries to the HTTP client and also a lot of further things"
            ),
            "gaffer/s1/add-retries-to-the-http-client-and-also-ffee"
        );
        assert_eq!(name("", "日本語 …"), "gaffer/session/task-ffee");
    }

    proptest! {
        #[test]
        fn whatever_a_task_says_the_name_is_sound(session: String, task: String, id: String) {
            let name = branch(&session, &task, &id);
            prop_assert!(name.len() < 80);
            prop_assert_eq!(name.split('/').count(), 3);
            for part in name.split('/') {
                prop_assert!(!part.is_empty() && !part.starts_with('-') && !part.ends_with('-'));
                prop_assert!(part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
                prop_assert!(!part.ends_with(".lock"));
            }
        }
    }
}
