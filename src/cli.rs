//! The command line: which command, and the layer of settings that flags are. It reads no file and no environment.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::StyledStr;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches as _};

use crate::kubeadm;
use crate::settings::names::SETTINGS;
use crate::settings::{Flags, defaults};

/// Release of this binary, as `version` and `--version` print it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Exit code of a command line or a setting that cannot be used: `EX_USAGE` of `sysexits.h`.
pub const EXIT_USAGE: u8 = 64;

/// What peerfront is asked to do.
#[derive(Clone, Debug)]
pub enum Command {
    /// Hold the port and serve, with these flags as the highest layer of settings.
    Serve(Flags),
    /// Say what keeps `serve` with these flags from working; the kubeconfig is for what is asked of the cluster.
    Check(Flags, Option<PathBuf>),
    /// Write the files that put a peerfront on a kubeadm node.
    KubeadmRender(Box<kubeadm::Options>),
    /// Ask the front whose admin port this is whether it lives.
    Healthcheck(SocketAddr),
    /// Print the version.
    Version,
}

/// Options of `peerfront check` beside those of `serve`.
#[derive(Args)]
struct CheckOptions {
    /// Kubeconfig for what is asked of the cluster: rights, peers, Services with external addresses
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Options of `peerfront healthcheck`.
#[derive(Args)]
struct Healthcheck {
    /// Admin port of the front
    #[arg(long, value_name = "IP:PORT", default_value = defaults::ADMIN_BIND_ADDRESS)]
    admin_bind_address: SocketAddr,
}

/// A command line that asks for nothing to be run: it is wrong, or it asks for help or the version.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(StyledStr, u8);

impl Error {
    /// Exit code: 0 after `--help` and `--version`, else [`EXIT_USAGE`].
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        self.1
    }
}

/// Reads a command line, the name of the binary first.
///
/// # Errors
///
/// An [`Error`] whose `Display` is the text for the terminal: the help, the version, or what is wrong with the nearest
/// known name.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, Error> {
    read(arguments).map_err(|error| {
        let code = if error.use_stderr() { EXIT_USAGE } else { 0 };
        Error(error.render(), code)
    })
}

fn read(arguments: impl IntoIterator<Item = OsString>) -> Result<Command, clap::Error> {
    let matches = command().try_get_matches_from(arguments)?;
    match matches.subcommand() {
        Some(("serve", matches)) => Ok(Command::Serve(flags(matches))),
        Some(("check", matches)) => {
            Ok(Command::Check(flags(matches), CheckOptions::from_arg_matches(matches)?.kubeconfig))
        }
        Some(("kubeadm", matches)) => match matches.subcommand() {
            Some((_, matches)) => Ok(Command::KubeadmRender(Box::new(kubeadm::Options::from_arg_matches(matches)?))),
            None => Err(command().error(ErrorKind::MissingSubcommand, "kubeadm: render is missing")),
        },
        Some(("healthcheck", matches)) => {
            Ok(Command::Healthcheck(Healthcheck::from_arg_matches(matches)?.admin_bind_address))
        }
        _ => Ok(Command::Version),
    }
}

fn command() -> clap::Command {
    clap::Command::new("peerfront")
        .version(VERSION)
        .about("Mixed-version front-end for any kube-apiserver")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            clap::Command::new("serve")
                .about("Hold the API server's port and serve")
                .args(settings())
                .after_help(LAYERS),
        )
        .subcommand(
            CheckOptions::augment_args(clap::Command::new("check").args(settings()))
                .about("Say what keeps `serve` with these settings from working; exit code 1 if something does")
                .after_help(LAYERS),
        )
        .subcommand(
            clap::Command::new("kubeadm")
                .about("Files for clusters made by kubeadm")
                .subcommand_required(true)
                .arg_required_else_help(true)
                .subcommand(
                    kubeadm::Options::augment_args(clap::Command::new("render"))
                        .about("Write what puts a peerfront on a node of this cluster"),
                ),
        )
        .subcommand(
            Healthcheck::augment_args(clap::Command::new("healthcheck"))
                .about("Ask the front on this machine whether it lives; exit code 1 if it does not"),
        )
        .subcommand(clap::Command::new("version").about("Print the version"))
}

/// A flag for each setting.
fn settings() -> impl Iterator<Item = Arg> {
    SETTINGS.iter().map(|setting| {
        Arg::new(setting.flag)
            .long(setting.flag)
            .value_name(setting.value_name)
            .help(setting.help)
            .action(ArgAction::Append)
            .num_args(1)
    })
}

/// What the help of `serve` says about the other layers.
const LAYERS: &str = "Each setting can also stand in the file of --config (--tls-cert-file as tlsCertFile) and in the \
environment (PEERFRONT_TLS_CERT_FILE). Flags win over the environment, the environment over the file, the file over \
the kube-apiserver's manifest. An empty value takes back what an earlier layer set.";

/// The settings that the command line names, in the order of the table.
fn flags(matches: &ArgMatches) -> Flags {
    let given = SETTINGS.iter().filter_map(|setting| {
        let values = matches.get_many::<String>(setting.flag)?;
        Some((setting, values.cloned().collect()))
    });
    Flags(given.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &[&str]) -> Result<Command, Error> {
        parse(std::iter::once("peerfront").chain(line.iter().copied()).map(OsString::from))
    }

    fn values(line: &[&str]) -> Vec<(&'static str, Vec<String>)> {
        match run(line).unwrap() {
            Command::Serve(flags) => flags.0.into_iter().map(|(setting, values)| (setting.flag, values)).collect(),
            other => panic!("not serve: {other:?}"),
        }
    }

    #[test]
    fn flags_are_read_as_kube_apiserver_reads_them() {
        let given = values(&[
            "serve",
            "--secure-port=6443",
            "--tls-cert-file",
            "/pki/a.crt",
            "--tls-sni-cert-key=a.crt,a.key:x.example,y.example",
            "--tls-sni-cert-key",
            "b.crt,b.key",
            "--peer-ca-file=",
        ]);
        let expected: &[(&str, &[&str])] = &[
            ("secure-port", &["6443"]),
            ("tls-cert-file", &["/pki/a.crt"]),
            ("tls-sni-cert-key", &["a.crt,a.key:x.example,y.example", "b.crt,b.key"]),
            ("peer-ca-file", &[""]),
        ];
        assert_eq!(given.len(), expected.len());
        for ((flag, values), (expected_flag, expected_values)) in given.iter().zip(expected) {
            assert_eq!(flag, expected_flag);
            assert_eq!(values, expected_values);
        }
    }

    #[test]
    fn wrong_lines_end_with_64_and_the_nearest_name() {
        let table: &[(&[&str], &str)] = &[
            (&["serve", "--tls-cert-flie=x"], "--tls-cert-file"),
            (&["serve", "--goaway-chance=0.1"], "--goaway-chance"),
            (&["serve", "--secure-port"], "a value is required"),
            (&["serve", "extra"], "extra"),
            (&["sevre"], "serve"),
            (&[], "Usage"),
            (&["kubeadm"], "render"),
            (&["healthcheck", "--admin-bind-address=6440"], "6440"),
            (&["kubeadm", "render", "--output-dir=x"], "--kubernetes-version"),
            (&["kubeadm", "render", "--output-dir=x", "--kubernetes-version=2"], "v1.36.3"),
        ];
        for (line, words) in table {
            let error = run(line).unwrap_err();
            assert_eq!(error.exit_code(), EXIT_USAGE, "{line:?}");
            assert!(error.to_string().contains(words), "{line:?}: {error}");
        }
    }

    #[test]
    fn check_takes_the_flags_of_serve_and_a_kubeconfig() {
        let Command::Check(flags, kubeconfig) = run(&["check", "--peers=", "--kubeconfig=/admin.conf"]).unwrap() else {
            panic!("another command")
        };
        assert_eq!(flags.0.len(), 1);
        assert_eq!(kubeconfig, Some(PathBuf::from("/admin.conf")));
    }

    #[test]
    fn health_is_asked_for_where_the_front_says_it() {
        for (line, port) in [(&["healthcheck"][..], 6440), (&["healthcheck", "--admin-bind-address=127.0.0.1:7"], 7)] {
            let Command::Healthcheck(address) = run(line).unwrap() else { panic!("another command") };
            assert_eq!(address.port(), port);
        }
    }

    #[test]
    fn help_and_version_end_with_0() {
        let version = run(&["--version"]).unwrap_err();
        assert_eq!(version.exit_code(), 0);
        assert!(version.to_string().contains(VERSION));
        let help = run(&["serve", "--help"]).unwrap_err();
        assert_eq!(help.exit_code(), 0);
        for setting in SETTINGS {
            assert!(help.to_string().contains(&format!("--{} ", setting.flag)), "{} is missing", setting.flag);
        }
        assert!(matches!(run(&["version"]), Ok(Command::Version)));
    }
}
