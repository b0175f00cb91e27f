//! A front that is a process of its own.

use std::net::SocketAddr;
use std::process::Stdio;

use peerfront::testing::pki::FRONT_PROXY_CLIENT;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use crate::fixture::Place;
use crate::soon;

/// A running `peerfront serve`, which ends with the value.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    log: Lines<BufReader<ChildStderr>>,
}

impl Process {
    /// A front without peers before the server at this address, once it listens.
    pub(crate) async fn spawn(place: &Place, upstream: SocketAddr) -> Self {
        place.plane.front_proxy().write(&place.plane.path(""), FRONT_PROXY_CLIENT);
        let file = |name: &str| place.plane.path(name).display().to_string();
        let mut child = Command::new(env!("CARGO_BIN_EXE_peerfront"))
            .env_clear()
            .envs([("E2E_FULL", "1"), ("E2E_CACHE", "/nowhere")]) // The variables of the tests are none of peerfront's.
            .arg("serve")
            .args(["--bind-address=127.0.0.1", "--secure-port=0", "--admin-bind-address=127.0.0.1:0"])
            .args([format!("--tls-cert-file={}", file("apiserver.crt"))])
            .args([format!("--tls-private-key-file={}", file("apiserver.key"))])
            .args([format!("--client-ca-file={}", file("ca.crt"))])
            .args([format!("--requestheader-client-ca-file={}", file("front-proxy-ca.crt"))])
            .args([format!("--proxy-client-cert-file={}", file("front-proxy-client.crt"))])
            .args([format!("--proxy-client-key-file={}", file("front-proxy-client.key"))])
            .args([format!("--upstream-ca-file={}", file("serving-ca.crt"))])
            .args([format!("--upstream=https://{upstream}")])
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines();
        let line = line_with(&mut log, "listening address=").await;
        let (_, address) = line.split_once("listening address=").unwrap();
        let address = address.split(' ').next().unwrap().parse().unwrap();
        Self { child, address, log }
    }

    /// Waits for a line of its log with these words.
    pub(crate) async fn said(&mut self, words: &str) {
        line_with(&mut self.log, words).await;
    }

    /// Tells it to stop.
    pub(crate) fn terminate(&self) {
        let id = self.child.id().unwrap().to_string();
        assert!(std::process::Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// The most memory that it has held so far, in bytes.
    pub(crate) fn peak_bytes(&self) -> usize {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id().unwrap())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").trim().parse::<usize>().unwrap() * 1024
    }
}

async fn line_with(log: &mut Lines<BufReader<ChildStderr>>, words: &str) -> String {
    let mut all = String::new();
    let found = async {
        while let Some(line) = log.next_line().await.unwrap() {
            if line.contains(words) {
                return line;
            }
            all += &line;
        }
        panic!("it ended: {all}");
    };
    soon("the line of the log", found).await
}
