package main

import (
	"fmt"
	"strings"

	openapi_v3 "github.com/google/gnostic-models/openapiv3"
	"google.golang.org/protobuf/proto"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	models "k8s.io/kube-openapi/pkg/util/proto"
)

const v3Protobuf = "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"

func readOpenAPIV2(client *discovery.DiscoveryClient, report func(groupVersion, resource string)) error {
	document, err := client.OpenAPISchema()
	if err != nil {
		return err
	}
	if _, err := models.NewOpenAPIData(document); err != nil {
		return err
	}
	for _, path := range document.GetPaths().GetPath() {
		reportPath(path.GetName(), report)
	}
	return nil
}

func readOpenAPIV3(client *discovery.DiscoveryClient, report func(groupVersion, resource string)) error {
	root := openapi3.NewRoot(client.OpenAPIV3())
	groupVersions, err := root.GroupVersions()
	if err != nil {
		return err
	}
	for _, groupVersion := range groupVersions {
		document, err := root.GVSpec(groupVersion)
		if err != nil {
			return fmt.Errorf("%s: %w", groupVersion, err)
		}
		for path := range document.Paths.Paths {
			reportPath(path, report)
		}
	}
	return nil
}

func readOpenAPIV3Protobuf(client *discovery.DiscoveryClient, report func(groupVersion, resource string)) error {
	documents, err := client.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	for name, document := range documents {
		bytes, err := document.Schema(v3Protobuf)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var parsed openapi_v3.Document
		if err := proto.Unmarshal(bytes, &parsed); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if _, err := models.NewOpenAPIV3Data(&parsed); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		for _, path := range parsed.GetPaths().GetPath() {
			reportPath(path.GetName(), report)
		}
	}
	return nil
}

// reportPath reports the resource that a path such as /apis/apps/v1/namespaces/{namespace}/deployments/{name}/scale is
// of. Paths of discovery and of old-style watches are of none.
func reportPath(path string, report func(groupVersion, resource string)) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var groupVersion string
	switch {
	case parts[0] == "api" && len(parts) > 2:
		groupVersion, parts = parts[1], parts[2:]
	case parts[0] == "apis" && len(parts) > 3:
		groupVersion, parts = parts[1]+"/"+parts[2], parts[3:]
	default:
		return
	}
	if parts[0] == "watch" {
		return
	}
	if len(parts) > 2 && parts[0] == "namespaces" && parts[1] == "{namespace}" {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		report(groupVersion, parts[0]+"/"+parts[2])
	} else {
		report(groupVersion, parts[0])
	}
}
