use super::{Lister, Program, Task};

/// kubectl as it was when only some clients read aggregated discovery, when all did, and now.
const KUBECTLS: [&str; 3] = ["1.28.15", "1.32.9", "1.37.2"];
const NEWEST: &str = KUBECTLS[2];
const CONTROLLER_RUNTIME: &str = "0.25.2";
const HELMS: [&str; 2] = ["3.22.0", "4.3.2"];

/// The newest client-go's readers of aggregated discovery.
pub const AGGREGATED: [Lister; 3] = aggregated(NEWEST);
/// The newest client-go's reader of one document for each group version.
pub const LEGACY: Lister = legacy(NEWEST);
/// The newest client-go's readers of OpenAPI.
pub const OPENAPI: [Lister; 3] = openapi(NEWEST);

/// The start of a manager of controller-runtime.
pub const MANAGER: Lister = Lister { program: Program::Built("controller", CONTROLLER_RUNTIME), task: Task::Manage };

/// All clients.
pub fn all() -> Vec<Lister> {
    let mut all = Vec::new();
    for version in KUBECTLS {
        let kubectl = Program::Built("kubectl", version);
        all.extend([Task::ApiResources, Task::ApiVersions].map(|task| Lister { program: kubectl, task }));
        all.extend(aggregated(version));
        all.push(legacy(version));
        all.extend(openapi(version));
    }
    all.extend(HELMS.map(|version| Lister { program: Program::Built("helm", version), task: Task::Capabilities }));
    all.push(MANAGER);
    let languages = [("python", Task::List), ("javascript", Task::List), ("java", Task::ListPreferred)];
    all.extend(languages.map(|(name, task)| Lister { program: Program::Installed(name), task }));
    all
}

const fn aggregated(version: &'static str) -> [Lister; 3] {
    let mapper = Lister { program: Program::Built("discovery-client", version), task: Task::Map };
    [reader(version, "aggregated"), reader(version, "cached"), mapper]
}

const fn legacy(version: &'static str) -> Lister {
    reader(version, "legacy")
}

const fn openapi(version: &'static str) -> [Lister; 3] {
    [reader(version, "openapi-v2"), reader(version, "openapi-v3"), reader(version, "openapi-v3-protobuf")]
}

const fn reader(version: &'static str, name: &'static str) -> Lister {
    Lister { program: Program::Built("discovery-client", version), task: Task::Read(name) }
}
