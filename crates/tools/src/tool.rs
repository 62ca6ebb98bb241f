//! What a tool is, and how one with typed input becomes one among others.

use crate::context::Context;
use futures_util::future::BoxFuture;
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{CallId, Json, MailId, ResultPart, ToolSpec};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use std::sync::Arc;

/// Whether a call may run beside others of the same answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Changes nothing: may run beside others.
    Reads,
    /// May change something: runs alone and in its place.
    Writes,
}

/// What a call gives back to the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    pub parts: Vec<ResultPart>,
    pub is_error: bool,
    /// The letter that says the same, which is heard with this.
    pub mail: Option<MailId>,
}

impl Output {
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            parts: vec![ResultPart::Text(text.into())],
            is_error: false,
            mail: None,
        }
    }

    /// Its texts alone.
    pub fn to_text(&self) -> String {
        let texts = self.parts.iter().filter_map(|part| match part {
            ResultPart::Text(text) => Some(text.as_str()),
            ResultPart::Image(_) => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }

    /// An error that the model hears and can act on.
    pub fn error(text: impl Into<String>) -> Self {
        Self {
            is_error: true,
            ..Self::text(text)
        }
    }
}

/// A tool as an agent holds it.
pub trait Tool: Send + Sync + std::fmt::Debug {
    fn spec(&self) -> &ToolSpec;

    fn access(&self) -> Access;

    /// Whether the input is of the tool's form; if not, what the model is told. What is not is
    /// never run, so nobody need decide on it either.
    fn check(&self, _input: &ToolInput) -> Result<(), Output> {
        Ok(())
    }

    /// Runs a call. Whatever goes wrong is an error in the output; dropping the future stops it.
    fn call<'a>(&'a self, input: &'a ToolInput, context: &'a Context) -> BoxFuture<'a, Output>;

    /// The same for tools that must know which call it is.
    fn call_as<'a>(
        &'a self,
        _call: &'a CallId,
        input: &'a ToolInput,
        context: &'a Context,
    ) -> BoxFuture<'a, Output> {
        self.call(input, context)
    }
}

/// A tool as its file writes it.
pub trait Run: Send + Sync + std::fmt::Debug {
    const NAME: &'static str;
    const ACCESS: Access;
    type Input: DeserializeOwned + JsonSchema + Send;

    fn run(&self, input: Self::Input, context: &Context) -> impl Future<Output = Output> + Send;

    /// The same for tools that must know which call it is.
    fn run_as(
        &self,
        _call: &CallId,
        input: Self::Input,
        context: &Context,
    ) -> impl Future<Output = Output> + Send {
        self.run(input, context)
    }
}

/// Makes a tool with typed input one among others.
pub fn erase<T: Run + 'static>(tool: T) -> Arc<dyn Tool> {
    let schema = schemars::schema_for!(T::Input).to_value();
    let (description, schema) = split(schema);
    with_spec(tool, description, schema)
}

/// The same for a tool whose description is only known when it is made: it stands in place of the
/// struct's own comment.
pub fn erase_as<T: Run + 'static>(tool: T, description: String) -> Arc<dyn Tool> {
    let schema = schemars::schema_for!(T::Input).to_value();
    with_spec(tool, description, split(schema).1)
}

/// The same without members of the input that mean nothing here.
pub fn erase_without<T: Run + 'static>(
    tool: T,
    description: String,
    without: &[&str],
) -> Arc<dyn Tool> {
    let mut schema = schemars::schema_for!(T::Input).to_value();
    if let Some(members) = schema["properties"].as_object_mut() {
        members.retain(|name, _| !without.contains(&name.as_str()));
    }
    with_spec(tool, description, split(schema).1)
}

fn with_spec<T: Run + 'static>(tool: T, description: String, schema: Json) -> Arc<dyn Tool> {
    Arc::new(Erased {
        spec: ToolSpec {
            name: T::NAME.to_owned(),
            description,
            schema,
        },
        tool,
    })
}

/// The struct's own comment is the tool's description; the rest is the schema, without what only
/// costs tokens.
fn split(mut schema: serde_json::Value) -> (String, Json) {
    let mut description = String::new();
    if let Some(members) = schema.as_object_mut() {
        members.remove("$schema");
        members.remove("title");
        if let Some(serde_json::Value::String(text)) = members.remove("description") {
            description = text;
        }
        members.insert("additionalProperties".to_owned(), false.into());
    }
    trim(&mut schema);
    (description, Json::of(&schema))
}

/// Number formats, bounds that a type implies, defaults that are nothing and "or null" of optional
/// members say nothing to a model.
fn trim(schema: &mut serde_json::Value) {
    use serde_json::Value;
    match schema {
        Value::Object(members) => {
            // A member may have such a name itself; what it is then is an object.
            members.retain(|name, value| match name.as_str() {
                "format" | "default" => value.is_object(),
                "minimum" => *value != 0,
                _ => true,
            });
            if let Some(Value::Array(choices)) = members.get("anyOf")
                && let [Value::Object(choice), null] = choices.as_slice()
                && null["type"] == "null"
            {
                let choice = choice.clone();
                members.remove("anyOf");
                for (name, value) in choice {
                    // The member's own description says more than that of its type.
                    members.entry(name).or_insert(value);
                }
            }
            if let Some(Value::Array(types)) = members.get("type")
                && types.len() == 2
                && types[1] == "null"
            {
                let first = types[0].clone();
                members.insert("type".to_owned(), first);
            }
            members.values_mut().for_each(trim);
        }
        Value::Array(items) => items.iter_mut().for_each(trim),
        _ => {}
    }
}

#[derive(Debug)]
struct Erased<T> {
    spec: ToolSpec,
    tool: T,
}

impl<T: Run> Tool for Erased<T> {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self) -> Access {
        T::ACCESS
    }

    fn check(&self, input: &ToolInput) -> Result<(), Output> {
        let read = read_input::<T::Input>(input);
        read.map(|_| ()).map_err(|why| self.wrong(&why))
    }

    fn call<'a>(&'a self, input: &'a ToolInput, context: &'a Context) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match read_input::<T::Input>(input) {
                Ok(input) => self.tool.run(input, context).await,
                Err(why) => self.wrong(&why),
            }
        })
    }

    fn call_as<'a>(
        &'a self,
        call: &'a CallId,
        input: &'a ToolInput,
        context: &'a Context,
    ) -> BoxFuture<'a, Output> {
        Box::pin(async move {
            match read_input::<T::Input>(input) {
                Ok(input) => self.tool.run_as(call, input, context).await,
                Err(why) => self.wrong(&why),
            }
        })
    }
}

impl<T: Run> Erased<T> {
    fn wrong(&self, why: &str) -> Output {
        let (name, schema) = (T::NAME, &self.spec.schema);
        let text = format!(
            "The call of {name} was not carried out: {why}. Its input follows this schema: {schema}"
        );
        Output::error(text)
    }
}

/// Reads arguments; the error says where they do not fit.
fn read_input<T: DeserializeOwned>(input: &ToolInput) -> Result<T, String> {
    let json = match input {
        ToolInput::Json(json) => json,
        ToolInput::Broken(text) => {
            let shown: String = text.chars().take(200).collect();
            return Err(format!("the arguments are not a JSON object: {shown:?}"));
        }
    };
    let mut reader = serde_json::Deserializer::from_str(json.as_str());
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        // Line and column of a single line tell a model nothing.
        let inner = error.inner().to_string();
        let inner = inner.split(" at line ").next().unwrap_or_default();
        if path == "." {
            inner.to_owned()
        } else {
            format!("`{path}`: {inner}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    /// Counts to a number.
    ///
    /// Slowly.
    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Count {
        /// Where to stop.
        to: u32,
        /// How loudly.
        loud: Option<bool>,
    }

    #[derive(Debug)]
    struct Counter;

    impl Run for Counter {
        const NAME: &'static str = "Count";
        const ACCESS: Access = Access::Reads;
        type Input = Count;

        async fn run(&self, input: Count, _: &Context) -> Output {
            Output::text(format!("{} {:?}", input.to, input.loud))
        }
    }

    async fn call(input: &str) -> Output {
        let temp = tempfile::tempdir().unwrap();
        let context = Context::in_folder(temp.path(), temp.path(), temp.path(), temp.path());
        erase(Counter)
            .call(&ToolInput::from_text(input), &context)
            .await
    }

    #[test]
    fn comments_are_the_description_and_the_schema() {
        let tool = erase(Counter);
        assert_eq!(tool.spec().description, "Counts to a number.\n\nSlowly.");
        let want = r#"{"type":"object","properties":{"to":{"description":"Where to stop.","type":"integer"},"loud":{"description":"How loudly.","type":"boolean"}},"additionalProperties":false,"required":["to"]}"#;
        let got: serde_json::Value = tool.spec().schema.read().unwrap();
        assert_eq!(
            got,
            serde_json::from_str::<serde_json::Value>(want).unwrap()
        );
    }

    #[tokio::test]
    async fn wrong_arguments_are_answered_with_what_is_wrong() {
        assert_eq!(call(r#"{"to": 3}"#).await, Output::text("3 None"));
        let rows = [
            (r#"{}"#, "missing field `to`"),
            (
                r#"{"to": "x"}"#,
                "`to`: invalid type: string \"x\", expected u32",
            ),
            (r#"{"to": 1, "speed": 2}"#, "unknown field `speed`"),
            (r#"{"to": -1}"#, "`to`: invalid value"),
            (r#"{"to": 1"#, "not a JSON object"),
            (r#"[1]"#, "not a JSON object"),
        ];
        for (input, want) in rows {
            let output = call(input).await;
            let ResultPart::Text(text) = &output.parts[0] else {
                panic!()
            };
            assert!(output.is_error && text.contains(want), "{input}: {text}");
        }
    }
}
