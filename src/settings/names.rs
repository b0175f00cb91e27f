//! Every setting by name, once: the flag, the YAML key, the environment variable and the help text all come from here.
//!
//! A setting is known by its flag name (`tls-cert-file`); its YAML key is the same in camelCase (`tlsCertFile`) and its
//! environment variable the same in capitals after `PEERFRONT_` (`PEERFRONT_TLS_CERT_FILE`).

/// Prefix of every environment variable that is a setting.
pub const ENVIRONMENT_PREFIX: &str = "PEERFRONT_";

/// How a setting's value is written as text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Form {
    /// One text; the last of several wins.
    Text,
    /// One whole number; the last of several wins.
    Number,
    /// Several texts, separated by commas or by repetition.
    List,
    /// Several texts that contain commas themselves: by repetition only, in a variable separated by semicolons.
    Repeated,
    /// `Name=true,Other=false`.
    Gates,
}

/// One thing that an operator may set.
#[derive(Debug, Eq, PartialEq)]
pub struct Setting {
    /// Name as a flag, without dashes in front.
    pub flag: &'static str,
    /// How its value is written.
    pub form: Form,
    /// What stands for the value in the help text.
    pub value_name: &'static str,
    /// What it does, with unit and default.
    pub help: &'static str,
}

impl Setting {
    /// Name in the file of `--config`.
    #[must_use]
    pub fn key(&self) -> String {
        let mut words = self.flag.split('-');
        let mut key = words.next().unwrap_or_default().to_owned();
        for word in words {
            let (first, rest) = word.split_at(1);
            key.push_str(&first.to_ascii_uppercase());
            key.push_str(rest);
        }
        key
    }

    /// Name as an environment variable.
    #[must_use]
    pub fn variable(&self) -> String {
        format!("{ENVIRONMENT_PREFIX}{}", self.flag.replace('-', "_").to_ascii_uppercase())
    }
}

/// The setting that names the file of the other settings; the file itself cannot contain it.
pub const CONFIG: &str = "config";
/// The setting that names the static-pod manifest to read.
pub const MANIFEST: &str = "kube-apiserver-manifest";

/// Every setting, in the order of the help text.
pub const SETTINGS: &[Setting] = &[
    text(CONFIG, "FILE", "YAML file of these settings in camelCase; environment variables and flags override it"),
    text(MANIFEST, "FILE", "Static-pod manifest of the co-located kube-apiserver, whose flags become defaults here"),
    list("bind-address", "IP", "Addresses to listen on [default: the advertise address]"),
    number("secure-port", "PORT", "Port to serve HTTPS on; 0 takes a free one [default: 6443]"),
    text("advertise-address", "IP", "This node's address for others [default: the first bind address]"),
    text("tls-cert-file", "FILE", "Serving certificate chain in PEM, leaf first"),
    text("tls-private-key-file", "FILE", "Private key of --tls-cert-file in PEM"),
    repeated(
        "tls-sni-cert-key",
        "CERT,KEY[:NAMES]",
        "Further serving pair for the names given, or for those it contains",
    ),
    text("tls-min-version", "VERSION", "VersionTLS12 or VersionTLS13 [default: VersionTLS12]"),
    list("tls-cipher-suites", "NAME", "IANA names of the TLS 1.2 cipher suites to offer [default: the library's]"),
    number(
        "http2-max-streams-per-connection",
        "NUMBER",
        "Concurrent streams per HTTP/2 connection; 0 means 100 [default: 100]",
    ),
    text("client-ca-file", "FILE", "CA bundle for client certificates that are users"),
    text("requestheader-client-ca-file", "FILE", "CA bundle for client certificates of front proxies"),
    list(
        "requestheader-allowed-names",
        "NAME",
        "Common names of the front proxies to believe [default: all that the CA signed]",
    ),
    list("requestheader-username-headers", "HEADER", "Headers with the user's name [default: X-Remote-User]"),
    list("requestheader-uid-headers", "HEADER", "Headers with the user's UID [default: none]"),
    list("requestheader-group-headers", "HEADER", "Headers with the user's groups [default: X-Remote-Group]"),
    list(
        "requestheader-extra-headers-prefix",
        "PREFIX",
        "Prefixes of headers with extra keys [default: X-Remote-Extra-]",
    ),
    text(
        "proxy-client-cert-file",
        "FILE",
        "Client certificate that proves to upstream and peers that this is a front proxy",
    ),
    text("proxy-client-key-file", "FILE", "Private key of --proxy-client-cert-file"),
    text("upstream", "URL", "The co-located kube-apiserver, by IP [default: https://127.0.0.1:6443]"),
    text("upstream-ca-file", "FILE", "CA bundle for upstream's serving certificate [default: --client-ca-file]"),
    text(
        "upstream-server-name",
        "NAME",
        "Name that upstream's certificate must carry [default: kubernetes.default.svc]",
    ),
    text("peer-ca-file", "FILE", "CA bundle for peers' serving certificates; without it peers are left alone"),
    text(
        "peer-advertise-ip",
        "IP",
        "Where peers reach this front, with --peer-advertise-port [default: the advertise address]",
    ),
    number("peer-advertise-port", "PORT", "Goes with --peer-advertise-ip [default: --secure-port]"),
    list(
        "peers",
        "NAME=[plain:]IP:PORT",
        "Peers by the host name of their kube-apiserver; plain: one without a peerfront",
    ),
    list(
        "peer-cidrs",
        "CIDR",
        "Networks that peers found through Leases may be in [default: all but loopback, link-local and multicast]",
    ),
    text("hostname-override", "NAME", "Host name of the co-located kube-apiserver [default: this host's]"),
    text(
        "admin-bind-address",
        "IP:PORT",
        "Plain HTTP for /livez, /readyz, /metrics and /statusz [default: 127.0.0.1:6440]",
    ),
    text(
        "cache-dir",
        "DIRECTORY",
        "Where what servers served last is kept for the next start; empty for nowhere [default: \
         /var/cache/kube-peerfront]",
    ),
    gates(
        "feature-gates",
        "NAME=BOOL",
        "UnknownVersionInteroperabilityProxy=true|false: work with peers [default: true]; \
         WatchBasedRoutesReconciliation=true|false: compute who serves what when something changes, else every 10 s \
         [default: true]",
    ),
    text("log-format", "FORMAT", "text or json [default: text]"),
    text(
        "log-filter",
        "FILTER",
        "Level, or levels by target, as in info,mixed_version_proxy=debug [default: info,kube_runtime=error]",
    ),
];

const fn text(flag: &'static str, value_name: &'static str, help: &'static str) -> Setting {
    Setting { flag, form: Form::Text, value_name, help }
}

const fn number(flag: &'static str, value_name: &'static str, help: &'static str) -> Setting {
    Setting { flag, form: Form::Number, value_name, help }
}

const fn list(flag: &'static str, value_name: &'static str, help: &'static str) -> Setting {
    Setting { flag, form: Form::List, value_name, help }
}

const fn repeated(flag: &'static str, value_name: &'static str, help: &'static str) -> Setting {
    Setting { flag, form: Form::Repeated, value_name, help }
}

const fn gates(flag: &'static str, value_name: &'static str, help: &'static str) -> Setting {
    Setting { flag, form: Form::Gates, value_name, help }
}

/// The setting with this flag name.
pub(crate) fn by_flag(flag: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.flag == flag)
}

/// The setting with this YAML key.
pub(super) fn by_key(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().filter(|setting| setting.flag != CONFIG).find(|setting| setting.key() == key)
}

/// The setting with this environment variable.
pub(super) fn by_variable(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.variable() == name)
}

/// The known name most like this one, a common beginning counting most.
pub(super) fn nearest(name: &str, known: impl Iterator<Item = String>) -> String {
    let likeness = |candidate: &String| strsim::jaro_winkler(name, candidate);
    known.max_by(|a, b| likeness(a).total_cmp(&likeness(b))).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_name_has_three_spellings() {
        let setting = by_flag("http2-max-streams-per-connection").unwrap();
        assert_eq!(setting.key(), "http2MaxStreamsPerConnection");
        assert_eq!(setting.variable(), "PEERFRONT_HTTP2_MAX_STREAMS_PER_CONNECTION");
        assert_eq!(by_key("http2MaxStreamsPerConnection"), Some(setting));
        assert_eq!(by_variable("PEERFRONT_HTTP2_MAX_STREAMS_PER_CONNECTION"), Some(setting));
    }

    #[test]
    fn the_file_cannot_name_itself() {
        assert_eq!(by_key("config"), None);
        assert!(by_variable("PEERFRONT_CONFIG").is_some());
    }
}
