//! Who says which mode a session has.

use crate::harness::{Place, run};
use std::process::Command;

const HELLO: &str = "agents: [{ steps: [{ say: Hello. }] }]";

/// The program with nothing on its command line that names a mode.
fn plain(place: &Place, settings: &str) -> Command {
    let script = place.write("s.yaml", HELLO).display().to_string();
    place.write("home/.gaffer/settings.json", settings);
    place.gaffer(&[
        "-p",
        "go",
        "--output-format",
        "stream-json",
        "--provider",
        "scripted",
        "--model",
        &script,
    ])
}

fn mode(command: Command) -> String {
    let ran = run(command);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    ran.events()[0]["mode"].as_str().unwrap().to_owned()
}

#[cfg(feature = "coordinator")]
#[test]
fn the_command_line_goes_before_the_variable_and_that_before_the_settings() {
    let place = Place::new();
    assert_eq!(mode(plain(&place, "{}")), "coordinator");
    let normal = r#"{"mode": "normal"}"#;
    assert_eq!(mode(plain(&place, normal)), "normal");
    for (value, want) in [
        ("1", "coordinator"),
        ("on", "coordinator"),
        ("YES", "coordinator"),
        ("0", "normal"),
        ("off", "normal"),
        ("False", "normal"),
    ] {
        let mut command = plain(&place, normal);
        command.env("GAFFER_COORDINATOR_MODE", value);
        assert_eq!(mode(command), want, "{value}");
        let mut command = plain(&place, normal);
        command
            .env("GAFFER_COORDINATOR_MODE", value)
            .args(["--mode", "coordinator"]);
        assert_eq!(mode(command), "coordinator");
    }
}

#[test]
fn a_variable_that_says_neither_is_named() {
    let place = Place::new();
    let mut command = plain(&place, "{}");
    command.env("GAFFER_COORDINATOR_MODE", "perhaps");
    let ran = run(command);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.err.contains("GAFFER_COORDINATOR_MODE is `perhaps`"),
        "{ran:?}"
    );
}

#[cfg(not(feature = "coordinator"))]
#[test]
fn a_build_without_the_coordinator_says_so_and_is_normal() {
    let place = Place::new();
    assert_eq!(mode(plain(&place, "{}")), "normal");
    let mut command = plain(&place, "{}");
    command.args(["--mode", "coordinator"]);
    let ran = run(command);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.err.contains("no coordinator mode"), "{ran:?}");
    let program = std::fs::read(env!("CARGO_BIN_EXE_gaffer")).unwrap();
    let prompt = b"You are the coordinator of a crew";
    let is_there = program.windows(prompt.len()).any(|window| window == prompt);
    assert!(
        !is_there,
        "none of the coordinator's text is in the program"
    );
}
