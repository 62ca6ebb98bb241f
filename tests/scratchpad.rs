//! The scratchpad with real commands: what they write is recorded as their agent's.

use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{AgentId, Clock, Json, Timestamp};
use gaffer_tools::bash::Bash;
use gaffer_tools::{Context, erase};
use gaffer_workspace::scratchpad::{Caps, Content, Place, Scratchpad, Version};
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

#[derive(Debug)]
struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp(0)
    }
}

struct Crew {
    temp: tempfile::TempDir,
    pad: Scratchpad,
}

impl Crew {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        for folder in ["project", "results"] {
            std::fs::create_dir(temp.path().join(folder)).unwrap();
        }
        let place = Place {
            temp: temp.path(),
            uid: temp.path().metadata().unwrap().uid(),
            folder: &gaffer_store::session::slug(&temp.path().join("project")),
            session: "s1",
        };
        let pad = Scratchpad::open(place, Arc::new(Fixed), Caps::default()).unwrap();
        Self { temp, pad }
    }

    fn worker(&self, number: u32) -> Context {
        let at = |name: &str| self.temp.path().join(name);
        let own = at(&format!("tmp-{number}"));
        std::fs::create_dir(&own).unwrap();
        let program = Path::new(env!("CARGO_BIN_EXE_gaffer"));
        let context = Context::in_folder(&at("project"), &at("results"), &own, program);
        let id = AgentId::parse(&format!("agent-{number:08x}")).unwrap();
        context.with_scratchpad(self.pad.pen(id, format!("worker-{number}")))
    }

    fn versions(&self, name: &str) -> Vec<Version> {
        self.pad.versions(&self.pad.path().join(name))
    }

    fn writers(&self, name: &str) -> Vec<Vec<String>> {
        let names = |version: &Version| {
            let writers = version.writers.iter();
            writers.map(|writer| writer.name.clone()).collect()
        };
        self.versions(name).iter().map(names).collect()
    }

    async fn call(&self, worker: &Context, input: Value) {
        let input = ToolInput::Json(Json::of(&input));
        erase(Bash).call(&input, worker).await;
    }

    async fn run(&self, worker: &Context, command: &str) {
        let command = format!("cd '{}'; {command}", self.pad.path().display());
        self.call(worker, json!({ "command": command })).await;
    }
}

#[tokio::test]
async fn a_commands_writes_are_its_agents() {
    let crew = Crew::new();
    let (one, two) = (crew.worker(1), crew.worker(2));
    crew.run(&one, "mkdir -p a; echo first > a/b").await;
    crew.run(&two, "echo second > a/b; false").await;
    crew.run(&one, "cat a/b; ls").await;
    crew.run(&one, "rm -r a").await;
    assert_eq!(
        crew.writers("a/b"),
        [["worker-1"], ["worker-2"], ["worker-1"]]
    );
    assert_eq!(crew.versions("a/b")[2].content, Content::Gone);
    let first = crew.pad.read_version(&crew.pad.path().join("a/b"), 1);
    assert_eq!(first.unwrap(), b"first\n");
}

#[tokio::test]
async fn a_jobs_writes_are_found_when_it_is_looked_at() {
    let crew = Crew::new();
    let (one, two) = (crew.worker(1), crew.worker(2));
    let go = crew.temp.path().join("go");
    let command = format!(
        "cd '{}'; until [ -e '{}' ]; do sleep 0.02; done; echo late > late; sleep 300",
        crew.pad.path().display(),
        go.display()
    );
    crew.call(&one, json!({"command": command, "run_in_background": true}))
        .await;
    // Another's command ends meanwhile: either may have written this.
    crew.run(&two, "echo x > x").await;
    assert_eq!(crew.writers("x"), [["worker-2", "worker-1"]]);
    std::fs::write(go, "").unwrap();
    while crew.versions("late").is_empty() {
        crew.call(&one, json!({"job": "bash_1"})).await;
    }
    // It may be seen before its text is there.
    crew.call(&one, json!({"job": "bash_1", "stop": true}))
        .await;
    assert_eq!(crew.writers("late")[0], ["worker-1"]);
    // Nothing of it runs any more.
    crew.run(&two, "echo y > y").await;
    assert_eq!(crew.writers("y"), [["worker-2"]]);
}
