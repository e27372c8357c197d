//! Permalinks: what goes in comes out, what was altered is refused.

use std::process::Command;

use mantile::request::permalink::{LinkedQuestion, MOST_BYTES, decode, encode};
use mantile::spec::deployment::Deployment;
use mantile::spec::scenario::Scenario;
use proptest::prelude::*;

fn questions() -> impl Strategy<Value = LinkedQuestion> {
    let text = || prop::option::of("[ -~]{0,40}|[äöü漢字€🦀]{0,8}");
    let number = || prop::option::of(any::<u32>().prop_map(u64::from));
    let request = prop::sample::select(vec!["optimize", "estimate", "explain", "static"]);
    let set = prop::option::of(prop::collection::vec("[a-z.]{1,30}=[ -~]{0,20}", 0..6));
    ((text(), text(), text(), text()), (number(), number(), number()), set, text(), request).prop_map(
        |((model, hardware, ttft, runtime), (isl, osl, concurrency), set, plan, request)| LinkedQuestion {
            request: request.to_owned(),
            scenario: Scenario {
                model,
                hardware,
                ttft,
                runtime,
                isl,
                osl,
                concurrency,
                set,
                deployment: plan.map(|plan| Deployment { plan: Some(plan), ..Deployment::default() }),
                ..Scenario::default()
            },
        },
    )
}

proptest! {
    #[test]
    fn a_link_holds_its_question(question in questions()) {
        let link = encode(&question).unwrap();
        prop_assert!(link.len() <= MOST_BYTES);
        prop_assert!(link.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)), "{}", link);
        prop_assert_eq!(&decode(&link).unwrap(), &question);
        prop_assert_eq!(&decode(&format!("https://example.org/?a=b#{link}")).unwrap(), &question);
    }

    #[test]
    fn an_altered_link_is_refused(question in questions(), at in any::<prop::sample::Index>(), cut in any::<bool>()) {
        let link = encode(&question).unwrap();
        let at = 3 + at.index(link.len() - 3);
        let altered = match cut {
            true => link[..at].to_owned(),
            false => {
                let other = if link.as_bytes()[at] == b'A' { "B" } else { "A" };
                format!("{}{other}{}", &link[..at], &link[at + 1..])
            }
        };
        // Bits of the last character beyond the last byte mean nothing.
        if let Ok(read) = decode(&altered) {
            prop_assert_eq!(read, question);
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in ".{0,80}") {
        let _ = decode(&text);
        let _ = decode(&format!("m1.{text}"));
    }
}

#[test]
fn a_question_beyond_the_limit_is_refused_and_so_is_another_version() {
    // Random words compress little.
    let mut seed = 7u64;
    let words = (0..600).map(|_| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        format!("{:x}", seed >> 20)
    });
    let scenario = Scenario { set: Some(words.collect()), ..Scenario::default() };
    let fault = encode(&LinkedQuestion { request: "optimize".into(), scenario }).unwrap_err();
    assert_eq!(fault.expected, "at most 2048 bytes");
    assert!(decode("m2.AAAA").unwrap_err().found.contains("version m2"));
    let scenario = Scenario::default();
    assert!(encode(&LinkedQuestion { request: "none".into(), scenario }).is_err());
}

/// The link of a command line answers as the command line does.
#[test]
fn a_link_answers_as_its_command() {
    let run = |args: &[&str]| {
        let found = Command::new(env!("CARGO_BIN_EXE_mantile-opt")).args(args).output().unwrap();
        assert!(found.status.success(), "{args:?}: {}", String::from_utf8_lossy(&found.stderr));
        String::from_utf8(found.stdout).unwrap()
    };
    let flags = [
        "estimate",
        "--model",
        "Qwen3-0.6B",
        "--hardware",
        "1xh100",
        "--set",
        "device.memory.bandwidth=3 TB/s",
    ];
    let link = run(&[&flags[..], &["--permalink"]].concat());
    let json = ["--format", "json", "--no-config"];
    let plain = run(&[&flags[..], &json[..]].concat());
    assert_eq!(run(&[&["estimate", "--scenario", link.trim()], &json[..]].concat()), plain);
}

/// A file is read, even where its name looks like a link.
#[test]
fn a_file_is_no_link() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m1.json");
    std::fs::write(&path, "{\"model\": \"Qwen3-0.6B\", \"hardware\": \"1xh100\"}").unwrap();
    let found = Command::new(env!("CARGO_BIN_EXE_mantile-opt"))
        .args(["estimate", "--scenario", "m1.json", "--no-config", "--format", "json"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
}
