//! How Grep and Glob grow with the tree that they search: a part of `search`.

use crate::caller::Caller;
use crate::growth::{Growth, Series};
use crate::report::{Report, least_and_middle};
use crate::{options, tree};
use gaffer_tools::Tool;
use gaffer_tools::erase;
use gaffer_tools::glob::Glob;
use gaffer_tools::grep::Grep;
use serde_json::{Value, json};
use std::time::Duration;

/// Packages of the tree.
const SIZES: [usize; 4] = [1, 4, 15, tree::PACKAGES];
const RUNS: usize = 7;

pub(crate) fn add(report: &mut Report) -> anyhow::Result<()> {
    let sizes = match options::is_try() {
        true => &SIZES[..2],
        false => &SIZES[..],
    };
    let grep = erase(Grep);
    let glob = erase(Glob {
        respect_gitignore: true,
    });
    let count = json!({"pattern": "return", "output_mode": "count"});
    let all = json!({"pattern": "**/*"});
    let (mut greps, mut globs) = (Vec::new(), Vec::new());
    for packages in sizes {
        let folder = tempfile::tempdir()?;
        let [files, own] = ["files", "own"].map(|name| folder.path().join(name));
        for folder in [&files, &own] {
            std::fs::create_dir(folder)?;
        }
        tree::make(&files, *packages)?;
        let caller = Caller::new(&files, &own, &own)?;
        let size = (packages * (tree::FILES / tree::PACKAGES)) as f64;
        greps.push((size, middle(&caller, grep.as_ref(), &count)?));
        globs.push((size, middle(&caller, glob.as_ref(), &all)?));
    }
    report.growth(Growth::new(
        "files",
        ["Grep and Glob by the size of the tree", "files", "ms"],
        vec![
            Series::new("Grep, a common word", greps),
            Series::new("Glob of all files", globs),
        ],
    ));
    Ok(())
}

/// In milliseconds. The first call warms up what the others find.
fn middle(caller: &Caller, tool: &dyn Tool, input: &Value) -> anyhow::Result<f64> {
    caller.call(tool, input)?;
    let runs: anyhow::Result<Vec<Duration>> =
        (0..RUNS).map(|_| Ok(caller.call(tool, input)?.1)).collect();
    Ok(least_and_middle(&runs?).1.as_secs_f64() * 1e3)
}
