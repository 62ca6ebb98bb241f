//! What the session may use in all: from the command line, the session itself and the settings.

use crate::args::Common;
use crate::exit::Usage;
use crate::model::Chosen;
use crate::settings::Settings;
use crate::system;
use gaffer_crew::Crew;
use gaffer_protocol::{Budget, Cost, Usage as Tokens};
use gaffer_store::SessionFolder;

/// The flags, which hold what the session was begun with, and then the settings.
pub(crate) fn choose(common: &Common, settings: &Settings) -> Budget {
    Budget::from(common.budget).or(settings.budget.into())
}

/// Where money is limited, everybody's tokens must have a price: what is not known cannot be held
/// under a cap.
pub(crate) fn check(budget: Budget, chosen: &Chosen, settings: &Settings) -> Result<(), Usage> {
    if budget.usd.is_none() {
        return Ok(());
    }
    let one = Tokens {
        input: 1,
        ..Tokens::default()
    };
    let further = settings.small_model.iter();
    let names = std::iter::once(chosen.model.name()).chain(further.map(String::as_str));
    for name in names {
        if chosen.prices.cost(name, one) == Cost::Unknown {
            return Err(Usage::new(format!(
                "--max-budget-usd: the model `{name}` has no price; give one in the settings, \"prices\": {{\"{name}\": {{\"input\": 3, \"output\": 15}}}} (dollars for a million tokens), or use --max-tokens-total"
            )));
        }
    }
    Ok(())
}

/// Says what the budget came to, and keeps it with the session.
pub(crate) fn close(crew: &Crew, folder: &SessionFolder) {
    let Some(sum) = crew.close_budget() else {
        return;
    };
    let Some(mut about) = folder.about() else {
        return;
    };
    about.account = Some(sum);
    if let Err(why) = folder.set_about(&about) {
        system::say(&format!(
            "gaffer: the budget's sum could not be kept: {why}"
        ));
    }
}
