package main

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/restmapper"
)

func readAggregated(client *discovery.DiscoveryClient, report func(groupVersion, resource string)) error {
	return each(client, func(groupVersion schema.GroupVersion, resource metav1.APIResource) error {
		report(groupVersion.String(), resource.Name)
		return nil
	})
}

func readLegacy(client *discovery.DiscoveryClient, report func(groupVersion, resource string)) error {
	return each(client.WithLegacy(), func(groupVersion schema.GroupVersion, resource metav1.APIResource) error {
		report(groupVersion.String(), resource.Name)
		return nil
	})
}

func readCached(client *discovery.DiscoveryClient, report func(groupVersion, resource string)) error {
	return each(memory.NewMemCacheClient(client), func(groupVersion schema.GroupVersion, resource metav1.APIResource) error {
		report(groupVersion.String(), resource.Name)
		return nil
	})
}

func readMapper(client *discovery.DiscoveryClient, report func(groupVersion, resource string)) error {
	cached := memory.NewMemCacheClient(client)
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	return each(cached, func(groupVersion schema.GroupVersion, resource metav1.APIResource) error {
		if strings.Contains(resource.Name, "/") {
			return nil
		}
		kind := schema.GroupKind{Group: groupVersion.Group, Kind: resource.Kind}
		mapping, err := mapper.RESTMapping(kind, groupVersion.Version)
		if err != nil {
			return err
		}
		report(mapping.Resource.GroupVersion().String(), mapping.Resource.Resource)
		return nil
	})
}

// each visits every resource of every version of every group.
func each(client discovery.DiscoveryInterface, visit func(schema.GroupVersion, metav1.APIResource) error) error {
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	for _, list := range lists {
		groupVersion, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return err
		}
		for _, resource := range list.APIResources {
			if err := visit(groupVersion, resource); err != nil {
				return err
			}
		}
	}
	return nil
}
