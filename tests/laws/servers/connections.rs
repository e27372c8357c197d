//! Connections end in bounded time, whatever their clients do.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use fastrand::Rng;
use mantile::http::{ConnectionLimits, ServerAccess, ServerOptions};
use mantile::store::catalog::Catalog;

use crate::draw::cases;
use crate::http::{Running, access, options};

/// Time that a busy machine may add.
const SLACK: Duration = Duration::from_secs(30);
/// What slow clients send at first.
const BEGUN: [&str; 6] = [
    "",
    "GET /v2 HT",
    "GET /v2 HTTP/1.1\r\nhost: localhost\r\nx: ",
    "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "POST /v2/glossary HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 40\r\n\r\n{",
    "POST /v2/glossary HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
];

fn server(most: usize, time: Duration, stop: Duration) -> Running {
    let connections = ConnectionLimits { most, header: time, body: time, stop };
    Running::under(
        ServerOptions { access: ServerAccess { connections, ..access() }, ..options() },
        Catalog::default(),
    )
}

/// A client that begins, then says nothing, or sends a byte now and then.
fn slow(server: &Running, random: &mut Rng) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.write_all(random.choice(&BEGUN).unwrap().as_bytes()).unwrap();
    stream
}

/// Whether the server has closed its side; what it sent before is read.
fn closed(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let mut sent = [0; 4096];
    loop {
        match stream.read(&mut sent) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(fault) => return fault.kind() != std::io::ErrorKind::WouldBlock,
        }
    }
}

/// 1. Slow and idle connections are gone in twice the longest time, once their turn has come; the server answers.
#[test]
fn slow_and_idle_connections_end() {
    let mut random = Rng::with_seed(1);
    let time = Duration::from_millis(400);
    let server = server(128, time, SLACK);
    let mut clients: Vec<TcpStream> = (0..cases(356)).map(|_| slow(&server, &mut random)).collect();
    let turns = clients.len().div_ceil(128) as u32;
    let begun = Instant::now();
    while !clients.iter_mut().all(closed) {
        assert!(
            begun.elapsed() < 2 * time * turns + SLACK,
            "connections are left after {:?}",
            begun.elapsed()
        );
        for client in &mut clients {
            // One byte of a header or of a body keeps no connection.
            let _ = client.write_all(b"x");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(server.send("GET", "/healthz", &[], "").2, "ok\n");
}

/// 2. The server ends within its stop time, whatever its connections wait for.
#[test]
fn the_server_ends_within_its_stop_time() {
    let mut random = Rng::with_seed(2);
    let long = Duration::from_secs(600);
    for _ in 0..cases(6).min(40) {
        let mut server = server(64, long, Duration::from_millis(200));
        let clients: Vec<TcpStream> = (0..random.usize(1..20)).map(|_| slow(&server, &mut random)).collect();
        std::thread::sleep(Duration::from_millis(random.u64(..60)));
        let took = server.stopped();
        assert!(took < SLACK, "{took:?}");
        drop(clients);
    }
}

/// 3. A client that reads nothing of its answers holds a connection no longer than the time of bodies.
#[test]
fn a_client_that_reads_nothing_is_left() {
    let server = server(1, Duration::from_millis(400), SLACK);
    let mut deaf = TcpStream::connect(server.address).unwrap();
    let one = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n";
    deaf.set_nonblocking(true).unwrap();
    // More answers than the system keeps.
    let _ = deaf.write_all(one.repeat(200).as_bytes());
    let begun = Instant::now();
    assert_eq!(server.send("GET", "/healthz", &[], "").2, "ok\n");
    // A busy machine writes the answers before it slowly.
    assert!(begun.elapsed() < 3 * SLACK, "{:?}", begun.elapsed());
}
