use super::{Lister, Program, Task};

/// kubectl as it was when only some clients read aggregated discovery, when all did, and now.
const KUBECTLS: [&str; 3] = ["1.28.15", "1.32.9", "1.37.2"];
const CONTROLLER_RUNTIME: &str = "0.25.2";
const HELMS: [&str; 2] = ["3.22.0", "4.3.2"];

/// The newest client-go, each way in which it reads discovery and OpenAPI.
pub const READERS: [Lister; 7] = readers("1.37.2");

/// The start of a manager of controller-runtime.
pub const MANAGER: Lister = Lister { program: Program::Built("controller", CONTROLLER_RUNTIME), task: Task::Manage };

/// All clients.
pub fn all() -> Vec<Lister> {
    let mut all = Vec::new();
    for version in KUBECTLS {
        let kubectl = Program::Built("kubectl", version);
        all.extend([Task::ApiResources, Task::ApiVersions].map(|task| Lister { program: kubectl, task }));
        all.extend(readers(version));
    }
    all.extend(HELMS.map(|version| Lister { program: Program::Built("helm", version), task: Task::Capabilities }));
    all.push(MANAGER);
    let languages = [("python", Task::List), ("javascript", Task::List), ("java", Task::ListPreferred)];
    all.extend(languages.map(|(name, task)| Lister { program: Program::Installed(name), task }));
    all
}

const fn readers(version: &'static str) -> [Lister; 7] {
    let program = Program::Built("discovery-client", version);
    [
        Lister { program, task: Task::Read("aggregated") },
        Lister { program, task: Task::Read("legacy") },
        Lister { program, task: Task::Read("cached") },
        Lister { program, task: Task::Map },
        Lister { program, task: Task::Read("openapi-v2") },
        Lister { program, task: Task::Read("openapi-v3") },
        Lister { program, task: Task::Read("openapi-v3-protobuf") },
    ]
}
