//! Which addresses are reached, by which names.

use super::*;
use std::sync::atomic::{AtomicUsize, Ordering};

#[tokio::test]
async fn what_may_not_be_asked_for_is_refused_before_anybody_is_asked() {
    for (url, want) in [
        (
            "file:///etc/passwd",
            "only http and https are fetched, not file",
        ),
        ("data:text/html,x", "not data"),
        ("javascript:x", "not javascript"),
        ("ftp://a.example/", "not ftp"),
        ("a.example/x", "no full address"),
        ("", "no full address"),
        ("https://", "empty host"),
        ("https://u@a.example/", "user name or password"),
        ("https://:p@a.example/", "user name or password"),
        ("http://127.0.0.1:9/", "127.0.0.1 (loopback)"),
        ("http://2130706433/", "127.0.0.1 (loopback)"),
        ("http://0x7f.1/", "127.0.0.1 (loopback)"),
        ("http://017700000001./", "127.0.0.1 (loopback)"),
        ("http://１２７.0.0.1/", "127.0.0.1 (loopback)"),
        ("http://[::1]/", "::1 (loopback)"),
        ("http://[::ffff:127.0.0.1]/", "(IPv4-mapped)"),
        ("http://[64:ff9b::7f00:1]/", "NAT64"),
        ("http://169.254.169.254/latest", "link-local"),
        (
            "https://inside.example/",
            "inside.example is at 10.0.0.1 (private)",
        ),
        ("https://INSIDE.example/", "inside.example is at 10.0.0.1"),
        ("https://nowhere.example/", "Cannot fetch"),
        ("https://unknown.example/", "no name unknown.example"),
    ] {
        assert_error(url, &[], want).await;
    }
    let long = format!("https://a.example/{}", "x".repeat(5000));
    assert_error(&long, &[], "longer than 4096 characters").await;
}

#[tokio::test]
async fn names_reach_what_was_checked_and_nothing_else() {
    let server = Server::start(|_| page("text/plain", "arrived")).await;
    let port = server.at.port();
    let get = async |host: &str, allow: &[&str], upgrade: bool| {
        let mut web = web(allow, limits());
        if !upgrade {
            web = web.without_upgrade();
        }
        let url = format!("http://{host}:{port}/");
        call(&*tool(web), json!({"url": url, "prompt": ""})).await
    };
    // A name with a loopback address is only reached when it is allowed.
    let (text, is_error) = get("a.example", &[], false).await;
    assert!(
        is_error && text.contains("a.example is at 127.0.0.1"),
        "{text}"
    );
    assert_eq!(server.requests(), 0);
    // By its own name, in Unicode or Punycode, or by its address.
    for (host, allow) in [
        ("a.example", "a.example"),
        ("bücher.example", "127.0.0.1"),
        ("BÜCHER.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "bücher.example"),
    ] {
        let (text, is_error) = get(host, &[allow], false).await;
        assert!(!is_error && text.ends_with("arrived"), "{host}: {text}");
    }
    let heard = server.heard.lock().unwrap().join("\n");
    assert!(heard.contains("host: xn--bcher-kva.example"), "{heard}");
    // Of several addresses only those that are allowed are tried.
    let (text, is_error) = get("mixed.example", LOCAL, false).await;
    assert!(!is_error && text.ends_with("arrived"), "{text}");
    // Names are asked over https, whatever was said.
    let before = server.requests();
    let (_, is_error) = get("a.example", LOCAL, true).await;
    assert!(is_error && server.requests() > before);
    let hello = server.heard.lock().unwrap().pop().unwrap();
    assert!(hello.starts_with('\u{16}') && hello.contains("a.example"));
}

/// A name that means something else each time it is asked for.
#[derive(Debug, Default)]
struct Rebinding(AtomicUsize);

impl Lookup for Rebinding {
    fn lookup(&self, _: String) -> BoxFuture<'static, io::Result<Vec<IpAddr>>> {
        let asked = self.0.fetch_add(1, Ordering::SeqCst);
        // 192.0.2.1 stands in for a public address: it is allowed, and nothing is there.
        let address = if asked == 0 { "192.0.2.1" } else { "127.0.0.1" };
        Box::pin(async move { Ok(vec![address.parse().unwrap()]) })
    }
}

#[tokio::test]
async fn a_name_that_changes_its_address_gains_nothing() {
    let server = Server::start(|_| page("text/plain", "secret")).await;
    let names = Arc::new(Rebinding::default());
    let allow = Allow::parse(["192.0.2.1"]).unwrap();
    let short = Limits {
        time: Duration::from_millis(300),
        ..limits()
    };
    let web = Web::with_lookup(allow, short, names.clone()).without_upgrade();
    let tool = tool(web);
    let url = format!("http://a.example:{}/", server.at.port());
    for _ in 0..3 {
        let (text, is_error) = call(&*tool, json!({"url": url, "prompt": ""})).await;
        assert!(is_error, "{text}");
    }
    assert_eq!(server.requests(), 0);
    assert_eq!(names.0.load(Ordering::SeqCst), 3);
}
