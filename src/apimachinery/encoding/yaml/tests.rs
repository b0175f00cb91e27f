//! Expected texts are those of `sigs.k8s.io/yaml` v1.6.0.

use serde_json::json;

use super::*;

fn check(value: &Value, expected: &str) {
    assert_eq!(yaml(value), expected, "{value}");
}

#[test]
fn layout_is_that_of_go_yaml() {
    check(
        &json!({ "b": [{ "y": 1, "x": [] }, [1, [2]], "s"], "a": { "k": {}, "l": null, "m": [true] } }),
        "a:\n  k: {}\n  l: null\n  m:\n  - true\nb:\n- x: []\n  \"y\": 1\n- - 1\n  - - 2\n- s\n",
    );
}
