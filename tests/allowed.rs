//! What the program lets an agent do: the sandbox, rules and modes, folders, what searches show.

use crate::harness::{Place, run};

#[test]
fn commands_run_in_the_sandbox_unless_it_is_off() {
    let place = Place::new();
    let command = "echo x > ../escaped || echo held";
    let script = format!(
        "agents: [{{ steps: [{{ calls: [{{ tool: Bash, input: {{ command: '{command}' }} }}] }}, {{ say: Done. }}] }}]"
    );
    for (args, escaped) in [
        (&["-p", "go"][..], false),
        (
            &[
                "-p",
                "go",
                "--sandbox",
                "off",
                "--permission-mode",
                "bypassPermissions",
            ],
            true,
        ),
    ] {
        let ran = run(place.scripted(&script, args));
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(
            place.root.path().join("escaped").exists(),
            escaped,
            "{args:?}"
        );
    }
}

#[test]
fn a_command_leaves_the_sandbox_only_where_the_user_lets_it() {
    let place = Place::new();
    let command = "make -s";
    let script = format!(
        "agents: [{{ steps: [{{ calls: [{{ tool: Bash, input: {{ command: '{command}', dangerouslyDisableSandbox: true }} }}] }}, {{ say: Done. }}] }}]"
    );
    place.write("bin/make", "#!/bin/sh\necho x > ../escaped\n");
    let make = place.root.path().join("bin/make");
    let mut mode = std::fs::metadata(&make).unwrap().permissions();
    std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o755);
    std::fs::set_permissions(&make, mode).unwrap();
    let bypass = ["--permission-mode", "bypassPermissions"];
    let rule = ["--allowed-tools", "Bash(make *)"];
    let lets = r#"{"sandbox": {"allowUnsandboxedCommands": true}}"#;
    let rows: [(&str, &str, &[&str], bool); 6] = [
        ("{}", "{}", &bypass, false),
        ("{}", lets, &bypass, false),
        (lets, "{}", &[], false),
        (lets, r#"{"permissions": {"allow": ["Bash"]}}"#, &[], false),
        (lets, "{}", &rule, true),
        (lets, "{}", &bypass, true),
    ];
    for (user, project, args, escapes) in rows {
        let escaped = place.root.path().join("escaped");
        drop(std::fs::remove_file(&escaped));
        place.write("home/.gaffer/settings.json", user);
        place.write("project/.gaffer/settings.json", project);
        let mut command = place.scripted(&script, &[&["-p", "go"], args].concat());
        let path = std::env::var("PATH").unwrap_or_default();
        let bin = place.root.path().join("bin");
        command.env("PATH", format!("{}:{path}", bin.display()));
        let ran = run(command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(
            escaped.exists(),
            escapes,
            "{user} {project} {args:?}: {ran:?}"
        );
    }
}

#[test]
fn other_folders_are_opened_only_when_added() {
    let place = Place::new();
    let more = place
        .write("more/note.txt", "a note")
        .parent()
        .unwrap()
        .display()
        .to_string();
    let script = "agents: [{ steps: [{ calls: [{ tool: Read, as: r, input: { file_path: ../more/note.txt } }, { tool: Bash, input: { command: 'echo y > ../more/new' } }] }, { save: { said: { of: r } }, say: '${said}' }] }]";
    let without = run(place.scripted(script, &["-p", "go"]));
    assert!(
        without.out.contains("is outside the folders"),
        "{without:?}"
    );
    let with = run(place.scripted(script, &["-p", "go", "--add-dir", &more]));
    assert!(with.out.contains("a note"), "{with:?}");
    assert!(place.root.path().join("more/new").exists());
}

const WRITES: &str = "agents: [{ steps: [{ calls: [{ tool: Write, as: w, input: { file_path: new.txt, content: hi } }] }, { save: { said: { of: w } }, say: '${said}' }] }]";

#[test]
fn what_is_not_allowed_is_not_done_and_is_listed() {
    for (args, allowed) in [
        (&["--permission-mode", "acceptEdits"][..], true),
        (&["--permission-mode", "default"], false),
        (
            &[
                "--permission-mode",
                "default",
                "--allowedTools",
                "Edit(new.txt) Read",
            ],
            true,
        ),
        (&["--permission-mode", "plan"], false),
        (&["--disallowedTools", "Write(new.txt)"], false),
        (
            &[
                "--permission-mode",
                "bypassPermissions",
                "--disallowed-tools",
                "Edit(*.txt)",
            ],
            false,
        ),
        (&[], true),
    ] {
        let place = Place::new();
        let all = [&["-p", "go", "--output-format", "json"], args].concat();
        let ran = run(place.scripted(WRITES, &all));
        assert_eq!(
            place.project().join("new.txt").exists(),
            allowed,
            "{args:?}: {ran:?}"
        );
        let result = ran.result();
        let denials = result["permission_denials"].as_array().unwrap();
        assert_eq!(denials.is_empty(), allowed, "{args:?}: {denials:?}");
        if !allowed {
            assert_eq!(denials[0]["tool_name"], "Write");
            assert!(
                result["result"]
                    .as_str()
                    .unwrap()
                    .starts_with("Not allowed, and not carried out:")
            );
        }
    }
}

#[test]
fn a_tool_that_is_denied_whole_is_not_there() {
    let place = Place::new();
    let args = ["-p", "go", "--disallowedTools", "Write", "--output-format"];
    let ran = run(place.scripted(WRITES, &[&args[..], &["stream-json"]].concat()));
    let tools = ran.events()[0]["tools"].to_string();
    assert!(
        !tools.contains("Write") && tools.contains("Edit"),
        "{tools}"
    );
    assert!(ran.out.contains("There is no tool `Write`"), "{}", ran.out);
    assert!(!place.project().join("new.txt").exists());
}

#[test]
fn rules_of_settings_hold_and_a_project_cannot_lift_them() {
    let place = Place::new();
    place.write(
        "home/.gaffer/settings.json",
        r#"{"permissions": {"deny": ["Edit(new.txt)"]}}"#,
    );
    place.write(
        "project/.claude/settings.json",
        r#"{"permissions": {"allow": ["Write", "Edit"]}}"#,
    );
    let ran = run(place.scripted(WRITES, &["-p", "go"]));
    assert!(ran.out.contains("the user's settings"), "{ran:?}");
    assert!(!place.project().join("new.txt").exists());
    place.write(
        "project/.claude/settings.json",
        r#"{"permissions": {"defaultMode": "bypassPermissions"}}"#,
    );
    let ran = run(place.scripted(WRITES, &["-p", "go"]));
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("a project cannot set `bypassPermissions`"),
        "{}",
        ran.err
    );
    place.write(
        "project/.claude/settings.json",
        r#"{"permissions": {"deny": ["Bash(rm"]}}"#,
    );
    let ran = run(place.scripted(WRITES, &["-p", "go"]));
    assert_eq!(
        ran.code,
        Some(2),
        "a rule that cannot be read might be the one that forbids: {ran:?}"
    );
}

#[test]
fn the_users_list_of_git_is_found_through_the_environment() {
    let script = "agents: [{ steps: [{ calls: [{ tool: Grep, input: { pattern: needle } }] }, { say: Done. }] }]";
    let found = |place: &Place, variables: &[(&str, &str)]| {
        let mut command = place.scripted(script, &["-p", "go", "--output-format", "stream-json"]);
        command.envs(variables.iter().copied());
        let ran = run(command);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        ["a.swp", "b.bak", "c.tmp"].map(|name| ran.out.contains(name))
    };
    let place = Place::new();
    place.write("project/.git/config", "");
    for name in ["a.swp", "b.bak", "c.tmp"] {
        place.write(&format!("project/{name}"), "needle");
    }
    assert_eq!(found(&place, &[]), [true, true, true]);
    place.write("home/.config/git/ignore", "*.swp");
    assert_eq!(found(&place, &[]), [false, true, true]);
    let other = place.write("other/git/ignore", "*.bak");
    let other = other.ancestors().nth(2).unwrap().display().to_string();
    let variables = [("XDG_CONFIG_HOME", other.as_str())];
    assert_eq!(found(&place, &variables), [true, false, true]);
    place.write("home/mine", "*.tmp");
    place.write("home/.gitconfig", "[core]\n\texcludesFile = ~/mine\n");
    assert_eq!(found(&place, &[]), [true, true, false]);
}

#[test]
fn glob_obeys_gitignore_where_the_settings_say_so() {
    let script = "agents: [{ steps: [{ calls: [{ tool: Glob, input: { pattern: '*.log' } }] }, { say: Done. }] }]";
    let place = Place::new();
    place.write("project/.git/config", "");
    place.write("project/.gitignore", "old.log");
    place.write("project/new.log", "");
    place.write("project/old.log", "");
    for (settings, shows_old) in [
        ("{}", true),
        (r#"{"globRespectsGitignore": true}"#, false),
        (r#"{"globRespectsGitignore": false}"#, true),
    ] {
        place.write("project/.gaffer/settings.json", settings);
        let args = ["-p", "go", "--output-format", "stream-json"];
        let ran = run(place.scripted(script, &args));
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{settings}");
        assert!(ran.out.contains("new.log"), "{settings}");
        assert_eq!(ran.out.contains("old.log"), shows_old, "{settings}");
    }
    let shown = run(place.gaffer(&["config", "globRespectsGitignore"])).out;
    assert!(
        shown.starts_with("globRespectsGitignore = false    (project:"),
        "{shown}"
    );
}
