//! One layer per place in which settings can stand, all brought to the same shape and merged by figment.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use figment::value::{Dict, Map, Value};
use figment::{Figment, Metadata, Profile, Provider};

use super::file::File;
use super::names::{self, ENVIRONMENT_PREFIX, Form, SETTINGS, Setting};
use super::{Error, defaults};

/// The settings that the command line gives: for each setting named, its values in order.
#[derive(Clone, Debug, Default)]
pub struct Flags(pub Vec<(&'static Setting, Vec<String>)>);

/// The settings of one place.
#[derive(Debug)]
pub(super) struct Layer {
    /// The place, as it is named in errors.
    origin: String,
    values: Dict,
}

impl Layer {
    pub(super) fn new(origin: impl Into<String>) -> Self {
        Self { origin: origin.into(), values: Dict::new() }
    }

    fn from_defaults() -> Result<Self, Error> {
        let values = Value::serialize(defaults::file()).map_err(|source| Error::Merge(Box::new(source)))?;
        let values = values.into_dict().unwrap_or_default();
        Ok(Self { origin: "default".to_owned(), values })
    }

    pub(super) fn from_flags(flags: &Flags) -> Result<Self, Error> {
        let mut layer = Self::new("command line");
        for (setting, values) in &flags.0 {
            layer.set(setting, values)?;
        }
        Ok(layer)
    }

    /// Takes every variable with peerfront's prefix and refuses those that are no setting.
    pub(super) fn from_environment(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Result<Self, Error> {
        let mut layer = Self::new("environment");
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(ENVIRONMENT_PREFIX)) else { continue };
            let text = value.to_string_lossy();
            match names::by_variable(name) {
                Some(setting) if value.to_str().is_none() => return Err(layer.value(setting, &text, "UTF-8")),
                Some(setting) if setting.form == Form::Repeated => {
                    layer.set(setting, &text.split(';').map(str::to_owned).collect::<Vec<_>>())?;
                }
                Some(setting) => layer.set(setting, &[text.into_owned()])?,
                None if is_service_link(name, &text) => {}
                None => return Err(layer.unknown("variable", name, SETTINGS.iter().map(Setting::variable))),
            }
        }
        Ok(layer)
    }

    /// Reads the text of `--config`.
    pub(super) fn from_yaml(path: &Path, text: &str) -> Result<Self, Error> {
        let mut layer = Self::new(path.display().to_string());
        // A mapping refuses a key that stands twice, which a map of Rust's would not.
        let parsed: Option<serde_norway::Mapping> = serde_norway::from_str(text).map_err(|source| {
            Error::ParseYaml { origin: layer.origin.clone(), expected: "a YAML map of settings", source }
        })?;
        for (key, value) in parsed.unwrap_or_default() {
            let key = plain(&key);
            let Some(setting) = names::by_key(&key) else {
                let known = SETTINGS.iter().filter(|setting| setting.flag != names::CONFIG).map(Setting::key);
                return Err(layer.unknown("key", &key, known));
            };
            layer.set_yaml(setting, value)?;
        }
        Ok(layer)
    }

    /// Sets what kube-apiserver would set on reading these values of one flag.
    pub(super) fn set(&mut self, setting: &'static Setting, values: &[String]) -> Result<(), Error> {
        let last = values.last().map(String::as_str).unwrap_or_default();
        let value = match setting.form {
            Form::Text => Value::from(last.trim()),
            Form::Number => self.number(setting, last)?,
            Form::List => values.iter().flat_map(|text| words(text)).collect::<Vec<_>>().into(),
            Form::Repeated => {
                values.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect::<Vec<_>>().into()
            }
            Form::Gates => self.gates(setting, values)?.into(),
        };
        self.values.insert(setting.key(), value);
        Ok(())
    }

    /// The text of a setting, if this layer has one.
    pub(super) fn text(&self, flag: &str) -> Option<&str> {
        let setting = names::by_flag(flag)?;
        self.values.get(&setting.key())?.as_str().filter(|text| !text.is_empty())
    }

    /// Sets a value from YAML: as the flag would be written, or as the list, number or map that it is.
    fn set_yaml(&mut self, setting: &'static Setting, value: serde_norway::Value) -> Result<(), Error> {
        use serde_norway::Value as Yaml;
        match (setting.form, value) {
            (_, Yaml::Null) => Ok(()),
            (_, Yaml::String(text)) => self.set(setting, &[text]),
            (Form::Number, Yaml::Number(number)) => self.set(setting, &[number.to_string()]),
            (Form::List | Form::Repeated, Yaml::Sequence(items)) => {
                let texts = items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>();
                let texts =
                    texts.ok_or_else(|| self.value(setting, &plain(&Yaml::Sequence(items)), "a list of texts"))?;
                self.set(setting, &texts)
            }
            (Form::Gates, Yaml::Mapping(gates)) => {
                let texts = gates.iter().map(|(name, on)| format!("{}={}", plain(name), plain(on))).collect::<Vec<_>>();
                self.set(setting, &texts)
            }
            (form, value) => Err(self.value(setting, &plain(&value), shape(form))),
        }
    }

    fn number(&self, setting: &'static Setting, text: &str) -> Result<Value, Error> {
        if text.trim().is_empty() {
            return Ok(Value::from(figment::value::Empty::None));
        }
        text.trim().parse::<u64>().map(Value::from).map_err(|_| self.value(setting, text, "a whole number from 0 on"))
    }

    fn gates(&self, setting: &'static Setting, values: &[String]) -> Result<BTreeMap<String, bool>, Error> {
        let mut gates = BTreeMap::new();
        for word in values.iter().flat_map(|text| words(text)) {
            let (name, on) =
                word.split_once('=').ok_or_else(|| self.value(setting, word, "Name=true or Name=false"))?;
            if !defaults::FEATURE_GATES.iter().any(|(known, _)| *known == name) {
                let known = defaults::FEATURE_GATES.iter().map(|(known, _)| (*known).to_owned());
                return Err(self.unknown("feature gate", name, known));
            }
            let on = parse_bool(on).ok_or_else(|| self.value(setting, word, "Name=true or Name=false"))?;
            gates.insert(name.to_owned(), on);
        }
        Ok(gates)
    }

    fn value(&self, setting: &'static Setting, value: &str, expected: &str) -> Error {
        Error::Value {
            flag: setting.flag,
            origin: self.origin.clone(),
            value: value.to_owned(),
            expected: expected.to_owned(),
        }
    }

    fn unknown(&self, kind: &'static str, name: &str, known: impl Iterator<Item = String>) -> Error {
        let nearest = names::nearest(name, known);
        Error::UnknownName { kind, name: name.to_owned(), origin: self.origin.clone(), nearest }
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.origin.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Ok(Map::from([(Profile::Default, self.values.clone())]))
    }
}

/// All layers as one, and where each setting comes from.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) file: File,
    origins: BTreeMap<&'static str, String>,
}

impl Merged {
    /// Lays each layer over those before it, the defaults lying lowest.
    pub(super) fn new(layers: impl IntoIterator<Item = Layer>) -> Result<Self, Error> {
        let merged = layers.into_iter().fold(Figment::from(Layer::from_defaults()?), Figment::merge);
        let origin = |setting: &'static Setting| {
            let metadata = merged.find_metadata(&setting.key())?;
            Some((setting.flag, metadata.name.to_string()))
        };
        let origins = SETTINGS.iter().filter_map(origin).collect();
        let file = merged.extract().map_err(|source| Error::Merge(Box::new(source)))?;
        Ok(Self { file, origins })
    }

    /// The place that set a setting.
    pub(super) fn origin(&self, flag: &str) -> &str {
        self.origins.get(flag).map_or("not set", String::as_str)
    }
}

/// The parts of a comma list.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty())
}

/// What Go's `strconv.ParseBool` takes, as kube-apiserver does.
fn parse_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Some(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Some(false),
        _ => None,
    }
}

/// A YAML value for an error text.
fn plain(value: &serde_norway::Value) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => serde_norway::to_string(value).unwrap_or_default().trim_end().to_owned(),
    }
}

fn shape(form: Form) -> &'static str {
    match form {
        Form::Text => "a text",
        Form::Number => "a whole number",
        Form::List | Form::Repeated => "a list of texts",
        Form::Gates => "a map of names to true or false",
    }
}

/// Whether the kubelet made this variable for a Service whose name begins with `peerfront`.
///
/// Source: <https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables>
fn is_service_link(name: &str, value: &str) -> bool {
    let proto = |text: &str| ["tcp://", "udp://", "sctp://"].iter().any(|scheme| text.starts_with(scheme));
    let has_port_number = name.split("_PORT_").skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    name.ends_with("_SERVICE_HOST") || name.contains("_SERVICE_PORT") || has_port_number || proto(value)
}
