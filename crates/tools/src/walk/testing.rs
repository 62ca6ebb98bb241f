//! A tree of files to search, for the tests of Grep and Glob.

use crate::admit::admit;
use crate::context::Context;
use crate::guard::Guard;
use crate::permission::{Level, Mode, Policy, Ruled, Source};
use crate::tool::{Output, Tool};
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{ResultPart, ToolUse};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

pub(crate) struct Tree {
    temp: tempfile::TempDir,
    pub(crate) context: Context,
}

impl Tree {
    /// The agent's folder is `root`, so that something can stand beside it.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("root");
        std::fs::create_dir(&root).unwrap();
        let context = Context::in_folder(&root, &root, &root, &root);
        let tree = Self { temp, context };
        for (path, text) in files {
            tree.write(path, text);
        }
        tree
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.temp.path().join("root").join(path)
    }

    pub(crate) fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Sets when a file was written, in seconds.
    pub(crate) fn date(&self, path: &str, seconds: u64) {
        let file = std::fs::File::options().append(true).open(self.path(path));
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        file.unwrap().set_modified(time).unwrap();
    }

    /// Puts the agent under deny rules.
    pub(crate) fn deny(&mut self, rules: &[&str]) {
        let root = self.path("").canonicalize().unwrap();
        let mut policy = Policy::new(Mode::Default, vec![root.clone()], root.clone());
        let ruled = |text: &&str| Ruled {
            rule: text.parse().unwrap(),
            source: Source::new(Level::Project, &root),
        };
        policy.deny = rules.iter().map(ruled).collect();
        self.context.guard = Some(Guard::new(Arc::new(policy)));
    }

    pub(crate) fn pipe(&self, path: &str) {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        mknodat(CWD, self.path(path), FileType::Fifo, Mode::RWXU, 0).unwrap();
    }

    /// Calls a tool as an agent would: what it says, and whether that is an error.
    pub(crate) async fn call(&self, tool: &dyn Tool, input: serde_json::Value) -> (String, bool) {
        let call = ToolUse {
            id: "call".to_owned(),
            name: tool.spec().name.clone(),
            input: ToolInput::from_text(&input.to_string()),
        };
        if let Err(refused) = admit(tool, &call, &self.context).await {
            return (text(&refused.output), true);
        }
        let output = tool.call(&call.input, &self.context).await;
        (text(&output), output.is_error)
    }
}

fn text(output: &Output) -> String {
    let ResultPart::Text(text) = &output.parts[0] else {
        panic!("not a text: {output:?}")
    };
    text.clone()
}
