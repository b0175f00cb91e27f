//! The metrics registry of one front. Families live with the code that counts; this room only hands out handles.
//!
//! Handles are made once and kept: the data path never looks a label string up. Several fronts in one process (tests)
//! have a registry each, so nothing is installed globally.

use std::collections::BTreeSet;

use arc_swap::ArcSwap;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::formatting::sanitize_label_value;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

/// Buckets for request latency, in seconds: from a cache answer to the 60 s request timeout.
const LATENCY_SECONDS: &[f64] =
    &[0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// The Prometheus text format, as a `Content-Type`.
/// Source: <https://prometheus.io/docs/instrumenting/exposition_formats/#basic-info>
pub const TEXT_FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Where a front's metrics are kept and rendered.
pub struct Registry {
    recorder: PrometheusRecorder,
    /// Labels, as rendered, of series that are not shown.
    hidden: ArcSwap<BTreeSet<String>>,
}

impl Default for Registry {
    fn default() -> Self {
        Self::new()
    }
}

impl Registry {
    /// Makes an empty registry.
    #[must_use]
    pub fn new() -> Self {
        let seconds = Matcher::Suffix("_seconds".to_owned());
        let builder = PrometheusBuilder::new();
        // The bucket list is a non-empty constant, the only condition for an error here.
        let builder =
            builder.set_buckets_for_metric(seconds, LATENCY_SECONDS).unwrap_or_else(|_| PrometheusBuilder::new());
        Self { recorder: builder.build_recorder(), hidden: ArcSwap::default() }
    }

    /// The counter of this name and labels, at zero from now on.
    pub fn counter(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Counter {
        let counter = self.recorder.register_counter(&key(name, labels), &METADATA);
        counter.increment(0);
        counter
    }

    /// The gauge of this name and labels.
    pub fn gauge(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Gauge {
        self.recorder.register_gauge(&key(name, labels), &METADATA)
    }

    /// The histogram of this name and labels; names end in their unit, `_seconds`.
    pub fn histogram(&self, name: &'static str, labels: &[(&'static str, &str)]) -> Histogram {
        self.recorder.register_histogram(&key(name, labels), &METADATA)
    }

    /// Sets the help sentence of a counter family.
    pub fn describe_counter(&self, name: &'static str, help: &'static str) {
        self.recorder.describe_counter(KeyName::from(name), Some(Unit::Count), SharedString::const_str(help));
    }

    /// Sets the help sentence of a gauge family.
    pub fn describe_gauge(&self, name: &'static str, help: &'static str) {
        self.recorder.describe_gauge(KeyName::from(name), None, SharedString::const_str(help));
    }

    /// Sets the help sentence of a histogram family.
    pub fn describe_histogram(&self, name: &'static str, help: &'static str) {
        self.recorder.describe_histogram(KeyName::from(name), Some(Unit::Seconds), SharedString::const_str(help));
    }

    /// Leaves series with this label out from now on, such as those of a peer that has left. They go on counting: a
    /// counter that comes back has not been set back.
    pub fn hide(&self, label: &str, value: &str) {
        let label = rendered(label, value);
        self.hidden.rcu(|hidden| {
            let mut hidden = BTreeSet::clone(hidden);
            hidden.insert(label.clone());
            hidden
        });
    }

    /// Shows series with this label again.
    pub fn show(&self, label: &str, value: &str) {
        let label = rendered(label, value);
        if self.hidden.load().contains(&label) {
            self.hidden.rcu(|hidden| {
                let mut hidden = BTreeSet::clone(hidden);
                hidden.remove(&label);
                hidden
            });
        }
    }

    /// Everything that is to be seen in the Prometheus text format, [`TEXT_FORMAT`].
    #[must_use]
    pub fn render(&self) -> String {
        let text = self.recorder.handle().render();
        let hidden = self.hidden.load();
        if hidden.is_empty() {
            return text;
        }
        text.split_inclusive('\n').filter(|line| !hidden.iter().any(|label| has_label(line, label))).collect()
    }

    /// Folds recorded histogram samples into their buckets; to be called every few seconds, or memory grows.
    pub fn run_upkeep(&self) {
        self.recorder.handle().run_upkeep();
    }
}

const METADATA: Metadata<'static> = Metadata::new("peerfront", Level::INFO, None);

/// A label as the exporter writes it, which has no way to take series away.
fn rendered(label: &str, value: &str) -> String {
    format!("{label}=\"{}\"", sanitize_label_value(value))
}

/// Whether a rendered series has a rendered label.
fn has_label(line: &str, label: &str) -> bool {
    !line.starts_with('#') && line.match_indices(label).any(|(at, _)| line[..at].ends_with(['{', ',']))
}

fn key(name: &'static str, labels: &[(&'static str, &str)]) -> Key {
    let labels: Vec<Label> = labels.iter().map(|(key, value)| Label::new(*key, (*value).to_owned())).collect();
    Key::from_parts(name, labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counter_exists_at_zero_from_the_start() {
        let registry = Registry::new();
        let _ = registry.counter("apiserver_rerouted_request_total", &[("code", "200")]);
        assert!(registry.render().contains("apiserver_rerouted_request_total{code=\"200\"} 0"));
    }

    #[test]
    fn hidden_series_are_left_out_until_they_are_shown_again() {
        let registry = Registry::new();
        for peer in ["node-b", "node-bb", "a \"b\\c"] {
            registry.counter("one_total", &[("code", "200"), ("peer", peer)]).increment(1);
            registry.histogram("two_seconds", &[("peer", peer)]).record(1.0);
        }
        registry.gauge("three", &[("otherpeer", "node-b")]).set(3.0);
        registry.describe_gauge("three", "Not of peer=\"node-b\".");
        let all = registry.render();
        registry.hide("peer", "node-b");
        registry.hide("peer", "a \"b\\c");
        let shown = registry.render();
        let series = |text: &str, peer: &str| text.lines().filter(|line| line.contains(peer)).count();
        assert_eq!(series(&shown, r#"{peer="node-b""#) + series(&shown, r#",peer="node-b""#), 0, "{shown}");
        assert_eq!(series(&shown, r#"a \"b\\c"#), 0, "{shown}");
        assert_eq!(series(&shown, "node-bb"), series(&all, "node-bb"));
        assert!(shown.contains(r#"three{otherpeer="node-b"} 3"#) && shown.contains("# HELP three"), "{shown}");
        registry.counter("one_total", &[("code", "200"), ("peer", "node-b")]).increment(1);
        registry.show("peer", "node-b");
        assert!(registry.render().contains(r#"one_total{code="200",peer="node-b"} 2"#), "{}", registry.render());
    }

    #[test]
    fn registries_are_apart() {
        let (one, other) = (Registry::new(), Registry::new());
        one.counter("a_total", &[]).increment(1);
        assert!(!other.render().contains("a_total"));
    }
}
