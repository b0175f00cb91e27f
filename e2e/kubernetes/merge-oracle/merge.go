package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/discovery/aggregated"
)

type peers map[string][]apidiscoveryv2.APIGroupDiscovery

func (p peers) GetPeerResources() map[string][]apidiscoveryv2.APIGroupDiscovery { return p }

// merged is upstream's own peer-aggregated discovery.
//
// The local server's list passes through upstream's resource manager, which orders groups and versions by priority and
// knows no group without versions: priorities are set so that the order given is kept.
func merged(folder string) http.Handler {
	local, err := os.ReadFile(filepath.Join(folder, "local"))
	fail(err)
	lists := read(folder)
	manager := aggregated.NewResourceManager("/apis")
	fill(manager, lists[string(local)])
	delete(lists, string(local))
	return aggregated.NewPeerAggregatedDiscoveryHandler(string(local), manager, lists, "/apis")
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
