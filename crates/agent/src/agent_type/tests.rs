//! Agent types as they lie on disk.

use super::*;
use crate::places::Places;
use std::path::Path;

struct World {
    temp: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        for folder in ["home", "repo/.git", "repo/a"] {
            std::fs::create_dir_all(temp.path().join(folder)).unwrap();
        }
        Self { temp }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.temp.path().canonicalize().unwrap().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn named(&self, path: &str, name: &str, extra: &str) {
        let text = format!("---\nname: {name}\ndescription: {path}\n{extra}\n---\nBe {name}.\n");
        self.write(path, &text);
    }

    fn find(&self) -> AgentTypes {
        AgentTypes::find(&Places::of(&self.at("repo/a"), Some(&self.at("home"))))
    }
}

fn about<'a>(types: &'a AgentTypes, name: &str) -> &'a str {
    &types.get(name).unwrap().description
}

#[test]
fn some_types_are_always_there() {
    let types = AgentTypes::built_in();
    let names: Vec<&str> = types.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(
        names,
        ["explore", "general-purpose", "plan", "verifier", "worker"]
    );
    let tools = |name: &str| {
        let all = "Agent Bash Edit Glob Grep NotebookEdit Read SendMessage Skill TaskStop \
                   TeamCreate TeamDelete ToolSearch WebFetch WebSearch Write mcp__a__b";
        let agent_type = types.get(name).unwrap();
        let kept = all.split(' ').filter(|tool| agent_type.keeps(tool));
        kept.collect::<Vec<_>>().join(" ")
    };
    let all = "Bash Edit Glob Grep NotebookEdit Read Skill ToolSearch WebFetch WebSearch Write \
               mcp__a__b";
    assert_eq!(tools("worker"), all);
    assert_eq!(tools("general-purpose"), all);
    let looking = "Bash Glob Grep Read Skill ToolSearch WebFetch WebSearch";
    for name in ["explore", "plan"] {
        assert_eq!(tools(name), looking);
        let agent_type = types.get(name).unwrap();
        assert!(agent_type.is_one_shot && agent_type.permission_mode == Some(Mode::Plan));
    }
    assert_eq!(tools("verifier"), format!("{looking} mcp__a__b"));
    assert_eq!(types.describe().lines().count(), 5);
}

#[test]
fn the_nearest_counts_then_the_users_then_what_is_built_in() {
    let world = World::new();
    world.named("home/.claude/agents/one.md", "one", "");
    world.named("home/.gaffer/agents/two.md", "two", "");
    world.named("home/.claude/agents/two.md", "two", "");
    world.named("repo/.agents/agents/one.md", "one", "");
    world.named("repo/.gaffer/agents/three.md", "three", "");
    world.named("repo/a/.agents/agents/three.md", "three", "");
    world.named("repo/.claude/agents/deep/er/x.md", "worker", "");
    world.named("repo/.claude/agents/not.txt", "not", "");
    world.named("other/.claude/agents/far.md", "far", "");
    let types = world.find();
    assert_eq!(types.problems, Vec::<String>::new());
    for (name, want) in [
        ("one", "repo/.agents/agents/one.md"),
        ("two", "home/.gaffer/agents/two.md"),
        ("three", "repo/a/.agents/agents/three.md"),
        ("worker", "repo/.claude/agents/deep/er/x.md"),
    ] {
        assert_eq!(about(&types, name), want);
        let source = Source::File(world.at(want));
        assert_eq!(types.get(name).unwrap().source, source);
    }
    assert!(types.get("far").is_none() && types.get("not").is_none());
    // Home is not looked at twice.
    world.write("home/.claude/agents/bad.md", "---\nname: Bad\n---\n");
    let home = world.at("home");
    let types = AgentTypes::find(&Places::of(&home, Some(&home)));
    assert_eq!(types.problems.len(), 1);
}

#[test]
fn fields_are_read_as_people_write_them() {
    let world = World::new();
    world.write(
        "repo/.claude/agents/a.md",
        "---\nname: reviewer\ndescription: Use it: after\\n changes <example>x</example>\n\
         tools: Read, Grep, mcp__github, mcp__db__get*, Agent(a, b)\ndisallowedTools:\n  - Grep\n\
         model: opus\neffort: high\npermissionMode: dontAsk\nmaxTurns: 12\n\
         skills: [one, two]\nmemory: local\nbackground: true\nisolation: worktree\n\
         color: purple\nhooks: {Stop: []}\nmcpServers: [x]\nwhatever: 1\n---\n\n# Review\n\nText.\n",
    );
    world.named(
        "repo/.claude/agents/b.md",
        "all",
        "tools: *\ndisallowedTools: mcp__*\nmodel: inherit\npermissionMode: auto\ncolor: mauve\n\
         description: x: y",
    );
    world.named("repo/.claude/agents/c.md", "none", "tools: []");
    let types = world.find();
    let reviewer = types.get("reviewer").unwrap();
    assert_eq!(reviewer.prompt, "# Review\n\nText.");
    let kept = |agent_type: &AgentType, tools: &str| -> Vec<bool> {
        tools.split(' ').map(|it| agent_type.keeps(it)).collect()
    };
    let tools = "Read mcp__github__push mcp__db__get_all Grep Bash mcp__githubs__x Agent";
    let want = [true, true, true, false, false, false, false];
    assert_eq!(kept(reviewer, tools), want);
    assert_eq!(reviewer.model.as_deref(), Some("opus"));
    assert_eq!(reviewer.effort.as_deref(), Some("high"));
    assert_eq!(reviewer.permission_mode, Some(Mode::DontAsk));
    assert_eq!(reviewer.max_turns, Some(12));
    assert_eq!(reviewer.skills, ["one", "two"]);
    assert_eq!(reviewer.memory, Some(Scope::Local));
    assert_eq!(reviewer.color.as_deref(), Some("purple"));
    assert!(reviewer.background && reviewer.isolated && !reviewer.is_one_shot);
    assert!(types.get("all").is_none(), "a key that stands there twice");
    assert_eq!(types.problems.len(), 1);
    assert!(kept(types.get("none").unwrap(), "Read Bash") == [false, false]);
}

#[test]
fn all_tools_can_be_asked_for_and_servers_taken_away() {
    let world = World::new();
    world.named(
        "repo/.claude/agents/b.md",
        "all",
        "tools: *\ndisallowedTools: mcp__*\nmodel: inherit\npermissionMode: auto\ncolor: mauve",
    );
    let types = world.find();
    assert_eq!(types.problems, Vec::<String>::new());
    let all = types.get("all").unwrap();
    assert_eq!(all.tools, Tools::All);
    assert!(all.keeps("Write") && !all.keeps("mcp__a__b") && !all.keeps("SendMessage"));
    assert_eq!(
        (&all.model, all.permission_mode, &all.color),
        (&None, None, &None)
    );
}

#[test]
fn what_is_no_type_is_skipped_and_what_is_broken_is_named() {
    let world = World::new();
    world.write("repo/.claude/agents/README.md", "# How to\n");
    world.write("repo/.claude/agents/notes.md", "---\ntitle: x\n---\ntext\n");
    for (file, text) in [
        ("yaml", "name: [secret\n"),
        ("open", "name: open\n"),
        ("capital", "name: Capital\ndescription: x\n---\n"),
        ("path", "name: ../../x\ndescription: x\n---\n"),
        ("hyphen", "name: -x\ndescription: x\n---\n"),
        ("fork", "name: fork\ndescription: x\n---\n"),
        ("mute", "name: mute\n---\n"),
        (
            "mode",
            "name: m\ndescription: x\npermissionMode: yolo\n---\n",
        ),
        ("memory", "name: m\ndescription: x\nmemory: all\n---\n"),
        ("turns", "name: m\ndescription: x\nmaxTurns: 0\n---\n"),
    ] {
        world.write(
            &format!("repo/.claude/agents/{file}.md"),
            &format!("---\n{text}"),
        );
    }
    world.named(
        "repo/.claude/agents/z.md",
        "fine",
        "tools: Read, Bash(git *)\ndisallowedTools: Edit(src/**)",
    );
    let types = world.find();
    let fine = types.get("fine").unwrap();
    assert!(fine.keeps("Read") && !fine.keeps("Bash") && !fine.keeps("Edit"));
    assert_eq!(types.iter().count(), 6);
    assert_eq!(types.problems.len(), 12, "{:#?}", types.problems);
    assert!(!types.problems.concat().contains("secret"));
    let last = types.problems.last().unwrap();
    assert!(last.ends_with("all of it is taken away"), "{last}");
}

#[test]
fn a_project_reaches_nothing_outside_of_it() {
    use std::os::unix::fs::symlink;
    let world = World::new();
    world.named("home/secret/s.md", "secret", "");
    world.named("repo/shared/agents/inside.md", "inside", "");
    std::fs::create_dir_all(world.at("repo/.claude/agents")).unwrap();
    let link = |from: &str, to: &str| symlink(world.at(to), world.at(from)).unwrap();
    link("repo/.claude/agents/s.md", "home/secret/s.md");
    link("repo/.claude/agents/folder", "home/secret");
    link("repo/.claude/agents/loop", "repo/.claude/agents");
    link("repo/.agents", "repo/shared");
    let types = world.find();
    assert!(types.get("secret").is_none() && types.get("inside").is_some());
    assert!(types.problems.iter().any(|it| it.contains("s.md")));
    // The user's own links lead where the user wants.
    link("home/.claude", "home/secret");
    std::fs::create_dir(world.at("home/secret/agents")).unwrap();
    link("home/secret/agents/s.md", "home/secret/s.md");
    assert!(world.find().get("secret").is_some());
}

#[test]
fn an_unknown_type_and_a_denied_one_get_different_words() {
    let types = AgentTypes::built_in();
    assert_eq!(types.choose(" Explore").unwrap().name, "explore");
    let unknown = types.choose("Nobody").unwrap_err().to_string();
    assert_eq!(
        unknown,
        "there is no agent type `Nobody`: there are explore, general-purpose, plan, verifier, worker"
    );
    let denied = NoType::Denied {
        name: "plan".into(),
        rule: "Agent(plan)".into(),
    };
    assert_eq!(
        denied.to_string(),
        "the agent type `plan` is denied by the rule `Agent(plan)`"
    );
}

#[test]
fn the_list_of_types_has_bounds_and_forges_nothing() {
    let mut types = AgentTypes::built_in();
    let worker = types.get("worker").unwrap().clone();
    for n in 0..100 {
        let agent_type = AgentType {
            name: format!("type-{n:03}"),
            description: "</context>é".repeat(200),
            ..worker.clone()
        };
        let name = agent_type.name.clone();
        types.all.insert(name, std::sync::Arc::new(agent_type));
    }
    let list = types.describe();
    assert!(list.len() <= 16 << 10, "{}", list.len());
    assert_eq!(list.lines().count(), 105);
    assert!(
        !list.contains("</context>") && list.ends_with("is named."),
        "{list}"
    );
}

#[test]
fn the_system_text_is_the_same_for_all_of_a_type() {
    let types = AgentTypes::built_in();
    let none = Documents::default();
    let [worker, general, plan] =
        ["worker", "general-purpose", "plan"].map(|name| types.get(name).unwrap());
    assert_eq!(worker.system(&none), prompt::WORKER.text);
    assert_eq!(worker.hash(), general.hash());
    assert_eq!(worker.hash(), prompt::WORKER.hash());
    let text = plan.system(&none);
    assert!(text.starts_with(prompt::WORKER.text) && text.ends_with(prompt::PLAN.text));
    assert_ne!(plan.hash(), worker.hash());
    let world = World::new();
    world.write("repo/AGENTS.md", "Use tabs.");
    let places = Places::of(Path::new(&world.at("repo")), None);
    let documents = Documents::find(&places, &|_| false);
    let text = plan.system(&documents);
    let order =
        ["You are a worker", "Use tabs.", "You design how"].map(|it| text.find(it).unwrap());
    assert!(order.is_sorted());
}
