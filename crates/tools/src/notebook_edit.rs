//! NotebookEdit: one cell of a Jupyter notebook.

use crate::context::Context;
use crate::file::{change, check_seen, explain, hold, load, locate, save};
use crate::notebook::{cell_id, parse, source, to_bytes};
use crate::tool::{Access, Output, Run};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Replaces, inserts or deletes one cell of a Jupyter notebook that was read before.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NotebookEditInput {
    /// Absolute, or from the working folder.
    pub notebook_path: String,
    /// The cell, as Read names it. An inserted cell comes behind it, or first if not given.
    pub cell_id: Option<String>,
    /// Its new source; not used by delete.
    #[serde(default)]
    pub new_source: String,
    /// Needed for insert.
    pub cell_type: Option<CellType>,
    /// `replace` if not given.
    pub edit_mode: Option<EditMode>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum CellType {
    Code,
    Markdown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum EditMode {
    Replace,
    Insert,
    Delete,
}

#[derive(Debug, Clone, Copy)]
pub struct NotebookEdit;

impl Run for NotebookEdit {
    const NAME: &'static str = "NotebookEdit";
    const ACCESS: Access = Access::Writes;
    type Input = NotebookEditInput;

    async fn run(&self, input: NotebookEditInput, context: &Context) -> Output {
        let shown = input.notebook_path.clone();
        let done = change(context, &shown, move |context| edit(&input, context)).await;
        match done {
            Ok(text) => Output::text(text),
            Err(why) => Output::error(format!("{shown} was not changed: {why}.")),
        }
    }
}

fn edit(input: &NotebookEditInput, context: &Context) -> Result<String, String> {
    let fenced = locate(context, &input.notebook_path)?;
    let explain = |error| explain(context, &input.notebook_path, error);
    let held = hold(context, &fenced);
    let old = load(context, &fenced).map_err(explain)?;
    check_seen(context, &fenced, &old.bytes)?;
    let mut book = parse(&old.bytes)?;
    let has_ids = book["nbformat_minor"].as_u64().unwrap_or(0) >= 5;
    let Some(cells) = book["cells"].as_array_mut() else {
        return Err("it has no cells".to_owned());
    };
    let said = apply(input, cells, has_ids)?;
    let bytes = to_bytes(&book, &old.bytes)?;
    let note = save(context, &fenced, held, &bytes, Some(old.mode)).map_err(explain)?;
    Ok(said + &note)
}

fn apply(
    input: &NotebookEditInput,
    cells: &mut Vec<Value>,
    has_ids: bool,
) -> Result<String, String> {
    let mode = input.edit_mode.unwrap_or(EditMode::Replace);
    let place = match &input.cell_id {
        Some(id) => Some(find(cells, id)?),
        None => None,
    };
    match (mode, place) {
        (EditMode::Insert, place) => {
            let kind = input.cell_type.ok_or("insert needs `cell_type`")?;
            let at = place.map_or(0, |place| place + 1);
            let cell = new_cell(kind, &input.new_source, has_ids, cells);
            cells.insert(at, cell);
            Ok(format!("Cell {} inserted.", cell_id(&cells[at], at)))
        }
        (_, None) => Err("`cell_id` is missing".to_owned()),
        (EditMode::Delete, Some(place)) => {
            let cell = cells.remove(place);
            Ok(format!("Cell {} deleted.", cell_id(&cell, place)))
        }
        (EditMode::Replace, Some(place)) => {
            let cell = &mut cells[place];
            if let Some(kind) = input.cell_type {
                cell["cell_type"] = json!(name(kind));
            }
            cell["source"] = source(&input.new_source);
            // What the old source printed says nothing about the new one.
            if cell["cell_type"] == "code" {
                cell["outputs"] = json!([]);
                cell["execution_count"] = Value::Null;
            } else if let Some(members) = cell.as_object_mut() {
                members.shift_remove("outputs");
                members.shift_remove("execution_count");
            }
            Ok(format!("Cell {} replaced.", cell_id(&cells[place], place)))
        }
    }
}

fn find(cells: &[Value], id: &str) -> Result<usize, String> {
    let place = cells
        .iter()
        .enumerate()
        .position(|(n, cell)| cell_id(cell, n) == id);
    place.ok_or_else(|| {
        let ids: Vec<String> = cells
            .iter()
            .enumerate()
            .take(50)
            .map(|(n, cell)| cell_id(cell, n))
            .collect();
        format!("there is no cell `{id}`; the cells are {}", ids.join(", "))
    })
}

fn name(kind: CellType) -> &'static str {
    match kind {
        CellType::Code => "code",
        CellType::Markdown => "markdown",
    }
}

fn new_cell(kind: CellType, text: &str, has_ids: bool, cells: &[Value]) -> Value {
    let mut cell = json!({"cell_type": name(kind)});
    if has_ids {
        let is_free = |id: &String| cells.iter().all(|cell| cell["id"] != id.as_str());
        let id = (cells.len()..).map(|n| format!("new-{n}")).find(is_free);
        cell["id"] = json!(id);
    }
    cell["metadata"] = json!({});
    cell["source"] = source(text);
    if kind == CellType::Code {
        cell["outputs"] = json!([]);
        cell["execution_count"] = Value::Null;
    }
    cell
}
