//! Requests and what kube-apiserver reads in them. The answers were taken from upstream's own code
//! (`k8s.io/apiserver` v0.36.3: `RequestInfoFactory.NewRequestInfo` and `BasicLongRunningRequestCheck`).

use http::{Method, Uri};
use proptest::prelude::*;

use super::*;

/// Request, then: verb, prefix, group, version, namespace, resource, subresource and name, with `long` behind them if
/// the request is long-running.
const CASES: &[(&str, &str)] = &[
    ("GET /api/v1/namespaces", "list|api||v1||namespaces||"),
    ("GET /api/v1/namespaces/other", "get|api||v1|other|namespaces||other"),
    ("GET /api/v1/namespaces/other/pods", "list|api||v1|other|pods||"),
    ("GET /api/v1/namespaces/other/pods/foo", "get|api||v1|other|pods||foo"),
    ("HEAD /api/v1/namespaces/other/pods/foo", "get|api||v1|other|pods||foo"),
    ("GET /api/v1/pods", "list|api||v1||pods||"),
    ("HEAD /api/v1/pods", "list|api||v1||pods||"),
    ("HEAD /api/v1/pods?watch=1", "watch|api||v1||pods|| long"),
    ("GET /api/v1/proxy/namespaces/other/pods/foo", "proxy|api||v1|other|pods||foo long"),
    ("GET /api/v1/proxy/namespaces/other/pods/foo/subpath/not/a/subresource", "proxy|api||v1|other|pods||foo long"),
    ("GET /api/v1/watch/pods", "watch|api||v1||pods|| long"),
    ("DELETE /api/v1/watch/pods", "watch|api||v1||pods|| long"),
    ("GET /api/v1/watch/namespaces/other/pods", "watch|api||v1|other|pods|| long"),
    ("GET /api/v1/watch/namespaces/other/pods/foo/status", "watch|api||v1|other|pods|status|foo long"),
    ("GET /api/v1/watch/namespaces/other", "watch|api||v1|other|namespaces||other long"),
    ("GET /api/v1/watch", "error"),
    ("GET /api/v1/proxy", "error"),
    ("GET /api/v1/proxy/", "error"),
    ("GET /api/v1/watch//", "error"),
    ("GET /api/v1/watch/watch", "watch|api||v1||watch|| long"),
    ("GET /apis/apps/v1/proxy", "error"),
    ("POST /api/v1/proxy/namespaces/other/services/foo", "proxy|api||v1|other|services||foo long"),
    ("GET /api/v1/pods?watch=true", "watch|api||v1||pods|| long"),
    ("GET /api/v1/pods?watch=false", "list|api||v1||pods||"),
    ("GET /api/v1/pods?watch=FALSE", "list|api||v1||pods||"),
    ("GET /api/v1/pods?watch=False", "list|api||v1||pods||"),
    ("GET /api/v1/pods?watch=0", "list|api||v1||pods||"),
    ("GET /api/v1/pods?watch=00", "watch|api||v1||pods|| long"),
    ("GET /api/v1/pods?watch=no", "watch|api||v1||pods|| long"),
    ("GET /api/v1/pods?watch=", "watch|api||v1||pods|| long"),
    ("GET /api/v1/pods?watch", "watch|api||v1||pods|| long"),
    ("GET /api/v1/pods?Watch=1", "list|api||v1||pods||"),
    ("GET /api/v1/pods?watch=0&watch=1", "list|api||v1||pods||"),
    ("GET /api/v1/pods?watch=1&watch=0", "watch|api||v1||pods|| long"),
    ("GET /api/v1/pods?watch=%", "list|api||v1||pods||"),
    ("GET /api/v1/pods?watch=1;a=b", "list|api||v1||pods||"),
    ("GET /api/v1/pods?watc%68=1", "watch|api||v1||pods|| long"),
    ("GET /api/v1/pods?limit=x", "list|api||v1||pods||"),
    ("GET /api/v1/pods?limit=x&watch=1", "watch|api||v1||pods|| long"),
    ("GET /api/v1/pods?limit=x&watch=false", "list|api||v1||pods||"),
    ("GET /api/v1/namespaces/other/pods/foo?watch=1", "get|api||v1|other|pods||foo"),
    ("GET /api/v1/namespaces/other/pods/foo/status", "get|api||v1|other|pods|status|foo"),
    ("GET /api/v1/namespaces/other/pods/foo/proxy/subpath", "get|api||v1|other|pods|proxy|foo long"),
    ("POST /api/v1/namespaces/other/pods/foo/exec?command=ls", "create|api||v1|other|pods|exec|foo long"),
    ("GET /api/v1/namespaces/other/pods/foo/exec?command=ls", "get|api||v1|other|pods|exec|foo long"),
    ("GET /api/v1/namespaces/other/pods/foo/attach", "get|api||v1|other|pods|attach|foo long"),
    ("GET /api/v1/namespaces/other/pods/foo/portforward", "get|api||v1|other|pods|portforward|foo long"),
    ("GET /api/v1/namespaces/other/pods/foo/log?follow=true", "get|api||v1|other|pods|log|foo long"),
    ("PUT /api/v1/namespaces/other/finalize", "update|api||v1|other|namespaces|finalize|other"),
    ("PUT /api/v1/namespaces/other/status", "update|api||v1|other|namespaces|status|other"),
    ("GET /api/v1/namespaces/other/status/x", "get|api||v1|other|namespaces|status|other"),
    ("GET /api/v1/namespaces/other/Status", "list|api||v1|other|Status||"),
    ("PATCH /apis/storage.k8s.io/v1/csinodes/n1/status", "patch|apis|storage.k8s.io|v1||csinodes|status|n1"),
    ("PATCH /api/v1/namespaces/other/pods/foo", "patch|api||v1|other|pods||foo"),
    ("DELETE /api/v1/namespaces/other/pods/foo", "delete|api||v1|other|pods||foo"),
    ("POST /api/v1/namespaces/other/pods", "create|api||v1|other|pods||"),
    ("DELETE /api/v1/nodes", "deletecollection|api||v1||nodes||"),
    ("DELETE /api/v1/namespaces", "deletecollection|api||v1||namespaces||"),
    ("DELETE /api/v1/namespaces/other", "delete|api||v1|other|namespaces||other"),
    ("DELETE /api/v1/namespaces/other/pods", "deletecollection|api||v1|other|pods||"),
    ("DELETE /apis/extensions/v1/namespaces/other/pods", "deletecollection|apis|extensions|v1|other|pods||"),
    ("POST /apis/extensions/v1beta3/namespaces/other/pods", "create|apis|extensions|v1beta3|other|pods||"),
    ("OPTIONS /api/v1/pods", "|api||v1||pods||"),
    ("get /api/v1/pods", "|api||v1||pods||"),
    ("TRACE /healthz", "non-resource trace /healthz"),
    ("GET /", "non-resource get /"),
    ("GET //", "non-resource get //"),
    ("GET /healthz", "non-resource get /healthz"),
    ("GET /api", "non-resource get /api"),
    ("GET /api/", "non-resource get /api/"),
    ("GET /apis", "non-resource get /apis"),
    ("GET /apis/", "non-resource get /apis/"),
    ("GET /api/v1", "non-resource get /api/v1"),
    ("GET /api/v1/", "non-resource get /api/v1/"),
    ("GET //api//v1//pods//", "list|api||||v1|pods|"),
    ("GET /api//v1/pods", "get|api||||v1||pods"),
    ("GET /api/v1//pods", "get|api||v1||||pods"),
    ("GET /api/v1/pods/", "list|api||v1||pods||"),
    ("GET /api/v1/pods//", "list|api||v1||pods||"),
    ("GET /api/v1/pods//status", "list|api||v1||pods|status|"),
    ("GET /api/v1/namespaces/", "list|api||v1||namespaces||"),
    ("GET /api/v1/namespaces//", "list|api||v1||namespaces||"),
    ("GET /api/v1/namespaces//pods", "list|api||v1||pods||"),
    ("GET /api/v1/namespaces//pods/foo", "get|api||v1||pods||foo"),
    ("DELETE /api/v1/pods//status", "deletecollection|api||v1||pods|status|"),
    ("GET /apis/apps", "non-resource get /apis/apps"),
    ("GET /apis/apps/v1", "non-resource get /apis/apps/v1"),
    ("GET /apis/apps/v1/", "non-resource get /apis/apps/v1/"),
    ("GET /apis/apps/v1/deployments", "list|apis|apps|v1||deployments||"),
    ("GET /apis//v1/deployments", "list|apis||v1||deployments||"),
    ("GET /apis/apps//deployments", "list|apis|apps|||deployments||"),
    ("GET /apix/v1/pods", "non-resource get /apix/v1/pods"),
    ("GET /API/v1/pods", "non-resource get /API/v1/pods"),
    ("GET /debug/pprof/profile", "non-resource get /debug/pprof/profile long"),
    ("GET /debug/pprof", "non-resource get /debug/pprof"),
    ("GET /logs/x/y/z", "non-resource get /logs/x/y/z"),
    ("GET /openapi/v3/apis/apps/v1", "non-resource get /openapi/v3/apis/apps/v1"),
    (
        "GET /api/v1/namespaces/kube-system/services/https:web:1/proxy/a%2Fb?x=1",
        "get|api||v1|kube-system|services|proxy|https:web:1 long",
    ),
    ("GET /api/v1/namespaces/a%2Fb/pods", "get|api||v1|a|b||pods"),
    ("GET /api%2Fv1%2Fpods", "list|api||v1||pods||"),
    ("GET /%61pi/v1/pods", "list|api||v1||pods||"),
    ("GET /api/v1/p%6Fds?watch=1", "watch|api||v1||pods|| long"),
    ("GET /api/v1/namespaces/a%20b/pods/c+d", "get|api||v1|a b|pods||c+d"),
    ("GET /api/v1/namespaces/%C3%A4/pods", "list|api||v1|ä|pods||"),
    ("GET /api/v1/pods%", "broken"),
    ("GET /api/v1/pods%zz", "broken"),
    ("GET /api/v1/%", "broken"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=name1", "list|api||v1||pods||name1"),
    ("GET /api/v1/pods?fieldSelector=metadata.name==name1", "list|api||v1||pods||name1"),
    ("GET /api/v1/pods?fieldSelector=metadata.name%3Dname1", "list|api||v1||pods||name1"),
    ("GET /api/v1/pods?fieldSelector=metadata.name!=name1", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name===name1", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=+metadata.name=a", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=.", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=..", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=...", "list|api||v1||pods||..."),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a/b", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a%2525", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a,metadata.namespace=b", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.namespace=b,metadata.name=a", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=b,metadata.name=a", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=b,,", "list|api||v1||pods||b"),
    ("GET /api/v1/pods?fieldSelector=,", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a%5C,b", "list|api||v1||pods||a,b"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a%5Cb", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a%5C", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a%5C%3Db", "list|api||v1||pods||a=b"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a=b", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=name1,foo", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=name1,foo&watch=true", "watch|api||v1||pods|| long"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=name1,foo&watch=false", "list|api||v1||pods||"),
    ("GET /api/v1/pods?watch=true&fieldSelector=metadata.name=name1", "watch|api||v1||pods||name1 long"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=foo&fieldSelector=metadata.name=bar", "list|api||v1||pods||foo"),
    ("GET /api/v1/watch/pods?fieldSelector=metadata.name=foo", "watch|api||v1||pods|| long"),
    ("GET /api/v1/watch/pods/name?fieldSelector=metadata.name=foo", "watch|api||v1||pods||name long"),
    ("GET /api/v1/pods/name?fieldSelector=metadata.name=foo", "get|api||v1||pods||name"),
    ("DELETE /api/v1/pods?fieldSelector=metadata.name=foo", "deletecollection|api||v1||pods||"),
    ("GET /api/v1/namespaces/other/pods//status?fieldSelector=metadata.name=foo", "list|api||v1|other|pods|status|foo"),
    ("GET /api/v1/namespaces?fieldSelector=metadata.name=foo", "list|api||v1||namespaces||foo"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&limit=", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&limit=+5", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&limit=%2B5", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&limit=-5", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&limit=5_0", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&limit=9223372036854775808", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&timeoutSeconds=1s", "list|api||v1||pods||"),
    (
        "GET /api/v1/pods?fieldSelector=metadata.name=a&allowWatchBookmarks=x&sendInitialEvents=y&resourceVersion=z",
        "list|api||v1||pods||a",
    ),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=%21a", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3Db", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3D%3Db", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%21%3Db", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3D", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3D%3D", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28b%29", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28b%2Cc%29", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28%29", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28%2C%29", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28b%2C%29", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28%2Cb%29", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28b%20c%29", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20b", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28b", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28b%29%29", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20notin%20%28b%29", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=in%20in%20%28in%29", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=notin", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=in%3Din", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3Din", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%2Cb", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=%2Ca", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%2C", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%2C%2Cb", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=%20a%20%2C%20b%20", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=%21", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=%21%21a", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=%21a%3Db", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20b", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3Db%20c", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3E1", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3C1", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3Ex", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3E", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3E%2B1", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3E-1", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3D%3Eb", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3D%3D%3Db", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3D%21b", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%21b", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=x%2Fy%3D1", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=%2Fy%3D1", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=X.com%2Fy%3D1", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=x%2Fy%2Fz", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=x_y%2Fz", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a-b.c_d%3DE.f", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=-a", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a-", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3D-b", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3Db-", "list|api||v1||pods||"),
    (
        "GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3Dbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        "list|api||v1||pods||a",
    ),
    (
        "GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3Dbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        "list|api||v1||pods||",
    ),
    (
        "GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "list|api||v1||pods||a",
    ),
    (
        "GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "list|api||v1||pods||",
    ),
    (
        "GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx%2Fa",
        "list|api||v1||pods||a",
    ),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3D%C3%A4", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=%C3%A4", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%00b", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%00", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=%00a", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3D%00b", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%00%3Db", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3Db%00%2Cc", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%09in%0A%28b%29", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%28b%29", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=%28a%29", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=%29", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3D%28b%29", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a..b%2Fc", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a.b%2Fc", "list|api||v1||pods||a"),
    (
        "GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3Db%2C%21c%2Cd%20in%20%28e%29%2Cf%20notin%20%28g%2Ch%29%2Ci",
        "list|api||v1||pods||a",
    ),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28%3D%29", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28%21%29", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%20in%20%28b%2C%21%29", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=1%3D1", "list|api||v1||pods||a"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=_%3D1", "list|api||v1||pods||"),
    ("GET /api/v1/pods?fieldSelector=metadata.name=a&labelSelector=a%3D%3D%2Cb", "list|api||v1||pods||a"),
];

#[test]
fn request_info_is_what_upstream_reads() {
    for (request, expected) in CASES {
        check(request, expected);
    }
}

fn check(request: &str, expected: &str) {
    let (method, target) = request.split_once(' ').unwrap();
    let method: Method = method.parse().unwrap();
    let uri: Uri = target.parse().unwrap();
    let found = match RequestInfo::parse(&method, &uri) {
        Ok(info) => display(&info),
        Err(Error::VerbWithoutResource) => "error".to_owned(),
        Err(Error::BrokenEscape) => "broken".to_owned(),
    };
    assert_eq!(found, expected, "{request}");
}

fn display(info: &RequestInfo<'_>) -> String {
    let long = if info.is_long_running() { " long" } else { "" };
    if !info.is_resource_request {
        return format!("non-resource {} {}{long}", info.verb, info.path);
    }
    let RequestInfo { verb, api_prefix, api_group, api_version, namespace, resource, subresource, name, .. } = info;
    format!("{verb}|{api_prefix}|{api_group}|{api_version}|{namespace}|{resource}|{subresource}|{name}{long}")
}

#[test]
fn paths_without_escapes_are_borrowed() {
    let uri: Uri = "/apis/apps/v1/namespaces/a/deployments/b/scale".parse().unwrap();
    let info = RequestInfo::parse(&Method::GET, &uri).unwrap();
    let RequestInfo { path, verb, api_prefix, api_group, api_version, namespace, resource, subresource, name, .. } =
        info;
    for text in [path, verb, api_prefix, api_group, api_version, namespace, resource, subresource, name] {
        assert!(matches!(text, Cow::Borrowed(_)), "{text}");
    }
}

proptest! {
    #[test]
    fn parsing_never_panics(
        method in "[A-Z]{1,6}",
        path in "(/|api|apis|v1|namespaces|watch|proxy|%2F|%|[ -~]|ä){0,12}",
        query in "(watch|fieldSelector|labelSelector|metadata\\.name|limit|in|=|!|&|,|;|%|%5C|%00|\\(|\\)|\\+|[!-~]){0,16}",
    ) {
        let method: Method = method.parse().unwrap();
        if let Ok(uri) = format!("/{path}?{query}").parse::<Uri>() {
            let _ = RequestInfo::parse(&method, &uri);
        }
    }
}
