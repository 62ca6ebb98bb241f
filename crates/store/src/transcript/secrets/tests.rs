//! What is taken for a key and what is not.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

fn written(text: &str) -> String {
    let mut line = serde_json::to_vec(&json!({ "text": text })).unwrap();
    leave_out(&mut line, 0);
    let value: Value = serde_json::from_slice(&line).unwrap();
    value["text"].as_str().unwrap().to_owned()
}

/// Put together here, so that no tool takes this file for a leak.
fn keys() -> Vec<(String, &'static str)> {
    let letters = "aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA1bC2dE3f";
    vec![
        (
            format!("sk-{}-api03-{letters}_x-{letters}AA", "ant"),
            "sk-ant-",
        ),
        (
            format!("sk-{}-{letters}-{letters}_{letters}", "proj"),
            "sk-proj-",
        ),
        (format!("sk-{}-{letters}", "svcacct"), "sk-svcacct-"),
        (
            format!("sk-{}-v1-{}", "or", "0123456789abcdef".repeat(4)),
            "sk-or-",
        ),
        (format!("sk-{letters}{}", &letters[..8]), "sk-"),
        (format!("sk-{}", "0123456789abcdef".repeat(2)), "sk-"),
        (format!("sk-{}", "abcdefghijklmnopqrst"), "sk-"),
        (format!("{}IA{}", "AK", "IOSFODNN7EXAMPLE"), "AWS"),
        (format!("{}IA{}", "AS", "IOSFODNN7EXAMPLE"), "AWS"),
        (format!("ghp_{}", &letters[..36]), "gh_"),
        (format!("gho_{}", &letters[..36]), "gh_"),
        (
            format!("github_pat_{}_{}", &letters[..22], &letters[..30]),
            "github_pat_",
        ),
        (
            format!("xox{}-123456789012-1234567890123-{}", "b", &letters[..24]),
            "xox",
        ),
        (format!("AI{}{}", "za", &letters[..35]), "AIza"),
    ]
}

#[test]
fn keys_are_left_out_wherever_they_stand() {
    for (key, shown) in keys() {
        for (before, after) in [
            ("", ""),
            ("export KEY=", "\n"),
            ("a line\n", "\nanother"),
            ("\t\"", "\","),
            ("Bearer ", " x"),
            ("https://", "@example.com/x"),
            ("https://user:", "@example.com"),
            ("é", "é"),
            ("\u{1b}", "."),
            ("\u{1b}[01;31m\u{1b}[K", "\u{1b}[m"),
            ("https://x/?key%3D", "&y"),
            ("in code \\n", "\\n"),
            ("(", ")"),
        ] {
            let text = written(&format!("{before}{key}{after}"));
            assert_eq!(text, format!("{before}{MARKER}{shown}…]{after}"), "{key}");
        }
        let twice = written(&format!("{key} {key}"));
        assert_eq!(twice.matches(MARKER).count(), 2, "{key}");
    }
}

#[test]
fn ordinary_words_stay() {
    for text in [
        "task-management-for-the-whole-team-2026",
        "risk-aversion12345678901234567890",
        "the disk-usage1234567890123456 of sk-learn",
        "sk-toggleable__content-arrow sk-estimator-id-12",
        "sk-ant-… is how keys begin",
        "sk-ant-hill-with-many-small-rooms",
        "ask-abcdefghijklmnopqrstuvwxyz0123",
        "sk- and sk-123",
        "AKIA AKIAB ASIAN-MARKETS AKIAIOSFODNN7EXAMPLEX",
        "github_pat_ ghp_short gh_x high_ghp_abc",
        "xoxo-kisses-and-hugs-for-everyone",
        "AIzaShort",
        "MARKETING_AKIA_IS_A_SHIP_1234567",
    ] {
        assert_eq!(written(text), text);
    }
}

/// Text over an alphabet from a small generator.
fn noise(alphabet: &[u8], len: usize, mut state: u64) -> String {
    let mut text = String::with_capacity(len);
    for _ in 0..len {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        text.push(char::from(
            alphabet[(state >> 33) as usize % alphabet.len()],
        ));
    }
    text
}

const PLAIN: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

#[test]
fn encoded_data_is_never_taken_for_a_key() {
    for (n, alphabet) in [PLAIN, URL].into_iter().enumerate() {
        let text = noise(alphabet, 4 << 20, n as u64 + 7);
        assert_eq!(find(text.as_bytes()).len(), 0);
        // As signatures of a usual length, one a string.
        let signatures: Vec<&str> = (0..text.len() / 400)
            .map(|n| &text[n * 400..][..400])
            .collect();
        let line = serde_json::to_vec(&signatures).unwrap();
        assert_eq!(find(&line).len(), 0);
    }
}

#[test]
fn long_data_that_begins_like_a_key_stays() {
    for begin in [
        "sk-",
        "sk-ant-",
        "AIza",
        "AKIA",
        "ghp_",
        "github_pat_",
        "xoxb-1",
    ] {
        for alphabet in [PLAIN, URL] {
            let text = format!("{begin}{}==", noise(alphabet, 600, 3));
            assert_eq!(written(&text), text);
            // In the middle of data it stays too.
            let text = format!(
                "{}{begin}{}",
                noise(alphabet, 63, 5),
                noise(alphabet, 40, 9)
            );
            let inside = text[62..].starts_with(['+', '/']);
            assert!(inside || written(&text) == text, "{text}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
    /// Any text with keys in it stays JSON, loses each key, and grows by a bounded amount.
    #[test]
    fn a_line_stays_valid(before in ".{0,40}", pick in 0usize..14, after in "[^A-Za-z0-9_+/=-].{0,40}") {
        let (key, _) = keys().swap_remove(pick);
        let text = format!("{before} {key}{after}");
        let out = written(&text);
        prop_assert!(!out.contains(&key));
        prop_assert!(out.starts_with(&before));
        prop_assert!(out.ends_with(&after));
        prop_assert!(out.len() <= text.len() + 40);
    }

    #[test]
    fn any_text_without_keys_is_as_it_was(text in "[a-zA\\-_k s\"\\\\\n/+=.]{0,200}") {
        let out = written(&text);
        prop_assert!(out == text || text.contains("sk-"));
    }
}

/// Every byte is looked at a bounded number of times, however many beginnings there are.
#[test]
fn beginnings_in_a_row_cost_one_look() {
    for text in [
        " sk-".repeat(200_000),
        "sk-".repeat(200_000),
        " AKIA".repeat(200_000),
    ] {
        assert_eq!(find(text.as_bytes()).len(), 0);
    }
}
