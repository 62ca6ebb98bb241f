//! The models of a session's agents: one for each role, made when it is first needed.

use crate::args::Common;
use crate::model::{Chosen, named, patience};
use crate::settings::Settings;
use crate::system::SystemEntropy;
use gaffer_agent::AgentType;
use gaffer_model::Model;
use gaffer_model::provider::{Kind, connect};
use gaffer_model::retry::Retrying;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

#[derive(Debug)]
pub(crate) struct Models {
    pub(crate) chosen: Arc<Chosen>,
    common: Common,
    settings: Settings,
    made: Mutex<HashMap<String, Arc<dyn Model>>>,
    /// The session's own, once the user has chosen another than it began with.
    own: Mutex<Option<Arc<dyn Model>>>,
}

impl Models {
    pub(crate) fn new(chosen: Arc<Chosen>, common: Common, settings: Settings) -> Self {
        Self {
            chosen,
            common,
            settings,
            made: Mutex::default(),
            own: Mutex::default(),
        }
    }

    /// The model of a worker: what the order asks for, then what the settings say of its type and
    /// of workers, then what its type says, then the session's own.
    pub(crate) fn of(
        &self,
        kind: &AgentType,
        asked: Option<&str>,
    ) -> Result<Arc<dyn Model>, String> {
        let roles = &self.settings.models;
        let set = || roles.get(&kind.name).or_else(|| roles.get("worker"));
        let wanted = asked.or_else(|| set().map(String::as_str));
        let wanted = wanted.or(kind.model.as_deref());
        match wanted.and_then(|name| self.real_name(name)) {
            None => Ok(self.own()),
            Some(name) => self.get(&name),
        }
    }

    /// The session's own model as it is now.
    pub(crate) fn own(&self) -> Arc<dyn Model> {
        let own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        own.clone().unwrap_or_else(|| self.chosen.model.clone())
    }

    /// Makes another model the session's own. Its name and itself.
    pub(crate) fn choose(&self, name: &str) -> Result<(String, Arc<dyn Model>), String> {
        let real = self.real_name(name);
        let real = real.ok_or_else(|| format!("there is no model `{name}` here"))?;
        let model = self.get(&real)?;
        *self.own.lock().unwrap_or_else(PoisonError::into_inner) = Some(model.clone());
        Ok((real, model))
    }

    /// A model's own name. Agent files name families of one maker; other makers have none of that
    /// name, so their agents have the session's own model.
    fn real_name(&self, name: &str) -> Option<String> {
        const FAMILIES: [&str; 4] = ["opus", "sonnet", "haiku", "fable"];
        match name {
            "inherit" => None,
            family if FAMILIES.contains(&family) => match self.chosen.kind {
                Kind::Anthropic => self.chosen.prices.newest(&format!("claude-{family}")),
                _ => None,
            },
            name => Some(name.to_owned()),
        }
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Model>, String> {
        let chosen = &self.chosen;
        // A script answers for every model.
        if name == chosen.name || chosen.kind == Kind::Scripted {
            return Ok(chosen.model.clone());
        }
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(model) = made.get(name) {
            return Ok(model.clone());
        }
        let connection = named(&self.common, &self.settings, chosen, name);
        let connection = connection.map_err(|error| error.to_string())?;
        let single = connect(connection).map_err(|error| error.to_string())?;
        let patience = patience(&self.settings);
        let entropy = Arc::new(SystemEntropy);
        let retrying = Retrying::new(single, chosen.gate.clone(), patience, entropy);
        let model: Arc<dyn Model> = match &chosen.recorder {
            Some(recorder) => recorder.also(Arc::new(retrying)),
            None => Arc::new(retrying),
        };
        made.insert(name.to_owned(), model.clone());
        Ok(model)
    }
}
