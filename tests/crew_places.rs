//! What a worker finds where it works: documents, its type's memory, the scratchpad, its model.

use crate::harness::{Place, run};
use gaffer_testkit::{Server, WireKind};
use serde_json::{Value, json};

const CREW: [&str; 6] = [
    "-p",
    "go",
    "--mode",
    "coordinator",
    "--output-format",
    "stream-json",
];

/// A coordinator that starts one worker of a type and tells what it said.
fn one(kind: &str) -> String {
    format!(
        "{{ name: main, steps: [{{ calls: [{{ tool: Agent, input: {{ description: Do it, name: w, subagent_type: {kind}, prompt: go }} }}] }}, {{ say: Waiting. }}, {{ when: {{ notifications: 1 }}, expect: [{{ text: '<status>completed</status>' }}], say: Done. }}] }}"
    )
}

#[test]
fn a_type_from_a_file_has_its_text_its_tools_and_its_memory() {
    let place = Place::new();
    place.write("project/.git/HEAD", "ref: refs/heads/main\n");
    place.write("project/AGENTS.md", "Use tabs. See @notes/more.md\n");
    place.write("project/notes/more.md", "And no semicolons.\n");
    place.write(
        "project/.claude/agents/keeper.md",
        "---\nname: keeper\ndescription: Keeps notes\ntools: Read, Write, Edit\nmemory: user\n---\nKeep notes.\n",
    );
    let memory = place.home().join(".gaffer/agent-memory/keeper/MEMORY.md");
    place.write(
        "home/.gaffer/agent-memory/keeper/MEMORY.md",
        "The build is slow.\n",
    );
    let memory = memory.display().to_string();
    let worker = format!(
        "{{ name: w, steps: [
          {{ expect: [{{ text: The build is slow. }}], calls: [{{ tool: Read, input: {{ file_path: '{memory}' }} }}, {{ tool: Bash, as: b, input: {{ command: ls }} }}] }},
          {{ expect: [{{ of: b, error: true, result: 'There is no tool `Bash`' }}], calls: [{{ tool: Edit, as: e, input: {{ file_path: '{memory}', old_string: slow, new_string: quick }} }}, {{ tool: Write, as: o, input: {{ file_path: '{home}/other.txt', content: x }} }}] }},
          {{ expect: [{{ of: e, error: false }}, {{ of: o, error: true }}], say: Noted. }}] }}",
        home = place.home().display()
    );
    let script = format!("agents: [{}, {worker}]", one("keeper"));
    let server = Server::start(&script);
    let ran = run(place.on_wire(WireKind::Anthropic, &server, &CREW));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let kept = std::fs::read_to_string(&memory).unwrap();
    assert_eq!(kept, "The build is quick.\n");
    assert!(!place.home().join("other.txt").exists());
    let asked = server.asked();
    let worker = asked.iter().find(|asked| asked.agent == "w").unwrap();
    let system = worker.json()["system"].to_string();
    for text in [
        "You are a worker in a crew",
        "Use tabs.",
        "And no semicolons.",
        "Keep notes.",
    ] {
        assert!(system.contains(text), "{text}: {system}");
    }
    let tools = worker.json()["tools"].clone();
    let names: Vec<&str> = tools
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Edit", "Read", "Write"]);
}

#[test]
fn workers_and_the_coordinator_share_the_scratchpad() {
    let place = Place::new();
    let script = "agents: [
      { name: main, steps: [
        { calls: [{ tool: Scratchpad, as: w, input: { action: write, path: spec.md, content: 'Build a till.' } }, { tool: Agent, as: a, input: { description: First, name: first, prompt: go } }] },
        { expect: [{ of: w, error: false }], say: Waiting. },
        { when: { notifications: 1 }, calls: [{ tool: Scratchpad, as: l, input: { action: list } }, { tool: Scratchpad, as: r, input: { action: read, path: notes/found.md } }, { tool: Scratchpad, as: out, input: { action: read, path: ../../../../../etc/passwd } }, { tool: Agent, input: { description: Second, name: second, prompt: go } }] },
        { expect: [{ of: l, result: { matches: 'notes/found.md.*first' } }, { of: r, result: It is in src. }, { of: out, error: true }], say: Waiting. },
        { when: { notifications: 2 }, say: Done. }] },
      { name: first, steps: [
        { calls: [{ tool: Bash, as: b, input: { command: 'cat PAD/spec.md; mkdir -p PAD/notes; echo It is in src. > PAD/notes/found.md' } }] },
        { expect: [{ of: b, error: false, result: Build a till. }], say: Found. }] },
      { name: second, steps: [
        { calls: [{ tool: Read, as: r, input: { file_path: 'PAD/notes/found.md' } }, { tool: Write, as: w, input: { file_path: 'PAD/done.md', content: yes } }] },
        { expect: [{ of: r, result: It is in src. }, { of: w, error: false }], say: Read. }] }]";
    let uid = rustix::process::getuid().as_raw();
    let slug = gaffer_store::session::slug(&place.project());
    let pad = format!("tmp/gaffer-{uid}/{slug}/shared/scratchpad");
    let pad = place.root.path().canonicalize().unwrap().join(pad);
    let script = script.replace("PAD", pad.to_str().unwrap());
    let args = ["--permission-mode", "default", "--session-id", "shared"];
    let ran = run(place.scripted(&script, &[&CREW[..], &args].concat()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn a_scratchpad_that_nobody_used_is_taken_away() {
    let place = Place::new();
    let script = "agents: [{ name: main, steps: [{ say: Hello. }] }]";
    let ran = run(place.scripted(script, &CREW));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let mut folder = place.root.path().join("tmp");
    for _ in 0..2 {
        let mut below = std::fs::read_dir(&folder).unwrap();
        folder = below.next().unwrap().unwrap().path();
    }
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
}

#[test]
fn each_role_has_the_model_that_the_settings_give_it() {
    let place = Place::new();
    let settings =
        json!({"models": {"coordinator": "strong", "worker": "cheap", "verifier": "careful"}});
    place.write("home/.gaffer/settings.json", &settings.to_string());
    let script = "agents: [
      { name: main, steps: [{ calls: [{ tool: Agent, input: { description: A, name: a, prompt: go, model: opus } }, { tool: Agent, input: { description: B, name: b, subagent_type: verifier, prompt: go } }] }, { say: Waiting. }, { when: { notifications: 2 }, meanwhile: Waiting., say: Done. }] },
      { type: worker, steps: [{ say: Yes. }] },
      { type: verifier, steps: [{ say: Yes. }] }]";
    let server = Server::start(script);
    let settings = place.settings(WireKind::Anthropic);
    let mut command = place.gaffer(
        &[
            &CREW[..],
            &["--provider", "anthropic", "--settings", &settings],
        ]
        .concat(),
    );
    command
        .env("ANTHROPIC_BASE_URL", server.base())
        .env("ANTHROPIC_API_KEY", "test-key");
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let model = |name: &str| -> Value {
        let asked = server.asked();
        let asked = asked.iter().find(|asked| asked.agent == name).unwrap();
        asked.json()["model"].clone()
    };
    assert_eq!(model("main"), "strong");
    assert_eq!(model("a"), "cheap", "a coordinator does not choose models");
    assert_eq!(model("b"), "careful");
}

#[test]
fn bare_workers_have_three_tools_and_know_nothing_else() {
    let place = Place::new();
    place.write("project/AGENTS.md", "Use tabs.\n");
    place.write(
        "home/.agents/skills/x/SKILL.md",
        "---\ndescription: X\n---\nX.\n",
    );
    let hook =
        json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}]}});
    place.write("home/.gaffer/settings.json", &hook.to_string());
    let script = format!(
        "agents: [{}, {{ name: w, steps: [{{ calls: [{{ tool: Bash, as: b, input: {{ command: echo hi }} }}] }}, {{ expect: [{{ of: b, error: false }}], say: Yes. }}] }}]",
        one("worker")
    );
    for (args, variable) in [(&["--bare"][..], None), (&[], Some("1"))] {
        let server = Server::start(&script);
        let mut command = place.on_wire(WireKind::Anthropic, &server, &[&CREW[..], args].concat());
        if let Some(value) = variable {
            command.env("GAFFER_SIMPLE", value);
        }
        let ran = run(command);
        assert_eq!(ran.code, Some(0), "{ran:#?}");
        let asked = server.asked();
        let body = asked.iter().find(|it| it.agent == "w").unwrap().json();
        let tools = body["tools"].as_array().unwrap();
        let names: Vec<&str> = tools
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["Bash", "Edit", "Read"]);
        assert!(!body["system"].to_string().contains("Use tabs."));
    }
}
