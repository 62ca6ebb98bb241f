//! `gaffer export`: a crew as one page, whatever its agents wrote.

use crate::harness::{Place, Ran, run};

const HOSTILE: &str = r#"</p></pre></details><script>alert('x')</script><img src=x onerror=\"go()\"> \e[31mred\e[0m \e]0;title\a bell\u202e & \"quoted\""#;

fn crew(place: &Place) {
    let script = format!(
        "agents: [
  {{ name: main, steps: [
    {{ say: \"## Plan\\n\\n- first `code <b>`\\n- **bold <i>**\\n\\n```html\\n<script>1</script>\\n```\\n{HOSTILE}\", calls: [{{ tool: Agent, input: {{ description: \"Look <b>around</b> | `x`\", name: looker, prompt: \"{HOSTILE}\" }} }}] }},
    {{ say: Waiting. }},
    {{ when: {{ notifications: 1 }}, say: All done. }}] }},
  {{ name: looker, steps: [
    {{ calls: [{{ tool: Bash, input: {{ command: \"printf '<script>2</script>```` \\\\033[1mx'\" }} }}, {{ tool: Read, input: {{ file_path: none.txt }} }}] }},
    {{ say: \"Found <script>3</script>\" }}] }}]"
    );
    let prompt = "Look at <script>this</script>\u{1b}[2J & tell \"me\"";
    let args = ["-p", prompt, "--mode", "coordinator", "--session-id", "s1"];
    let ran = run(place.scripted(&script, &args));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

fn export(place: &Place, args: &[&str]) -> Ran {
    run(place.gaffer(&[&["export"], args].concat()))
}

/// Every tag of a page, without its brackets. What is text has none.
fn tags(page: &str) -> Vec<&str> {
    let tag = |part: &'_ str| part.find('>').unwrap_or_else(|| panic!("no end: {part}"));
    let parts = page.split('<').skip(1);
    parts.map(|part| &part[..tag(part)]).collect()
}

/// Only tags and attributes that gaffer writes, each closed in its turn.
fn check_tags(page: &str) {
    let known = [
        "html",
        "head",
        "meta",
        "title",
        "style",
        "body",
        "h1",
        "h2",
        "h4",
        "h5",
        "h6",
        "dl",
        "dt",
        "dd",
        "div",
        "table",
        "tr",
        "th",
        "td",
        "span",
        "a",
        "section",
        "small",
        "article",
        "header",
        "b",
        "time",
        "p",
        "pre",
        "code",
        "ul",
        "ol",
        "li",
        "strong",
        "blockquote",
        "hr",
        "details",
        "summary",
        "img",
        "footer",
    ];
    let empty = ["meta", "hr", "img"];
    let mut open: Vec<&str> = Vec::new();
    for tag in tags(page).into_iter().skip(1) {
        let name = tag.trim_start_matches('/');
        let (name, attributes) = name.split_once(' ').unwrap_or((name, ""));
        assert!(known.contains(&name), "<{tag}>");
        match tag.starts_with('/') {
            true => assert_eq!(open.pop(), Some(name)),
            false if empty.contains(&name) => {}
            false => open.push(name),
        }
        let is_meta = name == "meta";
        for attribute in attributes
            .split("\" ")
            .filter(|_| !is_meta && !attributes.is_empty())
        {
            let (key, value) = attribute
                .split_once("=\"")
                .unwrap_or_else(|| panic!("<{tag}>"));
            let allowed = ["class", "id", "datetime", "href", "lang", "value"];
            assert!(allowed.contains(&key), "<{tag}>");
            assert!(key != "href" || value.starts_with('#'), "<{tag}>");
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn nothing_that_was_said_becomes_a_part_of_the_page() {
    let place = Place::new();
    crew(&place);
    let ran = export(&place, &["s1", "--format", "html"]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let page = &ran.out;
    assert!(page.starts_with("<!doctype html>"));
    check_tags(page);
    assert!(!page.contains(['\u{1b}', '\u{7}', '\u{202e}']));
    assert!(!page.contains("http://") && !page.contains("https://"));
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
    // It is there all the same.
    for said in [
        "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;",
        "<h5>Plan</h5>",
        "<code>code &lt;b&gt;</code>",
        "<strong>bold &lt;i&gt;</strong>",
        "<pre>&lt;script&gt;1&lt;/script&gt;</pre>",
        "red  bell &amp; &quot;quoted&quot;",
        "Look at &lt;script&gt;this&lt;/script&gt; &amp; tell &quot;me&quot;",
        "Found &lt;script&gt;3&lt;/script&gt;",
        "Agent &quot;Look &lt;b&gt;around&lt;/b&gt; | `x`&quot; completed",
    ] {
        assert!(page.contains(said), "{said}\n{page}");
    }
    assert!(page.contains("<details class=\"error\"><summary><b>Read</b>"));
}

#[test]
fn markdown_keeps_what_was_said_behind_fences() {
    let place = Place::new();
    crew(&place);
    let ran = export(&place, &[]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    let mut fence: Option<&str> = None;
    let mut outside = String::new();
    for line in ran.out.lines() {
        let marks = line.len() - line.trim_start_matches('`').len();
        match fence {
            Some(open) if line == open => fence = None,
            Some(open) => assert!(marks < open.len(), "{line}"),
            None if marks >= 3 => fence = Some(&line[..marks]),
            None => outside.push_str(&format!("{line}\n")),
        }
    }
    assert_eq!(fence, None);
    assert!(!outside.contains('<'), "{outside}");
    assert!(outside.contains("# Look at &lt;script\\>this"), "{outside}");
    assert!(outside.contains("## looker (agent-"), "{outside}");
    assert!(
        outside.contains("| ├─ looker |") || outside.contains("| └─ looker |"),
        "{outside}"
    );
    assert!(outside.contains("**End** · "), "{outside}");
    assert!(
        ran.out.contains("\n`````text\n"),
        "longer than the four inside"
    );
    assert!(!ran.out.contains('\u{1b}'));
}

#[test]
fn a_file_is_written_as_its_name_says_and_as_a_whole() {
    let place = Place::new();
    crew(&place);
    let read = |name: &str| std::fs::read_to_string(place.project().join(name)).unwrap();
    for (name, begin) in [
        ("a.html", "<!doctype"),
        ("a.HTM", "<!doctype"),
        ("a.md", "# "),
    ] {
        let ran = export(&place, &["s1", "-o", name]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), ""), "{ran:?}");
        assert!(read(name).starts_with(begin), "{name}");
    }
    export(&place, &["s1", "-o", "a.md", "--format", "html"]);
    assert!(read("a.md").starts_with("<!doctype"));
    for (args, why) in [
        (["s1", "-o", "."], "it is a folder"),
        (["s1", "-o", "no/such/x.md"], "No such file"),
        (["nosuch", "-o", "x.md"], "there is no session `nosuch`"),
    ] {
        let ran = export(&place, &args);
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.err.contains(why), "{}", ran.err);
    }
    assert_eq!(std::fs::read_dir(place.project()).unwrap().count(), 3);
}

#[test]
fn a_damaged_session_is_exported_as_far_as_it_goes() {
    let place = Place::new();
    crew(&place);
    for path in place.transcripts() {
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<&str> = text.lines().collect();
        lines.insert(2, "{\"at\":");
        lines.truncate(4);
        std::fs::write(&path, lines.join("\n")).unwrap();
    }
    let ran = export(&place, &["s1", "--format", "html"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.out
            .contains("A line of the transcript could not be read")
    );
    assert!(ran.out.ends_with("</html>\n"));
}
