//! What is asked: a call of a tool, and what can be read from its input.

use super::command::Script;
use super::paths::absolute;
use super::touch::Trace;
use crate::Access;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A call that someone is to decide on.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    pub tool: &'a str,
    pub input: &'a Value,
    pub access: Access,
    /// Where relative paths start.
    pub cwd: &'a Path,
    /// The files that the call touches, absolute and without links. Where this is empty, paths
    /// are taken from the input by their text alone. For Bash: the files that it writes, see
    /// [`super::Policy::writes`].
    pub paths: &'a [PathBuf],
}

/// Tools that write files.
const WRITERS: [&str; 4] = ["Edit", "MultiEdit", "NotebookEdit", "Write"];
/// Tools that read files.
const READERS: [&str; 3] = ["Glob", "Grep", "Read"];

/// Tools that manage the crew or the conversation: they touch no file and start no program, and
/// what they start has its own permissions.
const UNASKED: [&str; 19] = [
    "Agent",
    "AskUserQuestion",
    "EnterPlanMode",
    "ExitPlanMode",
    "Integrate",
    "ListAgents",
    "Scratchpad",
    "SendMessage",
    "StructuredOutput",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskStop",
    "TaskUpdate",
    "TeamCreate",
    "TeamDelete",
    "TodoWrite",
    "ToolSearch",
];

/// A call as rules see it.
pub(super) struct Subject<'a> {
    pub(super) tool: &'a str,
    pub(super) input: &'a Value,
    pub(super) what: What,
}

pub(super) enum What {
    Shell(Box<Shell>),
    Files(Files),
    Web {
        host: String,
    },
    Skill {
        name: String,
        arguments: String,
    },
    /// The types that may be meant.
    Agent {
        types: Vec<String>,
    },
    Other,
}

pub(super) struct Shell {
    pub(super) script: Script,
    pub(super) trace: Trace,
    /// What deny and ask rules are held against.
    pub(super) watched: Vec<String>,
    /// Whether the call wants to run outside the sandbox.
    pub(super) leaves_sandbox: bool,
}

pub(super) struct Files {
    pub(super) writes: bool,
    /// The call may look at everything below the path.
    pub(super) below: bool,
    /// Without links as far as that is known.
    pub(super) real: Vec<PathBuf>,
    /// Those and the path as it was given.
    pub(super) all: Vec<PathBuf>,
}

impl<'a> Subject<'a> {
    /// Reads a call; an error says what is wrong with its input.
    pub(super) fn read(
        request: &Request<'a>,
        home: &Path,
        roots: &[PathBuf],
    ) -> Result<Self, String> {
        if !request.input.is_object() {
            return Err("its input is not a JSON object".to_owned());
        }
        let tool = match request.tool {
            "Task" => "Agent",
            tool => tool,
        };
        let what = match tool {
            "Bash" => What::Shell(Box::new(shell(request, home, roots)?)),
            "WebFetch" => What::Web {
                host: host(text(request, "url")?)?,
            },
            "Skill" => What::Skill {
                name: text(request, "skill")
                    .or_else(|_| text(request, "name"))?
                    .trim_start_matches('/')
                    .to_owned(),
                arguments: optional(request, "args")?.unwrap_or_default().to_owned(),
            },
            "Agent" => What::Agent {
                types: agent_types(request)?,
            },
            tool if WRITERS.contains(&tool) || READERS.contains(&tool) => {
                What::Files(files(request, tool)?)
            }
            _ => What::Other,
        };
        Ok(Self {
            tool,
            input: request.input,
            what,
        })
    }

    pub(super) fn is_unasked(&self) -> bool {
        UNASKED.contains(&self.tool)
    }
}

/// Whether a rule for one tool speaks of another.
pub(super) fn covers(rule: &str, tool: &str) -> bool {
    match rule {
        "Edit" => WRITERS.contains(&tool),
        "Read" => READERS.contains(&tool),
        _ => rule == tool,
    }
}

fn shell(request: &Request<'_>, home: &Path, roots: &[PathBuf]) -> Result<Shell, String> {
    let command = text(request, "command")?;
    if command.trim().is_empty() {
        return Err("its command is empty".to_owned());
    }
    let script = Script::parse(command);
    let leaves = request.input.get("dangerouslyDisableSandbox");
    Ok(Shell {
        trace: Trace::of(&script, request.cwd, home, roots),
        watched: script.watched(),
        script,
        leaves_sandbox: leaves
            .is_some_and(|leaves| !matches!(leaves, Value::Null | Value::Bool(false))),
    })
}

fn files(request: &Request<'_>, tool: &str) -> Result<Files, String> {
    let below = matches!(tool, "Grep" | "Glob");
    let given = match tool {
        "NotebookEdit" => text(request, "notebook_path")?,
        "Grep" | "Glob" => optional(request, "path")?.unwrap_or_default(),
        _ => text(request, "file_path")?,
    };
    let mut given = vec![absolute(Path::new(given), request.cwd)];
    // A pattern may lead elsewhere by itself.
    if tool == "Glob" {
        let pattern = text(request, "pattern")?;
        let end = pattern.find(['*', '?', '[', '{']).unwrap_or(pattern.len());
        let folder = pattern[..end]
            .rsplit_once('/')
            .map_or("", |(folder, _)| folder);
        if pattern.starts_with('/') || folder.contains("..") {
            given.push(absolute(Path::new(&format!("{folder}/")), &given[0]));
        }
    }
    let real = match request.paths {
        [] => given.clone(),
        paths => paths.to_vec(),
    };
    let mut all = real.clone();
    all.extend(given.into_iter().filter(|path| !real.contains(path)));
    Ok(Files {
        writes: WRITERS.contains(&tool),
        below,
        real,
        all,
    })
}

/// A call without a type gets one that is decided later.
fn agent_types(request: &Request<'_>) -> Result<Vec<String>, String> {
    let types = match optional(request, "subagent_type")? {
        Some(one) => vec![one.to_lowercase()],
        None => ["worker", "general-purpose", "fork"]
            .map(String::from)
            .to_vec(),
    };
    Ok(types)
}

fn text<'a>(request: &Request<'a>, key: &str) -> Result<&'a str, String> {
    optional(request, key)?.ok_or_else(|| format!("its input has no `{key}`"))
}

fn optional<'a>(request: &Request<'a>, key: &str) -> Result<Option<&'a str>, String> {
    match request.input.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{key}` in its input is not a text")),
    }
}

/// The host that an address leads to. What programs read in different ways is refused.
fn host(url: &str) -> Result<String, String> {
    let wrong = || format!("`{url}` is not a web address");
    let url = url.trim();
    if url.contains(|c: char| c.is_whitespace() || c.is_control() || c == '\\') {
        return Err(wrong());
    }
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(wrong());
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = match host.strip_prefix('[') {
        Some(address) => address.split_once(']').ok_or_else(wrong)?.0,
        None => host.split_once(':').map_or(host, |(host, _)| host),
    };
    let host = host.trim_end_matches('.').to_lowercase();
    let is_plain = |c: char| c.is_alphanumeric() || "-_.:".contains(c);
    if host.is_empty() || !host.chars().all(is_plain) {
        return Err(wrong());
    }
    Ok(host)
}
