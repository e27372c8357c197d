//! Fetching from servers that mean no good: what is read is bounded, secrets go and show nowhere else, and what is
//! kept belongs to where it came from.

use std::io::Write;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use mantile::store::fetch::Fetch;
use mantile::store::hub::{HubName, HubPart, Repository};
use proptest::prelude::*;

use super::fetch::{CONFIG, Requested, client, get, serve_bytes};
use super::*;

/// A configuration that names itself.
fn named(name: &str) -> Vec<u8> {
    format!("{{\"model_type\": \"{name}\"}}").into_bytes()
}

/// `body` for config.json, nothing else.
fn only_config(requested: &Requested, body: Vec<u8>) -> (u16, String, Vec<u8>) {
    if requested.path.ends_with("/config.json") {
        (200, String::new(), body)
    } else {
        (404, String::new(), vec![])
    }
}

fn zipped(bytes: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

#[test]
fn limits_count_what_is_unpacked() {
    const LIMIT: usize = 16 << 20;
    for (size, fits) in [(LIMIT, true), (LIMIT + 1, false), (4 * LIMIT, false)] {
        let start = "{\"model_type\": \"llama\"";
        let body = format!("{start}{}}}", " ".repeat(size - start.len() - 1));
        let packed = zipped(body.as_bytes());
        assert!(packed.len() < size / 100);
        for (header, bytes) in [("content-encoding: gzip\r\n", packed), ("", body.into_bytes())] {
            let (endpoint, _requested) = serve_bytes(move |requested| {
                let (status, _, body) = only_config(requested, bytes.clone());
                (status, if status == 200 { header.to_owned() } else { String::new() }, body)
            });
            let client = client(&endpoint);
            match get(&client.fetch) {
                Ok(files) => assert!(fits && files.config.len() == size, "{size}"),
                Err(fault) => {
                    assert!(!fits && fault.found.contains("more than"), "{size}: {fault}");
                    assert!(!client.fetch.cache.as_ref().unwrap().exists(), "it was kept");
                }
            }
        }
    }
}

/// What reached a server.
fn tokens(requested: &Receiver<Requested>) -> Vec<Option<String>> {
    requested.try_iter().map(|requested| requested.authorization).collect()
}

#[test]
fn a_redirect_to_another_host_or_port_is_refused_and_the_token_stays() {
    let (other, elsewhere) = serve_bytes(|requested| only_config(requested, named("elsewhere")));
    let port = other.rsplit_once(':').unwrap().1.to_owned();
    for place in [other.clone(), format!("http://localhost:{port}"), other.replace("http://", "//")] {
        let to = place.clone();
        let (endpoint, home) = serve_bytes(move |requested| {
            let away = format!("location: {to}{}\r\n", requested.path.replace("/org/", "/moved/"));
            // First on the same server, which is to know the token, then away from it.
            match requested.path.strip_prefix("/org/") {
                Some(rest) => (307, format!("location: /here/{rest}\r\n"), vec![]),
                None if requested.path.ends_with("config.json") => (302, away, vec![]),
                None => (404, String::new(), vec![]),
            }
        });
        let mut client = client(&endpoint);
        client.fetch.token = Some("hf_secret".into());
        let fault = get(&client.fetch).unwrap_err();
        assert!(fault.found.contains("redirect to another host"), "{place}: {fault}");
        let at_home = tokens(&home);
        assert!(
            at_home.len() >= 2 && at_home.iter().all(|token| token.as_deref() == Some("Bearer hf_secret"))
        );
        assert!(tokens(&elsewhere).is_empty(), "{place}");
    }
}

#[test]
fn secrets_are_sent_and_shown_nowhere() {
    for status in [200, 302, 401, 403, 404, 429, 500] {
        for body in [CONFIG, "<html>", ""] {
            let (endpoint, requested) = serve_bytes(move |requested| match status {
                200 => only_config(requested, body.as_bytes().to_vec()),
                302 => (302, "location: /again\r\n".into(), vec![]),
                _ => (status, String::new(), body.as_bytes().to_vec()),
            });
            let endpoint = endpoint.replace("http://", "http://somebody:s3cr3t@");
            let client = client(&endpoint);
            let shown = match get(&client.fetch) {
                Ok(files) => files.source,
                Err(fault) => format!("{fault} {}{}{}{}", fault.file, fault.found, fault.expected, fault.fix),
            };
            for secret in ["somebody", "s3cr3t"] {
                assert!(!shown.contains(secret), "{status}: {shown}");
            }
            assert!(shown.contains("127.0.0.1"), "{status}: {shown}");
            assert!(
                tokens(&requested).iter().all(|sent| sent.as_ref().is_some_and(|s| s.starts_with("Basic ")))
            );
            let kept = walk(client.fetch.cache.as_ref().unwrap());
            assert!(
                kept.iter().all(|path| !path.contains("s3cr3t") && !path.contains("somebody")),
                "{kept:?}"
            );
        }
    }
    for endpoint in
        ["http://somebody:s3cr3t@", "http://somebody:s3cr3t@[", "ftp://somebody:s3cr3t@h", "s3cr3t"]
    {
        let fault = get(&client(endpoint).fetch).unwrap_err();
        assert!(!fault.to_string().contains("s3cr3t") || endpoint == "s3cr3t", "{fault}");
    }
    let fault =
        HubName::parse("https://somebody:s3cr3t@example.com/a/b?token=s3cr3t", "http://h").unwrap_err();
    assert!(!fault.to_string().contains("s3cr3t"), "{fault}");
}

/// Every path under a folder.
fn walk(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| [vec![path.display().to_string()], walk(&path)].concat()).collect()
}

#[test]
fn what_is_kept_belongs_to_its_endpoint_and_revision() {
    let folder = tempfile::tempdir().unwrap();
    let servers: Vec<_> = ["one", "two", "three"]
        .into_iter()
        .map(|name| {
            serve_bytes(move |requested| {
                let revision = requested.path.split('/').nth(4).unwrap_or_default().to_owned();
                only_config(requested, named(&format!("{name} {revision}")))
            })
        })
        .collect();
    for _ in 0..2 {
        for ((endpoint, _), name) in servers.iter().zip(["one", "two", "three"]) {
            for revision in ["main", "v1", "refs%2Fpr%2F1"] {
                let fetch = Fetch {
                    endpoint: endpoint.clone(),
                    token: None,
                    hub: None,
                    cache: Some(folder.path().to_owned()),
                    refresh: false,
                    patience: Duration::from_secs(60),
                };
                let repository = Repository { id: "org/name".into(), revision: revision.replace("%2F", "/") };
                let files = fetch.model(&HubName { repository, part: HubPart::Whole }).unwrap();
                assert_eq!(files.config.into_bytes(), named(&format!("{name} {revision}")));
            }
        }
    }
    for (_, requested) in &servers {
        assert_eq!(tokens(requested).len(), 6, "two files of each revision, once");
    }
}

#[test]
fn what_is_kept_is_fetched_again_when_requested() {
    let count = std::sync::atomic::AtomicUsize::new(0);
    let (endpoint, _requested) = serve_bytes(move |requested| {
        let nth = count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) / 2;
        match requested.path.contains("quant") {
            // The second state of the repository has no such file any more.
            true if nth == 0 => (200, String::new(), b"{\"quantization\": {}}".to_vec()),
            _ => only_config(requested, named(&nth.to_string())),
        }
    });
    let mut client = client(&endpoint);
    let snapshot = client.fetch.hub.as_ref().unwrap().join("models--org--name/snapshots/v1");
    let first = get(&client.fetch).unwrap();
    assert_eq!((first.config.into_bytes(), first.hf_quant_config.is_some()), (named("0"), true));
    fs::create_dir_all(&snapshot).unwrap();
    fs::write(snapshot.join("config.json"), named("the hub's own")).unwrap();
    assert_eq!(get(&client.fetch).unwrap().config.into_bytes(), named("0"));
    client.fetch.refresh = true;
    let second = get(&client.fetch).unwrap();
    assert_eq!((second.config.into_bytes(), second.hf_quant_config), (named("1"), None));
    client.fetch.refresh = false;
    let third = get(&client.fetch).unwrap();
    assert_eq!((third.config.into_bytes(), third.hf_quant_config), (named("1"), None));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_spoilt_entry_is_replaced(
        bytes in prop_oneof![
            prop::collection::vec(any::<u8>(), 0..40),
            (0..CONFIG.len() - 1).prop_map(|cut| CONFIG.as_bytes()[..cut].to_vec()),
            Just(b"[1, 2]".to_vec()),
            Just(b"\"text\"".to_vec()),
        ],
        of_quant in any::<bool>(),
        in_hub in any::<bool>(),
    ) {
        let (endpoint, requested) = serve_bytes(|requested| {
            let quant = b"{\"quantization\": {\"quant_algo\": \"FP8\"}}".to_vec();
            if requested.path.contains("quant") { (200, String::new(), quant) } else { only_config(requested, CONFIG.into()) }
        });
        let client = client(&endpoint);
        let good = if in_hub {
            let snapshot = client.fetch.hub.as_ref().unwrap().join("models--org--name/snapshots/v1");
            fs::create_dir_all(&snapshot).unwrap();
            fs::write(snapshot.join("config.json"), CONFIG).unwrap();
            snapshot.join("config.json")
        } else {
            PathBuf::from(get(&client.fetch).map(|_| get(&client.fetch).unwrap().source).unwrap())
        };
        let kept = if of_quant { good.with_file_name("hf_quant_config.json") } else { good };
        fs::write(&kept, &bytes).unwrap();
        let before = tokens(&requested).len();
        let files = get(&client.fetch).unwrap();
        prop_assert_eq!(files.config.as_str(), CONFIG);
        prop_assert!(files.hf_quant_config.unwrap().contains("FP8"));
        prop_assert_eq!((before, tokens(&requested).len()), (if in_hub { 0 } else { 2 }, 2));
        // Now it is sound, and nobody is asked.
        prop_assert_eq!(get(&client.fetch).unwrap().config, CONFIG);
        prop_assert_eq!(tokens(&requested).len(), 0);
    }

    #[test]
    fn no_two_repositories_or_revisions_share_a_folder(
        one in ("[a-b@/-]{1,4}", "[a-b/-]{1,4}"), two in ("[a-b@/-]{1,4}", "[a-b/-]{1,4}"),
    ) {
        let parsed = |(id, revision): &(String, String)| {
            let name = HubName::parse(&format!("hf:{id}@{revision}"), "http://h").ok().flatten();
            name.map(|name| name.repository)
        };
        if let (Some(a), Some(b)) = (parsed(&one), parsed(&two)) {
            prop_assert_eq!(a == b, a.folder() == b.folder(), "{:?} {:?}", a, b);
        }
    }
}
