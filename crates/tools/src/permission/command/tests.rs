//! Commands taken apart: what runs, what is unclear, what rules are held against.

use super::*;
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// The parts of a command with their redirections, and whether it is clear.
fn seen(text: &str) -> (Vec<String>, bool) {
    let script = Script::parse(text);
    let show = |part: &Part| {
        let mut out = part.text();
        for redirect in &part.redirects {
            let sign = match redirect.flow {
                Flow::Reads => '<',
                Flow::Writes => '>',
            };
            out.push_str(&format!(" {sign}{}", redirect.target.raw));
        }
        out.trim_start().to_owned()
    };
    let parts = script.parts.iter().map(show).collect();
    (parts, script.unclear.is_none())
}

#[test]
fn what_is_clear_is_cut_where_commands_begin() {
    let rows: &[(&str, &[&str])] = &[
        ("ls", &["ls"]),
        ("ls -l  a", &["ls -l a"]),
        (
            "a && b || c; d | e |& f & g\nh",
            &["a", "b", "c", "d", "e", "f", "g", "h"],
        ),
        ("a \\\n b", &["a b"]),
        (
            "echo 'a; b' \"c && d\" e\\;f",
            &["echo 'a; b' \"c && d\" e\\;f"],
        ),
        ("echo a # b; c\nd", &["echo a", "d"]),
        ("echo a;# b\nd", &["echo a", "d"]),
        ("echo a#b; c", &["echo a#b", "c"]),
        ("echo $(b c) d", &["b c", "echo $(b c) d"]),
        (
            "echo \"$(b \"c)\")\"",
            &["b \"c)\"", "echo \"$(b \"c)\")\""],
        ),
        ("echo `b`", &["b", "echo `b`"]),
        ("echo '$(b)' '`c`'", &["echo '$(b)' '`c`'"]),
        ("(a; b) && c", &["a", "b", "c"]),
        ("{ a; b; } > f", &["a", "b", ">f"]),
        ("a > f 2>&1 < g >> h", &["a >f <g >h"]),
        (
            "a &> f; b >| g; c >& h; d <> i",
            &["a >f", "b >g", "c >h", "d >i"],
        ),
        ("a 2> /dev/null", &["a >/dev/null"]),
        ("a>b", &["a >b"]),
        ("> f", &[">f"]),
        ("X=1 Y=$(b) c", &["b", "X=1 Y=$(b) c"]),
        ("x=1", &["x=1"]),
        (
            "if a; then b; elif c; then d; else e; fi",
            &["a", "b", "c", "d", "e"],
        ),
        ("while ! a; do b; done < f", &["a", "b", "<f"]),
        ("for f in *.rs $(a); do b \"$f\"; done", &["a", "b \"$f\""]),
        ("for f; do b; done", &["b"]),
        ("cat <<EOF\na; $(b)\n'`c`'\nEOF\nd", &["cat", "b", "c", "d"]),
        ("cat <<'EOF'\na; $(b)\nEOF\nd", &["cat", "d"]),
        ("cat <<-EOF | e\n\ta\n\tEOF\nd", &["cat", "e", "d"]),
        ("cat <<A <<\"B\" && c\na\nA\n$(b)\nB\nd", &["cat", "c", "d"]),
        (
            "git commit -m \"$(cat <<'EOF'\nA; b\nEOF\n)\"",
            &["cat", "git commit -m \"$(cat <<'EOF'\nA; b\nEOF\n)\""],
        ),
        ("a <<< \"$(b)\"", &["b", "a"]),
        (
            "echo $((1 + 2)) ${x} ${x:-y} ${x%.*} ${#x} ${x[@]} ${x:1:2} $1 $? $$",
            &["echo $((1 + 2)) ${x} ${x:-y} ${x%.*} ${#x} ${x[@]} ${x:1:2} $1 $? $$"],
        ),
        ("[ -f a ]", &["[ -f a ]"]),
        ("find . -name {} x{} a{b}c", &["find . -name {} x{} a{b}c"]),
        ("echo {a,b}", &["echo {a,b}"]),
        ("echo $ a$", &["echo $ a$"]),
        ("a >&2 2>&- <&3- >&f", &["a >f"]),
        ("", &[]),
        ("# nothing", &[]),
    ];
    for (text, parts) in rows {
        let (got, clear) = seen(text);
        assert_eq!(got, *parts, "{text}");
        assert!(clear, "{text}: {:?}", Script::parse(text).unclear);
    }
}

#[test]
fn what_is_not_certain_is_unclear_but_its_parts_are_found() {
    let rows: &[(&str, &[&str])] = &[
        ("echo 'a; b", &[]),
        ("echo \"a $(rm x)", &["rm x"]),
        ("echo `rm x", &["rm x"]),
        ("echo $(rm x", &["rm x"]),
        ("(rm x", &["rm x"]),
        ("echo \\$(rm x)", &["rm x"]),
        ("a) ; rm x", &["a", "rm x"]),
        ("a \\", &[]),
        ("diff <(rm x) >(rm y)", &["rm x", "rm y"]),
        ("eval rm x", &["eval rm x"]),
        ("command eval 'rm x'", &[]),
        ("exec rm x", &[]),
        ("exec > f", &[]),
        ("$'rm' x", &[]),
        ("echo $\"a\"", &[]),
        ("{rm,x}", &[]),
        ("$rm x", &[]),
        ("\"$(which rm)\" x", &["which rm"]),
        ("timeout 5 $rm x", &[]),
        ("r* x", &[]),
        ("((x=1)); rm y", &["rm y"]),
        ("echo $((x)) $((a[$(rm y)]))", &["rm y"]),
        ("echo $[1]", &[]),
        ("echo ${x:=$(rm y)}", &["rm y"]),
        ("echo ${x@P} ${!x} ${x:y} ${x[y]}", &[]),
        ("echo ${x:-`rm y`}", &["rm y"]),
        ("f() { rm x; }", &[]),
        ("function f { rm x; }; f", &[]),
        ("case a in a) rm x;; esac", &["rm x"]),
        ("[[ a && b ]]", &[]),
        ("a=(b $(rm x))", &["rm x"]),
        ("coproc rm x", &[]),
        ("time { rm x; }", &[]),
        ("a {x}> f", &[]),
        ("a > ", &[]),
        ("cat < /dev/tcp/h/1", &[]),
        ("cat <<EOF\na", &[]),
        ("cat <<$x\na\n$x", &[]),
        ("cat <<EOF\na\\\nEOF\nb\nEOF", &[]),
        ("cat <<EOF 'a\nb'\nEOF", &[]),
        ("$(cat <<EOF)\nEOF", &[]),
        ("a\rb", &[]),
        ("a\u{a0}b", &[]),
        ("a\u{202e}b", &[]),
        ("a\0b", &[]),
        ("a\r", &[]),
        ("ls\u{a0}", &[]),
        ("\u{3000}ls", &[]),
        ("for PATH in x; do ls; done", &["ls"]),
        ("for ((i=0;i<3;i++)); do rm x; done", &["rm x"]),
        ("(a) b", &[]),
        ("\\eval a", &[]),
        ("$\\\n!a", &[]),
        ("\"$\\\n(rm x)\"", &[]),
        ("a >&-b", &[]),
        ("a >&\"b\"", &[]),
        ("<<<x while a", &[]),
        ("2>&1 { a", &[]),
        ("2\\\n> f rm x", &[]),
        ("echo $(cat <<'E' | find . ; ls -delete\nE\n)", &[]),
        ("nice nice nice nice nice nice nice nice nice nice a", &[]),
    ];
    for (text, parts) in rows {
        let (got, clear) = seen(text);
        assert!(!clear, "{text}: {got:?}");
        for part in *parts {
            assert!(got.iter().any(|got| got == part), "{text}: {got:?}");
        }
    }
}

#[test]
fn wrappers_and_safe_variables_are_looked_through_for_allow_rules() {
    let offers = |text: &str, want: &str| {
        let script = Script::parse(text);
        script.parts[0].offered().iter().any(|text| text == want)
    };
    let rows = [
        ("timeout 5 a b", "a b", true),
        ("timeout -k 1 -s KILL 5s a", "a", true),
        ("timeout --signal=KILL --foreground 5 a", "a", true),
        ("timeout --signal KILL 5 a", "a", true),
        ("timeout --odd 5 a", "a", false),
        ("timeout -x 5 a", "a", false),
        ("timeout $t a b", "b", false),
        ("timeout $t a b", "a b", false),
        ("time a", "a", true),
        ("time -o f a", "a", false),
        ("nice -n 5 a", "a", true),
        ("nice -5 a", "a", true),
        ("nohup nice a", "a", true),
        ("stdbuf -oL -e 0 a", "a", true),
        ("command a", "a", true),
        ("command -p a", "a", false),
        ("builtin a", "a", true),
        ("noglob a", "a", true),
        ("xargs grep x", "grep x …", true),
        ("xargs grep x", "grep x", false),
        ("xargs -n1 grep x", "grep x …", false),
        ("env a", "a", false),
        ("sudo a", "a", false),
        ("LANG=C LC_ALL=C NO_COLOR=1 a", "a", true),
        ("LANG=C timeout 5 a", "a", true),
        ("PATH=x a", "a", false),
        ("PATH=x a", "PATH=x a", true),
        ("LANG=C PATH=x a", "a", false),
        ("a > f", "a", true),
        ("/tmp/bin/timeout 5 a", "a", false),
    ];
    for (text, want, offered) in rows {
        assert_eq!(offers(text, want), offered, "{text} as {want}");
    }
}

#[test]
fn deny_rules_see_through_more() {
    let rows = [
        ("X=1 PATH=y rm z", "rm z"),
        ("env -i -u A B=1 rm z", "rm z"),
        ("sudo -u bob rm z", "rm z"),
        ("sudo -- rm z", "rm z"),
        ("xargs -n 1 -I {} rm {}", "rm {}"),
        ("'rm' z", "rm z"),
        ("r\\m z", "rm z"),
        ("\"r\"m z", "rm z"),
        ("/usr/bin/rm z", "rm z"),
        ("sh -c 'a; rm z'", "rm z"),
        ("bash -lc \"rm z\"", "rm z"),
        ("bash -c \"sh -c 'rm z'\"", "rm z"),
        ("sudo bash -c 'rm z'", "rm z"),
        ("eval 'rm z'", "rm z"),
        ("eval rm z", "rm z"),
        ("env -S 'rm z'", "rm z"),
        ("trap 'rm z' EXIT", "rm z"),
        ("find . -exec rm {} \\;", "rm {}"),
        ("find . -name a -execdir sh -c 'rm z' \\;", "rm z"),
        ("sh <<'EOF'\nrm z\nEOF", "rm z"),
        ("cat <<'EOF' | bash\nrm z\nEOF", "rm z"),
        ("bash <<< 'rm z'", "rm z"),
        ("coproc rm z", "rm z"),
        ("time { rm z; }", "rm z"),
        ("f() { rm z; }; f", "rm z"),
        ("a=\"rm z\"; eval $a", "rm z"),
        ("curl x | sh", "curl x | sh"),
        ("nohup setsid rm z", "rm z"),
        ("time X=1 rm z", "rm z"),
        (">&-rm z", "rm z"),
        ("exec -a x rm z", "rm z"),
    ];
    for (text, want) in rows {
        let watched = Script::parse(text).watched();
        assert!(
            watched.iter().any(|text| text == want),
            "{text}: {watched:?}"
        );
    }
    // A text is no command.
    let watched = Script::parse("echo 'rm z' && cat <<EOF\nrm z\nEOF").watched();
    assert!(!watched.iter().any(|text| text == "rm z"), "{watched:?}");
}

/// Pieces from which odd commands can be put together.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "rm x",
        " ",
        "\n",
        ";",
        "&&",
        "||",
        "|",
        "&",
        "(",
        ")",
        "{",
        "}",
        "$(",
        "${",
        "$((",
        "))",
        "`",
        "'",
        "\"",
        "\\",
        "$",
        "<",
        ">",
        "<<E",
        "\nE\n",
        "<<<",
        "<(",
        "#",
        "x=1",
        "if ",
        "then ",
        "fi",
        "for f in ",
        "do ",
        "done",
        "case ",
        "esac",
        "[[",
        "é",
        "*",
        "~",
        "\t",
        "!",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in any::<String>(), pieces in pieces()) {
        for text in [text, pieces] {
            let script = Script::parse(&text);
            prop_assert!(script.watched().contains(&script.text));
            for part in &script.parts {
                prop_assert!(!part.is_empty());
                prop_assert!(!part.offered().is_empty());
            }
        }
    }

    #[test]
    fn a_quoted_text_never_is_a_command(text in "[^']{0,20}") {
        let script = Script::parse(&format!("echo '{text}'"));
        prop_assert_eq!(script.parts.len(), 1);
        prop_assert_eq!(&script.parts[0].words[1].text, &text);
    }

    #[test]
    fn plain_commands_are_all_found(
        names in prop::collection::vec("[a-z]{1,6}( -[a-z])?", 1..8),
        signs in prop::collection::vec(prop::sample::select(vec![";", "&&", "||", "|", "&", "\n", "|&"]), 8),
    ) {
        let reserved = ["if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done",
            "case", "esac", "in", "select", "coproc", "time", "exec", "eval", "nice", "nohup", "env"];
        prop_assume!(names.iter().all(|name| !reserved.contains(&name.split(' ').next().unwrap())));
        let text: String = names.iter().zip(&signs).map(|(name, sign)| format!("{name} {sign} ")).collect();
        let parts: Vec<String> = Script::parse(&text).parts.iter().map(Part::text).collect();
        prop_assert_eq!(parts, names);
    }
}

#[test]
fn depth_is_bounded_and_time_is_in_proportion() {
    let size = 20_000;
    let deep = [
        "(",
        "$(",
        "${a-",
        "`",
        "\"$(",
        "{ ",
        "((",
        "$((",
        "<(",
        "a=(",
        "\"${x-\"",
        "for f in $(",
    ];
    let wide = [
        "a;",
        "'x' ",
        "\"$x\" ",
        "$(a) ",
        "`a` ",
        "${a[x} ",
        "$((1+x)) ",
        "<<E ",
        "a\\\n",
        "1>2 ",
        "nice ",
        "sh -c ",
        "eval ",
        "if ",
        "x=1 ",
        "<<E\nE\n",
        "find -exec ",
        "cd a;",
        "rm a ",
    ];
    for piece in deep.iter().chain(&wide) {
        let text = piece.repeat(size / piece.len());
        let start = Instant::now();
        let script = Script::parse(&text);
        drop(script.watched());
        // Generous, for slow machines: what grows with the square takes minutes.
        assert!(start.elapsed() < Duration::from_secs(10), "{piece}");
        if deep.contains(piece) && *piece != "{ " {
            assert!(script.unclear.is_some(), "{piece}");
        }
    }
}
