//! Providers' error answers: one shape of body, many statuses, typed by what to do.

use crate::error::{ErrorKind, ModelError};
use serde::Deserialize;
use std::time::Duration;

/// The body of an error answer. All three wires use this shape, local servers a part of it.
#[derive(Deserialize, Default)]
struct ErrorBody {
    error: Option<ErrorText>,
    message: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum ErrorText {
    Object {
        #[serde(default)]
        message: Option<String>,
        #[serde(default, rename = "type")]
        kind: Option<String>,
        #[serde(default)]
        code: Option<serde_json::Value>,
    },
    Text(String),
}

/// The error of an answer whose status is not success.
pub(crate) fn http_error(status: u16, body: &str, retry_after: Option<Duration>) -> ModelError {
    let parsed: ErrorBody = serde_json::from_str(body).unwrap_or_default();
    let (message, code) = match parsed.error {
        Some(ErrorText::Object {
            message,
            kind,
            code,
        }) => {
            let code = code.map(|code| code.to_string()).unwrap_or_default();
            (
                message.unwrap_or_default(),
                format!("{} {code}", kind.unwrap_or_default()),
            )
        }
        Some(ErrorText::Text(text)) => (text, String::new()),
        None => (
            parsed.message.unwrap_or_else(|| first_line(body)),
            String::new(),
        ),
    };
    let kind = match status {
        401 => ErrorKind::Unauthorized,
        402 | 403 => ErrorKind::Forbidden,
        404 | 405 => ErrorKind::NotFound,
        413 => ErrorKind::PromptTooLong,
        408 | 409 | 425 => ErrorKind::Server,
        429 if code.contains("insufficient_quota") => ErrorKind::Forbidden,
        429 => ErrorKind::RateLimited,
        529 => ErrorKind::Overloaded,
        503 if retry_after.is_some() || body.contains("overloaded") => ErrorKind::Overloaded,
        500.. => ErrorKind::Server,
        400..=499 if is_too_long(&code, &message) => ErrorKind::PromptTooLong,
        _ => ErrorKind::BadRequest,
    };
    ModelError {
        kind,
        message,
        status: Some(status),
        retry_after,
    }
}

/// The error that a provider reports inside a stream that had begun well.
pub(crate) fn stream_error(code: &str, message: &str) -> ModelError {
    let kind = match code {
        "overloaded_error" | "overloaded" => ErrorKind::Overloaded,
        "rate_limit_error" | "rate_limit_exceeded" | "429" => ErrorKind::RateLimited,
        "authentication_error" | "invalid_api_key" => ErrorKind::Unauthorized,
        "permission_error" | "billing_error" | "insufficient_quota" => ErrorKind::Forbidden,
        "not_found_error" | "model_not_found" => ErrorKind::NotFound,
        "request_too_large" => ErrorKind::PromptTooLong,
        _ if is_too_long(code, message) => ErrorKind::PromptTooLong,
        "invalid_request_error" | "invalid_prompt" | "400" => ErrorKind::BadRequest,
        _ => ErrorKind::Server,
    };
    let message = if message.is_empty() { code } else { message };
    ModelError::new(kind, message)
}

/// No provider has a status of its own for this; they say it in words.
fn is_too_long(code: &str, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    code.contains("context_length_exceeded")
        || code.contains("exceed_context_size")
        || message.contains("prompt is too long")
        || message.contains("maximum context length")
        || message.contains("context window")
        || message.contains("exceed context limit")
        || message.contains("exceeds the available context size")
}

fn first_line(body: &str) -> String {
    let line = body.lines().map(str::trim).find(|line| !line.is_empty());
    line.unwrap_or("an empty answer")
        .chars()
        .take(200)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Action;

    #[test]
    fn statuses_and_bodies_become_kinds() {
        use ErrorKind::*;
        let rows = [
            (
                401,
                r#"{"error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
                Unauthorized,
                "invalid x-api-key",
            ),
            (403, "<html>\n<h1>Forbidden</h1>", Forbidden, "<html>"),
            (
                400,
                r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000"}}"#,
                PromptTooLong,
                "prompt is too long: 210000 tokens > 200000",
            ),
            (
                400,
                r#"{"error":{"message":"too many","code":"context_length_exceeded"}}"#,
                PromptTooLong,
                "too many",
            ),
            (
                400,
                r#"{"error":{"message":"max_tokens: must be positive"}}"#,
                BadRequest,
                "max_tokens: must be positive",
            ),
            (
                404,
                r#"{"error":"model 'x' not found"}"#,
                NotFound,
                "model 'x' not found",
            ),
            (422, r#"{"message":"bad field"}"#, BadRequest, "bad field"),
            (
                429,
                r#"{"error":{"type":"rate_limit_error","message":"slow down"}}"#,
                RateLimited,
                "slow down",
            ),
            (
                429,
                r#"{"error":{"message":"You exceeded your quota","code":"insufficient_quota"}}"#,
                Forbidden,
                "You exceeded your quota",
            ),
            (500, "", Server, "an empty answer"),
            (
                502,
                "<html>bad gateway</html>",
                Server,
                "<html>bad gateway</html>",
            ),
            (
                503,
                r#"{"error":{"message":"the engine is overloaded"}}"#,
                Overloaded,
                "the engine is overloaded",
            ),
            (
                529,
                r#"{"error":{"type":"overloaded_error","message":"Overloaded"}}"#,
                Overloaded,
                "Overloaded",
            ),
            (301, "", BadRequest, "an empty answer"),
        ];
        for (status, body, kind, message) in rows {
            let error = http_error(status, body, None);
            assert_eq!(
                (error.kind, error.message.as_str()),
                (kind, message),
                "{status} {body}"
            );
            assert_eq!(error.status, Some(status));
        }
    }

    #[test]
    fn what_can_be_repeated_is_repeated_and_nothing_else() {
        assert_eq!(http_error(529, "", None).kind.action(), Action::Wait);
        assert_eq!(http_error(500, "", None).kind.action(), Action::Retry);
        assert_eq!(http_error(401, "", None).kind.action(), Action::GiveUp);
        assert_eq!(
            stream_error("overloaded_error", "").kind.action(),
            Action::Wait
        );
        assert_eq!(
            stream_error("api_error", "oops").kind.action(),
            Action::Retry
        );
        assert_eq!(
            stream_error("invalid_request_error", "").kind.action(),
            Action::GiveUp
        );
    }
}
