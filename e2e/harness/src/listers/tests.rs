use super::*;

const KUBECTL: Program = Program::Built("kubectl", "1.37.2");

fn resource(group_version: &str, name: &str, verbs: &[&str]) -> Resource {
    Resource {
        group_version: group_version.to_owned(),
        name: name.to_owned(),
        kind: name.to_uppercase(),
        namespaced: true,
        verbs: verbs.iter().map(|verb| (*verb).to_owned()).collect(),
    }
}

fn resources() -> Vec<Resource> {
    vec![
        resource("v1", "pods", &["list", "watch"]),
        resource("v1", "pods/log", &["get"]),
        resource("a.example/v1", "things", &["list", "watch"]),
        resource("a.example/v2", "things", &["list", "watch"]),
        resource("a.example/v2", "reviews", &["create"]),
    ]
}

fn check(task: Task, seen: &[&str]) -> Result<()> {
    Lister { program: KUBECTL, task }.check(&seen.iter().map(|line| (*line).to_owned()).collect(), &resources())
}

#[test]
fn rows_of_api_resources_have_short_names_or_not() {
    assert_eq!(name_and_version("pods  po  v1  true  Pod").unwrap(), "v1 pods");
    assert_eq!(name_and_version("bindings  v1  true  Binding").unwrap(), "v1 bindings");
    assert_eq!(name_and_version("jobs   batch/v1  true  Job").unwrap(), "batch/v1 jobs");
    assert!(name_and_version("").is_none() && name_and_version("true").is_none());
}

#[test]
fn one_version_of_each_resource_or_of_each_group_is_enough_for_some() {
    check(Task::ApiResources, &["v1 pods", "a.example/v1 things", "a.example/v2 reviews"]).unwrap();
    check(Task::ApiResources, &["v1 pods", "a.example/v2 things", "a.example/v2 reviews"]).unwrap();
    check(Task::ListPreferred, &["v1 pods", "v1 pods/log", "a.example/v2 things", "a.example/v2 reviews"]).unwrap();
    check(Task::ListPreferred, &["v1 pods", "v1 pods/log", "a.example/v1 things"]).unwrap();
}

#[test]
fn missing_and_strange_lines_are_told() {
    for (task, seen) in [
        (Task::ApiResources, ["v1 pods", "a.example/v1 things"].as_slice()),
        (Task::ApiResources, &["v1 pods", "a.example/v1 things", "a.example/v2 things", "a.example/v2 reviews"]),
        (Task::ListPreferred, &["v1 pods", "v1 pods/log", "a.example/v2 things"]),
        (Task::ApiVersions, &["v1", "a.example/v1"]),
        (Task::ApiVersions, &["v1", "a.example/v1", "a.example/v2", "a.example/v3"]),
        (Task::Map, &["v1 pods", "v1 pods/log", "a.example/v1 things", "a.example/v2 things", "a.example/v2 reviews"]),
        (Task::Manage, &["v1 pods", "a.example/v1 things"]),
        (Task::Capabilities, &["v1", "a.example/v1", "a.example/v2"]),
    ] {
        let error = check(task, seen).unwrap_err().to_string();
        assert!(error.contains("missing") && error.contains("a.example") || error.contains("log"), "{error}");
    }
}
