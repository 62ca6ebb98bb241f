//! The rules: read from data, checked against their own examples when they load, and applied.

use super::data::{BuiltIn, Lack, Own, RuleData, RuleError, When};
use super::kind::KindLists;
use super::names::FileNames;
use super::phrase::{Hits, Phrases};
use super::tokens::tokens;
use super::{Finding, Judgement, Level, OrderKind, OrderText};
use std::collections::BTreeMap;

const BUILT_IN: &str = include_str!("../../rules/orders.toml");

const MOST_RULES: usize = 200;
const LONGEST_EXCERPT: usize = 80;

#[derive(Debug)]
struct Rule {
    data: RuleData,
    found: usize,
    unless: usize,
}

/// A set of rules that meets its own examples.
#[derive(Debug)]
pub struct Rules {
    phrases: Phrases,
    files: FileNames,
    kinds: KindLists,
    lead_in: usize,
    completion: usize,
    purpose: usize,
    correction: usize,
    restart: usize,
    advice: BTreeMap<String, String>,
    rules: Vec<Rule>,
}

/// What was seen in one order.
struct Read<'a> {
    order: &'a OrderText<'a>,
    hits: Hits,
    spans: Vec<(usize, usize)>,
    kind: Option<OrderKind>,
}

/// What the words of an order say about those who could carry it out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tone {
    pub(crate) kind: Option<OrderKind>,
    /// It corrects or extends what was just done.
    pub(crate) corrects: bool,
    /// What was tried is given up.
    pub(crate) restarts: bool,
}

impl Rules {
    pub fn built_in() -> Result<Self, RuleError> {
        Self::load("")
    }

    /// The built-in rules with those of a project's own file, and without those it switches off.
    pub fn load(own: &str) -> Result<Self, RuleError> {
        let wrong = |error: toml::de::Error| RuleError::Toml(error.to_string().trim().to_owned());
        let built_in: BuiltIn = toml::from_str(BUILT_IN).map_err(wrong)?;
        let own: Own = toml::from_str(own).map_err(wrong)?;
        let mut rules = built_in.rule;
        for rule in own.rule {
            if rules.iter().any(|known| known.id == rule.id) {
                return Err(rule.wrong("is there twice; switch the other one off by another id"));
            }
            rules.push(rule);
        }
        for id in &own.off {
            let before = rules.len();
            rules.retain(|rule| rule.id != *id);
            if rules.len() == before {
                return Err(RuleError::Unknown(id.clone()));
            }
        }
        let files = FileNames {
            extensions: built_in.files.extensions,
            whole: built_in.files.whole,
            folders: built_in.files.folders,
            never: built_in.files.never,
        };
        let mut rules = Self::compile(&built_in.lists, files, rules)?;
        rules.advice = built_in.advice;
        rules.check_examples()?;
        Ok(rules)
    }

    fn compile(
        lists: &BTreeMap<String, Vec<String>>,
        files: FileNames,
        all: Vec<RuleData>,
    ) -> Result<Self, RuleError> {
        if all.len() > MOST_RULES {
            let why = format!("there are {} rules, {MOST_RULES} is the most", all.len());
            return Err(RuleError::Toml(why));
        }
        let mut phrases = Phrases::default();
        let bad = |rule: &str, why| RuleError::Phrase {
            rule: rule.to_owned(),
            why,
        };
        for (name, list) in lists {
            phrases.add(name, list).map_err(|why| bad(name, why))?;
        }
        let mut rules = Vec::new();
        for data in all {
            data.check()?;
            let id = data.id.clone();
            let found = phrases.add(&format!("rule {id}"), &data.phrases);
            let found = found.map_err(|why| bad(&id, why))?;
            let unless = phrases.add(&format!("unless {id}"), &data.unless);
            let unless = unless.map_err(|why| bad(&id, why))?;
            rules.push(Rule {
                data,
                found,
                unless,
            });
        }
        // Commands that show that it is done stand in quotes.
        phrases.read_quotes("completion");
        let missing = |name: &str| RuleError::Toml(format!("the list `{name}` is missing"));
        let list = |name: &str| phrases.list(name).ok_or_else(|| missing(name));
        Ok(Self {
            kinds: KindLists::of(&phrases).ok_or_else(|| missing("research"))?,
            lead_in: list("lead-in")?,
            completion: list("completion")?,
            purpose: list("purpose")?,
            correction: list("correction")?,
            restart: list("restart")?,
            phrases,
            files,
            advice: BTreeMap::new(),
            rules,
        })
    }

    fn check_examples(&self) -> Result<(), RuleError> {
        for rule in &self.rules {
            let is_found = |text: &String| {
                let order = match rule.data.when {
                    When::Continuation => OrderText::continuation(text),
                    _ => OrderText::fresh(text),
                };
                self.apply(rule, &self.read(&order)).is_some()
            };
            let id = || rule.data.id.clone();
            if let Some(text) = rule.data.matches.iter().find(|text| !is_found(text)) {
                let text = text.clone();
                return Err(RuleError::Misses { rule: id(), text });
            }
            if let Some(text) = rule.data.passes.iter().find(|text| is_found(text)) {
                let text = text.clone();
                return Err(RuleError::Finds { rule: id(), text });
            }
        }
        Ok(())
    }

    /// What is wrong with an order, and how good it is. Nothing is looked for where this is off.
    pub fn check(&self, order: &OrderText<'_>, level: &Level) -> Judgement {
        if *level == Level::Off {
            return Judgement {
                kind: order.kind,
                findings: Vec::new(),
                score: 100,
            };
        }
        let read = self.read(order);
        let mut findings = Vec::new();
        let mut score: u8 = 100;
        for rule in &self.rules {
            if let Some(finding) = self.apply(rule, &read) {
                score = score.saturating_sub(rule.data.weight);
                findings.push(finding);
            }
        }
        Judgement {
            kind: read.kind,
            findings,
            score,
        }
    }

    pub(crate) fn tone(&self, order: &OrderText<'_>) -> Tone {
        let read = self.read(order);
        Tone {
            kind: read.kind,
            corrects: read.hits.of(self.correction).is_some(),
            restarts: read.hits.of(self.restart).is_some(),
        }
    }

    /// A text that is no rule's own.
    pub(crate) fn text<'a>(&'a self, name: &'a str) -> &'a str {
        self.advice.get(name).map_or(name, String::as_str)
    }

    pub(crate) fn files(&self) -> &FileNames {
        &self.files
    }

    fn read<'a>(&self, order: &'a OrderText<'a>) -> Read<'a> {
        let mut tokens = tokens(order.text, self.phrases.words());
        let hits = self.phrases.find(&mut tokens, self.lead_in);
        Read {
            kind: order.kind.or_else(|| self.kinds.infer(&hits)),
            order,
            hits,
            spans: tokens.iter().map(|it| (it.start, it.end)).collect(),
        }
    }

    fn apply(&self, rule: &Rule, read: &Read<'_>) -> Option<Finding> {
        let data = &rule.data;
        let fits =
            data.kinds.is_empty() || read.kind.is_some_and(|kind| data.kinds.contains(&kind));
        let is_time = match data.when {
            When::Always => true,
            When::Fresh => !read.order.is_continuation,
            When::Continuation => read.order.is_continuation,
        };
        if !fits || !is_time || read.hits.of(rule.unless).is_some() {
            return None;
        }
        let text = read.order.text;
        let excerpt = match data.lacks {
            Some(Lack::Path) => (!self.files.has_path(text)).then(String::new),
            Some(Lack::Completion) => {
                let is_missing = read.hits.of(self.completion).is_none();
                is_missing.then(String::new)
            }
            Some(Lack::Purpose) => {
                let is_missing = read.hits.of(self.purpose).is_none();
                is_missing.then(String::new)
            }
            None => read.hits.of(rule.found).map(|(first, last)| {
                let start = read.spans.get(first).map_or(0, |span| span.0);
                let end = read.spans.get(last - 1).map_or(start, |span| span.1);
                one_line(&text[start..end])
            }),
        }?;
        Some(Finding {
            rule: data.id.clone(),
            excerpt,
            advice: data.advice.clone(),
            refuses: data.refuses,
        })
    }
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").chars().take(LONGEST_EXCERPT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    const OWN: &str = r#"
off = ["vague"]

[[rule]]
id = "names-a-ticket"
about = "Orders of this project name their ticket."
kinds = ["implementation"]
phrases = ["no ticket"]
weight = 5
advice = "Name the ticket."
matches = ["Fix a.rs, no ticket.", "Add b.rs. No ticket.", "Change c.rs: no ticket"]
passes = ["Fix a.rs for AB-1.", "no ticket", "Look at c.rs, no ticket."]
"#;

    #[test]
    fn the_built_in_rules_meet_their_own_examples() {
        let rules = Rules::built_in().unwrap();
        assert!(rules.rules.len() >= 10);
    }

    #[test]
    fn a_project_adds_rules_and_switches_others_off() {
        let rules = Rules::load(OWN).unwrap();
        let text = "Clean up src/a.rs as you see fit, since it is slow; no ticket. Run the tests.";
        let judged = rules.check(&OrderText::fresh(text), &Level::Warn);
        let found: Vec<&str> = judged.findings.iter().map(|it| it.rule.as_str()).collect();
        assert_eq!(found, ["names-a-ticket"]);
        assert_eq!(judged.score, 95);
        let off = rules.check(&OrderText::fresh(text), &Level::Off);
        assert_eq!((off.findings.len(), off.score), (0, 100));
    }

    #[test]
    fn the_documented_example_can_be_used() {
        let documented = include_str!("../../../../docs/orders.md");
        let example = documented.split("```toml").nth(1).unwrap();
        Rules::load(example.split("```").next().unwrap()).unwrap();
    }

    #[test]
    fn a_file_with_a_mistake_is_refused_in_plain_words() {
        let error = |text: &str| Rules::load(text).unwrap_err().to_string();
        assert_eq!(
            error("off = [\"vauge\"]"),
            "`off` names `vauge`, and there is no such rule"
        );
        let misses = OWN.replace("Fix a.rs, no ticket.", "Fix a.rs.");
        assert_eq!(
            error(&misses),
            "the rule `names-a-ticket` does not find its own example `Fix a.rs.`"
        );
        let finds = OWN.replace("Fix a.rs for AB-1.", "Fix a.rs, no ticket.");
        assert_eq!(
            error(&finds),
            "the rule `names-a-ticket` finds `Fix a.rs, no ticket.`, which it says it lets pass"
        );
        for (from, to) in [
            ("weight = 5", "weight = 0"),
            ("weight = 5", "wieght = 5"),
            ("\"no ticket\"]", "\"no (ticket\"]"),
            ("names-a-ticket", "hands-on"),
            ("names-a-ticket", "Names"),
            ("\"Fix a.rs for AB-1.\", ", ""),
            ("Name the ticket.", ""),
        ] {
            assert!(Rules::load(&OWN.replace(from, to)).is_err(), "{to}");
        }
        assert!(Rules::load("off = [").is_err());
    }

    #[test]
    fn a_kind_is_only_inferred_where_words_say_it() {
        let rules = Rules::built_in().unwrap();
        let kind = |text: &str| rules.tone(&OrderText::fresh(text)).kind;
        let (research, implementation, verification) = (
            Some(OrderKind::Research),
            Some(OrderKind::Implementation),
            Some(OrderKind::Verification),
        );
        assert_eq!(kind("go"), None);
        assert_eq!(kind("The weather is nice."), None);
        assert_eq!(kind("Find out why it fails."), research);
        assert_eq!(kind("Read src/a.rs, then add a test."), implementation);
        assert_eq!(kind("Please fix src/a.rs."), implementation);
        assert_eq!(kind("Look for fixes to add. Change nothing."), research);
        assert_eq!(kind("Verify that it works and fix it."), verification);
        assert_eq!(kind("调查原因，不要修改。"), research);
        assert_eq!(kind("请修复 src/a.py。"), implementation);
        assert_eq!(kind("验证改动。"), verification);
    }

    #[test]
    fn a_megabyte_takes_time_in_proportion() {
        let rules = Rules::built_in().unwrap();
        let line =
            "Fix `a` in src/a.rs because it based on the fails, 根据你的 and then run \"it\". ";
        let time = |size: usize| {
            let text = line.repeat(size / line.len() + 1);
            let began = Instant::now();
            let judged = rules.check(&OrderText::fresh(&text), &Level::Warn);
            assert!(judged.score <= 100);
            began.elapsed()
        };
        let nasty = [
            "\"",
            "`",
            "based on the ",
            "find ",
            "如果有",
            "(",
            "not ",
            "a/",
            "\n- fix",
        ];
        for part in nasty {
            let text = part.repeat((64 << 10) / part.len());
            let began = Instant::now();
            rules.check(&OrderText::fresh(&text), &Level::Warn);
            assert!(began.elapsed() < Duration::from_secs(10), "{part}");
        }
        // Far from what it takes, for a machine that is busy; a square would be far beyond it.
        let took = time(1 << 20);
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}
