//! A page of a stranger reaches nothing through a browser.

use fastrand::Rng;
use mantile::http::{ServerAccess, ServerOptions, Sites};
use mantile::store::catalog::Catalog;
use serde_json::json;

use crate::draw::cases;
use crate::http::{Running, access, options};

/// Hosts with whether the server answers to them.
const HOSTS: [(&str, bool); 16] = [
    ("localhost", true),
    ("LOCALHOST:8000", true),
    ("localhost.", true),
    ("127.0.0.1:1", true),
    ("127.9.9.9", true),
    ("[::1]:80", true),
    ("mantile.example.org", true),
    ("Mantile.Example.ORG.:443", true),
    ("evil.example", false),
    ("localhost.evil.example", false),
    ("mantile.example.org.evil.example", false),
    ("127.0.0.1.evil.example", false),
    ("localhost@evil.example", false),
    ("evil.example@localhost", false),
    ("192.0.2.1", false),
    ("", false),
];
/// Origins with whether the server answers their pages; `=` is the host itself.
const ORIGINS: [(&str, bool); 12] = [
    ("", true),
    ("http://=", true),
    ("https://=", true),
    ("https://tools.example.org", true),
    ("http://tools.example.org", false),
    ("https://tools.example.org:444", false),
    ("https://evil.example", false),
    ("http://localhost:1", false),
    ("http://=.evil.example", false),
    ("null", false),
    ("file://", false),
    ("https://tools.example.org.evil.example", false),
];
/// Types of bodies with whether the server reads them.
const TYPES: [(&str, bool); 12] = [
    ("application/json", true),
    ("Application/JSON; charset=utf-8", true),
    ("application/merge-patch+json", true),
    ("text/plain", false),
    ("text/plain; application/json", false),
    ("text/plain;charset=application/json", false),
    ("application/x-www-form-urlencoded", false),
    ("multipart/form-data; boundary=a", false),
    ("application/jsonp", false),
    ("text/json", false),
    ("application/json-seq", false),
    ("", false),
];

/// 4. Only own and allowed hosts and origins are answered, and only JSON is read.
#[test]
fn foreign_hosts_origins_and_types_are_refused() {
    let mut random = Rng::with_seed(3);
    let sites = Sites {
        hosts: vec!["mantile.example.org".to_owned()],
        origins: vec!["https://tools.example.org".to_owned()],
    };
    let server = Running::under(
        ServerOptions { access: ServerAccess { sites, ..access() }, ..options() },
        Catalog::default(),
    );
    let runs = |server: &Running| server.send("GET", "/v1/calibrate", &[], "").2;
    let before = runs(&server);
    let seeds = HOSTS.len().max(ORIGINS.len()) as u64;
    for case in 0..cases(seeds + 60) {
        // Each line once with all else allowed, then any mixture.
        let draw = |random: &mut Rng, lines: &[(&'static str, bool)], turn: u64| match case {
            case if case % 3 == turn && case < 3 * seeds => lines[(case / 3) as usize % lines.len()],
            case if case < 3 * seeds => lines[0],
            _ => lines[random.usize(..lines.len())],
        };
        let host = draw(&mut random, &HOSTS, 0);
        let origin = draw(&mut random, &ORIGINS, 1);
        let kind = draw(&mut random, &TYPES, 2);
        let named = origin.0.replace('=', host.0);
        let mut headers = vec![("host", host.0), ("content-type", kind.0)];
        if !named.is_empty() {
            headers.push(("origin", &named));
        }
        let (status, head, _) = server.send("POST", "/v1/calibrate", &headers, &json!({"x": 1}).to_string());
        let expected: &[u16] = match (host.1, origin.1, kind.1) {
            (false, ..) => &[400, 421],
            (true, false, _) => &[403],
            (true, true, false) => &[415],
            // Read, and refused for its key.
            (true, true, true) => &[422],
        };
        assert!(expected.contains(&status), "{headers:?}: {status}");
        let shared = head.contains("access-control-allow-origin");
        assert_eq!(shared, host.1 && origin.0 == "https://tools.example.org", "{headers:?}: {head}");
    }
    assert_eq!(runs(&server), before, "no run was counted");
}

/// 5. What everyone may read names nothing of the operator's where answers need a token.
#[test]
fn without_the_token_no_system_of_the_operator_is_listed() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("hardware/systems");
    std::fs::create_dir_all(&folder).unwrap();
    let file = include_str!("../../../hardware/systems/l40s-x1.json").replace("l40s-x1", "secret-system-9");
    let file = file.replace("\"1x-l40s\", \"1xl40s\"", "");
    std::fs::write(folder.join("secret-system-9.json"), file).unwrap();
    let mut catalog = Catalog::default();
    catalog.home = Some(home.path().to_owned());
    for token in [None, Some("t".to_owned())] {
        let server = Running::under(
            ServerOptions { access: ServerAccess { token: token.clone(), ..access() }, ..options() },
            catalog.clone(),
        );
        let (status, _, page) = server.send("GET", "/", &[], "");
        assert_eq!(status, 200);
        assert_eq!(page.contains("secret-system-9"), token.is_none(), "with a token: {token:?}");
        let open =
            ["/docs", "/openapi.json", "/v2", "/v2/catalog", "/hardware", "/metrics", "/v1/catalog/models"];
        for path in open.iter().filter(|_| token.is_some()) {
            assert_eq!(server.send("GET", path, &[], "").0, 401, "{path}");
        }
    }
}
