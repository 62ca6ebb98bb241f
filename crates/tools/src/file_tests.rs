//! The file tools together: what is read may be changed, what changed meanwhile may not.

use crate::edit::Edit;
use crate::notebook_edit::NotebookEdit;
use crate::read::Read;
use crate::walk::testing::Tree;
use crate::write::Write;
use crate::{Context, Run, erase};
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{Json, ResultPart};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

struct Place {
    temp: tempfile::TempDir,
    context: Context,
}

impl Place {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let at = |name: &str| temp.path().join(name);
        for folder in ["project/src", "spill", "tmp"] {
            std::fs::create_dir_all(at(folder)).unwrap();
        }
        let context = Context::in_folder(&at("project"), &at("spill"), &at("tmp"), &at("none"));
        Self { temp, context }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join("project").join(name)
    }

    fn put(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).unwrap();
    }

    fn get(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap()
    }

    async fn call<T: Run + 'static>(&self, tool: T, input: Value) -> (String, bool) {
        let output = erase(tool)
            .call(&ToolInput::Json(Json::of(&input)), &self.context)
            .await;
        let text = output.parts.iter().map(|part| match part {
            ResultPart::Text(text) => text.clone(),
            ResultPart::Image(image) => format!("<{} {}>", image.media_type, image.data.len()),
        });
        (text.collect(), output.is_error)
    }

    async fn read(&self, name: &str) -> (String, bool) {
        self.call(Read, json!({"file_path": name})).await
    }

    async fn edit(&self, name: &str, old: &str, new: &str) -> (String, bool) {
        self.call(
            Edit,
            json!({"file_path": name, "old_string": old, "new_string": new}),
        )
        .await
    }
}

#[tokio::test]
async fn what_was_read_before_is_not_shown_again() {
    let place = Place::new();
    let first = "quince\n".repeat(100);
    place.put("a", &first);
    let (shown, _) = place.read("a").await;
    assert!(shown.len() > 500);
    let (again, is_error) = place.read("a").await;
    assert!(again.contains("The same") && again.len() < 60 && !is_error);
    let other = json!({"file_path": "a", "offset": 2});
    assert!(place.call(Read, other).await.0.len() > 500, "another part");
    place.put("a", "medlar\n".repeat(100));
    assert!(place.read("a").await.0.contains("medlar"), "it has changed");
    place.put("a", &first);
    assert_eq!(place.read("a").await.0, shown, "the last look was another");
    place.context.shown.forget();
    assert_eq!(place.read("a").await.0, shown, "nobody has it any more");
}

#[tokio::test]
async fn reading_numbers_lines_and_says_how_to_go_on() {
    let place = Place::new();
    place.put("a", "\u{feff}one\r\ntwo\nthree");
    assert_eq!(place.read("a").await.0, "1\tone\n2\ttwo\n3\tthree\n");
    let part = place
        .call(Read, json!({"file_path": "a", "offset": 2, "limit": 1}))
        .await;
    assert_eq!(
        part.0,
        "2\ttwo\n[The file goes on: read it with offset 3.]\n"
    );
    place.put("long", format!("{}\nb\n", "é".repeat(3000)));
    assert!(
        place
            .read("long")
            .await
            .0
            .contains("é [… 2000 more bytes]\n2\tb\n")
    );
    place.put("many", "x\n".repeat(5000));
    assert!(
        place
            .read("many")
            .await
            .0
            .ends_with("read it with offset 2001.]\n")
    );
    place.put("empty", "");
    assert_eq!(
        place.read("empty").await,
        ("[The file is empty.]".into(), false)
    );
}

#[tokio::test]
async fn what_cannot_be_read_is_said_with_what_is_near() {
    let place = Place::new();
    place.put("src/config.rs", "x");
    place.put("binary", b"\x7fELF\0\0");
    for (name, want) in [
        (
            "src/Conifg.rs",
            "there is no such file; did you mean src/config.rs?",
        ),
        ("nothing/like/it", "there is no such file"),
        ("src", "it is a folder; it holds config.rs"),
        ("binary", "it is not a text file"),
        (
            "../../../etc/passwd",
            "is outside the folders that may be used here",
        ),
        ("/dev/zero", "is outside"),
        ("", "is empty"),
        ("a\0b", "NUL byte"),
    ] {
        let (text, is_error) = place.read(name).await;
        assert!(is_error && text.contains(want), "{name}: {text}");
    }
    assert!(
        place
            .read(&"x/".repeat(2500))
            .await
            .0
            .contains("longer than 4,096 bytes")
    );
}

#[tokio::test]
async fn names_that_a_rule_hides_are_not_told() {
    let mut tree = Tree::new(&[("a", ""), ("key.pem", "")]);
    tree.deny(&["Read(key.pem)"]);
    for (name, want) in [(".", "it holds a."), ("kex.pem", "there is no such file.")] {
        let (text, _) = tree.call(&*erase(Read), json!({"file_path": name})).await;
        assert!(text.ends_with(want), "{name}: {text}");
    }
}

#[tokio::test]
async fn images_are_shown_by_what_they_are_not_by_their_name() {
    let place = Place::new();
    place.put("picture.txt", b"\x89PNG\r\n\x1a\n0000");
    assert_eq!(place.read("picture.txt").await.0, "<image/png 16>");
    place.put(
        "big.jpg",
        [b"\xff\xd8\xff".to_vec(), vec![0; 6 << 20]].concat(),
    );
    assert!(place.read("big.jpg").await.0.contains("more than 5 MB"));
}

#[tokio::test]
async fn a_file_is_changed_only_by_who_has_read_it_as_it_is() {
    let place = Place::new();
    place.put("f", "alpha\nbeta\n");
    assert!(
        place
            .edit("f", "alpha", "x")
            .await
            .0
            .contains("has not been read yet; read it first")
    );
    let write = json!({"file_path": "f", "content": "new"});
    assert!(place.call(Write, write.clone()).await.1);
    place.read("f").await;
    place.put("f", "alpha\nbeta\ngamma\n");
    let (text, is_error) = place.edit("f", "alpha", "x").await;
    assert!(
        is_error && text.contains("has changed since it was last read"),
        "{text}"
    );
    assert!(place.call(Write, write).await.0.contains("has changed"));
    place.read("f").await;
    assert!(!place.edit("f", "beta", "BETA").await.1);
    // One's own change needs no second look.
    let (text, is_error) = place.edit("f", "gamma", "GAMMA").await;
    assert_eq!(
        (text.as_str(), is_error),
        (
            "f changed. Now there is:\n1\talpha\n2\tBETA\n3\tGAMMA\n",
            false
        )
    );
    assert_eq!(place.get("f"), "alpha\nBETA\nGAMMA\n");
}

#[tokio::test]
async fn a_text_must_be_there_exactly_and_once() {
    let place = Place::new();
    place.put("f", "let a = 1;\nlet b = 1;\nlet a = 1;\n");
    place.read("f").await;
    for (old, want) in [
        ("let a = 1;", "stands there 2 times (lines 1, 3)"),
        (
            "let c = 1;",
            "is not there; line 1 is similar: \"let a = 1;\"",
        ),
        (
            "  let b = 1;",
            "line 2 begins like it, but what surrounds it differs",
        ),
        ("nothing of the kind at all", "`old_string` is not there."),
        ("", "`old_string` is empty, but the file exists"),
    ] {
        let (text, is_error) = place.edit("f", old, "x").await;
        assert!(is_error && text.contains(want), "{old}: {text}");
    }
    assert!(
        place
            .edit("f", "let", "let")
            .await
            .0
            .contains("are the same")
    );
    let all = json!({"file_path": "f", "old_string": "let a", "new_string": "let z", "replace_all": true});
    assert!(
        place
            .call(Edit, all)
            .await
            .0
            .starts_with("f changed in 2 places.")
    );
    assert_eq!(place.get("f"), "let z = 1;\nlet b = 1;\nlet z = 1;\n");
}

#[tokio::test]
async fn line_ends_byte_order_mark_and_mode_are_kept() {
    let place = Place::new();
    place.put("f", "\u{feff}one\r\ntwo\r\nthree\r\n");
    let mode = std::fs::Permissions::from_mode(0o754);
    std::fs::set_permissions(place.path("f"), mode).unwrap();
    place.read("f").await;
    let (text, is_error) = place.edit("f", "one\ntwo", "1\n2\n2b").await;
    assert!(!is_error, "{text}");
    assert_eq!(place.get("f"), "\u{feff}1\r\n2\r\n2b\r\nthree\r\n");
    assert_eq!(
        place.path("f").metadata().unwrap().permissions().mode() & 0o777,
        0o754
    );
    place.put("latin", b"caf\xe9\n");
    place.read("latin").await;
    assert!(
        place
            .edit("latin", "caf", "x")
            .await
            .0
            .contains("not UTF-8")
    );
}

#[tokio::test]
async fn new_files_come_with_their_folders() {
    let place = Place::new();
    let write = json!({"file_path": "deep/er/f.txt", "content": "a\nb\n"});
    assert_eq!(
        place.call(Write, write).await.0,
        "deep/er/f.txt created: 2 lines, 4 bytes."
    );
    assert_eq!(
        place.edit("made/by/edit", "", "text").await,
        ("made/by/edit created.".into(), false)
    );
    assert_eq!(place.get("made/by/edit"), "text");
    let outside = json!({"file_path": "../../escape", "content": "x"});
    assert!(place.call(Write, outside).await.1);
    let folder = json!({"file_path": "src", "content": "x"});
    assert!(place.call(Write, folder).await.0.contains("it is a folder"));
}

const BOOK: &str = "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 3,\n   \"id\": \"a1\",\n   \"metadata\": {},\n   \"outputs\": [\n    {\n     \"name\": \"stdout\",\n     \"output_type\": \"stream\",\n     \"text\": [\n      \"4\\n\"\n     ]\n    }\n   ],\n   \"source\": [\n    \"2 + 2\"\n   ]\n  },\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"b2\",\n   \"metadata\": {},\n   \"source\": [\n    \"# Title\\n\",\n    \"text\"\n   ]\n  }\n ],\n \"metadata\": {\n  \"z\": 1,\n  \"a\": 2\n },\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";

#[tokio::test]
async fn notebooks_are_read_by_cells_and_written_back_as_they_were() {
    let place = Place::new();
    place.put("n.ipynb", BOOK);
    let (text, _) = place.read("n.ipynb").await;
    assert_eq!(
        text,
        "<cell id=\"a1\" type=\"code\">\n2 + 2\n<output>\n4\n\n</output>\n</cell>\n<cell id=\"b2\" type=\"markdown\">\n# Title\ntext\n</cell>\n"
    );
    let replace =
        json!({"notebook_path": "n.ipynb", "cell_id": "b2", "new_source": "# Other\ntext"});
    assert_eq!(
        place.call(NotebookEdit, replace).await,
        ("Cell b2 replaced.".into(), false)
    );
    // Everything else is as it was, to the byte.
    assert_eq!(place.get("n.ipynb"), BOOK.replace("# Title", "# Other"));
    let insert = json!({"notebook_path": "n.ipynb", "cell_id": "a1", "new_source": "x", "cell_type": "code", "edit_mode": "insert"});
    assert_eq!(
        place.call(NotebookEdit, insert).await.0,
        "Cell new-2 inserted."
    );
    let code = json!({"notebook_path": "n.ipynb", "cell_id": "a1", "new_source": "3"});
    place.call(NotebookEdit, code).await;
    let delete = json!({"notebook_path": "n.ipynb", "cell_id": "b2", "edit_mode": "delete"});
    place.call(NotebookEdit, delete).await;
    let book: Value = serde_json::from_str(&place.get("n.ipynb")).unwrap();
    let ids: Vec<&str> = book["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["a1", "new-2"]);
    assert_eq!(book["cells"][0]["outputs"], json!([]));
    let unknown = json!({"notebook_path": "n.ipynb", "cell_id": "q"});
    assert!(
        place
            .call(NotebookEdit, unknown)
            .await
            .0
            .contains("the cells are a1, new-2")
    );
    place.put("bad.ipynb", "{}");
    assert!(place.read("bad.ipynb").await.0.contains("it has no cells"));
}

#[tokio::test]
async fn a_huge_line_costs_no_more_memory_than_is_shown() {
    let place = Place::new();
    let file = std::fs::File::create(place.path("huge")).unwrap();
    // Larger than what is taken into memory: a hole of 64 MB, then a line.
    file.set_len(64 << 20).unwrap();
    assert!(place.read("huge").await.0.contains("it is not a text file"));
    place.put("wide", "x".repeat(3 << 20));
    let (text, _) = place.read("wide").await;
    assert!(
        text.len() < 3000 && text.contains("more bytes]"),
        "{}",
        text.len()
    );
}
