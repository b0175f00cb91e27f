//! The other side of the admin port: whether the front that holds it lives, for images that have no other program.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for each step of the question.
const PATIENCE: Duration = Duration::from_secs(3);

/// No front answers that it lives.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// Nothing listens, or it does not answer in three seconds.
    #[error("nothing answers on {address} (--admin-bind-address)")]
    Silent {
        /// Where it was asked.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The answer is not 200.
    #[error("{address} (--admin-bind-address) answers {answer:?} instead of 200")]
    Refused {
        /// Where it was asked.
        address: SocketAddr,
        /// The first line of the answer, cut to 64 bytes.
        answer: String,
    },
}

/// Asks for `/livez`.
///
/// # Errors
/// If the answer is not 200.
pub fn ask(address: SocketAddr) -> Result<(), ProbeError> {
    let answer = first_line(address).map_err(|source| ProbeError::Silent { address, source })?;
    match answer.split(' ').nth(1) {
        Some("200") => Ok(()),
        _ => Err(ProbeError::Refused { address, answer }),
    }
}

fn first_line(address: SocketAddr) -> io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(b"GET /livez HTTP/1.0\r\n\r\n")?;
    let mut start = Vec::new();
    stream.take(64).read_to_end(&mut start)?;
    let text = String::from_utf8_lossy(&start);
    Ok(text.lines().next().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn answering(answer: &'static str) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut request = [0; 23];
            stream.read_exact(&mut request).unwrap();
            assert_eq!(&request, b"GET /livez HTTP/1.0\r\n\r\n");
            stream.write_all(answer.as_bytes()).unwrap();
        });
        address
    }

    #[test]
    fn only_200_is_alive() {
        ask(answering("HTTP/1.0 200 OK\r\n\r\nok")).unwrap();
        let error = ask(answering("HTTP/1.1 500 Internal Server Error\r\n\r\n")).unwrap_err();
        assert!(error.to_string().contains("500"), "{error}");
        let error = ask(answering("")).unwrap_err();
        assert!(matches!(error, ProbeError::Refused { .. }), "{error}");
    }

    #[test]
    fn nobody_is_not_alive() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let error = ask(free).unwrap_err();
        assert!(matches!(error, ProbeError::Silent { .. }), "{error}");
    }
}
