//! A tree of 100,000 files to search in: sources in packages, pages of text, a few binary files, and
//! folders that .gitignore names. The same bytes each time.

use anyhow::Context;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) const FILES: usize = 100_000;
/// Each has as many files.
pub(crate) const PACKAGES: usize = 50;
/// Stands in one file of so many.
pub(crate) const RARE: &str = "quixotic_marker";
const RARE_EACH: usize = 5000;
const BLOCK: usize = 1 << 20;
const WRITERS: usize = 4;

const WORDS: [&str; 48] = [
    "let", "return", "match", "self", "value", "buffer", "index", "length", "error", "result",
    "if", "else", "for", "while", "struct", "impl", "trait", "pub", "use", "const", "static",
    "async", "await", "move", "request", "response", "session", "client", "server", "config",
    "option", "string", "vector", "number", "parse", "format", "write", "read", "open", "close",
    "path", "name", "line", "count", "first", "last", "next", "done",
];
/// Lines that stand here and there, one in so many.
const SELDOM: [(u64, &str); 4] = [
    (40, "fn load_handler(input: &str) -> usize {"),
    (60, "FN Text_Parser(X) /* as it was written then */"),
    (1000, "// deprecated: the next version does without it"),
    (3000, "// TODO: say what happens where nobody is looking"),
];

/// Numbers without any pattern that matters here, the same each time.
#[derive(Debug, Clone, Copy)]
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % below
    }
}

/// Makes the tree, or its first packages, in an empty folder.
pub(crate) fn make(folder: &Path, packages: usize) -> anyhow::Result<()> {
    // Lists of git count in a repository alone; this much makes one.
    fs::create_dir(folder.join(".git"))?;
    fs::write(
        folder.join(".gitignore"),
        "target/\n*.log\n/out\n!keep.log\n",
    )?;
    for package in 0..packages {
        let package = folder.join(format!("package_{package:02}"));
        fs::create_dir(&package)?;
        fs::write(package.join(".gitignore"), "/build/\n*.tmp\n*.swp\n")?;
    }
    let block = block();
    std::thread::scope(|scope| {
        let block = &block;
        let write = move |writer: usize| -> anyhow::Result<()> {
            // Whole packages, so that writers do not wait for each other's folders.
            for package in (writer..packages).step_by(WRITERS) {
                write_package(folder, package, block)?;
            }
            Ok(())
        };
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| scope.spawn(move || write(writer)))
            .collect();
        writers.into_iter().try_for_each(|writer| {
            let ended = writer.join();
            ended.unwrap_or_else(|why| std::panic::resume_unwind(why))
        })
    })
}

fn write_package(folder: &Path, package: usize, block: &str) -> anyhow::Result<()> {
    let mut made = PathBuf::new();
    for place in 0..FILES / PACKAGES {
        let path = folder.join(path(package, place));
        let parent = path.parent().context("a file is in a folder")?;
        if parent != made {
            fs::create_dir_all(parent)?;
            made = parent.to_owned();
        }
        fs::write(&path, content(package, place, block))?;
    }
    Ok(())
}

/// Where the file of a number is.
fn path(package: usize, place: usize) -> String {
    const ENDINGS: [&str; 8] = ["rs", "rs", "rs", "ts", "py", "json", "toml", "h"];
    let ending = ENDINGS[place % ENDINGS.len()];
    let inner = match place {
        // The sources: four folders of 25 files in each module.
        0..1600 => {
            let (module, part) = (place / 100, place / 25 % 4);
            format!("src/module_{module:02}/part_{part}/file_{place:04}.{ending}")
        }
        // One large folder.
        1600..1800 => format!("docs/page_{place}.md"),
        1800..1840 => format!("assets/image_{place}.png"),
        // Left out by the list at the top, by that of the package, by name.
        1840..1900 => format!("target/debug/object_{place}.rs"),
        1900..1960 => format!("build/file_{place}.{ending}"),
        1960..1980 => format!("src/run_{place}.log"),
        _ => format!(".cache/entry_{place}.{ending}"),
    };
    format!("package_{package:02}/{inner}")
}

/// Mostly small, a few large: 4 KB on average.
fn content(package: usize, place: usize, block: &str) -> Vec<u8> {
    let number = package * (FILES / PACKAGES) + place;
    let mut numbers = Numbers(number as u64);
    numbers.next(2);
    let length = match numbers.next(200) {
        0..40 => 100 + numbers.next(400),
        40..150 => 500 + numbers.next(2500),
        150..194 => 3000 + numbers.next(6000),
        194..199 => 16_000 + numbers.next(32_000),
        _ => 100_000 + numbers.next(100_000),
    } as usize;
    let from = numbers.next((BLOCK - length) as u64) as usize;
    let mut bytes = format!("// File {place} of package {package}.\n").into_bytes();
    if number % RARE_EACH == 7 {
        bytes.extend_from_slice(format!("static {RARE}: u32 = {number};\n").as_bytes());
    }
    if (1800..1840).contains(&place) {
        bytes.splice(0..0, *b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
    }
    bytes.extend_from_slice(&block.as_bytes()[from..from + length]);
    bytes.push(b'\n');
    bytes
}

/// Lines like those of programs, from which every file is cut. All of it is ASCII, so that it can
/// be cut anywhere.
fn block() -> String {
    let mut numbers = Numbers(1);
    let mut text = String::with_capacity(BLOCK + 200);
    while text.len() < BLOCK {
        let seldom = SELDOM.iter().find(|(each, _)| numbers.next(*each) == 0);
        text.push_str(&" ".repeat(4 * numbers.next(4) as usize));
        match seldom {
            Some((_, line)) => text.push_str(line),
            None => {
                for _ in 0..2 + numbers.next(8) {
                    text.push_str(WORDS[numbers.next(WORDS.len() as u64) as usize]);
                    text.push_str([" ", " ", "_", ".", "(", ") ", " = "][numbers.next(7) as usize]);
                }
            }
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_file_has_a_name_of_its_own_and_all_lines_occur() {
        let each = |package| (0..FILES / PACKAGES).map(move |place| path(package, place));
        let names: HashSet<String> = (0..PACKAGES).flat_map(each).collect();
        assert_eq!(names.len(), FILES);
        let block = block();
        for (_, line) in SELDOM {
            assert!(block.contains(line), "{line}");
        }
        let rare = (0..FILES / PACKAGES)
            .map(|place| content(2, place, &block))
            .filter(|bytes| String::from_utf8_lossy(bytes).contains(RARE));
        assert!(rare.count() <= 1);
    }
}
