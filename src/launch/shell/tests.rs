//! Laws of scripts.

#[cfg(test)]
use std::process::Command;

use proptest::prelude::*;

use super::*;

fn read(text: &str) -> Vec<Process> {
    commands(text, &NamedFiles::new(), &BTreeMap::new()).0
}

fn words(text: &str) -> Vec<Vec<String>> {
    read(text).into_iter().map(|one| one.words).collect()
}

/// The only server that a text starts, as a line.
fn server(text: &str) -> String {
    let found = read(text).into_iter().filter(|one| starts_server(&one.words)).collect::<Vec<_>>();
    assert_eq!(found.len(), 1, "{text}\n{found:#?}");
    found[0].words.join(" ")
}

fn notes(text: &str) -> Vec<String> {
    read(text).into_iter().flat_map(|one| one.notes).collect()
}

#[test]
fn a_script_reads_as_a_shell_would_run_it() {
    let script = "#!/bin/bash\nset -e\nexport A=\"1\"\nPORT=\"${PORT:-8000}\"\nargs=(\n  a/b  # the model\n  \
                  --x '{\"k\": 1}'\n)\nif ((R > 0)); then\n  args=(\n  c\n  )\nfi\nexec vllm serve \"${args[@]}\" \\\n --port \"$PORT\"\n";
    let found = read(script);
    let last = found.last().unwrap();
    assert_eq!(last.words, ["vllm", "serve", "a/b", "--x", "{\"k\": 1}", "--port", "8000"]);
    assert_eq!(last.environment, [("A".to_owned(), "1".to_owned())]);
    assert_eq!(words("B=2 nohup llama-server -m x & "), [["llama-server", "-m", "x"]]);
    assert_eq!(words("# old: \\\nvllm serve \\\r\n  a \\"), [["vllm", "serve", "a"]]);
    assert_eq!(
        words("R=1\nif ((R > 0)); then\nx a\nelse\nx b\nfi\nif ((Q > 0)); then\nx c\nfi"),
        [["x", "a"]]
    );
}

#[test]
fn every_command_of_a_list_is_read() {
    for text in [
        "pip install x && vllm serve a/b",
        "source venv/bin/activate; vllm serve a/b",
        "cd /x || exit 1; vllm serve a/b > log 2>&1 &",
        "{ vllm serve a/b; }",
        "( cd x; vllm serve a/b ) | tee log",
        "start() { vllm serve a/b; }\nstart",
        "function start { vllm serve \"$1\"; }\nstart a/b",
        "start() { vllm serve a/b; }",
        "true | vllm serve a/b",
        "eval 'vllm serve a/b'",
        "CMD=\"vllm serve a/b\"; $CMD",
        "CMD=(vllm serve); CMD+=(a/b); \"${CMD[@]}\"",
        "bash -lc 'vllm serve a/b'",
        "sh -c 'exec vllm \"$@\"' name serve a/b",
        "sh <<EOF\nvllm serve a/b\nEOF",
        "cat > run.sh <<'EOF'\n#!/bin/bash\nvllm serve ${M:-a/b}\nEOF\nchmod +x run.sh\n./run.sh",
        "M=a/b\ncat <<EOF > run.sh\nvllm serve $M\nEOF\nbash run.sh",
        "for m in a/b; do vllm serve $m; done",
        "while true; do vllm serve a/b; sleep 1; done",
        "case x in y) vllm serve c/d ;; x|z) vllm serve a/b ;; esac",
        "set -- a/b; vllm serve \"$@\"",
        "[ -n \"$MISSING\" ] && exit 1\nvllm serve a/b",
        "if [ -z \"$MISSING\" ]; then echo no; exit 1; fi\nvllm serve a/b",
        "$ vllm serve a/b",
        "export X=c/d; env -u X bash -c 'vllm serve ${X:-a/b}'",
    ] {
        assert_eq!(server(text), "vllm serve a/b", "{text}");
    }
}

#[test]
fn what_starts_a_command_is_no_part_of_it() {
    for before in [
        "exec",
        "nohup",
        "sudo -u me",
        "time",
        "env -u B A=1",
        "command",
        "nice -n 5",
        "ionice -c 2 -n 0",
        "numactl --cpunodebind=0 --membind 0",
        "taskset -c 0-7",
        "timeout -k 5 1h",
        "stdbuf -oL",
        "setsid",
        "uv run --python 3.12 --with x",
        "poetry run",
        "conda run -n env --no-capture-output",
        "pipenv run",
        "mpirun -n 1 --oversubscribe --allow-run-as-root -x A",
        "srun -N 2 --mpi=pmix --ntasks-per-node 8",
        "trtllm-llmapi-launch",
        "A=1 nohup env B=2 nice",
        "docker exec -it name",
        "docker compose run --rm service",
        "kubectl run x --image=i --",
        "mpirun --mca a b -np 2",
        "uvx",
    ] {
        let text = format!("{before} trtllm-serve a/b --tp_size=8");
        assert_eq!(server(&text), "trtllm-serve a/b --tp_size=8", "{text}");
    }
    assert_eq!(
        server("/opt/venv/bin/python3 -u -X dev -m sglang.launch_server --tp 2"),
        "/opt/venv/bin/python3 -m sglang.launch_server --tp 2"
    );
    assert!(read("command -v vllm").iter().all(|one| one.words.is_empty()));
}

#[test]
fn a_container_has_an_image_variables_and_devices() {
    let found = read(
        "docker run --rm --gpus '\"device=0,1\"' -e A=1 --env B=2 -p 80:80 --ipc=host vllm/vllm-openai:v1 --model a/b",
    );
    assert_eq!(found[0].words.join(" "), "vllm serve --model a/b");
    assert_eq!((found[0].image.as_deref(), found[0].devices), (Some("vllm/vllm-openai:v1"), Some(2)));
    assert_eq!(found[0].environment, [("A".to_owned(), "1".to_owned()), ("B".to_owned(), "2".to_owned())]);
    let text = "docker run --gpus all x/sglang bash -c 'python3 -m sglang.launch_server --tp 2'";
    assert_eq!(server(text), "python3 -m sglang.launch_server --tp 2");
    assert_eq!(read(text)[0].image.as_deref(), Some("x/sglang"));
    assert_eq!(server("docker run --entrypoint vllm i serve a/b"), "vllm serve a/b");
}

#[test]
fn variables_expand_as_in_a_shell() {
    for (text, args) in [
        ("A='--tp 4 --ep 2'; vllm serve $A", "--tp 4 --ep 2"),
        ("A='--tp 4'; vllm serve \"$A\"", "--tp 4"),
        ("vllm serve ${A:-x} ${B-y} ${C:=z} $C", "x y z z"),
        ("A=1; vllm serve ${A:+set} ${B:+set}", "set"),
        ("A=a/b.sh; vllm serve ${A%.sh} ${A##*/} ${#A} ${A/b/c} ${A^^}", "a/b b.sh 6 a/c.sh A/B.SH"),
        ("A=3; vllm serve $((A * 2 + 1)) $(( (A+64+63)/64*64 ))", "7 128"),
        ("vllm serve $(nproc) \"$M/x\"", "$(nproc) $M/x"),
        ("A=(1 '2 3'); vllm serve ${#A[@]} ${A[1]} \"${A[@]}\" ${NONE[@]}", "2 2 3 1 2 3"),
        ("EMPTY=; vllm serve $EMPTY a", "a"),
        ("X=${X:-d}; vllm serve $X $Y '$Z' \\$Z", "d $Y $Z $Z"),
        ("vllm serve $(seq -s, 0 3) {1..3}", "0,1,2,3 1 2 3"),
        ("i=0; while [ $i -lt 3 ]; do A+=\" $i\"; ((i++)); done; vllm serve $A", "0 1 2"),
        ("f() { local A=in; }; A=out; f; vllm serve $A", "out"),
        ("declare -a A=(x y); vllm serve \"${A[*]}\"", "x y"),
        ("unset A; export A=b; vllm serve ${!N} $A", "${!N} b"),
        ("M='a b'; vllm serve --x=\"$M\" $'c\\'d'", "--x=a b c'd"),
    ] {
        assert_eq!(server(text), format!("vllm serve {args}"), "{text}");
    }
}

#[test]
fn given_variables_beat_defaults_and_not_assignments() {
    let given = BTreeMap::from([("A".to_owned(), "given".to_owned())]);
    let found = commands(
        "A=${A:-d}; B=x; vllm serve m $A ${A:-e} $B; A=own; vllm serve m $A",
        &NamedFiles::new(),
        &given,
    )
    .0;
    assert_eq!(found[0].words.join(" "), "vllm serve m given given x");
    assert_eq!(found[1].words.join(" "), "vllm serve m own");
    let given = BTreeMap::from([("ISL".to_owned(), "8192".to_owned())]);
    let script = "if [ $ISL = 1024 ]; then vllm serve a; else vllm serve b; fi";
    let found = commands(script, &NamedFiles::new(), &given).0;
    assert_eq!((found[0].words.join(" ").as_str(), found[0].notes.len()), ("vllm serve b", 0));
}

#[test]
fn a_known_condition_chooses_and_one_that_is_not_known_is_stated() {
    for condition in [
        "[ $A = x ]",
        "[[ $A == x* ]]",
        "[ -n \"$A\" ]",
        "! [ -z \"$A\" ]",
        "((B > 2))",
        "[[ $B -ge 3 && $A != y ]]",
        "[ $B -eq 3 -a 1 = 1 ]",
        "[[ ( -z $A || $B -lt 4 ) ]]",
        "true",
        "[ $A = x ] && [ $B = 3 ]",
    ] {
        let text = format!("A=x B=3\nif {condition}; then vllm serve yes; else vllm serve no; fi");
        assert_eq!(server(&text), "vllm serve yes", "{text}");
        assert_eq!(notes(&text), Vec::<String>::new(), "{text}");
        let text = format!("A=x; B=3\nif ! {{ {condition}; }}; then vllm serve no; else vllm serve yes; fi");
        assert_eq!(server(&text), "vllm serve yes", "{text}");
    }
    let text = "x\nif [ \"$ISL\" = 1024 ]; then\nvllm serve a\nelse\nvllm serve b\nfi";
    assert_eq!(server(text), "vllm serve a");
    assert_eq!(notes(text), ["line 2: the condition `[ \"$ISL\" = 1024 ]` is not known: its branch is read"]);
    // Branches that start the same need no remark.
    assert!(notes("if [ $X = 1 ]; then vllm serve a; else vllm serve a; fi").is_empty());
    let text = "if [ \"$E\" = 1 ]; then A=--eager; fi\nvllm serve a $A";
    assert_eq!(server(text), "vllm serve a $A");
    assert_eq!(
        notes(text),
        ["line 1: the condition `[ \"$E\" = 1 ]` is not known: nothing that depends on it is read"]
    );
    let text = "A=8\nif [ \"$E\" = 1 ]; then A=4; fi\nB=$A\nvllm serve a $B";
    assert_eq!((server(text).as_str(), notes(text).len()), ("vllm serve a 8", 1));
    // A remark belongs to commands that rest on the condition, and to no other.
    assert!(notes("if [ \"$E\" = 1 ]; then A=4; fi\nvllm serve a").is_empty());
    let text = "for t in 1 2 4; do vllm serve a -tp $t; done";
    assert_eq!((server(text).as_str(), notes(text).len()), ("vllm serve a -tp 1", 1));
    let text = "for i in 0 1; do CUDA_VISIBLE_DEVICES=$i vllm serve a --port 800$i & done; wait";
    assert_eq!(words(text).len(), 2);
}

#[test]
fn of_several_models_the_first_is_read() {
    let text =
        "vllm serve a/b --port 1 &\nvllm serve c/d --port 2 &\nvllm serve --port 3 --model=a/b &\nwait";
    let found = read(text);
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(|one| one.notes == ["of 2 models a/b is read, and not c/d"]), "{found:?}");
    assert!(notes("llama-server -m a.gguf -c 1 & python3 -m vllm.entrypoints.openai.api_server").is_empty());
}

/// Scripts that grow or go on without an end are read in a moment.
#[test]
fn no_script_runs_away() {
    let long = format!("X={}\n{}", "x".repeat(60_000), "Y=\"$X$X\" | a | b\n".repeat(4_000));
    let nested = "if x; then A=1; ".repeat(30) + &"fi; ".repeat(30);
    let deep = "for a in {1..256}; do ".repeat(8) + "X=$X$a; if x; then Y=$X; fi; " + &"done; ".repeat(8);
    for text in [
        "X=xx; while true; do X=$X$X; done",
        "A=(a b); for i in {1..200}; do A+=(\"${A[@]}\"); done; vllm serve ${A[@]}",
        "f() { f; f; }; f",
        "while true; do echo x >> f; done",
        "eval 'eval \"$0\"'; X='eval \"$X\"'; eval \"$X\"",
        "while [ \"$Q\" ]; do a | b | c; done",
        "cat > a.sh <<E\n./a.sh; ./a.sh\nE\n./a.sh",
        &long,
        &nested,
        &deep,
        &"$(".repeat(5_000),
        &"\"${a:-".repeat(5_000),
        &"((".repeat(5_000),
        &"( ".repeat(5_000),
    ] {
        let begin = std::time::Instant::now();
        read(text);
        assert!(begin.elapsed().as_secs() < 20, "{}", &text[..60.min(text.len())]);
    }
}

#[test]
fn a_file_that_a_script_writes_is_there() {
    let text = "F=extra.yml\nD=true\ncat > $F << EOF\na: $D\nEOF\ncat << EOF >> $F\nb: 1\nEOF\ntrtllm-serve m --config $F";
    let (found, written) = commands(text, &NamedFiles::new(), &BTreeMap::new());
    assert_eq!(found[0].words.join(" "), "trtllm-serve m --config extra.yml");
    assert_eq!(written["extra.yml"], "a: true\nb: 1\n");
}

/// Parts of scripts that both this reader and a shell run.
fn statement() -> impl Strategy<Value = String> {
    let plain = prop::sample::select(vec![
        "a",
        "b c",
        "-x",
        "",
        "'q r'",
        "\"$A\"",
        "$A",
        "${B:-d}",
        "\"${L[@]}\"",
        "${L[*]}",
        "$((N + 1))",
        "${A%c}",
        "${#A}",
        "\"x$A y\"",
        "${C:+s}",
        "a\\ b",
        "${L[0]}",
        "$N",
        "{1..3}",
        "$(seq 2)",
        "${A/b/z}",
        "'a'\"b\"",
        "\"$*\"",
        "\"$@\"",
        "$#",
        "${N:-0}",
    ]);
    let words = prop::collection::vec(plain, 0..4).prop_map(|words| words.join(" "));
    let name = prop::sample::select(vec!["A", "B", "C"]);
    let condition = prop::sample::select(vec![
        "[ \"$A\" = 'b c' ]",
        "[[ $N -gt 1 ]]",
        "[ -z \"$B\" ]",
        "((N < 3))",
        "true",
        "false",
        "[[ $A == b* && -n $C ]]",
        "! [ \"$N\" -eq 2 ]",
        "[[ -z $A || $N -le 2 ]]",
    ]);
    let leaf = prop_oneof![
        words.clone().prop_map(|words| format!("rec {words}")),
        (name.clone(), prop::sample::select(vec!["'b c'", "\"$B\"", "", "${A}x", "$N", "bc"]))
            .prop_map(|(name, value)| format!("{name}={value}")),
        words.clone().prop_map(|words| format!("L=({words})")),
        words.clone().prop_map(|words| format!("L+=({words})")),
        Just("N=$((N + 1))".to_owned()),
        Just("((N += 2))".to_owned()),
        words.prop_map(|words| format!("set -- {words}")),
    ];
    leaf.prop_recursive(3, 24, 3, move |inner| {
        let body = prop::collection::vec(inner, 1..3).prop_map(|body| body.join("\n"));
        prop_oneof![
            (condition.clone(), body.clone(), body.clone())
                .prop_map(|(condition, yes, no)| format!("if {condition}; then\n{yes}\nelse\n{no}\nfi")),
            (condition.clone(), body.clone())
                .prop_map(|(condition, body)| format!("{condition} && {{ {body}\n}}")),
            (condition.clone(), body.clone())
                .prop_map(|(condition, body)| format!("{condition} || {{ {body}\n}}")),
            body.clone().prop_map(|body| format!("for x in 1 \"$A\" c; do\nrec $x\n{body}\ndone")),
            body.clone().prop_map(|body| format!("f() {{\nlocal A=in\n{body}\n}}\nf 'p q' r")),
            body.clone().prop_map(|body| format!("(\n{body}\n)")),
            body.prop_map(|body| format!("case $A in b*) {body} ;; *) rec other ;; esac")),
        ]
    })
}

/// The words that bash gives a recorder.
fn by_bash(script: &str) -> Option<Vec<Vec<String>>> {
    let recorder = "rec() { printf '%s\\0' \"$#\" \"$@\"; }\n";
    let out = Command::new("bash").args(["-c", &format!("{recorder}{script}")]).env_clear().output().ok()?;
    let text = String::from_utf8(out.stdout).ok()?;
    let mut parts = text.split('\0');
    let mut all = Vec::new();
    while let Some(count) = parts.next().and_then(|count| count.parse().ok()) {
        all.push(parts.by_ref().take(count).map(str::to_owned).collect());
    }
    Some(all)
}

proptest! {

    #[test]
    fn bash_gives_the_same_words(statements in prop::collection::vec(statement(), 1..6)) {
        let script = format!("A='b c'; B=; C=y; N=1; L=(one 'two three'); set --\n{}", statements.join("\n"));
        let Some(expected) = by_bash(&script) else {
            assert!(std::env::var_os("CI").is_none(), "bash is missing");
            eprintln!("SKIPPED: bash is missing");
            return Ok(());
        };
        let found: Vec<Vec<String>> = words(&script)
            .into_iter()
            .filter(|words| words.first().is_some_and(|word| word == "rec"))
            .map(|words| words[1..].to_vec())
            .collect();
        prop_assert_eq!(found, expected, "{}", script);
    }

    #[test]
    fn no_text_is_a_panic(
        text in "\\PC{0,80}",
        lines in prop::collection::vec("[a-z =(){}$\"'\\\\\\[\\]@:;&|<>#!`*%/+-]{0,30}", 0..8),
        pieces in prop::collection::vec(
            prop::sample::select(vec!["if ", "then ", "fi\n", "for x in ", "do ", "done;", "case a in ", "esac ", "((",
                "))", "[[ ", " ]]", "$(", ")", "${", "}", "\"", "'", "<<E\n", "E\n", "f() {", "a=(", "\\", "`", "&& ",
                "|| ", "while true;", "$((", "{ ", "#!x\n", "x ", "${a[", "${#", "set -- ", "shift ", "eval "]),
            0..24,
        ),
    ) {
        for text in [text, lines.join("\n"), pieces.concat()] {
            read(&text);
        }
    }

    #[test]
    fn quoted_words_come_back(parts in prop::collection::vec("[ -~]{0,12}", 1..6)) {
        let quoted: Vec<String> = parts.iter().map(|part| crate::spec::writer::shell_word(part)).collect();
        let found = words(&format!("program {}", quoted.join(" ")));
        prop_assert_eq!(&found[0][1..], &parts[..]);
    }
}
