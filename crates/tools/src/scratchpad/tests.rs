//! The scratchpad as two agents use it, with the file tools and with this one; and ways out of it.

use super::*;
use crate::edit::Edit;
use crate::erase;
use crate::read::Read;
use crate::testing::text;
use crate::write::Write;
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{AgentId, Clock, Json, Timestamp};
use gaffer_workspace::scratchpad::{self as pad, Caps, Place};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug)]
struct Fixed;

impl Clock for Fixed {
    fn now(&self) -> Timestamp {
        Timestamp(1_794_733_200_123)
    }
}

struct World {
    temp: tempfile::TempDir,
    pad: pad::Scratchpad,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        for folder in ["project", "results", "tmp"] {
            std::fs::create_dir(temp.path().join(folder)).unwrap();
        }
        std::fs::write(temp.path().join("project/secret"), "a secret").unwrap();
        std::fs::write(temp.path().join("results/bash_1.txt"), "one\ntwo\n").unwrap();
        let place = Place {
            temp: temp.path(),
            uid: temp.path().metadata().unwrap().uid(),
            folder: "-p",
            session: "s",
        };
        let pad = pad::Scratchpad::open(place, Arc::new(Fixed), Caps::default()).unwrap();
        Self { temp, pad }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    /// An agent of the crew: it works in the project and shares the scratchpad.
    fn agent(&self, name: &str) -> Agent {
        let (project, results) = (self.at("project"), self.at("results"));
        let context = Context::in_folder(&project, &results, &self.at("tmp"), Path::new("none"));
        let id = AgentId::parse(&format!("agent-{:08x}", name.len())).unwrap();
        Agent(context.with_scratchpad(self.pad.pen(id, name)))
    }

    fn file(&self, name: &str) -> String {
        self.pad.path().join(name).display().to_string()
    }

    fn names(&self, name: &str) -> Vec<String> {
        let versions = self.pad.versions(&self.pad.path().join(name));
        versions.iter().map(super::names).collect()
    }
}

struct Agent(Context);

impl Agent {
    async fn call<T: Run + 'static>(&self, tool: T, input: Value) -> (String, bool) {
        let input = ToolInput::Json(Json::of(&input));
        let output = erase(tool).call(&input, &self.0).await;
        (text(&output), output.is_error)
    }

    async fn pad(&self, input: Value) -> (String, bool) {
        self.call(Scratchpad, input).await
    }

    async fn write(&self, path: &str, content: &str) -> (String, bool) {
        self.call(Write, json!({"file_path": path, "content": content}))
            .await
    }

    async fn read(&self, path: &str) -> (String, bool) {
        self.call(Read, json!({"file_path": path})).await
    }
}

#[tokio::test]
async fn the_second_of_two_writers_is_told() {
    let world = World::new();
    let (a, b) = (world.agent("a"), world.agent("bb"));
    let file = world.file("notes/plan.md");
    assert!(!a.write(&file, "by a\n").await.1);
    let (said, refused) = b.write(&file, "by b\n").await;
    assert!(refused && said.contains("has not been read yet"), "{said}");
    assert!(!b.read(&file).await.1);
    assert!(!a.write(&file, "by a again\n").await.1);
    let (said, refused) = b.write(&file, "by b\n").await;
    assert!(
        refused && said.contains("has changed since it was last read"),
        "{said}"
    );
    let edit = json!({"file_path": file, "old_string": "by a", "new_string": "by b"});
    let (said, refused) = b.call(Edit, edit.clone()).await;
    assert!(
        refused && said.contains("has changed since it was last read"),
        "{said}"
    );
    assert!(!b.read(&file).await.1);
    assert!(!b.call(Edit, edit).await.1);
    let (said, refused) = a
        .pad(json!({"action": "write", "path": "notes/plan.md", "content": "mine"}))
        .await;
    assert!(
        refused && said.contains("has changed since it was last read; read it again"),
        "{said}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "by b again\n");
    assert_eq!(world.names("notes/plan.md"), ["a", "a", "bb"]);
}

#[tokio::test]
async fn a_coordinator_writes_lists_and_reads_any_version() {
    let world = World::new();
    let (lead, worker) = (world.agent("lead"), world.agent("worker"));
    let (said, wrong) = lead
        .pad(json!({"action": "write", "path": "spec/a.md", "content": "one\ntwo\nthree\n"}))
        .await;
    assert!(
        !wrong && said == "spec/a.md created: 3 lines, 14 bytes.",
        "{said}"
    );
    let file = world.file("spec/a.md");
    worker.read(&file).await;
    worker.write(&file, "other\n").await;
    std::fs::write(world.file("stray"), "x").unwrap();
    let (said, _) = lead.pad(json!({"action": "list"})).await;
    let want = format!(
        "{}: 2 files\nspec/a.md  6 bytes  2026-11-15T09:00:00.123Z  version 2 by worker\nstray  1 bytes  ",
        world.pad.path().display()
    );
    assert!(said.starts_with(&want), "{said}");
    assert!(
        said.contains("  version 1 by nobody known\n[Long results are kept in "),
        "{said}"
    );
    let (said, _) = lead.pad(json!({"action": "list", "path": "spec"})).await;
    assert!(said.contains("/spec: 1 files\nspec/a.md"), "{said}");
    let rows = [
        (json!({"path": "spec/a.md"}), "1\tother\n"),
        (json!({"path": file, "version": 2}), "1\tother\n"),
        (
            json!({"path": "spec/a.md", "version": 1, "offset": 2, "limit": 1}),
            "2\ttwo\n[The file goes on: read it with offset 3.]\n",
        ),
    ];
    for (mut input, want) in rows {
        input["action"] = json!("read");
        let (said, wrong) = lead.pad(input.clone()).await;
        assert!(!wrong && said == want, "{input}: {said}");
    }
    // Also of a file that is gone.
    std::fs::remove_file(&file).unwrap();
    let input = json!({"action": "read", "path": "spec/a.md", "version": 1});
    assert_eq!(lead.pad(input).await.0, "1\tone\n2\ttwo\n3\tthree\n");
}

#[tokio::test]
async fn results_can_be_read_and_not_written() {
    let world = World::new();
    let lead = world.agent("lead");
    let result = world.at("results/bash_1.txt").display().to_string();
    let (said, _) = lead
        .pad(json!({"action": "read", "path": result, "offset": 2}))
        .await;
    assert_eq!(said, "2\ttwo\n");
    let folder = world.at("results").display().to_string();
    let (said, _) = lead.pad(json!({"action": "list", "path": folder})).await;
    assert!(said.ends_with(": 1 files\nbash_1.txt  8 bytes\n"), "{said}");
    let (said, wrong) = lead
        .pad(json!({"action": "write", "path": result, "content": "x"}))
        .await;
    assert!(wrong && said.contains("may only be read"), "{said}");
}

#[tokio::test]
async fn nothing_leads_out_of_it() {
    let world = World::new();
    let lead = world.agent("lead");
    let pad = world.pad.path();
    let secret = world.at("project/secret");
    symlink(&secret, pad.join("file")).unwrap();
    symlink(world.at("project"), pad.join("folder")).unwrap();
    symlink("nothing", pad.join("dangling")).unwrap();
    std::fs::hard_link(&secret, pad.join("hard")).unwrap();
    let index = pad.join("../versions/index.jsonl").display().to_string();
    let whole = secret.display().to_string();
    for path in [
        "file",
        "folder/secret",
        "folder",
        "dangling",
        "hard",
        "../../../../project/secret",
        "../versions/index.jsonl",
        "/etc/passwd",
        "/proc/self/environ",
        &index,
        &whole,
        "",
        "a\0b",
        "missing/../../x",
    ] {
        for (action, content) in [("read", None), ("write", Some("x"))] {
            let input = json!({"action": action, "path": path, "content": content});
            let (said, wrong) = lead.pad(input).await;
            assert!(
                wrong && !said.contains("a secret"),
                "{action} {path}: {said}"
            );
        }
        let (said, wrong) = lead.pad(json!({"action": "list", "path": path})).await;
        assert!(wrong, "{path}: {said}");
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "a secret");
    // The agent itself may read there with another tool, but not through a second name.
    assert!(!lead.read("secret").await.1);
    let (said, wrong) = lead.read(&world.file("hard")).await;
    assert!(wrong && said.contains("it is a hard link"), "{said}");
    // Another folder in its place is not the scratchpad.
    std::fs::rename(&pad, world.at("moved")).unwrap();
    symlink(world.at("project"), &pad).unwrap();
    let (said, wrong) = lead.pad(json!({"action": "read", "path": "secret"})).await;
    assert!(
        wrong && said.contains("nothing else can be reached"),
        "{said}"
    );
}

#[tokio::test]
async fn wrong_calls_are_answered_with_what_is_wrong() {
    let world = World::new();
    let lead = world.agent("lead");
    let rows = [
        (json!({"action": "read"}), "`path` is missing"),
        (
            json!({"action": "write", "path": "a"}),
            "`content` is missing",
        ),
        (
            json!({"action": "list", "content": "a"}),
            "`content` does not go with",
        ),
        (
            json!({"action": "write", "path": "a", "content": "a", "version": 1}),
            "`version` does not go with",
        ),
        (
            json!({"action": "remove", "path": "a"}),
            "unknown variant `remove`",
        ),
        (
            json!({"action": "read", "path": "a"}),
            "there is no such file",
        ),
        (
            json!({"action": "list", "path": "a"}),
            "there is no such folder",
        ),
        (
            json!({"action": "read", "path": "a", "version": 1}),
            "no write of it is recorded",
        ),
    ];
    for (input, want) in rows {
        let (said, wrong) = lead.pad(input.clone()).await;
        assert!(wrong && said.contains(want), "{input}: {said}");
    }
    let schema = erase(Scratchpad).spec().schema.to_string();
    assert!(!schema.contains("$ref"), "{schema}");
    let alone = Agent(crate::testing::context());
    assert!(
        alone
            .pad(json!({"action": "list"}))
            .await
            .0
            .contains("no scratchpad")
    );
}

#[test]
fn of_writers_at_once_none_loses_what_another_wrote() {
    let world = World::new();
    let file = world.file("count");
    std::fs::write(&file, "0").unwrap();
    let agents: Vec<Agent> = (1..=4).map(|n| world.agent(&"x".repeat(n))).collect();
    let count = |agent: &Agent| {
        let input = ReadInput {
            file_path: file.clone(),
            offset: None,
            limit: None,
            pages: None,
        };
        // What others write all the time may be too fresh to be read.
        let Ok(output) = read::read_plain(&input, &agent.0) else {
            return false;
        };
        let said = text(&output);
        let number: u32 = said.trim().strip_prefix("1\t").unwrap().parse().unwrap();
        let input = WriteInput {
            file_path: file.clone(),
            content: (number + 1).to_string(),
        };
        write::write(&input, &agent.0).is_ok()
    };
    let written: usize = std::thread::scope(|scope| {
        let work = |agent| move || (0..40).filter(|_| count(agent)).count();
        let threads: Vec<_> = agents
            .iter()
            .map(|agent| scope.spawn(work(agent)))
            .collect();
        let written = threads.into_iter().map(|thread| thread.join().unwrap());
        written.sum()
    });
    assert_eq!(std::fs::read_to_string(&file).unwrap(), written.to_string());
    assert_eq!(world.names("count").len(), written);
    let path = world.pad.path().join("count");
    for version in 1..=written {
        let bytes = world.pad.read_version(&path, version).unwrap();
        assert_eq!(bytes, version.to_string().as_bytes());
    }
}

#[tokio::test]
async fn a_race_of_links_brings_nothing_in() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let world = World::new();
    let lead = world.agent("lead");
    let (pad, secret) = (world.pad.path(), world.at("project/secret"));
    let done = Arc::new(AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (pad, secret, done) = (pad.clone(), secret.clone(), done.clone());
        move || {
            let put = |made: std::io::Result<()>| {
                made.unwrap();
                std::fs::rename(pad.join("next"), pad.join("file")).unwrap();
            };
            while !done.load(Ordering::Relaxed) {
                put(std::fs::hard_link(&secret, pad.join("next")));
                put(std::fs::write(pad.join("next"), "harmless"));
                put(symlink(&secret, pad.join("next")));
                put(std::fs::write(pad.join("next"), "harmless"));
            }
        }
    });
    for n in 0..150 {
        let (said, _) = lead.pad(json!({"action": "read", "path": "file"})).await;
        assert!(!said.contains("a secret"), "{said}");
        if n % 5 == 0 {
            world.pad.list();
        }
    }
    done.store(true, Ordering::Relaxed);
    swapping.join().unwrap();
    let path = pad.join("file");
    for version in 1..=world.pad.versions(&path).len() {
        if let Ok(bytes) = world.pad.read_version(&path, version) {
            assert_eq!(bytes, b"harmless");
        }
    }
}
