//! The metrics registry of one front. Families live with the code that counts; this room only hands out handles.
//!
//! Handles are made once and kept: the data path never looks a label string up. Several fronts in one process (tests)
//! have a registry each, so nothing is installed globally.

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Label, Level, Metadata, Recorder, SharedString, Unit};
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusRecorder};

/// Buckets for request latency, in seconds: from a cache answer to the 60 s request timeout.
const LATENCY_SECONDS: &[f64] =
    &[0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Where a front's metrics are kept and rendered.
pub struct Registry {
    recorder: PrometheusRecorder,
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
        Self { recorder: builder.build_recorder() }
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

    /// Everything in the Prometheus text format.
    #[must_use]
    pub fn render(&self) -> String {
        self.recorder.handle().render()
    }

    /// Folds recorded histogram samples into their buckets; to be called every few seconds, or memory grows.
    pub fn run_upkeep(&self) {
        self.recorder.handle().run_upkeep();
    }
}

const METADATA: Metadata<'static> = Metadata::new("peerfront", Level::INFO, None);

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
    fn registries_are_apart() {
        let (one, other) = (Registry::new(), Registry::new());
        one.counter("a_total", &[]).increment(1);
        assert!(!other.render().contains("a_total"));
    }
}
