//! Servers behind TLS: a certificate that is trusted by its file, and one that is not.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use tokio::io::copy_bidirectional;
use tokio::runtime::Builder;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::*;

/// A certificate of this machine's loopback address that it has signed itself, and its key; `None` without OpenSSL.
fn certified(folder: &Path) -> Option<()> {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-days", "2", "-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]);
    command.args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "key.pem", "-out", "cert.pem"]);
    match command.current_dir(folder).output() {
        Ok(found) => {
            assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
            Some(())
        }
        Err(_) => {
            eprintln!("SKIPPED: no openssl on this machine");
            None
        }
    }
}

/// Serves the server at `plain` with the certificate of a folder.
fn encrypted(folder: &Path, plain: SocketAddr) -> SocketAddr {
    let certificate = CertificateDer::from_pem_file(folder.join("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let acceptor = TlsAcceptor::from(Arc::new(config.with_single_cert(vec![certificate], key).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            while let Ok((stream, _)) = listener.accept().await {
                let acceptor = acceptor.clone();
                // A chunk is sent when it comes, without those after it.
                stream.set_nodelay(true).unwrap();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut server = tokio::net::TcpStream::connect(plain).await.unwrap();
                    // The client leaves in mid-stream at the end of a run.
                    let _ = copy_bidirectional(&mut stream, &mut server).await;
                });
            }
        });
    });
    address
}

#[test]
fn an_encrypted_server_is_measured_where_its_certificate_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (server, plain) = ScriptedServer::start(quick);
    if certified(folder.path()).is_none() {
        return;
    }
    let address = encrypted(folder.path(), plain);
    let endpoint = Endpoint::parse(&format!("https://{address}/v1"), None).unwrap();
    let begun = |endpoint| BenchSession::begin(BenchSettings { endpoint, ..settings(plain) });
    let fault = begun(endpoint.clone()).err().unwrap();
    assert!(fault.found.contains("authority is not trusted") && fault.fix.contains("--ca-file"), "{fault}");
    let pem = std::fs::read_to_string(folder.path().join("cert.pem")).unwrap();
    let trusted = endpoint.trusting(&pem).unwrap();
    let point = LoadPoint { isl: 100, osl: 2, load: PointLoad::Clients(2) };
    // On a busy machine the server in between joins two tokens: one run of three is undisturbed.
    let off = (0..3).map(|_| {
        let run = measured(BenchSettings { endpoint: trusted.clone(), ..settings(plain) }, &point);
        assert_eq!((run.outcome, run.requests.unwrap().answered), (RunOutcome::Measured, 20));
        (run.metrics.tpot_ms_p50.unwrap() - server.at(SentAnswer::tpot_ms, 0.5)).abs()
    });
    let off: Vec<f64> = off.collect();
    assert!(off.iter().any(|ms| *ms <= 2.0), "TPOT is off by {off:?} ms");
    // The same certificate for another name, and a server without encryption.
    let other = format!("https://localhost:{}", address.port());
    let fault = begun(Endpoint::parse(&other, None).unwrap().trusting(&pem).unwrap()).err().unwrap();
    assert!(fault.found.contains("of another name"), "{fault}");
    let fault = begun(Endpoint::parse(&format!("https://{plain}"), None).unwrap()).err().unwrap();
    assert!(fault.fix.contains("http://"), "{fault}");
    let unencrypted = Endpoint::parse(&format!("http://{plain}"), None).unwrap();
    assert_eq!(unencrypted.trusting(&pem).unwrap_err().key, "ca-file");
}

#[test]
fn the_commands_take_the_certificate_of_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let (_, plain) = ScriptedServer::start(quick);
    if certified(folder.path()).is_none() {
        return;
    }
    let endpoint = format!("https://{}", encrypted(folder.path(), plain));
    let bench = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mantile-opt"));
        command.args(["bench", "--endpoint", &endpoint, "--isl", "64", "--osl", "2"]).args(more);
        let found = command.current_dir(folder.path()).output().unwrap();
        (found.status.code(), String::from_utf8_lossy(&found.stderr).into_owned())
    };
    let (code, text) = bench(&[]);
    assert!(code == Some(2) && text.contains("authority is not trusted"), "{text}");
    let (code, text) = bench(&["--ca-file", "cert.pem"]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = bench(&["--ca-file", "key.pem"]);
    assert!(code == Some(2) && text.contains("no certificate"), "{text}");
}
