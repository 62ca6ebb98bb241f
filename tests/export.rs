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

const KNOWN: &str = "html head meta title style body h1 h2 h4 h5 h6 dl dt dd div table tr th td span a \
    section small article header b i time p pre code ul ol li strong em blockquote hr details summary \
    img footer ins del svg defs pattern rect line path text";
const EMPTY: &str = "meta hr img";
const ATTRIBUTES: &str = "class id datetime href lang value title role aria-label aria-hidden width \
    height x y dx x1 x2 y1 y2 d viewBox preserveAspectRatio text-anchor patternUnits patternTransform";

/// Only tags and attributes that gaffer writes, each closed in its turn.
fn check_tags(page: &str) {
    let is_one_of = |all: &str, name: &str| all.split_whitespace().any(|known| known == name);
    let mut open: Vec<&str> = Vec::new();
    for tag in tags(page).into_iter().skip(1) {
        let name = tag.trim_start_matches('/').trim_end_matches('/');
        let (name, attributes) = name.split_once(' ').unwrap_or((name, ""));
        assert!(is_one_of(KNOWN, name), "<{tag}>");
        match tag.starts_with('/') {
            true => assert_eq!(open.pop(), Some(name)),
            false if is_one_of(EMPTY, name) || tag.ends_with('/') => {}
            false => open.push(name),
        }
        let is_bare = attributes == "open" || attributes.is_empty();
        let attributes = attributes.strip_suffix(" open").unwrap_or(attributes);
        for attribute in attributes
            .split("\" ")
            .filter(|_| name != "meta" && !is_bare)
        {
            let (key, value) = attribute
                .split_once("=\"")
                .unwrap_or_else(|| panic!("<{tag}>"));
            assert!(is_one_of(ATTRIBUTES, key), "<{tag}>");
            assert!(key != "href" || value.starts_with('#'), "<{tag}>");
        }
    }
    assert!(open.is_empty(), "{open:?}");
    check_links(page);
}

/// Every link leads to something on the page, and nothing is there twice.
fn check_links(page: &str) {
    let values = |key: &str| -> Vec<&str> {
        let parts = page.split(key).skip(1);
        parts.filter_map(|part| part.split('"').next()).collect()
    };
    let ids = values(" id=\"");
    for link in values(" href=\"#") {
        let count = ids.iter().filter(|id| **id == link).count();
        assert_eq!(count, 1, "#{link}");
    }
}

/// What stands between two marks, for each time that they stand there.
fn between<'a>(page: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let parts = page.split(from).skip(1);
    parts
        .filter_map(|part| Some(part.split_once(to)?.0))
        .collect()
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
    assert!(page.contains("<details class=\"call error\"><summary><b>Read</b>"));
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
    check_tags(&ran.out);
    // No end is left in the record, and that can be seen without colours.
    assert!(ran.out.contains("\">…</text>") && ran.out.contains("<span>… interrupted</span>"));
    // Where the first line is lost, an agent has no name; it can be found all the same.
    for path in place.transcripts() {
        let text = std::fs::read_to_string(&path).unwrap();
        let (_, rest) = text.split_once('\n').unwrap();
        std::fs::write(&path, format!("{{\n{rest}")).unwrap();
    }
    let ran = export(&place, &["s1", "--format", "html"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    check_tags(&ran.out);
    for path in place.transcripts() {
        std::fs::write(&path, "nothing\n").unwrap();
    }
    let ran = export(&place, &["s1", "--format", "html"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    check_tags(&ran.out);
}

/// A crew that changes something and continues a worker.
fn busy(place: &Place) {
    let script = "agents: [
  { name: main, steps: [
    { calls: [
      { tool: Agent, input: { description: Write it, name: writer, phase: implementation, prompt: Write notes.txt } },
      { tool: Agent, input: { description: Look, name: looker, subagent_type: explore, prompt: Look around } }] },
    { say: Waiting. },
    { when: { notifications: 2 }, meanwhile: Still waiting., calls: [{ tool: SendMessage, input: { to: writer, message: Once more } }] },
    { say: Waiting again. },
    { when: { notifications: 3 }, say: \"It is *done*.\" }] },
  { name: writer, steps: [
    { calls: [{ tool: Write, input: { file_path: notes.txt, content: \"one\\n<two>\\nthree\\n\" } }] },
    { say: Written. },
    { calls: [{ tool: Edit, input: { file_path: notes.txt, old_string: \"one\\n<two>\", new_string: \"one\\n2\\nand\" } }] },
    { calls: [{ tool: Bash, input: { command: \"printf '%s\\n' '--- a/x' '+++ b/x' '@@ -1 +1 @@' '-<old>' '+new'\" } }] },
    { say: Changed. }] },
  { name: looker, steps: [{ say: Nothing there. }] }]";
    let args = [
        "-p",
        "Take notes",
        "--mode",
        "coordinator",
        "--session-id",
        "s2",
    ];
    let limits = ["--max-tokens-total", "100000000", "--max-wall", "10m"];
    let ran = run(place.scripted(script, &[&args[..], &limits].concat()));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
}

#[test]
fn the_picture_has_a_bar_for_every_run_and_every_agent_can_be_reached() {
    let place = Place::new();
    busy(&place);
    let settings = place.root.path().join("settings.json");
    let settings = settings.to_str().unwrap();
    let ran = export(&place, &["s2", "--format", "html", "--settings", settings]);
    let page = &ran.out;
    check_tags(page);
    let chart = between(page, "<div class=\"chart\">", "</section>")[0];
    let lanes = between(chart, "<div class=\"lane\">", "</div>");
    let bars = |lane: &str| lane.matches("<rect class=\"run ").count();
    let runs: Vec<usize> = lanes.iter().map(|lane| bars(lane)).collect();
    assert_eq!(runs.iter().sum::<usize>(), 4, "{chart}");
    let writer = lanes.iter().find(|lane| lane.contains("writer")).unwrap();
    assert_eq!(bars(writer), 2);
    assert!(
        writer.contains("<title>writer, run 2 of 2: implementation\n"),
        "{writer}"
    );
    assert!(writer.contains("rect class=\"run implementation\""));
    assert!(chart.contains("rect class=\"run research\""));
    // A tick for each turn, as far as they can be told apart; at least one where there was any.
    assert!(
        lanes.iter().all(|lane| lane.contains("<path d=\"M")),
        "{chart}"
    );
    let tree = between(page, "<ul class=\"tree\">", "</section>")[0];
    for path in place.transcripts() {
        let id = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let link = format!("href=\"#{id}\"");
        for part in [chart, tree] {
            assert!(part.contains(&link), "{id}");
        }
        assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
    }
    for figure in ["<dt>Cost</dt><dd>$", "of 100000000 tokens", "of 600 s"] {
        assert!(page.contains(figure), "{figure}");
    }
    assert!(page.contains("<p>It is <em>done</em>.</p>"));
    assert!(page.contains("<th class=\"n\">cache read</th>"));
    assert!(!page.contains("<script") && !page.contains(" style=\""));
}

#[test]
fn changes_are_shown_as_lines_that_came_and_went() {
    let place = Place::new();
    busy(&place);
    let page = export(&place, &["s2", "--format", "html"]).out;
    let diffs = between(&page, "<pre class=\"diff\">", "</pre>");
    assert_eq!(
        diffs,
        [
            "<ins>+one</ins><ins>+&lt;two&gt;</ins><ins>+three</ins>",
            "<span> one</span><del>-&lt;two&gt;</del><ins>+2</ins><ins>+and</ins>",
            "<b>--- a/x</b><b>+++ b/x</b><b>@@ -1 +1 @@</b><del>-&lt;old&gt;</del><ins>+new</ins>",
        ]
    );
    assert!(
        page.contains(
            "<b>Edit</b> <span class=\"mono\">notes.txt</span> <ins>+2</ins> <del>−1</del>"
        )
    );
    // The last words of a worker's run are its report, and the order that it had is there.
    assert_eq!(page.matches("<article class=\"report\">").count(), 3);
    assert_eq!(page.matches("<b>The order</b>").count(), 2);
    assert_eq!(page.matches("<b>Mail from coordinator</b>").count(), 1);
}

#[test]
fn one_agent_alone_is_a_page_too() {
    let place = Place::new();
    let script = "agents: [{ name: main, steps: [{ say: Hello. }] }]";
    let ran = run(place.scripted(script, &["-p", "Say hello", "--session-id", "s3"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let page = export(&place, &["s3", "--format", "html"]).out;
    check_tags(&page);
    assert!(page.contains("a session of one agent"));
    assert_eq!(page.matches("<div class=\"lane\">").count(), 1);
    assert!(!page.contains("<ol class=\"course\">"));
}

#[test]
fn a_crew_of_a_hundred_is_one_small_page() {
    let place = Place::new();
    let workers: Vec<String> = (1..=100).map(|n| format!("worker-{n}")).collect();
    let order = |name: &String| {
        format!(
            "{{ tool: Agent, input: {{ description: Look, name: {name}, prompt: Look at part {name} }} }}"
        )
    };
    let orders: Vec<String> = workers.iter().map(order).collect();
    let steps = workers
        .iter()
        .map(|name| format!("  {{ name: {name}, steps: [{{ say: Nothing here. }}] }}"));
    let script = format!(
        "agents: [
  {{ name: main, steps: [
    {{ calls: [{}] }},
    {{ say: Waiting. }},
    {{ when: {{ notifications: 100 }}, meanwhile: Still waiting., say: All looked. }}] }},
{}]",
        orders.join(", "),
        steps.collect::<Vec<_>>().join(",\n")
    );
    let args = [
        "-p",
        "Look",
        "--mode",
        "coordinator",
        "--session-id",
        "s4",
        "--max-workers",
        "20",
    ];
    let ran = run(place.scripted(&script, &args));
    assert_eq!(ran.code, Some(0), "{ran:#?}");
    let page = export(&place, &["s4", "--format", "html"]).out;
    check_tags(&page);
    assert_eq!(page.matches("<div class=\"lane\">").count(), 101);
    assert_eq!(page.matches("<details class=\"agent\"").count(), 101);
    assert!(page.contains("<div class=\"chart many\">"));
    // The table of so many agents is folded, and the page stays one that can be sent.
    assert!(page.contains("<b>By agent</b> 101 agents"));
    assert!(page.len() < 600_000, "{}", page.len());
}
