//! Which files a shell command touches, as far as its text tells.

use super::command::{Flow, Level, Part, Script, Word, base_name, system_name};
use super::paths::{absolute, is_inside};
use super::readonly::sed;
use std::path::{Path, PathBuf};

/// How many folders a command may be in before they are no longer followed.
const MOST_FOLDERS: usize = 16;

/// Commands that write where their arguments say.
const WRITERS: [&str; 17] = [
    "chgrp", "chmod", "chown", "cp", "dd", "install", "ln", "mkdir", "mv", "rm", "rmdir", "rsync",
    "shred", "tee", "touch", "truncate", "unlink",
];

/// Commands that show or copy what their arguments name.
const READERS: [&str; 44] = [
    ".", "awk", "base64", "bat", "cat", "cmp", "comm", "cp", "cut", "diff", "egrep", "fgrep",
    "file", "find", "fold", "grep", "gzip", "head", "hexdump", "install", "join", "jq", "less",
    "ln", "ls", "more", "mv", "nl", "od", "paste", "rev", "rg", "rsync", "sort", "source", "stat",
    "strings", "tac", "tail", "tar", "uniq", "wc", "xxd", "zip",
];

/// One file that a part of a command touches.
#[derive(Debug)]
pub(super) struct Touch {
    /// The part's place among the parts.
    pub(super) part: usize,
    /// By its text alone; nothing where it is known only when the command runs.
    pub(super) path: Option<PathBuf>,
    /// The same with its `..` left in: behind a link they lead elsewhere than the text says.
    pub(super) raw: Option<PathBuf>,
    pub(super) writes: bool,
    /// By a redirection.
    pub(super) redirected: bool,
}

#[derive(Debug, Default)]
pub(super) struct Trace {
    pub(super) touches: Vec<Touch>,
    /// The folders that it goes to.
    pub(super) entered: Vec<PathBuf>,
    /// For each part whether it certainly runs in one of the agent's folders.
    pub(super) at_home: Vec<bool>,
}

impl Trace {
    pub(super) fn of(script: &Script, cwd: &Path, home: &Path, roots: &[PathBuf]) -> Self {
        let mut trace = Self::default();
        let mut folders = Folders {
            known: vec![absolute(cwd, Path::new("/"))],
            lost: false,
            home,
        };
        for (place, part) in script.parts.iter().enumerate() {
            let is_inside = |folder: &PathBuf| is_inside(folder, roots);
            trace
                .at_home
                .push(!folders.lost && folders.known.iter().all(is_inside));
            let mut note = |paths: Vec<Option<PathBuf>>, writes, redirected| {
                trace.touches.extend(paths.into_iter().map(|raw| Touch {
                    part: place,
                    path: raw.as_ref().map(|raw| absolute(raw, Path::new("/"))),
                    raw,
                    writes,
                    redirected,
                }));
            };
            for redirect in part
                .redirects
                .iter()
                .filter(|one| !is_terminal(&one.target))
            {
                let writes = redirect.flow == Flow::Writes;
                note(folders.places(&redirect.target), writes, true);
            }
            for Named {
                word,
                below,
                writes,
            } in touched(part)
            {
                let mut paths = match word {
                    Some(word) => folders.places(&word),
                    None => vec![None],
                };
                for path in paths.iter_mut().flatten() {
                    path.extend(&below);
                }
                note(paths, writes, false);
            }
            trace.entered.extend(folders.follow(part.deepest()));
        }
        trace
    }

    pub(super) fn writes(&self) -> impl Iterator<Item = &Touch> {
        self.touches.iter().filter(|touch| touch.writes)
    }
}

/// The folders that a command may be in. A change of folder may fail, or happen in a subshell, so
/// the folder before it stays among them.
struct Folders<'a> {
    known: Vec<PathBuf>,
    /// It may be anywhere.
    lost: bool,
    home: &'a Path,
}

impl Folders<'_> {
    /// Every path that a word may stand for, with its `..` left in.
    fn places(&self, word: &Word) -> Vec<Option<PathBuf>> {
        let text = word.text.as_str();
        // `.*` may be `.git`.
        let is_hidden = |name: &str| name.starts_with('.') && name.contains(['*', '?', '[']);
        if word.expands || word.braces || word.globs && text.split('/').any(is_hidden) {
            return vec![None];
        }
        if word.raw.starts_with('~') {
            let below = text.strip_prefix("~/").or((text == "~").then_some(""));
            return vec![below.map(|below| self.home.join(below))];
        }
        if text.starts_with('/') {
            return vec![Some(PathBuf::from(text))];
        }
        let known = self.known.iter();
        let mut places: Vec<_> = known.map(|folder| Some(folder.join(text))).collect();
        if self.lost {
            places.push(None);
        }
        places
    }

    /// Goes where a command goes; gives back the folders that are new.
    fn follow(&mut self, level: Level<'_>) -> Vec<PathBuf> {
        let Some((name, rest)) = level.words.split_first() else {
            return Vec::new();
        };
        let target = match name.text.as_str() {
            "cd" => rest
                .iter()
                .find(|word| !matches!(&*word.text, "-P" | "-L" | "--")),
            "pushd" | "popd" | "source" | "." => {
                self.lost = true;
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        let places = match target {
            Some(word) if word.globs || word.text.starts_with('-') => vec![None],
            Some(word) => self.places(word),
            None => vec![Some(self.home.to_owned())],
        };
        let mut new = Vec::new();
        for place in places {
            // The shell goes up by the text, not by where links lead.
            match place.map(|place| absolute(&place, Path::new("/"))) {
                Some(place) if self.known.len() < MOST_FOLDERS => {
                    if !self.known.contains(&place) {
                        self.known.push(place.clone());
                    }
                    new.push(place);
                }
                _ => self.lost = true,
            }
        }
        new
    }
}

/// A file that an argument names.
struct Named {
    /// Nothing for a file that is named elsewhere.
    word: Option<Word>,
    /// A name in the folder that the word names.
    below: Option<String>,
    writes: bool,
}

impl Named {
    fn new(word: &Word, writes: bool) -> Self {
        Self {
            word: Some(word.clone()),
            below: None,
            writes,
        }
    }
}

/// The arguments of a part that name files.
fn touched(part: &Part) -> Vec<Named> {
    let level = part.deepest();
    let Some((name, rest)) = level.words.split_first() else {
        return Vec::new();
    };
    let name = base_name(&name.text);
    // Behind `--` nothing is an option, whatever it looks like.
    let end = rest.iter().position(|word| word.text == "--");
    let (options, behind) = rest.split_at(end.unwrap_or(rest.len()));
    let operands = || {
        let before = options.iter().filter(|word| !word.text.starts_with('-'));
        before.chain(behind.iter().skip(1))
    };
    if name == "sed" {
        let in_place = rest.iter().any(|word| is_in_place(&word.text));
        let files: Vec<&Word> = match sed::parse(rest) {
            Some(sed) => sed.files,
            None => operands().collect(),
        };
        let kinds: &[bool] = if in_place { &[false, true] } else { &[false] };
        let named = |writes: &bool| files.iter().map(|word| Named::new(word, *writes)).collect();
        return kinds
            .iter()
            .flat_map(|writes| -> Vec<_> { named(writes) })
            .collect();
    }
    let mut touched = Vec::new();
    if READERS.contains(&name) {
        touched.extend(operands().map(|word| Named::new(word, false)));
    }
    if WRITERS.contains(&name) {
        touched.extend(operands().map(|word| Named::new(word, true)));
        touched.extend(inside(name, rest));
        if level.more {
            touched.push(Named {
                word: None,
                below: None,
                writes: true,
            });
        }
    }
    touched.extend(
        outputs(name, rest)
            .iter()
            .map(|word| Named::new(word, true)),
    );
    touched
}

/// `-i`, also among other letters, and `--in-place`, also cut short.
fn is_in_place(option: &str) -> bool {
    match (option.strip_prefix("--"), option.strip_prefix('-')) {
        (Some(long), _) => {
            let name = long.split_once('=').map_or(long, |(name, _)| name);
            !name.is_empty() && "in-place".starts_with(name)
        }
        (None, Some(letters)) => letters
            .chars()
            .take_while(|c| !matches!(c, 'e' | 'f'))
            .any(|c| c == 'i'),
        (None, None) => false,
    }
}

/// What copying and moving makes in a folder: files with the names of what is copied.
fn inside(name: &str, rest: &[Word]) -> Vec<Named> {
    if !["cp", "install", "ln", "mv", "rsync"].contains(&name) {
        return Vec::new();
    }
    let mut sources: Vec<&Word> = rest
        .iter()
        .filter(|word| !word.text.starts_with('-'))
        .collect();
    let given = rest.iter().position(|word| word.text == "-t");
    let given = given.and_then(|place| rest.get(place + 1));
    let given = given.cloned().or_else(|| value(rest, "--target-directory"));
    let folder = given.or_else(|| sources.pop().cloned());
    let Some(folder) = folder else {
        return Vec::new();
    };
    let named = |source: &Word| {
        let name = Path::new(&source.text).file_name()?;
        Some(Named {
            word: Some(folder.clone()),
            below: Some(name.to_string_lossy().into_owned()),
            writes: true,
        })
    };
    let mut all: Vec<Named> = sources.into_iter().filter_map(named).collect();
    all.push(Named::new(&folder, true));
    all
}

/// Options that name a file to write, by program: a letter and a long name.
const OUTPUTS: [(&str, &str, &str); 4] = [
    ("curl", "-o", "--output"),
    ("sort", "-o", "--output"),
    ("tree", "-o", "--output"),
    ("wget", "-O", "--output-document"),
];

/// Files to write that stand in options.
fn outputs(name: &str, rest: &[Word]) -> Vec<Word> {
    if name == "dd" {
        return value(rest, "of").into_iter().collect();
    }
    let Some((_, letter, long)) = OUTPUTS.iter().find(|row| row.0 == name) else {
        return Vec::new();
    };
    let mut found: Vec<Word> = value(rest, long).into_iter().collect();
    for (place, word) in rest.iter().enumerate() {
        if word.text == *long || word.text == *letter {
            found.extend(rest.get(place + 1).cloned());
        } else if let Some(file) = word.text.strip_prefix(letter) {
            found.push(cut(word, file));
        }
    }
    found
}

/// What stands behind `name=`.
fn value(rest: &[Word], name: &str) -> Option<Word> {
    rest.iter().find_map(|word| {
        let value = word.text.strip_prefix(name)?.strip_prefix('=')?;
        Some(cut(word, value))
    })
}

/// A part of a word.
fn cut(word: &Word, text: &str) -> Word {
    Word {
        raw: text.to_owned(),
        text: text.to_owned(),
        ..word.clone()
    }
}

/// Whether a redirection goes to nothing, or to where output goes anyway.
fn is_terminal(target: &Word) -> bool {
    let text = target.text.as_str();
    !target.expands
        && matches!(
            text,
            "/dev/null" | "/dev/stdin" | "/dev/stdout" | "/dev/stderr" | "/dev/tty"
        )
}

/// Whether a command is one of the plain edits that `acceptEdits` approves, with options that are
/// known. Where its files are is for [`Trace`] to say.
pub(super) fn is_edit(level: Level<'_>) -> bool {
    const EDITS: [(&str, &str, &[&str]); 6] = [
        (
            "cp",
            "RTafinpruv",
            &["archive", "force", "recursive", "verbose"],
        ),
        ("mkdir", "pv", &["parents", "verbose"]),
        ("mv", "Tfinuv", &["force", "no-clobber", "verbose"]),
        ("rm", "IRdfirv", &["dir", "force", "recursive", "verbose"]),
        ("rmdir", "v", &["verbose"]),
        ("touch", "acm", &["no-create"]),
    ];
    let Some((name, rest)) = level.words.split_first() else {
        return false;
    };
    if level.more || !rest.iter().all(|word| word.is_plain() || word.is_operand()) {
        return false;
    }
    let name = system_name(&name.text);
    if name == "sed" {
        return sed::parse(rest).is_some_and(|sed| !sed.files.is_empty());
    }
    let Some((_, letters, longs)) = EDITS.iter().find(|row| row.0 == name) else {
        return false;
    };
    let mut words = rest.iter().map(|word| word.text.as_str());
    words.all(|text| match text.strip_prefix('-') {
        None | Some("-") => true,
        Some(option) => match option.strip_prefix('-') {
            Some(long) => longs.contains(&long),
            None => !option.is_empty() && option.chars().all(|c| letters.contains(c)),
        },
    })
}
