//! Requests that become streams, with the real kubectl: exec, attach, port-forward, cp and logs, over WebSocket and over
//! SPDY, as certificate and as token user; with the local server running, and with it stopped, when a peer serves them.
//!
//! The kubelet behind the servers is a stand-in built on the kubelet's own server. Under `E2E_FULL=1` an old
//! kubectl does the same.

mod attach;
mod copy;
mod exec;
mod logs;
mod port_forward;
mod refusal;
mod session;
mod web_socket;

use std::process::ExitCode;

use peerfront_e2e::runner::{self, Test};

use session::{LocalServer, Streaming};

/// The tests in one state of the local server, each once for every kind of session.
macro_rules! tests {
    ($prefix:literal, $local:ident: $($module:ident::$name:ident),* $(,)?) => {
        [$((
            concat!($prefix, "::", stringify!($module), "::", stringify!($name)),
            (|streaming| Box::pin(streaming.each_session(LocalServer::$local, async |session| $module::$name(session).await)))
                as Test<Streaming>,
        )),*]
    };
}

macro_rules! all_tests {
    ($prefix:literal, $local:ident) => {
        tests![$prefix, $local:
            exec::speaks_the_transport_asked_for,
            exec::carries_streams_and_exit_code,
            exec::carries_megabytes_both_ways,
            attach::echoes,
            port_forward::carries_connections,
            copy::brings_files_there_and_back,
            logs::come_whole,
            logs::are_followed_line_by_line,
            refusal::names_the_caller,
        ]
    };
}

fn main() -> ExitCode {
    let of_other_clients =
        runner::tests![web_socket::watches_deliver, web_socket::tokens_in_a_subprotocol_mean_what_they_mean_directly,];
    let tests = [
        &all_tests!("with_local_server", Running)[..],
        &all_tests!("without_local_server", Stopped),
        &of_other_clients,
    ]
    .concat();
    runner::run(Streaming::start, &tests)
}
