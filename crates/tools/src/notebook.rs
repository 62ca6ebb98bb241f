//! Jupyter notebooks: JSON files of cells, read as text and written back as they were.

use crate::tool::Output;
use base64::Engine;
use gaffer_protocol::{Image, ResultPart};
use serde::Serialize;
use serde_json::Value;

/// So much of one cell's output is shown.
const MOST_OUTPUT: usize = 10_000;

pub(crate) fn parse(bytes: &[u8]) -> Result<Value, String> {
    let book: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("it is not a notebook: {error}"))?;
    if book["cells"].is_array() {
        Ok(book)
    } else {
        Err("it is not a notebook: it has no cells".to_owned())
    }
}

/// The cells with their ids, sources and outputs.
pub(crate) fn render(bytes: &[u8]) -> Result<Output, String> {
    let book = parse(bytes)?;
    let mut text = String::new();
    let mut images = Vec::new();
    for (n, cell) in book["cells"].as_array().into_iter().flatten().enumerate() {
        let kind = cell["cell_type"].as_str().unwrap_or("unknown");
        text.push_str(&format!(
            "<cell id=\"{}\" type=\"{kind}\">\n{}\n",
            cell_id(cell, n),
            lines(&cell["source"])
        ));
        for output in cell["outputs"].as_array().into_iter().flatten() {
            show_output(output, &mut text, &mut images);
        }
        text.push_str("</cell>\n");
    }
    let mut parts = vec![ResultPart::Text(text)];
    parts.extend(images.into_iter().map(ResultPart::Image));
    Ok(Output {
        parts,
        is_error: false,
        mail: None,
    })
}

/// Older notebooks have cells without ids; their place is one.
pub(crate) fn cell_id(cell: &Value, place: usize) -> String {
    cell["id"]
        .as_str()
        .map_or_else(|| format!("cell-{place}"), str::to_owned)
}

/// Text in a notebook is a string or a list of lines.
fn lines(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(lines) => lines.iter().filter_map(Value::as_str).collect(),
        _ => String::new(),
    }
}

fn show_output(output: &Value, text: &mut String, images: &mut Vec<Image>) {
    let data = &output["data"];
    let mut shown = lines(&output["text"]);
    shown.push_str(&lines(&data["text/plain"]));
    if output["output_type"] == "error" {
        let (name, value) = (&output["ename"], &output["evalue"]);
        shown.push_str(&format!(
            "{}: {}",
            name.as_str().unwrap_or_default(),
            value.as_str().unwrap_or_default()
        ));
    }
    for media_type in ["image/png", "image/jpeg"] {
        let encoded: String = lines(&data[media_type]).split_whitespace().collect();
        let is_sound = base64::engine::general_purpose::STANDARD
            .decode(&encoded)
            .is_ok_and(|bytes| !bytes.is_empty());
        if is_sound {
            images.push(Image {
                media_type: media_type.to_owned(),
                data: encoded.into(),
            });
        }
    }
    if !shown.is_empty() {
        let cut: String = shown.chars().take(MOST_OUTPUT).collect();
        let more = if cut.len() < shown.len() {
            "\n[… cut …]"
        } else {
            ""
        };
        text.push_str(&format!("<output>\n{cut}{more}\n</output>\n"));
    }
}

/// Writes a notebook as the notebook programs do: indented by one space, with a line break at the
/// end where there was one.
pub(crate) fn to_bytes(book: &Value, before: &[u8]) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::with_capacity(before.len());
    let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    book.serialize(&mut serializer)
        .map_err(|error| error.to_string())?;
    if before.ends_with(b"\n") {
        bytes.push(b'\n');
    }
    Ok(bytes)
}

/// Source as a list of lines, each with its line break, as notebooks have it.
pub(crate) fn source(text: &str) -> Value {
    text.split_inclusive('\n').collect::<Vec<_>>().into()
}
