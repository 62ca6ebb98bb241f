//! How orders are looked at: the settings' levels, and the rules of a project's own.

use crate::exit::Usage;
use crate::run::Job;
use crate::setup::project;
use crate::stage::is_bare;
use gaffer_crew::Guardrails;
use gaffer_crew::orders::{RuleError, Rules};
use std::path::Path;

/// Below the project's root.
const OWN_RULES: &str = ".gaffer/order-rules.toml";
const MOST_BYTES: u64 = 256 << 10;

/// A project's own rules that cannot be used end the run: a rule that is missing without a word
/// would be taken for one that found nothing.
pub(crate) fn load(job: &Job) -> Result<Guardrails, Usage> {
    let path = project(&job.cwd).join(OWN_RULES);
    let shown = path.display().to_string();
    let wrong = |why: RuleError| Usage::new(format!("order rules {shown}: {why}"));
    let mut guardrails = match !is_bare(job) && path.exists() {
        true => {
            let own = read(&path);
            let own = own.map_err(|why| Usage::new(format!("order rules {shown}: {why}")))?;
            Guardrails::new(Rules::load(&own).map_err(wrong)?)
        }
        false => Guardrails::default(),
    };
    let set = job.settings.guardrails;
    guardrails.orders = set.orders;
    guardrails.continues = set.continues;
    guardrails.leases = set.lease_limits();
    guardrails.budget = set.budget;
    guardrails.phases = set.phases;
    guardrails.plan = job.limits.plan().clone();
    guardrails.project = Some(job.cwd.clone());
    Ok(guardrails)
}

fn read(path: &Path) -> Result<String, String> {
    let about = std::fs::metadata(path).map_err(|why| why.to_string())?;
    if !about.is_file() || about.len() > MOST_BYTES {
        return Err(format!("it is no file of {MOST_BYTES} bytes at most"));
    }
    std::fs::read_to_string(path).map_err(|why| why.to_string())
}
