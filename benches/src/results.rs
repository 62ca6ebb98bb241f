//! What was measured, kept: `results.json` for programs, a table and pictures in the README for
//! people. A run replaces what it measured anew and leaves the rest, if it is of the same machine.

use crate::machine::Machine;
use crate::report::Report;
use crate::say;
use anyhow::{Context, ensure};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const BEGIN: &str = "<!-- results:begin -->";
const END: &str = "<!-- results:end -->";

/// Where results are written: the folder of the benches, or one that nobody publishes.
#[derive(Debug)]
pub(crate) struct Results {
    folder: PathBuf,
    all: Map<String, Value>,
}

impl Results {
    /// Takes up what an earlier run has left.
    pub(crate) fn open(folder: &Path, machine: &Machine, date: &str) -> anyhow::Result<Self> {
        fs::create_dir_all(folder.join("pictures"))?;
        let old = match fs::read(folder.join("results.json")) {
            Ok(bytes) => serde_json::from_slice(&bytes).context("results.json is damaged")?,
            Err(_) => Value::Null,
        };
        let machine = machine.json();
        let mut benches = old.get("benches").cloned().unwrap_or_else(|| json!({}));
        let is_other = |old: &&Value| **old != machine;
        if old.get("machine").as_ref().is_some_and(is_other) {
            say::note("bench: results of another machine are dropped");
            benches = json!({});
        }
        let all = json!({
            "version": env!("CARGO_PKG_VERSION"),
            "date": date,
            "machine": machine,
            "benches": benches,
        });
        let Value::Object(all) = all else {
            anyhow::bail!("results are an object");
        };
        Ok(Self {
            folder: folder.to_owned(),
            all,
        })
    }

    /// Adds what one bench measured, and writes its pictures.
    pub(crate) fn add(&mut self, name: &str, report: &Report, about: Value) -> anyhow::Result<()> {
        let mut entry = report.json();
        let mut pictures = Vec::new();
        for growth in report.growths() {
            let file = format!("pictures/{name}-{}.svg", growth.name);
            fs::write(self.folder.join(&file), growth.svg())?;
            pictures.push(json!({"file": file, "title": growth.title}));
        }
        entry.insert("pictures".to_owned(), pictures.into());
        entry.insert("measured".to_owned(), about);
        let benches = self.all.get_mut("benches").and_then(Value::as_object_mut);
        let benches = benches.context("results.json has no benches")?;
        benches.insert(name.to_owned(), Value::Object(entry));
        Ok(())
    }

    /// Writes both files. `order` is that of the benches.
    pub(crate) fn write(&self, order: &[&str]) -> anyhow::Result<()> {
        let mut text = serde_json::to_string_pretty(&self.all)?;
        text.push('\n');
        fs::write(self.folder.join("results.json"), text)?;
        let path = self.folder.join("README.md");
        let Ok(readme) = fs::read_to_string(&path) else {
            return Ok(());
        };
        fs::write(path, between(&readme, &self.markdown(order))?)?;
        Ok(())
    }

    fn markdown(&self, order: &[&str]) -> String {
        let machine = |name: &str| plain(&self.all["machine"][name]);
        let mut out = format!(
            "Version {}, {}: {}, {} cores, {} of memory, Linux {}.\n\n",
            plain(&self.all["version"]),
            plain(&self.all["date"]),
            machine("cpu"),
            machine("cores"),
            machine("memory"),
            machine("kernel"),
        );
        let benches = &self.all["benches"];
        let known = || {
            order
                .iter()
                .filter_map(|name| Some((*name, benches.get(*name)?)))
        };
        out.push_str("| bench | goal | |\n|---|---|---|\n");
        for (name, bench) in known() {
            for goal in list(&bench["goals"]) {
                let verdict = match goal["held"] == true {
                    true => "held",
                    false => "**missed**",
                };
                let what = plain(&goal["goal"]);
                out.push_str(&format!("| `{name}` | {what} | {verdict} |\n"));
            }
        }
        out.push_str("\n| bench | figure | measured |\n|---|---|---|\n");
        for (name, bench) in known() {
            for row in list(&bench["rows"]) {
                let (what, measured) = (plain(&row["what"]), plain(&row["measured"]));
                out.push_str(&format!("| `{name}` | {what} | {measured} |\n"));
            }
        }
        for (_, bench) in known() {
            for picture in list(&bench["pictures"]) {
                let (file, title) = (plain(&picture["file"]), plain(&picture["title"]));
                out.push_str(&format!("\n![{title}]({file})\n"));
            }
        }
        out
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A value as a cell of a table.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace('|', "\\|"),
        other => other.to_string(),
    }
}

/// The text with something else between its markers.
fn between(text: &str, new: &str) -> anyhow::Result<String> {
    let begin = text.find(BEGIN).map(|at| at + BEGIN.len());
    let (begin, end) = begin.zip(text.find(END)).context("no markers")?;
    ensure!(begin <= end, "the markers are in the wrong order");
    Ok(format!("{}\n{new}{}", &text[..begin], &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::growth::{Growth, Series};

    fn machine(cores: usize) -> Machine {
        Machine {
            cpu: "A | B".to_owned(),
            cores,
            memory: "1.0 GiB".to_owned(),
            kernel: "6.1".to_owned(),
        }
    }

    fn report(held: bool) -> Report {
        let mut report = Report::default();
        report.row(["of 3 runs", "least", "median"]);
        report.row(["wall", "1.500 ms", "2.000 ms"]);
        report.goal("under 3 ms", held);
        report.growth(Growth {
            name: "wall".to_owned(),
            title: "Wall by size".to_owned(),
            across: "size".to_owned(),
            up: "ms".to_owned(),
            series: vec![Series::new("wall", [(1.0, 1.0), (10.0, 10.0)])],
        });
        report
    }

    #[test]
    fn a_run_replaces_what_it_measured_and_leaves_the_rest() {
        let temp = tempfile::tempdir().unwrap();
        let readme = temp.path().join("README.md");
        fs::write(&readme, format!("before\n{BEGIN}\nold\n{END}\nafter\n")).unwrap();
        let run = |name: &str, cores, held| {
            let mut results = Results::open(temp.path(), &machine(cores), "a day").unwrap();
            results.add(name, &report(held), json!({})).unwrap();
            results.write(&["one", "two"]).unwrap();
            fs::read_to_string(&readme).unwrap()
        };
        let text = run("two", 2, false);
        assert!(text.starts_with("before\n"), "{text}");
        assert!(text.ends_with(&format!("{END}\nafter\n")), "{text}");
        assert!(!text.contains("old"), "{text}");
        assert!(
            text.contains("| `two` | under 3 ms | **missed** |"),
            "{text}"
        );
        assert!(text.contains("| `two` | wall | least 1.500 ms, median 2.000 ms |"));
        assert!(text.contains("![Wall by size](pictures/two-wall.svg)"));
        assert!(temp.path().join("pictures/two-wall.svg").is_file());
        let text = run("one", 2, true);
        let places = ["`one` | under 3 ms | held", "`two` | under"].map(|it| text.find(it));
        assert!(places[0].is_some() && places[0] < places[1], "{text}");
        let json = fs::read(temp.path().join("results.json")).unwrap();
        let json: Value = serde_json::from_slice(&json).unwrap();
        let figure = &json["benches"]["two"]["figures"][0];
        let want = json!({"name": "wall, least", "value": 1.5, "unit": "ms"});
        assert_eq!(*figure, want);
        let exponent = &json["benches"]["two"]["exponents"][0];
        assert_eq!(exponent["name"], "Wall by size: wall");
        assert!(!run("one", 4, true).contains("`two`"), "another machine");
    }
}
