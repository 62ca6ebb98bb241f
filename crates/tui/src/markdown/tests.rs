//! What becomes of Markdown.

use super::*;
use crate::text::width;
use proptest::prelude::*;

fn shown(text: &str, width: usize) -> Vec<String> {
    let look = Look { has_color: true };
    let lines = render(text, width, look);
    lines.iter().map(ToString::to_string).collect()
}

#[test]
fn blocks_have_space_between_them_and_lists_are_tight() {
    let text =
        "# Title\nSome *words*.\n\n- one\n- two\n  1. inner\n\n```rust\nlet a;\n\nlet b;\n```";
    assert_eq!(
        shown(text, 40),
        [
            "Title",
            "",
            "Some words.",
            "",
            "• one",
            "• two",
            "  1. inner",
            "",
            "  let a;",
            "  ",
            "  let b;"
        ]
    );
}

#[test]
fn an_item_that_is_too_long_goes_on_below_its_text() {
    assert_eq!(shown("- one two three", 8), ["• one ", "  two ", "  three"]);
}

#[test]
fn a_link_says_where_it_leads() {
    let text = "[your bank](https://thief.example) <https://a.example>";
    assert_eq!(
        shown(text, 80),
        ["your bank (https://thief.example) https://a.example"]
    );
}

#[test]
fn an_entity_cannot_smuggle_an_escape_sequence() {
    let all = shown("&#27;[31m and `\x1b]0;x\x07` <b>\x1b[2J</b>", 80).join("\n");
    assert!(
        !all.contains(|c: char| c.is_control() && c != '\n'),
        "{all:?}"
    );
}

#[test]
fn a_table_is_aligned_and_becomes_a_list_where_it_does_not_fit() {
    let text = "| name | state |\n|---|---|\n| a | running well |\n| longer | x |";
    assert_eq!(
        shown(text, 40),
        [
            "name   │ state",
            "───────┼─────────────",
            "a      │ running well",
            "longer │ x",
        ]
    );
    let narrow = shown(text, 9);
    assert!(narrow.iter().all(|line| width(line) <= 9), "{narrow:?}");
    assert!(narrow.join(" ").contains("well"), "{narrow:?}");
}

proptest! {
    #[test]
    fn no_text_is_too_wide_or_steers_the_terminal(
        text in "([a-z*_`#>|\\[\\]()!<&;~ \n\t0-9\u{1b}-]|日|👩\u{200d}👧|e\u{301}){0,200}",
        most in 1usize..60,
    ) {
        for line in shown(&text, most) {
            prop_assert!(width(&line) <= most, "{line:?}");
            prop_assert!(!line.contains(char::is_control));
        }
    }
}
