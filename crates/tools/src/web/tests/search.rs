//! Searching: what is asked of a server, and what is told of its answer.

use super::super::search::*;
use super::*;
use url::Url;

fn searxng(server: &Server, path: &str, searches: Searches) -> Arc<dyn Tool> {
    let base = Url::parse(&server.url(path)).unwrap();
    let engine = SearxNg::new(&base, limits());
    erase(WebSearch::new(Some(Arc::new(engine)), searches).unwrap())
}

#[tokio::test]
async fn results_come_with_title_address_and_extract() {
    let server = Server::start(|_| {
        let mut results = vec![
            json!({"url": "https://a.example/1", "title": "One\n ", "content": "The  first."}),
            json!({"url": "https://b.a.example/2", "title": "Two", "content": null}),
            json!({"url": "https://aa.example/3", "title": "Three", "content": "x".repeat(900)}),
            json!({"url": "ftp://a.example/4", "title": "Four"}),
            json!({"title": "Five"}),
        ];
        results.extend((0..20).map(|n| json!({"url": format!("https://c.example/{n}")})));
        let body = json!({"query": "q", "results": results, "answers": []});
        page("application/json", body.to_string())
    })
    .await;
    let tool = searxng(&server, "/sub/", Searches::default());
    let (text, is_error) = call(&*tool, json!({"query": " rust & co "})).await;
    assert!(!is_error);
    let hits: Vec<&str> = text.split("\n\n").collect();
    assert_eq!(hits.len(), 10);
    assert_eq!(hits[0], "One\nhttps://a.example/1\nThe first.");
    assert_eq!(
        hits[2].len(),
        "Three\nhttps://aa.example/3\n".len() + 500 + '…'.len_utf8()
    );

    let input = json!({"query": "q", "allowed_domains": ["*.A.example"], "blocked_domains": ["b.a.example"]});
    let (text, _) = call(&*tool, input).await;
    assert_eq!(text, "One\nhttps://a.example/1\nThe first.");
    let (text, _) = call(
        &*tool,
        json!({"query": "q", "allowed_domains": ["z.example"]}),
    )
    .await;
    assert_eq!(
        text,
        "Nothing was found in the domains that were asked for."
    );
    let (text, is_error) = call(&*tool, json!({"query": "q", "blocked_domains": ["a b"]})).await;
    assert!(is_error && text.contains("`a b` is no domain"));
    assert!(call(&*tool, json!({"query": " "})).await.1);

    let heard = server.heard.lock().unwrap();
    let paths: Vec<&str> = heard
        .iter()
        .map(|head| head.split(' ').nth(1).unwrap())
        .collect();
    assert_eq!(
        paths,
        [
            "/sub/search?q=rust+%26+co&format=json",
            "/sub/search?q=q+site%3Aa.example+-site%3Ab.a.example&format=json",
            "/sub/search?q=q+site%3Az.example&format=json",
        ]
    );
}

#[tokio::test]
async fn failures_of_the_engine_are_told() {
    let server = Server::start(|path| match path.split('?').next().unwrap() {
        "/off/search" => reply("403 Forbidden", "content-type: text/html\r\n", "no"),
        "/html/search" => page("text/html", "<p>a page"),
        "/odd/search" => page("application/json", "[]"),
        "/moved/search" => redirect("https://elsewhere.example/"),
        "/loop/search" => redirect("/loop/search"),
        _ => page("application/json", "{\"results\": []}"),
    })
    .await;
    for (path, want, wants_error) in [
        ("/off", "json among search.formats", true),
        ("/html", "its content is text/html (9 bytes)", true),
        ("/odd", "not as expected", true),
        ("/moved", "moved to https://elsewhere.example/", true),
        ("/loop", "more than 0 redirects", true),
        ("/search", "Nothing was found.", false),
    ] {
        let tool = searxng(&server, path, Searches::default());
        let (text, is_error) = call(&*tool, json!({"query": "q"})).await;
        assert!(
            is_error == wants_error && text.contains(want),
            "{path}: {text}"
        );
    }
}

#[derive(Debug)]
struct Own;

impl SearchEngine for Own {
    fn search<'a>(&'a self, query: &'a Query) -> BoxFuture<'a, Result<Findings, String>> {
        let hit = Hit {
            title: query.text.clone(),
            url: "https://a.example".to_owned(),
            snippet: String::new(),
        };
        Box::pin(async move {
            Ok(Findings {
                hits: vec![hit],
                words: String::new(),
            })
        })
    }
}

#[tokio::test]
async fn searches_are_counted_for_all_agents_together() {
    assert!(WebSearch::new(None, Searches::default()).is_none());
    assert!(super::super::searxng("http://127.0.0.1:8888").is_ok());
    assert!(super::super::searxng("127.0.0.1:8888").is_err());
    let searches = Searches::new(3);
    let tool = || erase(WebSearch::new(Some(Arc::new(Own)), searches.clone()).unwrap());
    let (one, two) = (tool(), tool());
    for tool in [&one, &two, &one] {
        assert!(!call(&**tool, json!({"query": "q"})).await.1);
    }
    let (text, is_error) = call(&*two, json!({"query": "q"})).await;
    assert!(is_error && text.contains("used up"), "{text}");
}
