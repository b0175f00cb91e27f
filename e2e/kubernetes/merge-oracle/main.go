// merge-oracle answers what upstream's own peer-aggregated discovery makes of given documents.
//
// Usage: merge-oracle DIR. Every folder of DIR is one cluster: NAME.json is what server NAME lists (an
// APIGroupDiscoveryList, v2 JSON) and the file `local` holds the name of the server that is asked. Into each folder are
// written: merged.body and pretty.body, the bodies of upstream's answers, compact and indented; and merged.head and
// gzip.head, the headers of the first without and with `Accept-Encoding: gzip`.
//
// The local server's list passes through upstream's resource manager, which orders groups and versions by priority and
// knows no group without versions: priorities are set so that the order given is kept.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
)

const accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

type peers map[string][]apidiscoveryv2.APIGroupDiscovery

func (p peers) GetPeerResources() map[string][]apidiscoveryv2.APIGroupDiscovery { return p }

func main() {
	if len(os.Args) != 2 {
		fail(fmt.Errorf("usage: merge-oracle DIR"))
	}
	folders, err := os.ReadDir(os.Args[1])
	fail(err)
	for _, folder := range folders {
		answer(filepath.Join(os.Args[1], folder.Name()))
	}
}

func answer(folder string) {
	local, err := os.ReadFile(filepath.Join(folder, "local"))
	fail(err)
	lists := read(folder)
	manager := aggregated.NewResourceManager("/apis")
	fill(manager, lists[string(local)])
	delete(lists, string(local))
	handler := aggregated.NewPeerAggregatedDiscoveryHandler(string(local), manager, lists, "/apis")

	plain := ask(handler, "/apis", "")
	write(folder, "merged.body", plain.Body.Bytes())
	write(folder, "merged.head", head(plain))
	write(folder, "gzip.head", head(ask(handler, "/apis", "gzip")))
	write(folder, "pretty.body", ask(handler, "/apis?pretty=1", "").Body.Bytes())
}

func head(answer *httptest.ResponseRecorder) []byte {
	var lines bytes.Buffer
	fail(answer.Header().Write(&lines))
	return lines.Bytes()
}

func read(folder string) peers {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	fail(err)
	lists := peers{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		fail(err)
		var list apidiscoveryv2.APIGroupDiscoveryList
		fail(json.Unmarshal(text, &list))
		lists[strings.TrimSuffix(filepath.Base(file), ".json")] = list.Items
	}
	return lists
}

func fill(manager aggregated.ResourceManager, groups []apidiscoveryv2.APIGroupDiscovery) {
	manager.SetGroups(groups)
	for i, group := range groups {
		for j, version := range group.Versions {
			gv := metav1.GroupVersion{Group: group.Name, Version: version.Version}
			manager.SetGroupVersionPriority(gv, len(groups)-i, len(group.Versions)-j)
		}
	}
}

func ask(handler http.Handler, path, encodings string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(http.MethodGet, path, nil)
	request.Header.Set("Accept", accept)
	request.Header.Set("Accept-Encoding", encodings)
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

func write(folder, name string, content []byte) {
	fail(os.WriteFile(filepath.Join(folder, name), content, 0o600))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
