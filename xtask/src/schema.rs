//! The JSON schema of scripts: written to docs/ by the program that defines it, or compared.

use std::fs;
use std::path::PathBuf;

use crate::process::{Invocation, root};
use crate::say;

const FILE: &str = "docs/script.schema.json";

/// Writes the schema that the program prints now.
pub(crate) fn write() -> Result<(), String> {
    let schema = printed()?;
    let path = path();
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    fs::write(&path, schema).map_err(|error| format!("{FILE}: {error}"))?;
    say::note(&format!("wrote {FILE}"));
    Ok(())
}

/// Fails where the file in the tree is not what the program prints now.
pub(crate) fn check() -> Result<(), String> {
    let schema = printed()?;
    // A file that is not there is as stale as one with other text.
    let is_current = fs::read(path()).is_ok_and(|stored| stored == schema);
    if is_current {
        return Ok(());
    }
    Err(format!("{FILE} is stale: run `cargo xtask schema`"))
}

fn path() -> PathBuf {
    root().join(FILE)
}

fn printed() -> Result<Vec<u8>, String> {
    let invocation = Invocation::cargo(&["run", "-q", "-p", "gaffer", "--", "script", "schema"]);
    let schema = invocation.output()?;
    if schema.is_empty() {
        // Rather no new file than an empty one that everybody then takes for the schema.
        return Err(format!("`{invocation}` printed nothing"));
    }
    Ok(schema)
}
