//! The cluster's configuration: of a new one, or that of a running one with something added or taken out.

use std::path::{Path, PathBuf};

use serde_norway::{Mapping, Value};

use super::Error;
use super::configuration::{Argument, arguments};
use super::options::{ConfigApi, Options, Version};

/// Whose configuration it is.
#[derive(Debug)]
pub(super) enum Cluster {
    /// Of one that is going to be made: the additions alone.
    New { api: ConfigApi, arguments: Vec<Argument> },
    /// Of one that runs: all of it, changed.
    Running { api: ConfigApi, text: String },
}

impl Cluster {
    /// Reads what there is and changes it.
    pub(super) fn load(options: &Options) -> Result<Self, Error> {
        match &options.cluster_configuration {
            Some(path) => Document::read(path)?.changed(options),
            None => {
                let version = options.kubernetes_version.unwrap_or_default();
                let arguments = additions(version, options)?;
                Ok(Self::New { api: version.config_api(options.config_api)?, arguments })
            }
        }
    }

    pub(super) fn api(&self) -> ConfigApi {
        match self {
            Self::New { api, .. } | Self::Running { api, .. } => *api,
        }
    }
}

fn additions(version: Version, options: &Options) -> Result<Vec<Argument>, Error> {
    if options.upstream_proxy {
        version.check_upstream_proxy()?;
    }
    Ok(arguments(version, options.upstream_proxy))
}

/// A ClusterConfiguration as kubeadm stores it.
struct Document {
    path: PathBuf,
    content: Mapping,
}

impl Document {
    fn read(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
        let content = serde_norway::from_str(&text).map_err(|source| Error::Parse { path: path.to_owned(), source })?;
        Ok(Self { path: path.to_owned(), content })
    }

    fn changed(mut self, options: &Options) -> Result<Cluster, Error> {
        let api = match self.text("apiVersion")? {
            "kubeadm.k8s.io/v1beta3" => ConfigApi::V1beta3,
            "kubeadm.k8s.io/v1beta4" => ConfigApi::V1beta4,
            "kubeadm.k8s.io/v1" => ConfigApi::V1,
            other => return Err(self.problem(&format!("apiVersion {other:?} is not known"))),
        };
        if self.text("kind")? != "ClusterConfiguration" {
            return Err(self.problem("kind is not ClusterConfiguration"));
        }
        let version = match options.kubernetes_version {
            Some(version) => version,
            None => self.text("kubernetesVersion")?.parse().map_err(|error: String| self.problem(&error))?,
        };
        let ours = if options.remove { arguments(version, true) } else { additions(version, options)? };
        let mut given = self.extra_arguments(api)?;
        given.retain(|(name, value)| {
            !ours.iter().any(|our| our.name == name && (!options.remove || our.value == value))
        });
        if !options.remove {
            given.extend(ours.iter().map(|our| (our.name.to_owned(), our.value.to_owned())));
        }
        self.set_extra_arguments(api, given);
        let text = serde_norway::to_string(&self.content)
            .map_err(|source| Error::Parse { path: self.path.clone(), source })?;
        Ok(Cluster::Running { api, text })
    }

    /// The server's extra arguments in order; several of one name are possible in the list form.
    fn extra_arguments(&self, api: ConfigApi) -> Result<Vec<(String, String)>, Error> {
        let given = self.content.get("apiServer").and_then(|server| server.get("extraArgs"));
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let read = match (api, given) {
            (_, None | Some(Value::Null)) => Some(Vec::new()),
            (ConfigApi::V1beta3, Some(Value::Mapping(map))) => {
                map.iter().map(|(name, value)| text(name).zip(text(value))).collect()
            }
            (_, Some(Value::Sequence(list))) => {
                list.iter().map(|item| text(item.get("name")?).zip(text(item.get("value")?))).collect()
            }
            _ => None,
        };
        read.ok_or_else(|| self.problem("apiServer.extraArgs has not the form of its apiVersion"))
    }

    fn set_extra_arguments(&mut self, api: ConfigApi, arguments: Vec<(String, String)>) {
        let pair = |(name, value): (String, String)| (Value::String(name), Value::String(value));
        let is_empty = arguments.is_empty();
        let value = match api {
            ConfigApi::V1beta3 => Value::Mapping(arguments.into_iter().map(pair).collect()),
            ConfigApi::V1beta4 | ConfigApi::V1 => Value::Sequence(
                arguments
                    .into_iter()
                    .map(|argument| {
                        let (name, value) = pair(argument);
                        Value::Mapping([("name".into(), name), ("value".into(), value)].into_iter().collect())
                    })
                    .collect(),
            ),
        };
        let server = self.content.entry("apiServer".into()).or_insert_with(|| Value::Mapping(Mapping::new()));
        if !server.is_mapping() {
            *server = Value::Mapping(Mapping::new());
        }
        let Some(server) = server.as_mapping_mut() else { return };
        if is_empty {
            server.remove("extraArgs");
        } else {
            server.insert("extraArgs".into(), value);
        }
    }

    fn text(&self, key: &str) -> Result<&str, Error> {
        self.content.get(key).and_then(Value::as_str).ok_or_else(|| self.problem(&format!("{key} is missing")))
    }

    fn problem(&self, problem: &str) -> Error {
        Error::Options(format!("--cluster-configuration: {}: {problem}", self.path.display()))
    }
}
