//! Agent: starts a worker.

use crate::crew::Crew;
use crate::report::Report;
use crate::start::{Order, Started};
use gaffer_agent::AgentType;
use gaffer_protocol::{AgentId, AgentName, Budget, CallId, End, Phase, Terms};
use gaffer_tools::lease::Scope;
use gaffer_tools::structured::Form;
use gaffer_tools::{Access, Context, Output, Run};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

#[cfg(feature = "coordinator")]
pub(super) const COORDINATOR_ABOUT: &str =
    include_str!("../../../../prompts/tools/agent-coordinator.md");
pub(super) const NORMAL_ABOUT: &str = include_str!("../../../../prompts/tools/agent-normal.md");

/// Longer orders belong in a file that the worker reads.
const LONGEST_PROMPT: usize = 256 << 10;
const LONGEST_DESCRIPTION: usize = 200;
const LONGEST_PROOF: usize = 4 << 10;
/// A worker that takes longer than this is no longer waited for.
const PATIENCE: Duration = Duration::from_secs(120);

/// Starts a worker.
#[cfg(feature = "coordinator")]
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CoordinatorAgentInput {
    /// What the task is, in three to eight words; it stands in lists and notifications.
    pub description: String,
    /// The whole order. The worker knows nothing else.
    pub prompt: String,
    /// One of the types that the context names; `worker` if not given.
    pub subagent_type: Option<String>,
    /// A name to call it by: a-z, 0-9 and -, unique in the session.
    pub name: Option<String>,
    /// End it after so many answers.
    pub max_turns: Option<u32>,
    /// Tasks that must be completed before it begins: ids or names, also of this message.
    pub depends_on: Option<Vec<String>>,
    /// Put their results behind the prompt.
    pub include_results: Option<bool>,
    /// A shell command that proves the work. It is run when the worker says that it is done; if it
    /// fails, the worker goes on with what it printed.
    pub done_when: Option<String>,
    /// `worktree`: it works on a branch and in a checkout of its own, beside the user's. Its end
    /// names both, if it left anything there.
    pub isolation: Option<Isolation>,
    /// What the work is for; where it is not given, it follows from what the worker may do.
    pub phase: Option<WorkPhase>,
    /// Globs of the files that it may write, and that nobody else writes while it works.
    pub files: Option<Vec<String>>,
    /// A JSON schema that its result has to meet.
    pub result_schema: Option<serde_json::Value>,
    /// The most that it may use; at the end it gets one turn to wrap up.
    pub budget: Option<BudgetInput>,
    /// Which model workers use is the user's choice: it is taken and not looked at.
    #[schemars(skip)]
    pub model: Option<String>,
}

/// Starts a worker.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NormalAgentInput {
    /// What the task is, in three to eight words; it stands in lists and notifications.
    pub description: String,
    /// The whole order. The worker knows nothing else.
    pub prompt: String,
    /// One of the types below; `general-purpose` if not given.
    pub subagent_type: Option<String>,
    /// A name to call it by: a-z, 0-9 and -, unique in the session.
    pub name: Option<String>,
    /// Do not wait for it: its report comes later, by itself.
    pub run_in_background: Option<bool>,
    /// Another model than your own.
    pub model: Option<String>,
    /// End it after so many answers.
    pub max_turns: Option<u32>,
    /// Tasks that must be completed before it begins: ids or names, also of this message.
    pub depends_on: Option<Vec<String>>,
    /// Put their results behind the prompt.
    pub include_results: Option<bool>,
    /// A shell command that proves the work. It is run when the worker says that it is done; if it
    /// fails, the worker goes on with what it printed.
    pub done_when: Option<String>,
    /// `worktree`: it works on a branch and in a checkout of its own, beside the user's. Its end
    /// names both, if it left anything there.
    pub isolation: Option<Isolation>,
    /// What the work is for; where it is not given, it follows from what the worker may do.
    pub phase: Option<WorkPhase>,
    /// Globs of the files that it may write, and that nobody else writes while it works.
    pub files: Option<Vec<String>>,
    /// A JSON schema that its result has to meet.
    pub result_schema: Option<serde_json::Value>,
    /// The most that it may use; at the end it gets one turn to wrap up.
    pub budget: Option<BudgetInput>,
}

/// Where a worker works apart from the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Isolation {
    Worktree,
}

/// What a worker can be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum WorkPhase {
    Research,
    Implementation,
    Verification,
}

impl From<WorkPhase> for Phase {
    fn from(phase: WorkPhase) -> Self {
        match phase {
            WorkPhase::Research => Self::Research,
            WorkPhase::Implementation => Self::Implementation,
            WorkPhase::Verification => Self::Verification,
        }
    }
}

/// How much a worker may use.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct BudgetInput {
    pub usd: Option<f64>,
    /// Input and output together.
    pub tokens: Option<u64>,
    pub seconds: Option<u64>,
}

impl From<BudgetInput> for Budget {
    fn from(input: BudgetInput) -> Self {
        Self {
            usd: input.usd,
            tokens: input.tokens,
            seconds: input.seconds,
            workers: None,
        }
    }
}

/// What both forms have in common.
#[derive(Debug)]
pub(super) struct Starter {
    pub(super) crew: Crew,
    pub(super) caller: AgentId,
}

#[cfg(feature = "coordinator")]
#[derive(Debug)]
pub(super) struct CoordinatorAgent(pub(super) Starter);

#[derive(Debug)]
pub(super) struct NormalAgent(pub(super) Starter);

#[cfg(feature = "coordinator")]
impl Run for CoordinatorAgent {
    const NAME: &'static str = "Agent";
    /// Starting a worker changes nothing by itself, so several start together.
    const ACCESS: Access = Access::Reads;
    type Input = CoordinatorAgentInput;

    async fn run(&self, input: CoordinatorAgentInput, context: &Context) -> Output {
        self.run_as(&CallId::default(), input, context).await
    }

    async fn run_as(&self, call: &CallId, input: CoordinatorAgentInput, _: &Context) -> Output {
        let order = self.0.order(
            call,
            Wanted {
                description: input.description,
                prompt: input.prompt,
                kind: input.subagent_type.unwrap_or_else(|| "worker".to_owned()),
                name: input.name,
                model: None,
                max_turns: input.max_turns,
                depends_on: input.depends_on.unwrap_or_default(),
                includes_results: input.include_results.unwrap_or(false),
                done_when: input.done_when,
                isolation: input.isolation,
                phase: input.phase,
                files: input.files.unwrap_or_default(),
                result_schema: input.result_schema,
                budget: input.budget,
            },
        );
        let order = match order {
            Ok(order) => order,
            Err(why) => return refused(&why),
        };
        if let Err(why) = self.0.crew.pass_plan(&order).await {
            return refused(&why);
        }
        match self.0.crew.start(order).await {
            Ok(started) => Output::text(started.answer()),
            Err(why) => refused(&why.to_string()),
        }
    }
}

impl Run for NormalAgent {
    const NAME: &'static str = "Agent";
    const ACCESS: Access = Access::Reads;
    type Input = NormalAgentInput;

    async fn run(&self, input: NormalAgentInput, context: &Context) -> Output {
        self.run_as(&CallId::default(), input, context).await
    }

    async fn run_as(&self, call: &CallId, input: NormalAgentInput, _: &Context) -> Output {
        let kind = input.subagent_type;
        let order = self.0.order(
            call,
            Wanted {
                description: input.description,
                prompt: input.prompt,
                kind: kind.unwrap_or_else(|| "general-purpose".to_owned()),
                name: input.name,
                model: input.model,
                max_turns: input.max_turns,
                depends_on: input.depends_on.unwrap_or_default(),
                includes_results: input.include_results.unwrap_or(false),
                done_when: input.done_when,
                isolation: input.isolation,
                phase: input.phase,
                files: input.files.unwrap_or_default(),
                result_schema: input.result_schema,
                budget: input.budget,
            },
        );
        let order = match order {
            Ok(order) => order,
            Err(why) => return refused(&why),
        };
        if let Err(why) = self.0.crew.pass_plan(&order).await {
            return refused(&why);
        }
        let background = input.run_in_background.unwrap_or(order.kind.background);
        let crew = &self.0.crew;
        if background {
            return match crew.start(order).await {
                Ok(started) => Output::text(started.answer()),
                Err(why) => refused(&why.to_string()),
            };
        }
        match crew.start_waited(order).await {
            Ok((started, waited)) => {
                let waiting = wait(crew, &started, waited);
                crew.apart(self.0.caller, waiting).await
            }
            Err(why) => refused(&why.to_string()),
        }
    }
}

/// Waits for a worker as long as that is bearable.
async fn wait(crew: &Crew, started: &Started, mut waited: Waited) -> Output {
    let report = tokio::select! {
        report = &mut waited => report.ok(),
        () = tokio::time::sleep(PATIENCE) => crew.move_to_background(started.id, waited),
    };
    match report {
        Some(report) => reported(&report, &started.advice),
        None => Output::text(format!(
            "It takes longer than {} s and goes on in the background. {}",
            PATIENCE.as_secs(),
            started.answer()
        )),
    }
}

type Waited = tokio::sync::oneshot::Receiver<Report>;

struct Wanted {
    description: String,
    prompt: String,
    kind: String,
    name: Option<String>,
    model: Option<String>,
    max_turns: Option<u32>,
    depends_on: Vec<String>,
    includes_results: bool,
    done_when: Option<String>,
    isolation: Option<Isolation>,
    phase: Option<WorkPhase>,
    files: Vec<String>,
    result_schema: Option<serde_json::Value>,
    budget: Option<BudgetInput>,
}

impl Starter {
    /// An order that can be carried out, or what is wrong with it.
    fn order(&self, call: &CallId, wanted: Wanted) -> Result<Order, String> {
        let description = wanted.description.split_whitespace();
        let description = description.collect::<Vec<_>>().join(" ");
        if description.is_empty() {
            return Err("`description` is empty: say in a few words what the task is".to_owned());
        }
        let description = description.chars().take(LONGEST_DESCRIPTION).collect();
        if wanted.prompt.trim().is_empty() {
            let why = "`prompt` is empty: the worker knows nothing but what stands there";
            return Err(why.to_owned());
        }
        if wanted.prompt.len() > LONGEST_PROMPT {
            return Err(format!(
                "`prompt` has {} bytes, {LONGEST_PROMPT} is the most: write the material to the scratchpad and name the file",
                wanted.prompt.len()
            ));
        }
        if wanted.max_turns == Some(0) {
            return Err("`max_turns` is at least 1".to_owned());
        }
        let budget = wanted.budget.map(Budget::from).unwrap_or_default();
        if let Some(problem) = budget.problem() {
            return Err(format!("`budget`: {problem}"));
        }
        let done_when = wanted.done_when.map(|command| command.trim().to_owned());
        let done_when = done_when.filter(|command| !command.is_empty());
        if done_when
            .as_ref()
            .is_some_and(|it| it.len() > LONGEST_PROOF)
        {
            return Err(format!(
                "`done_when` is at most {LONGEST_PROOF} bytes: put it into a script and call that"
            ));
        }
        Scope::check(&wanted.files)?;
        if let Some(schema) = &wanted.result_schema {
            let wrong = |why| format!("`result_schema` cannot be used: {why}");
            Form::new(schema).map_err(wrong)?;
        }
        let name = wanted.name.filter(|name| !name.trim().is_empty());
        let name = name.map(|name| AgentName::parse(name.trim()));
        let name = name.transpose().map_err(|error| error.to_string())?;
        let kind = self.kind(&wanted.kind)?;
        let isolated = kind.isolated || wanted.isolation.is_some();
        if isolated && !self.crew.parts().outfitter.has_worktrees() {
            let why = "a worktree of its own needs a git repository, and this project is in none";
            return Err(why.to_owned());
        }
        let mut order = Order {
            description,
            prompt: wanted.prompt,
            kind,
            name,
            model: wanted.model,
            parent: self.caller,
            call: (!call.is_empty()).then(|| call.clone()),
            depends_on: wanted.depends_on,
            includes_results: wanted.includes_results,
            terms: Terms {
                max_turns: wanted.max_turns,
                isolated,
                phase: wanted.phase.map(Phase::from),
                is_inferred: false,
                files: wanted.files,
                done_when,
                result_schema: wanted.result_schema,
                budget,
            },
            score: None,
            advice: String::new(),
        };
        self.crew.infer_phase(&mut order);
        let passed = self.crew.judge_order(&order)?;
        order.score = passed.score;
        order.advice = passed.text();
        Ok(order)
    }

    fn kind(&self, name: &str) -> Result<Arc<AgentType>, String> {
        let types = self.crew.parts().outfitter.types();
        let kind = types.choose(name).map_err(|error| error.to_string())?;
        Ok(kind.clone())
    }
}

fn refused(why: &str) -> Output {
    Output::error(format!("No worker was started: {why}."))
}

/// The end of a worker that was waited for.
fn reported(report: &Report, advice: &str) -> Output {
    let continues = match report.is_open {
        true => format!(
            "\n[{}, {}: SendMessage continues it]",
            report.name, report.task
        ),
        false => String::new(),
    };
    let worktree = report.worktree.as_ref().map_or_else(String::new, |it| {
        format!("\n[its work is in {}, branch {}]", it.path, it.branch)
    });
    let continues = format!("{worktree}{continues}{advice}");
    let output = match (&report.end, report.result.trim()) {
        (End::Done, text) => Output::text(format!("{text}{continues}")),
        (end, "") => Output::error(format!(
            "The worker ended without a word: {end}.{continues}"
        )),
        (end, text) => Output::error(format!(
            "The worker did not finish: {end}. Its last words:\n{text}{continues}"
        )),
    };
    Output {
        mail: report.letter,
        ..output
    }
}
