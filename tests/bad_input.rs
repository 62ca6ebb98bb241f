//! What the user asks for and cannot have: one line that says what to do, exit code 2, nothing
//! written.

use crate::harness::{Place, Ran, run};
use gaffer_testkit::{Server, WireKind};
use std::process::Command;

fn refused(place: &Place, command: Command) -> Ran {
    let ran = run(command);
    assert_eq!(ran.code, Some(2), "{ran:#?}");
    assert_eq!(ran.out, "");
    assert!(!ran.err.contains("panicked"), "{}", ran.err);
    let left: Vec<_> = std::fs::read_dir(place.home()).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
    ran
}

fn says(args: &[&str], want: &str) {
    let place = Place::new();
    let ran = refused(&place, place.gaffer(args));
    assert!(ran.err.contains(want), "{args:?}: {}", ran.err);
}

#[test]
fn without_a_key_it_says_which_variable_to_set() {
    let place = Place::new();
    let ran = refused(&place, place.gaffer(&["-p", "go"]));
    assert_eq!(ran.err.lines().count(), 1);
    for want in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "gaffer demo"] {
        assert!(ran.err.contains(want), "{}", ran.err);
    }
    says(
        &["-p", "go", "--provider", "openai"],
        "set OPENAI_API_KEY (`gaffer demo` needs none)",
    );
    says(
        &["-p", "go", "--provider", "anthropic"],
        "set ANTHROPIC_API_KEY (`gaffer demo` needs none)",
    );
}

#[test]
fn flags_modes_and_providers_that_do_not_exist() {
    says(&["-p", "go", "--colour"], "--colour");
    says(
        &["-p", "go", "--mode", "turbo"],
        "the mode `turbo` is none of normal, coordinator",
    );
    says(
        &["-p", "go", "--mode", "Coordinator"],
        "the mode `Coordinator` is none of",
    );
    says(
        &["-p", "go", "--provider", "gemini"],
        "--provider `gemini` is none of anthropic, openai, openai-chat, scripted",
    );
    says(
        &["-p", "go", "--provider", "scripted"],
        "give it with --model FILE",
    );
    says(
        &["-p", "go", "--provider", "scripted", "--model", "none.yaml"],
        "cannot read the script none.yaml",
    );
    says(&["-p", "go", "--output-format", "xml"], "xml");
    says(&["-p", "go", "--max-turns", "many"], "many");
    says(&[], "gaffer -p");
}

#[test]
fn places_and_names_that_cannot_be() {
    let place = Place::new();
    let script = place.write("s.yaml", "agents: []").display().to_string();
    let with = |args: &[&str]| {
        let fixed = ["-p", "go", "--provider", "scripted", "--model", &script];
        refused(&place, place.gaffer(&[&fixed, args].concat())).err
    };
    assert!(with(&["--cwd", "/no/such/folder"]).contains("--cwd /no/such/folder: No such file"));
    assert!(with(&["--cwd", &script]).contains("not a folder"));
    assert!(with(&["--session-id", "../../etc"]).contains("--session-id"));
    assert!(with(&["--record", "/no/such/folder/x"]).contains("not a place for a file"));
    assert!(with(&["--settings", "none.json"]).contains("cannot read the settings none.json"));
}

#[test]
fn an_empty_prompt_is_refused() {
    let place = Place::new();
    let script = place.write("s.yaml", "agents: []").display().to_string();
    let ran = refused(
        &place,
        place.gaffer(&["-p", "  ", "--provider", "scripted", "--model", &script]),
    );
    assert!(ran.err.contains("the prompt is empty"), "{}", ran.err);
}

#[test]
fn broken_settings_are_named_with_file_line_and_what_was_expected() {
    let place = Place::new();
    let cases = [
        (
            "{\n \"maxTurns\": true\n}",
            "line 2, column 17: invalid type: boolean `true`, expected u32",
        ),
        (
            "{\n \"providers\": {\"openai\": {\"bseUrl\": \"x\"}}\n}",
            "unknown field `bseUrl`, expected one of `baseUrl`",
        ),
        ("{\"model\": ", "line 1"),
        (
            "{\"retry\": {\"overload\": \"soon\"}}",
            "`soon` is no duration: expected `250ms`, `2s`, `5m` or `2h`",
        ),
        ("[]", "line 1: expected an object"),
        ("{\"maxTurns\": 0}", "`maxTurns` is at least 1"),
        (
            "{\"providers\": {\"antropic\": {}}}",
            "`antropic`, which is none of anthropic,",
        ),
        (
            "{\"prices\": {\"m\": {\"input\": -1}}}",
            "the price of `m` is below zero",
        ),
    ];
    for (text, want) in cases {
        let file = place.write("broken.json", text).display().to_string();
        let ran = refused(&place, place.gaffer(&["-p", "go", "--settings", &file]));
        assert!(
            ran.err.contains(&file) && ran.err.contains(want),
            "{text}: {}",
            ran.err
        );
    }
}

#[test]
fn a_base_address_that_is_none_is_refused() {
    let place = Place::new();
    let server = Server::start("agents: []");
    let mut command = place.on_wire(WireKind::Anthropic, &server, &["-p", "go"]);
    command.env("ANTHROPIC_BASE_URL", "localhost:8080");
    let ran = refused(&place, command);
    assert!(
        ran.err
            .contains("`localhost:8080` is not an http or https address"),
        "{}",
        ran.err
    );
}

#[test]
fn a_mode_variable_with_another_word_is_named() {
    let place = Place::new();
    let mut command = place.gaffer(&["-p", "go"]);
    command.env("GAFFER_COORDINATOR_MODE", "maybe");
    let ran = refused(&place, command);
    assert!(
        ran.err.contains("GAFFER_COORDINATOR_MODE is `maybe`"),
        "{}",
        ran.err
    );
}

#[test]
fn a_session_that_exists_is_not_written_over() {
    let place = Place::new();
    let script = "agents: [{ steps: [{ say: Hi. }] }]";
    let args = ["-p", "go", "--session-id", "one"];
    assert_eq!(run(place.scripted(script, &args)).code, Some(0));
    let before = place.transcript();
    let again = run(place.scripted(script, &args));
    assert_eq!(again.code, Some(2));
    assert!(
        again.err.contains("the session `one` exists already"),
        "{}",
        again.err
    );
    assert_eq!(place.transcript(), before);
}

#[test]
fn headers_that_cannot_be_sent_are_refused_before_anything_is() {
    let place = Place::new();
    let settings = r#"{"providers": {"anthropic": {"baseUrl": "http://127.0.0.1:9", "headers": {"x y": "1"}}}}"#;
    let file = place.write("s.json", settings);
    let ran = refused(
        &place,
        place.gaffer(&["-p", "go", "--settings", file.to_str().unwrap()]),
    );
    assert!(
        ran.err.contains("the header `x y` has characters"),
        "{}",
        ran.err
    );
    let mut command = place.gaffer(&["-p", "go"]);
    command.env("ANTHROPIC_API_KEY", "sk-with-a-line-break\n");
    let ran = refused(&place, command);
    assert!(
        ran.err.contains("has characters that HTTP does not allow"),
        "{}",
        ran.err
    );
}

#[test]
fn config_shows_each_value_with_its_origin() {
    let place = Place::new();
    let own = place.write(
        "home/.gaffer/settings.json",
        r#"{"model": "m-1", "permissions": {"deny": ["Read(.env)"]}}"#,
    );
    let project = place.write(
        "project/.claude/settings.json",
        r#"{"permissions": {"deny": ["Bash(rm *)"]}}"#,
    );
    let ran = run(place.gaffer(&["config"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let want = [
        format!("model = \"m-1\"    (user: {})", own.display()),
        format!(
            "permissions.deny[0] = \"Read(.env)\"    (user: {})",
            own.display()
        ),
        format!(
            "permissions.deny[1] = \"Bash(rm *)\"    (project: {})",
            project.canonicalize().unwrap().display()
        ),
        "maxTurns = no limit    (default)".to_owned(),
    ];
    for line in want {
        assert!(ran.out.lines().any(|is| is == line), "{line}\n{}", ran.out);
    }
    let ran = run(place.gaffer(&["config", "permissions", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(json["permissions.deny[1]"]["level"], "project");
    assert_eq!(json.as_object().unwrap().len(), 2);
    let broken = place.write("project/.gaffer/settings.json", "{\n\"maxTurns\": -1}");
    let ran = run(place.gaffer(&["config"]));
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err.contains(&format!(
            "{}, line 2",
            broken.canonicalize().unwrap().display()
        )),
        "{}",
        ran.err
    );
}
