//! Plan first: whether the user wants to see the plan, and what they said to it beforehand.

use crate::args::Common;
use crate::mode::Mode;
use crate::settings::Settings;
use gaffer_crew::{Approver, PlanFirst};
use gaffer_tools::permission::{Mode as Rights, Policy};
use gaffer_tools::question::Questions;

/// What the coordinator is told where the user has approved and says no more.
pub(crate) const APPROVED: &str = include_str!("../../../prompts/plan-approved.md");

/// In coordinator mode `plan` is a state that a session leaves: what is allowed afterwards is what
/// would be allowed had nobody asked for it.
pub(crate) fn choose(
    common: &mut Common,
    settings: &Settings,
    (mode, questions): (Mode, Option<&Questions>),
    policy: &mut Policy,
) -> PlanFirst {
    let is_plan = policy.mode == Rights::Plan;
    let is_wanted = is_plan || settings.plan_first.unwrap_or(false);
    if mode == Mode::Normal {
        return PlanFirst::default();
    }
    if !is_wanted {
        // Somebody who is there may want to see the next plan at any time.
        let asks = |questions: &Questions| PlanFirst::new(Approver::Asks(questions.clone()));
        let plan = questions.map(asks).unwrap_or_default();
        plan.set_pending(false);
        return plan;
    }
    if is_plan {
        let set = settings.permissions.default_mode.as_deref();
        let set = set.and_then(|text| text.parse().ok());
        let after = set.filter(|mode| *mode != Rights::Plan);
        let default = match questions {
            Some(_) => Rights::Default,
            None => Rights::AcceptEdits,
        };
        policy.mode = after.unwrap_or(default);
    }
    if !common.approve_plan {
        return PlanFirst::new(match questions {
            Some(questions) => Approver::Asks(questions.clone()),
            None => Approver::Nobody,
        });
    }
    if is_plan {
        // A session that goes on after this is not asked for it again.
        common.permission_mode = None;
    }
    PlanFirst::new(Approver::Approves)
}
