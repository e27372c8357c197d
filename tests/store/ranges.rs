//! GGUF files of a hub: ranges of their headers alone are read, from wherever the hub has the data, and kept.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use std::{iter, thread};

use mantile::store::fetch::{Fetch, ModelFiles};
use proptest::prelude::*;

use super::fetch::{Requested, client, named, serve_bytes};
use super::*;
use crate::gguf::{Writer, converted};

const FILE: &str = "/org/name/resolve/v1/m-Q4_K_M.gguf";
const NAME: &str = "hf:org/name@v1/m-Q4_K_M.gguf";
const CATALOGUED: &str = "Qwen/Qwen3-0.6B";
/// Length of the zeros after a header that the writer adds.
const PADDING: usize = 64;
/// Data after a header.
const DATA: u64 = 1 << 30;

type Sent = (u16, String, Vec<u8>);

/// A header in some format, with more keys than a real one has, for several ranges.
fn header(file_type: u64, keys: u64) -> Vec<u8> {
    let mut writer = converted("Qwen--Qwen3-0.6B", "qwen3", file_type);
    (0..keys).for_each(|key| writer.whole(&format!("filler.{key:08}"), key));
    without_data(&writer)
}

fn without_data(writer: &Writer) -> Vec<u8> {
    let mut bytes = writer.bytes();
    bytes.truncate(bytes.len() - PADDING);
    bytes
}

/// Three ranges of it: 1, 2 and part of 4 MiB.
fn long() -> Vec<u8> {
    header(15, 110_000)
}

fn absent() -> Sent {
    (404, String::new(), b"Entry not found".to_vec())
}

/// The range of a file of `header` and data that a server with ranges sends.
fn ranged(header: &[u8], requested: &Requested) -> Sent {
    let size = header.len() as u64 + DATA;
    let Some((first, last)) = requested.range else { panic!("{} without a range", requested.path) };
    let last = last.min(size - 1);
    let byte = |at: u64| header.get(at as usize).copied().unwrap_or(0xaa);
    (206, format!("content-range: bytes {first}-{last}/{size}\r\n"), (first..=last).map(byte).collect())
}

/// A hub with one GGUF file.
fn hub(header: Vec<u8>) -> (String, Receiver<Requested>) {
    serve_bytes(move |requested| match requested.path.as_str() {
        FILE => ranged(&header, requested),
        _ => absent(),
    })
}

fn parameters(files: &ModelFiles) -> u64 {
    let file: Value = serde_json::from_str(&files.config).unwrap();
    file["parameters"].as_u64().unwrap()
}

fn expected() -> u64 {
    Catalog::default().built(CATALOGUED).unwrap().1.parameters().unique
}

/// Where a file of `org/name@v1` is kept.
fn kept(fetch: &Fetch, file: &str) -> Option<PathBuf> {
    let cache = fetch.cache.as_ref().unwrap();
    let folder = fs::read_dir(cache).ok()?.next()?.unwrap().path().join("org/name@v1").join(file);
    folder.exists().then_some(folder)
}

#[test]
fn a_header_is_read_by_growing_ranges_and_kept() {
    let header = long();
    let (endpoint, requested) = hub(header.clone());
    let mut client = client(&endpoint);
    let files = named(&client.fetch, NAME).unwrap();
    assert_eq!(parameters(&files), expected());
    assert_eq!(
        (files.source.as_str(), files.gguf.as_deref()),
        (&*format!("{endpoint}{FILE}"), Some("m-Q4_K_M.gguf"))
    );
    let ranges: Vec<(u64, u64)> = requested.try_iter().map(|requested| requested.range.unwrap()).collect();
    let lengths: Vec<u64> = ranges.iter().map(|(first, last)| last + 1 - first).collect();
    assert_eq!(lengths, [1 << 20, 2 << 20, 4 << 20]);
    assert!(ranges.windows(2).all(|pair| pair[1].0 == pair[0].1 + 1) && ranges[0].0 == 0, "{ranges:?}");
    let sent: u64 = lengths.iter().sum();
    assert!(sent <= header.len() as u64 + lengths.last().unwrap(), "{sent} of {}", header.len());
    assert_eq!(fs::read(kept(&client.fetch, "m-Q4_K_M.gguf").unwrap()).unwrap(), header);
    let again = named(&client.fetch, NAME).unwrap();
    assert_eq!((again.config, again.source), (files.config, files.source));
    assert_eq!(requested.try_iter().count(), 0, "the second came from the cache");
    client.fetch.refresh = true;
    named(&client.fetch, NAME).unwrap();
    assert_eq!(requested.try_iter().count(), 3);
}

#[test]
fn a_short_file_ends_its_range() {
    let whole = header(15, 0);
    let (endpoint, requested) = serve_bytes(move |requested| {
        assert_eq!(requested.path, FILE);
        let size = whole.len();
        (206, format!("content-range: bytes 0-{}/{size}\r\n", size - 1), whole.clone())
    });
    assert_eq!(parameters(&named(&client(&endpoint).fetch, NAME).unwrap()), expected());
    assert_eq!(requested.try_iter().count(), 1);
}

#[test]
fn data_come_from_another_host_which_never_sees_the_token() {
    let header = long();
    let (data, elsewhere) = serve_bytes(move |requested| ranged(&header, requested));
    let signed = format!("{data}/blob?signature=s3cr3t");
    let (endpoint, home) = serve_bytes(move |requested| match requested.path.as_str() {
        FILE => (307, "location: /moved\r\n".into(), vec![]),
        "/moved" => (302, format!("location: {signed}\r\n"), vec![]),
        _ => absent(),
    });
    let mut client = client(&endpoint);
    client.fetch.token = Some("hf_secret".into());
    let files = named(&client.fetch, NAME).unwrap();
    assert_eq!(parameters(&files), expected());
    assert_eq!(files.source, format!("{endpoint}{FILE}"));
    let at_home: Vec<Requested> = home.try_iter().collect();
    assert_eq!(at_home.len(), 2, "redirects are followed once");
    assert!(at_home.iter().all(|requested| requested.authorization.as_deref() == Some("Bearer hf_secret")));
    let away: Vec<Requested> = elsewhere.try_iter().collect();
    assert_eq!(away.len(), 3);
    assert!(
        away.iter().all(|requested| requested.authorization.is_none() && requested.path.contains("s3cr3t"))
    );
}

#[test]
fn a_fault_of_another_host_shows_no_secret() {
    let (data, elsewhere) = serve_bytes(|_| (403, String::new(), b"hf_secret".to_vec()));
    let signed = format!("{data}/blob?signature=s3cr3t");
    let (endpoint, _home) = serve_bytes(move |_| (302, format!("location: {signed}\r\n"), vec![]));
    let mut client = client(&endpoint);
    client.fetch.token = Some("hf_secret".into());
    let fault = named(&client.fetch, NAME).unwrap_err();
    let shown = format!("{fault} {}{}{}{}", fault.file, fault.found, fault.expected, fault.fix);
    assert!(shown.contains("403") && fault.file == format!("{endpoint}{FILE}"), "{fault}");
    assert!(!shown.contains("s3cr3t") && !shown.contains("hf_secret"), "{shown}");
    assert!(elsewhere.try_iter().all(|requested| requested.authorization.is_none()));
}

/// A server that answers each request with `head` and then `body` piece by piece, until its client leaves; and the
/// bytes that it sent.
fn streaming(
    head: &'static str,
    body: impl Fn() -> Box<dyn Iterator<Item = Vec<u8>>> + Send + 'static,
) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicU64::new(0));
    let counted = sent.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            lines.take_while(|line| !line.is_empty()).for_each(drop);
            let _ = stream.write_all(head.as_bytes());
            for piece in body() {
                if stream.write_all(&piece).is_err() {
                    break;
                }
                counted.fetch_add(piece.len() as u64, Ordering::SeqCst);
            }
        }
    });
    (endpoint, sent)
}

#[test]
fn a_server_without_ranges_is_left_after_the_header() {
    const MOST_BUFFERED: u64 = 32 << 20;
    let header = long();
    let length = header.len() as u64;
    let (endpoint, sent) = streaming("HTTP/1.1 200 X\r\ncontent-length: 1099511627776\r\n\r\n", move || {
        let header = header.clone();
        Box::new(iter::once(header).chain(iter::repeat_with(|| vec![0xaa; 1 << 16])))
    });
    let client = client(&endpoint);
    assert_eq!(parameters(&named(&client.fetch, NAME).unwrap()), expected());
    assert_eq!(fs::read(kept(&client.fetch, "m-Q4_K_M.gguf").unwrap()).unwrap().len() as u64, length);
    // The sockets of both sides hold some.
    assert!(sent.load(Ordering::SeqCst) < length + MOST_BUFFERED);
}

/// Parts of a file of two, as the writer of llama.cpp splits it.
fn split() -> [Vec<u8>; 2] {
    let part = |first: bool| {
        let mut writer = converted("Qwen--Qwen3-0.6B", "qwen3", 7);
        let rest = writer.tensors.split_off(40);
        if !first {
            writer.tensors = rest;
        }
        writer.whole("split.count", 2);
        without_data(&writer)
    };
    [part(true), part(false)]
}

#[test]
fn a_file_in_parts_is_read_whole() {
    const NAME: &str = "hf:org/name@v1/Q8_0/m-Q8_0-00001-of-00002.gguf";
    let parts = split();
    let (endpoint, requested) = serve_bytes(move |requested| match requested.path.as_str() {
        "/org/name/resolve/v1/Q8_0/m-Q8_0-00001-of-00002.gguf" => ranged(&parts[0], requested),
        "/org/name/resolve/v1/Q8_0/m-Q8_0-00002-of-00002.gguf" => ranged(&parts[1], requested),
        _ => absent(),
    });
    let client_of_all = client(&endpoint);
    for count in [2, 0] {
        assert_eq!(parameters(&named(&client_of_all.fetch, NAME).unwrap()), expected());
        assert_eq!(requested.try_iter().count(), count);
    }
    let fault = named(&client_of_all.fetch, &NAME.replace("00001-of", "00002-of")).unwrap_err();
    assert_eq!(fault.key, "split.count");
    // The second part is not there.
    let [first, _] = split();
    let (endpoint, _requested) =
        serve_bytes(
            move |requested| {
                if requested.path.contains("00001-of") { ranged(&first, requested) } else { absent() }
            },
        );
    let fault = named(&client(&endpoint).fetch, NAME).unwrap_err();
    assert!(fault.file.ends_with("m-Q8_0-00002-of-00002.gguf") && fault.found.contains("404"), "{fault}");
}

const LISTING: &str = r#"{"id": "org/name", "siblings": [
    {"rfilename": ".gitattributes"}, {"rfilename": "README.md"}, {"rfilename": "m-F16.gguf"},
    {"rfilename": "m-Q4_K_M.gguf"}, {"rfilename": "m-Q8_0.gguf"}, {"rfilename": "mmproj-F16.gguf"}
]}"#;
const LIST: &str = "/api/models/org/name/revision/v1";

/// A hub of GGUF files without `config.json`, each in its own format.
fn quantized(requested: &Requested) -> Sent {
    let file = requested.path.strip_prefix("/org/name/resolve/v1/").unwrap_or_default();
    match file {
        "m-F16.gguf" => ranged(&header(1, 0), requested),
        "m-Q4_K_M.gguf" => ranged(&header(15, 0), requested),
        "m-Q8_0.gguf" => ranged(&header(7, 0), requested),
        _ if requested.path == LIST => (200, String::new(), LISTING.into()),
        _ => absent(),
    }
}

fn paths(requested: &Receiver<Requested>) -> Vec<String> {
    requested.try_iter().map(|requested| requested.path).collect()
}

#[test]
fn a_repository_without_a_configuration_is_the_file_that_llama_cpp_chooses() {
    let (endpoint, requested) = serve_bytes(quantized);
    let client = client(&endpoint);
    for once in [vec!["/org/name/resolve/v1/config.json", LIST, FILE], vec![]] {
        let files = named(&client.fetch, "hf:org/name@v1").unwrap();
        assert_eq!((files.gguf.as_deref(), parameters(&files)), (Some("m-Q4_K_M.gguf"), expected()));
        assert_eq!(paths(&requested), once);
    }
    for (name, file) in [("hf:org/name@v1:q8_0", "m-Q8_0.gguf"), ("hf:org/name@v1:F16", "m-F16.gguf")] {
        let files = named(&client.fetch, name).unwrap();
        assert_eq!(files.gguf.as_deref(), Some(file));
        // The list is known already.
        assert_eq!(paths(&requested), [format!("/org/name/resolve/v1/{file}")]);
    }
    let fault = named(&client.fetch, "hf:org/name@v1:Q2_K").unwrap_err();
    assert!(fault.found.contains("Q2_K") && fault.expected.contains("m-Q8_0.gguf"), "{fault}");
    assert!(!fault.expected.contains("mmproj") && fault.file == format!("{endpoint}{LIST}"), "{fault}");
}

/// The answer says which file it is of, and a bundle of it needs no hub.
#[test]
fn the_command_names_the_file_that_it_read() {
    let (endpoint, requested) = serve_bytes(quantized);
    let folder = tempfile::tempdir().unwrap();
    let run = |args: &[&str], endpoint: &str, cache: &Path| -> Output {
        let proxies = ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
        command.args(args).env("HF_ENDPOINT", endpoint).env("XDG_CACHE_HOME", cache).env("HF_HOME", cache);
        command.env_remove("HF_HUB_CACHE").env_remove("HF_TOKEN").envs(proxies.map(|name| (name, "")));
        command.env("MANTILE_HOME", env!("CARGO_TARGET_TMPDIR")).output().unwrap()
    };
    let text = |output: &Output| String::from_utf8_lossy(&output.stdout).into_owned();
    let bundle = folder.path().join("bundle.json");
    let flags = ["--hardware", "1xrtx-4090", "--runtime", "llama.cpp", "--format", "json"];
    let line = [&["estimate", "--model", "hf:org/name@v1"][..], &flags].concat();
    let bundled = [&line[..], &["--bundle", bundle.to_str().unwrap()]].concat();
    let first = run(&bundled, &endpoint, folder.path());
    let answer: Value = serde_json::from_str(&text(&first)).unwrap_or_else(|_| panic!("{first:?}"));
    assert_eq!(answer["question"]["model"], "org/name@v1");
    assert_eq!(answer["question"]["read_as"], "m-Q4_K_M.gguf in gguf-q4_k_m");
    assert_eq!(answer["weight_format"], "gguf-q4_k_m");
    assert_eq!(requested.try_iter().count(), 3);
    let closed = "http://127.0.0.1:1";
    let verified = run(&["verify", bundle.to_str().unwrap()], closed, &folder.path().join("none"));
    assert!(verified.status.success(), "{verified:?}");
    let inspected = run(&["inspect", "hf:org/name@v1/m-Q8_0.gguf"], &endpoint, folder.path());
    assert!(text(&inspected).contains("gguf-q8_0"), "{inspected:?}");
    let again = text(&run(&["inspect", "hf:org/name@v1/m-Q8_0.gguf"], &endpoint, folder.path()));
    assert_eq!((again, requested.try_iter().count()), (text(&inspected), 1));
}

#[test]
fn a_stated_quantization_passes_a_configuration_by() {
    let (endpoint, requested) = serve_bytes(|requested| match requested.path.as_str() {
        LIST => (200, String::new(), LISTING.replace("README.md", "config.json").into()),
        "/org/name/resolve/v1/config.json" => (200, String::new(), b"{\"model_type\": \"llama\"}".to_vec()),
        _ => quantized(requested),
    });
    let client = client(&endpoint);
    assert_eq!(named(&client.fetch, "hf:org/name@v1:Q4_K_M").unwrap().gguf.as_deref(), Some("m-Q4_K_M.gguf"));
    assert_eq!(paths(&requested), [LIST, FILE]);
    let whole = named(&client.fetch, "hf:org/name@v1").unwrap();
    assert_eq!((whole.gguf, whole.config.as_str()), (None, "{\"model_type\": \"llama\"}"));
}

#[test]
fn a_list_that_is_none_is_refused_with_a_way_on() {
    for (status, body) in [
        (200, "<html>Log in</html>"),
        (200, "[]"),
        (200, "{}"),
        (200, "{\"siblings\": [{\"name\": \"m.gguf\"}]}"),
        (200, "{\"siblings\": [{\"rfilename\": \"../../m-Q4_K_M.gguf\"}]}"),
        (200, "{\"siblings\": [{\"rfilename\": \"mmproj-F16.gguf\"}]}"),
        (404, ""),
        (403, ""),
        (500, ""),
    ] {
        let (endpoint, _requested) = serve_bytes(move |requested| match requested.path.as_str() {
            LIST => (status, String::new(), body.into()),
            _ => absent(),
        });
        for name in ["hf:org/name@v1", "hf:org/name@v1:Q4_K_M"] {
            let client = client(&endpoint);
            let fault = named(&client.fetch, name).unwrap_err();
            assert!(fault.file.starts_with(&endpoint) && !fault.fix.is_empty(), "{status} {body}: {fault}");
            assert_eq!(fault.to_string().lines().count(), 4, "{fault}");
            assert!(kept(&client.fetch, "m-Q4_K_M.gguf").is_none());
        }
    }
}

#[test]
fn the_hubs_own_cache_spares_the_network_for_files_too() {
    let client = client("http://127.0.0.1:1");
    let snapshot = client.fetch.hub.as_ref().unwrap().join("models--org--name/snapshots/v1");
    fs::create_dir_all(snapshot.join("Q8_0")).unwrap();
    fs::write(snapshot.join("m-Q4_K_M.gguf"), header(15, 0)).unwrap();
    for (part, bytes) in split().iter().enumerate() {
        fs::write(snapshot.join(format!("Q8_0/m-Q8_0-0000{}-of-00002.gguf", part + 1)), bytes).unwrap();
    }
    for (name, file) in [
        (NAME, "m-Q4_K_M.gguf"),
        ("hf:org/name@v1:q4_k_m", "m-Q4_K_M.gguf"),
        ("hf:org/name@v1:Q8_0", "Q8_0/m-Q8_0-00001-of-00002.gguf"),
    ] {
        let files = named(&client.fetch, name).unwrap();
        assert_eq!((files.gguf.as_deref(), parameters(&files)), (Some(file), expected()));
    }
    let fault = named(&client.fetch, "hf:org/name@v1:F16").unwrap_err();
    assert!(fault.found.contains("no response"), "{fault}");
}

#[test]
fn a_spoilt_header_in_the_cache_is_fetched_again() {
    let (endpoint, requested) = hub(header(15, 0));
    let client = client(&endpoint);
    named(&client.fetch, NAME).unwrap();
    let path = kept(&client.fetch, "m-Q4_K_M.gguf").unwrap();
    let whole = fs::read(&path).unwrap();
    for spoilt in [&whole[..whole.len() / 2], b"<html>", b""] {
        fs::write(&path, spoilt).unwrap();
        assert_eq!(parameters(&named(&client.fetch, NAME).unwrap()), expected());
        assert_eq!(fs::read(&path).unwrap(), whole);
    }
    assert_eq!(requested.try_iter().count(), 4);
}

/// A server's answer to a range, and a part of the fault.
type HostileAnswer = (fn(&Requested) -> Sent, &'static str);

fn claimed(range: &str, bytes: usize) -> Sent {
    let mut body = header(15, 0);
    body.resize(bytes, 0xaa);
    (206, format!("content-range: {range}\r\n"), body)
}

#[test]
fn hostile_servers_end_in_a_fault_and_nothing_is_kept() {
    const MIB: usize = 1 << 20;
    let answers: [HostileAnswer; 15] = [
        (|_| (200, String::new(), b"<html>Log in</html>".to_vec()), "another file"),
        (
            |_| (206, "content-range: bytes 0-18/19\r\n".into(), b"<html>Log in</html>".to_vec()),
            "another file",
        ),
        (|_| (200, String::new(), vec![]), "cut off"),
        (|_| (200, String::new(), header(15, 0)[..900].to_vec()), "cut off"),
        (|_| (416, String::new(), vec![]), "416"),
        (|_| (206, String::new(), vec![0; MIB]), "range ``"),
        (|_| claimed("bytes 1-1048576/9999999", MIB), "range `bytes 1-1048576/9999999`"),
        (|_| claimed("bytes 0-2097151/9999999", 2 * MIB), "in place of bytes 0 to 1048575"),
        (|_| claimed("bytes 0-99/9999999", 100), "in place of"),
        (|_| claimed("bytes 0-1048575/7", MIB), "in place of"),
        (|_| claimed("bytes 0-18446744073709551615/*", MIB), "in place of"),
        (|_| claimed("bytes 0-1048575/9999999", 700), "before its range"),
        (|_| (302, format!("location: {FILE}\r\n"), vec![]), "redirect"),
        (|_| (302, "location: ftp://127.0.0.1/x\r\n".into(), vec![]), "redirect"),
        (|_| (503, String::new(), vec![]), "503"),
    ];
    for (at, (answer, part)) in answers.into_iter().enumerate() {
        let (endpoint, requested) = serve_bytes(answer);
        let client = client(&endpoint);
        let fault = named(&client.fetch, NAME).unwrap_err();
        assert!(fault.found.contains(part), "{at}: {fault}");
        assert_eq!(fault.file, format!("{endpoint}{FILE}"), "{at}");
        assert!(fault.fix.contains("by hand") || fault.fix.contains("HF_ENDPOINT"), "{at}: {fault}");
        assert_eq!(fault.to_string().lines().count(), 4, "{fault}");
        assert!(requested.try_iter().count() <= 6 && !client.fetch.cache.as_ref().unwrap().exists(), "{at}");
    }
}

#[test]
fn later_ranges_are_those_of_the_same_file() {
    type Later = fn(&[u8], &Requested) -> Sent;
    let answers: [Later; 4] = [
        |header, _| (200, String::new(), header.to_vec()),
        |_, _| (416, String::new(), vec![]),
        |header, requested| {
            let (status, range, body) = ranged(header, requested);
            (status, range.replace(&(header.len() as u64 + DATA).to_string(), "99999999"), body)
        },
        |header, requested| {
            ranged(
                header,
                &Requested { range: Some((0, 1 << 20)), path: requested.path.clone(), authorization: None },
            )
        },
    ];
    for (at, answer) in answers.into_iter().enumerate() {
        let header = long();
        let (endpoint, _requested) = serve_bytes(move |requested| match requested.range {
            Some((0, _)) => ranged(&header, requested),
            _ => answer(&header, requested),
        });
        let client = client(&endpoint);
        let fault = named(&client.fetch, NAME).unwrap_err();
        assert!(fault.file == format!("{endpoint}{FILE}"), "{at}: {fault}");
        assert!(!client.fetch.cache.as_ref().unwrap().exists(), "{at}");
    }
}

#[test]
fn an_endless_header_and_an_endless_wait_end() {
    let piece = vec![b'x'; 1 << 20];
    let text = move || [&(piece.len() as u64).to_le_bytes()[..], &piece].concat();
    let mut start = b"GGUF".to_vec();
    start.extend(3u32.to_le_bytes());
    start.extend(1u64.to_le_bytes());
    start.extend(1u64.to_le_bytes());
    // A list of texts that has no end.
    start.extend(1u64.to_le_bytes());
    start.extend(b"a");
    start.extend([9u32.to_le_bytes(), 8u32.to_le_bytes()].concat());
    start.extend(u64::MAX.to_le_bytes());
    let slow = start.clone();
    let (endpoint, sent) = streaming("HTTP/1.1 200 X\r\n\r\n", move || {
        let text = text.clone();
        Box::new(iter::once(start.clone()).chain(iter::repeat_with(text)))
    });
    let fault = named(&client(&endpoint).fetch, NAME).unwrap_err();
    assert!(fault.found.contains("too long"), "{fault}");
    assert!(sent.load(Ordering::SeqCst) < 300 << 20);
    let (endpoint, _sent) = streaming("HTTP/1.1 200 X\r\n\r\n", move || {
        let wait = || {
            thread::sleep(Duration::from_millis(20));
            vec![0]
        };
        Box::new(iter::once(slow.clone()).chain(iter::repeat_with(wait)))
    });
    let mut client = client(&endpoint);
    client.fetch.patience = Duration::from_millis(700);
    let begun = Instant::now();
    let fault = named(&client.fetch, NAME).unwrap_err();
    assert!(fault.found.contains("response"), "{fault}");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a server sends in place of a range, the model is the one of the file, or there is a fault.
    #[test]
    fn spoilt_answers_never_become_another_model(
        status in prop_oneof![Just(200u16), Just(206), Just(302), Just(404)],
        range in "(bytes )?[0-9]{1,7}-[0-9]{1,7}/([0-9]{1,7}|\\*)",
        cut in any::<prop::sample::Index>(),
        spoilt in prop::option::of((0..24usize, any::<u8>())),
    ) {
        let mut body = header(15, 0);
        body.truncate(cut.index(body.len() + 1));
        if let Some((at, byte)) = spoilt && at < body.len() {
            body[at] = byte;
        }
        let head = format!("content-range: {range}\r\nlocation: /x\r\n");
        let (endpoint, _requested) = serve_bytes(move |_| (status, head.clone(), body.clone()));
        let client = client(&endpoint);
        match named(&client.fetch, NAME) {
            Ok(files) => prop_assert_eq!(parameters(&files), expected()),
            Err(fault) => prop_assert!(fault.file.starts_with(&endpoint), "{}", fault),
        }
    }
}
