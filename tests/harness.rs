//! Runs the real program in a new folder with an empty home.

use gaffer_store::Fold;
use gaffer_testkit::{Server, WireKind};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A folder with a home and a project in it.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) root: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["home", "project", "tmp"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("project").canonicalize().unwrap()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.root.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// The program with nothing in its environment but a path and this home.
    #[expect(
        clippy::disallowed_methods,
        reason = "the program under test is started here"
    )]
    pub(crate) fn gaffer(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_gaffer"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home())
            .env("TMPDIR", self.root.path().join("tmp"))
            .current_dir(self.project())
            .stdin(Stdio::null());
        command
    }

    /// Settings that name the agent to the server and retry at once.
    pub(crate) fn settings(&self, wire: WireKind) -> String {
        let provider = json!({
            "headers": {"x-gaffer-agent": "${agent}", "x-gaffer-type": "${agent_type}"},
            "firstByteTimeout": "1s",
            "silenceTimeout": "1s",
        });
        let settings = json!({
            "providers": {wire.provider(): provider},
            "retry": {"firstDelay": "1ms", "longestDelay": "5ms", "attempts": 3, "overload": "2s"},
            "prices": {"scripted": {"input": 1.0, "output": 10.0, "cache_read": 0.1, "cache_write": 1.25}},
        });
        let path = self.write("settings.json", &settings.to_string());
        path.display().to_string()
    }

    /// The program against a server on one of the wires.
    pub(crate) fn on_wire(&self, wire: WireKind, server: &Server, args: &[&str]) -> Command {
        let settings = self.settings(wire);
        let fixed = [
            "--provider",
            wire.provider(),
            "--model",
            "scripted",
            "--settings",
            &settings,
        ];
        let mut command = self.gaffer(&[&in_mode(args)[..], &fixed].concat());
        command
            .env("ANTHROPIC_BASE_URL", server.base())
            .env("OPENAI_BASE_URL", format!("{}/v1/", server.base()))
            .env("ANTHROPIC_API_KEY", "test-key")
            .env("OPENAI_API_KEY", "test-key");
        command
    }

    /// The program with the same script played in its own process.
    pub(crate) fn scripted(&self, script: &str, args: &[&str]) -> Command {
        let settings = self.settings(WireKind::Anthropic);
        let script = self.write("script.yaml", script).display().to_string();
        let fixed = [
            "--provider",
            "scripted",
            "--model",
            &script,
            "--settings",
            &settings,
        ];
        self.gaffer(&[&in_mode(args)[..], &fixed].concat())
    }

    pub(crate) fn transcripts(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.home(), &mut found);
        found
    }

    pub(crate) fn transcript(&self) -> Vec<Value> {
        let files = self.transcripts();
        assert_eq!(files.len(), 1, "{files:?}");
        let text = std::fs::read_to_string(&files[0]).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(crate) fn fold(&self) -> Fold {
        Fold::read(&self.transcripts()[0]).unwrap()
    }
}

/// One agent with all the tools, unless a test says otherwise.
fn in_mode<'a>(args: &[&'a str]) -> Vec<&'a str> {
    let mut all = args.to_vec();
    if !args.contains(&"--mode") {
        all.extend(["--mode", "normal"]);
    }
    all
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, found);
        } else if path.extension().is_some_and(|end| end == "jsonl") {
            found.push(path);
        }
    }
}

/// What a finished program left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    /// Standard output as lines of JSON.
    pub(crate) fn events(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
        };
        self.out.lines().map(parse).collect()
    }

    pub(crate) fn result(&self) -> Value {
        self.events().pop().unwrap_or_default()
    }
}

pub(crate) fn run(mut command: Command) -> Ran {
    ran(&command.output().unwrap())
}

pub(crate) fn wait(child: Child) -> Ran {
    ran(&child.wait_with_output().unwrap())
}

fn ran(output: &Output) -> Ran {
    Ran {
        code: output.status.code(),
        out: String::from_utf8_lossy(&output.stdout).into_owned(),
        err: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
