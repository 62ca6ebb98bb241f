//! What the manifests say: the members of the workspace and which of them each depends on.

use std::collections::{BTreeMap, BTreeSet};

use toml::{Table, Value};

use super::Finding;

/// A crate of the workspace.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    pub(super) folder: String,
    /// The short names of the members it depends on outside its tests.
    pub(super) knows: BTreeSet<String>,
}

/// Reads the members from the texts of a tree, where they stand by their paths.
pub(super) fn members(texts: &BTreeMap<String, String>) -> Result<Vec<Member>, Finding> {
    let root = manifest(texts, "Cargo.toml")?;
    let mut packages = BTreeMap::new();
    for folder in folders(&root, texts) {
        let path = format!("{folder}/Cargo.toml");
        let table = manifest(texts, &path)?;
        let name = find(&table, &["package", "name"]).and_then(Value::as_str);
        let Some(name) = name.map(str::to_owned) else {
            return Err(Finding::new(&path, 1, "no package name"));
        };
        packages.insert(name, (folder, table));
    }
    let members = packages.values().map(|(folder, table)| {
        let names = dependencies(table, &root).into_iter();
        Member {
            folder: folder.clone(),
            knows: names
                .filter(|name| packages.contains_key(name))
                .map(|name| short(&name).to_owned())
                .collect(),
        }
    });
    Ok(members.collect())
}

fn short(package: &str) -> &str {
    package.strip_prefix("gaffer-").unwrap_or(package)
}

fn manifest(texts: &BTreeMap<String, String>, path: &str) -> Result<Table, Finding> {
    let Some(text) = texts.get(path) else {
        return Err(Finding::new(path, 1, "the file is missing"));
    };
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = 1 + before.map_or(0, |before| before.matches('\n').count());
        Finding::new(path, line, error.message())
    })
}

/// The folders of the members; of the patterns cargo knows only the `folder/*` that we use.
fn folders(root: &Table, texts: &BTreeMap<String, String>) -> BTreeSet<String> {
    let list = |key| {
        let array = find(root, &["workspace", key]).and_then(Value::as_array);
        array.into_iter().flatten().filter_map(Value::as_str)
    };
    let is_excluded = |folder: &str| list("exclude").any(|excluded| excluded == folder);
    let mut folders = BTreeSet::new();
    for pattern in list("members") {
        let pattern = pattern.trim_end_matches('/');
        match pattern.strip_suffix("/*") {
            Some(parent) => folders.extend(below(parent, texts)),
            None => {
                folders.insert(pattern.to_owned());
            }
        }
    }
    folders.retain(|folder| !is_excluded(folder));
    folders
}

fn below(parent: &str, texts: &BTreeMap<String, String>) -> impl Iterator<Item = String> {
    texts.keys().filter_map(move |path| {
        let folder = path.strip_suffix("/Cargo.toml")?;
        let (before, _) = folder.rsplit_once('/')?;
        (before == parent).then(|| folder.to_owned())
    })
}

/// The packages named in `[dependencies]`, also in those for some targets only.
fn dependencies(table: &Table, root: &Table) -> BTreeSet<String> {
    let targets = table.get("target").and_then(Value::as_table);
    let for_targets = targets.into_iter().flat_map(Table::values);
    table
        .get("dependencies")
        .into_iter()
        .chain(for_targets.filter_map(|target| target.get("dependencies")))
        .filter_map(Value::as_table)
        .flatten()
        .map(|(key, value)| package(key, value, root))
        .collect()
}

/// The package behind a dependency, which may have been renamed here or for the whole workspace.
fn package(key: &str, value: &Value, root: &Table) -> String {
    let own = value.get("package");
    let shared = || find(root, &["workspace", "dependencies", key, "package"]);
    let name = own.or_else(shared).and_then(Value::as_str);
    name.unwrap_or(key).to_owned()
}

fn find<'a>(table: &'a Table, keys: &[&str]) -> Option<&'a Value> {
    let (first, rest) = keys.split_first()?;
    rest.iter()
        .try_fold(table.get(*first)?, |value, key| value.get(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(files: &[(&str, &str)]) -> Result<Vec<Member>, Finding> {
        let texts = files
            .iter()
            .map(|&(path, text)| (path.to_owned(), text.to_owned()));
        members(&texts.collect())
    }

    fn member(folder: &str, knows: &[&str]) -> Member {
        Member {
            folder: folder.to_owned(),
            knows: knows.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    const ROOT: &str = "[workspace]\n\
        members = [\"crates/*\", \"testkit\"]\n\
        exclude = [\"crates/old\"]\n\
        [workspace.dependencies]\n\
        gaffer-protocol = { path = \"crates/protocol\" }\n\
        wire = { path = \"crates/protocol\", package = \"gaffer-protocol\" }\n";

    #[test]
    fn members_know_the_members_they_depend_on() {
        let cli = "[package]\nname = \"gaffer\"\n\
            [dependencies]\ngaffer-protocol.workspace = true\ntoml = \"1\"\n\
            [dev-dependencies]\ngaffer-testkit = { path = \"../../testkit\" }\n";
        let testkit = "[package]\nname = \"gaffer-testkit\"\n\
            [dependencies]\nwire.workspace = true\n\
            [target.'cfg(unix)'.dependencies]\n\
            it = { path = \"../crates/cli\", package = \"gaffer\" }\n";
        let members = read(&[
            ("Cargo.toml", ROOT),
            ("crates/cli/Cargo.toml", cli),
            ("crates/old/Cargo.toml", "[package]\nname = \"old\"\n"),
            (
                "crates/protocol/Cargo.toml",
                "[package]\nname = \"gaffer-protocol\"\n",
            ),
            (
                "crates/protocol/fixture/Cargo.toml",
                "[package]\nname = \"fixture\"\n",
            ),
            ("testkit/Cargo.toml", testkit),
        ]);
        assert_eq!(
            members,
            Ok(vec![
                member("crates/cli", &["protocol"]),
                member("crates/protocol", &[]),
                member("testkit", &["gaffer", "protocol"]),
            ])
        );
    }

    #[test]
    fn manifests_that_cannot_be_read_are_findings() {
        let finding = |files: &[_]| {
            read(files)
                .err()
                .map(|finding| (finding.path, finding.line))
        };
        let at = |path: &str, line| Some((path.to_owned(), line));
        assert_eq!(finding(&[]), at("Cargo.toml", 1));
        assert_eq!(
            finding(&[("Cargo.toml", "[a]\nb = = 1\n")]),
            at("Cargo.toml", 2)
        );
        assert_eq!(
            finding(&[("Cargo.toml", ROOT)]),
            at("testkit/Cargo.toml", 1)
        );
        let nameless = [("Cargo.toml", ROOT), ("testkit/Cargo.toml", "[package]\n")];
        assert_eq!(finding(&nameless), at("testkit/Cargo.toml", 1));
    }
}
