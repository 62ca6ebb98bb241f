//! Whether the coordinator's prompt teaches every rule that it is meant to.

use super::*;

/// Each rule, and words of the prompt that teach it. Whoever takes a rule out of the prompt, or
/// says it in other words, says so here.
const RULES: [(&str, &[&str]); 37] = [
    (
        "tell the user briefly what was launched, and end the turn",
        &["tell the user in a sentence or two what runs and why, then end your turn"],
    ),
    (
        "tell the user what was learned",
        &["What was launched and why; what was learned, in your own words"],
    ),
    ("skills are for workers", &["Skills are for workers"]),
    (
        "don't peek",
        &["Do not read into a running worker's transcript"],
    ),
    (
        "research changes nothing",
        &[
            "Their orders say that they change nothing",
            "for research, that nothing is to be changed",
        ],
    ),
    (
        "implementers test, commit, report",
        &["run the relevant tests, commit only their own files, report the hash"],
    ),
    (
        "verification beside implementation on other files",
        &["It may run while other files are still being worked on"],
    ),
    (
        "git orders are exact",
        &["the branch, whether to commit or push, draft or ready, which reviewers"],
    ),
    (
        "corrections cite what was done",
        &["A correction names what the worker did and what is wrong with it"],
    ),
    (
        "mend causes",
        &["asks for the cause to be mended, not the symptom"],
    ),
    (
        "after a failure, decide",
        &["then decide: retry as it was, with a changed order, with a fresh worker, or not at all"],
    ),
    (
        "look at what it means for the siblings",
        &["Consider what it means for the others that run"],
    ),
    ("answer directly", &["Answer directly what needs no tools"]),
    (
        "the four phases",
        &[
            "**Research.**",
            "**Synthesis,",
            "**Implementation.**",
            "**Verification.**",
            "Phases may repeat",
        ],
    ),
    (
        "fan out in one message",
        &["Start independent workers in one message"],
    ),
    (
        "no fan-out for a small task",
        &["Do not fan out for a small task"],
    ),
    (
        "reading in parallel",
        &[
            "Workers that only look, several at once",
            "readers may always run beside them",
        ],
    ),
    (
        "one writer for a set of files",
        &["One worker for each set of files at a time"],
    ),
    (
        "understand first",
        &["Read the reports until you could do the task yourself"],
    ),
    (
        "never hand understanding on",
        &["Never hand understanding on"],
    ),
    ("self-contained orders", &["Every order stands on its own"]),
    (
        "purpose, paths, lines",
        &[
            "what it is for, in a sentence",
            "paths, names and lines that you know",
        ],
    ),
    (
        "what done looks like",
        &["what done looks like: which command must pass"],
    ),
    (
        "continue: explored, corrected",
        &[
            "| it explored exactly the files to be changed | continue |",
            "| correcting a failure, extending recent work | continue |",
        ],
    ),
    (
        "fresh: broad, verifying, wrong approach, unrelated",
        &[
            "| broad research, narrow implementation | fresh |",
            "| verifying what another worker wrote | fresh |",
            "| the first attempt took the wrong approach | fresh |",
            "| unrelated work | fresh |",
        ],
    ),
    (
        "verification proves, by a fresh worker",
        &["By a fresh worker that did not write the change. Its task is to prove that it works"],
    ),
    (
        "real checks before success",
        &["somebody must have looked at the real diff and the real output of the checks"],
    ),
    (
        "never thank or answer notifications",
        &["Do not thank for them and do not answer them"],
    ),
    (
        "never predict or make up",
        &["Never guess, predict or make up a result that has not come"],
    ),
    (
        "no worker checks on another",
        &["never send one worker to check on another"],
    ),
    (
        "no workers for a trivial look",
        &["Do not start workers to look up a trifle"],
    ),
    (
        "a worker that fails or stops half-way",
        &["A worker may fail, stop half-way, or come back with half an answer"],
    ),
    (
        "a worker sent the wrong way",
        &[
            "you sent a worker the wrong way",
            "stop it at once and send it what is right",
        ],
    ),
    (
        "worktrees for writers side by side, and their integration",
        &[
            "give each `isolation: \"worktree\"`",
            "Integrate merges their branches with their checks",
        ],
    ),
    ("partial results", &["Use partial results"]),
    ("mark what is unsure", &["[HIGH], [MEDIUM] or [LOW]"]),
    (
        "quote the user's approval",
        &["When you pass on something that the user allowed or demanded, quote their own words"],
    ),
];

#[test]
fn the_coordinator_is_taught_every_rule() {
    for (rule, phrases) in RULES {
        for phrase in phrases {
            assert!(
                COORDINATOR.text.contains(phrase),
                "the prompt no longer teaches `{rule}`: \"{phrase}\" is not there"
            );
        }
    }
}

#[test]
fn every_prompt_has_a_hash_of_its_own() {
    let all = [
        AGENT,
        COORDINATOR,
        WORKER,
        EXPLORE,
        PLAN,
        VERIFIER,
        DOCUMENTS,
        MEMORY,
        WEB_FETCH,
    ];
    let hashes: std::collections::BTreeSet<String> = all.iter().map(Prompt::hash).collect();
    assert_eq!(hashes.len(), all.len());
    assert!(hashes.iter().all(|hash| hash.len() == 32));
}
