//! Fetching: what servers answer, how long and how much.

use super::super::fetch::Summarise;
use super::*;

#[tokio::test]
async fn pages_come_as_markdown_text_or_json() {
    let server = Server::start(|path| match path {
        "/html" => page(
            "text/html; charset=iso-8859-1",
            b"<title>T</title><h1>Caf\xe9</h1><script>x</script><a href=/b>b</a>",
        ),
        "/json" => page("application/json", "{\"a\":1}"),
        "/text" => page("text/plain", "<b>as it is</b>"),
        "/empty" => reply("204 No Content", "", ""),
        _ => page("", "no type"),
    })
    .await;
    let rows = [
        (
            "/html",
            format!(" – T]\n\n# Café\n\n[b](http://{}/b)", server.at),
        ),
        ("/json#part", "]\n\n{\n  \"a\": 1\n}".to_owned()),
        ("/text", "]\n\n<b>as it is</b>".to_owned()),
        ("/empty", "no text; it may be made by scripts.]".to_owned()),
        ("/other", "]\n\nno type".to_owned()),
    ];
    for (path, want) in rows {
        let (text, is_error) = fetch(&server.url(path), LOCAL).await;
        let from = server.url(path.trim_end_matches("#part"));
        assert!(!is_error && text.ends_with(&want), "{path}: {text}");
        assert!(text.starts_with(&format!("[{from}")), "{path}: {text}");
    }
    let head = server.heard.lock().unwrap()[0].to_ascii_lowercase();
    assert!(head.contains("user-agent: gaffer/") && !head.contains("accept-encoding"));
    assert!(!head.contains("cookie") && !head.contains("referer"));
}

#[tokio::test]
async fn failures_of_the_server_are_told() {
    let server = Server::start(|path| match path {
        "/404" => reply("404 Not Found", "content-type: text/html\r\n", "<p>gone"),
        "/500" => reply(
            "500 Internal Server Error",
            "content-type: application/json\r\n",
            "{\"error\":  \"no luck\"}",
        ),
        "/pdf" => page("application/pdf; x=y", vec![b'%'; 1234]),
        "/gzip" => reply(
            "200 OK",
            "content-type: text/html\r\ncontent-encoding: gzip\r\n",
            "x",
        ),
        "/binary" => page("text/plain", "\0\x01\x02"),
        "/cut" => vec![(
            0,
            b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\ncontent-type: text/plain\r\n\r\nabc"
                .to_vec(),
        )],
        "/304" => reply("304 Not Modified", "", ""),
        "/302" => reply("302 Found", "", ""),
        _ => vec![(0, b"nonsense\r\n\r\n".to_vec())],
    })
    .await;
    for (path, want) in [
        ("/404", "answered 404 Not Found."),
        (
            "/500",
            "answered 500 Internal Server Error: {\"error\": \"no luck\"}.",
        ),
        (
            "/pdf",
            "its content is application/pdf; x=y (1234 bytes), which cannot",
        ),
        ("/gzip", "compressed (gzip), unasked"),
        ("/binary", "it is no text"),
        ("/cut", "broke off after 3 bytes"),
        ("/304", "answered 304"),
        ("/302", "redirects without saying where to"),
        ("/nonsense", "Cannot fetch http://127.0.0.1"),
    ] {
        assert_error(&server.url(path), LOCAL, want).await;
    }
    let gone = Server::start(|_| vec![]).await.url("/");
    assert_error(&gone, LOCAL, "Cannot fetch").await;
}

#[tokio::test]
async fn redirects_stay_on_their_host_and_are_checked_each_time() {
    let server = Server::start(|path| match path {
        "/one" => redirect("two?x=1"),
        "/two?x=1" => page("text/plain", "arrived"),
        "/loop" => redirect("/loop"),
        "/elsewhere" => redirect("http://127.0.0.2:1/there"),
        "/port" => redirect("http://127.0.0.1:1/there"),
        "/private" => redirect("http://10.0.0.1/"),
        "/metadata" => redirect("http://0xa9fea9fe/latest"),
        "/file" => redirect("file:///etc/passwd"),
        "/login" => redirect("http://u:p@127.0.0.1/"),
        "/name" => redirect("http://inside.example/"),
        _ => redirect("http://["),
    })
    .await;
    let allow = &["127.0.0.0/8"];
    let (text, is_error) = fetch(&server.url("/one"), allow).await;
    assert!(
        !is_error && text.ends_with("/two?x=1]\n\narrived"),
        "{text}"
    );
    for (path, to) in [
        (
            "/elsewhere",
            "http://127.0.0.2:1/there. Nothing was fetched",
        ),
        ("/port", "http://127.0.0.1:1/there. Nothing was fetched"),
        ("/name", "https://inside.example/. Nothing was fetched"),
    ] {
        let (text, is_error) = fetch(&server.url(path), allow).await;
        assert!(!is_error && text.contains(to), "{text}");
    }
    let before = server.requests();
    assert_error(&server.url("/loop"), allow, "more than 5 redirects").await;
    assert_eq!(server.requests() - before, 6);
    for (path, want) in [
        ("/private", "10.0.0.1 (private)"),
        ("/metadata", "169.254.169.254 (link-local)"),
        (
            "/file",
            "redirects to file:///etc/passwd: only http and https",
        ),
        ("/login", "user name or password"),
        ("/else", "redirects to http://["),
    ] {
        assert_error(&server.url(path), allow, want).await;
    }
}

#[tokio::test]
async fn www_may_come_and_go() {
    let server = Server::start(|path| match path {
        "/" => page("text/plain", "arrived"),
        to => redirect(&format!("http://www.a.example:{}/", &to[1..])),
    })
    .await;
    let port = server.at.port();
    let tool = tool(web(&["a.example", "www.a.example"], limits()).without_upgrade());
    let url = format!("http://a.example:{port}/{port}");
    let (text, is_error) = call(&*tool, json!({"url": url, "prompt": ""})).await;
    assert!(!is_error && text.contains("www.a.example"), "{text}");
    assert!(text.ends_with("arrived"), "{text}");
}

#[tokio::test]
async fn size_and_time_have_limits() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";
    let server = Server::start(move |path| match path {
        "/large" => page("text/plain", "x".repeat(5000)),
        "/endless" => {
            let mut pieces = vec![(0, head.to_vec())];
            pieces.extend((0..100).map(|_| (0, vec![b'x'; 100_000])));
            pieces
        }
        "/drip" => {
            let mut pieces = vec![(0, head.to_vec())];
            pieces.extend((0..1000).map(|_| (20, vec![b'x'])));
            pieces
        }
        "/loris" => head.iter().map(|byte| (20, vec![*byte])).collect(),
        _ => vec![(60_000, head.to_vec())],
    })
    .await;
    for path in ["/large", "/endless"] {
        let (text, is_error) = fetch(&server.url(path), LOCAL).await;
        assert!(!is_error && text.contains(&"x".repeat(1000)), "{text}");
        assert!(!text.contains(&"x".repeat(1001)));
        assert!(text.contains("goes on: more than 0 characters"), "{text}");
    }
    let short = Limits {
        time: Duration::from_millis(200),
        ..limits()
    };
    let tool = tool(web(LOCAL, short));
    for path in ["/drip", "/loris", "/silent"] {
        let began = std::time::Instant::now();
        let (text, is_error) = call(&*tool, json!({"url": server.url(path), "prompt": ""})).await;
        assert!(is_error && text.contains("longer than 0.2 s"), "{text}");
        assert!(began.elapsed() < Duration::from_secs(3), "{path}");
    }
}

#[derive(Debug)]
struct Reader(bool);

impl Summarise for Reader {
    fn answer<'a>(
        &'a self,
        page: &'a str,
        prompt: &'a str,
    ) -> BoxFuture<'a, Result<String, String>> {
        let answer = format!("{prompt} {}", page.ends_with("text"));
        let answer = if self.0 {
            Ok(answer)
        } else {
            Err("busy".to_owned())
        };
        Box::pin(async move { answer })
    }
}

#[tokio::test]
async fn a_page_is_fetched_once_and_read_for_each_prompt() {
    let server = Server::start(|_| page("text/plain", "the text")).await;
    let web = Arc::new(web(LOCAL, limits()));
    let reads = erase(WebFetch::new(web.clone(), Some(Arc::new(Reader(true)))));
    let fails = erase(WebFetch::new(web, Some(Arc::new(Reader(false)))));
    let ask = async |tool: &Arc<dyn Tool>, prompt: &str| {
        let url = server.url("/#somewhere");
        call(&**tool, json!({"url": url, "prompt": prompt})).await
    };
    assert_eq!(ask(&reads, "one?").await, ("one? true".into(), false));
    assert_eq!(ask(&reads, "two?").await, ("two? true".into(), false));
    let (text, is_error) = ask(&fails, "three?").await;
    assert!(!is_error && text.contains("not answered (busy)") && text.ends_with("the text"));
    assert!(ask(&reads, " ").await.0.ends_with("]\n\nthe text"));
    assert_eq!(server.requests(), 1);
}
