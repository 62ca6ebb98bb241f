//! Which model answers: from the command line, the settings and the environment.

use crate::args::Common;
use crate::exit::Usage;
use crate::mode::Mode;
use crate::settings::{ProviderSettings, Settings};
use crate::system::{self, SystemEntropy};
use gaffer_model::provider::{Connection, Deadlines, Gates, Kind, connect};
use gaffer_model::retry::{Patience, Retrying};
use gaffer_model::script::{Recorder, Script, Scripted};
use gaffer_model::wire::WireOptions;
use gaffer_model::{Gate, Model, Prices};
use gaffer_workspace::handles::Handles;
use secrecy::SecretString;
use std::path::Path;
use std::sync::Arc;

/// Requests that may run at once until the provider says otherwise.
const DEFAULT_LIMIT: u32 = 1024;
/// An answer's length where the price table does not know the model, and at most otherwise: more
/// is seldom wanted, and some providers reserve what is asked for.
const LONGEST_ANSWER: u32 = 32_000;
const UNKNOWN_MODEL_ANSWER: u32 = 8_192;

/// A model that is ready to be asked, and what there is to know about it.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) recorder: Option<Arc<Recorder>>,
    pub(crate) scripted: Option<Arc<Scripted>>,
    pub(crate) kind: Kind,
    pub(crate) name: String,
    /// The variable that the key came from.
    pub(crate) key_source: String,
    pub(crate) prices: Arc<Prices>,
    /// For all requests with this provider and key.
    pub(crate) gate: Gate,
}

/// The model for small questions, if the settings name one. A script answers all questions.
pub(crate) fn small(
    common: &Common,
    settings: &Settings,
    chosen: &Chosen,
) -> anyhow::Result<Option<Arc<dyn Model>>> {
    let Some(name) = &settings.small_model else {
        return Ok(None);
    };
    if chosen.kind == Kind::Scripted {
        return Ok(Some(chosen.model.clone()));
    }
    let connection = named(common, settings, chosen, name)?;
    let single = connect(connection).map_err(|error| Usage::new(error.to_string()))?;
    let (gate, patience) = (chosen.gate.clone(), patience(settings));
    let entropy = Arc::new(SystemEntropy);
    let retrying = Retrying::new(single, gate, patience, entropy);
    Ok(Some(Arc::new(retrying)))
}

/// How another model of the same provider is reached.
pub(crate) fn named(
    common: &Common,
    settings: &Settings,
    chosen: &Chosen,
    name: &str,
) -> Result<Connection, Usage> {
    let own = settings.providers.get(chosen.kind.as_str());
    let own = own.cloned().unwrap_or_default();
    let deadlines = deadlines(&own);
    let common = Common {
        model: Some(name.to_owned()),
        ..common.clone()
    };
    connection(
        chosen.kind,
        &common,
        settings,
        own,
        deadlines,
        &chosen.prices,
    )
}

/// Finds out who answers. Nothing is sent yet.
pub(crate) fn choose(
    common: &Common,
    settings: &Settings,
    mode: Mode,
    home: &Path,
) -> anyhow::Result<Chosen> {
    check_record(common)?;
    // The role's model goes before the general one, but not before the command line's.
    let role = settings.models.get(mode.as_str());
    let common = &Common {
        model: common.model.clone().or_else(|| role.cloned()),
        ..common.clone()
    };
    let prices = Arc::new(Prices::new(&settings.prices));
    let kind = kind(common, settings)?;
    let own = settings
        .providers
        .get(kind.as_str())
        .cloned()
        .unwrap_or_default();
    let deadlines = deadlines(&own);
    let patience = patience(settings);
    let entropy = Arc::new(SystemEntropy);
    let mut scripted = None;
    let (name, single, gate, key_source): (String, Arc<dyn Model>, Gate, String);
    if kind == Kind::Scripted {
        let file = common.model.as_deref().or(settings.model.as_deref());
        let file = file.ok_or_else(|| {
            Usage::new("the provider `scripted` plays a file: give it with --model FILE")
        })?;
        let model = Arc::new(Scripted::new(read_script(Path::new(file))?, deadlines));
        scripted = Some(model.clone());
        (name, single, gate, key_source) = (
            "scripted".to_owned(),
            model,
            Gate::new(DEFAULT_LIMIT),
            "none".to_owned(),
        );
    } else {
        let connection = connection(kind, common, settings, own.clone(), deadlines, &prices)?;
        let limit = own.max_concurrent_requests.unwrap_or(DEFAULT_LIMIT);
        let gates = Gates::below(home.join("gates"), Handles::allowed().requests());
        gate = gates.of(&connection.base, connection.key.as_ref(), limit);
        key_source = if connection.key.is_some() {
            kind.key_variable()
        } else {
            "none"
        }
        .to_owned();
        name = connection.options.model.clone();
        single = connect(connection).map_err(|error| Usage::new(error.to_string()))?;
    }
    let retrying: Arc<dyn Model> = Arc::new(Retrying::new(single, gate.clone(), patience, entropy));
    let recorder = common
        .record
        .as_ref()
        .map(|path| Arc::new(Recorder::new(retrying.clone(), path.clone())));
    let model = recorder
        .clone()
        .map_or(retrying, |recorder| recorder as Arc<dyn Model>);
    Ok(Chosen {
        model,
        recorder,
        scripted,
        kind,
        name,
        key_source,
        prices,
        gate,
    })
}

fn kind(common: &Common, settings: &Settings) -> Result<Kind, Usage> {
    let named = common.provider.as_deref().map(|name| (name, "--provider"));
    let named = named.or_else(|| Some((settings.provider.as_deref()?, "the settings' provider")));
    if let Some((name, from)) = named {
        return Kind::parse(name).ok_or_else(|| {
            let all: Vec<&str> = Kind::ALL.iter().map(|kind| kind.as_str()).collect();
            Usage::new(format!("{from} `{name}` is none of {}", all.join(", ")))
        });
    }
    let usable = |kind: &Kind| {
        let own = settings.providers.get(kind.as_str());
        let has_address = own.is_some_and(|own| own.base_url.is_some());
        has_address
            || system::variable(kind.key_variable()).is_some()
            || system::variable(kind.base_variable()).is_some()
    };
    [Kind::Anthropic, Kind::OpenAi].into_iter().find(usable).ok_or_else(|| {
        Usage::new("no key for a model: set ANTHROPIC_API_KEY or OPENAI_API_KEY (`gaffer demo` needs none)")
    })
}

fn connection(
    kind: Kind,
    common: &Common,
    settings: &Settings,
    own: ProviderSettings,
    deadlines: Deadlines,
    prices: &Prices,
) -> Result<Connection, Usage> {
    let given_base = own
        .base_url
        .or_else(|| system::variable(kind.base_variable()));
    let key = system::variable(kind.key_variable());
    // A server at an address of the user's own may need no key.
    if key.is_none() && given_base.is_none() {
        let (variable, name) = (kind.key_variable(), kind.as_str());
        let message = format!("no key for {name}: set {variable} (`gaffer demo` needs none)");
        return Err(Usage::new(message));
    }
    let model = common
        .model
        .clone()
        .or(own.model)
        .or_else(|| settings.model.clone());
    let model = model.or_else(|| kind.default_model().map(str::to_owned));
    let model = model.ok_or_else(|| {
        Usage::new(format!(
            "the provider `{}` has no default model: give one with --model",
            kind.as_str()
        ))
    })?;
    let known = prices.of(&model).and_then(|price| price.max_output);
    let most = known.map_or(UNKNOWN_MODEL_ANSWER, |most| most.min(LONGEST_ANSWER));
    Ok(Connection {
        kind,
        base: given_base.unwrap_or_else(|| kind.default_base().to_owned()),
        key: key.map(SecretString::from),
        headers: own.headers.into_iter().collect(),
        deadlines,
        options: WireOptions {
            model,
            max_output: own.max_output_tokens.unwrap_or(most),
            extra: own.extra,
            images: own.images.unwrap_or(true),
            server_tools: Vec::new(),
        },
    })
}

fn deadlines(own: &ProviderSettings) -> Deadlines {
    let default = Deadlines::default();
    Deadlines {
        first_byte: own
            .first_byte_timeout
            .map_or(default.first_byte, |span| span.0),
        silence: own.silence_timeout.map_or(default.silence, |span| span.0),
    }
}

pub(crate) fn patience(settings: &Settings) -> Patience {
    let (retry, default) = (&settings.retry, Patience::default());
    Patience {
        attempts: retry.attempts.unwrap_or(default.attempts),
        overload: retry.overload.map_or(default.overload, |span| span.0),
        first_delay: retry.first_delay.map_or(default.first_delay, |span| span.0),
        longest_delay: retry
            .longest_delay
            .map_or(default.longest_delay, |span| span.0),
    }
}

pub(crate) fn read_script(path: &Path) -> Result<Script, Usage> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Usage::new(format!("cannot read the script {shown}: {error}")))?;
    Script::parse(&text).map_err(|error| Usage::new(format!("the script {shown}: {error}")))
}

/// A recording that could not be written is better refused before the run than lost after it.
fn check_record(common: &Common) -> Result<(), Usage> {
    let Some(path) = &common.record else {
        return Ok(());
    };
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() || folder.is_some_and(|folder| !folder.is_dir()) {
        let message = format!("--record {}: not a place for a file", path.display());
        return Err(Usage::new(message));
    }
    Ok(())
}
