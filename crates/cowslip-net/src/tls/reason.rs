//! Says in an operator's words why two ends did not agree, and whose certificate was at fault.

use rustls::{AlertDescription, CertificateError, Error};
use std::io;

/// The reason of an error of a TLS connection, with what can be done about it; the error's own text if it is another.
///
/// A server of TLS 1.3 refuses a client's certificate only after the client regards the connection as made, so that this
/// error comes with the first reading and not from the handshake.
///
/// ```
/// use std::io;
/// let error = io::Error::new(io::ErrorKind::BrokenPipe, "gone");
/// assert_eq!(cowslip_net::tls::reason(&error), "gone");
/// ```
pub fn reason(error: &io::Error) -> String {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()) {
        Some(error) => of_tls(error),
        None => error.to_string(),
    }
}

fn of_tls(error: &Error) -> String {
    let text = match error {
        Error::InvalidCertificate(why) => return of_certificate(why),
        Error::AlertReceived(alert) => match alert {
            AlertDescription::CertificateRequired => {
                "the server ended the TLS connection: it demands a certificate of its clients, and none was given"
            }
            AlertDescription::UnknownCA => {
                "the server does not trust the authority that signed this client's certificate"
            }
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateRevoked
            | AlertDescription::CertificateUnknown => "the server does not accept this client's certificate",
            AlertDescription::CertificateExpired => "to the server, this client's certificate is out of date",
            // Before version 1.3 there is no alert of its own for a missing certificate.
            AlertDescription::HandshakeFailure => {
                "the server broke the TLS handshake off: it demands a certificate of its clients, or shares no cipher suite"
            }
            AlertDescription::ProtocolVersion => "the server speaks neither TLS 1.2 nor TLS 1.3",
            _ => return format!("the server ended the TLS connection: {alert:?}"),
        },
        Error::InvalidMessage(_) => "the server does not speak TLS on this port",
        Error::PeerIncompatible(why) => {
            return format!("the server's TLS does not go with this client's: {why:?}");
        }
        other => return other.to_string(),
    };
    text.to_string()
}

fn of_certificate(why: &CertificateError) -> String {
    let text = match why {
        CertificateError::UnknownIssuer => {
            "the server's certificate is not signed by an authority of the CA certificate file"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "the server's certificate is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            return format!("the server's certificate is for another name: {why}");
        }
        CertificateError::BadSignature => "the server's certificate has a false signature",
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "the server's certificate is not one for servers"
        }
        other => return format!("the server's certificate was refused: {other}"),
    };
    text.to_string()
}
