//! StructuredOutput: how an agent gives a result that has to meet a JSON schema.

use crate::context::Context;
use crate::tool::{Access, Output, Tool};
use futures_util::future::BoxFuture;
use gaffer_protocol::message::ToolInput;
use gaffer_protocol::{Json, ToolSpec};
use jsonschema::{PatternOptions, Retrieve, Uri, Validator};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub const NAME: &str = "StructuredOutput";
const ABOUT: &str = include_str!("../../../prompts/tools/structured-output.md");
/// A schema is at most so long.
pub const LONGEST: usize = 32 << 10;
/// So many faults are named at once, each so long at most.
const MOST_FAULTS: usize = 10;
const LONGEST_FAULT: usize = 300;
/// The member that holds a result which is no object.
const WRAPPED: &str = "result";

/// A schema that results are held against. Clones are the same, with the result that was given.
#[derive(Debug, Clone)]
pub struct Form(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    schema: Value,
    validator: Validator,
    /// Tools take objects; another result is given as a member of one.
    is_wrapped: bool,
    given: Mutex<Option<Value>>,
}

/// Nothing is fetched: a schema stands by itself.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(
        &self,
        uri: &Uri<String>,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("`{uri}` is outside of the schema: put what it needs into `$defs`").into())
    }
}

impl Form {
    /// What is wrong with a schema is said so that it can be mended.
    pub fn new(schema: &Value) -> Result<Self, String> {
        if !schema.is_object() {
            return Err("it is no JSON object".to_owned());
        }
        let length = schema.to_string().len();
        if length > LONGEST {
            return Err(format!("it has {length} bytes, {LONGEST} is the most"));
        }
        if let Some(outside) = outside(schema) {
            return Err(format!(
                "`{outside}` refers to something outside of it: put what it needs into `$defs` and refer to `#/$defs/…`"
            ));
        }
        // Patterns come from a model: none may take longer than its text.
        let options = jsonschema::options()
            .with_retriever(Nowhere)
            .with_pattern_options(PatternOptions::regex());
        let validator = options.build(schema).map_err(|why| {
            let at = why.instance_path().to_string();
            cut(&format!("at `{at}`: {why}"))
        })?;
        let kind = schema.get("type");
        Ok(Self(Arc::new(Inner {
            schema: schema.clone(),
            validator,
            is_wrapped: kind.is_none_or(|kind| kind != "object"),
            given: Mutex::default(),
        })))
    }

    pub fn schema(&self) -> &Value {
        &self.0.schema
    }

    /// What does not fit, line by line; nothing if all does.
    pub fn faults(&self, value: &Value) -> Vec<String> {
        let errors = self.0.validator.iter_errors(value);
        let mut faults: Vec<String> = Vec::new();
        for (n, error) in errors.enumerate() {
            if n == MOST_FAULTS - 1 {
                faults.push("and more".to_owned());
                break;
            }
            let at = error.instance_path().to_string();
            let at = if at.is_empty() { "/" } else { &at };
            faults.push(cut(&format!("{at}: {error}")));
        }
        faults
    }

    /// The result that was given by a call, if it was.
    pub fn given(&self) -> Option<Value> {
        self.lock().clone()
    }

    /// A text that is the result itself: JSON, perhaps as its only fenced block.
    pub fn read(&self, text: &str) -> Result<Value, Vec<String>> {
        let no_json = |why: String| vec![format!("the answer is no JSON: {why}")];
        let text = fenced(text).unwrap_or(text).trim();
        let value: Value = serde_json::from_str(text).map_err(|why| no_json(why.to_string()))?;
        let faults = self.faults(&value);
        match faults.is_empty() {
            true => Ok(value),
            false => Err(faults),
        }
    }

    /// The tool that takes the result.
    pub fn tool(&self) -> Arc<dyn Tool> {
        let schema = match self.0.is_wrapped {
            false => self.0.schema.clone(),
            true => wrapped(&self.0.schema),
        };
        Arc::new(StructuredOutput {
            spec: ToolSpec {
                name: NAME.to_owned(),
                description: ABOUT.trim_end().to_owned(),
                schema: Json::of(&schema),
            },
            form: self.clone(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Option<Value>> {
        self.0.given.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The schema as one member of an object. What it defines stays at the top, where its own
/// references look for it.
fn wrapped(schema: &Value) -> Value {
    let mut inner = schema.clone();
    let mut all = json!({"type": "object", "required": [WRAPPED], "additionalProperties": false});
    for name in ["$defs", "definitions"] {
        let defined = inner.as_object_mut().and_then(|it| it.remove(name));
        if let Some(defined) = defined {
            all[name] = defined;
        }
    }
    all["properties"] = json!({ WRAPPED: inner });
    all
}

/// The first reference that leads out of a schema.
fn outside(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(members) => {
            let own = ["$ref", "$dynamicRef", "$recursiveRef"];
            let own = own.iter().filter_map(|name| members.get(*name)?.as_str());
            let mut out = own.filter(|text| !text.starts_with('#'));
            out.next().or_else(|| members.values().find_map(outside))
        }
        Value::Array(items) => items.iter().find_map(outside),
        _ => None,
    }
}

/// What stands in the only fenced block of a text.
fn fenced(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("```")?;
    let (_, rest) = rest.split_once('\n')?;
    let (inner, rest) = rest.split_once("```")?;
    (!rest.contains("```")).then_some(inner)
}

fn cut(text: &str) -> String {
    let line = text.replace(['\n', '\r'], " ");
    match line.char_indices().nth(LONGEST_FAULT) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line,
    }
}

#[derive(Debug)]
struct StructuredOutput {
    spec: ToolSpec,
    form: Form,
}

impl StructuredOutput {
    fn take(&self, input: &ToolInput) -> Output {
        let ToolInput::Json(json) = input else {
            return Output::error("Not taken: the arguments are no JSON object. Give them again.");
        };
        let mut value: Value = json.read().unwrap_or_default();
        if self.form.0.is_wrapped {
            let members = value.as_object_mut().map(std::mem::take);
            let inner = members.unwrap_or_default().remove(WRAPPED);
            let Some(inner) = inner else {
                return Output::error(format!("Not taken: `{WRAPPED}` is missing."));
            };
            value = inner;
        }
        let faults = self.form.faults(&value);
        if !faults.is_empty() {
            let faults = faults.join("\n");
            return Output::error(format!(
                "Not taken, it does not meet the schema:\n{faults}\nMend that and call {NAME} again."
            ));
        }
        *self.form.lock() = Some(value);
        Output::text("Taken. End your turn now; a later call would replace it.")
    }
}

impl Tool for StructuredOutput {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self) -> Access {
        Access::Reads
    }

    fn call<'a>(&'a self, input: &'a ToolInput, _: &'a Context) -> BoxFuture<'a, Output> {
        Box::pin(async move { self.take(input) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(schema: &Value) -> Form {
        Form::new(schema).unwrap()
    }

    fn called(form: &Form, input: &Value) -> String {
        let tool = form.tool();
        let context = crate::testing::context();
        let input = ToolInput::Json(Json::of(input));
        let output = futures_util::future::FutureExt::now_or_never(tool.call(&input, &context));
        output.unwrap().to_text()
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_refused_with_the_reason() {
        let why = |schema: &Value| Form::new(schema).unwrap_err();
        assert!(why(&json!([1])).contains("no JSON object"));
        assert!(why(&json!({"type": "strin"})).contains("type"));
        assert!(why(&json!({"$ref": "https://example.com/a.json"})).contains("outside"));
        assert!(
            why(&json!({"properties": {"a": {"$ref": "file:///etc/passwd"}}})).contains("outside")
        );
        assert!(why(&json!({"description": "x".repeat(LONGEST)})).contains("is the most"));
        assert!(
            Form::new(&json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}})).is_ok()
        );
    }

    #[test]
    fn a_call_is_taken_when_it_meets_the_schema() {
        let form = form(
            &json!({"type": "object", "required": ["files"], "properties": {"files": {"type": "array", "items": {"type": "string"}}}}),
        );
        let told = called(&form, &json!({"files": [1]}));
        assert!(told.contains("/files/0: 1 is not of type"), "{told}");
        assert_eq!(form.given(), None);
        assert!(called(&form, &json!({"files": ["a"]})).starts_with("Taken"));
        assert_eq!(form.given(), Some(json!({"files": ["a"]})));
    }

    #[test]
    fn what_is_no_object_is_given_as_a_member_of_one() {
        let form = form(
            &json!({"type": "array", "items": {"$ref": "#/$defs/n"}, "$defs": {"n": {"type": "integer"}}}),
        );
        assert!(called(&form, &json!([1])).contains("is missing"));
        assert!(called(&form, &json!({"result": ["a"]})).contains("/0:"));
        assert!(called(&form, &json!({"result": [1]})).starts_with("Taken"));
        assert_eq!(form.given(), Some(json!([1])));
        let spec = form.tool().spec().schema.to_string();
        Form::new(&serde_json::from_str(&spec).unwrap()).unwrap();
    }

    #[test]
    fn a_text_counts_that_is_json_or_has_it_as_its_one_block() {
        let form = form(&json!({"type": "object", "required": ["ok"]}));
        assert!(form.read(" {\"ok\": 1}\n").is_ok());
        assert!(form.read("Here:\n```json\n{\"ok\": 1}\n```\n").is_ok());
        assert!(form.read("```\n{\"ok\": 1}\n```\n```\n{}\n```").is_err());
        assert!(form.read("{\"no\": 1}").unwrap_err()[0].contains("\"ok\" is a required"));
        assert!(form.read("Done.").unwrap_err()[0].contains("no JSON"));
        let many: Vec<String> = form.faults(&json!(1));
        assert!(many.len() <= MOST_FAULTS);
    }
}
