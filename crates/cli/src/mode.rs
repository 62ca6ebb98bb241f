//! Which of the two modes a session has, and who says so.

use crate::args::Common;
use crate::exit::Usage;
use crate::settings::Settings;
use crate::system;

/// Who talks with the user: an agent that can only manage, or one with all the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    #[cfg(feature = "coordinator")]
    Coordinator,
    Normal,
}

const VARIABLE: &str = "GAFFER_COORDINATOR_MODE";

impl Mode {
    #[cfg(feature = "coordinator")]
    pub(crate) const DEFAULT: Self = Self::Coordinator;
    #[cfg(not(feature = "coordinator"))]
    pub(crate) const DEFAULT: Self = Self::Normal;

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            #[cfg(feature = "coordinator")]
            Self::Coordinator => "coordinator",
            Self::Normal => "normal",
        }
    }

    /// The command line's word, then the variable's, then the settings', then the default.
    pub(crate) fn choose(common: &Common, settings: &Settings) -> Result<Self, Usage> {
        if let Some(mode) = &common.mode {
            return Self::parse(mode);
        }
        if let Some(value) = system::variable(VARIABLE) {
            return Self::parse(switch(&value)?);
        }
        match &settings.mode {
            Some(mode) => Self::parse(mode),
            None => Ok(Self::DEFAULT),
        }
    }

    pub(crate) fn parse(text: &str) -> Result<Self, Usage> {
        match text {
            "normal" => Ok(Self::Normal),
            #[cfg(feature = "coordinator")]
            "coordinator" => Ok(Self::Coordinator),
            #[cfg(not(feature = "coordinator"))]
            "coordinator" => Err(Usage::new(
                "this build has no coordinator mode; use --mode normal",
            )),
            other => Err(Usage::new(format!(
                "the mode `{other}` is none of normal, coordinator"
            ))),
        }
    }
}

fn switch(value: &str) -> Result<&'static str, Usage> {
    match value.to_ascii_lowercase().as_str() {
        "1" | "true" | "yes" | "on" => Ok("coordinator"),
        "0" | "false" | "no" | "off" => Ok("normal"),
        _ => Err(Usage::new(format!(
            "{VARIABLE} is `{value}`: expected 1, true, yes, on, 0, false, no or off"
        ))),
    }
}
