//! Interfaces of servers: where a request goes, its body, and where chunks of an answer have text and counts.

use serde_json::{Value, json};

/// An interface of text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Protocol {
    /// OpenAI's `/v1/chat/completions`
    #[default]
    Chat,
    /// OpenAI's `/v1/completions`
    Completions,
    /// `/completion` of llama.cpp's server
    #[cfg_attr(feature = "cli", value(name = "llama.cpp"))]
    LlamaCpp,
    /// `/api/generate` of Ollama
    Ollama,
}

/// A request for text.
pub(super) struct TextRequest<'a> {
    pub(super) model: &'a str,
    pub(super) prompt: &'a str,
    /// Tokens of the answer.
    pub(super) output: u64,
    /// Whether keys are sent that forbid the answer to end early.
    pub(super) fixed_length: bool,
}

/// A line of an answer that has a chunk.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ChunkLine {
    /// `data: {…}`, as server-sent events.
    Event,
    /// A JSON object a line.
    Object,
}

/// An interface as data. Places are JSON pointers; the first that is there counts.
pub(super) struct ProtocolEntry {
    protocol: Protocol,
    pub(super) name: &'static str,
    pub(super) path: &'static str,
    line: ChunkLine,
    pub(super) body: fn(&TextRequest) -> Value,
    /// Keys that forbid an answer to end early.
    fixed_length: fn(u64) -> Value,
    text: &'static [&'static str],
    prompt_tokens: &'static [&'static str],
    output_tokens: &'static [&'static str],
    cached_tokens: &'static [&'static str],
}

const OF_OPENAI: fn(u64) -> Value = |output| json!({"ignore_eos": true, "min_tokens": output});
const USAGE: [&[&str]; 3] = [
    &["/usage/prompt_tokens"],
    &["/usage/completion_tokens"],
    &["/usage/prompt_tokens_details/cached_tokens"],
];

static PROTOCOLS: [ProtocolEntry; 4] = [
    ProtocolEntry {
        protocol: Protocol::Chat,
        name: "chat",
        path: "/v1/chat/completions",
        line: ChunkLine::Event,
        body: |request| {
            json!({
                "model": request.model, "messages": [{"role": "user", "content": request.prompt}],
                "max_tokens": request.output, "stream": true, "stream_options": {"include_usage": true},
            })
        },
        fixed_length: OF_OPENAI,
        text: &[
            "/choices/0/delta/content",
            "/choices/0/delta/reasoning_content",
            "/choices/0/delta/reasoning",
        ],
        prompt_tokens: USAGE[0],
        output_tokens: USAGE[1],
        cached_tokens: USAGE[2],
    },
    ProtocolEntry {
        protocol: Protocol::Completions,
        name: "completions",
        path: "/v1/completions",
        line: ChunkLine::Event,
        body: |request| {
            json!({
                "model": request.model, "prompt": request.prompt, "max_tokens": request.output, "stream": true,
                "stream_options": {"include_usage": true},
            })
        },
        fixed_length: OF_OPENAI,
        text: &["/choices/0/text"],
        prompt_tokens: USAGE[0],
        output_tokens: USAGE[1],
        cached_tokens: USAGE[2],
    },
    ProtocolEntry {
        protocol: Protocol::LlamaCpp,
        name: "llama.cpp",
        path: "/completion",
        line: ChunkLine::Event,
        body: |request| json!({"prompt": request.prompt, "n_predict": request.output, "stream": true}),
        fixed_length: |_| json!({"ignore_eos": true}),
        text: &["/content"],
        prompt_tokens: &["/tokens_evaluated"],
        output_tokens: &["/tokens_predicted"],
        cached_tokens: &["/timings/cache_n"],
    },
    ProtocolEntry {
        protocol: Protocol::Ollama,
        name: "ollama",
        path: "/api/generate",
        line: ChunkLine::Object,
        body: |request| {
            json!({
                "model": request.model, "prompt": request.prompt, "raw": true, "stream": true,
                "options": {"num_predict": request.output},
            })
        },
        fixed_length: |_| json!({}),
        text: &["/response", "/thinking"],
        prompt_tokens: &["/prompt_eval_count"],
        output_tokens: &["/eval_count"],
        cached_tokens: &[],
    },
];

/// A chunk of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AnswerChunk {
    /// Whether it has text.
    pub(super) text: bool,
    /// Counts so far, where it has them.
    pub(super) prompt_tokens: Option<u64>,
    pub(super) output_tokens: Option<u64>,
    pub(super) cached_tokens: Option<u64>,
    /// Whether it reports a fault in place of an answer.
    pub(super) fault: bool,
}

impl Protocol {
    pub(super) fn entry(self) -> &'static ProtocolEntry {
        PROTOCOLS.iter().find(|entry| entry.protocol == self).unwrap_or(&PROTOCOLS[0])
    }

    /// Its name in flags and records.
    pub fn name(self) -> &'static str {
        self.entry().name
    }
}

impl ProtocolEntry {
    /// The body of a request.
    pub(super) fn text_of(&self, request: &TextRequest) -> String {
        let mut body = (self.body)(request);
        if let (true, Value::Object(more), Some(body)) =
            (request.fixed_length, (self.fixed_length)(request.output), body.as_object_mut())
        {
            body.extend(more);
        }
        body.to_string()
    }

    /// Whether an answer can be kept from ending early.
    pub(super) fn fixes_length(&self) -> bool {
        (self.fixed_length)(1).as_object().is_some_and(|keys| !keys.is_empty())
    }

    /// The chunk of a line; `None` of a line without one.
    pub(super) fn chunk(&self, line: &[u8]) -> Option<AnswerChunk> {
        let object = match self.line {
            ChunkLine::Event => line.strip_prefix(b"data:")?.trim_ascii(),
            ChunkLine::Object => line.trim_ascii(),
        };
        if object.is_empty() || object == b"[DONE]" {
            return None;
        }
        let Ok(value) = serde_json::from_slice::<Value>(object) else {
            return Some(AnswerChunk { fault: true, ..AnswerChunk::default() });
        };
        let count = |places: &[&str]| places.iter().find_map(|place| value.pointer(place)?.as_u64());
        let has_text =
            |place: &&str| value.pointer(place).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
        Some(AnswerChunk {
            text: self.text.iter().any(has_text),
            prompt_tokens: count(self.prompt_tokens),
            output_tokens: count(self.output_tokens),
            cached_tokens: count(self.cached_tokens),
            fault: value.get("error").is_some_and(|error| !error.is_null()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_of_each_server_have_their_text_and_counts() {
        let chat = Protocol::Chat.entry();
        let chunk = chat.chunk(br#"data: {"choices":[{"delta":{"content":" x"}}],"usage":null}"#).unwrap();
        assert_eq!(chunk, AnswerChunk { text: true, ..AnswerChunk::default() });
        let begin =
            chat.chunk(br#"data: {"choices":[{"delta":{"role":"assistant","content":""}}]}"#).unwrap();
        assert!(!begin.text);
        let usage = br#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,
            "prompt_tokens_details":{"cached_tokens":2}}}"#;
        let counted = chat.chunk(usage.as_ref()).unwrap();
        assert_eq!(
            (counted.prompt_tokens, counted.output_tokens, counted.cached_tokens),
            (Some(9), Some(4), Some(2))
        );
        assert_eq!(chat.chunk(b"data: [DONE]"), None);
        assert_eq!(chat.chunk(b": comment"), None);
        assert!(chat.chunk(br#"data: {"error":{"message":"x"}}"#).unwrap().fault);
        let llama = Protocol::LlamaCpp.entry();
        let last = llama.chunk(br#"data: {"content":"","tokens_predicted":5,"tokens_evaluated":7}"#).unwrap();
        assert_eq!((last.text, last.output_tokens, last.prompt_tokens), (false, Some(5), Some(7)));
        let ollama = Protocol::Ollama.entry();
        assert!(ollama.chunk(br#"{"response":"a","done":false}"#).unwrap().text);
        assert_eq!(ollama.chunk(br#"{"done":true,"eval_count":3}"#).unwrap().output_tokens, Some(3));
    }

    #[test]
    fn bodies_fix_the_length_where_the_server_can() {
        let request = |fixed_length| TextRequest { model: "m", prompt: "p", output: 5, fixed_length };
        for entry in &PROTOCOLS {
            let plain: Value = serde_json::from_str(&entry.text_of(&request(false))).unwrap();
            let fixed: Value = serde_json::from_str(&entry.text_of(&request(true))).unwrap();
            assert!(plain["stream"] == true && plain.get("ignore_eos").is_none(), "{plain}");
            assert_eq!(fixed != plain, entry.fixes_length(), "{}", entry.name);
            assert!(plain.to_string().contains("\"p\"") && plain.to_string().contains('5'));
        }
    }
}
