//! The table of requests, in the `.http` format of REST clients.
//!
//! ```text
//! @json = application/json          a variable of this file
//!
//! ### name of the request
//! # @h1 because of this or that     directives, see [`Request`]
//! POST /api/v1/namespaces/{{ns}}/configmaps
//! Content-Type: {{json}}
//!
//! {"metadata": {"name": "a"}}
//! ```
//!
//! `{{ns}}` is the namespace of the side; `{{continue}}` and `{{etag}}` come from the side's last answer that had one;
//! `{{repeat x 100}}` and `{{hex d9d9f7}}` spell what is long or no text.

use std::path::Path;

use peerfront_e2e::Protocol;

use crate::callers::Role;

/// The requests of one file: sent in order, as later ones use what earlier ones made.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) requests: Vec<Request>,
}

/// One request, its variables not yet filled in.
#[derive(Clone, Debug, Default)]
pub(crate) struct Request {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
    /// `# @raw`: head and body are sent as they stand, with CR LF as line ends and without the caller's headers.
    pub(crate) raw: Option<String>,
    /// `# @unstable`: the body differs between any two answers, so only that there is one is compared.
    pub(crate) unstable: bool,
    /// `# @front 400`: peerfront's answer is another one on purpose, for the reason given; only this code is compared.
    pub(crate) front: Option<String>,
    /// `# @answered-here`: peerfront answers itself, so the server has put the request in no flow.
    pub(crate) answered_here: bool,
    /// `# @h1`: the other protocol cannot say this.
    only: Option<Protocol>,
    /// `# @as admin user`: all callers if absent.
    roles: Option<Vec<String>>,
    /// `# @not proxy`: these callers are answered otherwise on purpose, for the reason given.
    excepted: Vec<String>,
}

impl Group {
    /// The requests for this caller and protocol; `None` without any.
    pub(crate) fn of(&self, role: Role, protocol: Protocol) -> Option<Self> {
        let concerns = |request: &&Request| {
            request.only.is_none_or(|only| only == protocol)
                && request.roles.as_ref().is_none_or(|roles| roles.iter().any(|name| name == role.name()))
                && !request.excepted.iter().any(|name| name == role.name())
        };
        let requests: Vec<_> = self.requests.iter().filter(concerns).cloned().collect();
        (!requests.is_empty()).then(|| Self { name: self.name.clone(), requests })
    }

    /// Whether a request goes to the side's namespace.
    pub(crate) fn needs_namespace(&self) -> bool {
        self.requests.iter().any(|request| request.target.contains("{{ns}}") || request.body.contains("{{ns}}"))
    }
}

/// Reads `requests/*.http`.
///
/// # Panics
/// If a file breaks the format.
pub(crate) fn load() -> Vec<Group> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("e2e/differential/requests");
    let entries = std::fs::read_dir(&folder).expect("the folder of requests");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a file of requests").path()).collect();
    paths.sort();
    let groups = paths.iter().map(|path| {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        let text = std::fs::read_to_string(path).expect("a readable file of requests");
        Group { name: name.to_owned(), requests: parse(&text) }
    });
    groups.collect()
}

fn parse(text: &str) -> Vec<Request> {
    let mut sections = text.split("\n### ");
    let preamble = sections.next().unwrap_or_default();
    let variables: Vec<(String, String)> = preamble
        .lines()
        .filter_map(|line| line.strip_prefix('@')?.split_once(" = "))
        .map(|(name, value)| (format!("{{{{{name}}}}}"), value.to_owned()))
        .collect();
    let fill = |section: &str| {
        variables.iter().fold(section.to_owned(), |section, (name, value)| section.replace(name, value))
    };
    sections.map(|section| request(&fill(section))).collect()
}

fn request(section: &str) -> Request {
    let (name, rest) = section.split_once('\n').expect("a request under its name");
    let mut request = Request { name: name.trim().to_owned(), ..Request::default() };
    let mut rest = rest;
    let mut is_raw = false;
    while let Some(comment) = rest.strip_prefix('#') {
        let (line, after) = comment.split_once('\n').expect("a request under its comments");
        is_raw |= directive(&mut request, line.trim());
        rest = after;
    }
    if is_raw {
        let rest = rest.trim_end_matches('\n');
        request.raw = Some(if rest.contains("\n\n") { rest.to_owned() } else { format!("{rest}\n\n") });
        return request;
    }
    let (head, body) = rest.split_once("\n\n").unwrap_or((rest, ""));
    let mut lines = head.trim_end().lines();
    let line = lines.next().expect("a request line");
    let (method, target) = line.split_once(' ').expect("a method and a target");
    (request.method, request.target) = (method.to_owned(), target.to_owned());
    request.headers = lines
        .map(|line| {
            let (name, value) = line.split_once(':').expect("a header");
            (name.to_owned(), value.trim().to_owned())
        })
        .collect();
    request.body = body.trim_end_matches('\n').to_owned();
    if request.headers.iter().any(|(name, _)| ["connection", "transfer-encoding"].contains(&&*name.to_lowercase())) {
        request.only = Some(Protocol::H1);
    }
    request
}

/// Whether the request is to be sent as it stands.
fn directive(request: &mut Request, line: &str) -> bool {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("@raw") => {
            request.only = Some(Protocol::H1);
            return true;
        }
        Some("@h1") => request.only = Some(Protocol::H1),
        Some("@answered-here") => request.answered_here = true,
        Some("@unstable") => request.unstable = true,
        Some("@front") => request.front = words.next().map(str::to_owned),
        Some("@not") => request.excepted = words.map(str::to_owned).collect(),
        Some("@as") => request.roles = Some(words.map(str::to_owned).collect()),
        Some(word) if word.starts_with('@') => panic!("{word} is no directive, in {}", request.name),
        _ => {}
    }
    false
}
