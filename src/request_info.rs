//! What a request is for, in Kubernetes words: method, path and query in, [`RequestInfo`] out.
//!
//! Pure, and in agreement with kube-apiserver to the last oddity, because routing and authorization of the merged
//! documents stand on it. It must never know who asks, what is served, or where a request goes.
//!
//! Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/endpoints/request/requestinfo.go>

mod label_selector;
mod list_options;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

use http::{Method, Uri};

use crate::apimachinery::query;

/// Verbs that a path may name right after the version.
const SPECIAL_VERBS: [&str; 2] = ["proxy", "watch"];
/// What may follow a namespace's name without being a resource in it.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];
/// Subresources whose requests last as long as the client wants.
/// Source: <https://github.com/kubernetes/kubernetes/blob/v1.36.3/pkg/controlplane/apiserver/config.go> (`BuildGenericConfig`)
const LONG_RUNNING_SUBRESOURCES: [&str; 5] = ["attach", "exec", "proxy", "log", "portforward"];

/// Why a request has no [`RequestInfo`].
///
/// kube-apiserver refuses both kinds itself, so the local server may answer them in its own words.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Error {
    /// Nothing follows a `proxy` or `watch` verb in the path; kube-apiserver answers 500.
    #[error("path ends after its verb")]
    VerbWithoutResource,
    /// An escape in the path is broken; Go's HTTP server answers 400.
    #[error("broken escape in the path")]
    BrokenEscape,
}

/// What a request is for. Texts are decoded; absent ones are empty.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RequestInfo<'a> {
    /// Whether the request is for an API resource, or a subresource of one.
    pub is_resource_request: bool,
    /// HTTP method.
    pub method: &'a Method,
    /// The whole path.
    pub path: Cow<'a, str>,
    /// Kubernetes verb, such as `list`; for a non-resource request the method in lower case; for a resource request
    /// with a method that has no verb, empty.
    pub verb: Cow<'a, str>,
    /// `api` or `apis`. Also set for the non-resource paths `/apis/<group>/<version>`, as upstream does.
    pub api_prefix: Cow<'a, str>,
    /// API group; empty for the core group.
    pub api_group: Cow<'a, str>,
    /// API version.
    pub api_version: Cow<'a, str>,
    /// Namespace; for the resource `namespaces` its own name.
    pub namespace: Cow<'a, str>,
    /// Plural, lower-case name of the resource.
    pub resource: Cow<'a, str>,
    /// Subresource, such as `status`.
    pub subresource: Cow<'a, str>,
    /// Name of the object, also from an exact `metadata.name` field selector of a list or watch.
    pub name: Cow<'a, str>,
}

impl<'a> RequestInfo<'a> {
    /// Reads a request's method, path and query. Allocates nothing for a path without escapes.
    ///
    /// # Errors
    /// [`Error`] says which requests have no answer here.
    pub fn parse(method: &'a Method, uri: &'a Uri) -> Result<Self, Error> {
        let query = uri.query().unwrap_or_default();
        match query::unescape_path(uri.path()).ok_or(Error::BrokenEscape)? {
            Cow::Borrowed(path) => RequestInfo::of_path(method, path, query),
            Cow::Owned(path) => RequestInfo::of_path(method, &path, query).map(|info| info.detached(method)),
        }
    }

    /// Whether the request may last as long as its client wants, so that no request timeout applies.
    ///
    /// Source: <https://github.com/kubernetes/apiserver/blob/v0.36.3/pkg/server/filters/longrunning.go>
    #[must_use]
    pub fn is_long_running(&self) -> bool {
        if SPECIAL_VERBS.contains(&self.verb.as_ref()) {
            return true;
        }
        if self.is_resource_request {
            LONG_RUNNING_SUBRESOURCES.contains(&self.subresource.as_ref())
        } else {
            self.path.starts_with("/debug/pprof/")
        }
    }

    fn of_path(method: &'a Method, path: &'a str, query: &str) -> Result<Self, Error> {
        let mut info = Self::non_resource(method, path);
        let Some(rest) = info.take_group_version(path.trim_matches('/')) else {
            return Ok(info);
        };
        info.is_resource_request = true;
        let rest = info.take_verb(rest)?;
        let rest = info.take_namespace(rest);
        info.take_resource(rest);
        info.settle_collection_verb(query);
        Ok(info)
    }

    fn non_resource(method: &'a Method, path: &'a str) -> Self {
        const NONE: Cow<'static, str> = Cow::Borrowed("");
        let verb = match *method {
            Method::GET => Cow::Borrowed("get"),
            Method::POST => Cow::Borrowed("post"),
            _ => Cow::Owned(method.as_str().to_ascii_lowercase()),
        };
        Self {
            is_resource_request: false,
            method,
            path: Cow::Borrowed(path),
            verb,
            api_prefix: NONE,
            api_group: NONE,
            api_version: NONE,
            namespace: NONE,
            resource: NONE,
            subresource: NONE,
            name: NONE,
        }
    }

    /// Takes prefix, group and version off a trimmed path and returns what follows; `None` for a non-resource path.
    fn take_group_version(&mut self, path: &'a str) -> Option<&'a str> {
        let (prefix, rest) = path.split_once('/')?;
        if !rest.contains('/') || !matches!(prefix, "api" | "apis") {
            return None;
        }
        self.api_prefix = Cow::Borrowed(prefix);
        let (group, rest) = if prefix == "api" { ("", rest) } else { rest.split_once('/')? };
        let (version, rest) = rest.split_once('/')?;
        self.api_group = Cow::Borrowed(group);
        self.api_version = Cow::Borrowed(version);
        Some(rest)
    }

    fn take_verb(&mut self, parts: &'a str) -> Result<&'a str, Error> {
        let (first, rest) = cut(parts);
        if SPECIAL_VERBS.contains(&first) {
            self.verb = Cow::Borrowed(first);
            return rest.ok_or(Error::VerbWithoutResource);
        }
        self.verb = Cow::Borrowed(match *self.method {
            Method::POST => "create",
            Method::GET | Method::HEAD => "get",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "",
        });
        Ok(parts)
    }

    /// Notes the namespace and returns the parts from the resource on.
    fn take_namespace(&mut self, parts: &'a str) -> &'a str {
        let Some(("namespaces", rest)) = parts.split_once('/') else {
            return parts;
        };
        let (namespace, rest) = cut(rest);
        self.namespace = Cow::Borrowed(namespace);
        match rest {
            Some(rest) if !NAMESPACE_SUBRESOURCES.contains(&cut(rest).0) => rest,
            _ => parts,
        }
    }

    fn take_resource(&mut self, parts: &'a str) {
        let mut parts = parts.split('/');
        let mut next = || Cow::Borrowed(parts.next().unwrap_or_default());
        self.resource = next();
        self.name = next();
        if self.verb != "proxy" {
            self.subresource = next();
        }
    }

    /// The same with texts of its own.
    fn detached(self, method: &Method) -> RequestInfo<'_> {
        let own = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        RequestInfo {
            is_resource_request: self.is_resource_request,
            method,
            path: own(self.path),
            verb: own(self.verb),
            api_prefix: own(self.api_prefix),
            api_group: own(self.api_group),
            api_version: own(self.api_version),
            namespace: own(self.namespace),
            resource: own(self.resource),
            subresource: own(self.subresource),
            name: own(self.name),
        }
    }

    /// Without a name, get is list or watch and delete is deletecollection.
    fn settle_collection_verb(&mut self, query: &str) {
        if !self.name.is_empty() {
            return;
        }
        match self.verb.as_ref() {
            "get" => {
                let options = list_options::read(query);
                self.verb = Cow::Borrowed(if options.watch { "watch" } else { "list" });
                self.name = Cow::Owned(options.name);
            }
            "delete" => self.verb = Cow::Borrowed("deletecollection"),
            _ => {}
        }
    }
}

/// The first part and what follows it; `None` if it is the last.
fn cut(parts: &str) -> (&str, Option<&str>) {
    match parts.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (parts, None),
    }
}
