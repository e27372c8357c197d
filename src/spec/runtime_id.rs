//! Ids of runtimes by their form: `vllm-0.8.5-cuda12.4` is a runtime, its version and the CUDA version of its build.

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuntimeId<'a> {
    pub name: &'a str,
    pub version: &'a str,
    /// The CUDA version of the build, if it is part of the id.
    pub cuda: Option<&'a str>,
}

impl RuntimeId<'_> {
    /// The parts of `text`, where it has this form: each `-` may end the name.
    pub fn parse(text: &str) -> impl Iterator<Item = RuntimeId<'_>> {
        text.match_indices('-').filter_map(move |(at, _)| {
            let (name, rest) = (&text[..at], &text[at + 1..]);
            let (version, build) = rest.split_once('-').map_or((rest, None), |(v, build)| (v, Some(build)));
            let numbers = version.strip_prefix('v').unwrap_or(version);
            let cuda = build.and_then(|build| build.strip_prefix("cuda").or(build.strip_prefix("cu")));
            let is_version = numbers.starts_with(|c: char| c.is_ascii_digit());
            // Another word after the version belongs to the name of another runtime.
            let whole =
                build.is_none() || cuda.is_some_and(|cuda| cuda.starts_with(|c: char| c.is_ascii_digit()));
            (is_version && whole && !name.is_empty()).then_some(RuntimeId { name, version: numbers, cuda })
        })
    }
}
