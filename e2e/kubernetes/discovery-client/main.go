// Command discovery-client lists the resources of a cluster as one of client-go's readers of discovery or OpenAPI sees them.
//
// Usage: KUBECONFIG=FILE discovery-client READER. It prints one line `GROUP/VERSION RESOURCE` for each, sorted; a reader
// that does not get or does not understand the whole of it fails. Readers:
//   - aggregated   the discovery client by itself, which prefers aggregated documents
//   - legacy       the discovery client told to read one document for each group version
//   - cached       the same as aggregated, behind the memory cache
//   - mapper       what the deferred REST mapper makes of each kind; it has no subresources
//   - openapi-v2   the paths of the OpenAPI v2 document, a protobuf, whose models are parsed as well
//   - openapi-v3   the paths of the OpenAPI v3 documents in JSON
//   - openapi-v3-protobuf   the same from protobuf, whose models are parsed as well
package main

import (
	"fmt"
	"os"
	"sort"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/clientcmd"
)

// A reader reports each resource it finds, in any order and as often as it likes.
type reader func(*discovery.DiscoveryClient, func(groupVersion, resource string)) error

var readers = map[string]reader{
	"aggregated":          readAggregated,
	"legacy":              readLegacy,
	"cached":              readCached,
	"mapper":              readMapper,
	"openapi-v2":          readOpenAPIV2,
	"openapi-v3":          readOpenAPIV3,
	"openapi-v3-protobuf": readOpenAPIV3Protobuf,
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "discovery-client:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 1 {
		return fmt.Errorf("usage: discovery-client READER")
	}
	read, known := readers[arguments[0]]
	if !known {
		return fmt.Errorf("no reader %q", arguments[0])
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	found := map[string]bool{}
	err = read(client, func(groupVersion, resource string) {
		found[groupVersion+" "+resource] = true
	})
	if err != nil {
		return err
	}
	lines := make([]string, 0, len(found))
	for line := range found {
		lines = append(lines, line)
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
	return nil
}
