//! Requests for text and their answers, in the shape of OpenAI's interface.

use serde::Deserialize;
use serde_json::{Value, json};

use super::fault::MockFault;
use super::prompt::{FILLER, PromptTokens, hashed};
use crate::traffic::outcome::RequestRecord;

/// The interfaces of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextInterface {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completions,
}

/// A message of a chat.
#[derive(Clone, Debug, Deserialize)]
struct ChatMessage {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    tool_calls: Value,
}

/// Options of a streamed answer.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

/// The body of a request: what the answer depends on. Sampling parameters change no time, and are not read.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct TextBody {
    pub(super) model: Option<String>,
    messages: Option<Vec<ChatMessage>>,
    #[serde(default)]
    tools: Value,
    #[serde(default)]
    prompt: Value,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    n: Option<u64>,
    best_of: Option<u64>,
    echo: Option<bool>,
    #[serde(default)]
    logprobs: Value,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    user: Option<String>,
}

impl TextBody {
    /// Whether the answer is streamed.
    pub(super) fn streams(&self) -> bool {
        self.stream.unwrap_or(false)
    }

    /// Whether a streamed answer ends with its usage.
    pub(super) fn ends_with_usage(&self) -> bool {
        self.stream_options.unwrap_or_default().include_usage.unwrap_or(false)
    }

    /// Requests of one user have equal numbers.
    pub(super) fn session(&self) -> Option<u64> {
        self.user.as_ref().map(|user| hashed(user.as_bytes()))
    }

    /// Tokens of the answer, where the request limits them.
    ///
    /// # Errors
    /// The limit is 0.
    pub(super) fn limit(&self) -> Result<Option<u64>, MockFault> {
        let stated = [("max_completion_tokens", self.max_completion_tokens), ("max_tokens", self.max_tokens)];
        match stated.into_iter().find_map(|(key, tokens)| tokens.map(|tokens| (key, tokens))) {
            Some((key, 0)) => Err(MockFault::of(key, format!("{key}: found 0, expected at least 1"))),
            stated => Ok(stated.map(|(_, tokens)| tokens)),
        }
    }

    /// Refuses what the simulation has no answer to.
    ///
    /// # Errors
    /// The request has such a thing.
    pub(super) fn check(&self) -> Result<(), MockFault> {
        for (key, count) in [("n", self.n), ("best_of", self.best_of)] {
            if let Some(count) = count.filter(|count| *count != 1) {
                let found = format!("{key}: found {count}, expected 1: a request has one answer here");
                return Err(MockFault::of(key, found));
            }
        }
        if self.echo == Some(true) {
            return Err(MockFault::of("echo", "echo: found true, expected false: prompts are not repeated"));
        }
        if !matches!(self.logprobs, Value::Null | Value::Bool(false)) {
            let found = "logprobs: expected false or none: tokens have no probabilities here";
            return Err(MockFault::of("logprobs", found));
        }
        Ok(())
    }

    /// The tokens of the prompt.
    ///
    /// # Errors
    /// There is none, or it is not one text.
    pub(super) fn prompt(&self, interface: TextInterface) -> Result<PromptTokens, MockFault> {
        let prompt = match interface {
            TextInterface::Chat => self.chat()?,
            TextInterface::Completions => completed(&self.prompt)?,
        };
        match prompt.len() {
            0 => Err(MockFault::of("prompt", "prompt: found an empty one, expected at least one token")),
            _ => Ok(prompt),
        }
    }

    /// Messages, each a token for its role and its text, and the role of the answer. Tools are the text of their JSON.
    fn chat(&self) -> Result<PromptTokens, MockFault> {
        let Some(messages) = self.messages.as_ref().filter(|messages| !messages.is_empty()) else {
            let found = "messages: missing, expected a list of at least one message";
            return Err(MockFault::of("messages", found));
        };
        let mut prompt = PromptTokens::default();
        if !self.tools.is_null() {
            prompt.text(&self.tools.to_string());
        }
        for (at, message) in messages.iter().enumerate() {
            prompt.role(&message.role);
            content(&mut prompt, at, &message.content)?;
            if !message.tool_calls.is_null() {
                prompt.text(&message.tool_calls.to_string());
            }
        }
        prompt.role("assistant");
        Ok(prompt)
    }
}

/// The content of a message: a text, or parts that are texts.
fn content(prompt: &mut PromptTokens, at: usize, content: &Value) -> Result<(), MockFault> {
    let parts = match content {
        Value::Null => return Ok(()),
        Value::String(text) => {
            prompt.text(text);
            return Ok(());
        }
        Value::Array(parts) => parts.as_slice(),
        _ => &[Value::Null],
    };
    for part in parts {
        let Some(text) = part.get("text").and_then(Value::as_str) else {
            let key = format!("messages[{at}].content");
            let found = format!("{key}: found a part that is no text, expected a text, or parts with `text`");
            return Err(MockFault::of(&key, found));
        };
        prompt.text(text);
    }
    Ok(())
}

/// The prompt of `/v1/completions`: a text, tokens, or a list with one of these.
fn completed(prompt: &Value) -> Result<PromptTokens, MockFault> {
    let wrong = |found: &str| {
        let expected = "expected a text, a list of tokens, or a list with one of these";
        Err(MockFault::of("prompt", format!("prompt: {found}, {expected}")))
    };
    let mut tokens = PromptTokens::default();
    match prompt {
        Value::Null => return wrong("missing"),
        Value::String(text) => tokens.text(text),
        Value::Array(list) => match list.as_slice() {
            [one @ (Value::String(_) | Value::Array(_))] => return completed(one),
            [Value::String(_) | Value::Array(_), ..] => return wrong("found several prompts"),
            list => {
                for token in list {
                    let Some(token) = token.as_u64() else { return wrong("found a list with other things") };
                    tokens.given(token);
                }
            }
        },
        _ => return wrong("found something else"),
    }
    Ok(tokens)
}

/// Why an answer ends: at the limit of the request, or by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FinishReason {
    Length,
    Stop,
}

impl FinishReason {
    fn name(self) -> &'static str {
        match self {
            FinishReason::Length => "length",
            FinishReason::Stop => "stop",
        }
    }
}

/// The frame of an answer: what all its chunks have.
#[derive(Clone, Debug)]
pub(super) struct AnswerFrame {
    pub(super) interface: TextInterface,
    pub(super) id: String,
    /// Seconds since 1970.
    pub(super) created: u64,
    pub(super) model: String,
    pub(super) finish: FinishReason,
    /// Whether a streamed answer ends with its usage.
    pub(super) usage: bool,
}

impl AnswerFrame {
    fn object(&self, kind: &str, choices: &Value) -> Value {
        let AnswerFrame { id, created, model, .. } = self;
        json!({"id": id, "object": kind, "created": created, "model": model, "choices": choices})
    }

    fn chunk(&self, choices: &Value) -> Value {
        let kind = match self.interface {
            TextInterface::Chat => "chat.completion.chunk",
            TextInterface::Completions => "text_completion",
        };
        let mut chunk = self.object(kind, choices);
        // As in OpenAI's: none in every chunk before the one that has it.
        if self.usage {
            chunk["usage"] = Value::Null;
        }
        chunk
    }

    /// The first chunk of a chat, without text.
    pub(super) fn begin(&self) -> Option<Value> {
        let delta = json!({"role": "assistant", "content": ""});
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": null});
        (self.interface == TextInterface::Chat).then(|| self.chunk(&json!([choice])))
    }

    /// A chunk with one token.
    pub(super) fn token(&self, is_last: bool) -> Value {
        let finish = is_last.then(|| self.finish.name());
        self.chunk(&match self.interface {
            TextInterface::Chat => json!([
                {"index": 0, "delta": {"content": FILLER}, "logprobs": null, "finish_reason": finish}
            ]),
            TextInterface::Completions => {
                json!([{"index": 0, "text": FILLER, "logprobs": null, "finish_reason": finish}])
            }
        })
    }

    /// The chunk with the usage, where the request wants it.
    pub(super) fn end(&self, record: &RequestRecord) -> Option<Value> {
        let mut chunk = self.chunk(&json!([]));
        chunk["usage"] = usage(record);
        self.usage.then_some(chunk)
    }

    /// The whole answer.
    pub(super) fn whole(&self, record: &RequestRecord) -> Value {
        let (text, finish) = (FILLER.repeat(record.output as usize), self.finish.name());
        let mut answer = match self.interface {
            TextInterface::Chat => {
                let message = json!({"role": "assistant", "content": text});
                let choice =
                    json!({"index": 0, "message": message, "logprobs": null, "finish_reason": finish});
                self.object("chat.completion", &json!([choice]))
            }
            TextInterface::Completions => {
                let choice = json!({"index": 0, "text": text, "logprobs": null, "finish_reason": finish});
                self.object("text_completion", &json!([choice]))
            }
        };
        answer["usage"] = usage(record);
        answer
    }
}

fn usage(record: &RequestRecord) -> Value {
    let (prompt, output) = (u64::from(record.prompt), u64::from(record.output));
    json!({
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": record.cached_tokens},
    })
}
