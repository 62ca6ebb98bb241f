//! What settings and folders add to an agent's tools: pages, searches, skills, further folders.

use crate::harness::{Place, run};
use gaffer_testkit::web::{Page, Pages};
use serde_json::json;

fn fetch(address: &str) -> String {
    format!(
        "agents: [{{ type: general-purpose, steps: [{{ calls: [{{ tool: WebFetch, as: w, input: {{ url: '{address}', prompt: 'What is the price?' }} }}] }}, {{ save: {{ said: {{ of: w }} }}, say: '${{said}}' }}] }}, {{ type: web-fetch, steps: [{{ say: It costs nine. }}] }}]"
    )
}

#[test]
fn private_pages_are_fetched_only_where_the_user_allows_it() {
    let place = Place::new();
    let pages = Pages::serve([("/", Page::html("<h1>Till</h1><p>Price: nine</p>"))]);
    let script = fetch(&pages.address("/"));
    let one = "agents: [{ steps: [{ calls: [{ tool: WebFetch, as: w, input: { url: 'ADDRESS', prompt: x } }] }, { save: { said: { of: w } }, say: '${said}' }] }]";
    let one = one.replace("ADDRESS", &pages.address("/"));
    let refused = run(place.scripted(&one, &["-p", "go"]));
    assert!(refused.out.contains("Cannot fetch"), "{refused:?}");
    assert_eq!(pages.asked().len(), 0);
    place.write(
        "project/.gaffer/settings.json",
        &json!({"web": {"allow": ["127.0.0.1"]}}).to_string(),
    );
    let refused = run(place.scripted(&one, &["-p", "go"]));
    assert!(refused.out.contains("Cannot fetch"), "{refused:?}");
    assert!(
        refused.err.contains("`web` is left out"),
        "a project cannot open the network: {refused:?}"
    );
    place.write(
        "home/.gaffer/settings.json",
        &json!({"web": {"allow": ["127.0.0.1"]}}).to_string(),
    );
    let page = run(place.scripted(&one, &["-p", "go"]));
    assert!(page.out.contains("# Till"), "{page:?}");
    place.write(
        "home/.gaffer/settings.json",
        &json!({"web": {"allow": ["127.0.0.1"]}, "smallModel": "small"}).to_string(),
    );
    let answered = run(place.scripted(&script, &["-p", "go"]));
    assert_eq!(answered.out.trim(), "It costs nine.", "{answered:?}");
    // The two agents are counted, and the small model's answer with them.
    let script = script.replace(
        "say: It costs nine.",
        "say: It costs nine., usage: { input: 1000, output: 7 }, model: small-1",
    );
    let counted = run(place.scripted(&script, &["-p", "go", "--output-format", "json"]));
    let small = &counted.result()["modelUsage"]["small-1"];
    assert_eq!(small["inputTokens"], 1000, "{counted:?}");
}

#[test]
fn searches_exist_only_with_an_engine() {
    let place = Place::new();
    let hits = json!({"results": [{"title": "A till", "url": "https://till.example/", "content": "Counts money."}]});
    let pages = Pages::serve([("/search", Page::json(&hits.to_string()))]);
    let script = "agents: [{ steps: [{ calls: [{ tool: WebSearch, as: s, input: { query: till } }] }, { save: { said: { of: s } }, say: '${said}' }] }]";
    let without = run(place.scripted(script, &["-p", "go"]));
    assert!(
        without.out.contains("There is no tool `WebSearch`"),
        "{without:?}"
    );
    place.write(
        "home/.gaffer/settings.json",
        &json!({"web": {"search": {"searxng": pages.address("/")}}}).to_string(),
    );
    let with = run(place.scripted(script, &["-p", "go"]));
    assert!(with.out.contains("https://till.example/"), "{with:?}");
    place.write(
        "home/.gaffer/settings.json",
        &json!({"web": {"search": {"searxng": "ftp://x"}}}).to_string(),
    );
    let wrong = run(place.scripted(script, &["-p", "go"]));
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}

#[test]
fn skills_are_read_with_their_files() {
    let place = Place::new();
    place.write(
        "home/.agents/skills/release/SKILL.md",
        "---\ndescription: How to release\n---\nRelease $ARGUMENTS as notes.md says.\n",
    );
    place.write(
        "home/.agents/skills/release/notes.md",
        "Tag it, then push.\n",
    );
    place.write(
        "project/.claude/skills/deploy/SKILL.md",
        "---\ndescription: How to deploy\n---\nCarefully.\n",
    );
    let notes = place.home().join(".agents/skills/release/notes.md");
    let script = format!(
        "agents: [{{ steps: [{{ calls: [{{ tool: Skill, as: s, input: {{ skill: release, args: v2 }} }}, {{ tool: Skill, as: d, input: {{ skill: deploy }} }}, {{ tool: Read, as: r, input: {{ file_path: '{}' }} }}, {{ tool: Write, as: w, input: {{ file_path: '{}', content: x }} }}] }}, {{ save: {{ s: {{ of: s }}, d: {{ of: d }}, r: {{ of: r }}, w: {{ of: w }} }}, say: '${{s}} ${{d}} ${{r}} ${{w}}' }}] }}]",
        notes.display(),
        notes.display(),
    );
    let ran = run(place.scripted(&script, &["-p", "go"]));
    assert!(ran.out.contains("Release v2 as notes.md says."), "{ran:?}");
    assert!(ran.out.contains("Carefully."), "{ran:?}");
    assert!(ran.out.contains("Tag it, then push."), "{ran:?}");
    let kept = std::fs::read_to_string(notes).unwrap();
    assert_eq!(kept, "Tag it, then push.\n", "skills are read, not written");
}

#[test]
fn settings_add_folders_but_a_project_adds_none() {
    let place = Place::new();
    let note = place.write("more/note.txt", "a note");
    let more = note.parent().unwrap().display().to_string();
    let script = "agents: [{ steps: [{ calls: [{ tool: Read, as: r, input: { file_path: ../more/note.txt } }] }, { save: { said: { of: r } }, say: '${said}' }] }]";
    let settings = json!({"permissions": {"additionalDirectories": [more]}}).to_string();
    place.write("project/.gaffer/settings.json", &settings);
    let project = run(place.scripted(script, &["-p", "go"]));
    assert!(!project.out.contains("a note"), "{project:?}");
    assert!(project.err.contains("additionalDirectories"), "{project:?}");
    place.write("home/.gaffer/settings.json", &settings);
    let user = run(place.scripted(script, &["-p", "go"]));
    assert!(user.out.contains("a note"), "{user:?}");
}
