//! Pages as they are found, and pages that were written to do harm.

use super::clean::clean;
use super::scan::{Scan, Token};
use super::*;
use proptest::prelude::*;

fn md(html: &str) -> String {
    let base = Url::parse("https://a.example/dir/page?x=1").unwrap();
    markdown(html, &base).unwrap().text
}

#[test]
fn what_a_reader_needs_is_kept() {
    let rows = [
        ("<h1>A</h1><p>b <b>c</b> <i>d</i>", "# A\n\nb **c** *d*"),
        ("<div>a</div><div>b</div>c", "a\n\nb\n\nc"),
        ("<div><div>a</div>b</div>", "a\n\nb"),
        ("<p>a<p>b", "a\n\nb"),
        ("a<br>b", "a\nb"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>", "- a\n- b\n  - c"),
        ("<ol start=3><li>a</li><li>b</li></ol>", "3. a\n4. b"),
        (
            "<ul><li><div><p>a</p></div></li><li>b</li></ul>",
            "- a\n\n- b",
        ),
        ("<blockquote>a</blockquote>", "> a"),
        (
            "<pre class='language-rust'>fn a() {}\n\n  b</pre>",
            "```rust\nfn a() {}\n\n  b\n```",
        ),
        (
            "<pre><code class='x lang-c++'><span>a</span>\nb</code></pre>",
            "```c++\na\nb\n```",
        ),
        (
            "<pre><div>a</div><div>b &lt;c></div></pre>",
            "```\na\nb <c>\n```",
        ),
        ("use <code>a_b</code> &amp; <kbd>x</kbd>", "use `a_b` & `x`"),
        (
            "<a href='../b?c=1&amp;d=2'>x</a>",
            "[x](https://a.example/b?c=1&d=2)",
        ),
        ("<a href='#top'>x</a> <a href='javascript:y()'>z</a>", "x z"),
        (
            "<a href='/u'><h3>T</h3><p>s</p></a>",
            "[T s](https://a.example/u)",
        ),
        (
            "<img src=i.png alt='An \"i\"'><img src=data:x alt=b>",
            "![An \\\"i\\\"](https://a.example/dir/i.png)",
        ),
        (
            "<base href='https://b.example/'><a href=c>d</a>",
            "[d](https://b.example/c)",
        ),
        ("<h2>a<a href=#x></a></h2>b", "## a\n\nb"),
        ("a &lt;b&gt; c < d", "a \\<b> c < d"),
        ("<p>a <em>b <strong>c</p><p>d", "a *b **c***\n\nd"),
        ("<b>a</b><b>b</b><strong></strong> c", "**ab** c"),
        ("<dl><dt>a<dd>b<dt>c<dd>d</dl>", "a\n\nb\n\nc\n\nd"),
        ("<details><summary>a</summary>b</details>", "a\n\nb"),
    ];
    for (html, want) in rows {
        assert_eq!(md(html), want, "{html}");
    }
}

#[test]
fn noise_is_left_out() {
    let rows = [
        "<script>if (a < b) x('</p>')</script>a",
        "<style>p { color: red }</style>a",
        "<nav><ul><li>x<nav>y</nav></ul></nav>a",
        "a<footer>x</footer>",
        "<svg><title>x</title><path/></svg>a",
        "<!-- <p>x</p> -->a",
        "<noscript><img src=x alt=x></noscript>a",
        "<div hidden>x<div>y</div></div>a",
        "<span style='DISPLAY : none'>x</span>a",
        "<div role=navigation>x</div>a",
        "<i aria-hidden=true>x</i>a",
        "<select><option>x</select><button>y</button>a",
        "<iframe src=x>y</iframe>a",
        "<script/>a",
        "a</div></p></td></table></li></b>",
        "<title>t</title>a",
    ];
    for html in rows {
        assert_eq!(md(html), "a", "{html}");
    }
    let converted = markdown(
        "<svg><title>x</title></svg><title>A &amp; <b></title>",
        &Url::parse("https://a.example").unwrap(),
    );
    assert_eq!(converted.unwrap().title, "A & <b>");
}

#[test]
fn the_main_part_is_enough_if_there_is_something_in_it() {
    let long = "word ".repeat(200);
    let page = format!("<title>t</title><div>x<main><p>{long}</p></main>y</div>");
    let converted = markdown(&page, &Url::parse("https://a.example").unwrap()).unwrap();
    assert_eq!(
        (converted.title.as_str(), converted.text.as_str()),
        ("t", long.trim())
    );
    assert_eq!(
        md("x<script>'<main>'</script><main><p>a</p></main>y"),
        "x\n\na\n\ny"
    );
    assert_eq!(md("<ul><li><div></div></li><li>a</li></ul>"), "- a");
}

#[test]
fn tables_of_data_and_tables_for_layout() {
    let data = "<table><caption>T</caption><thead><tr><th>A<th>B</thead>\
                <tr><td><p>1</p><p>2</p></td><td><a href=/x>y</a><br>z</td></tr></table>after";
    assert_eq!(
        md(data),
        "T\n\n| A | B |\n| --- | --- |\n| 1 2 | [y](https://a.example/x) z |\n\nafter"
    );
    let layout = "<table><tr><td>menu</td><td><table><tr><td><p>a</p><p>b</p></td></tr></table>\
                  </td></tr><tr><td>c<td>d</table>e";
    assert_eq!(md(layout), "menu |\n\na\n\nb\n\nc | d\n\ne");
}

#[test]
fn pages_that_would_exhaust_a_converter_are_read_in_bounds() {
    let n = 20_000;
    let formatting: String = (0..5000).map(|i| format!("<b id=x{i}>")).collect();
    let long_cell = "x".repeat(100_000);
    let rows = [
        "<div>".repeat(n),
        "<ul><li>".repeat(n),
        "<blockquote>".repeat(n),
        "<b>".repeat(n),
        "<table><tr><td>".repeat(n),
        "<table>".repeat(n),
        "<b>x</b>".repeat(n),
        "<code>x</code>".repeat(n),
        "<i>x</i><b>y</b>".repeat(n),
        "<a href=x>y</a>".repeat(n),
        "<p>x".repeat(n),
        format!("{formatting}{}", "<p>x".repeat(n)),
        format!("<a {}>x</a>", "b=c ".repeat(n)),
        format!("<a {}>x</a>", "'".repeat(n)),
        "<a b='".repeat(n),
        "<!--".repeat(n),
        "<".repeat(n),
        "</".repeat(n),
        "&".repeat(n),
        "<script>".repeat(n),
        "<title>".repeat(n),
        "<nav>".repeat(n),
        "</p>".repeat(n),
        "</div>x".repeat(n),
        format!("{}{}", "<div>".repeat(150), "</p>".repeat(n)),
        format!("<p>{}{}", " ".repeat(n), "<div> ".repeat(n)),
        format!("<table><tr><th>{long_cell}</tr>{}", "<tr><td>x".repeat(n)),
        format!("<table><tr>{}{}", "<th>x".repeat(n), "<tr><td>x".repeat(n)),
        format!("<pre>{}", "`x".repeat(n)),
        "<li>x".repeat(n),
        "<ol><li>x</ol>".repeat(n),
        "<br>".repeat(n),
        "é".repeat(n * 5),
    ];
    for html in rows {
        let began = std::time::Instant::now();
        let text = md(&html);
        let took = began.elapsed();
        let shown: String = html.chars().take(40).collect();
        assert!(text.len() <= 40 << 20, "{shown}: {} bytes", text.len());
        assert!(took.as_secs() < 20, "{shown}: {took:?}");
    }
}

/// Whether every element is closed, and in its order.
fn is_balanced(html: &str) -> bool {
    let mut open = Vec::new();
    for token in Scan::new(html) {
        match token {
            Token::Open { name, .. } if matches!(name.as_str(), "br" | "hr" | "img") => {}
            Token::Open { name, .. } => open.push(name),
            Token::Close(name) if open.pop().as_ref() != Some(&name) => return false,
            Token::Close(_) | Token::Text(_) => {}
        }
    }
    open.is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn whatever_the_page_is_all_tags_are_closed(parts in prop::collection::vec(part(), 0..80)) {
        let base = Url::parse("https://a.example").unwrap();
        let page = parts.concat();
        let cleaned = clean(&page, &base);
        prop_assert!(is_balanced(&cleaned.html), "{page}\n{}", cleaned.html);
        prop_assert!(markdown(&page, &base).is_ok());
    }
}

fn part() -> impl Strategy<Value = String> {
    const NAMES: [&str; 28] = [
        "p",
        "div",
        "ul",
        "ol",
        "li",
        "b",
        "strong",
        "i",
        "code",
        "pre",
        "a",
        "h1",
        "h2",
        "table",
        "tr",
        "td",
        "th",
        "blockquote",
        "br",
        "img",
        "hr",
        "dt",
        "dd",
        "nav",
        "script",
        "title",
        "base",
        "x",
    ];
    const ENDS: [&str; 7] = [
        ">",
        " hidden>",
        " href=/x>",
        " href='x y' class=\"language-c\">",
        " src=a alt=b>",
        "/>",
        "",
    ];
    prop_oneof![
        4 => (prop::sample::select(&NAMES[..]), prop::sample::select(&ENDS[..]))
            .prop_map(|(name, end)| format!("<{name}{end}")),
        3 => prop::sample::select(&NAMES[..]).prop_map(|name| format!("</{name}>")),
        2 => prop::sample::select(&["a ", " ", "é", "<", "&lt;", "\n", "<!--", "-->", "'", "|"][..])
            .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ]
}
