//! The log: one line of JSON per response, with nothing of the client in it.

use std::sync::Mutex;

use mantile::http::{ServerAccess, ServerOptions};
use mantile::store::catalog::Catalog;
use serde_json::{Value, json};

use super::{Running, access, options};

static WRITTEN: Mutex<Vec<String>> = Mutex::new(vec![]);

#[test]
fn a_line_has_route_and_status_and_nothing_of_the_client() {
    let log: fn(&str) = |line| WRITTEN.lock().unwrap().push(line.to_owned());
    let server = Running::under(
        ServerOptions { access: ServerAccess { log: Some(log), ..access() }, ..options() },
        Catalog::default(),
    );
    let body = json!({"scenario": {"model": "secret-model", "hardware": "1xh100"}}).to_string();
    server.send("POST", "/v2/estimate?secret-query", &[("x-secret", "secret-header")], &body);
    server.send("GET", "/healthz", &[], "");
    server.send("GET", "/models/secret-id", &[], "");
    server.send("GET", "/secret-path", &[], "");
    drop(server);
    let lines = WRITTEN.lock().unwrap();
    let found: Vec<(Value, Value)> = lines
        .iter()
        .map(|line| {
            assert!(!line.contains("secret") && !line.contains("127.0.0.1"), "{line}");
            let line: Value = serde_json::from_str(line).unwrap();
            assert!(
                line["time"].as_str().unwrap().ends_with('Z') && line["ms"].as_f64().unwrap() > 0.0,
                "{line}"
            );
            (line["route"].clone(), line["status"].clone())
        })
        .collect();
    let expected = [("/v2/estimate", 422), ("/healthz", 200), ("/models/{*id}", 422), ("none", 404)];
    assert_eq!(found, expected.map(|(route, status)| (json!(route), json!(status))));
}
