package main

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/apiserver/pkg/endpoints/filters"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
)

// codecs knows what every scheme of a kube-apiserver knows.
func codecs() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	v1 := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, v1)
	scheme.AddUnversionedTypes(v1, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{},
		&metav1.APIResourceList{})
	return serializer.NewCodecFactory(scheme)
}

// addresses are those of the document.
type addresses []metav1.ServerAddressByClientCIDR

func (a addresses) ServerAddressByClientCIDRs(net.IP) []metav1.ServerAddressByClientCIDR { return a }

// legacy is upstream's handler of the document, behind the filter that gives it its cache headers.
func legacy(folder string) http.Handler {
	text, err := os.ReadFile(filepath.Join(folder, "document.json"))
	fail(err)
	var meta metav1.TypeMeta
	fail(json.Unmarshal(text, &meta))
	return filters.WithCacheControl(handler(meta.Kind, text))
}

func handler(kind string, text []byte) http.Handler {
	switch kind {
	case "APIVersions":
		var versions metav1.APIVersions
		fail(json.Unmarshal(text, &versions))
		return discovery.NewLegacyRootAPIHandler(addresses(versions.ServerAddressByClientCIDRs), codecs(), "/api")
	case "APIGroupList":
		var list metav1.APIGroupList
		fail(json.Unmarshal(text, &list))
		list.TypeMeta = metav1.TypeMeta{}
		// The aggregator's handler, which cannot be made without a lister, ends like this.
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			responsewriters.WriteObjectNegotiated(codecs(), negotiation.DefaultEndpointRestrictions, schema.GroupVersion{}, w,
				request, http.StatusOK, &list, false)
		})
	case "APIGroup":
		var group metav1.APIGroup
		fail(json.Unmarshal(text, &group))
		group.TypeMeta = metav1.TypeMeta{}
		return discovery.NewAPIGroupHandler(codecs(), group)
	case "APIResourceList":
		var list metav1.APIResourceList
		fail(json.Unmarshal(text, &list))
		groupVersion, err := schema.ParseGroupVersion(list.GroupVersion)
		fail(err)
		resources := func() []metav1.APIResource { return list.APIResources }
		return discovery.NewAPIVersionHandler(codecs(), groupVersion, discovery.APIResourceListerFunc(resources))
	default:
		fail(fmt.Errorf("no document of old is of kind %q", kind))
		return nil
	}
}
