//! `lms load` of LM Studio, which serves a GGUF file with the kernels of llama.cpp and a model of MLX with those of MLX:
//! <https://lmstudio.ai/docs/cli/load>, `src/subcommands/load.ts` of <https://github.com/lmstudio-ai/lms>.

use super::wrapper::Started;
use crate::launch::settings_file::file_name;

/// Options with a value that changes nothing in memory, schedule or speed.
const NAMES: [&str; 4] = ["--ttl", "--identifier", "--host", "--port"];
/// Options without a value.
const SWITCHES: [&str; 3] = ["-y", "--yes", "--exact"];

/// Turns `lms load` into the server that it starts. A word that is not known stays, so that it is said to be unknown.
pub(super) fn of_studio(one: &mut Started) {
    let [program, command, rest @ ..] = &one.words[..] else { return };
    // An estimate loads nothing.
    if file_name(program) != "lms" || command != "load" || rest.iter().any(|word| word == "--estimate-only") {
        return;
    }
    let mut words = rest.iter().flat_map(|word| match word.split_once('=') {
        Some((name, value)) if name.starts_with("--") => vec![name.to_owned(), value.to_owned()],
        _ => vec![word.clone()],
    });
    let (mut model, mut of_llama, mut unknown) = (None, Vec::new(), Vec::new());
    while let Some(word) = words.next() {
        match word.as_str() {
            name if NAMES.contains(&name) => drop(words.next()),
            name if SWITCHES.contains(&name) => {}
            "-c" | "--context-length" => of_llama.extend(["-c".to_owned(), words.next().unwrap_or_default()]),
            "--gpu" => match words.next().unwrap_or_default().as_str() {
                "max" | "1" | "1.0" => of_llama.extend(["-ngl", "all"].map(str::to_owned)),
                "off" | "0" => of_llama.extend(["-ngl", "0"].map(str::to_owned)),
                // A share of the layers, whose number only the model says: a reading would be a guess.
                _ => return,
            },
            name if name.starts_with('-') || model.is_some() => unknown.push(word),
            _ => model = Some(word),
        }
    }
    let Some(model) = model else { return };
    let mlx = model.to_lowercase().contains("mlx");
    let server = if mlx { ["mlx_lm.server", "--model"] } else { ["llama-server", "-m"] };
    // MLX places every layer on the GPU, and its cache grows with the request.
    let options = of_llama.into_iter().filter(|_| !mlx).chain(unknown);
    one.words = server.map(str::to_owned).into_iter().chain([model]).chain(options).collect();
    one.notes.push(format!("LM Studio serves it: read as {}", server[0]));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> (String, Vec<String>) {
        let words = line.split(' ').map(str::to_owned).collect();
        let mut one = Started { words, ..Started::default() };
        of_studio(&mut one);
        (one.words.join(" "), one.notes)
    }

    #[test]
    fn a_loaded_model_is_a_server() {
        let of_llama = vec!["LM Studio serves it: read as llama-server".to_owned()];
        let line = "lms load qwen/qwen3-8b --gpu=max --context-length 8192 --ttl 300 --identifier q -y";
        assert_eq!(
            read(line),
            ("llama-server -m qwen/qwen3-8b -ngl all -c 8192".to_owned(), of_llama.clone())
        );
        let line = "~/.lmstudio/bin/lms load -c 4096 q.gguf --gpu off";
        assert_eq!(read(line), ("llama-server -m q.gguf -c 4096 -ngl 0".to_owned(), of_llama));
        let (mlx, _) = read("lms load mlx-community/Qwen3-8B-4bit --context-length 4096 --strange");
        assert_eq!(mlx, "mlx_lm.server --model mlx-community/Qwen3-8B-4bit --strange");
        assert_eq!(read("lms load q --strange").0, "llama-server -m q --strange");
        for other in [
            "lms load q --gpu 0.5",
            "lms load --estimate-only q",
            "lms load",
            "lms server start --port 1234",
            "lms",
        ] {
            assert_eq!(read(other), (other.to_owned(), vec![]));
        }
    }
}
