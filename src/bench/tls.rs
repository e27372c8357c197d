//! Encrypted connections to servers: the trusted authorities are those of Mozilla's list, and those of a file.

use std::io::{self, ErrorKind};
use std::sync::Arc;

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{CertificateError, ClientConfig, Error as TlsFault, RootCertStore};

use crate::spec::error::Error;

/// The authorities that a client trusts.
#[derive(Clone, Debug)]
pub(super) struct TrustedRoots(Arc<ClientConfig>);

/// Certificates of a file that are read, at most: as many as a system trusts, and more.
const MOST_CERTIFICATES: usize = 10_000;

impl TrustedRoots {
    /// Mozilla's list with the certificates of `pem`.
    ///
    /// # Errors
    /// The text has none, or a faulty one.
    pub(super) fn with(pem: Option<&str>) -> Result<TrustedRoots, Error> {
        let fault = |found: String| {
            let fix =
                "name the file of the authority's certificates, which begin with -----BEGIN CERTIFICATE-----";
            Error::new("ca-file", found, "certificates in PEM", fix)
        };
        let mut roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
        if let Some(pem) = pem {
            let all = CertificateDer::pem_slice_iter(pem.as_bytes()).take(MOST_CERTIFICATES);
            let before = roots.len();
            for one in all {
                let one = one.map_err(|_| fault("a text that is no PEM".to_owned()))?;
                roots.add(one).map_err(|_| fault("a faulty certificate".to_owned()))?;
            }
            if roots.len() == before {
                return Err(fault("no certificate".to_owned()));
            }
        }
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
        let config =
            config.with_safe_default_protocol_versions().map_err(|found| fault(found.to_string()))?;
        let config = config.with_root_certificates(roots).with_no_client_auth();
        Ok(TrustedRoots(Arc::new(config)))
    }

    /// Encrypts a connection to the server of this name or address.
    pub(super) async fn encrypted(&self, host: &str, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let connected = TlsConnector::from(self.0.clone()).connect(name, stream).await;
        // A server without encryption may leave at a request that it cannot read.
        let left = |fault: &io::Error| {
            [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset].contains(&fault.kind())
        };
        connected.map_err(|fault| match left(&fault) {
            true => io::Error::other(TlsFault::General("the server left".to_owned())),
            false => fault,
        })
    }
}

/// The fault of an encrypted connection, where it is one of encryption.
pub(super) fn tls_fault(fault: &io::Error) -> Option<Error> {
    let found = fault.get_ref()?.downcast_ref::<TlsFault>()?;
    let TlsFault::InvalidCertificate(reason) = found else {
        let fix = "write http:// for a server without encryption";
        let expected = "a server with TLS 1.2 or 1.3";
        return Some(Error::new("endpoint", "a connection that cannot be encrypted", expected, fix));
    };
    let found = match reason {
        CertificateError::UnknownIssuer => "a certificate whose authority is not trusted",
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "a certificate of another name"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "a certificate that has expired"
        }
        _ => "a certificate that is not valid",
    };
    let fix = "add --ca-file with the certificate of its authority, correct the name in the address, or measure at the \
               server itself over http://";
    Some(Error::new("endpoint", found, "a certificate of a trusted authority for this name", fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_without_certificates_are_faults() {
        for text in ["", "text", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let fault = TrustedRoots::with(Some(text)).unwrap_err();
            assert_eq!(fault.key, "ca-file", "{text}: {fault}");
        }
        assert!(TrustedRoots::with(None).is_ok());
    }
}
