//! The program that a container image starts, for commands that state only its arguments.

use super::settings_file::file_name;
use super::shell::starts_server;

/// An image by a part of its name, and the program that it starts.
struct EntryPoint {
    /// Part of the repository, in small letters.
    repository: &'static str,
    words: &'static [&'static str],
    /// Whether the image is the runtime's own, so that its program is known and not only likely.
    own: bool,
}

/// The first that fits counts. vLLM: `ENTRYPOINT ["vllm", "serve"]` of its Dockerfile; llama.cpp: `/app/llama-server` of
/// the images whose tag begins with `server`.
const ENTRY_POINTS: [EntryPoint; 9] = [
    // A simulator serves no model.
    EntryPoint { repository: "llm-d-inference-sim", words: &[], own: true },
    EntryPoint { repository: "vllm-openai", words: &["vllm", "serve"], own: true },
    EntryPoint { repository: "ggml-org/llama.cpp", words: &["llama-server"], own: true },
    EntryPoint { repository: "llama.cpp", words: &["llama-server"], own: false },
    EntryPoint { repository: "llama-cpp", words: &["llama-server"], own: false },
    EntryPoint { repository: "llamacpp", words: &["llama-server"], own: false },
    EntryPoint { repository: "llm-d-", words: &["vllm", "serve"], own: false },
    EntryPoint { repository: "vllm", words: &["vllm", "serve"], own: false },
    EntryPoint { repository: "sglang", words: &["python3", "-m", "sglang.launch_server"], own: false },
];

/// Programs that a container may start instead of its image's own.
const OTHER_PROGRAMS: [&str; 12] =
    ["sh", "bash", "zsh", "dash", "ash", "env", "exec", "tini", "dumb-init", "numactl", "uv", "ray"];

/// The command of a container from the words after its image: with the program of the image, where they are no command
/// themselves, and a remark where that program is only likely.
pub(super) fn with_entry_point(image: Option<&str>, words: Vec<String>) -> (Vec<String>, Option<String>) {
    let Some(first) = words.first() else {
        // The variables of its environment may be all that it needs.
        let own = image.and_then(entry_point).filter(|entry| entry.own);
        return (
            own.map(|entry| entry.words.iter().map(|word| (*word).to_owned()).collect()).unwrap_or_default(),
            None,
        );
    };
    let program = file_name(first);
    let runs = starts_server(&words)
        || OTHER_PROGRAMS.contains(&program)
        || program.starts_with("python")
        || first.starts_with('/')
        || first.starts_with("./");
    // A model's id, or options.
    let arguments = first.starts_with('-') || first.contains('/') || first.starts_with('$');
    if runs || !arguments {
        return (words, None);
    }
    let Some(image) = image else { return (words, None) };
    let Some(entry) = entry_point(image) else { return (words, None) };
    let program: Vec<String> = entry.words.iter().map(|word| (*word).to_owned()).collect();
    let note = (!entry.own).then(|| format!("the image {image} is taken to start `{}`", program.join(" ")));
    (program.into_iter().chain(words).collect(), note)
}

fn entry_point(image: &str) -> Option<&'static EntryPoint> {
    let repository = repository(image).to_lowercase();
    ENTRY_POINTS.iter().find(|entry| repository.contains(entry.repository))
}

/// The name of an image without its tag and digest.
fn repository(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        _ => image,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(image: &str, words: &str) -> String {
        let words = words.split(' ').map(str::to_owned).collect();
        with_entry_point(Some(image), words).0.join(" ")
    }

    #[test]
    fn arguments_alone_belong_to_the_program_of_the_image() {
        for (image, words, whole) in [
            ("vllm/vllm-openai:v0.33.0", "--model a/b", "vllm serve --model a/b"),
            ("host:5000/vllm/vllm-openai", "a/b -tp 2", "vllm serve a/b -tp 2"),
            ("vllm/vllm-openai", "vllm serve a/b", "vllm serve a/b"),
            ("vllm/vllm-openai", "python3 -m x", "python3 -m x"),
            ("ghcr.io/ggml-org/llama.cpp:server-cuda", "-m x.gguf", "llama-server -m x.gguf"),
            ("alpine", "--model a/b", "--model a/b"),
            ("vllm/vllm-openai", "sleep 5", "sleep 5"),
        ] {
            assert_eq!(command(image, words), whole);
        }
        let guessed = with_entry_point(Some("me/vllm-patched:1"), vec!["--model".into()]);
        assert_eq!(guessed.1.unwrap(), "the image me/vllm-patched:1 is taken to start `vllm serve`");
    }
}
