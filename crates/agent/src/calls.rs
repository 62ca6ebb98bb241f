//! The calls of one answer: those that only read run side by side, writers one after another in
//! their place, and results stand in the order of the calls.

use futures_util::future::FutureExt;
use futures_util::stream::{FuturesUnordered, StreamExt};
use gaffer_protocol::{ResultPart, ToolResult, ToolUse};
use gaffer_tools::admit::{admit, after};
use gaffer_tools::{Access, Context, Output, Tool, ToolSet};
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// So many calls of one answer run at once.
const SIDE_BY_SIDE: usize = 16;

/// One call that has ended.
pub(crate) struct Ended {
    pub(crate) place: usize,
    pub(crate) result: Arc<ToolResult>,
    pub(crate) took: Duration,
    /// Why the whole work is to end, if a hook says so.
    pub(crate) stop: Option<String>,
}

/// Where calls report to: their start when it comes, and their end, which must be recorded before
/// anything else happens.
pub(crate) trait Watch {
    fn started(&mut self, place: usize);
    fn ended(&mut self, ended: &Ended) -> std::io::Result<()>;
}

/// Runs calls and answers with their results. Dropping the future stops those under way; what had
/// ended by then has been reported.
pub(crate) async fn run_all(
    calls: &[Arc<ToolUse>],
    tools: &ToolSet,
    context: &Context,
    watch: &mut (dyn Watch + Send),
) -> std::io::Result<()> {
    for group in groups(calls, tools, context) {
        let mut waiting = group;
        let mut running = FuturesUnordered::new();
        loop {
            while running.len() < SIDE_BY_SIDE
                && let Some(place) = waiting.next()
            {
                watch.started(place);
                running.push(run_one(place, &calls[place], tools, context));
            }
            match running.next().await {
                Some(ended) => {
                    watch.ended(&ended)?;
                    // The work is to end: nothing further may begin.
                    if ended.stop.is_some() {
                        return Ok(());
                    }
                }
                None => break,
            }
        }
    }
    Ok(())
}

/// Neighbours that only read form a group; every other call is a group of its own.
fn groups(
    calls: &[Arc<ToolUse>],
    tools: &ToolSet,
    context: &Context,
) -> Vec<std::ops::Range<usize>> {
    let mut groups: Vec<std::ops::Range<usize>> = Vec::new();
    let mut last_reads = false;
    for (place, call) in calls.iter().enumerate() {
        // A call of a tool that is not there changes nothing.
        let reads =
            find(tools, context, &call.name).is_none_or(|tool| tool.access() == Access::Reads);
        match groups.last_mut() {
            Some(group) if reads && last_reads => group.end = place + 1,
            _ => groups.push(place..place + 1),
        }
        last_reads = reads;
    }
    groups
}

async fn run_one(place: usize, call: &ToolUse, tools: &ToolSet, context: &Context) -> Ended {
    let began = Instant::now();
    let (output, stop) = match find(tools, context, &call.name) {
        Some(tool) => run_tool(&*tool, call, context, began).await,
        None => (unknown(call, tools, context), None),
    };
    Ended {
        place,
        result: Arc::new(ToolResult {
            call: call.id.clone(),
            parts: output.parts,
            is_error: output.is_error,
            mail: output.mail,
        }),
        took: began.elapsed(),
        stop,
    }
}

/// A tool of the agent's own, or one that it has loaded.
fn find(tools: &ToolSet, context: &Context, name: &str) -> Option<Arc<dyn Tool>> {
    let own = tools.get(name).cloned();
    own.or_else(|| context.pool.get(name))
}

async fn run_tool(
    tool: &dyn Tool,
    call: &ToolUse,
    context: &Context,
    began: Instant,
) -> (Output, Option<String>) {
    if let Err(output) = tool.check(&call.input) {
        return (output, None);
    }
    let admitted = match admit(tool, call, context).await {
        Ok(admitted) => admitted,
        Err(refused) => return (refused.output, refused.stop),
    };
    let input = admitted.input.as_ref().unwrap_or(&call.input);
    // A bug in one tool must not end the agent, let alone its siblings.
    let run = AssertUnwindSafe(tool.call_as(&call.id, input, context)).catch_unwind();
    let output = run.await.unwrap_or_else(|_| {
        let text = format!("{} failed inside; the call may be half done.", call.name);
        Output::error(text)
    });
    after(call, admitted, output, began.elapsed(), context).await
}

fn unknown(call: &ToolUse, tools: &ToolSet, context: &Context) -> Output {
    if let Some(hint) = context.pool.hint(&call.name) {
        return Output::error(hint);
    }
    let names = tools.names().join(", ");
    let there = if names.is_empty() {
        "There are no tools.".to_owned()
    } else {
        format!("The tools are: {names}.")
    };
    Output::error(format!(
        "There is no tool `{}`; nothing was run. {there}",
        call.name
    ))
}

/// The result of a call that was not run or did not come to its end.
pub(crate) fn not_run(call: &ToolUse, why: &str) -> Arc<ToolResult> {
    Arc::new(ToolResult {
        call: call.id.clone(),
        parts: vec![ResultPart::Text(why.to_owned())],
        is_error: true,
        mail: None,
    })
}
