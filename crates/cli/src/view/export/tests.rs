//! Tests of documents: no text gets out of its place, and what is large is left out.

use super::change::Change;
use super::html::Html;
use super::markup;
use super::*;
use gaffer_protocol::ResultPart;
use gaffer_protocol::message::ToolInput;
use proptest::prelude::*;

#[test]
fn what_only_a_terminal_understands_is_gone() {
    assert_eq!(clean("a\u{1b}[1;31mb\u{1b}[0m"), "ab");
    assert_eq!(clean("a\u{1b}]0;title\u{7}b\u{1b}]8;;x\u{1b}\\c"), "abc");
    assert_eq!(clean("10%\r20%\r\ndone\u{0}\u{8}"), "10%\n20%\ndone");
    assert_eq!(clean("cut \u{1b}[31"), "cut ");
    assert_eq!(clean("\u{1b}(Ba\u{1b}[1éb\u{1b}\nc"), "aéb\nc");
    assert_eq!(clean("cut \u{1b}"), "cut ");
    assert_eq!(clean("tab\tand\nline\u{202e}"), "tab\tand\nline");
}

#[test]
fn answers_are_read_as_markdown() {
    for (text, html) in [
        ("one\ntwo\n\nthree", "<p>one\ntwo</p>\n<p>three</p>\n"),
        ("# A & B", "<h4>A &amp; B</h4>\n"),
        (
            "- a\n  - b\n\n- c\n1. d",
            "<ul>\n<li class=\"d0\">a</li>\n<li class=\"d1\">b</li>\n<li class=\"d0\">c</li>\n</ul>\n<ol>\n<li class=\"d0\" value=\"1\">d</li>\n</ol>\n",
        ),
        ("~~~\n```\n~~~\nx", "<pre>```</pre>\n<p>x</p>\n"),
        ("```rust\nfn <T>", "<pre>fn &lt;T&gt;</pre>\n"),
        ("``a`b`` **c", "<p><code>a`b</code> **c</p>\n"),
        (
            "**Use `a*b` now**, *please*, not snake_case_names or 2 * 3 * 4",
            "<p><strong>Use <code>a*b</code> now</strong>, <em>please</em>, not snake_case_names or 2 * 3 * 4</p>\n",
        ),
        (
            "_so_ **it *is* so**",
            "<p><em>so</em> <strong>it <em>is</em> so</strong></p>\n",
        ),
        ("`open **b**", "<p>`open <strong>b</strong></p>\n"),
        (
            "| a | b |\n|---|--:|\n| `x` | < |",
            "<div class=\"wide\"><table>\n<tr><th>a</th><th>b</th></tr>\n<tr><td><code>x</code></td><td>&lt;</td></tr>\n</table></div>\n",
        ),
        ("| no table", "<pre>| no table</pre>\n"),
        (
            "> said\n> so\nme",
            "<blockquote>said\nso</blockquote>\n<p>me</p>\n",
        ),
        ("a\n---\nb", "<p>a</p>\n<hr>\n<p>b</p>\n"),
    ] {
        assert_eq!(markup::html(text), html, "{text}");
    }
}

#[test]
fn marks_without_end_take_no_time() {
    for piece in [
        "`", "**", "*a ", "_a* ", "`a``b", "| ", "> ", "- ", "#", "``` x\n",
    ] {
        let text = piece.repeat(200_000 / piece.len());
        assert!(markup::html(&text).len() < 20 * text.len());
    }
}

proptest! {
    #[test]
    fn every_tag_of_an_answer_is_one_of_ours(text in "[<>&\"'`*_#|~. a-c0-9\n-]{0,200}") {
        let html = markup::html(&text);
        for part in html.split('<').skip(1) {
            let tag = part.split('>').next().unwrap_or_default();
            let name = tag.trim_start_matches('/').split(' ').next().unwrap_or_default();
            let known = ["p", "h4", "h5", "h6", "ul", "ol", "li", "pre", "code", "strong", "em", "blockquote", "hr", "div", "table", "tr", "th", "td"];
            prop_assert!(known.contains(&name), "{tag} in {html}");
        }
        prop_assert_eq!(html.matches("<li").count(), html.matches("</li>").count());
        prop_assert_eq!(html.matches("<p>").count(), html.matches("</p>").count());
    }
}

proptest! {
    #[test]
    fn every_tag_of_a_change_is_one_of_ours(old in "[<>&\"' a-c/\n+@-]{0,60}", new in "[<>&\"' a-c/\n+@-]{0,60}") {
        let input = serde_json::json!({ "file_path": "a", "old_string": old, "new_string": new });
        let call = ToolUse {
            id: "c".into(),
            name: "Edit".into(),
            input: ToolInput::from_text(&input.to_string()),
        };
        let change = Change::of(&call).unwrap();
        let html = format!("{}{}", change.html(), change.counts());
        let mut open = Vec::new();
        for part in html.split('<').skip(1) {
            let tag = part.split(['>', ' ']).next().unwrap_or_default();
            match tag.strip_prefix('/') {
                Some(tag) => prop_assert_eq!(open.pop(), Some(tag)),
                None => open.push(tag),
            }
            let known = ["pre", "ins", "del", "span", "b"];
            prop_assert!(known.contains(&tag.trim_start_matches('/')), "{tag} in {html}");
        }
        prop_assert!(open.is_empty());
    }
}

fn shown(parts: Vec<ResultPart>) -> String {
    let call = ToolUse {
        id: "c".into(),
        name: "Read".into(),
        input: ToolInput::from_text("{\"file_path\":\"<a>\"}"),
    };
    let result = ToolResult {
        call: "c".into(),
        parts,
        is_error: false,
        mail: None,
    };
    let mut out = Vec::new();
    let item = Item::Call {
        call: &call,
        result: Some(&result),
    };
    Html::new(&mut out).item(&item).unwrap();
    String::from_utf8(out).unwrap()
}

fn image(kind: &str, data: &str) -> ResultPart {
    ResultPart::Image(Image {
        media_type: kind.into(),
        data: data.into(),
    })
}

#[test]
fn images_are_a_part_of_the_page_if_they_are_small_and_harmless() {
    let page = shown(vec![image("image/png", "AAAA+/8=")]);
    assert!(page.contains("<img alt=\"\" src=\"data:image/png;base64,AAAA+/8=\">"));
    for (kind, data) in [
        ("image/png", "AA\"onerror=\"x"),
        ("image/svg+xml", "AAAA"),
        ("image/png\" onerror=\"x", "AAAA"),
        ("image/png", &*"A".repeat(5 << 20)),
    ] {
        let page = shown(vec![image(kind, data)]);
        assert!(
            !page.contains("<img") && page.contains("left out]"),
            "{kind}"
        );
        assert!(!page.contains("\" onerror"), "{kind}");
    }
    let many = vec![image("image/png", &"A".repeat(4 << 20)); 9];
    assert_eq!(shown(many).matches("<img").count(), 8);
}

#[test]
fn arguments_are_readable_and_long_results_are_cut_with_a_word_on_the_rest() {
    let input = |text: &str| ToolUse {
        id: "c".into(),
        name: "Write".into(),
        input: ToolInput::from_text(text),
    };
    let told = arguments(&input(
        "{\"path\":\"a\",\"n\":[1],\"content\":\"x\\n y\\n\"}",
    ));
    assert_eq!(told, "path: a\nn: [1]\ncontent:\n  x\n   y\n");
    assert_eq!(arguments(&input("no <json>")), "no <json>");
    let page = shown(vec![ResultPart::Text("é".repeat(LONGEST_RESULT + 7))]);
    assert!(page.contains("… 7 more characters are in the transcript"));
    assert!(
        page.contains("<span class=\"mono\">&lt;a&gt;</span>"),
        "{page}"
    );
}
