//! The page over HTTP: compressed for those who read gzip, the same for all others.

use std::io::Read;

use flate2::read::GzDecoder;

use super::Running;

#[test]
fn the_page_is_compressed_for_those_who_read_gzip() {
    let server = Running::start();
    let (status, head, plain) = server.send("GET", "/page.css", &[], "");
    assert!(status == 200 && !head.contains("content-encoding") && head.contains("vary: accept-encoding"));
    for (accepted, packed) in
        [("gzip, br", true), ("br;q=1, GZIP;q=0.5", true), ("gzip;q=0", false), ("identity", false)]
    {
        let mut bytes = Vec::new();
        let mut stream = server.begin("GET", "/page.css", &[("accept-encoding", accepted)], "");
        stream.read_to_end(&mut bytes).unwrap();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").unwrap();
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        assert_eq!(head.contains("content-encoding: gzip"), packed, "{accepted}");
        let mut text = String::new();
        match packed {
            true => GzDecoder::new(&bytes[end + 4..]).read_to_string(&mut text).unwrap(),
            false => (&bytes[end + 4..]).read_to_string(&mut text).unwrap(),
        };
        assert!(text == plain && bytes.len() < plain.len() + 1000, "{accepted}");
        assert!(!packed || bytes.len() < plain.len() / 2, "{accepted}: {} bytes", bytes.len());
    }
}
