//! Programs are found on a PATH or skipped, and one that a small script stands in for is measured.

use super::*;

/// Asks the server that its variable names, as a program would, and waits for the word.
const STAND_IN: &str = r#"#!/bin/bash
[ "$1" = "-p" ] && [ -n "$ANTHROPIC_API_KEY" ] || exit 3
address="${ANTHROPIC_BASE_URL#http://}"
exec 3<>"/dev/tcp/${address%:*}/${address#*:}"
body='{"stream":true}'
printf 'POST /v1/messages HTTP/1.1\r\ncontent-length: %s\r\n\r\n%s' "${#body}" "$body" >&3
while read -r line <&3; do
  case "$line" in *message_stop*) exit 0 ;; esac
done
exit 4
"#;

fn install(folder: &Path, name: &str, text: &str) {
    let file = folder.join(name);
    std::fs::write(&file, text).unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&file, mode).unwrap();
}

#[test]
fn a_program_is_found_where_it_can_be_run() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().as_os_str();
    assert_eq!(find("codex", path), None);
    std::fs::write(temp.path().join("codex"), "no program").unwrap();
    assert_eq!(find("codex", path), None, "nobody may run it");
    install(temp.path(), "codex", "#!/bin/sh\n");
    assert_eq!(find("codex", path), Some(temp.path().join("codex")));
    std::fs::create_dir(temp.path().join("gemini")).unwrap();
    assert_eq!(find("gemini", path), None, "a folder");
}

#[test]
fn who_is_installed_is_measured_and_who_is_not_is_named() {
    let temp = tempfile::tempdir().unwrap();
    install(temp.path(), "claude", STAND_IN);
    // It is asked as gaffer is, and knows as much.
    let binary = temp.path().join("ours");
    install(
        temp.path(),
        "ours",
        &STAND_IN.replace("-n \"$ANTHROPIC_API_KEY\"", "-n \"$HOME\""),
    );
    let path = temp.path().as_os_str();
    let peers = [claude::PEER, codex::PEER];
    let report = compare_all(&peers, &binary, path, 2).unwrap();
    let json = serde_json::Value::Object(report.json());
    let names: Vec<&str> = json["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["what"].as_str())
        .collect();
    let want = [
        "claude",
        "gaffer, in turn with claude",
        "claude by gaffer",
        "not installed: codex",
    ];
    assert_eq!(names, want);
}

#[test]
fn one_that_fails_is_left_out() {
    let temp = tempfile::tempdir().unwrap();
    install(
        temp.path(),
        "ours",
        &STAND_IN.replace("-n \"$ANTHROPIC_API_KEY\"", "-n \"$HOME\""),
    );
    install(temp.path(), "claude", &STAND_IN.replace("exit 0", "exit 7"));
    let binary = temp.path().join("ours");
    let report = compare_all(&[claude::PEER], &binary, temp.path().as_os_str(), 1).unwrap();
    let text = report.text();
    assert!(!text.contains("claude by gaffer"), "{text}");
    assert!(text.contains("left out: claude"), "{text}");
}
