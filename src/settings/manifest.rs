//! The flags of the co-located kube-apiserver, read from its static-pod manifest.
//!
//! What clients meet on the port must not change when peerfront takes it over. So every flag of kube-apiserver is
//! either taken over, left to upstream because upstream goes on applying it, or refused; `flags` says which.
//! kube-apiserver's own `--bind-address` and `--secure-port` say where upstream is, never where peerfront listens, and
//! its feature gates are not read.

mod flags;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use serde::Deserialize;

use super::layers::Layer;
use super::{Error, defaults, names};
use flags::Duty;

/// Name of the container in kubeadm's manifest, and of the binary.
const KUBE_APISERVER: &str = "kube-apiserver";

/// What peerfront learns from the manifest.
#[derive(Debug)]
pub(super) struct Manifest {
    /// The flags that peerfront takes over, and `upstream`.
    pub(super) layer: Layer,
    /// Where kube-apiserver listens, unspecified addresses included.
    pub(super) listener: SocketAddr,
    /// What the operator should know although it is no error.
    pub(super) warnings: Vec<String>,
}

#[derive(Deserialize)]
struct Pod {
    spec: PodSpec,
}

#[derive(Deserialize)]
struct PodSpec {
    containers: Vec<Container>,
}

#[derive(Deserialize)]
struct Container {
    name: String,
    command: Option<Vec<String>>,
    args: Option<Vec<String>>,
}

/// One flag as given: its name with dashes, and its value.
#[derive(Debug, Eq, PartialEq)]
struct Given {
    name: String,
    value: String,
}

impl Manifest {
    pub(super) fn load(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::ReadFile {
            flag: names::MANIFEST,
            path: path.to_owned(),
            source,
        })?;
        Reader { origin: path.display().to_string() }.read(&text)
    }
}

/// Reads one manifest; knows its name for errors.
struct Reader {
    origin: String,
}

impl Reader {
    fn read(&self, text: &str) -> Result<Manifest, Error> {
        let given = self.flags(self.command_line(text)?)?;
        let warnings = self.judge(&given)?;
        self.require_front_proxies(&given)?;
        let listener = self.listener(&given)?;
        let mut layer = Layer::new(&self.origin);
        for setting in names::SETTINGS.iter().filter(|setting| flags::duty(setting.flag) == Some(Duty::Taken)) {
            let values = values(&given, setting.flag);
            if !values.is_empty() {
                layer.set(setting, &values)?;
            }
        }
        if let Some(setting) = names::by_flag("upstream") {
            layer.set(setting, &[format!("https://{}", reachable(listener))])?;
        }
        Ok(Manifest { layer, listener, warnings })
    }

    /// The arguments that the kube-apiserver binary is started with.
    fn command_line(&self, text: &str) -> Result<Vec<String>, Error> {
        let pod: Pod = serde_norway::from_str(text).map_err(|source| Error::ParseYaml {
            origin: self.origin.clone(),
            expected: "the manifest of a static pod",
            source,
        })?;
        let found = pod.spec.containers.iter().map(|container| container.name.clone()).collect::<Vec<_>>().join(", ");
        let Some(container) = pod.spec.containers.into_iter().find(|container| container.name == KUBE_APISERVER) else {
            return Err(self.problem(format!("has no container named {KUBE_APISERVER:?}, only: {found}")));
        };
        let command = container.command.unwrap_or_default();
        let arguments = container.args.unwrap_or_default();
        if command.is_empty() {
            return Ok(arguments);
        }
        // Wrappers such as kube-log-runner stand in front of the binary.
        let line = command.into_iter().chain(arguments).collect::<Vec<_>>();
        let is_binary = |word: &String| Path::new(word).file_name().is_some_and(|name| name == KUBE_APISERVER);
        match line.iter().position(is_binary) {
            Some(at) => Ok(line[at + 1..].to_vec()),
            None => Err(self.problem(format!(
                "starts {:?}, in which the flags of {KUBE_APISERVER} cannot be found (a shell?): \
                 name the binary and each flag as an item of its own, or set peerfront's settings without a manifest",
                line[0]
            ))),
        }
    }

    /// Reads flags as kube-apiserver's flag library does: `--flag=value`, `--flag value`, `--switch`, `-v 2`.
    fn flags(&self, line: Vec<String>) -> Result<Vec<Given>, Error> {
        let mut given = Vec::new();
        let mut words = line.into_iter().peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--").or_else(|| verbosity(&word)).filter(|flag| !flag.is_empty())
            else {
                return Err(self.problem(format!("gives kube-apiserver {word:?}, which is not a flag")));
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (normalized(name), Some(value.to_owned())),
                None => (normalized(flag), None),
            };
            let follows = |next: &String| flags::duty(&name).is_some() || !next.starts_with('-');
            let value = match value {
                Some(value) => value,
                None if flags::is_switch(&name) => "true".to_owned(),
                None => match words.next_if(follows) {
                    Some(next) => next,
                    None if flags::duty(&name).is_some() => {
                        return Err(self.problem(format!("gives kube-apiserver --{name} without a value")));
                    }
                    None => "true".to_owned(),
                },
            };
            given.push(Given { name, value });
        }
        Ok(given)
    }

    /// Refuses what peerfront cannot follow; returns what it does not know.
    fn judge(&self, given: &[Given]) -> Result<Vec<String>, Error> {
        let mut warnings = Vec::new();
        for flag in given {
            match flags::duty(&flag.name) {
                Some(Duty::Taken | Duty::Listener) if flag.value.contains("$(") => {
                    return Err(self.refused(
                        flag,
                        "refers to the container's environment, which peerfront cannot see; write the value itself",
                    ));
                }
                Some(Duty::Refused { harmless, advice }) if !harmless.admits(&flag.value) => {
                    return Err(self.refused(flag, advice));
                }
                Some(_) => {}
                None if flags::shapes_the_port(&flag.name) => {
                    return Err(self.refused(
                        flag,
                        "is not known to this peerfront and its name says that clients notice it; remove the flag, or use a newer peerfront",
                    ));
                }
                None => warnings.push(format!(
                    "{}: kube-apiserver's --{} is not known to this peerfront; it is left to kube-apiserver alone",
                    self.origin, flag.name
                )),
            }
        }
        Ok(warnings)
    }

    /// Upstream must believe what peerfront says about callers, or everyone with a certificate becomes somebody else.
    fn require_front_proxies(&self, given: &[Given]) -> Result<(), Error> {
        for (name, example) in flags::FRONT_PROXY {
            if values(given, name).last().is_none_or(|value| value.trim().is_empty()) {
                return Err(self.problem(format!(
                    "gives kube-apiserver no --{name}, so that it would not believe peerfront about who calls; \
                     add --{name}={example} to it"
                )));
            }
        }
        Ok(())
    }

    fn listener(&self, given: &[Given]) -> Result<SocketAddr, Error> {
        let address = match values(given, "bind-address").last().map(|value| value.trim()) {
            None | Some("") => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
            Some(text) => text.parse().map_err(|_| self.value("bind-address", text, "an IP address"))?,
        };
        let port = match values(given, "secure-port").last() {
            None => defaults::SECURE_PORT,
            Some(text) => match text.trim().parse() {
                Ok(port) if port != 0 => port,
                _ => return Err(self.value("secure-port", text, "a port from 1 to 65535")),
            },
        };
        Ok(SocketAddr::new(address, port))
    }

    fn refused(&self, flag: &Given, advice: &str) -> Error {
        Error::ManifestFlag {
            origin: self.origin.clone(),
            flag: flag.name.clone(),
            value: flag.value.clone(),
            advice: advice.to_owned(),
        }
    }

    fn value(&self, flag: &'static str, value: &str, expected: &str) -> Error {
        let expected = expected.to_owned();
        Error::Value { flag, origin: self.origin.clone(), value: value.to_owned(), expected }
    }

    fn problem(&self, problem: String) -> Error {
        Error::Manifest { origin: self.origin.clone(), problem }
    }
}

/// All values of one flag, in order.
fn values(given: &[Given], name: &str) -> Vec<String> {
    given.iter().filter(|flag| flag.name == name).map(|flag| flag.value.clone()).collect()
}

/// `-v`, the only short flag that kube-apiserver has: `-v=2`, `-v 2` or `-v2`, of which the last is read as `v`.
fn verbosity(word: &str) -> Option<&str> {
    let flag = word.strip_prefix('-').filter(|flag| flag.starts_with('v'))?;
    let digits = flag[1..].chars().all(|c| c.is_ascii_digit()) && flag.len() > 1;
    if digits { Some("v=") } else { Some(flag) }
}

/// kube-apiserver takes `_` for `-` in flag names.
fn normalized(name: &str) -> String {
    name.replace('_', "-")
}

/// Where a server that listens there is reached from its own host.
fn reachable(listener: SocketAddr) -> SocketAddr {
    let address = match listener.ip() {
        IpAddr::V4(address) if address.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(address) if address.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        address => address,
    };
    SocketAddr::new(address, listener.port())
}

#[cfg(test)]
mod tests;
