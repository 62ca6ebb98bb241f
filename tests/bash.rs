//! The Bash tool with its real warden: what carries over, what goes to the background, what ends.

use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{Json, ResultPart};
use gaffer_tools::bash::Bash;
use gaffer_tools::{Context, erase};
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

struct Place {
    temp: tempfile::TempDir,
    context: Context,
}

fn place() -> Place {
    let temp = tempfile::tempdir().unwrap();
    let at = |name: &str| temp.path().join(name);
    for folder in ["project/sub", "spill", "tmp", "outside"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    let program = Path::new(env!("CARGO_BIN_EXE_gaffer"));
    let mut context = Context::in_folder(
        &at("project").canonicalize().unwrap(),
        &at("spill"),
        &at("tmp"),
        program,
    );
    context.hidden = vec!["GAFFER_TEST_HIDDEN".to_owned()].into();
    Place { temp, context }
}

impl Place {
    async fn call(&self, input: Value) -> (String, bool) {
        let tool = erase(Bash);
        let output = tool
            .call(&ToolInput::Json(Json::of(&input)), &self.context)
            .await;
        let ResultPart::Text(text) = &output.parts[0] else {
            panic!("no text")
        };
        (text.clone(), output.is_error)
    }

    async fn run(&self, command: &str) -> (String, bool) {
        self.call(json!({"command": command})).await
    }
}

#[tokio::test]
async fn what_a_command_says_and_how_it_ends() {
    let place = place();
    for (command, text, is_error) in [
        ("echo hi; echo oh >&2", "hi\noh", false),
        ("true", "[no output]", false),
        ("echo no; exit 2", "no\n[exit code 2]", true),
        ("kill -9 $$", "[no output]\n[ended by signal 9]", true),
        ("cat", "[no output]", false),
        ("echo \"$0 $# [$1]\"", "bash 0 []", false),
        ("if", "bash: eval: line", true),
    ] {
        let (said, error) = place.run(command).await;
        assert!(
            error == is_error && said.starts_with(text),
            "{command}: {said:?}"
        );
    }
    assert!(place.run("a\0b").await.1);
    assert!(
        place
            .call(json!({}))
            .await
            .0
            .contains("Give either `command`")
    );
}

#[tokio::test]
async fn folder_and_variables_carry_over() {
    let place = place();
    place
        .run("cd sub; export GREETING='hello there'; LOCAL=1; touch made")
        .await;
    let (text, _) = place.run("pwd; echo \"$GREETING[$LOCAL]\"; ls").await;
    let sub = place
        .temp
        .path()
        .join("project/sub")
        .canonicalize()
        .unwrap();
    assert_eq!(text, format!("{}\nhello there[]\nmade", sub.display()));
    // Also when the command fails.
    place.run("export LATER=yes; cd ..; false").await;
    assert!(
        place
            .run("pwd; echo $LATER")
            .await
            .0
            .ends_with("project\nyes")
    );
    let (text, _) = place.run("cd ../outside").await;
    assert!(text.contains("is outside the ones to work in"), "{text}");
    assert!(place.run("pwd").await.0.ends_with("/project"));
}

#[tokio::test]
async fn nothing_can_be_asked_of_the_user() {
    let place = place();
    let (text, _) = place.run("tty; (echo x > /dev/tty) 2>/dev/null && echo terminal; read line || echo closed; echo $TMPDIR").await;
    assert!(
        text.starts_with("not a tty\nclosed\n") && text.ends_with("/tmp"),
        "{text}"
    );
}

#[tokio::test]
async fn a_command_past_its_time_goes_on_in_the_background() {
    let place = place();
    let began = Instant::now();
    let (text, is_error) = place
        .call(json!({"command": "echo one; sleep 0.6; echo two; sleep 300", "timeout": 200}))
        .await;
    assert!(
        !is_error
            && text.starts_with(
                "one\n[After 0.2 s it still runs. It runs in the background as job bash_1"
            ),
        "{text}"
    );
    assert!(began.elapsed() < Duration::from_secs(5));
    let mut seen = String::new();
    while !seen.contains("two") {
        let (text, _) = place.call(json!({"job": "bash_1"})).await;
        assert!(text.ends_with("[Job bash_1 still runs.]"), "{text}");
        seen.push_str(&text);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(seen.matches("two").count(), 1);
    let (text, _) = place.call(json!({"job": "bash_1", "stop": true})).await;
    assert!(
        text.contains("stopped, with everything it started"),
        "{text}"
    );
    assert!(place.context.jobs.alive().is_empty());
    let (text, is_error) = place.call(json!({"job": "bash_9"})).await;
    assert!(
        is_error && text.contains("There is no job `bash_9`. None runs."),
        "{text}"
    );
}

#[tokio::test]
async fn background_on_request_and_what_is_left_running() {
    let place = place();
    let (text, _) = place
        .call(json!({"command": "echo up; sleep 300", "run_in_background": true}))
        .await;
    assert!(text.contains("job bash_1"), "{text}");
    let (text, _) = place.run("sleep 301 & echo started").await;
    assert!(
        text.starts_with("started\n[What it left running is job bash_2.]"),
        "{text}"
    );
    assert_eq!(place.context.jobs.alive().len(), 2);
    place.context.jobs.end_all().await.unwrap();
    assert!(place.context.jobs.alive().is_empty());
}

#[tokio::test]
async fn a_call_that_is_dropped_takes_its_command_along() {
    let place = place();
    let call = place.run("sleep 300 & sleep 301");
    drop(tokio::time::timeout(Duration::from_millis(300), call).await);
    let alive = place.context.jobs.alive();
    for entry in &alive {
        entry.job.gone().await;
    }
    assert!(place.context.jobs.alive().is_empty());
}

#[tokio::test]
async fn long_output_is_cut_in_the_middle_and_kept_in_a_file() {
    let place = place();
    let (text, _) = place.run("seq 20000").await;
    assert!(
        text.len() < 31_000 && text.starts_with("1\n2\n") && text.ends_with("20000"),
        "{}",
        text.len()
    );
    let file = place.temp.path().join("spill/bash_1.txt");
    assert!(text.contains(&format!("the whole is in {}", file.display())));
    assert_eq!(
        std::fs::read_to_string(file).unwrap().lines().count(),
        20_000
    );
}
