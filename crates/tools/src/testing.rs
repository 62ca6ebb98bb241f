//! What the tests of several tools share.

use crate::context::Context;
use crate::tool::{Output, Tool};
use gaffer_protocol::ResultPart;
use gaffer_protocol::message::ToolInput;

/// An agent in a folder of its own, which is gone afterwards.
pub(crate) fn context() -> Context {
    let temp = tempfile::tempdir().unwrap();
    Context::in_folder(temp.path(), temp.path(), temp.path(), temp.path())
}

/// Calls a tool as an agent would: what it says, and whether that is an error.
pub(crate) async fn call(tool: &dyn Tool, input: serde_json::Value) -> (String, bool) {
    let input = ToolInput::from_text(&input.to_string());
    let output = tool.call(&input, &context()).await;
    (text(&output), output.is_error)
}

pub(crate) fn text(output: &Output) -> String {
    let ResultPart::Text(text) = &output.parts[0] else {
        panic!("not a text: {output:?}")
    };
    text.clone()
}
