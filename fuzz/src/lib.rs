//! What must hold for any bytes: the targets of `cargo xtask fuzz`, as plain functions. They are
//! tried by libFuzzer with inputs that it makes up, and by the suite with those that are kept.
//!
//! A target panics when something does not hold. Each works through public interfaces alone, so
//! that it says what users are promised and not how the code is built today.

mod calls;
mod fence;
mod rules;
mod splitter;
mod sse;
mod transcript;

/// Something that takes any bytes.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
}

pub const TARGETS: [Target; 5] = [
    // Shell commands taken apart: what is denied stays so in whatever it stands in.
    Target {
        name: "splitter",
        run: splitter::run,
    },
    // Rules read from text and held against calls: forbidding is never narrower.
    Target {
        name: "rules",
        run: rules::run,
    },
    // Paths in a tree full of links: nothing outside is opened or changed.
    Target {
        name: "fence",
        run: fence::run,
    },
    // Event streams: where the bytes are cut does not matter.
    Target {
        name: "sse",
        run: sse::run,
    },
    // Transcripts: whatever they hold, the conversation goes on.
    Target {
        name: "transcript",
        run: transcript::run,
    },
];

pub fn target(name: &str) -> Option<Target> {
    TARGETS.into_iter().find(|target| target.name == name)
}
