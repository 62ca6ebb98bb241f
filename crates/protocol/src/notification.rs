//! How a task's end reaches the coordinator: written and read here and nowhere else.

use crate::end::{End, Status};
use crate::ids::AgentId;
use crate::tags::{escape, unescape};
use serde::Serialize;
use std::fmt::Write;

const UNVERIFIED: &str = "<unverified/>\n";

/// The end of a task, as its coordinator hears of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Notification {
    /// None for a worker that cannot be continued.
    pub task: Option<AgentId>,
    pub status: Status,
    pub summary: String,
    /// Its final words, perhaps cut.
    pub result: Option<String>,
    pub usage: Option<Spent>,
    /// Why it ended, in one word, where it was not simply done.
    pub reason: Option<String>,
    /// Where the whole result stands if it was cut.
    pub output_file: Option<String>,
    pub worktree: Option<Worktree>,
    pub changed_files: Vec<String>,
    /// Calls that were not allowed.
    pub denials: Vec<String>,
    /// Whether there is nothing but the worker's word for it.
    pub is_unverified: bool,
    pub advice: Option<String>,
}

/// What a whole run took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Spent {
    pub total_tokens: u64,
    pub tool_uses: u64,
    pub duration_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Worktree {
    pub path: String,
    pub branch: String,
}

impl Notification {
    /// The end of a task in one line.
    pub fn summary(description: &str, end: &End) -> String {
        let how = match end.status() {
            Status::Completed => "completed".to_owned(),
            Status::Killed => "was stopped".to_owned(),
            Status::Failed => format!("failed: {end}"),
        };
        format!("Agent \"{description}\" {how}")
    }

    pub fn render(&self) -> String {
        let mut out = String::from("<task-notification>\n");
        if let Some(task) = self.task {
            element(&mut out, "task-id", &task.to_string());
        }
        element(&mut out, "status", self.status.as_str());
        element(&mut out, "summary", &self.summary);
        optional(&mut out, "result", self.result.as_deref());
        if let Some(spent) = &self.usage {
            let Spent {
                total_tokens,
                tool_uses,
                duration_ms,
            } = spent;
            // Writing to a text cannot fail.
            let _ = writeln!(
                out,
                "<usage><total_tokens>{total_tokens}</total_tokens><tool_uses>{tool_uses}</tool_uses><duration_ms>{duration_ms}</duration_ms></usage>"
            );
        }
        optional(&mut out, "reason", self.reason.as_deref());
        optional(&mut out, "output-file", self.output_file.as_deref());
        if let Some(worktree) = &self.worktree {
            out.push_str("<worktree>\n");
            element(&mut out, "path", &worktree.path);
            element(&mut out, "branch", &worktree.branch);
            out.push_str("</worktree>\n");
        }
        list(&mut out, "changed-files", "file", &self.changed_files);
        list(&mut out, "denials", "denial", &self.denials);
        if self.is_unverified {
            out.push_str(UNVERIFIED);
        }
        optional(&mut out, "advice", self.advice.as_deref());
        out.push_str("</task-notification>");
        out
    }

    /// Reads what `render` wrote, and nothing else.
    pub fn parse(text: &str) -> Option<Self> {
        let mut reader = Reader(text);
        reader.take("<task-notification>\n")?;
        let task = match reader.element("task-id") {
            Some(id) => Some(AgentId::parse(&id).ok()?),
            None => None,
        };
        let status = Status::parse(&reader.element("status")?)?;
        let summary = reader.element("summary")?;
        let result = reader.element("result");
        let usage = match reader.take("<usage>") {
            Some(()) => Some(reader.spent()?),
            None => None,
        };
        let reason = reader.element("reason");
        let output_file = reader.element("output-file");
        let worktree = match reader.take("<worktree>\n") {
            Some(()) => {
                let path = reader.element("path")?;
                let branch = reader.element("branch")?;
                reader.take("</worktree>\n")?;
                Some(Worktree { path, branch })
            }
            None => None,
        };
        let changed_files = reader.list("changed-files", "file")?;
        let denials = reader.list("denials", "denial")?;
        let is_unverified = reader.take(UNVERIFIED).is_some();
        let advice = reader.element("advice");
        reader.take("</task-notification>")?;
        reader.0.is_empty().then_some(Self {
            task,
            status,
            summary,
            result,
            usage,
            reason,
            output_file,
            worktree,
            changed_files,
            denials,
            is_unverified,
            advice,
        })
    }
}

fn element(out: &mut String, name: &str, text: &str) {
    let text = escape(text);
    let _ = writeln!(out, "<{name}>{text}</{name}>");
}

fn optional(out: &mut String, name: &str, text: Option<&str>) {
    if let Some(text) = text {
        element(out, name, text);
    }
}

fn list(out: &mut String, name: &str, each: &str, texts: &[String]) {
    if texts.is_empty() {
        return;
    }
    let _ = writeln!(out, "<{name}>");
    for text in texts {
        element(out, each, text);
    }
    let _ = writeln!(out, "</{name}>");
}

/// What is left to be read.
struct Reader<'a>(&'a str);

impl Reader<'_> {
    fn take(&mut self, text: &str) -> Option<()> {
        self.0 = self.0.strip_prefix(text)?;
        Some(())
    }

    /// The text of an element that stands here.
    fn element(&mut self, name: &str) -> Option<String> {
        let rest = self.0.strip_prefix(&format!("<{name}>"))?;
        let (text, rest) = rest.split_once(&format!("</{name}>\n"))?;
        self.0 = rest;
        Some(unescape(text))
    }

    fn list(&mut self, name: &str, each: &str) -> Option<Vec<String>> {
        if self.take(&format!("<{name}>\n")).is_none() {
            return Some(Vec::new());
        }
        let mut texts = Vec::new();
        while let Some(text) = self.element(each) {
            texts.push(text);
        }
        self.take(&format!("</{name}>\n"))?;
        (!texts.is_empty()).then_some(texts)
    }

    fn spent(&mut self) -> Option<Spent> {
        let total_tokens = self.number("total_tokens")?;
        let tool_uses = self.number("tool_uses")?;
        let duration_ms = self.number("duration_ms")?;
        self.take("</usage>\n")?;
        Some(Spent {
            total_tokens,
            tool_uses,
            duration_ms,
        })
    }

    fn number(&mut self, name: &str) -> Option<u64> {
        let rest = self.0.strip_prefix(&format!("<{name}>"))?;
        let (digits, rest) = rest.split_once(&format!("</{name}>"))?;
        let number: u64 = digits.parse().ok()?;
        // Only the form that is written is read.
        if number.to_string() != digits {
            return None;
        }
        self.0 = rest;
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Texts that try to look like what we write.
    fn hostile() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            any::<String>(),
            proptest::sample::select(vec![
                "<task-notification>",
                "</task-notification>",
                "</result>",
                "<result>",
                "</ result >",
                "<STATUS>",
                "< /summary",
                "&lt;",
                "&amp;",
                "&",
                "<",
                ">",
                "\n",
                "&amp;lt;result&gt;",
                "<usage><total_tokens>1</total_tokens>",
                "</file>\n</changed-files>\n",
                "<unverified/>",
                "<task-id>agent-00000000</task-id>",
            ])
            .prop_map(str::to_owned),
        ];
        proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat())
    }

    fn status() -> impl Strategy<Value = Status> {
        proptest::sample::select(vec![Status::Completed, Status::Failed, Status::Killed])
    }

    prop_compose! {
        fn notification()(
            task in proptest::option::of(any::<u32>()),
            status in status(),
            summary in hostile(),
            result in proptest::option::of(hostile()),
            usage in proptest::option::of(any::<(u64, u64, u64)>()),
            texts in proptest::collection::vec(proptest::option::of(hostile()), 3),
            worktree in proptest::option::of((hostile(), hostile())),
            lists in proptest::collection::vec(proptest::collection::vec(hostile(), 0..3), 2),
            is_unverified in any::<bool>(),
        ) -> Notification {
            let id = |n: u32| AgentId::parse(&format!("agent-{n:08x}")).unwrap();
            Notification {
                task: task.map(id),
                status,
                summary,
                result,
                usage: usage.map(|(total_tokens, tool_uses, duration_ms)| Spent {
                    total_tokens, tool_uses, duration_ms,
                }),
                reason: texts[0].clone(),
                output_file: texts[1].clone(),
                advice: texts[2].clone(),
                worktree: worktree.map(|(path, branch)| Worktree { path, branch }),
                changed_files: lists[0].clone(),
                denials: lists[1].clone(),
                is_unverified,
            }
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(notification in notification()) {
            let text = notification.render();
            prop_assert_eq!(Notification::parse(&text), Some(notification));
        }

        #[test]
        fn no_text_of_a_worker_opens_or_closes_anything(text in hostile()) {
            let shown = Notification {
                task: None,
                status: Status::Completed,
                summary: text.clone(),
                result: Some(text),
                usage: None,
                reason: None,
                output_file: None,
                worktree: None,
                changed_files: Vec::new(),
                denials: Vec::new(),
                is_unverified: false,
                advice: None,
            }.render();
            let folded: String = shown.to_lowercase().split_whitespace().collect();
            prop_assert_eq!(folded.matches("<task-notification>").count(), 1);
            prop_assert_eq!(folded.matches("</task-notification>").count(), 1);
            prop_assert_eq!(folded.matches("</result>").count(), 1);
            prop_assert_eq!(folded.matches("<status>").count(), 1);
        }

        #[test]
        fn reading_never_fails_badly(text in hostile()) {
            drop(Notification::parse(&text));
        }
    }

    #[test]
    fn it_looks_as_the_coordinator_was_told() {
        let notification = Notification {
            task: AgentId::parse("agent-1a2b3c4d").ok(),
            status: Status::Failed,
            summary: Notification::summary("Investigate auth bug", &End::MaxTurns),
            result: Some("if a < b && c { vec![1] } // <result>".to_owned()),
            usage: Some(Spent {
                total_tokens: 1200,
                tool_uses: 3,
                duration_ms: 4500,
            }),
            reason: Some("max_turns".to_owned()),
            output_file: None,
            worktree: None,
            changed_files: vec!["src/auth.rs".to_owned()],
            denials: Vec::new(),
            is_unverified: true,
            advice: None,
        };
        assert_eq!(
            notification.render(),
            "<task-notification>\n\
             <task-id>agent-1a2b3c4d</task-id>\n\
             <status>failed</status>\n\
             <summary>Agent \"Investigate auth bug\" failed: reached its limit of turns (raise it with --max-turns)</summary>\n\
             <result>if a < b && c { vec![1] } // &lt;result></result>\n\
             <usage><total_tokens>1200</total_tokens><tool_uses>3</tool_uses><duration_ms>4500</duration_ms></usage>\n\
             <reason>max_turns</reason>\n\
             <changed-files>\n<file>src/auth.rs</file>\n</changed-files>\n\
             <unverified/>\n\
             </task-notification>"
        );
    }
}
