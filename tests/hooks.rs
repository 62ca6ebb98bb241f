//! The user's hooks around a real run: what they hear, what they forbid, change and add.

use crate::harness::{Place, Ran, run};
use serde_json::{Value, json};

const WRITES: &str = "agents: [{ steps: [{ calls: [{ tool: Write, as: w, input: { file_path: new.txt, content: hi } }] }, { save: { said: { of: w } }, say: '${said}' }] }]";

impl Place {
    fn hooks(&self, hooks: &Value) {
        let settings = json!({"hooks": hooks});
        self.write("home/.gaffer/settings.json", &settings.to_string());
    }

    /// What the hook of this name has heard, one value each time.
    fn heard(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.home().join(name)).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// A hook that keeps what it hears in a file of this name, then does something.
fn keeps(name: &str, then: &str) -> Value {
    let command = format!("cat >> \"$HOME/{name}\"; {then}");
    json!([{"hooks": [{"type": "command", "command": command}]}])
}

fn go(place: &Place, script: &str, more: &[&str]) -> Ran {
    let args = [&["-p", "go", "--output-format", "stream-json"], more].concat();
    run(place.scripted(script, &args))
}

#[test]
fn every_moment_of_a_session_is_told_in_order() {
    let place = Place::new();
    let moments = [
        "SessionStart",
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
        "Stop",
        "SessionEnd",
    ];
    let mut hooks = json!({});
    for moment in moments {
        hooks[moment] = keeps("all", "");
    }
    place.hooks(&hooks);
    let ran = go(&place, WRITES, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let heard = place.heard("all");
    let names: Vec<&str> = heard
        .iter()
        .filter_map(|it| it["hook_event_name"].as_str())
        .collect();
    assert_eq!(names, moments);
    for event in &heard {
        assert_eq!(event["cwd"], json!(place.project()));
        let transcript = event["transcript_path"].as_str().unwrap();
        assert!(std::path::Path::new(transcript).exists());
        assert_eq!(event["permission_mode"], "acceptEdits");
    }
    assert_eq!(heard[0]["source"], "startup");
    assert_eq!(heard[1]["prompt"], "go");
    assert_eq!(heard[2]["tool_input"]["file_path"], "new.txt");
    assert_eq!(heard[2]["tool_use_id"], heard[3]["tool_use_id"]);
    assert!(heard[3]["tool_response"]["content"].is_string());
    assert_eq!(heard[4]["stop_hook_active"], false);
}

#[test]
fn a_hook_refuses_a_call_and_the_model_hears_why() {
    let place = Place::new();
    place.hooks(&json!({"PreToolUse": [{"matcher": "Write|Edit", "hooks": [
        {"type": "command", "command": "echo 'not on a Sunday' >&2; exit 2"}
    ]}]}));
    let ran = go(&place, WRITES, &["--permission-mode", "bypassPermissions"]);
    let result = ran.result();
    assert!(
        result["result"]
            .as_str()
            .unwrap()
            .contains("not on a Sunday"),
        "{result}"
    );
    assert_eq!(result["permission_denials"][0]["tool_name"], "Write");
    assert!(!place.project().join("new.txt").exists());
}

#[test]
fn a_hook_changes_what_is_called_and_what_comes_back() {
    let place = Place::new();
    let change = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","updatedInput":{"file_path":"other.txt","content":"from the hook"},"additionalContext":"renamed"}}'"#;
    let rewrite = r#"echo '{"hookSpecificOutput":{"hookEventName":"PostToolUse","updatedToolOutput":"as the hook tells it"}}'"#;
    place.hooks(&json!({
        "PreToolUse": [{"hooks": [{"type": "command", "command": change}]}],
        "PostToolUse": [{"hooks": [{"type": "command", "command": rewrite}]}],
    }));
    let ran = go(&place, WRITES, &[]);
    let said = ran.result()["result"].as_str().unwrap().to_owned();
    assert!(said.contains("as the hook tells it"), "{said}");
    assert!(said.contains("renamed"), "{said}");
    let written = std::fs::read_to_string(place.project().join("other.txt")).unwrap();
    assert_eq!(written, "from the hook");
    assert!(!place.project().join("new.txt").exists());
}

#[test]
fn an_input_that_a_hook_changed_is_judged_anew() {
    let place = Place::new();
    for (input, why) in [
        (
            r#"{"file_path":"secret.txt","content":"x"}"#,
            "The deny rule",
        ),
        (r#"{"path":3}"#, "not to one that fits"),
    ] {
        let change = format!(
            r#"echo '{{"hookSpecificOutput":{{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{input}}}}}'"#
        );
        place.hooks(&json!({"PreToolUse": [{"hooks": [{"type": "command", "command": change}]}]}));
        let ran = go(&place, WRITES, &["--disallowedTools", "Edit(secret.txt)"]);
        let said = ran.result()["result"].as_str().unwrap().to_owned();
        assert!(said.contains(why), "{said}");
        assert!(!place.project().join("secret.txt").exists());
    }
}

#[test]
fn a_hook_answers_questions_but_not_for_rules_that_ask() {
    let allow = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'"#;
    let grant = r#"echo '{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}'"#;
    let ask = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"}}'"#;
    let rows = [
        ("PreToolUse", allow, "{}", "default", true),
        (
            "PreToolUse",
            allow,
            r#"{"ask": ["Write"]}"#,
            "default",
            false,
        ),
        (
            "PreToolUse",
            allow,
            r#"{"deny": ["Edit(*.txt)"]}"#,
            "default",
            false,
        ),
        ("PreToolUse", ask, "{}", "acceptEdits", false),
        ("PermissionRequest", grant, "{}", "default", true),
        ("PermissionRequest", grant, "{}", "dontAsk", false),
        ("PermissionRequest", "exit 0", "{}", "default", false),
        (
            "PermissionRequest",
            grant,
            r#"{"deny": ["Edit(*.txt)"]}"#,
            "default",
            false,
        ),
    ];
    for (event, command, permissions, mode, runs) in rows {
        let place = Place::new();
        let permissions: Value = serde_json::from_str(permissions).unwrap();
        let settings = json!({
            "permissions": permissions,
            "hooks": {event: [{"hooks": [{"type": "command", "command": command}]}]},
        });
        place.write("home/.gaffer/settings.json", &settings.to_string());
        let ran = go(&place, WRITES, &["--permission-mode", mode]);
        assert_eq!(
            place.project().join("new.txt").exists(),
            runs,
            "{event} {command} {settings}: {ran:?}"
        );
    }
}

#[test]
fn conditions_are_permission_rules() {
    let place = Place::new();
    let refuse = "exit 2";
    place.hooks(&json!({"PreToolUse": [{"hooks": [
        {"type": "command", "command": refuse, "if": "Bash(rm *)"}
    ]}]}));
    let script = "agents: [{ steps: [{ calls: [
        { tool: Bash, as: a, input: { command: 'touch kept && ls' } },
        { tool: Bash, as: b, input: { command: 'cd . && rm kept' } } ] }, { say: Done. }] }]";
    let ran = go(&place, script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(place.project().join("kept").exists());
    let denials = ran.result()["permission_denials"].clone();
    assert_eq!(denials.as_array().unwrap().len(), 1, "{denials}");
}

#[test]
fn a_guard_that_fails_guards_unless_settings_say_otherwise() {
    for (on_timeout, runs) in [(json!({}), false), (json!({"PreToolUse": "pass"}), true)] {
        let place = Place::new();
        let settings = json!({
            "onHookTimeout": on_timeout,
            "hooks": {"PreToolUse": [{"hooks": [
                {"type": "command", "command": "sleep 60", "timeout": 0.2}
            ]}]},
        });
        place.write("home/.gaffer/settings.json", &settings.to_string());
        let ran = go(&place, WRITES, &[]);
        assert_eq!(place.project().join("new.txt").exists(), runs, "{ran:?}");
        let notices: Vec<Value> = ran
            .events()
            .into_iter()
            .filter(|event| event["subtype"] == "notice")
            .collect();
        assert_eq!(notices.len(), 1, "{ran:?}");
        let text = notices[0]["text"].as_str().unwrap();
        assert!(
            text.contains("sleep 60") && text.contains("0.2 s"),
            "{text}"
        );
    }
}

#[test]
fn hooks_make_an_agent_go_on_but_not_for_ever() {
    let place = Place::new();
    place.hooks(&json!({"Stop": keeps("stops", "echo 'the tests are red' >&2; exit 2")}));
    let say = "{ say: Done. }, ".repeat(9);
    let script = format!("agents: [{{ steps: [{say}] }}]");
    let ran = go(&place, &script, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let heard = place.heard("stops");
    assert_eq!(heard.len(), 9, "held eight times, then let go");
    assert_eq!(heard[0]["stop_hook_active"], false);
    assert_eq!(heard[1]["stop_hook_active"], true);
    assert_eq!(heard[1]["last_assistant_message"], "Done.");
    let told = |event: &Value| event["origin"]["kind"] == "hook";
    let told: Vec<Value> = ran.events().into_iter().filter(told).collect();
    assert_eq!(told.len(), 8);
    assert_eq!(
        told[0]["message"]["content"][0]["text"],
        "the tests are red"
    );
    assert!(ran.out.contains("8 times in a row"), "{}", ran.out);
}

#[test]
fn a_refused_prompt_never_reaches_the_model() {
    let place = Place::new();
    place.hooks(
        &json!({"UserPromptSubmit": keeps("prompts", "echo 'no secrets here' >&2; exit 2")}),
    );
    let ran = go(&place, "agents: [{ steps: [] }]", &[]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    let result = ran.result();
    assert_eq!(result["terminal_reason"], "denied", "{result}");
    assert!(
        result["errors"][0]
            .as_str()
            .unwrap()
            .contains("no secrets here"),
        "{result}"
    );
    assert_eq!(result["num_turns"], 0);
}

#[test]
fn hooks_add_context_and_end_the_work() {
    let place = Place::new();
    place.hooks(&json!({
        "SessionStart": [{"hooks": [{"type": "command", "command": "echo the branch is frozen"}]}],
        "PostToolUse": [{"hooks": [{"type": "command", "command": "echo '{\"continue\": false, \"stopReason\": \"enough\"}'"}]}],
    }));
    let ran = go(&place, WRITES, &[]);
    assert_eq!(ran.code, Some(4), "{ran:?}");
    assert!(ran.out.contains("the branch is frozen"), "{}", ran.out);
    let result = ran.result();
    assert_eq!(result["terminal_reason"], "denied", "{result}");
    assert!(result["errors"][0].as_str().unwrap().contains("enough"));
    assert!(
        place.project().join("new.txt").exists(),
        "what was done stays done"
    );
    assert_eq!(place.fold().messages.len(), 3, "the result was recorded");
}

#[test]
fn hooks_can_be_switched_off_by_the_user_but_not_by_a_project() {
    for (file, runs) in [
        ("home/.gaffer/settings.json", true),
        ("project/.gaffer/settings.json", false),
    ] {
        let place = Place::new();
        let refuse = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}]});
        place.write(file, &json!({"disableAllHooks": true}).to_string());
        let args = [
            "--settings",
            &place
                .write("more.json", &json!({"hooks": refuse}).to_string())
                .display()
                .to_string(),
        ]
        .map(str::to_owned);
        let script = place.write("script.yaml", WRITES).display().to_string();
        let ran = run(place.gaffer(&[
            "-p",
            "go",
            "--mode",
            "normal",
            "--provider",
            "scripted",
            "--model",
            &script,
            &args[0],
            &args[1],
        ]));
        assert_eq!(
            place.project().join("new.txt").exists(),
            runs,
            "{file}: {ran:?}"
        );
    }
}

#[test]
fn a_hook_that_nobody_waits_for_does_not_hold_up_the_work() {
    let place = Place::new();
    place.hooks(&json!({"PreToolUse": [{"hooks": [
        {"type": "command", "async": true, "command": "touch \"$HOME/began\"; sleep 600"}
    ]}]}));
    let began = std::time::Instant::now();
    let ran = go(&place, WRITES, &[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(began.elapsed().as_secs() < 300);
    assert!(place.project().join("new.txt").exists());
}

#[test]
fn half_a_json_from_a_guard_refuses_and_says_so() {
    let place = Place::new();
    place.hooks(&json!({"PreToolUse": [{"hooks": [
        {"type": "command", "command": "echo '{\"hookSpecificOutput\": {\"hookEventName\"'"}
    ]}]}));
    let ran = go(&place, WRITES, &[]);
    assert!(!place.project().join("new.txt").exists(), "{ran:?}");
    let said = ran.result()["result"].as_str().unwrap().to_owned();
    assert!(said.contains("cannot be used"), "{said}");
}
