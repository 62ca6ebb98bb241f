//! The command line's caps on what a session may use.

use gaffer_model::script::Span;
use gaffer_protocol::Budget;

#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub(crate) struct BudgetArgs {
    /// The most that the session may cost in dollars, workers included, such as 2.50. At the cap
    /// every agent has one turn to wrap up; then the exit code is 3.
    #[arg(long, value_name = "USD", value_parser = dollars)]
    pub(crate) max_budget_usd: Option<f64>,

    /// The most tokens that all agents may use together: input, cache and output, such as 2000000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) max_tokens_total: Option<u64>,

    /// How long the session may work: 90s, 20m, 2h, or a number of seconds.
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) max_wall: Option<u64>,

    /// How many workers may be started in all, such as 8. Continuing one does not count.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_workers_total: Option<u32>,
}

impl From<BudgetArgs> for Budget {
    fn from(args: BudgetArgs) -> Self {
        Self {
            usd: args.max_budget_usd,
            tokens: args.max_tokens_total,
            seconds: args.max_wall,
            workers: args.max_workers_total,
        }
    }
}

impl From<Budget> for BudgetArgs {
    fn from(budget: Budget) -> Self {
        Self {
            max_budget_usd: budget.usd,
            max_tokens_total: budget.tokens,
            max_wall: budget.seconds,
            max_workers_total: budget.workers,
        }
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    let usd = text.trim().trim_start_matches('$').parse::<f64>();
    let usd = usd.ok().filter(|usd| usd.is_finite() && *usd > 0.0);
    usd.ok_or_else(|| "a number of dollars above 0, such as 2.50".to_owned())
}

/// A duration as people write it, in whole seconds and at least one.
pub(crate) fn seconds(text: &str) -> Result<u64, String> {
    let number = text.trim().parse::<u64>().ok();
    let span = || Span::parse(text).map(|span| span.0.as_secs_f64().ceil() as u64);
    let seconds = number.or_else(span).filter(|seconds| *seconds > 0);
    seconds.ok_or_else(|| "a time above 0: 90s, 20m, 2h, or a number of seconds".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_above_nothing() {
        assert_eq!(dollars("2.50"), Ok(2.5));
        assert_eq!(dollars("$3"), Ok(3.0));
        for bad in ["0", "-1", "NaN", "inf", "", "two"] {
            assert!(dollars(bad).is_err(), "{bad}");
        }
        assert_eq!(seconds("90"), Ok(90));
        assert_eq!(seconds("20m"), Ok(1200));
        assert_eq!(seconds("1.5h"), Ok(5400));
        for bad in ["0", "0s", "-5s", "NaNs", "soon", ""] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
