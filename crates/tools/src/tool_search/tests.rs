//! Tools that come, are loaded, and go.

use super::*;
use crate::testing::{call, context, text};
use serde_json::json;

#[derive(Debug)]
struct Fake(ToolSpec);

impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn access(&self) -> Access {
        Access::Writes
    }

    fn call<'a>(&'a self, _: &'a ToolInput, _: &'a Context) -> BoxFuture<'a, Output> {
        Box::pin(async move { Output::text(format!("{} ran", self.0.name)) })
    }
}

fn fake(name: &str, description: &str) -> Arc<dyn Tool> {
    Arc::new(Fake(ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        schema: Json::of(&json!({"type": "object", "title": name})),
    }))
}

fn pool() -> Pool {
    let pool = Pool::default();
    for (name, about) in [
        (
            "mcp__github__create_issue",
            "Opens a new issue in a repository.",
        ),
        (
            "mcp__github__list_issues",
            "Lists the issues of a repository.",
        ),
        (
            "mcp__mail__send",
            "Sends a letter, also about repositories.",
        ),
        ("NotebookEdit", "Changes a cell of a notebook."),
    ] {
        pool.defer(fake(name, about));
    }
    pool
}

fn names(pool: &Pool) -> Vec<String> {
    let loaded = pool.loaded();
    loaded.iter().map(|tool| tool.spec().name.clone()).collect()
}

#[tokio::test]
async fn tools_are_loaded_by_name_and_called_from_then_on() {
    let pool = pool();
    let tool = tool(pool.clone()).unwrap();
    assert!(tool.spec().description.ends_with(
        "NotebookEdit, mcp__github__create_issue, mcp__github__list_issues, mcp__mail__send."
    ));
    assert!(pool.get("NotebookEdit").is_none());
    let hint = pool.hint("NotebookEdit").unwrap();
    assert!(hint.contains("select:NotebookEdit") && pool.hint("None").is_none());

    let input = json!({"query": "select: NotebookEdit,None,mcp__mail__send,NotebookEdit"});
    let (said, is_error) = call(&*tool, input).await;
    assert!(!is_error);
    assert_eq!(
        said,
        "Loaded, and can be called now:\n\nNotebookEdit: Changes a cell of a notebook.\n\
         Input: {\"type\":\"object\",\"title\":\"NotebookEdit\"}\n\nmcp__mail__send: Sends a \
         letter, also about repositories.\nInput: \
         {\"type\":\"object\",\"title\":\"mcp__mail__send\"}\n\nThere is no None."
    );
    assert_eq!(names(&pool), ["NotebookEdit", "mcp__mail__send"]);
    let loaded = pool.get("NotebookEdit").unwrap();
    assert_eq!(
        call(&*loaded, json!({})).await,
        ("NotebookEdit ran".into(), false)
    );
    // What one agent loads is not loaded for another, who has the same tools.
    let other = pool.view();
    assert!(other.get("NotebookEdit").is_none() && !other.is_empty());

    let (said, is_error) = call(&*tool, json!({"query": "select:None"})).await;
    assert!(is_error && said.contains("No tool fits") && said.contains("NotebookEdit, mcp__"));
}

#[tokio::test]
async fn words_find_tools_by_name_and_description() {
    for (query, most, want) in [
        (
            "issue",
            None,
            &["mcp__github__create_issue", "mcp__github__list_issues"][..],
        ),
        (
            "list issues",
            None,
            &["mcp__github__list_issues", "mcp__github__create_issue"],
        ),
        ("github", Some(1), &["mcp__github__create_issue"]),
        ("EDIT a notebook", Some(1), &["NotebookEdit"]),
        ("letters", None, &["mcp__mail__send"]),
        ("weather", None, &[]),
        ("letter", None, &["mcp__mail__send"]),
        (
            "repositor",
            None,
            &[
                "mcp__github__create_issue",
                "mcp__github__list_issues",
                "mcp__mail__send",
            ],
        ),
        ("", None, &[]),
    ] {
        let pool = pool();
        let all = pool.all();
        let found = search(&all, query, most.unwrap_or(DEFAULT_RESULTS));
        let found: Vec<&str> = found.iter().map(|tool| tool.spec().name.as_str()).collect();
        assert_eq!(found, want, "{query}");
        let tool = tool(pool.clone()).unwrap();
        let (_, is_error) = call(&*tool, json!({"query": query, "max_results": most})).await;
        assert_eq!(is_error, want.is_empty(), "{query}");
        assert_eq!(pool.loaded().len(), want.len(), "{query}");
    }
}

#[tokio::test]
async fn tools_come_and_go() {
    let pool = Pool::default();
    assert!(tool(pool.clone()).is_none() && pool.is_empty());
    let first = pool.version();
    pool.defer(fake("a", "x"));
    let second = pool.version();
    assert!(second > first);
    let search = tool(pool.clone()).unwrap();
    pool.defer(fake("late", "came later"));
    assert!(!call(&*search, json!({"query": "select:late,a"})).await.1);
    assert_eq!(names(&pool), ["a", "late"]);
    let version = pool.version();
    assert!(pool.remove("late") && !pool.remove("late"));
    assert_eq!(pool.version(), version + 1);
    assert_eq!(names(&pool), ["a"]);

    let gone = pool.get("late").unwrap();
    let output = gone.call(&ToolInput::from_text("{}"), &context()).await;
    assert!(output.is_error && text(&output).contains("late is no longer there"));
    assert!(pool.hint("late").is_none());
    // It may come back.
    pool.defer(fake("late", "is back"));
    assert_eq!(
        call(&*pool.get("late").unwrap(), json!({})).await.0,
        "late ran"
    );
    assert!(pool.remove("late") && pool.remove("a"));
    let (said, is_error) = call(&*search, json!({"query": "a"})).await;
    assert!(is_error && said.contains("no more tools"), "{said}");
}

#[test]
fn the_names_in_the_description_have_bounds() {
    let pool = Pool::default();
    for n in 0..1000 {
        pool.defer(fake(&format!("mcp__server__tool_{n:04}"), "x"));
    }
    let tool = tool(pool).unwrap();
    let description = &tool.spec().description;
    assert!(description.len() < LARGEST_LIST + 30 && description.ends_with(" more."));
    assert_eq!(
        words("mcp__Git2Hub__readFile_now HTTP"),
        ["mcp", "git2", "hub", "read", "file", "now", "http"]
    );
}
