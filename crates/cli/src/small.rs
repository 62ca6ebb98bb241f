//! The small model: answers a question from a page, so that the page need not fill an agent's
//! conversation.

use crate::meter::Meter;
use crate::system::SystemEntropy;
use futures_util::future::BoxFuture;
use gaffer_agent::prompt;
use gaffer_model::{Model, Prefix, Who};
use gaffer_protocol::{AgentId, AgentName, Block, Message};
use gaffer_tools::web::Summarise;
use std::sync::Arc;

const AGENT_TYPE: &str = "web-fetch";

#[derive(Debug)]
pub(crate) struct Small {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) meter: Meter,
}

impl Summarise for Small {
    fn answer<'a>(
        &'a self,
        page: &'a str,
        question: &'a str,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let prefix = Prefix {
                system: prompt::WEB_FETCH.text.to_owned(),
                tools: Vec::new(),
            };
            let who = Who {
                id: AgentId::random(&SystemEntropy),
                name: AgentName::main(),
                agent_type: AGENT_TYPE.to_owned(),
            };
            let mut conversation = self.model.open(&prefix, who);
            let text = format!("<page>\n{page}\n</page>\n\nThe question: {question}");
            conversation.push(&Message::user(vec![Block::text(text)]));
            let answer = self.model.answer(&conversation, &mut |_| {}).await;
            let answer = answer.map_err(|error| error.to_string())?;
            self.meter.count(self.model.name(), &answer);
            match answer.text().trim() {
                "" => Err("the small model said nothing".to_owned()),
                text => Ok(text.to_owned()),
            }
        })
    }
}
