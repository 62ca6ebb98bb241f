//! The table of crates in ARCHITECTURE.md: it has to say what the manifests say.

use std::collections::{BTreeMap, BTreeSet};

use super::manifests::Member;
use super::{Finding, numbered};

const BEGIN: &str = "<!-- crates:begin -->";
const END: &str = "<!-- crates:end -->";
const HEADER: [&str; 3] = ["crate", "knows", "what lives there"];
/// What stands in the second column of a crate that knows no other.
const NONE: &str = "–";

type Line<'a> = (usize, &'a str);

struct Row {
    line: usize,
    folder: String,
    knows: BTreeSet<String>,
}

pub(super) fn check(path: &str, text: &str, members: &[Member]) -> Vec<Finding> {
    let (begin, lines) = match between_marks(text) {
        Ok(found) => found,
        Err(what) => return vec![Finding::new(path, 1, what)],
    };
    let mut findings = Vec::new();
    let mut rows: BTreeMap<String, Row> = BTreeMap::new();
    for (place, &(line, text)) in lines.iter().enumerate() {
        let row = match (place, text) {
            (0, header) => is_header(header).map(|()| None),
            (1, _rule) => Ok(None),
            (_, text) => row(line, text).map(Some),
        };
        match row {
            Ok(None) => {}
            Ok(Some(row)) if rows.contains_key(&row.folder) => {
                let what = format!("`{}` has a row already", row.folder);
                findings.push(Finding::new(path, line, what));
            }
            Ok(Some(row)) => {
                rows.insert(row.folder.clone(), row);
            }
            Err(what) => findings.push(Finding::new(path, line, what)),
        }
    }
    let differences = differences(begin, &rows, members);
    findings.extend(differences.map(|(line, what)| Finding::new(path, line, what)));
    findings
}

/// The number of the line with the first mark, and the lines with text up to the second.
fn between_marks(text: &str) -> Result<(usize, Vec<Line<'_>>), String> {
    let lines: Vec<Line<'_>> = numbered(text)
        .map(|(number, line)| (number, line.trim()))
        .collect();
    let place = |mark: &str| lines.iter().position(|&(_, line)| line == mark);
    let inside = place(BEGIN).zip(place(END));
    let Some(inside) = inside.and_then(|(begin, end)| lines.get(begin..end)) else {
        return Err(format!("no table of crates between `{BEGIN}` and `{END}`"));
    };
    let mut inside = inside.iter().copied().filter(|(_, line)| !line.is_empty());
    let begin = inside.next().map_or(1, |(number, _)| number);
    Ok((begin, inside.collect()))
}

fn is_header(text: &str) -> Result<(), String> {
    match cells(text) {
        Some(cells) if cells == HEADER => Ok(()),
        _ => Err(format!(
            "the table begins with `| {} |`",
            HEADER.join(" | ")
        )),
    }
}

/// Three cells; a `|` in the last one is part of its text.
fn cells(text: &str) -> Option<[&str; 3]> {
    let text = text.strip_prefix('|')?.strip_suffix('|')?;
    let mut cells = text.splitn(3, '|').map(str::trim);
    Some([cells.next()?, cells.next()?, cells.next()?])
}

fn row(line: usize, text: &str) -> Result<Row, String> {
    let [folder, knows, _] = cells(text).ok_or("no row of three cells")?;
    let bare = |cell: &str| {
        let name = cell.trim().strip_prefix('`')?.strip_suffix('`')?;
        (!name.is_empty() && !name.contains('`')).then(|| name.to_owned())
    };
    let folder = bare(folder).ok_or("the first cell is no folder in backticks")?;
    let knows = match knows {
        NONE => Some(BTreeSet::new()),
        names => names.split(',').map(bare).collect(),
    };
    let knows = knows.ok_or_else(|| {
        format!("the second cell is neither `{NONE}` nor names in backticks with commas between")
    })?;
    Ok(Row {
        line,
        folder,
        knows,
    })
}

fn differences<'a>(
    begin: usize,
    rows: &'a BTreeMap<String, Row>,
    members: &'a [Member],
) -> impl Iterator<Item = (usize, String)> + 'a {
    let of_members = members.iter().filter_map(move |member| {
        let folder = &member.folder;
        let Some(row) = rows.get(folder) else {
            return Some((begin, format!("`{folder}` has no row")));
        };
        let (says, is) = (shown(&row.knows), shown(&member.knows));
        let what = format!("`{folder}` knows {is} by its manifest, the table says {says}");
        (row.knows != member.knows).then_some((row.line, what))
    });
    let of_rows = rows.values().filter_map(move |row| {
        let is_member = members.iter().any(|member| member.folder == row.folder);
        let what = format!("`{}` is no member of the workspace", row.folder);
        (!is_member).then_some((row.line, what))
    });
    of_members.chain(of_rows)
}

fn shown(names: &BTreeSet<String>) -> String {
    if names.is_empty() {
        return NONE.to_owned();
    }
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found in a document with these rows, for three members.
    fn found(rows: &[&str]) -> Vec<String> {
        let rows = rows.join("\n");
        let text = format!(
            "# A\n\n{BEGIN}\n| crate | knows | what lives there |\n|---|---|---|\n{rows}\n{END}\n"
        );
        found_in(&text)
    }

    fn found_in(text: &str) -> Vec<String> {
        let member = |folder: &str, knows: &[&str]| Member {
            folder: folder.to_owned(),
            knows: knows.iter().map(|&name| name.to_owned()).collect(),
        };
        let members = [
            member("crates/agent", &["protocol", "store"]),
            member("crates/protocol", &[]),
            member("crates/store", &["protocol"]),
        ];
        let findings = check("A.md", text, &members);
        findings.iter().map(ToString::to_string).collect()
    }

    const PROTOCOL: &str = "| `crates/protocol` | – | types |";
    const STORE: &str = "| `crates/store` | `protocol` | files |";
    const AGENT: &str = "| `crates/agent` | `store`, `protocol` | turns \\| tools |";

    #[test]
    fn a_true_table_passes_in_any_order() {
        assert_eq!(found(&[PROTOCOL, STORE, AGENT]), [""; 0]);
        assert_eq!(found(&[AGENT, "", PROTOCOL, STORE]), [""; 0]);
    }

    #[test]
    fn sets_that_differ_are_found_at_their_row() {
        let rows = [
            "| `crates/store` | – | |",
            "| `crates/agent` | `store` | |",
            PROTOCOL,
        ];
        assert_eq!(
            found(&rows),
            [
                "A.md:7: `crates/agent` knows `protocol`, `store` by its manifest, \
                 the table says `store`",
                "A.md:6: `crates/store` knows `protocol` by its manifest, the table says –",
            ]
        );
    }

    #[test]
    fn rows_and_members_are_the_same() {
        let strange = "| `crates/strange` | – | ? |";
        assert_eq!(
            found(&[PROTOCOL, strange, AGENT, AGENT]),
            [
                "A.md:9: `crates/agent` has a row already",
                "A.md:3: `crates/store` has no row",
                "A.md:7: `crates/strange` is no member of the workspace",
            ]
        );
    }

    #[test]
    fn rows_of_another_form_are_found() {
        for bad in [
            "text",
            "| `crates/x` | – |",
            "| crates/x | – | |",
            "| `crates/x` | protocol | |",
            "| `crates/x` | `protocol` `store` | |",
            "| `crates/x` | | |",
        ] {
            let found = found(&[PROTOCOL, STORE, AGENT, bad]);
            assert_eq!(found.len(), 1, "{bad}: {found:?}");
            assert!(found.iter().all(|line| line.starts_with("A.md:9: ")));
        }
    }

    #[test]
    fn the_table_has_its_place_and_its_header() {
        let all = |rows: &str| format!("{BEGIN}\n{rows}\n|-|-|-|\n{PROTOCOL}\n{STORE}\n{AGENT}\n");
        let unended = all("| crate | knows | what lives there |");
        assert_eq!(
            found_in(&unended),
            [format!(
                "A.md:1: no table of crates between `{BEGIN}` and `{END}`"
            )]
        );
        let other_header = all("| crate | uses | what lives there |") + END;
        assert_eq!(
            found_in(&other_header),
            ["A.md:2: the table begins with `| crate | knows | what lives there |`"]
        );
    }
}
