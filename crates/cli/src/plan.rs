//! Plan first: whether the user wants to see the plan, and what they said to it beforehand.

use crate::args::Common;
use crate::mode::Mode;
use crate::settings::Settings;
use gaffer_crew::{Approver, PlanFirst};
use gaffer_tools::permission::{Mode as Rights, Policy};

/// What the coordinator is told where the user has approved and says no more.
pub(crate) const APPROVED: &str = include_str!("../../../prompts/plan-approved.md");

/// In coordinator mode `plan` is a state that a session leaves: what is allowed afterwards is what
/// would be allowed had nobody asked for it.
pub(crate) fn choose(
    common: &mut Common,
    settings: &Settings,
    mode: Mode,
    policy: &mut Policy,
) -> PlanFirst {
    let is_plan = policy.mode == Rights::Plan;
    let is_wanted = is_plan || settings.plan_first.unwrap_or(false);
    if mode == Mode::Normal || !is_wanted {
        return PlanFirst::default();
    }
    if is_plan {
        let set = settings.permissions.default_mode.as_deref();
        let set = set.and_then(|text| text.parse().ok());
        let after = set.filter(|mode| *mode != Rights::Plan);
        policy.mode = after.unwrap_or(Rights::AcceptEdits);
    }
    if !common.approve_plan {
        return PlanFirst::new(Approver::Nobody);
    }
    if is_plan {
        // A session that goes on after this is not asked for it again.
        common.permission_mode = None;
    }
    PlanFirst::new(Approver::Approves)
}
