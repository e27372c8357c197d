//! Fetching a configuration, against a server of our own: what arrives, what is kept, what each fault says.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use mantile::store::fetch::{Fetch, ModelFiles};
use mantile::store::hub::HubName;

use super::*;

/// What a request looked like.
#[derive(Debug, PartialEq)]
pub struct Requested {
    /// After the host.
    pub path: String,
    /// The header, where it came.
    pub authorization: Option<String>,
    /// The first and last byte, where a range was requested.
    pub range: Option<(u64, u64)>,
}

type Answer = fn(&Requested) -> (u16, &'static str, String);

/// Answers every request as `answer` says until the test ends; hands back its address and what was asked.
fn serve(answer: Answer) -> (String, Receiver<Requested>) {
    serve_bytes(move |requested| {
        let (status, header, body) = answer(requested);
        (status, header.to_owned(), body.into_bytes())
    })
}

/// The same with any bytes in the body.
pub fn serve_bytes(
    answer: impl Fn(&Requested) -> (u16, String, Vec<u8>) + Send + 'static,
) -> (String, Receiver<Requested>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let (tell, requested) = channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let Some(first) = lines.next() else { continue };
            let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
            let mut request = Requested { path, authorization: None, range: None };
            for line in lines.take_while(|line| !line.is_empty()) {
                let (name, value) = line.split_once(": ").unwrap_or((&line, ""));
                match name.to_lowercase().as_str() {
                    "authorization" => request.authorization = Some(value.to_owned()),
                    "range" => request.range = ranged(value),
                    _ => {}
                }
            }
            let (status, header, body) = answer(&request);
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} X\r\n{header}content-length: {length}\r\nconnection: close\r\n\r\n"
            );
            let _ = tell.send(request);
            // A client may have hung up already; the test sees that on its side.
            let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    (endpoint, requested)
}

/// `bytes=0-99`, in numbers.
fn ranged(value: &str) -> Option<(u64, u64)> {
    let (first, last) = value.strip_prefix("bytes=")?.split_once('-')?;
    Some((first.parse().ok()?, last.parse().ok()?))
}

pub const CONFIG: &str = r#"{"model_type": "llama"}"#;

pub struct Client {
    pub fetch: Fetch,
    _folder: tempfile::TempDir,
}

pub fn client(endpoint: &str) -> Client {
    let folder = tempfile::tempdir().unwrap();
    let fetch = Fetch {
        endpoint: endpoint.to_owned(),
        token: None,
        hub: Some(folder.path().join("hub")),
        cache: Some(folder.path().join("cache")),
        refresh: false,
        patience: Duration::from_secs(60),
    };
    Client { fetch, _folder: folder }
}

pub fn get(fetch: &Fetch) -> Result<ModelFiles, Error> {
    named(fetch, "hf:org/name@v1")
}

/// The files of a name.
pub fn named(fetch: &Fetch, name: &str) -> Result<ModelFiles, Error> {
    fetch.model(&HubName::parse(name, &fetch.endpoint).unwrap().unwrap())
}

fn files(requested: &Requested) -> (u16, &'static str, String) {
    match requested.path.as_str() {
        "/org/name/resolve/v1/config.json" => (200, "", CONFIG.into()),
        "/org/name/resolve/v1/hf_quant_config.json" => {
            (200, "", r#"{"quantization": {"quant_algo": "FP8"}}"#.into())
        }
        _ => (404, "", "Entry not found".into()),
    }
}

#[test]
fn a_configuration_is_fetched_once_and_kept() {
    let (endpoint, requested) = serve(files);
    let client = client(&endpoint);
    let first = get(&client.fetch).unwrap();
    assert_eq!(first.config, CONFIG);
    assert!(first.hf_quant_config.as_deref().unwrap().contains("FP8"));
    let paths: Vec<String> = requested.iter().take(2).map(|requested| requested.path).collect();
    assert_eq!(paths, ["/org/name/resolve/v1/config.json", "/org/name/resolve/v1/hf_quant_config.json"]);
    let second = get(&client.fetch).unwrap();
    assert_eq!((second.config, second.hf_quant_config), (first.config, first.hf_quant_config));
    assert!(second.source.ends_with("org/name@v1/config.json"), "{}", second.source);
    assert!(requested.try_recv().is_err(), "the second came from the cache");
}

#[test]
fn the_hubs_own_cache_spares_the_network() {
    let client = client("http://127.0.0.1:1");
    let snapshot = client.fetch.hub.as_ref().unwrap().join("models--org--name/snapshots/v1");
    fs::create_dir_all(&snapshot).unwrap();
    fs::write(snapshot.join("config.json"), CONFIG).unwrap();
    let files = get(&client.fetch).unwrap();
    assert_eq!((files.config.as_str(), files.hf_quant_config), (CONFIG, None));
}

#[test]
fn a_gated_repository_opens_with_the_token_and_says_so_without() {
    let (endpoint, requested) = serve(|requested| match requested.authorization.as_deref() {
        Some("Bearer right") => files(requested),
        _ => (401, "", "Access to model is restricted".into()),
    });
    let mut client = client(&endpoint);
    let fault = get(&client.fetch).unwrap_err();
    assert!(fault.found.contains("401") && fault.fix.contains("HF_TOKEN"), "{fault}");
    assert!(fault.fix.contains("by hand") && fault.file.starts_with(&endpoint), "{fault}");
    client.fetch.token = Some("wrong".into());
    assert!(get(&client.fetch).unwrap_err().fix.contains("has no access"));
    client.fetch.token = Some("right".into());
    assert!(get(&client.fetch).is_ok());
    assert_eq!(requested.try_iter().filter(|requested| requested.authorization.is_none()).count(), 1);
}

#[test]
fn what_is_not_there_is_said_and_an_absent_quantisation_is_none() {
    let (endpoint, _requested) = serve(|_| (404, "", "Entry not found".into()));
    let fault = get(&client(&endpoint).fetch).unwrap_err();
    assert!(fault.found.contains("404") && fault.fix.contains("v1"), "{fault}");
    let (endpoint, _requested) =
        serve(
            |requested| {
                if requested.path.contains("quant") { (404, "", String::new()) } else { files(requested) }
            },
        );
    assert_eq!(get(&client(&endpoint).fetch).unwrap().hf_quant_config, None);
}

#[test]
fn a_page_in_place_of_a_file_is_refused_and_not_kept() {
    for body in ["<html>\n<b>Log in</b></html>", "", "[1, 2]", "{\"model_type\": ", "\"text\""] {
        let answer: Answer = match body {
            "<html>\n<b>Log in</b></html>" => |_| (200, "", "<html>\n<b>Log in</b></html>".into()),
            "" => |_| (200, "", String::new()),
            "[1, 2]" => |_| (200, "", "[1, 2]".into()),
            "{\"model_type\": " => |_| (200, "", "{\"model_type\": ".into()),
            _ => |_| (200, "", "\"text\"".into()),
        };
        let (endpoint, _requested) = serve(answer);
        let client = client(&endpoint);
        let fault = get(&client.fetch).unwrap_err();
        assert!(
            fault.found.contains("not a JSON object") && fault.fix.contains("by hand"),
            "{body}: {fault}"
        );
        assert_eq!(fault.to_string().lines().count(), 4, "{fault}");
        assert!(!client.fetch.cache.as_ref().unwrap().exists(), "{body} was kept");
    }
}

#[test]
fn redirections_are_followed_on_one_host_and_given_up_in_a_ring() {
    let (endpoint, _requested) =
        serve(|requested| match requested.path.strip_prefix("/org/name/resolve/v1") {
            Some("/config.json") => (307, "location: /moved/config.json\r\n", String::new()),
            _ if requested.path == "/moved/config.json" => (200, "", CONFIG.into()),
            _ => (404, "", String::new()),
        });
    assert_eq!(get(&client(&endpoint).fetch).unwrap().config, CONFIG);
    let (endpoint, _requested) = serve(|_| (302, "location: /again\r\n", String::new()));
    let fault = get(&client(&endpoint).fetch).unwrap_err();
    assert!(fault.found.contains("redirect") && fault.fix.contains("by hand"), "{fault}");
}

#[test]
fn no_answer_and_a_broken_one_say_what_to_do() {
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let fault = get(&client(&format!("http://{closed}")).fetch).unwrap_err();
    assert!(fault.found.contains("no response") && fault.fix.contains("network"), "{fault}");
    for endpoint in ["http://", "nonsense", "http://[", "ftp://127.0.0.1"] {
        let fault = get(&client(endpoint).fetch).unwrap_err();
        assert!(fault.fix.contains("by hand"), "{endpoint}: {fault}");
    }
    for status in [429, 500, 503] {
        let answer: Answer = match status {
            429 => |_| (429, "", String::new()),
            500 => |_| (500, "", String::new()),
            _ => |_| (503, "", String::new()),
        };
        let (endpoint, _requested) = serve(answer);
        let fault = get(&client(&endpoint).fetch).unwrap_err();
        assert!(fault.found.contains(&status.to_string()), "{fault}");
    }
}

#[test]
fn a_cache_that_cannot_be_written_is_no_fault() {
    let (endpoint, _requested) = serve(files);
    let mut client = client(&endpoint);
    let file = client._folder.path().join("a file");
    fs::write(&file, "").unwrap();
    client.fetch.cache = Some(file.join("cache"));
    assert_eq!(get(&client.fetch).unwrap().config, CONFIG);
}
