//! What a front still waits for, as kube-apiserver words its health checks.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::view::{ClusterView, Condition, ConditionState};

/// A line per condition, `[+]` met, `[~]` met only in part, `[-]` awaited; 200 unless something is awaited, else 500.
pub(super) fn report(view: &ClusterView, is_draining: bool) -> Response {
    let mut lines = lines(view, is_draining);
    let is_ready = view.is_ready() && !is_draining;
    let (code, verdict) = if is_ready {
        (StatusCode::OK, "readyz check passed")
    } else {
        (StatusCode::INTERNAL_SERVER_ERROR, "readyz check failed")
    };
    lines.push(verdict.to_owned());
    (code, lines.join("\n") + "\n").into_response()
}

/// A line per condition.
pub(super) fn lines(view: &ClusterView, is_draining: bool) -> Vec<String> {
    let mut lines: Vec<String> = view.readiness.iter().map(line).collect();
    lines.push(format!("[{}]shutdown", if is_draining { '-' } else { '+' }));
    lines
}

fn line(condition: &Condition) -> String {
    let mark = match condition.state {
        ConditionState::Met => '+',
        ConditionState::Degraded => '~',
        ConditionState::Waiting => '-',
    };
    let Condition { name, message, .. } = condition;
    if message.is_empty() { format!("[{mark}]{name}") } else { format!("[{mark}]{name}: {message}") }
}
